// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a reader of a page cannot see or reach: names, sizes, contrast, headings, places outside the screen. The value
// of this file, evaluated in the page, is the list of faults.
(() => {
  const wrong = [],
    seen = (e) => e.checkVisibility() && !e.closest(".reader");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids.filter((id, k) => ids.indexOf(id) !== k)) wrong.push(`two elements with the id ${id}`);
  for (const e of document.querySelectorAll("[aria-labelledby]"))
    if (!document.getElementById(e.getAttribute("aria-labelledby")))
      wrong.push(`labelled by nothing: ${e.outerHTML.slice(0, 60)}`);
  for (const e of document.querySelectorAll("[role=slider]")) {
    const [least, most, now] = ["min", "max", "now"].map((k) => parseFloat(e.getAttribute(`aria-value${k}`)));
    if (!e.getAttribute("aria-label") || !e.getAttribute("aria-valuetext") || e.tabIndex !== 0)
      wrong.push(`a slider without words: ${e.outerHTML.slice(0, 80)}`);
    if (!(least <= now && now <= most))
      wrong.push(`${e.getAttribute("aria-label")}: ${now} is not in ${least} to ${most}`);
  }
  for (const e of document.querySelectorAll("button, input, #explore a, summary")) {
    if (!(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim()))
      wrong.push(`no name: ${e.outerHTML.slice(0, 80)}`);
  }
  for (const e of document.querySelectorAll("#explore button, .tools label, [role=slider], .strip a")) {
    const box = e.getBoundingClientRect();
    if (box.width < 24 || box.height < 24)
      wrong.push(
        `smaller than a finger: ${Math.round(box.width)} x ${Math.round(box.height)}, ${e.outerHTML.slice(0, 70)}`,
      );
  }
  const levels = [...document.querySelectorAll("main h1, main h2, main h3")].map((e) => +e.tagName[1]);
  if (levels[0] !== 1 || levels.some((level, k) => k && level > levels[k - 1] + 1)) wrong.push(`headings ${levels}`);
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((c) => ((c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    if (e.matches?.(".in.even, .in.odd")) return getComputedStyle(e.previousElementSibling).fill;
    if (e.matches?.(".grip-name")) return getComputedStyle(e.parentNode.querySelector(".grip")).fill;
    if (e.matches?.(".in.hole")) return getComputedStyle(e.previousElementSibling).fill;
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (channels(colour)[3] === 255) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  for (const e of document.querySelectorAll("#explore *, header.top *")) {
    if (
      ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) ||
      !seen(e) ||
      e.disabled ||
      e.closest("script, noscript")
    )
      continue;
    const style = getComputedStyle(e),
      ink = e instanceof SVGElement ? style.fill : style.color,
      ground = behind(e);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x),
      contrast = (a + 0.05) / (b + 0.05);
    if (!(contrast >= 4.5)) wrong.push(`contrast ${contrast.toFixed(2)}: ${e.outerHTML.slice(0, 90)}`);
  }
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth)
    wrong.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
  for (const e of document.querySelectorAll(".panel text")) {
    const box = e.getBoundingClientRect(),
      panel = e.closest(".panel").getBoundingClientRect();
    if (box.width && (box.left < panel.left - 1 || box.right > panel.right + 1))
      wrong.push(`cut at the edge: ${e.textContent}`);
  }
  return wrong;
})();

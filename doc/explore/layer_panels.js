// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The panels of "One layer, replayed": the weights of a head, the share of each head's sink, the largest coordinate.
"use strict";
const cell = (name, attributes, ...children) => {
  const made = put(document.createElement(name), attributes);
  made.append(...children);
  return made;
};
const shade = (kind, weight) => `--share: ${(100 * weight).toFixed(1)}%; --hue: var(--term-${kind})`;
const wordOf = (run, j) => run.words[j].trim() || run.words[j];

class MapPanel {
  constructor(table, steps) {
    Object.assign(this, { table, steps });
  }
  show(state, run, weights) {
    const logit = weights[0].sink !== null,
      had = this.table.contains(document.activeElement);
    const columns = [...(logit ? ["sink"] : []), ...run.words.map((_, j) => wordOf(run, j))];
    const head = cell("tr", {}, cell("td", {}));
    columns.forEach((word, k) =>
      head.append(cell("th", { scope: "col", class: k === 0 ? "of-sink" : "" }, cell("span", {}, word))),
    );
    const rows = weights.map((row, i) => {
      const choose = cell("button", { type: "button", "aria-pressed": String(i === state.row) }, wordOf(run, i));
      choose.addEventListener("click", () => this.steps.set({ row: i }));
      choose.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        this.steps.set({ row: clamp(i + step, 0, weights.length - 1) });
      });
      const line = cell("tr", i === state.row ? { class: "chosen" } : {}, cell("th", { scope: "row" }, choose));
      const shares = [...(logit ? [row.sink] : []), ...row.key];
      columns.forEach((word, k) => {
        const masked = k >= logit && run.score[state.layer][state.head][i][k - logit] === null,
          hidden = shares[k] === undefined || masked;
        if (hidden) line.append(cell("td", { class: "hidden" }));
        else
          line.append(
            cell(
              "td",
              { style: shade(k === 0 ? "sink" : "weight", shares[k]), title: `${wordOf(run, i)} to ${word}: ${percent(shares[k])}` },
              String(Math.round(100 * shares[k])),
            ),
          );
      });
      return line;
    });
    this.table.replaceChildren(cell("thead", {}, head), cell("tbody", {}, ...rows));
    if (had) this.table.querySelectorAll("button")[state.row].focus();
  }
}

class HeadsPanel {
  constructor(svg, steps) {
    Object.assign(this, { svg, steps });
    svg.addEventListener("click", (event) => {
      const [x, y] = pointIn(svg, event),
        layer = Math.floor((x - 30) / this.across),
        head = Math.floor((y - 10) / this.down);
      if (layer >= 0 && layer < this.layers && head >= 0 && head < this.heads) this.steps.set({ layer, head });
    });
  }
  show(state, share, words, uniform) {
    this.layers = share.length;
    this.heads = share[0].length;
    this.across = 320 / this.layers;
    this.down = 250 / this.heads;
    const parts = share.flatMap((heads, l) =>
      heads.map((mean, h) =>
        shape(
          "rect",
          {
            x: 30 + l * this.across,
            y: 10 + h * this.down,
            width: this.across - 0.6,
            height: this.down - 0.6,
            class: "share",
            style: shade("sink", mean),
          },
          shape("title", {}, `layer ${l}, head ${h}: ${percent(mean)}`),
        ),
      ),
    );
    const at = { x: 30 + state.layer * this.across - 1, y: 10 + state.head * this.down - 1 };
    parts.push(
      shape("rect", { ...at, width: this.across + 1.4, height: this.down + 1.4, class: "here" }),
      shape("text", { x: 190, y: 284, class: "tick", "text-anchor": "middle" }, "layer"),
      shape("text", { x: 30, y: 276, class: "tick" }, "0"),
      shape("text", { x: 350, y: 276, class: "tick", "text-anchor": "end" }, String(this.layers - 1)),
      shape("text", { x: 24, y: 20, class: "tick", "text-anchor": "end" }, "0"),
      shape("text", { x: 24, y: 258, class: "tick", "text-anchor": "end" }, String(this.heads - 1)),
      shape("text", { x: 12, y: 140, class: "tick", transform: "rotate(-90 12 140)", "text-anchor": "middle" }, "head"),
    );
    this.svg.replaceChildren(...parts);
    const above = share.flat().filter((mean) => mean > 0.3).length;
    document.getElementById("heads-said").textContent =
      `${words}: mean over the queries after the first. ${above} of ${share.flat().length} heads are above 30 %. ` +
      `Here: ${percent(share[state.layer][state.head])}; with equal weights it would be ${percent(uniform)}. ` +
      `Click a head to see it, or use the sliders.`;
  }
}

// The size of one coordinate of each token's state, by layer, in powers of ten.
class StatesPanel {
  constructor(svg) {
    this.svg = svg;
  }

  // In which layer the first token's grows most, and whether the others' grow alike.
  growth(massive) {
    const step = (l) => Math.abs(massive[l + 1][0]) - Math.abs(massive[l][0]),
      layer = massive.slice(1).reduce((best, _, l) => (step(l) > step(best) ? l : best), 0),
      [first, ...others] = massive[layer + 1].map(Math.abs),
      alike = others.every((size) => size > first / 2);
    return (
      `In the first token it grows most in layer ${layer}: from ${said(massive[layer][0], 2)} to ` +
      `${said(massive[layer + 1][0], 2)}.` +
      (alike ? " All tokens have it alike: none is singled out." : "")
    );
  }
  show(state, run) {
    const { massive, norm, coordinate } = run.states,
      layers = massive.length - 1,
      sizes = massive.map((row) => row.map((x) => Math.max(Math.abs(x), 0.01)));
    const top = Math.ceil(Math.log10(Math.max(...sizes.flat()))),
      low = -2,
      x = (l) => 40 + (310 * l) / layers,
      y = (size) => 255 - (240 * (Math.log10(size) - low)) / (top - low);
    const parts = [];
    for (let power = low; power <= top; power++)
      parts.push(
        shape("line", { x1: 40, x2: 350, y1: y(10 ** power), y2: y(10 ** power), class: "grid" }),
        shape("text", { x: 36, y: y(10 ** power) + 4, class: "tick", "text-anchor": "end" }, `1e${power}`.replace("-", "−")),
      );
    const lines = run.words.map((_, i) =>
      shape("polyline", {
        points: sizes.map((row, l) => `${x(l).toFixed(1)},${y(row[i]).toFixed(1)}`).join(" "),
        class: `state${i === 0 ? " first" : ""}${i === state.row ? " chosen" : ""}`,
      }),
    );
    parts.push(
      ...lines,
      shape("line", { x1: x(state.layer), x2: x(state.layer), y1: 12, y2: 255, class: "edge" }),
      shape("text", { x: 195, y: 284, class: "tick", "text-anchor": "middle" }, "before layer"),
      shape("text", { x: 40, y: 271, class: "tick" }, "0"),
      shape("text", { x: 350, y: 271, class: "tick", "text-anchor": "end" }, String(layers)),
    );
    this.svg.replaceChildren(...parts);
    const first = massive[state.layer][0],
      row = massive[state.layer][state.row];
    document.getElementById("states-said").textContent =
      `Coordinate ${coordinate} before layer ${state.layer}: ${said(first, 2)} in the first token, whose state has norm ` +
      `${said(norm[state.layer][0], 2)}; ${said(row, 2)} in “${wordOf(run, state.row)}”, norm ` +
      `${said(norm[state.layer][state.row], 2)}. ${this.growth(massive)} Orange: the first token; thick: the chosen one.`;
  }
}

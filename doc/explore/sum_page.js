// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Puts the page of sums together.
"use strict";
const PRESETS = {
  alike: () => Array(8).fill(1.5),
  cancelling: () => [8, -8, 0.5, 7.5, -7.5, 0.25, 6, -6],
  drawn: () => Array.from({ length: TERMS_SHOWN }, () => onGrid(Math.random() * 2 * TERM_MOST - TERM_MOST, FINE)),
};

(async () => {
  const place = document.getElementById("explore"),
    compute = await startSums(window.exploreWasm),
    part = (id) => document.getElementById(id);
  const panels = [];
  let asked = 0,
    resting = 0;
  const steps = new Steps(fromAddress(location.hash), () => {
    asked ||= requestAnimationFrame(show);
  });

  function show() {
    asked = 0;
    const state = steps.now,
      sum = compute(state),
      off = sum.got - sum.truth,
      outside = !(Math.abs(off) <= sum.any);
    panels.forEach((panel) => panel.show(state, sum));
    for (const name of ["format", "order", "mistake"])
      all(`input[name=${name}]`).forEach((input) => {
        input.checked = input.value === state[name];
      });
    part("undo").disabled = !steps.past.length;
    part("redo").disabled = !steps.future.length;
    part("fewer").disabled = state.term.length === 2;
    part("more").disabled = state.term.length === TERMS_SHOWN;
    part("keys").textContent = `${state.term.length} terms`;
    const n = state.term.length,
      honest = [...sum.order, ...sum.shuffled].map((x) => x - sum.truth),
      different = new Set(honest).size;
    const words = {
      truth: `${sum.truth.toPrecision(12).replace("-", "−")}, between numbers of the format that are ${small(sum.ulp)} apart`,
      got: `${exact(sum.got)}, off by ${small(off)}`,
      any: `γ${"\u00a0"}of ${n - 1} additions · Σ|x| = ${small(sum.any)}`,
      this: `γ${"\u00a0"}of ${sum.depth} additions · Σ|x| = ${small(sum.thisOrder)}`,
      orders: `from ${small(Math.min(...honest))} to ${small(Math.max(...honest))}, ${different} different`,
    };
    for (const [name, text] of Object.entries(words)) part(`live-${name}`).textContent = text;
    const verdict = outside
      ? "Outside the honest set: no order of additions in this format gives this number. A mistake is proved."
      : "Inside the honest set: this number alone proves no mistake.";
    part("verdict").textContent = verdict;
    part("verdict").classList.toggle("broken", outside);
    part("walk").replaceChildren(
      ...sum.step.map(({ left, right, sum: got, error }) => {
        const row = document.createElement("tr");
        for (const text of [`${exact(left)} + ${exact(right)}`, exact(got), small(error)])
          row.append(Object.assign(document.createElement("td"), { textContent: text }));
        return row;
      }),
    );
    clearTimeout(resting);
    resting = setTimeout(() => {
      part("said").textContent = `${exact(sum.got)}, off by ${small(off)}. ${verdict}`;
    }, 500);
    place.dataset.ready = String(Number(place.dataset.ready ?? 0) + 1);
  }

  const actions = {
    undo: () => steps.undo(),
    redo: () => steps.redo(),
    again: () => steps.set(copyOf(START)),
    fewer: () => steps.set({ term: steps.now.term.slice(0, -1) }),
    more: () => steps.set({ term: [...steps.now.term, 1] }),
    bits: () => steps.set({ seed: (steps.now.seed + 1) % 1000 }),
  };
  for (const [name, make] of Object.entries(PRESETS)) actions[name] = () => steps.set({ term: make() });
  for (const [id, act] of Object.entries(actions)) part(id).addEventListener("click", act);
  all("input[name=format], input[name=order], input[name=mistake]").forEach((input) =>
    input.addEventListener("change", () => steps.set({ [input.name]: input.value })),
  );
  steps.listen();
  panels.push(new TermPanel(part("terms"), steps), new SetPanel(part("set")));
  show();
})();

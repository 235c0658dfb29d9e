// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The derivation's lines with the numbers of the row: each line's summands in the colours of its terms.
"use strict";
const PARTS = 4;
// What the summands of each line are.
const KINDS = [
  ["heads", "out"],
  ...Array(5).fill(["heads", "heads", "out"]),
  ...Array(3).fill(["weight", "bias", "out"]),
  ["weight", "bias", "sink", "out"],
  ...Array(2).fill(["weight", "sink", "bias", "out"]),
  ["heads", "heads", "out"],
];
const MEANINGS = {
  weight: "α of a key: a number for each query, key and head",
  sink: "αₛ, the sink's weight: a number for each query and head",
  bias: "b of the values: a vector of d numbers, d′ for each head",
  out: "b of the output: a vector of d numbers",
};

// The members of lines_result, in their order.
function linesOf(memory) {
  let at = 0;
  const one = () => memory[at++],
    many = (count) => Array.from({ length: count }, one);
  const lines = { alpha: [many(KEYS_MOST), many(KEYS_MOST)], alphaSink: many(2), bound: one() };
  lines.line = KINDS.map(() => ({
    part: Array.from({ length: PARTS }, () => many(2)),
    total: many(2),
    residue: one(),
  }));
  return lines;
}

(async () => {
  const place = document.getElementById("explore"),
    door = await openReference(window.exploreWasm),
    row = rowOf(door),
    part = (id) => document.getElementById(id);
  const panels = [];
  let asked = 0,
    resting = 0;
  const steps = new Steps(fromAddress(location.hash), () => {
    asked ||= requestAnimationFrame(show);
  });

  function distance(line, bound, rounded) {
    if (line.residue === 0) return "equal to the first line to the bit";
    const far = `${small(line.residue)} from the first line`;
    if (line.residue <= bound) return `${far}: binary64 can do this, up to ${small(bound)}`;
    return rounded ? `${far}: the weights are rounded, and do not sum to 1 − αₛ` : `${far}: more than binary64 can do`;
  }

  function show() {
    asked = 0;
    const state = { ...steps.now, form: "right" },
      result = row(state);
    door.compute_lines();
    const lines = linesOf(new Float64Array(door.memory.buffer, door.lines())),
      rounded = state.policy !== "real";
    panels.forEach((panel) => panel.show(state, result));
    all("input[name=policy]").forEach((input) => {
      input.checked = input.value === state.policy;
    });
    part("undo").disabled = !steps.past.length;
    part("redo").disabled = !steps.future.length;
    all(".numbers").forEach((cell, k) => {
      const { part: parts, total } = lines.line[k],
        pieces = [];
      KINDS[k].forEach((kind, p) =>
        pieces.push(
          p ? " + " : "",
          Object.assign(document.createElement("span"), { className: `t-${kind}`, textContent: vector(parts[p]) }),
        ),
      );
      cell.replaceChildren(
        ...pieces,
        " = ",
        Object.assign(document.createElement("strong"), { textContent: vector(total) }),
      );
    });
    all(".distance").forEach((cell, k) => {
      cell.textContent = distance(lines.line[k], lines.bound, rounded);
      cell.classList.toggle("away", !(lines.line[k].residue <= lines.bound));
    });
    lines.alpha.forEach((alpha, h) => {
      part(`head-${h + 1}`).textContent = `${alpha
        .slice(0, state.keys)
        .map((a) => said(a, 3))
        .join(", ")}; the sink ${said(lines.alphaSink[h], 3)}`;
    });
    part("to-row").href = `index.html${toAddress(state)}`;
    clearTimeout(resting);
    const away = lines.line.filter((line) => !(line.residue <= lines.bound)).length;
    resting = setTimeout(() => {
      part("said").textContent =
        `The output is ${vector(lines.line[0].total)}. ` +
        (away ? `${away} lines give another number.` : "All lines give the same number.");
    }, 500);
    place.dataset.ready = String(Number(place.dataset.ready ?? 0) + 1);
  }

  const actions = { undo: () => steps.undo(), redo: () => steps.redo(), again: () => steps.set(copyOf(START)) };
  for (const [id, act] of Object.entries(actions)) part(id).addEventListener("click", act);
  all("input[name=policy]").forEach((input) =>
    input.addEventListener("change", () => steps.set({ policy: input.value })),
  );
  steps.listen();
  for (const [kind, meaning] of Object.entries(MEANINGS))
    all(`.derivation .t-${kind}`).forEach((term) => {
      term.title = meaning;
    });
  panels.push(new ScorePanel(part("scores"), steps), new ArrowPanel(part("arrows"), steps));
  show();
})();

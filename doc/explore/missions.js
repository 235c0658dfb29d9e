// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Five tasks for a class: where each starts, and when it is solved. Their words stand in page.html.
"use strict";
const kept = (state, start, ...names) =>
  names.every((name) => JSON.stringify(state[name]) === JSON.stringify(start[name]));
const MISSIONS = [
  {
    start: {},
    solved: (state, result, start) => kept(state, start, "sink", "keys", "window", "form") && result.alphaSink >= 0.99,
  },
  {
    start: { score: [-1, 0, 1, -1, 0.5, -3, 0, 0], sink: -4 },
    solved: (state, result, start) => kept(state, start, "form") && Math.round(100 * result.alphaSink) === 50,
  },
  {
    start: { score: [7, -1, -2, 0, -3, -1, 0, 0] },
    solved: (state, result, start) => kept(state, start, "score", "sink", "keys", "form") && result.alphaSink > 0.5,
  },
  {
    start: { policy: "bf16", keys: 3, window: 3, score: [0, 0, 0, 0, 0, 0, 0, 0], sink: 0 },
    solved: (state, result, start) => kept(state, start, "policy", "form") && result.law.mass.residue > 0,
  },
  {
    start: { policy: "bf16", form: "lse-rounded" },
    solved: (state, result, start) =>
      kept(state, start, "policy", "form") && LAWS.every((name) => result.law[name].holds),
  },
];
const startOf = (number) => ({ ...copyOf(START), ...MISSIONS[number - 1].start, mission: number });

function showMission(state, result) {
  all(".missions li").forEach((item, k) => {
    const current = state.mission === k + 1,
      solved = current && MISSIONS[k].solved(state, result, startOf(k + 1));
    item.classList.toggle("current", current);
    item.classList.toggle("solved", solved);
    item.querySelector("button").setAttribute("aria-pressed", String(current));
    const said = item.querySelector(".done"),
      text = solved ? "Solved." : "";
    if (said.textContent !== text) said.textContent = text;
  });
}

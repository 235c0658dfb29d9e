// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The row that the reader has set, and its address.
"use strict";
const KEYS_SHOWN = 8; // at most
const SCORE_MOST = 8,
  VALUE_MOST = 3;
const START = Object.freeze({
  policy: "real",
  form: "right",
  keys: 6,
  window: 6,
  sink: 1,
  mission: 0,
  score: [2, -1, 0.5, 1.5, -2, 1, 0, 0],
  value: [
    [2, 0.5],
    [-1, 1.5],
    [-2, -0.5],
    [1, 2],
    [0.5, -2],
    [-1.5, 1],
    [1, -1],
    [2, -1],
  ],
  bias: [1, -1.5],
});

function toAddress(state) {
  const pair = (list) => list.map(short).join(":");
  return (
    `#p=${state.policy}&f=${state.form}&w=${state.window}&b=${short(state.sink)}` +
    `&s=${state.score.slice(0, state.keys).map(short).join(",")}&v=${state.value.slice(0, state.keys).map(pair).join(",")}` +
    `&c=${pair(state.bias)}` +
    (state.mission ? `&m=${state.mission}` : "")
  );
}

// What an address says, as far as it is sense; the rest is as at the start.
function fromAddress(address) {
  const state = copyOf(START),
    said = new URLSearchParams(address.replace(/^#/, ""));
  const pair = (text) => {
    const [x, y] = text.split(":").map((part) => numberOf(part, VALUE_MOST));
    return x === null || y === null || y === undefined ? null : [x, y];
  };
  if (POLICIES.includes(said.get("p"))) state.policy = said.get("p");
  if (FORMS.includes(said.get("f"))) state.form = said.get("f");
  const scores = said
    .get("s")
    ?.split(",")
    .map((text) => numberOf(text, SCORE_MOST));
  if (scores?.length <= KEYS_SHOWN && !scores.includes(null)) {
    scores.forEach((s, j) => {
      state.score[j] = s;
    });
    state.keys = scores.length;
  }
  said
    .get("v")
    ?.split(",")
    .map(pair)
    .forEach((v, j) => {
      if (v && j < KEYS_SHOWN) state.value[j] = v;
    });
  state.bias = (said.get("c") && pair(said.get("c"))) || state.bias;
  state.sink = numberOf(said.get("b"), SCORE_MOST) ?? state.sink;
  state.window = clamp(Math.round(numberOf(said.get("w"), KEYS_SHOWN) ?? state.keys), 1, state.keys);
  state.mission = clamp(Math.round(numberOf(said.get("m"), 5) ?? 0), 0, 5);
  return state;
}

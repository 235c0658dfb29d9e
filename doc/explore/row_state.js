// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The part of a state and of its address that is a row: scores, sink, window, values.
"use strict";
const KEYS_SHOWN = 8; // at most
const SCORE_MOST = 8,
  VALUE_MOST = 3;
const ROW_START = Object.freeze({
  keys: 6,
  window: 6,
  sink: 1,
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
});

// A point of a plane in an address, or null.
const placeToAddress = (list) => list.map(short).join(":");
function placeOf(text) {
  const [x, y] = (text ?? "").split(":").map((part) => numberOf(part, VALUE_MOST));
  return x === null || y === null || y === undefined ? null : [x, y];
}

function rowToAddress(state) {
  const scores = state.score.slice(0, state.keys).map(short),
    values = state.value.slice(0, state.keys).map(placeToAddress);
  return `w=${state.window}&b=${short(state.sink)}&s=${scores.join(",")}&v=${values.join(",")}`;
}

// What an address says of the row, as far as it is sense; the rest stays as it is in the state.
function rowFromAddress(said, state) {
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
    .map(placeOf)
    .forEach((v, j) => {
      if (v && j < KEYS_SHOWN) state.value[j] = v;
    });
  state.sink = numberOf(said.get("b"), SCORE_MOST) ?? state.sink;
  state.window = clamp(Math.round(numberOf(said.get("w"), KEYS_SHOWN) ?? state.keys), 1, state.keys);
  return state;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the reader has set: in the address, so that a link shows the same row, and with every step kept for undoing.
"use strict";
const KEYS_SHOWN = 8; // at most
const SCORE_MOST = 8, VALUE_MOST = 3;
const START = Object.freeze({
  policy: "real", form: "right", keys: 6, window: 6, sink: 1, mission: 0,
  score: [2, -1, 0.5, 1.5, -2, 1, 0, 0],
  value: [[2, 0.5], [-1, 1.5], [-2, -0.5], [1, 2], [0.5, -2], [-1.5, 1], [1, -1], [2, -1]],
  bias: [1, -1.5],
});

const copyOf = (state) => structuredClone(state);
const clamp = (x, least, most) => Math.min(most, Math.max(least, x));
const onGrid = (x, step) => Math.round(x / step) * step;
const short = (x) => String(Number(x.toFixed(4)));

function toAddress(state) {
  const pair = (list) => list.map(short).join(":");
  return `#p=${state.policy}&f=${state.form}&w=${state.window}&b=${short(state.sink)}` +
    `&s=${state.score.slice(0, state.keys).map(short).join(",")}&v=${state.value.slice(0, state.keys).map(pair).join(",")}` +
    `&c=${pair(state.bias)}` + (state.mission ? `&m=${state.mission}` : "");
}

// What an address says, as far as it is sense; the rest is as at the start.
function fromAddress(address) {
  const state = copyOf(START), said = new URLSearchParams(address.replace(/^#/, ""));
  const number = (text, most) => {
    const x = text?.trim() ? Number(text) : NaN;
    return Number.isFinite(x) ? clamp(x, -most, most) : null;
  };
  const pair = (text) => {
    const [x, y] = text.split(":").map((part) => number(part, VALUE_MOST));
    return x === null || y === null || y === undefined ? null : [x, y];
  };
  if (POLICIES.includes(said.get("p"))) state.policy = said.get("p");
  if (FORMS.includes(said.get("f"))) state.form = said.get("f");
  const scores = said.get("s")?.split(",").map((text) => number(text, SCORE_MOST));
  if (scores?.length <= KEYS_SHOWN && !scores.includes(null)) {
    scores.forEach((s, j) => { state.score[j] = s; });
    state.keys = scores.length;
  }
  said.get("v")?.split(",").map(pair).forEach((v, j) => { if (v && j < KEYS_SHOWN) state.value[j] = v; });
  state.bias = (said.get("c") && pair(said.get("c"))) || state.bias;
  state.sink = number(said.get("b"), SCORE_MOST) ?? state.sink;
  state.window = clamp(Math.round(number(said.get("w"), KEYS_SHOWN) ?? state.keys), 1, state.keys);
  state.mission = clamp(Math.round(number(said.get("m"), 5) ?? 0), 0, 5);
  return state;
}

// The steps: `set` shows a state, `keep` ends a step. A drag is one step.
class Steps {
  constructor(state, shown) {
    this.now = state;
    this.shown = shown;
    this.past = [];
    this.future = [];
    this.kept = toAddress(state);
  }
  set(change, keep = true) {
    this.now = { ...copyOf(this.now), ...change };
    if (keep) this.keep();
    this.shown(this.now);
  }
  keep() {
    const address = toAddress(this.now);
    if (address === this.kept) return;
    this.past.push(this.kept);
    this.future = [];
    this.kept = address;
    history.replaceState(null, "", address);
  }
  move(from, to) {
    if (!from.length) return;
    to.push(this.kept);
    this.kept = from.pop();
    this.now = fromAddress(this.kept);
    history.replaceState(null, "", this.kept);
    this.shown(this.now);
  }
  undo() { this.move(this.past, this.future); }
  redo() { this.move(this.future, this.past); }
}

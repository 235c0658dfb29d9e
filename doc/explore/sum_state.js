// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sum that the reader has set, its address, and sum_given and sum_result of sum.h.
"use strict";
const TERMS_MOST = 16,
  TERMS_SHOWN = 12,
  TERM_MOST = 8,
  SHUFFLES = 200;
const FORMATS = ["f32", "f16", "bf16"];
const ORDERS = ["forward", "backward", "pairwise", "lanes", "largest", "smallest"];
const MISTAKES = ["none", "lost", "twice", "cut", "narrower"];
const START = Object.freeze({
  format: "bf16",
  order: "forward",
  mistake: "none",
  seed: 1,
  term: [3, 1.5, 0.5, 2, 4.5, 1, 2.5, 0.75],
});

function toAddress(state) {
  return `#t=${state.format}&o=${state.order}&x=${state.mistake}&r=${state.seed}&s=${state.term.map(short).join(",")}`;
}

function fromAddress(address) {
  const state = copyOf(START),
    said = new URLSearchParams(address.replace(/^#/, ""));
  if (FORMATS.includes(said.get("t"))) state.format = said.get("t");
  if (ORDERS.includes(said.get("o"))) state.order = said.get("o");
  if (MISTAKES.includes(said.get("x"))) state.mistake = said.get("x");
  state.seed = Math.abs(Math.round(numberOf(said.get("r"), 1e6) ?? START.seed));
  const terms = said
    .get("s")
    ?.split(",")
    .map((text) => numberOf(text, TERM_MOST));
  if (terms?.length >= 2 && terms.length <= TERMS_SHOWN && !terms.includes(null)) state.term = terms;
  return state;
}

async function startSums(base64) {
  const door = await openReference(base64);
  return (state) => {
    const given = [
      FORMATS.indexOf(state.format),
      ORDERS.indexOf(state.order),
      MISTAKES.indexOf(state.mistake),
      state.term.length,
      state.seed,
    ];
    new Float64Array(door.memory.buffer, door.sum_given()).set([
      ...given,
      ...state.term,
      ...Array(TERMS_MOST - state.term.length).fill(0),
    ]);
    door.sum_compute();
    return sumOf(new Float64Array(door.memory.buffer, door.sum_result()));
  };
}

// The members of sum_result, in their order.
function sumOf(memory) {
  let at = 0;
  const one = () => memory[at++];
  const many = (count) => Array.from({ length: count }, one);
  const sum = {
    term: many(TERMS_MOST),
    truth: one(),
    size: one(),
    nearest: one(),
    ulp: one(),
    got: one(),
    depth: one(),
    any: one(),
    thisOrder: one(),
    steps: one(),
  };
  sum.step = Array.from({ length: TERMS_MOST }, () => ({ left: one(), right: one(), sum: one(), error: one() })).slice(
    0,
    sum.steps,
  );
  sum.order = many(ORDERS.length);
  sum.shuffled = many(SHUFFLES);
  return sum;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The row of row.h: row_given and row_result are arrays of doubles in the memory of the compiled reference.
"use strict";
const KEYS_MOST = 16;
const POLICIES = ["real", "f32", "bf16", "f16"];
const FORMS = ["right", "scaled", "dropped", "max-only", "renormalised", "per-part", "lse-rounded"];
const LAWS = ["mass", "shift", "key", "softmax1", "gate"];
const SHIFT = 2; // t of law.shift

// A function from a state to its row.
function rowOf(door) {
  return (state) => {
    new Float64Array(door.memory.buffer, door.given()).set(numbersOf(state));
    door.compute();
    return resultOf(new Float64Array(door.memory.buffer, door.result()));
  };
}
const startEngine = async (base64) => rowOf(await openReference(base64));

// The members of row_given, in their order.
function numbersOf(state) {
  const padded = (list, size) => [...list, ...Array(size - list.length).fill(0)];
  return [
    POLICIES.indexOf(state.policy),
    FORMS.indexOf(state.form),
    state.keys,
    state.window,
    state.sink,
    SHIFT,
    ...state.bias,
    ...padded(state.score.slice(0, state.keys), KEYS_MOST),
    ...padded(state.value.slice(0, state.keys).flat(), 2 * KEYS_MOST),
  ];
}

// What takes the members of a result from memory, one after the other: numbers, and laws by their names.
function membersOf(memory) {
  let at = 0;
  const one = () => memory[at++];
  const many = (count) => Array.from({ length: count }, one);
  const law = () => ({ left: one(), right: one(), residue: one(), bound: one(), holds: one() === 1 });
  return { one, many, laws: (names) => Object.fromEntries(names.map((name) => [name, law()])) };
}

// The members of row_result, in their order.
function resultOf(memory) {
  const { one, many, laws } = membersOf(memory);
  return {
    first: one(),
    score: many(KEYS_MOST),
    sink: one(),
    alpha: many(KEYS_MOST),
    alphaSink: one(),
    value: Array.from({ length: KEYS_MOST }, () => many(2)),
    out: many(2),
    most: one(),
    divisor: one(),
    lse: one(),
    gate: one(),
    law: laws(LAWS),
  };
}

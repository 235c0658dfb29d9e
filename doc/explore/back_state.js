// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A row and its loss, their address, and the gradients by the compiled reference (back.h).
"use strict";
const BACK_FORMS = ["right", "sign", "per-part", "renormalised", "sinkless", "lse-lost"];
const BACK_LAWS = ["sum", "delta", "bias", "slope"];
const START = Object.freeze({ form: "right", dOut: [0.75, 1], dLse: 0, ...ROW_START });

const toAddress = (state) =>
  `#f=${state.form}&${rowToAddress(state)}&d=${placeToAddress(state.dOut)}&l=${short(state.dLse)}`;

function fromAddress(address) {
  const said = new URLSearchParams(address.replace(/^#/, "")),
    state = rowFromAddress(said, copyOf(START));
  if (BACK_FORMS.includes(said.get("f"))) state.form = said.get("f");
  state.dOut = placeOf(said.get("d")) ?? state.dOut;
  state.dLse = numberOf(said.get("l"), 2) ?? state.dLse;
  return state;
}

// A function from a state to its gradients.
async function startBackward(base64) {
  const door = await openReference(base64);
  return (state) => {
    const row = numbersOf({ ...state, policy: "real", form: "right", bias: [0, 0] });
    new Float64Array(door.memory.buffer, door.back_given()).set([
      ...row,
      BACK_FORMS.indexOf(state.form),
      ...state.dOut,
      state.dLse,
    ]);
    door.back_compute();
    // Binary64 rounds neither the scores nor the sink.
    const { score, sink } = state;
    return { ...gradientsOf(new Float64Array(door.memory.buffer, door.back_result())), score, sink };
  };
}

// The members of back_result, in their order.
function gradientsOf(memory) {
  const { one, many, laws } = membersOf(memory);
  return {
    first: one(),
    alpha: many(KEYS_MOST),
    alphaSink: one(),
    out: many(2),
    lse: one(),
    loss: one(),
    dAlpha: many(KEYS_MOST),
    delta: one(),
    dScore: many(KEYS_MOST),
    dSink: one(),
    dValue: Array.from({ length: KEYS_MOST }, () => many(2)),
    curve: many(65),
    law: laws(BACK_LAWS),
  };
}

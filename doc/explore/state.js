// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The row that the reader has set, its arithmetic and form, and its address.
"use strict";
const START = Object.freeze({ policy: "real", form: "right", mission: 0, bias: [1, -1.5], ...ROW_START });

function toAddress(state) {
  return (
    `#p=${state.policy}&f=${state.form}&${rowToAddress(state)}&c=${placeToAddress(state.bias)}` +
    (state.mission ? `&m=${state.mission}` : "")
  );
}

function fromAddress(address) {
  const said = new URLSearchParams(address.replace(/^#/, "")),
    state = rowFromAddress(said, copyOf(START));
  if (POLICIES.includes(said.get("p"))) state.policy = said.get("p");
  if (FORMS.includes(said.get("f"))) state.form = said.get("f");
  state.bias = placeOf(said.get("c")) ?? state.bias;
  state.mission = clamp(Math.round(numberOf(said.get("m"), 5) ?? 0), 0, 5);
  return state;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numbers in words: the formula, and what a screen reader says.
"use strict";
function showFormula(state, result) {
  const chosen = clamp(state.chosen ?? state.keys - 1, result.first, state.keys - 1),
    wrong = state.form !== "right";
  const weight = (exponent, right, got) =>
    `e^(${said(exponent)} − ${said(result.most)}) / ${exact(result.divisor)} = ` +
    exact(right) +
    (wrong ? `; the wrong form gives ${exact(got)}` : "");
  const rightOf = (score) => Math.exp(score - result.most) / result.divisor;
  const seen = state.keys - result.first,
    mass = result.alpha.reduce((sum, a) => sum + a, 0);
  const tokens = [0, 1].map((d) =>
    state.value.slice(0, state.keys).reduce((sum, v, j) => sum + result.alpha[j] * v[d], 0),
  );
  const said_ = {
    most: said(result.most, 4),
    divisor: exact(result.divisor),
    "weight-name": String(chosen + 1),
    weight: weight(
      result.score[chosen],
      wrong ? rightOf(result.score[chosen]) : result.alpha[chosen],
      result.alpha[chosen],
    ),
    sink: weight(result.sink, wrong ? rightOf(result.sink) : result.alphaSink, result.alphaSink),
    mass: `${exact(mass)}, and 1 − αₛ = ${exact(1 - result.alphaSink)}`,
    gate: `LSE = ${exact(result.lse)} over ${seen} ${seen === 1 ? "key" : "keys"}, σ(LSE − b) = ${exact(result.gate)}`,
    out: `${vector(tokens)} + ${said(mass, 4)} · ${vector(state.bias)} = ${vector(result.out)}`,
  };
  for (const [name, text] of Object.entries(said_)) document.getElementById(`live-${name}`).textContent = text;
}

// Said once the reader rests.
let resting = 0;
function say(state, result) {
  const broken = brokenLaws(result);
  const laws = broken.length ? `Broken: ${broken.join("; ")}.` : "All five laws hold.";
  const text = `The sink takes ${percent(result.alphaSink)}. The output is ${vector(result.out)}. ${laws}`;
  clearTimeout(resting);
  resting = setTimeout(() => {
    document.getElementById("said").textContent = text;
  }, 500);
}

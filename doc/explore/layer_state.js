// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is looked at of the recorded runs, its address, and the weights of a head by the compiled reference.
"use strict";
const RUNS = Object.fromEntries(window.exploreLayers.runs.map((run) => [run.name, run]));
const MISTAKES = Object.fromEntries(RUNS.tiny.mistakes.map((mistake) => [mistake.name, mistake]));
const START = Object.freeze({ run: "trained", layer: 12, head: 2, row: 8, mistake: "none" });

// The run that is shown; a mistake changes scores, values and sinks of the tiny one.
function shownRun(state) {
  const run = RUNS[state.run];
  return state.run === "tiny" && state.mistake !== "none" ? { ...run, ...MISTAKES[state.mistake] } : run;
}

// A state whose layer, head and row exist.
function fitted(state) {
  const run = RUNS[state.run];
  return {
    ...state,
    layer: Math.min(state.layer, run.score.length - 1),
    head: Math.min(state.head, run.score[0].length - 1),
    row: Math.min(state.row, run.words.length - 1),
    mistake: state.run === "tiny" ? state.mistake : "none",
  };
}

const toAddress = (state) => `#r=${state.run}&l=${state.layer}&h=${state.head}&q=${state.row}&m=${state.mistake}`;

function fromAddress(address) {
  const said = new URLSearchParams(address.replace(/^#/, "")),
    state = { ...START };
  const whole = (name, otherwise) => Math.max(0, Math.round(numberOf(said.get(name), 1e3) ?? otherwise));
  if (Object.hasOwn(RUNS, said.get("r"))) state.run = said.get("r");
  if (Object.hasOwn(MISTAKES, said.get("m"))) state.mistake = said.get("m");
  return fitted({ ...state, layer: whole("l", state.layer), head: whole("h", state.head), row: whole("q", state.row) });
}

// The scores of a row that its query sees, and the first key of them.
function seen(run, layer, head, row) {
  const scores = run.score[layer][head][row],
    first = scores.findIndex((s) => s !== null);
  return { first, score: scores.slice(first) };
}

// Weights of a head: for each query the sink's, null where there is no logit, and those of the keys; 0 for hidden keys.
const GONE = -1e4; // a sink whose exponential is zero beside any score
function weightsOf(row, run, layer, head) {
  const logit = run.sink ? run.sink[layer][head] : null;
  return run.words.map((_, i) => {
    const { first, score } = seen(run, layer, head, i);
    const made = row({
      policy: "real",
      form: "right",
      keys: score.length,
      window: score.length,
      sink: logit ?? GONE,
      bias: [0, 0],
      score,
      value: score.map(() => [0, 0]),
    });
    return {
      sink: run.sink ? made.alphaSink : null,
      key: [...Array(first).fill(0), ...made.alpha.slice(0, score.length)],
    };
  });
}

// What the sink takes of a row: its logit's weight, or that of the first token.
const shareOf = (weights) => weights.sink ?? weights.key[0];

// The row for the page of one row: its address, and what was done to it; or why it does not open.
function opened(state) {
  const run = shownRun(state),
    heads = run.score[0].length,
    { first, score } = seen(run, state.layer, state.head, state.row),
    values = run.value[state.layer][Math.floor((state.head * run.value[0].length) / heads)];
  const own = run.sink ? 0 : 1; // the first token is the sink
  const b = run.sink ? run.sink[state.layer][state.head] : score[0],
    keys = score.slice(own);
  if (b === null) return { why: "The sink is left out: that page has one in each row." };
  if (keys.length === 0) return { why: "The first token has no key before it." };
  if (keys.length > KEYS_SHOWN) return { why: `That page has room for ${KEYS_SHOWN} keys, this row has ${keys.length}.` };
  const most = Math.max(b, ...keys),
    shift = most > SCORE_MOST || Math.min(b, ...keys) < -SCORE_MOST ? most - SCORE_MOST : 0,
    inside = (s) => short(Math.max(s - shift, -SCORE_MOST)),
    cut = [b, ...keys].filter((s) => s - shift < -SCORE_MOST).length;
  const points = values.points.slice(first + own, first + own + keys.length);
  const notes = [
    run.sink ? "" : "The first token’s score is the sink there, with the value 0.",
    shift
      ? `${short(Math.abs(shift))} is ${shift > 0 ? "subtracted from" : "added to"} the scores and the sink, which changes no weight.`
      : "",
    cut ? `${cut} of them ${cut === 1 ? "is" : "are"} raised to −${SCORE_MOST}, to weights below e^−16.` : "",
    `Of the values it shows coordinates ${values.coordinates.join(" and ")}` +
      (values.divided === 1 ? "." : `, divided by ${values.divided}.`),
  ];
  return {
    address:
      `#p=real&f=right&w=${keys.length}&b=${inside(b)}&s=${keys.map(inside).join(",")}` +
      `&v=${points.map((v) => v.map(short).join(":")).join(",")}&c=0:0`,
    notes: notes.filter(Boolean).join(" "),
  };
}

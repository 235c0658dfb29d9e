// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Puts "One layer, replayed" together.
"use strict";
(async () => {
  const place = document.getElementById("explore"),
    row = await startEngine(window.exploreWasm),
    part = (id) => document.getElementById(id);
  let asked = 0,
    resting = 0;
  const steps = new Steps(fromAddress(location.hash), () => {
    asked ||= requestAnimationFrame(show);
  });
  const panels = {
    map: new MapPanel(part("map"), steps),
    heads: new HeadsPanel(part("heads"), steps),
    states: new StatesPanel(part("states")),
  };

  // The mean share of every head's sink over the queries after the first, once for a run.
  const kept = new Map();
  function sharesOf(state) {
    const key = `${state.run} ${state.mistake}`,
      run = shownRun(state);
    if (!kept.has(key))
      kept.set(
        key,
        run.score.map((heads, l) =>
          heads.map((_, h) => {
            const after = weightsOf(row, run, l, h).slice(1).map(shareOf);
            return after.reduce((a, b) => a + b, 0) / after.length;
          }),
        ),
      );
    return kept.get(key);
  }

  // What the sink's mean share would be if a row's weights were equal.
  function uniformOf(state, run) {
    const after = run.words.slice(1).map((_, i) => {
      const { score } = seen(run, state.layer, state.head, i + 1);
      return 1 / (score.length + (run.sink ? 1 : 0));
    });
    return after.reduce((a, b) => a + b, 0) / after.length;
  }

  function showRow(state, run, weights) {
    const own = weights[state.row],
      items = [];
    const add = (name, weight, kind) => {
      const dt = document.createElement("dt"),
        dd = document.createElement("dd");
      dt.className = `t-${kind}`;
      dt.textContent = name;
      dd.textContent = exact(weight);
      items.push(dt, dd);
    };
    if (own.sink !== null) add("sink", own.sink, "sink");
    own.key.forEach((weight, j) => {
      if (run.score[state.layer][state.head][state.row][j] !== null)
        add(`${j}: ${wordOf(run, j)}`, weight, own.sink === null && j === 0 ? "sink" : "weight");
    });
    part("row").replaceChildren(...items);
    const { address, notes, why } = opened(state);
    part("to-row").hidden = !address;
    if (address) part("to-row").href = `index.html${address}`;
    part("to-row-said").textContent = notes ?? why;
  }

  function showVerdict(state) {
    const mistake = MISTAKES[state.mistake];
    part("verdict-of").textContent =
      mistake === undefined
        ? "Nothing is planted: choose a mistake above."
        : `Planted in every layer: ${mistake.what}. The judge was given the trace and the model alone.`;
    part("verdict-text").textContent = mistake ? mistake.said : "";
    part("verdict-text").parentElement.hidden = !mistake;
  }

  function show() {
    asked = 0;
    const state = steps.now,
      run = shownRun(state),
      weights = weightsOf(row, run, state.layer, state.head),
      shares = sharesOf(state);
    panels.map.show(state, run, weights);
    panels.heads.show(state, shares, run.sink ? "The sink logit’s weight" : "The first token’s weight", uniformOf(state, run));
    panels.states.show(state, run);
    showRow(state, run, weights);
    showVerdict(state);
    for (const [name, count] of [
      ["layer", run.score.length],
      ["head", run.score[0].length],
    ]) {
      part(name).max = count - 1;
      part(name).value = state[name];
      part(`${name}-now`).textContent = `${state[name]} of 0 to ${count - 1}`;
    }
    for (const name of ["run", "mistake"])
      all(`input[name=${name}]`).forEach((input) => {
        input.checked = input.value === state[name];
      });
    part("undo").disabled = !steps.past.length;
    part("redo").disabled = !steps.future.length;
    clearTimeout(resting);
    resting = setTimeout(() => {
      part("said").textContent =
        `Layer ${state.layer}, head ${state.head}, query ${wordOf(run, state.row)}: the sink has ` +
        `${percent(shareOf(weights[state.row]))} of the weight.`;
    }, 500);
    place.dataset.ready = String(Number(place.dataset.ready ?? 0) + 1);
  }

  const actions = { undo: () => steps.undo(), redo: () => steps.redo(), again: () => steps.set({ ...START }) };
  for (const [id, act] of Object.entries(actions)) part(id).addEventListener("click", act);
  for (const name of ["run", "mistake"])
    all(`input[name=${name}]`).forEach((input) =>
      input.addEventListener("change", () => {
        const tiny = name === "mistake" && input.value !== "none" ? { run: "tiny" } : {};
        steps.set(fitted({ ...steps.now, ...tiny, [name]: input.value }));
      }),
    );
  for (const name of ["layer", "head"]) {
    part(name).addEventListener("input", () => steps.set({ [name]: Number(part(name).value) }, false));
    part(name).addEventListener("change", () => steps.keep());
  }
  steps.listen();
  show();
})();

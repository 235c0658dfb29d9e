// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Puts the backward page together.
"use strict";
(async () => {
  const compute = await startBackward(window.exploreWasm),
    place = document.getElementById("explore"),
    part = (id) => document.getElementById(id);
  let asked = 0,
    resting = 0;
  const steps = new Steps(fromAddress(location.hash), () => {
    asked ||= requestAnimationFrame(show);
  });
  const panels = [
    new ScorePanel(part("scores"), steps),
    new GradientPanel(part("gradients")),
    new LossPanel(part("loss")),
    new PullPanel(part("arrows"), steps),
  ];

  function showRows(state, result) {
    const rows = Array.from({ length: state.keys }, (_, j) =>
      [`${j + 1}`, result.alpha[j], result.dAlpha[j], result.dScore[j], vector(result.dValue[j])],
    );
    rows.push(["sink", result.alphaSink, 0, result.dSink, "none"]);
    part("rows").replaceChildren(
      ...rows.map((row, k) => {
        const line = document.createElement("tr");
        row.forEach((what, at) => {
          const cell = document.createElement(at === 0 ? "th" : "td");
          if (at === 0) cell.scope = "row";
          if (k === state.keys) cell.className = "t-sink";
          cell.textContent = typeof what === "number" ? exact(what) : what;
          line.append(cell);
        });
        return line;
      }),
    );
    // The right numbers, and those of the wrong form beside them.
    const delta = result.dAlpha.reduce((sum, dAlpha, j) => sum + result.alpha[j] * dAlpha, 0),
      sink = result.alphaSink * (state.dLse - delta),
      beside = (right, got) => exact(right) + (state.form === "right" ? "" : `; the wrong form has ${exact(got)}`);
    part("live-delta").textContent = beside(delta, result.delta);
    part("live-sink").textContent = beside(sink, result.dSink);
    part("live-loss").textContent = `${exact(result.loss)}, with o = ${vector(result.out)} and LSE⁺ = ${exact(result.lse)}`;
  }

  function show() {
    asked = 0;
    const state = steps.now,
      result = compute(state);
    panels.forEach((panel) => panel.show(state, result));
    all("input[name=form]").forEach((input) => {
      input.checked = input.value === state.form;
    });
    part("lse").value = state.dLse;
    part("lse-now").textContent = said(state.dLse);
    part("undo").disabled = !steps.past.length;
    part("redo").disabled = !steps.future.length;
    part("glance").textContent = `db ${said(result.dSink, 4)}`;
    showRows(state, result);
    showLaws(result);
    showCode(state.acting);
    part("to-row").href = `index.html#p=real&f=right&${rowToAddress(state)}&c=0:0`;
    clearTimeout(resting);
    const broken = brokenLaws(result);
    resting = setTimeout(() => {
      part("said").textContent =
        `The gradient of the sink's logit is ${said(result.dSink, 4)}. ` +
        (broken.length ? `Broken: ${broken.join("; ")}.` : "All four laws hold.");
    }, 500);
    place.dataset.ready = String(Number(place.dataset.ready ?? 0) + 1);
  }

  const actions = { undo: () => steps.undo(), redo: () => steps.redo(), again: () => steps.set(copyOf(START)) };
  for (const [id, act] of Object.entries(actions)) part(id).addEventListener("click", act);
  all("input[name=form]").forEach((input) =>
    input.addEventListener("change", () => steps.set({ form: input.value, acting: null })),
  );
  part("lse").addEventListener("input", () => steps.set({ dLse: Number(part("lse").value), acting: "lse" }, false));
  part("lse").addEventListener("change", () => steps.keep());
  listenToStrip();
  steps.listen();
  show();
})();

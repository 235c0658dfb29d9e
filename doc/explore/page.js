// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Puts the page together: every change computes the row anew and shows it once a frame.
"use strict";
(async () => {
  const place = document.getElementById("explore"),
    compute = await startEngine(window.exploreWasm);
  const panels = [],
    drawing = (id) => document.getElementById(id);
  let asked = 0;
  const steps = new Steps(fromAddress(location.hash), () => {
    asked ||= requestAnimationFrame(show);
  });

  function show() {
    asked = 0;
    const state = steps.now,
      result = compute(state);
    panels.forEach((panel) => panel.show(state, result));
    for (const name of ["policy", "form"])
      all(`input[name=${name}]`).forEach((input) => {
        input.checked = input.value === state[name];
      });
    all("[data-form]").forEach((text) => {
      text.hidden = text.dataset.form !== state.form;
    });
    drawing("undo").disabled = !steps.past.length;
    drawing("redo").disabled = !steps.future.length;
    drawing("fewer").disabled = state.keys === 1;
    drawing("more").disabled = state.keys === KEYS_SHOWN;
    drawing("keys").textContent = `${state.keys} ${state.keys === 1 ? "key" : "keys"}`;
    drawing("left-of-bias").textContent = percent(result.alpha.reduce((sum, a) => sum + a, 0));
    showFormula(state, result);
    drawing("glance").textContent = `sink ${percent(result.alphaSink)}`;
    showLaws(result);
    showCode(state.acting);
    showMission(state, result);
    say(state, result);
    place.dataset.ready = String(Number(place.dataset.ready ?? 0) + 1);
  }

  const number = (change) => {
    const { keys, window } = steps.now,
      after = clamp(keys + change, 1, KEYS_SHOWN);
    steps.set({ keys: after, window: window === keys ? after : Math.min(window, after), acting: "window" });
  };
  const actions = {
    undo: () => steps.undo(),
    redo: () => steps.redo(),
    fewer: () => number(-1),
    more: () => number(1),
    again: () => steps.set(steps.now.mission ? startOf(steps.now.mission) : { ...copyOf(START), acting: null }),
  };
  for (const [id, act] of Object.entries(actions)) drawing(id).addEventListener("click", act);
  all("input[name=policy], input[name=form]").forEach((input) =>
    input.addEventListener("change", () => steps.set({ [input.name]: input.value, acting: null })),
  );
  all(".missions button").forEach((button, k) =>
    button.addEventListener("click", () => {
      const ends = steps.now.mission === k + 1;
      steps.set(ends ? { mission: 0 } : { ...startOf(k + 1), acting: null });
      if (!ends) drawing("scores").scrollIntoView({ block: "center" });
    }),
  );
  listenToStrip();
  steps.listen();

  panels.push(
    new ScorePanel(drawing("scores"), steps),
    new SharePanel(drawing("share")),
    new ArrowPanel(drawing("arrows"), steps),
  );
  show();
})();

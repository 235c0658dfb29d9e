// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The scores as bars, the sink's logit beside them, the window's edge.
"use strict";
class ScorePanel {
  constructor(svg, steps) {
    Object.assign(this, { svg, steps });
    this.remade = -1;
  }

  // A bar for each key and one for the sink; made again when their number changes.
  make(keys) {
    this.svg.replaceChildren();
    this.remade = keys;
    const slots = keys + 1.4,
      width = 318 / slots; // the sink stands a little apart
    this.left = (j) => 34 + width * j;
    this.width = width;
    for (const level of [-8, -4, 0, 4, 8]) {
      this.svg.append(
        shape("line", {
          class: level ? "grid" : "axis",
          x1: 30,
          x2: 354,
          y1: this.height(level),
          y2: this.height(level),
        }),
        shape("text", { class: "tick", x: 26, y: this.height(level) + 4, "text-anchor": "end" }, said(level, 0)),
      );
    }
    this.shade = shape("rect", { class: "unseen", x: 34, y: 34, height: 226, width: 0 });
    this.svg.append(this.shade);
    this.bars = Array.from({ length: keys + 1 }, (_, j) => this.bar(j, keys));
    this.edgeLine = shape("line", { class: "edge", y1: 22, y2: 264 });
    this.svg.append(this.edgeLine);
    this.edge = this.makeEdge(keys);
  }

  height(score) {
    return 147 - score * 13;
  }
  scoreAt(y) {
    return onGrid(clamp((147 - y) / 13, -SCORE_MOST, SCORE_MOST), FINE);
  }
  centre(j, keys) {
    return this.left(j < keys ? j : j + 0.4) + this.width / 2;
  }

  bar(j, keys) {
    const sink = j === keys,
      x = this.centre(j, keys),
      thick = Math.min(24, this.width * 0.62);
    const rect = shape("rect", { class: sink ? "bar sink" : "bar key", x: x - thick / 2, width: thick, rx: 2 });
    const number = shape("text", { class: "number", x, "text-anchor": "middle" });
    this.svg.append(
      rect,
      number,
      shape(
        "text",
        { class: sink ? "name sink" : "name", x, y: 282, "text-anchor": "middle" },
        sink ? "sink b" : `s${"₁₂₃₄₅₆₇₈"[j]}`,
      ),
    );
    const set = (score, keep) => {
      if (sink) return this.steps.set({ sink: score, acting: "sink" }, keep);
      const scores = [...this.steps.now.score];
      scores[j] = score;
      return this.steps.set({ score: scores, acting: "score", chosen: j }, keep);
    };
    const now = () => (sink ? this.steps.now.sink : this.steps.now.score[j]);
    const grip = handle(this.svg, {
      label: sink ? "Logit b of the sink" : `Score of key ${j + 1}`,
      least: -SCORE_MOST,
      most: SCORE_MOST,
      dragged: (_, y) => set(this.scoreAt(y), false),
      ended: () => this.steps.keep(),
      keyed: (dx, dy) => set(clamp(now() + dx + dy, -SCORE_MOST, SCORE_MOST), false),
      end: (way) => set(way * SCORE_MOST, false),
    });
    grip.group.classList.add(sink ? "of-sink" : "of-key");
    return { rect, number, grip, x };
  }

  makeEdge(keys) {
    const set = (window) => this.steps.set({ window: clamp(Math.round(window), 1, keys), acting: "window" }, false);
    const edge = handle(this.svg, {
      label: "Keys that the window shows",
      least: 1,
      most: keys,
      dragged: (x) => set(keys - (x - this.left(0)) / this.width),
      ended: () => this.steps.keep(),
      // Left widens the window, right narrows it, as the edge moves; up is more.
      keyed: (dx, dy) => set(this.steps.now.window - Math.sign(dx) + Math.sign(dy)),
      end: (way) => set(way < 0 ? 1 : keys),
    });
    edge.group.classList.add("of-window");
    edge.group.setAttribute("aria-orientation", "horizontal");
    return edge;
  }

  show(state, result) {
    if (this.remade !== state.keys) this.make(state.keys);
    this.bars.forEach(({ rect, number, grip, x }, j) => {
      const sink = j === state.keys,
        score = sink ? state.sink : state.score[j],
        y = this.height(score),
        zero = this.height(0);
      const seen = sink || j >= result.first,
        rounded = sink ? result.sink : result.score[j];
      put(rect, { y: Math.min(y, zero), height: Math.max(1, Math.abs(y - zero)) });
      rect.classList.toggle("out", !seen);
      put(number, { y: score < 0 ? y + 26 : y - 14 });
      number.textContent = said(score);
      const weight = sink ? result.alphaSink : result.alpha[j];
      const also = rounded === score ? "" : `, rounded to ${said(rounded, 4)}`;
      grip.show(x, y, score, `${said(score)}${also}, weight ${percent(weight)}${seen ? "" : ", outside the window"}`);
    });
    const at = this.left(state.keys - state.window);
    put(this.edgeLine, { x1: at, x2: at });
    put(this.shade, { width: at - 34 });
    this.edge.show(at, 18, state.window, `${state.window} of ${state.keys} keys are seen`);
  }
}

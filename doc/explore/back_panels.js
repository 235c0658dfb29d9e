// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The panels of the backward page: the gradients as bars, the loss over the sink's logit with its tangent, the values
// with what the loss has at the output.
"use strict";
class GradientPanel {
  constructor(svg) {
    this.svg = svg;
  }

  // A bar for each score and one for b, to a scale that fits the largest.
  show(state, result) {
    const slopes = [...result.dScore.slice(0, state.keys), result.dSink],
      most = Math.max(0.01, ...slopes.map(Math.abs)),
      top = 2 ** Math.ceil(Math.log2(most)),
      y = (slope) => 147 - (slope * 104) / top,
      width = 304 / (state.keys + 1.4);
    const parts = [-1, -0.5, 0, 0.5, 1].flatMap((level) => [
      shape("line", { class: level ? "grid" : "axis", x1: 46, x2: 354, y1: y(level * top), y2: y(level * top) }),
      shape("text", { class: "tick", x: 42, y: y(level * top) + 4, "text-anchor": "end" }, short(level * top).replace("-", "−")),
    ]);
    slopes.forEach((slope, j) => {
      const sink = j === state.keys,
        x = 48 + width * (sink ? j + 0.4 : j) + width / 2,
        thick = Math.min(24, width * 0.62);
      parts.push(
        shape("rect", {
          class: sink ? "bar sink" : "bar key",
          x: x - thick / 2,
          width: thick,
          rx: 2,
          y: Math.min(y(slope), 147),
          height: Math.max(1, Math.abs(y(slope) - 147)),
        }),
        shape("text", { class: "number", x, y: y(slope) + (slope < 0 ? 16 : -6), "text-anchor": "middle" }, said(slope)),
        shape("text", { class: sink ? "name sink" : "name", x, y: 282, "text-anchor": "middle" }, sink ? "db" : `ds${"₁₂₃₄₅₆₇₈"[j]}`),
      );
    });
    this.svg.replaceChildren(...parts);
  }
}

class LossPanel {
  constructor(svg) {
    this.svg = svg;
  }

  // The curve of 65 logits that the reference computed, this row's point, and the line with the slope db through it.
  show(state, result) {
    const least = Math.min(...result.curve, result.loss),
      most = Math.max(...result.curve, result.loss),
      span = Math.max(most - least, 0.1),
      x = (b) => 46 + (b + 8) * 19,
      y = (loss) => 250 - (220 * (loss - least)) / span;
    const points = result.curve.map((loss, k) => `${x(-8 + k / 4).toFixed(2)} ${y(loss).toFixed(2)}`).join(" L");
    // The tangent inside the drawing.
    const slope = (result.dSink * 220) / span / 19,
      reach = 70 / Math.hypot(1, slope),
      px = x(state.sink),
      py = y(result.loss);
    this.svg.replaceChildren(
      shape("line", { class: "axis", x1: 46, x2: 350, y1: 258, y2: 258 }),
      ...[-8, -4, 0, 4, 8].map((b) => shape("text", { class: "tick", x: x(b), y: 274, "text-anchor": "middle" }, said(b, 0))),
      shape("text", { class: "name", x: 350, y: 292, "text-anchor": "end" }, "logit b of the sink"),
      shape("text", { class: "tick", x: 42, y: 34, "text-anchor": "end" }, said(most)),
      shape("text", { class: "tick", x: 42, y: 254, "text-anchor": "end" }, said(least)),
      shape("text", { class: "name", x: 46, y: 18 }, `L = ${said(result.loss, 4)}, slope db = ${said(result.dSink, 4)}`),
      shape("path", { class: "curve", d: `M${points}` }),
      shape("line", {
        class: `tangent${result.law.slope.holds ? "" : " broken"}`,
        x1: px - reach,
        y1: py + reach * slope,
        x2: px + reach,
        y2: py - reach * slope,
      }),
      shape("circle", { class: "point", r: 7, cx: px, cy: py }),
    );
  }
}

class PullPanel extends ArrowPanel {
  constructor(svg, steps) {
    super(svg, steps);
    this.last = { member: "dOut", letter: "d", label: "dO, what the loss has at the output" };
    this.lacking = "";
  }
  make(keys) {
    super.make(keys);
    for (const line of [this.left, this.tokens, this.added]) line.remove(); // they are the bias's
  }
  showLast() {
    return "";
  }
}

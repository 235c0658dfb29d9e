// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The unit of attention as one bar, the sink's share as its hole; the sigmoid of b - LSE with this row's point.
"use strict";
class SharePanel {
  constructor(svg) {
    this.svg = svg;
    this.parts = shape("g");
    this.words = shape("text", { class: "number", x: 180, y: 100, "text-anchor": "middle" });
    svg.append(shape("text", { class: "name", x: 20, y: 22 }, "one unit of attention"), this.parts, this.words);
    this.curve();
  }

  x(difference) {
    return 36 + (clamp(difference, -8, 8) + 8) * 19.5;
  }
  y(share) {
    return 262 - share * 132;
  }

  curve() {
    const at = (d) => `${this.x(d).toFixed(2)} ${this.y(1 / (1 + Math.exp(-d))).toFixed(2)}`;
    const line = Array.from({ length: 65 }, (_, k) => at(-8 + k / 4)).join(" L");
    for (const share of [0, 0.5, 1])
      this.svg.append(
        shape("line", { class: share ? "grid" : "axis", x1: 36, x2: 348, y1: this.y(share), y2: this.y(share) }),
        shape("text", { class: "tick", x: 32, y: this.y(share) + 4, "text-anchor": "end" }, String(share)),
      );
    for (const d of [-8, -4, 0, 4, 8])
      this.svg.append(shape("text", { class: "tick", x: this.x(d), y: 277, "text-anchor": "middle" }, said(d, 0)));
    this.svg.append(
      shape("text", { class: "name", x: 36, y: 122 }, "αₛ = σ(b − LSE)"),
      shape("text", { class: "name", x: 348, y: 294, "text-anchor": "end" }, "b − LSE of the keys seen"),
      shape("path", { class: "curve", d: `M${line}` }),
    );
    this.drop = shape("line", { class: "drop", y2: this.y(0) });
    this.point = shape("circle", { class: "point", r: 7 });
    this.off = shape("text", { class: "warning" });
    this.svg.append(this.drop, this.point, this.off);
  }

  show(state, result) {
    this.parts.replaceChildren();
    let at = 20;
    const cell = (share, name, kind) => {
      const width = 320 * share;
      if (!(width > 0)) return;
      this.parts.append(shape("rect", { class: `part ${kind}`, x: at, y: 34, width, height: 44 }));
      if (width > 17)
        this.parts.append(
          shape("text", { class: `in ${kind}`, x: at + width / 2, y: 61, "text-anchor": "middle" }, name),
        );
      at += width;
    };
    for (let j = result.first; j < state.keys; j++) cell(result.alpha[j], String(j + 1), j % 2 ? "odd" : "even");
    cell(result.alphaSink, "sink", "hole");
    this.parts.append(shape("rect", { class: "unit", x: 20, y: 34, width: 320, height: 44 }));
    const mass = result.alpha.reduce((sum, a) => sum + a, 0);
    this.words.textContent = `keys ${percent(mass)}    sink ${percent(result.alphaSink)}`;
    const x = this.x(result.sink - result.lse),
      y = this.y(clamp(result.alphaSink, 0, 1)),
      broken = !result.law.gate.holds;
    put(this.drop, { x1: x, x2: x, y1: y });
    put(this.point, { cx: x, cy: y });
    this.point.classList.toggle("broken", broken && Math.abs(y - this.y(1 - result.gate)) > 1);
    // Above the curve there is room to the left, below it to the right.
    const above = result.alphaSink > 1 - result.gate,
      atEnd = above ? x > 130 : x > 250;
    put(this.off, {
      x: atEnd ? x - 12 : x + 12,
      y: above ? y + 4 : Math.min(y + 4, 255),
      "text-anchor": atEnd ? "end" : "start",
    });
    this.off.textContent = this.point.classList.contains("broken") ? "off the curve" : "";
  }
}

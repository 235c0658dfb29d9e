// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The terms as bars, and the line on which truth, honest set and sums lie.
"use strict";
class TermPanel {
  constructor(svg, steps) {
    Object.assign(this, { svg, steps });
    this.remade = -1;
  }

  y(term) {
    return 147 - term * 13;
  }

  make(count) {
    this.svg.replaceChildren();
    this.remade = count;
    const width = 322 / count;
    for (const level of [-8, -4, 0, 4, 8]) {
      this.svg.append(
        shape("line", { class: level ? "grid" : "axis", x1: 30, x2: 354, y1: this.y(level), y2: this.y(level) }),
        shape("text", { class: "tick", x: 26, y: this.y(level) + 4, "text-anchor": "end" }, said(level, 0)),
      );
    }
    this.bars = Array.from({ length: count }, (_, k) => {
      const x = 32 + width * (k + 0.5),
        thick = Math.min(22, width * 0.6);
      const rect = this.svg.appendChild(shape("rect", { class: "bar key", x: x - thick / 2, width: thick, rx: 2 }));
      this.svg.append(shape("text", { class: "tick", x, y: 276, "text-anchor": "middle" }, String(k + 1)));
      const set = (term) => {
        const terms = [...this.steps.now.term];
        terms[k] = clamp(term, -TERM_MOST, TERM_MOST);
        this.steps.set({ term: terms }, false);
      };
      const grip = handle(this.svg, {
        label: `Term ${k + 1}`,
        least: -TERM_MOST,
        most: TERM_MOST,
        reach: Math.min(17, width / 2),
        dragged: (_x, y) => set(onGrid((147 - y) / 13, FINE)),
        keyed: (dx, dy) => set(this.steps.now.term[k] + dx + dy),
        end: (way) => set(way * TERM_MOST),
        ended: () => this.steps.keep(),
      });
      grip.group.classList.add("of-key");
      return { rect, grip, x };
    });
  }

  show(state, sum) {
    if (this.remade !== state.term.length) this.make(state.term.length);
    this.bars.forEach(({ rect, grip, x }, k) => {
      const y = this.y(state.term[k]),
        zero = this.y(0);
      put(rect, { y: Math.min(y, zero), height: Math.max(1, Math.abs(y - zero)) });
      grip.show(x, y, state.term[k], `${said(state.term[k])}; with its last bits ${exact(sum.term[k])}`);
    });
  }
}

// Distances from the truth, which is in the middle.
class SetPanel {
  constructor(svg) {
    this.svg = svg;
  }

  show(state, sum) {
    // Beyond three bounds a sum stands at the edge.
    const half = Math.max(Math.min(Math.abs(sum.got - sum.truth), 3 * sum.any), sum.any, sum.ulp / 2) * 1.15;
    const x = (number) => 180 + clamp((number - sum.truth) / half, -1, 1) * 160;
    const band = (bound, kind, y, height) =>
      shape("rect", {
        class: kind,
        x: x(sum.truth - bound),
        width: x(sum.truth + bound) - x(sum.truth - bound),
        y,
        height,
      });
    this.svg.replaceChildren(band(sum.any, "set any", 60, 150), band(sum.thisOrder, "set this", 60, 150));
    // The numbers of the format, where they can be told apart.
    const step = (160 / half) * sum.ulp;
    if (step >= 5)
      for (let number = sum.nearest, k = 0; k <= 160 / step + 1; k++)
        for (const at of k ? [number - k * sum.ulp, number + k * sum.ulp] : [number])
          if (Math.abs(at - sum.truth) <= half)
            this.svg.append(shape("line", { class: "grid", x1: x(at), x2: x(at), y1: 200, y2: 210 }));
    this.svg.append(
      shape("line", { class: "axis", x1: 14, x2: 346, y1: 210, y2: 210 }),
      shape("line", { class: "truth", x1: 180, x2: 180, y1: 46, y2: 216 }),
      shape("text", { class: "name", x: 180, y: 234, "text-anchor": "middle" }, "the exact sum"),
    );
    const heights = new Map();
    for (const number of sum.shuffled) {
      const count = (heights.get(number) ?? 0) + 1;
      heights.set(number, count);
    }
    const most = Math.max(...heights.values());
    for (const [number, count] of heights)
      this.svg.append(
        shape("line", { class: "shuffled", x1: x(number), x2: x(number), y1: 198, y2: 198 - (90 * count) / most }),
      );
    sum.order.forEach((number, k) =>
      this.svg.append(
        shape("circle", { class: "order", cx: x(number), cy: 100, r: k === ORDERS.indexOf(state.order) ? 0 : 3 }),
      ),
    );
    const outside = !(Math.abs(sum.got - sum.truth) <= sum.any),
      far = Math.abs(sum.got - sum.truth) > half,
      at = x(sum.got);
    this.svg.append(
      shape("circle", { class: outside ? "got broken" : "got", cx: at, cy: 82, r: 7 }),
      shape(
        "text",
        { class: outside ? "name warning" : "name out", x: clamp(at, 70, 290), y: 30, "text-anchor": "middle" },
        far ? `${said(Math.abs(sum.got - sum.truth) / sum.any, 1)} bounds away` : outside ? "outside" : "computed",
      ),
      shape("line", { class: "drop", x1: at, x2: at, y1: 36, y2: 74 }),
      shape(
        "text",
        { class: "tick", x: x(sum.truth - sum.any), y: 252, "text-anchor": "middle" },
        `−${small(sum.any)}`,
      ),
      shape(
        "text",
        { class: "tick", x: x(sum.truth + sum.any), y: 252, "text-anchor": "middle" },
        `+${small(sum.any)}`,
      ),
      shape(
        "text",
        { class: "tick", x: 180, y: 276, "text-anchor": "middle" },
        "shaded: the honest set, any order; darker: this order",
      ),
    );
  }
}

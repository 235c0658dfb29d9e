// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The values as arrows, their weighted sum, and the value bias, of which the sink leaves the part 1 - alpha_s.
"use strict";
class ArrowPanel {
  constructor(svg, steps) {
    Object.assign(this, { svg, steps });
    this.remade = -1;
    // The last handle: a member of the state.
    this.last = { member: "bias", letter: "c", label: "Value bias" };
    this.lacking = ", without the bias";
  }

  x(a) {
    return 180 + a * 46;
  }
  y(a) {
    return 150 - a * 46;
  }
  at(x, y) {
    const one = (a) => onGrid(clamp(a, -VALUE_MOST, VALUE_MOST), FINE);
    return [one((x - 180) / 46), one((150 - y) / 46)];
  }

  make(keys) {
    this.svg.replaceChildren();
    this.remade = keys;
    for (let a = -3; a <= 3; a++)
      this.svg.append(
        shape("line", { class: a ? "grid" : "axis", x1: this.x(a), x2: this.x(a), y1: this.y(-3), y2: this.y(3) }),
        shape("line", { class: a ? "grid" : "axis", y1: this.y(a), y2: this.y(a), x1: this.x(-3), x2: this.x(3) }),
      );
    this.lines = Array.from({ length: keys }, () => this.svg.appendChild(shape("line", { class: "arrow key" })));
    this.full = this.svg.appendChild(shape("line", { class: "arrow bias full" }));
    this.left = this.svg.appendChild(shape("line", { class: "arrow bias" }));
    this.tokens = this.svg.appendChild(shape("line", { class: "arrow tokens" }));
    this.added = this.svg.appendChild(shape("line", { class: "arrow bias added" }));
    this.out = this.svg.appendChild(shape("line", { class: "arrow out" }));
    this.tip = this.svg.appendChild(shape("circle", { class: "tip out", r: 5 }));
    this.outName = this.svg.appendChild(shape("text", { class: "name out" }, "o"));
    this.grips = Array.from({ length: keys + 1 }, (_, j) => this.grip(j, keys));
  }

  grip(j, keys) {
    const last = j === keys,
      { member, letter, label } = this.last;
    const now = () => (last ? this.steps.now[member] : this.steps.now.value[j]);
    const set = (place) => {
      if (last) return this.steps.set({ [member]: place, acting: member }, false);
      const values = copyOf(this.steps.now.value);
      values[j] = place;
      return this.steps.set({ value: values, acting: "value", chosen: j }, false);
    };
    const moved = (dx, dy) => now().map((a, d) => clamp(a + [dx, dy][d], -VALUE_MOST, VALUE_MOST));
    const made = handle(this.svg, {
      label: last ? label : `Value of key ${j + 1}${this.lacking}`,
      least: 0,
      most: 4.2427,
      plane: true,
      dragged: (x, y) => set(this.at(x, y)),
      keyed: (dx, dy) => set(moved(dx, dy)),
      end: (way) => set(way < 0 ? [0, 0] : now()),
      ended: () => this.steps.keep(),
    });
    made.group.classList.add(last ? "of-bias" : "of-key");
    made.group.append(
      shape("text", { class: "in grip-name", y: 4, "text-anchor": "middle" }, last ? letter : String(j + 1)),
    );
    return made;
  }

  line(element, from, to) {
    put(element, { x1: this.x(from[0]), y1: this.y(from[1]), x2: this.x(to[0]), y2: this.y(to[1]) });
  }

  show(state, result) {
    if (this.remade !== state.keys) this.make(state.keys);
    const origin = [0, 0];
    state.value.slice(0, state.keys).forEach((v, j) => {
      this.line(this.lines[j], origin, v);
      this.lines[j].style.opacity = 0.25 + 0.75 * Math.min(1, result.alpha[j]);
      this.lines[j].style.strokeWidth = 1.5 + 5 * Math.min(1, result.alpha[j]);
      this.grips[j].show(
        this.x(v[0]),
        this.y(v[1]),
        Math.hypot(...v),
        `${vector(v)}, weight ${percent(result.alpha[j])}`,
      );
      this.grips[j].group.classList.toggle("out", j < result.first);
    });
    this.line(this.out, origin, result.out);
    put(this.tip, { cx: this.x(result.out[0]), cy: this.y(result.out[1]) });
    put(this.outName, { x: this.x(result.out[0]) + 10, y: this.y(result.out[1]) - 8 });
    const place = state[this.last.member];
    this.line(this.full, origin, place);
    this.grips[state.keys].show(
      this.x(place[0]),
      this.y(place[1]),
      Math.hypot(...place),
      `${vector(place)}${this.showLast(state, result)}`,
    );
  }

  // What the sink leaves of the bias; what is said of it.
  showLast(state, result) {
    const mass = result.alpha.reduce((sum, a) => sum + a, 0),
      left = state.bias.map((a) => a * mass);
    const tokens = [0, 1].map((d) =>
      state.value.slice(0, state.keys).reduce((sum, v, j) => sum + result.alpha[j] * v[d], 0),
    );
    this.line(this.left, [0, 0], left);
    this.line(this.tokens, [0, 0], tokens);
    this.line(this.added, tokens, [tokens[0] + left[0], tokens[1] + left[1]]);
    return `, of which ${percent(mass)} is left`;
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the pages share: every step is kept for undoing, and stands in the address, so that a link shows the same. Each
// page has its own toAddress and fromAddress.
"use strict";
const copyOf = (state) => structuredClone(state);
const clamp = (x, least, most) => Math.min(most, Math.max(least, x));
const onGrid = (x, step) => Math.round(x / step) * step;
const short = (x) => String(Number(x.toFixed(4)));

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// In a slide the drawings come first.
document.body.classList.toggle("framed", window.parent !== window);

// A number of an address, or null.
function numberOf(text, most) {
  const x = text?.trim() ? Number(text) : NaN;
  return Number.isFinite(x) ? clamp(x, -most, most) : null;
}

// The steps: `set` shows a state, `keep` ends a step. A drag is one step.
class Steps {
  constructor(state, shown) {
    this.now = state;
    this.shown = shown;
    this.past = [];
    this.future = [];
    this.kept = toAddress(state);
  }
  set(change, keep = true) {
    this.now = { ...copyOf(this.now), ...change };
    if (keep) this.keep();
    this.shown(this.now);
  }
  keep() {
    const address = toAddress(this.now);
    if (address === this.kept) return;
    this.past.push(this.kept);
    this.future = [];
    this.kept = address;
    history.replaceState(null, "", address);
  }
  move(from, to) {
    if (!from.length) return;
    to.push(this.kept);
    this.kept = from.pop();
    this.now = fromAddress(this.kept);
    history.replaceState(null, "", this.kept);
    this.shown(this.now);
  }
  undo() {
    this.move(this.past, this.future);
  }
  redo() {
    this.move(this.future, this.past);
  }
  // Control and Z or Y, and an address that is typed.
  listen() {
    document.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.target.matches("input[type=search]")) return;
      const key = event.key.toLowerCase(),
        redo = key === "y" || (key === "z" && event.shiftKey);
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      if (redo) this.redo();
      else this.undo();
    });
    addEventListener("hashchange", () => {
      if (location.hash !== this.kept) this.set(fromAddress(location.hash));
    });
  }
}

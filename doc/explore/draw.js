// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shapes of SVG, and handles: what a mouse, a finger and the arrow keys move.
"use strict";
const FINE = 1 / 16,
  STEP = 1 / 4,
  LARGE = 1;

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  put(made, attributes);
  made.append(...children);
  return made;
}
function put(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
// Two decimals with a true minus sign.
const said = (x, digits = 2) =>
  x
    .toFixed(digits)
    .replace(/^-(?=0(\.0*)?$)/, "")
    .replace("-", "−");
const percent = (x) => `${(100 * x).toFixed(1)} %`;
const vector = ([x, y]) => `(${said(x)}, ${said(y)})`;
const exact = (x) => (Number.isFinite(x) ? (x === 0 ? "0" : x.toPrecision(7)).replaceAll("-", "−") : String(x));
const small = (x) => (x === 0 ? "0" : x.toExponential(1).replaceAll("-", "−"));

// Where a pointer is, in the units of the drawing.
function pointIn(svg, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [at.x, at.y];
}

// A place that can be moved. `dragged(x, y)` gets a place of the drawing, `keyed(dx, dy)` a step of the keys in units
// of the number; `ended` ends a step. `end(direction)` is what Home and End do.
function handle(svg, { label, least, most, dragged, keyed, end, ended, plane, reach = 17 }) {
  const group = shape("g", {
    class: "handle",
    tabindex: "0",
    role: "slider",
    "aria-label": label,
    "aria-valuemin": least,
    "aria-valuemax": most,
  });
  if (plane) group.setAttribute("aria-roledescription", "point in a plane");
  else group.setAttribute("aria-orientation", "vertical");
  group.append(
    shape("circle", { class: "reach", r: reach }),
    shape("circle", { class: "grip", r: Math.min(8, reach / 1.7) }),
  );
  let held = null;
  group.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = event.pointerId;
    group.setPointerCapture(held);
    group.classList.add("held");
    group.focus();
    event.preventDefault();
  });
  // A finger on a handle moves it; elsewhere it scrolls the page.
  group.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  group.addEventListener("pointermove", (event) => {
    if (event.pointerId === held) dragged(...pointIn(svg, event));
  });
  for (const name of ["pointerup", "pointercancel"]) {
    group.addEventListener(name, (event) => {
      if (event.pointerId !== held) return;
      held = null;
      group.classList.remove("held");
      ended();
    });
  }
  group.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const size = event.shiftKey ? FINE : STEP;
    const steps = {
      ArrowUp: [0, size],
      ArrowDown: [0, -size],
      ArrowRight: [size, 0],
      ArrowLeft: [-size, 0],
      PageUp: [0, LARGE],
      PageDown: [0, -LARGE],
    };
    if (steps[event.key]) keyed(...steps[event.key]);
    else if (event.key === "Home" || event.key === "End") end(event.key === "Home" ? -1 : 1);
    else return;
    event.preventDefault();
    ended();
  });
  svg.append(group);
  return {
    group,
    show(x, y, now, text) {
      put(group, {
        transform: `translate(${x.toFixed(2)} ${y.toFixed(2)})`,
        "aria-valuenow": String(Number(now.toFixed(4))),
        "aria-valuetext": text,
      });
    },
  };
}

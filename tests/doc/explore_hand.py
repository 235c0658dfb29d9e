# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A page that computes as a hand and a keyboard meet it, for explore_page.py."""

import json
import pathlib

STATE = """(() => {
  const text = (id) => document.getElementById(id)?.textContent;
  const all = (selector, read) => [...document.querySelectorAll(selector)].map(read);
  return {
    hash: location.hash,
    broken: all(".law.broken", (e) => e.id.slice(4)),
    glance: all(".strip .broken", (e) => e.dataset.law),
    verdict: text("verdict"),
    sliders: all("[role=slider]", (e) => [e.ariaLabel, +e.ariaValueNow, e.ariaValueText]),
    solved: all(".missions .solved", () => 1).length,
    acting: all(".code .acting", () => 1).length,
    live: text("live-sink"),
    mass: text("live-mass"),
  };
})()"""
READY = """new Promise((done) => {
  const look = () => (document.getElementById("explore").dataset.ready ? done(1) : setTimeout(look, 20));
  look();
})"""
ACCESS = pathlib.Path(__file__).with_name("explore_access.js")


class Page:
    """The page, as a hand and a keyboard meet it."""

    def __init__(self, engine, file):
        self.engine, self.file = engine, file

    def open(self, address=""):
        self.engine.open("about:blank")
        wrong, asked = self.engine.open(self.file.as_uri() + address)
        self.value(READY)
        inside = self.file.parents[1].as_uri() + "/"
        return wrong + [f"asks for {url[:80]}" for url in asked if not url.startswith((inside, "data:", "about:"))]

    def value(self, expression):
        return self.engine.value(expression)

    def state(self):
        """After the frame that shows the last change."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return self.value(STATE)

    def place(self, selector, number=0):
        return self.value(f"""(() => {{
          const e = document.querySelectorAll({json.dumps(selector)})[{number}];
          e.scrollIntoView({{ block: "center", behavior: "instant" }});
          const b = (e.querySelector(".grip") ?? e).getBoundingClientRect();
          return [b.left + b.width / 2, b.top + b.height / 2];
        }})()""")

    def mouse(self, kind, x, y, buttons=1):
        self.engine.call(
            "Input.dispatchMouseEvent",
            {"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1},
        )

    def drag(self, selector, number, dx, dy):
        x, y = self.place(selector, number)
        self.mouse("mousePressed", x, y)
        for part in (1, 2):
            self.mouse("mouseMoved", x + dx * part / 2, y + dy * part / 2)
        self.mouse("mouseReleased", x + dx, y + dy, 0)

    def click(self, selector, number=0):
        self.drag(selector, number, 0, 0)

    def touch(self, selector, number=0, dx=0, dy=0):
        x, y = self.place(selector, number)
        send = lambda kind, points: self.engine.call(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
        )  # noqa: E731
        send("touchStart", [{"x": x, "y": y}])
        for part in (1, 2) if dx or dy else ():
            send("touchMove", [{"x": x + dx * part / 2, "y": y + dy * part / 2}])
        send("touchEnd", [])

    def key(self, name, modifiers=0):
        codes = {
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
            "Home": 36,
            "End": 35,
            "PageUp": 33,
            "PageDown": 34,
            "Tab": 9,
            " ": 32,
            "Enter": 13,
            "z": 90,
            "y": 89,
        }
        event = {
            "key": name,
            "code": {" ": "Space", "z": "KeyZ", "y": "KeyY"}.get(name, name),
            "windowsVirtualKeyCode": codes[name],
            "modifiers": modifiers,
        }
        text = {" ": {"text": " "}, "Enter": {"text": "\r"}}.get(name, {})
        self.engine.call("Input.dispatchKeyEvent", {"type": "keyDown", **event, **text})
        self.engine.call("Input.dispatchKeyEvent", {"type": "keyUp", **event})

    def focus(self, selector, number=0):
        self.value(f"document.querySelectorAll({json.dumps(selector)})[{number}].focus()")


def moved(before, after, k):
    """Whether slider k alone was moved, and the address says so."""
    others = [a for j, a in enumerate(after["sliders"]) if j != k and a[1] != before["sliders"][j][1]]
    return (
        (after["sliders"][k][1], after["sliders"][k][2]) != (before["sliders"][k][1], before["sliders"][k][2])
        and not others
        and after["hash"] != before["hash"]
    )

# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Uses the pages that compute in a real browser: mouse, touch, keyboard, missions; prints TAP.

    EXPLORE=FOLDER NODE=PACKAGES python3 tests/doc/explore_page.py [PICTURES]      FOLDER is build/explore/explore

Where axe-core is among the packages it is asked too. With PICTURES, the pages are kept there as PNG, in three widths,
light and dark. Skipped, by name, without Chromium, and where the pages have no numbers because clang cannot make
WebAssembly. FEW=1 looks at a phone in the dark alone, at other screens in the light alone, and uses the handles of the
derivation by keys alone: they are those of the first page.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import browser  # noqa: E402
from explore_hand import ACCESS, Page, moved  # noqa: E402
from tap import Tap  # noqa: E402

SCREENS = {"projector": (1920, 1080, False), "wide": (1280, 900, False), "phone": (390, 844, True)}
FEW = bool(os.environ.get("FEW"))
LAWS = ("mass", "shift", "key", "softmax1", "gate")
# At the first row, in binary64: which laws a form breaks.
BROKEN = {
    "right": (),
    "scaled": ("shift", "key", "gate"),
    "dropped": ("key", "softmax1", "gate"),
    "max-only": ("key", "softmax1", "gate"),
    "renormalised": ("mass", "key", "softmax1", "gate"),
    "per-part": ("key", "softmax1", "gate"),
    "lse-rounded": ("key", "softmax1", "gate"),
}


def check_handles(page, report, handles=15):
    """Every handle by mouse, by touch, and by each of its keys; undone and done again."""
    for way in ("keyboard",) if FEW and page.file.stem == "lines" else ("mouse", "touch", "keyboard"):
        phone = way == "touch"
        page.engine.screen(*SCREENS["phone" if phone else "wide"])
        page.engine.call("Emulation.setTouchEmulationEnabled", {"enabled": phone, "maxTouchPoints": 1})
        bad = page.open()
        count = len(page.state()["sliders"])
        for k in range(count):
            before = page.state()
            label = before["sliders"][k][0]
            side = "window" in label
            if way == "mouse":
                page.drag("[role=slider]", k, 60 if side else 20, 0 if side else -30)
            elif way == "touch":
                page.touch("[role=slider]", k, 60 if side else 20, 0 if side else -30)
            else:
                page.focus("[role=slider]", k)
                page.key("ArrowRight" if side else "ArrowUp")
            after = page.state()
            bad += (
                []
                if moved(before, after, k)
                else [f"{label} does not follow: {before['sliders'][k]}, {after['sliders'][k]}"]
            )
            bad += [] if after["acting"] or page.file.stem != "index" else [f"{label}: no line of code acts"]
        for _ in range(count):
            page.key("z", 2)
        bad += (
            []
            if page.state()["hash"] == page.value("toAddress(START)")
            else ["undone, it is not the first row: " + page.state()["hash"]]
        )
        for _ in range(count):
            page.key("y", 2)
        bad += [] if page.state()["hash"] == after["hash"] else ["done again, it is not the last row"]
        report(
            not bad and count == handles,
            f"explore.handles {page.file.stem} {way}: handles={count} faults={len(bad)}",
            bad,
        )
    page.engine.call("Emulation.setTouchEmulationEnabled", {"enabled": False})


def check_keys(page, report):
    page.open()
    bad = []
    page.focus("[role=slider].of-sink")
    for name, shift, expected in (
        ("ArrowUp", 0, 1.25),
        ("ArrowRight", 8, 1.3125),
        ("ArrowDown", 0, 1.0625),
        ("ArrowLeft", 8, 1),
        ("PageUp", 0, 2),
        ("PageDown", 0, 1),
        ("End", 0, 8),
        ("ArrowUp", 0, 8),
        ("Home", 0, -8),
    ):
        page.key(name, shift)
        now = next(s for s in page.state()["sliders"] if "sink" in s[0])
        bad += [] if now[1] == expected else [f"{name}: {now}, expected {expected}"]
    report(not bad, f"explore.keys of a slider: faults={len(bad)}", bad)
    # One round of the tab key meets every control.
    page.open()
    page.value("document.activeElement.blur()")
    met = set()
    for _ in range(70):
        page.key("Tab")
        met.add(
            page.value(
                """(() => { const e = document.activeElement; return e.getAttribute("aria-label") || e.name || e.id || e.textContent.trim().slice(0, 30); })()"""
            )
        )
    wanted = {s[0] for s in page.state()["sliders"]} | {
        "policy",
        "form",
        "again",
        "Start mission 1",
        "statement",
        "One key fewer",
    }
    report(
        wanted <= met, f"explore.tab meets every control: {len(wanted & met)} of {len(wanted)}", sorted(wanted - met)
    )


def check_choices(page, report):
    """Arithmetic and form by mouse, by touch and by the arrow keys; each wrong form breaks its laws."""
    page.engine.screen(*SCREENS["wide"])
    page.open()
    bad = []
    for k, (form, broken) in enumerate(BROKEN.items()):
        page.click("input[name=form]", k)
        now = page.state()
        bad += (
            []
            if tuple(now["broken"]) == tuple(now["glance"]) == broken and (k == 0 or f"f={form}" in now["hash"])
            else [f"{form}: broken {now['broken']}, expected {broken}"]
        )
        shown = page.value(
            "[...document.querySelectorAll('.judged')].filter(e => e.checkVisibility()).map(e => e.dataset.form)"
        )
        bad += [] if shown == [form] * (form != "right") else [f"{form}: the judge's words of {shown}"]
    report(not bad, f"explore.forms by mouse: forms={len(BROKEN)} faults={len(bad)}", bad)
    bad = []
    page.open()
    for names, group in ((["f32", "bf16", "f16"], "policy"), (list(BROKEN)[1:], "form")):
        page.focus(f"input[name={group}]")
        for name in names:
            page.key("ArrowRight")
            bad += [] if f"{group[0]}={name}" in page.state()["hash"] else [f"the arrow key does not choose {name}"]
    page.engine.call("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 1})
    page.touch("input[name=policy]", 2)
    bad += [] if "p=bf16" in page.state()["hash"] else ["a finger does not choose bfloat16"]
    page.touch("#more")
    page.touch("#more")
    page.touch("#fewer")
    bad += (
        []
        if len(page.state()["sliders"]) == 17
        and page.value("steps_ = document.getElementById('keys').textContent") == "7 keys"
        else ["a finger does not add a key"]
    )
    page.engine.call("Emulation.setTouchEmulationEnabled", {"enabled": False})
    page.focus("#again")
    page.key("Enter")
    bad += [] if page.state()["hash"] == page.value("toAddress(START)") else ["not at the start again"]
    page.click("#undo")
    page.click("#redo")
    bad += (
        [] if page.state()["hash"] == page.value("toAddress(START)") else ["undo and redo are not each other's inverse"]
    )
    report(not bad, f"explore.choices by keys and touch: faults={len(bad)}", bad)


def check_address(page, report):
    """An address is a row; nonsense in it is the first row; the numbers shown are those of the engine."""
    address = "#p=bf16&f=right&w=2&b=-0.5&s=1,2.25,-3&v=1:2,-1:0.5,0:-2&c=0.5:0.25"
    bad = page.open(address)
    now = page.state()
    bad += (
        []
        if page.value("toAddress(fromAddress(location.hash))") == address
        and "−0.5" in json.dumps(now["sliders"], ensure_ascii=False)
        else ["not the row of its address"]
    )
    wanted = page.value("""(async () => { const r = (await startEngine(exploreWasm))(fromAddress(location.hash));
      return [exact(r.alphaSink), exact(r.alpha[1] + r.alpha[2]), r.first]; })()""")
    bad += (
        []
        if now["live"].endswith(wanted[0]) and now["mass"].startswith(wanted[1]) and wanted[2] == 1
        else [f"shown {now['live']}, {now['mass']}: {wanted}"]
    )
    for nonsense in (
        "#p=x&f=__proto__&w=w&b=NaN&s=a,b&v=1&c=2",
        "#s=" + "1," * 40,
        "#b=1e999&w=1e9&m=77",
        "#v=:,:&c=:",
    ):
        bad += page.open(nonsense)
        again = page.value("toAddress(fromAddress(location.hash)).replace(/&m=.*/, '')")
        bad += [] if again == page.value("toAddress(START)") else [f"{nonsense}: {again}"]
    report(not bad, f"explore.address faults={len(bad)}", bad)


# What is drawn and written, beside what the engine says of the same address.
DRAWN = """(async () => {
  const state = fromAddress(location.hash), r = (await startEngine(exploreWasm))(state), wrong = [];
  const near = (what, got, wanted) => { if (!(Math.abs(got - wanted) < 0.02)) wrong.push(`${what}: ${got}, expected ${wanted}`); };
  const numbers = (selector, ...names) => [...document.querySelectorAll(selector)].map((e) => names.map((n) => +e.getAttribute(n)));
  numbers("#scores .bar", "y", "height").forEach(([y, height], j) => {
    const score = j < state.keys ? state.score[j] : state.sink;
    near(`bar ${j + 1}`, score > 0 ? 147 - y : y + height - 147, Math.max(Math.abs(score) * 13, score > 0 ? 0 : 1));
  });
  const shares = [...r.alpha.slice(r.first, state.keys), r.alphaSink].filter((a) => a > 0);
  const parts = numbers("#share .part", "width");
  if (parts.length !== shares.length) wrong.push(`${parts.length} parts of ${shares.length}`);
  parts.forEach(([width], k) => near(`part ${k + 1}`, width / 320, shares[k]));
  const [[x, y]] = numbers("#share .point", "cx", "cy");
  near("point", (x - 36) / 19.5 - 8, r.sink - r.lse);
  near("point's height", (262 - y) / 132, r.alphaSink);
  const [[ox, oy]] = numbers("#arrows .tip", "cx", "cy");
  near("output", (ox - 180) / 46, r.out[0]);
  near("output", (150 - oy) / 46, r.out[1]);
  const [[lx, ly]] = numbers("#arrows .arrow.bias:not(.full, .added)", "x2", "y2"), mass = r.alpha.reduce((a, b) => a + b, 0);
  near("bias left", (lx - 180) / 46, mass * state.bias[0]);
  near("bias left", (150 - ly) / 46, mass * state.bias[1]);
  for (const [name, law] of Object.entries(r.law))
    for (const [part, show] of [["left", exact], ["right", exact], ["residue", small], ["bound", small]]) {
      const text = document.querySelector(`#law-${name} .${part}`).textContent;
      if (text !== show(law[part])) wrong.push(`${name}, ${part}: ${text}, expected ${show(law[part])}`);
    }
  return wrong;
})()"""


def check_drawn(page, report):
    bad = []
    for address in (
        "",
        "#p=bf16&f=per-part&w=2&b=-0.5&s=1,2.25,-3&v=1:2,-1:0.5,0:-2&c=0.5:0.25",
        "#p=f16&f=renormalised&w=5&b=3&s=0,0.5,-3,4,1.5&v=1:2,-1:0.5,0:-2,1:1,2:0&c=-2:1",
    ):
        bad += page.open(address) + page.value(DRAWN)
    report(not bad, f"explore.drawn: bars, shares, point, arrows and laws, faults={len(bad)}", bad)


def check_missions(page, report):
    """Each is unsolved at its start, and solved by keys."""

    def press(selector, number, *keys):
        page.focus(selector, number)
        for key in keys:
            page.key(key)

    ways = (
        lambda: [press(".handle.of-key", j, "Home") for j in range(6)],
        lambda: [press(".handle.of-sink", 0, "End", *["PageDown"] * 6), press_to_half(page)],
        lambda: press(".handle.of-window", 0, "ArrowRight", "ArrowRight", "ArrowRight"),
        lambda: press(".handle.of-key", 0, "ArrowUp"),
        lambda: press(".handle.of-window", 0, "Home"),
    )
    bad = page.open()
    for k, solve in enumerate(ways):
        page.click(".missions button", k)
        bad += [] if page.state()["solved"] == 0 else [f"mission {k + 1} is solved at its start"]
        solve()
        bad += [] if page.state()["solved"] == 1 else [f"mission {k + 1} is not solved: {page.state()['hash']}"]
    report(not bad, f"explore.missions: solved={len(ways) - len(bad)} of {len(ways)}", bad)


def press_to_half(page):
    """b to LSE, in small steps: the sink takes a half."""
    page.focus(".handle.of-sink")
    for _ in range(80):
        if page.state()["solved"]:
            return
        page.key(
            (
                "ArrowLeft"
                if page.value(
                    "document.querySelector('.of-sink').getAttribute('aria-valuetext').match(/weight ([\\d.]+)/)[1] > 50"
                )
                else "ArrowRight"
            ),
            8,
        )


def axe_says(page):
    """What axe-core finds against WCAG 2.2 AA and its own best practices."""
    script = pathlib.Path(os.environ.get("NODE", ""), "axe-core/axe.min.js")
    if not script.is_file():
        return None
    page.value(script.read_text(encoding="utf-8") + "; 0")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    return page.value(
        f"axe.run(document, {{ runOnly: {json.dumps(tags)} }}).then(r => r.violations.map(v => `${{v.id}}: ${{v.nodes[0].html.slice(0, 90)}}`))"
    )


def check_sum(page, report):
    """The page of sums: every choice by its own way, what each mistake makes of the verdict, its buttons."""
    page.engine.screen(*SCREENS["wide"])
    bad = page.open()
    for group, names in (
        ("format", ("bf16", "f16", "f32")),
        ("order", ("forward", "backward", "pairwise", "lanes", "largest", "smallest")),
        ("mistake", ("none", "lost", "twice", "cut", "narrower")),
    ):
        for k, name in enumerate(names):
            page.click(f"input[name={group}]", k)
            page.state()
            if not page.value(
                f"document.querySelectorAll('input[name={group}]')[{k}].checked && fromAddress(location.hash).{group} === {json.dumps(name)}"
            ):
                bad.append(f"{group} {name} is not chosen")
        page.focus(f"input[name={group}]:checked")
        page.key("ArrowLeft")
        page.state()
        bad += (
            []
            if page.value(f"fromAddress(location.hash).{group}") == names[-2]
            else [f"the arrow key does not choose {names[-2]}"]
        )
    for mistake, said in (("none", "Inside"), ("lost", "Outside"), ("twice", "Outside")):
        bad += page.open(f"#t=f32&o=pairwise&x={mistake}&r=1&s=1,2,3,4")
        now = page.state()
        bad += [] if now["verdict"].startswith(said) else [f"{mistake}: {now['verdict']}"]
    for button, look in (
        ("more", "5 terms"),
        ("fewer", "4 terms"),
        ("alike", "8 terms"),
        ("cancelling", "8 terms"),
        ("drawn", "12 terms"),
    ):
        page.focus(f"#{button}")
        page.key("Enter")
        page.state()
        bad += [] if page.value("document.getElementById('keys').textContent") == look else [f"{button}: not {look}"]
    before = page.state()["hash"]
    page.click("#bits")
    bad += [] if page.state()["hash"] != before else ["no other last bits"]
    page.click("#undo")
    bad += [] if page.state()["hash"] == before else ["not undone"]
    shown = page.value(
        """(async () => { const s = (await startSums(exploreWasm))(fromAddress(location.hash));
      return [document.getElementById("live-got").textContent.startsWith(exact(s.got)), document.querySelectorAll("#walk tr").length === s.step.length]; })()"""
    )
    bad += [] if shown == [True, True] else [f"shown is not what was computed: {shown}"]
    for nonsense in ("#t=x&o=y&x=z&r=q&s=1", "#s=" + "1," * 40, "#s=NaN,2&r="):
        bad += page.open(nonsense)
        bad += (
            [] if page.value("toAddress(fromAddress(location.hash))") == page.value("toAddress(START)") else [nonsense]
        )
    report(not bad, f"explore.sum faults={len(bad)}", bad)


def check_lines(page, report):
    """In which arithmetic which lines give another number; the way back to the row."""
    bad = []
    for policy, away in (
        ("real", []),
        ("f32", [8, 9, 10, 11, 12]),
        ("bf16", [8, 9, 10, 11, 12]),
        ("f16", [8, 9, 10, 11, 12]),
    ):
        bad += page.open("#b=0.75")
        page.focus(f"input[name=policy][value={policy}]")
        page.key(" ")
        page.state()
        address = page.value("toAddress(fromAddress(location.hash))")
        seen, totals, back = page.value(
            """[[...document.querySelectorAll(".distance")].flatMap((e, k) => e.classList.contains("away") ? [k] : []),
          [...document.querySelectorAll(".numbers strong")].slice(0, 8).map(e => e.textContent), document.getElementById("to-row").getAttribute("href")]"""
        )
        bad += [] if seen == away and len(set(totals)) == 1 else [f"{policy}: lines away {seen}, totals {totals}"]
        bad += [] if f"p={policy}&" in address and back == f"index.html{address}" else [f"{policy}: leads to {back}"]
    page.click("#again")
    bad += [] if page.state()["hash"] == page.value("toAddress(START)") else ["not at the start again"]
    report(not bad, f"explore.lines faults={len(bad)}", bad)


def check_screens(page, report, pictures):
    row = (
        "#t=bf16&o=pairwise&x=lost&r=3&s=3,1.5,0.5,2,4.5,1,2.5,0.75,1,2,3,4"
        if page.file.stem == "sum"
        else "#p=bf16&f=scaled&w=4&b=2.5&s=1,2,-1,0.5,-2,1.5&v=2:0.5,-1:1.5,-2:-0.5,1:2,0.5:-2,-1.5:1&c=1:-1.5"
    )
    for name, (width, height, phone) in SCREENS.items():
        for dark in (phone,) if FEW else (False, True):
            page.engine.screen(width, height, phone, dark)
            bad = page.open(row) + page.value(ACCESS.read_text(encoding="utf-8"))
            report(not bad, f"explore.screen {page.file.stem} {name}{' dark' if dark else ''}: faults={len(bad)}", bad)
            found = axe_says(page) if phone is dark else None  # a phone in the dark, others in the light
            if found is not None:
                report(not found, f"explore.axe {page.file.stem} {name}: violations={len(found)}", found)
            if pictures:
                page.engine.screen(width, page.value("document.documentElement.scrollHeight"), phone, dark)
                page.engine.picture(pictures / f"explore-{page.file.stem}-{name}{'-dark' if dark else ''}.png")
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    page.engine.call("Emulation.setEmulatedMedia", {"media": "", "features": features})
    still = page.value(
        "[...document.querySelectorAll('#explore *')].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0 || "
        "getComputedStyle(e).animationName !== 'none').length"
    )
    report(still == 0, f"explore.motion {page.file.stem}: with reduced motion {still} elements move by themselves")


def check_slides(engine, slides, report):
    """The lecture of the book holds two of the pages, which run when their slide comes; on paper it holds their links."""
    engine.screen(*SCREENS["projector"])
    bad, _ = engine.open(slides.as_uri())
    frames = engine.value("document.querySelectorAll('.slide iframe').length")
    for k in range(frames):
        engine.value(f"document.querySelectorAll('.slide iframe')[{k}].scrollIntoView()")
        for _ in range(100):
            engine.value("new Promise((done) => setTimeout(done, 50))")
            asked = [
                e["params"]["request"]["url"] for e in engine.events if e.get("method") == "Network.requestWillBeSent"
            ]
            if sum(url.endswith("/explore/wasm.js") for url in asked) > k:
                break
        else:
            bad.append(f"frame {k + 1} does not load")
    bad += ["an exception in a frame"] * any(e.get("method") == "Runtime.exceptionThrown" for e in engine.events)
    engine.screen(1122, 631, media="print")
    hidden = engine.value("[...document.querySelectorAll('.slide iframe')].every((e) => !e.checkVisibility())")
    report(frames == 2 and hidden and not bad, f"explore.slides: frames={frames} hidden on paper={hidden}", bad)


def main(words):
    file, tap = pathlib.Path(os.environ.get("EXPLORE", "build/explore/explore"), "index.html").resolve(), Tap()
    pictures = pathlib.Path(words[0]) if words else None
    if not file.is_file():
        print(f"not ok 1 - no page at {file}: make explore", "1..1", sep="\n")
        return 1
    program = browser.find()
    if program is None or not (file.parent / "wasm.js").is_file():
        why = "no chromium" if program is None else "no WebAssembly: its packages are missing"
        print(f"1..0 # SKIP {why}: the page that computes is not used")
        return 0
    with browser.Browser(program, 60) as engine:
        page = Page(engine, file)
        engine.screen(*SCREENS["wide"])
        for check in (check_handles, check_keys, check_choices, check_address, check_drawn, check_missions):
            check(page, tap.report)
        check_screens(page, tap.report, pictures)
        sums = Page(engine, file.with_name("sum.html"))
        check_handles(sums, tap.report, 8)
        check_sum(sums, tap.report)
        check_screens(sums, tap.report, pictures)
        lines = Page(engine, file.with_name("lines.html"))
        check_handles(lines, tap.report)
        check_lines(lines, tap.report)
        check_screens(lines, tap.report, pictures)
        slides = file.parents[1] / "slides.html"
        if slides.is_file():
            check_slides(engine, slides, tap.report)
            engine.screen(*SCREENS["wide"])
        page.open()
        print(
            "# a change is computed and shown in",
            page.value("""(async () => { const times = []; for (let k = 0; k < 60; k++) {
          const start = performance.now(), n = +document.getElementById("explore").dataset.ready;
          document.querySelector(".of-sink").dispatchEvent(new KeyboardEvent("keydown", { key: k % 2 ? "ArrowUp" : "ArrowDown", bubbles: true }));
          while (+document.getElementById("explore").dataset.ready === n) await new Promise(requestAnimationFrame);
          times.push(performance.now() - start); } return times.sort((a, b) => a - b)[30].toFixed(1); })()"""),
            "ms, with the wait for the frame",
        )
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Which releases of an engine its adapter was tried with: the adapter, make/engines.mk and chapter 19 say the same.

    python3 tests/gates/test_tried.py

A release that an adapter says it was tried with is one that make/engines.mk installs for its tests; each adapter that
installs anything names some; the chapter's table has each adapter's line, and pyproject.toml that of its extra.
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
from tap import Tap  # noqa: E402

ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (.+) \|$", re.MULTILINE)


def adapters():
    """{word: {attribute: value}} of the class Engine of each adapter, read without importing it."""
    found = {}
    for path in sorted((ROOT / "audit/python/sinkproof/adapters").glob("[a-z]*.py")):
        kinds = [node for node in ast.parse(path.read_text(encoding="utf-8")).body
                 if isinstance(node, ast.ClassDef) and node.name == "Engine"]
        found[path.stem.replace("_", "-")] = {
            node.targets[0].id: ast.literal_eval(node.value) for kind in kinds for node in kind.body
            if isinstance(node, ast.Assign) and node.targets[0].id in ("install", "packages", "tried")}
    return found


def pins(makefile):
    """{adapter: {"transformers 5.23.0", ...}}: what make/engines.mk installs for the tests of each."""
    said = {name: value for name, value in re.findall(r"^(\w+)\s*:= (.*)$", makefile, re.MULTILINE)}

    def releases(text):
        text = re.sub(r"\$\((\w+)\)", lambda word: said.get(word[1], ""), text)
        return {f"{name} {version}" for name, version in re.findall(r"([\w-]+)(?:\[\w+\])?==([\w.]+)", text)}

    hf = releases("$(TRANSFORMERS) $(NEWEST) $(TORCH)")
    found = {"transformers": hf, "gpt2": hf, "transformers-llama": hf, "module": hf}
    for name in said:
        if name.startswith("ENGINE_"):
            found[name[7:].replace("_", "-")] = releases(said[name] + " " + said.get(f"ALONE_{name[7:]}", ""))
    return found


def wrong_of(found, pinned, rows):
    """What disagrees, in sentences."""
    said = []
    for word, engine in found.items():
        tried = engine.get("tried", ())
        if not engine.get("install"):
            continue
        if not tried:
            said.append(f"{word}: says no release that it was tried with")
        said += [f"{word}: tried with {release}, which make/engines.mk does not install for it"
                 for release in tried if release not in pinned.get(word, ())]
        missing = [package for package in engine.get("packages", ())[:1] if package not in {r.split()[0] for r in tried}]
        said += [f"{word}: no release of {package} was tried" for package in missing]
        if rows.get(word) != ", ".join(tried):
            said.append(f"{word}: chapter 19 says '{rows.get(word)}', the adapter '{', '.join(tried)}'")
    return said + [f"{word}: chapter 19 has a line, and there is no such adapter" for word in rows if word not in found]


def main():
    tap, found = Tap(), adapters()
    pinned = pins((ROOT / "make/engines.mk").read_text(encoding="utf-8"))
    chapter = (ROOT / "doc/19-adapters.md").read_text(encoding="utf-8")
    table = chapter[chapter.index("| adapter | tried with |"):chapter.index("## Write one")]
    rows = dict(ROW.findall(table))
    wrong = wrong_of(found, pinned, rows)
    tap.report(len(found) > 9 and not wrong, f"{len(found)} adapters, make/engines.mk and chapter 19 name the same releases", wrong)
    hf = ", ".join(found["transformers"]["tried"])
    project = (ROOT / "audit/python/pyproject.toml").read_text(encoding="utf-8")
    tap.report(f"# tried: {hf}\n" in project, f"pyproject.toml says of its extra: tried: {hf}")
    lies = ({**found, "llama": {**found["llama"], "tried": ("xllamacpp 1.0",)}}, {**found, "mlx": {**found["mlx"], "tried": ()}},
            {**found, "transformers": {**found["transformers"], "tried": ("torch 2.13.0",)}})
    tap.report(all(wrong_of(lie, pinned, rows) for lie in lies) and wrong_of(found, pinned, {**rows, "none": "1"})
               and wrong_of(found, {**pinned, "onnx": set()}, rows), "and what disagrees is found")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())

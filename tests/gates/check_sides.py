# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The two sides of a check share no formula: a function that is compared with itself proves nothing.

    python3 tests/gates/check_sides.py [--list] ROOT

Reads the sources, builds the call graph (a function that is passed or stored counts as called), and
asks of every entry of the tables of exact statements and of identities in balls what both of its
sides reach:

  calls    one side is the other, or calls it
  shares   both sides call a function that sides_shared.py neither calls a primitive nor a symbol
  symbol   a symbol of sides_shared.py that no check of the named id has on one side alone
  room     of reference, truth and bounds, which are the sides of what `verify` measures, one calls another
           and ROOMS does not say why it may
  unread   an entry without two functions, or a name of sides_shared.py without a function

Wrong forms are not asked: their sides have to differ, and nothing differs by being shared.

Prints one line per breach, "FILE: ID: RULE: what", and exits 1 when there is one.
"""
import argparse
import copy
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_walls import bare  # noqa: E402
from sides_shared import PRIMITIVES, ROOMS, SYMBOLS  # noqa: E402

FOLDERS = ("base", "model", "ref", "fast/lanes", "proofs", "audit/verify")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?[ \t]*((?:.*\\\n)*.*)$", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
TABLE = re.compile(r"\bconst\s+(sinkproof_exact_statement|sinkproof_identity)\s+(\w+)\[\]\s*=\s*\{")
HEAD = re.compile(r"\b([A-Za-z_]\w*)\s*\(([^(){};]|\([^(){};]*\)|\((?:[^(){};]|\([^(){};]*\))*\))*\)\s*\{")
MEMBER = re.compile(r"(?:->|\.)\s*[A-Za-z_]\w*")  # of a struct: no function, whatever its name
NOT_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "do", "else"}


def matching(text, at):
    """The index after the brace or parenthesis that closes the one at `at`."""
    opens, depth = text[at], 0
    closes = {"{": "}", "(": ")"}[opens]
    for k in range(at, len(text)):
        depth += (text[k] == opens) - (text[k] == closes)
        if depth == 0:
            return k + 1
    raise SystemExit(f"check-sides: {text[at:at + 40]!r} is never closed")


def arguments_of(text):
    """Split at the commas outside of parentheses and braces."""
    parts, depth, last = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "({[") - (c in ")}]")
        if c == "," and depth == 0:
            parts.append(text[last:k].strip())
            last = k + 1
    return parts + [text[last:].strip()]


class File:
    """One source: its functions, the names that they mention, its macros."""
    known = {}  # (path, text): the file, read once

    @classmethod
    def at(cls, root, path):
        raw = (root / path).read_text(encoding="utf-8")
        if (path, raw) not in cls.known:
            cls.known[path, raw] = cls(path, raw)
        return copy.copy(cls.known[path, raw])

    def __init__(self, path, raw):
        self.path, self.raw = path, raw
        self.includes = INCLUDE.findall(raw)
        text = bare(raw)
        self.aliases, self.macros = {}, {}
        for name, params, body in DEFINE.findall(text):
            body = body.replace("\\\n", " ")
            if params:
                self.macros[name] = ([p.strip() for p in params[1:-1].split(",")], body)
            elif re.fullmatch(r"\s*[A-Za-z_]\w*\s*", body):
                self.aliases[name] = body.strip()
        self.text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M)
        self.declared = {self.aliases.get(w, w) for w in re.findall(r"\b(\w+)\s*\(", self.text) if path.endswith(".h")}
        self.functions = {}
        self.read_functions(self.expanded(self.text))

    def expanded(self, text):
        """Macros that stand where a function may begin, written out: they define functions."""
        out, at = [], 0
        for match in re.finditer(r"^([A-Za-z_]\w*)\s*\(", text, re.M):
            if match[1] not in self.macros or match.start() < at:
                continue
            params, body = self.macros[match[1]]
            end = matching(text, match.end() - 1)
            values = arguments_of(text[match.end():end - 1])
            if params[-1] == "...":
                keep = len(params) - 1
                values = values[:keep] + [", ".join(values[keep:])]
                params = params[:-1] + ["__VA_ARGS__"]
            for param, value in zip(params, values):
                body = re.sub(rf"\b{param}\b", lambda m, v=value: v, body)
            out += [text[at:match.start()], body.replace("##", "\0").replace("\0 ", "").replace(" \0", "").replace("\0", "")]
            at = end
        return "".join(out) + text[at:]

    def read_functions(self, text):
        at = 0
        while match := HEAD.search(text, at):
            if match[1] in NOT_NAMES or text[:match.start()].count("{") != text[:match.start()].count("}"):
                at = match.end()
                continue
            end = matching(text, match.end() - 1)
            body = MEMBER.sub(" ", text[match.end():end])
            self.functions[match[1]] = set(WORD.findall(body)) - NOT_NAMES
            at = end


class Tree:
    def __init__(self, root):
        self.files = {}
        for folder in FOLDERS:
            for path in sorted((root / folder).rglob("*.[ch]")):
                name = str(path.relative_to(root))
                self.files[name] = File.at(root, name)
        self.seen_by = {name: self.included(name) for name in self.files}
        for name, file in self.files.items():  # a short name in the source is a long one in the library
            file.functions = {self.long(name, f): words for f, words in file.functions.items()}
        self.everywhere = {}
        for file in self.files.values():
            for function in file.functions if file.path.endswith(".c") else ():
                self.everywhere.setdefault(function, []).append(file.path)
        self.edges = {}

    def included(self, name):
        found, todo = [], [name]
        while todo:
            file = todo.pop()
            if file in found or file not in self.files:
                continue
            found.append(file)
            todo += self.files[file].includes
        return found

    def long(self, name, word):
        for file in self.seen_by[name]:
            word = self.files[file].aliases.get(word, word)
        return word

    def resolve(self, name, word):
        """The function that `word` means in the file `name`: (file, function), or None."""
        word = self.long(name, word)
        for file in self.seen_by[name]:
            if word in self.files[file].functions:
                return file, word
        declared = word.startswith("sinkproof_") or any(word in self.files[file].declared for file in self.seen_by[name])
        if declared and len(self.everywhere.get(word, ())) == 1:
            return self.everywhere[word][0], word
        return None

    def calls(self, node):
        if node not in self.edges:
            file, function = node
            words = self.files[file].functions[function]
            self.edges[node] = {self.resolve(file, w) for w in words} - {None, node}
        return self.edges[node]

    def reach(self, node, stop=frozenset()):
        """What the function calls, itself included; `stop` is not looked into."""
        found, todo = set(), [node]
        while todo:
            here = todo.pop()
            if here in found:
                continue
            found.add(here)
            if here[1] not in stop:
                todo += self.calls(here)
        return found


def entries_of(tree, file):
    """(table, id, [left, right]) of each entry of the file's tables of checks."""
    for table in TABLE.finditer(file.text):
        at, end = table.end(), matching(file.text, table.end() - 1) - 1
        for part in arguments_of(file.text[at:end]):
            start = file.text.index(part, at)
            at = start + len(part)
            text = file.raw[start:at]
            name = re.search(r'"([^"]*)"', text)
            if not name:
                continue  # the entry that ends the table
            macro, prefix = re.match(r"\w+", part), ""
            if macro:
                body = re.search(rf'#\s*define\s+{macro[0]}\((?:.*\\\n)*.*', file.raw)[0]
                prefix = (re.search(r'"([\w.-]+)"\s+id\b', body) or ["", ""])[1]
            sides = [tree.resolve(file.path, w) for w in WORD.findall(MEMBER.sub(" ", part))]
            yield table[2], prefix + name[1], [s for s in sides if s]


def key(node):
    return f"{node[0]}:{node[1]}"


def primitives_for(path):
    """What both sides of a check in this file may call, by PRIMITIVES."""
    found = set()
    for names in PRIMITIVES.values():
        only = re.match(r"\s*in (\S+):", names)
        if only is None or path.startswith(only[1]):
            found |= set(re.sub(r"^\s*in \S+:", "", names).split())
    return found


class Checks:
    """Every check of the tables: its file, its id, its two sides, what each of them reaches."""

    def __init__(self, tree, folder):
        self.rows, self.unread = [], []
        for name, file in sorted(tree.files.items()):
            for table, id, sides in entries_of(tree, file) if name.startswith(folder) else ():
                if table.endswith("_wrong"):
                    continue  # its sides have to differ: nothing agrees there by being shared
                if len(sides) != 2:
                    self.unread.append(f"{name}: {id}: unread: two sides expected, {len(sides)} functions found")
                    continue
                self.rows.append((name, id, sides, [tree.reach(side) for side in sides]))

    def shared(self):
        """(file, id, left, right, node) of what both sides of a check reach and may not."""
        for name, id, (left, right), (a, b) in self.rows:
            allowed = primitives_for(name) | set(SYMBOLS)
            for node in sorted((a & b) - {left, right}):
                if node[0] not in allowed and key(node) not in allowed:
                    yield name, id, left[1], right[1], key(node)

    def breaches(self):
        yield from self.unread
        for name, id, (left, right), (a, b) in self.rows:
            if left in b or right in a:
                yield f"{name}: {id}: calls: {left[1]} and {right[1]} are the two sides, and one calls the other"
        for name, id, left, right, node in self.shared():
            yield f"{name}: {id}: shares: both {left} and {right} call {node}"
        alone = {}
        for _, id, _, (a, b) in self.rows:
            alone.setdefault(id, set()).update(key(n) for n in a ^ b)
        for symbol, (id, _) in SYMBOLS.items():
            if symbol not in alone.get(id, ()):
                yield f"{symbol.split(':')[0]}: {id}: symbol: no check of {id} has {symbol.split(':')[1]} on one side alone"


def room_breaches(tree):
    """Calls from one computation of the points into another."""
    for (here, there), reasons in ROOMS.items():
        allowed = {name for names in reasons.values() for name in names.split()}
        for name, file in sorted(tree.files.items()):
            for function in sorted(file.functions) if name.startswith(here) else ():
                for node in sorted(tree.calls((name, function))):
                    if node[0].startswith(there) and node[0] not in allowed and key(node) not in allowed:
                        yield f"{name}: {function}: room: calls {key(node)}"


def unread_names(tree):
    known = set(tree.files) | {key((f, n)) for f, file in tree.files.items() for n in file.functions}
    rooms = {name for reasons in ROOMS.values() for names in reasons.values() for name in names.split()}
    for name in sorted(primitives_for("proofs/truth/") | primitives_for("proofs/exact/") | set(SYMBOLS) | rooms):
        if name not in known:
            yield f"tests/gates/sides_shared.py: {name}: unread: no such file or function"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--list", action="store_true", help="what the two sides of each check share")
    arguments.add_argument("root", type=pathlib.Path)
    options = arguments.parse_args()
    tree = Tree(options.root.resolve())
    checks = Checks(tree, "proofs/")
    if options.list:
        for _, id, (left, right), (a, b) in checks.rows:
            symbols = sorted(SYMBOLS[key(n)][1] for n in a & b if key(n) in SYMBOLS)
            print(f"{id}: {left[1]} | {right[1]}: {', '.join(symbols) or 'nothing but primitives'}")
    found = list(checks.breaches()) + list(room_breaches(tree)) + list(unread_names(tree))
    print("\n".join(found + [f"check-sides: {len(checks.rows)} checks of two sides, {len(found)} breaches"]))
    return 1 if found or not checks.rows else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The lattice of designs as pictures, from what `sinkproof sinks --edges` says today.

Only places are written down here: which design stands where, and in which order its edges follow. An edge
that the command tells and no picture has a place for, or the other way round, ends the drawing. To the right
stand the designs that others become, as tall as the edges that end in them; to the left those others. Each
edge leads to the statement that proves it, and a refuted one, in red and dashed, to its instance.
"""
import json
import textwrap
from xml.sax.saxutils import escape

import inventory
import runs
from canvas import Canvas

LEFT, BAR, BAR_END, LETTER = 26, 340, 478, 8.3
SIGNS = (("-inf", "−∞"), ("sqrt(d)", "√d"), ("<=", "≤"), ("...", "…"), ("p_i", "pᵢ"), ("-slope", "−slope"), (" = ", "\u00a0=\u00a0"))


class Edges:
    """The edges by the names of their ends; each is drawn once."""

    def __init__(self, program, root):
        said = json.loads(runs.run(program, root, "sinks", "--edges", "--json", "-"))
        self.left = said["results"]
        self.refuted = [e for e in self.left if e["verdict"] == "apart"]
        stated = inventory.read_statements(root, inventory.Problems())
        self.page = {id: statement[0] for id, statement in stated.items()}

    def take(self, source, target, start, verdict="overlap"):
        """The edge whose condition begins with `start`."""
        for edge in self.left:
            if (edge["from"], edge["to"], edge["verdict"]) == (source, target, verdict) and edge["when"].startswith(start):
                self.left.remove(edge)
                return edge
        raise SystemExit(f"pictures: the lattice has no edge from {source} to {target}, {verdict}: {start}")

    def done(self):
        if self.left:
            raise SystemExit("pictures: no place for " + ", ".join(f"{e['from']} to {e['to']}: {e['when']}" for e in self.left))

    def address(self, edge):
        if edge["verdict"] == "apart":
            return f"lattice-refuted.svg#{name_of(edge)}"
        return f"../../{self.page[edge['statement']]}#{edge['statement']}"


def name_of(edge):
    return f"refuted-{edge['from']}-{edge['to']}"


def words_of(text):
    for plain, sign in SIGNS:
        text = text.replace(plain, sign)
    return text


def says(edge):
    verb = "is" if edge["verdict"] == "overlap" else "is not"
    return f"{edge['from']} {verb} {edge['to']}: {edge['when']} ({edge['statement']})"


class Lattice:
    """A picture that grows downwards."""

    def __init__(self, edges, title):
        self.edges, self.canvas, self.y, self.title = edges, Canvas(0, title), 4, title
        self.ends = {}  # of a design: where it begins and ends, y

    # ---- parts of an edge ------------------------------------------------------------------------

    def style(self, edge):
        refuted = edge["verdict"] == "apart"
        return {"colour": "bad" if refuted else "ink", "dash": "6 4" if refuted else None}

    def arrow(self, edge, *points):
        style = self.style(edge)
        if style["dash"]:  # the head itself is not dashed
            self.canvas.line(*points, **style)
            (x0, y0), (x, y) = points[-2:]
            length = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
            self.canvas.arrow((x - (x - x0) / length, y - (y - y0) / length), (x, y), colour="bad")
        else:
            self.canvas.arrow(*points)

    def label(self, edge, x, y, room, anchor=None):
        """The condition in lines that end above y."""
        lines = self.lines(edge, room)
        self.canvas.opened("a", href=self.edges.address(edge))
        self.canvas.add("title", escape(says(edge)))
        for k, line in enumerate(lines):
            self.canvas.plain(x, y - 18 * (len(lines) - 1 - k), line, "bad" if edge["verdict"] == "apart" else "a", anchor)
        self.canvas.closed("a")

    def lines(self, edge, room):
        return textwrap.wrap(words_of(edge["when"]), max(8, int(room / LETTER)))

    # ---- rows ------------------------------------------------------------------------------------

    def heading(self, words):
        self.y += 24
        self.canvas.text(LEFT, self.y, words, "faint", weight="bold", kind="small")
        self.y += 10

    def width(self, name):
        return 9.1 * len(name) + 18

    def rows(self, source, edges, lane=None):
        """A design to the left and a row for each of its edges into the bar. lane: the design stands
        higher up, and a line comes down from it at this x."""
        top = self.y
        edge_x = LEFT + self.width(source) if lane is None else lane
        for edge in edges:
            start = max(edge_x, LEFT) + 8
            room = BAR - start - 10
            height = 18 * len(self.lines(edge, room))
            self.y += height + 8
            self.label(edge, start, self.y - 6, room)
            self.arrow(edge, (edge_x, self.y), (BAR, self.y))
            self.y += 6
        if lane is None:
            self.box(source, top + 2, max(self.y, top + 30))
            self.y = max(self.y, top + 30) + 6
        else:
            self.canvas.line((LEFT, self.ends[source][0] + 14), (lane, self.ends[source][0] + 14), (lane, self.y - 6))
            self.y += 4

    def box(self, name, top, bottom):
        self.ends[name] = (top, bottom)
        self.canvas.rect(LEFT, top, self.width(name), bottom - top)
        self.canvas.text(LEFT + 9, (top + bottom) / 2 + 5, name, kind="code")

    def loop(self, edge):
        """An edge of the bar to itself."""
        room = BAR - 190
        self.y += 18 * len(self.lines(edge, room)) + 8
        self.label(edge, BAR - 12, self.y - 6, room, "end")
        self.canvas.line((BAR, self.y), (BAR - 150, self.y), (BAR - 150, self.y + 14), (BAR - 1, self.y + 14), **self.style(edge))
        self.arrow(edge, (BAR - 2, self.y + 14), (BAR, self.y + 14))
        self.y += 24

    def away(self, edge):
        """From the bar to a design on the left."""
        end = LEFT + self.width(edge["to"])
        self.y += 26
        self.label(edge, end + 14, self.y - 6, BAR - end)
        self.arrow(edge, (BAR, self.y), (end, self.y))
        self.box(edge["to"], self.y - 16, self.y + 14)
        self.y += 22

    def between(self, *edges, up=True):
        """From the design on the left that follows to the one above, or down."""
        top = self.y - 6
        lines = [(edge, self.lines(edge, 270)) for edge in edges]
        height = max(34, sum(18 * len(text) for _, text in lines) + 12)
        y = top + 18
        for k, (edge, text) in enumerate(lines):
            x = LEFT + 12 + 18 * k
            rising = up if k == 0 or edge["from"] == edges[0]["from"] else not up
            ends = ((x, top + height), (x, top)) if rising else ((x, top), (x, top + height))
            self.arrow(edge, *ends)
            y += 18 * (len(text) - 1)
            self.label(edge, LEFT + 22 + 18 * (len(lines) - 1), y + 2, 270)
            y += 18
        self.y = top + height

    # ---- bars ------------------------------------------------------------------------------------

    def bar(self, name, draw, end=BAR_END):
        """What `draw` draws ends in this one."""
        top = self.y
        draw()
        bottom = max(self.y, top + 34)
        self.ends[name] = (top, bottom)
        colour = {"softmax": "c", "off-by-one": "d", "score-bias": "b"}.get(name)
        self.canvas.rect(BAR, top, end - BAR, bottom - top, colour or "line", colour or "line", 0.14)
        times = 1 + int((bottom - top) // 400)  # a tall one is named again
        for k in range(times):
            y = top + (bottom - top) * (2 * k + 1) / (2 * times) + 5
            self.canvas.text((BAR + end) / 2, y, name, None, "middle", "code", "bold")
        self.y = bottom

    def below(self, edges, height=44):
        """Edges between the bar above and the next one: (edge, x, down); the words to the left of each."""
        top = self.y
        for edge, x, down in edges:
            self.arrow(edge, *(((x, top), (x, top + height)) if down else ((x, top + height), (x, top))))
            self.label(edge, x - 8, top + height / 2 + 6 + 9 * (len(self.lines(edge, 150)) - 1), 150, "end")
        self.y += height

    def finish(self, height=8):
        self.canvas.height = round(self.y + height)
        return self.canvas


def sinks(edges):
    """Designs with a star, and what GPT-OSS's sink is at which parameters."""
    p = Lattice(edges, "A graph of the designs that have a star beside their keys. A learned key with a value becomes a key "
                "without one when the value is zero, that becomes softmax off by one when the key is zero; GPT-OSS's score "
                "becomes off by one at zero and softmax at minus infinity. Refuted edges are dashed.")
    take = edges.take
    p.heading("a learned key, with a value and without")

    def into_kv():
        p.rows("v-bias", [take("v-bias", "kv-bias", "", "apart")])
        p.rows("sink-token", [take("sink-token", "kv-bias", "no positions"), take("sink-token", "kv-bias", "", "apart")])
        p.rows("kv-bias-shared", [take("kv-bias-shared", "kv-bias", "")])
        p.rows("value-even-5", [take("value-even-5", "kv-bias", "")])
        p.rows("value-first-5", [take("value-first-5", "kv-bias", "")])
    p.bar("kv-bias", into_kv)
    first_top = p.ends["value-first-5"]
    p.below([(take("kv-bias", "k-bias", ""), BAR + 24, True)], 40)

    def into_k():
        m = take("value-first-5", "k-bias", "")
        p.y += 26
        p.label(m, LEFT + p.width("value-first-5") - 60, p.y - 6, 100)
        p.arrow(m, (LEFT + 40, first_top[1]), (LEFT + 40, p.y), (BAR, p.y))
        p.y += 8
        p.rows("value-even-5", [take("value-even-5", "k-bias", "")], lane=16)
        p.rows("key-dims-4", [take("key-dims-4", "k-bias", "")])
        p.rows("key-dims-16", [take("key-dims-16", "k-bias", "")])
    p.bar("k-bias", into_k, BAR + 84)
    both = take("kv-bias", "off-by-one", "")
    top = p.ends["kv-bias"][1]
    p.below([(take("k-bias", "off-by-one", ""), BAR + 24, True)])
    p.arrow(both, (BAR + 98, top), (BAR + 98, p.y))
    p.label(both, BAR + 104, (top + p.y) / 2 + 10, 60)

    def into_one():
        p.loop(take("off-by-one", "off-by-one", "", "apart"))
        p.away(take("off-by-one", "sigmoid", ""))
    p.bar("off-by-one", into_one)
    p.below([(take("score-bias", "off-by-one", "b = 0"), BAR + 24, False)], 66)
    shift = take("score-bias", "off-by-one", "every")
    p.arrow(shift, (BAR + 104, p.y), (BAR + 104, p.y - 66))
    p.label(shift, BAR + 96, p.y - 9, 60, "end")
    p.canvas.text(LEFT, p.y - 20, "a learned score: GPT-OSS", "faint", weight="bold", kind="small")

    def into_score():
        p.loop(take("score-bias", "score-bias", "", "apart"))
        p.rows("gpt-oss-window", [take("gpt-oss-window", "score-bias", "")])
        p.between(take("mimo-v2-flash", "gpt-oss-window", ""))
        p.box("mimo-v2-flash", p.y, p.y + 30)
        p.y += 34
    p.bar("score-bias", into_score)
    none = take("k-bias", "softmax", "", "apart")
    p.below([(take("score-bias", "softmax", ""), BAR + 24, True)], 60)
    k_top, k_bottom = p.ends["k-bias"]
    p.arrow(none, (BAR + 84, (k_top + k_bottom) / 2 + 40), (BAR_END + 24, (k_top + k_bottom) / 2 + 40), (BAR_END + 24, p.y + 26), (BAR_END, p.y + 26))
    p.label(none, BAR_END + 18, p.y - 16, 118, "end")
    p.bar("softmax", lambda: p.rows("v-bias", [take("v-bias", "softmax", "")], lane=6))
    return p.finish()


def others(edges):
    """Masks, divisors, similarities, gates, positions."""
    p = Lattice(edges, "A graph of the designs without a star. Windows, prefixes, packed documents, powers and scaled divisors all become "
                "softmax at some parameter; gates become one another or a scaled divisor; positions become none; the other "
                "similarities become the identity. Refuted edges are dashed.")
    take = edges.take

    def into_softmax():
        p.heading("which keys are seen")
        p.rows("prefix-5", [take("prefix-5", "softmax", "")])
        p.rows("packed", [take("packed", "softmax", "one"), take("packed", "softmax", "", "apart")])
        p.rows("window", [take("window", "softmax", "")])
        p.between(take("first-recent", "window", "no"), take("first-recent", "window", "", "apart"))
        p.rows("first-recent", [take("first-recent", "softmax", "")])
        p.heading("similarities")
        p.rows("sigmoid-norm", [take("sigmoid-norm", "softmax", "", "apart")])
        p.rows("elu-norm", [take("elu-norm", "softmax", "")])
        p.between(take("elu-linear", "elu-norm", "", "apart"))
        p.box("elu-linear", p.y, p.y + 30)
        p.y += 36
        p.heading("divisors")
        p.rows("power-3", [take("power-3", "softmax", "")])
        p.rows("power-2", [take("power-2", "softmax", "weights"), take("power-2", "softmax", "p = 1"),
                           take("power-2", "softmax", "", "apart")])
        p.rows("scaled-2", [take("scaled-2", "softmax", "a = 1"), take("scaled-2", "softmax", "W_V"),
                            take("scaled-2", "softmax", "", "apart")])
    p.bar("softmax", into_softmax)
    p.between(take("gated", "scaled-2", ""))
    p.bar("gated-head", lambda: p.rows("gated", [take("gated", "gated-head", "all"), take("gated", "gated-head", "", "apart")]))
    p.heading("positions")

    def into_nope():
        p.rows("learned", [take("learned", "nope", "")])
        p.rows("alibi", [take("alibi", "nope", "")])
        p.between(take("relative", "alibi", ""))
        p.rows("relative", [take("relative", "nope", "")])
    p.bar("nope", into_nope)
    p.between(take("relative", "relative-bucket", ""), take("relative-bucket", "relative", "", "apart"), up=False)
    p.box("relative-bucket", p.y, p.y + 30)
    p.y += 36
    p.heading("nothing divides, or at least one")

    def into_identity():
        p.rows("identity-max", [take("identity-max", "identity", "|"), take("identity-max", "identity", "", "apart")])
        p.rows("mlp", [take("mlp", "identity", "")])
        p.between(take("mlp-max", "mlp", ""))
        p.box("mlp-max", p.y, p.y + 30)
        p.y += 34
    p.bar("identity", into_identity)
    return p.finish()


def refuted(edges):
    """The instance of each pair that differs: what both sides are at one entry."""
    c = Canvas(56 + 74 * len(edges.refuted), "Fourteen pairs of designs that are taken for each other, each with one entry of a result at which "
               "the enclosures of the two sides are disjoint, and both values there.")
    c.text(10, 22, "apart, on the head that seed 1 draws", "bad", weight="bold")
    c.text(10, 42, "_o_[_i_][_d_]: coordinate _d_ of the result of query _i_, enclosed", "faint", kind="small")
    for k, edge in enumerate(edges.refuted):
        y, at = 78 + 74 * k, edge["instance"]
        lines = textwrap.wrap("“" + words_of(edge["when"]) + "”", 60)
        c.opened("g", id=name_of(edge))
        c.opened("a", href=f"../../{edges.page[edge['statement']]}#{edge['statement']}")
        c.add("title", escape(says(edge)))
        c.plain(10, y, lines[0], "bad")
        c.closed("a")
        c.text(10, y + 21, f"{edge['from']} ≠ {edge['to']}", kind="code")
        c.text(510, y + 21, f"o[{at['row']}][{at['column']}]", "faint", "end", "code")
        c.text(26, y + 41, f"{at['from']:.6g}, not {at['to']:.6g}", "faint", kind="code")
        c.line((10, y + 51), (510, y + 51), colour="line", width=0.7)
        c.closed("g")
    return c


def pictures(program, root):
    edges = Edges(program, root)
    made = {"lattice-sinks": sinks(edges), "lattice-others": others(edges)}
    edges.done()
    return made | {"lattice-refuted": refuted(edges)}

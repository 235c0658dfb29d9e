# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Small mistakes, made mechanically: what a slip of the pen does to a region of C.

`candidates(text, spans)` gives every mutation of the tokens that lie in the spans, in the order of
the text. Comments, strings and preprocessor lines are left alone, and so are statements that only
allocate or release: the size of a buffer is not what an equation states.
"""
import re
from collections import namedtuple

Token = namedtuple("Token", "kind text start end")
Mutation = namedtuple("Mutation", "start end text operator")

SCAN = re.compile(r"""
    (?P<skip>  //[^\n]* | /\*.*?\*/ | \s+ | (?<![^\n])[ \t]*\#(?:[^\n]|\\\n)* )
  | (?P<str>   "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
  | (?P<num>   0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?\w* | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w* )
  | (?P<id>    [A-Za-z_]\w* )
  | (?P<op>    <<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:;,.(){}\[\]] )
""", re.X | re.S)

TYPES = set("double float int char void bool size_t const unsigned long short signed struct enum "
            "static inline slong ulong row matrix rational uint8_t uint16_t uint32_t uint64_t "
            "int32_t int64_t".split())
KEYWORDS = set("if for while switch return sizeof else do case break continue goto".split())
MEMORY = re.compile(r"(?:\w*alloc\w*|free|abort|\w*_inits?2?|\w*_clears?|\w*_vec_init|release"
                    r"|\w*_free|vector|progress)$")
COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
SIGN = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}
MULDIV = {"*": "/", "/": "*", "*=": "/=", "/=": "*="}
# Parts of names that have a natural opposite: m_lo and m_hi, arb_add and arb_sub.
OPPOSITES = [("fmax", "fmin"), ("max", "min"), ("floor", "ceil"), ("sin", "cos"), ("lo", "hi"),
             ("low", "high"), ("worst", "likely"), ("rows", "cols"), ("x1", "x2"), ("add", "sub"),
             ("mul", "div"), ("gt", "lt"), ("ge", "le")]
OPPOSITE = {a: b for x, y in OPPOSITES for a, b in ((x, y), (y, x))}
# Functions of two operands, either of which may be forgotten; and of a last operand that stays
# when the rounding around it is forgotten.
TWO = re.compile(r"(?:q|row|matrix|sinkproof_honest)_(?:add|sub|mul|div|scale|join|max)$|^f(?:max|min)$")
# A call whose two operands may change places without changing the result.
COMMUTES = re.compile(r"(?:add|mul|max|min|dot|equal|eq|swap)$|_(?:add|mul|max|min)_\w+$")
AROUND = re.compile(r"sinkproof_(?:round|honest_at|honest_inside)$|^(?:R|PROD|round_at|floor|ceil|fabs|exp|sqrt|log)$")


def tokenize(text):
    tokens, at = [], 0
    while at < len(text):
        match = SCAN.match(text, at)
        if not match:
            at += 1
            continue
        if match.lastgroup != "skip":
            tokens.append(Token(match.lastgroup, match[0], match.start(), match.end()))
        at = match.end()
    return tokens


def partners(tokens):
    """{index of an opening bracket: index of its closing one}, and the reverse."""
    match, stack = {}, []
    for k, token in enumerate(tokens):
        if token.kind == "op" and token.text in "([{":
            stack.append(k)
        elif token.kind == "op" and token.text in ")]}" and stack:
            match[stack[-1]] = k
            match[k] = stack.pop()
    return match


def points_of(points_header):
    """The names of the rounding points, in the order of the forward pass."""
    rounding = points_header.split("SINKPROOF_TRACED_POINTS")[0]
    names = re.findall(r"^\s*P\((\w+),", rounding, re.M)
    return ["AT_" + name for name in names]


class Source:
    """The tokens of a file, with just enough grammar to change them sensibly."""

    def __init__(self, text, points=()):
        self.text, self.tokens, self.points = text, tokenize(text), list(points)
        self.match = partners(self.tokens)
        self.found = []
        self.statements()
        self.headers = set()  # tokens in the head of a for: a changed index there only loops forever
        for k, token in enumerate(self.tokens):
            if token.text == "for" and k + 1 in self.match:
                self.headers.update(range(k + 1, self.match[k + 1]))

    def at(self, k):
        return self.tokens[k].text if 0 <= k < len(self.tokens) else ""

    def statements(self):
        """self.memory: tokens of statements that allocate or release."""
        self.memory, first = set(), 0
        depth = 0
        for k, token in enumerate(self.tokens):
            if token.kind != "op":
                continue
            depth += (token.text in "([") - (token.text in ")]")
            if depth == 0 and token.text in ";{}":
                if any(t.kind == "id" and MEMORY.match(t.text) for t in self.tokens[first:k]):
                    self.memory.update(range(first, k + 1))
                first = k + 1

    def is_cast(self, k):
        """An opening bracket that holds nothing but a type."""
        end = self.match.get(k, k)
        inside = self.tokens[k + 1:end]
        return bool(inside) and all(t.text in TYPES or t.text == "*" or t.text.endswith("_t")
                                    or t.text.startswith("sinkproof_") for t in inside) and \
            (inside[0].text in TYPES or inside[0].text.endswith("_t"))

    def is_binary(self, k):
        before = self.tokens[k - 1] if k else None
        if before is None:
            return False
        if before.kind == "id":
            return before.text not in TYPES and before.text not in KEYWORDS and self.at(k - 2) != "const"
        if before.text == ")":
            return not self.is_cast(self.match.get(k - 1, k - 1))
        return before.kind == "num" or before.text == "]"

    def unary_end(self, k):
        """The token after the unary expression that begins at k."""
        while self.at(k) in ("+", "-", "!", "~", "*", "&", "++", "--", "sizeof"):
            k += 1
        if self.at(k) == "(" and k in self.match:
            if self.is_cast(k):
                return self.unary_end(self.match[k] + 1)
            k = self.match[k]
        k += 1
        while k < len(self.tokens):
            if self.at(k) in ("(", "[") and k in self.match:
                k = self.match[k] + 1
            elif self.at(k) in (".", "->"):
                k += 2
            elif self.at(k) in ("++", "--"):
                k += 1
            else:
                break
        return k

    def product_end(self, k):
        k = self.unary_end(k)
        while self.at(k) in ("*", "/", "%"):
            k = self.unary_end(k + 1)
        return k

    def arguments(self, k):
        """[(first, last)] of the arguments of the call whose opening bracket is k."""
        parts, first, depth = [], k + 1, 0
        for j in range(k + 1, self.match[k]):
            text = self.at(j)
            if self.tokens[j].kind != "op":
                continue
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if depth == 0 and text == ",":
                parts.append((first, j - 1))
                first = j + 1
        parts.append((first, self.match[k] - 1))
        return [p for p in parts if p[0] <= p[1]]

    def span(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]

    def letters(self, k):
        """Whole-number variables of one letter that the function around token k declares."""
        start = 0
        for match in re.finditer(r"^[A-Za-z][^;\n]*\(", self.text[:self.tokens[k].start], re.M):
            start = match.start()
        end = self.text.find("\n}", self.tokens[k].start)
        body = self.text[start:end if end > 0 else len(self.text)]
        names = re.findall(r"\b(?:size_t|int|unsigned|long|slong|int32_t) (?:\w+ = [^;]*?, )?([a-z])\b(?!\()", body)
        names += re.findall(r"\bconst (?:size_t|int) ([a-z])\b", body)
        return sorted(set(names))

    def declares(self, k):
        """The name at k follows a type: it is declared or defined here."""
        before = self.tokens[k - 1] if k else None
        if before is not None and before.text == "*":
            return not self.is_binary(k - 1) and self.tokens[k - 2].kind == "id"
        return before is not None and before.kind == "id" and before.text not in KEYWORDS

    # ---- the mistakes ----------------------------------------------------------------------

    def put(self, first, last, text, operator):
        """Replaces the tokens first ... last."""
        self.found.append(Mutation(self.tokens[first].start, self.tokens[last].end, text, operator))

    def operators(self, k, text):
        if text in COMPARE:
            self.put(k, k, COMPARE[text], "compare")
        if text == "!" and self.at(k + 1) != "=":
            self.put(k, k, "", "negate")
        if text in ("+=", "-="):
            self.put(k, k, SIGN[text], "sign")
            self.put(k, k, "=", "drop")
        if text in ("*=", "/="):
            self.put(k, k, MULDIV[text], "muldiv")
        if text not in ("+", "-", "*", "/"):
            return
        if not self.is_binary(k):
            if text == "-":
                self.put(k, k, "", "sign")
            return
        if text in SIGN:
            self.put(k, k, SIGN[text], "sign")
            self.put(k, self.product_end(k + 1) - 1, "", "drop")
            if text == "-" and self.at(k - 1) in ("1", "1.0") and self.at(k - 2) not in ("*", "/", "-", "+"):
                self.put(k - 1, k, "", "one-minus")
        else:
            self.put(k, k, MULDIV[text], "muldiv")
            self.put(k, self.unary_end(k + 1) - 1, "", "drop")

    def number(self, k, text):
        match = re.fullmatch(r"(\d+)([uUlL]*)", text)
        if match:
            value = int(match[1])
            self.put(k, k, f"{value + 1}{match[2]}", "off-by-one")
            if value > 0:
                self.put(k, k, f"{value - 1}{match[2]}", "off-by-one")
            return
        match = re.fullmatch(r"(0[xX][0-9a-fA-F.]+[pP])([+-]?\d+)", text)
        if match:
            self.put(k, k, f"{match[1]}{int(match[2]) + 1}", "off-by-one")
            return
        match = re.fullmatch(r"(\d+)(\.\d+)", text)
        if match:
            self.put(k, k, f"{int(match[1]) + 1}{match[2]}", "off-by-one")

    def name(self, k, text):
        before, after = self.at(k - 1), self.at(k + 1)
        if text in self.points:
            here = self.points.index(text)
            self.put(k, k, self.points[(here + 1) % len(self.points)], "point")
            return
        declared = self.declares(k)
        if re.fullmatch(r"[a-z]", text) and before not in (".", "->") and not declared and \
                after not in ("(", "=", "++", "--", "+=") and k not in self.headers:
            letters = self.letters(k)
            if text in letters and len(letters) > 1:
                self.put(k, k, letters[(letters.index(text) + 1) % len(letters)], "index")
        if not declared or after == "(":
            parts = re.split(r"(_)", text)
            for at, part in enumerate(parts):
                if part in OPPOSITE:
                    self.put(k, k, "".join(parts[:at] + [OPPOSITE[part]] + parts[at + 1:]), "opposite")
        if after == "(" and text not in KEYWORDS and not declared and k + 1 in self.match:
            self.call(k, text)

    def call(self, k, text):
        close, parts = self.match[k + 1], self.arguments(k + 1)
        for a, b in zip(parts, parts[1:]):
            left, right = self.span(*a), self.span(*b)
            operands = b == parts[-1] or (b == parts[-2] and self.span(*parts[-1]) == "bits")
            if left != right and not (COMMUTES.search(text) and operands):
                middle = self.text[self.tokens[a[1]].end:self.tokens[b[0]].start]
                self.put(a[0], b[1], right + middle + left, "swap")
        if TWO.search(text) and len(parts) == 2:
            self.put(k, close, self.span(*parts[0]), "drop")
            self.put(k, close, self.span(*parts[1]), "drop")
        elif AROUND.search(text) and parts:
            self.put(k, close, f"({self.span(*parts[-1])})", "unwrap")

    def removal(self, k):
        """An expression statement that begins at k."""
        if self.at(k - 1) not in (";", "{", "}", ")", "else") or k in self.headers:
            return
        if self.at(k - 1) == ")" and self.at(self.match.get(k - 1, 0) - 1) not in ("if", "for", "while"):
            return
        expression = self.at(k) in ("*", "++", "--", "break", "continue") or (
            self.tokens[k].kind == "id" and self.at(k) not in KEYWORDS and self.at(k) not in TYPES
            and self.at(k + 1) in ("(", "=", "+=", "-=", "*=", "/=", "[", ".", "->", "++", "--", "|="))
        if not expression:
            return
        end = k
        while end < len(self.tokens) and self.at(end) != ";":
            end = self.match[end] + 1 if self.at(end) in ("(", "[", "{") and end in self.match else end + 1
        if end < len(self.tokens):
            self.put(k, end, "{}", "remove")

    def mutations(self, spans):
        self.found = []
        for k, token in enumerate(self.tokens):
            if k in self.memory or not any(a <= token.start and token.end <= b for a, b in spans):
                continue
            self.removal(k)
            if token.kind == "op":
                self.operators(k, token.text)
            elif token.kind == "num":
                self.number(k, token.text)
            elif token.kind == "id":
                self.name(k, token.text)
        inside = [m for m in self.found if any(a <= m.start and m.end <= b for a, b in spans)]
        unique = {}
        for m in inside:
            if m.text != self.text[m.start:m.end]:
                unique.setdefault((m.start, m.end, m.text), m)
        return sorted(unique.values(), key=lambda m: (m.start, m.end, m.operator, m.text))


def apply(text, mutation):
    return text[:mutation.start] + mutation.text + text[mutation.end:]


def change_of(text, mutation):
    """One line: the code as mutated, with what was replaced put in brackets."""
    start = text.rfind("\n", 0, mutation.start) + 1
    end = text.find("\n", mutation.end)
    old = " ".join(text[mutation.start:mutation.end].split())
    line = text[start:mutation.start] + f"[{old} -> {mutation.text}]" + text[mutation.end:end]
    return " ".join(line.split())

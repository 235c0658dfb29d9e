# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Whether a printed formula and a Coq theorem are the same expressions; for doc_proved.py.

Both are read into one tree, names of the one translated into the other's by a dictionary that a person
writes (doc/PROVED.txt), and both trees are evaluated in the field of whole numbers modulo a prime: a
variable, and a function of a value, is a number drawn from the hash of its name (and value), a sum or a
product runs over three indices of its domain. So what is equal by the laws of a field is equal, whatever
the order, and what is not differs but for odds of about 2^-60. No expression is compared by its looks.

    formula     a LaTeX block: relations, split at \\\\, \\qquad and \\Longrightarrow. \\pm and \\mp stand for two
                relations; "x \\in f(\\pm)" says f(-) <= x <= f(+)
    theorem     Coq: the relations of its hypotheses and its conclusion, where what a let defines stands
                for what it is
    dictionary  {LaTeX: Coq}: a part of a formula and the term that it stands for, \\sum_k for "∑ k ∈ J". What it
                does not name is read as it stands: \\eta_t is ηt, a_k is a k
"""
import functools
import hashlib
import itertools
import re

PRIME = (1 << 61) - 1
GREEK = dict(zip("alpha beta gamma delta eta kappa lambda mu xi rho sigma tau phi varphi omega epsilon Omega Lambda".split(),
                 "α β γ δ η κ λ μ ξ ρ σ τ φ φ ω ε Ω Λ".split()))
FUNCTIONS = {"\\sin": "sin", "\\cos": "cos", "\\ln": "ln", "\\tanh": "tanh", "\\sqrt": "sqrt"}
INDICES = "ijkr"
TYPOGRAPHY = re.compile(r"\\(?:[bB]igg?[lr]?|left|right|displaystyle)(?![a-zA-Z])|\\[,;!:]|&|\\(?:begin|end)\{[a-z]+\}")


class Unreadable(Exception):
    pass


# ---- values -------------------------------------------------------------------------------------

def drawn(*words):
    text = "\0".join(map(str, words)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:16], "big") % PRIME


def value(tree, bound, defined):
    """The value of a tree; bound: {index: value}; defined: {name: (parameters, tree)} of a theorem's let."""
    kind, *rest = tree
    if kind == "number":
        return rest[0] % PRIME
    if kind == "name":
        name, arguments = rest
        if not arguments and name in bound:
            return bound[name]
        if name in defined and len(defined[name][0]) <= len(arguments):
            parameters, body = defined[name]
            own, more = arguments[:len(parameters)], arguments[len(parameters):]
            inner = {**bound, **{p: value(a, bound, defined) for p, a in zip(parameters, own)}}
            if not more:
                return value(body, inner, defined)
            if body[0] == "name":
                return value(("name", body[1], [*body[2], *more]), inner, defined)
        return drawn(name, *(value(a, bound, defined) for a in arguments))
    if kind in ("sum", "product"):
        names, domain, body = rest
        total = 0 if kind == "sum" else 1
        for n in range(3):
            one = value(body, {**bound, **{name: drawn("index", domain, n) for name in names}}, defined)
            total = (total + one if kind == "sum" else total * one) % PRIME
        return total
    if kind == "fun":
        names, body = rest
        return drawn("fun", value(body, {**bound, **{n: drawn("argument", at) for at, n in enumerate(names)}}, defined))
    if kind == "^" and rest[1][0] == "number":
        return pow(value(rest[0], bound, defined), rest[1][1], PRIME)
    values = [value(r, bound, defined) for r in rest]
    if kind == "+":
        return sum(values) % PRIME
    if kind == "-":
        return (values[0] - values[1]) % PRIME
    if kind == "*":
        return values[0] * values[1] % PRIME
    if kind == "/":
        return values[0] * pow(values[1], PRIME - 2, PRIME) % PRIME
    if kind == "abs":
        return drawn("abs", min(values[0], PRIME - values[0]))
    if kind == "^":
        return drawn("power", *values)
    raise Unreadable(kind)


def called(name, arguments):
    """A function of Coq as a tree."""
    if name == "Rabs":
        return ("abs", *arguments)
    if name in ("INR", "IZR") and len(arguments) == 1:
        return arguments[0]
    if name == "exp":
        return ("name", "exp", arguments)
    if name in ("Sum", "Product"):
        domain, function = arguments
        names, body = (function[1], function[2]) if function[0] == "fun" else \
            (["\0"], ("name", function[1], [*function[2], ("name", "\0", [])]))
        return ("sum" if name == "Sum" else "product", names, domain[1], body)
    return ("name", name, arguments)


# ---- reading ------------------------------------------------------------------------------------

class Reader:
    """Sums of products of factors, from tokens; what a factor is, the two languages say."""

    def __init__(self, tokens):
        self.tokens, self.at = tokens, 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token=None):
        found = self.peek()
        if not found or (token and found != token):
            raise Unreadable(f"{token or 'more'} expected, {found or 'the end'} found")
        self.at += 1
        return found

    def whole(self):
        tree = self.sum()
        if self.peek():
            raise Unreadable(f"{self.peek()} left over")
        return tree

    def sum(self):
        tree = ("number", 0) if self.peek() in ("-", "+") else self.product()
        while self.peek() in ("+", "-"):
            tree = (self.take(), tree, self.product())
        return tree


class Coq(Reader):
    TOKENS = re.compile(r"\s+|(:=|->|<->|/\\|<=|>=|<>|=>|[-+*/^()=<>,:∈∑\[\];]|[\d.]*\d|[\w']+|%\w+|.)")

    def __init__(self, text):
        found = [t for t in self.TOKENS.findall(text) if t]
        super().__init__([t for t in found if not re.match(r"%\w", t)])

    def product(self):
        tree = self.power()
        while self.peek() in ("*", "/"):
            tree = (self.take(), tree, self.power())
        return tree

    def power(self):
        if self.peek() == "-":
            self.take()
            return ("-", ("number", 0), self.power())
        if self.peek() == "/":
            self.take()
            return ("/", ("number", 1), self.power())
        tree = self.application()
        if self.peek() == "^":
            self.take()
            tree = ("^", tree, self.application())
        return tree

    def starts_operand(self):
        return self.peek() == "(" or bool(re.match(r"[\w]", self.peek()))

    def application(self):
        if self.peek() == "∑":
            return self.indexed()
        head, arguments = self.operand(), []
        while self.starts_operand():
            arguments.append(self.operand())
        return called(head[1], [*head[2], *arguments]) if arguments else head

    def indexed(self):
        self.take("∑")
        name, sign = self.take(), self.take()
        if sign not in ("∈", "<"):
            raise Unreadable(f"a sum over {sign}")
        domain = []
        while self.peek() != ",":
            domain.append(self.take())
        self.take(",")
        return ("sum", [name], ("" if sign == "∈" else "<") + " ".join(domain), self.product())

    def operand(self):
        token = self.take()
        if token == "(" and self.peek() == "fun":
            self.take()
            names = [self.take()]
            self.take("=>")
            tree = ("fun", names, self.sum())
            self.take(")")
            return tree
        if token == "(":
            tree = self.sum()
            self.take(")")
            return tree
        if token.isdigit():
            return ("number", int(token))
        if re.match(r"[\w]", token):
            return ("name", token, [])
        raise Unreadable(token)


class Latex(Reader):
    TOKENS = re.compile(r"\s+|(«\d+»|\\[a-zA-Z]+|\\.|\d+|.)")

    def __init__(self, text, terms, upper):
        super().__init__([t for t in self.TOKENS.findall(text) if t])
        self.terms, self.upper, self.inside, self.big = terms, upper, [], False

    def peek(self):
        token = super().peek()
        if token in ("\\pm", "\\mp"):
            return "+" if (token == "\\pm") == self.upper else "-"
        return token

    def take(self, token=None):
        found = self.peek()
        super_found = super().peek()
        if not super_found or (token and found != token):
            raise Unreadable(f"{token or 'more'} expected, {found or 'the end'} found")
        self.at += 1
        return found

    def starts_factor(self):
        token = self.peek()
        if token == "|":
            return not (self.inside and self.inside[-1] == "|")
        if token[:1] == "«" and self.terms[int(token[1:-1])][0] in "∑∏":
            return not self.big
        return bool(token) and (token in "({" or token[0] in "«\\" or token.isalnum()) and token not in (
            "\\cdot", "\\le", "\\ge", "\\in")

    def product(self):
        tree = self.factor()
        while self.starts_factor() or self.peek() == "\\cdot":
            if self.peek() == "\\cdot":
                self.take()
            tree = ("*", tree, self.factor())
        return tree

    def group(self):
        """{…}, or one token."""
        if self.peek() != "{":
            token = self.take()
            if token[0] == "«":
                return self.term(self.terms[int(token[1:-1])])
            return ("number", int(token)) if token.isdigit() else ("name", GREEK.get(token[1:], token), [])
        return self.enclosed("{", "}")

    def enclosed(self, first, last):
        self.take(first)
        self.inside.append(first)
        big, self.big = self.big, False
        tree = self.sum()
        self.inside.pop()
        self.big = big
        self.take(last)
        return tree

    def factor(self):
        tree = self.base()
        while self.peek() == "^":
            self.take()
            tree = ("^", tree, self.group())
        return tree

    def base(self):
        token = self.peek()
        if token == "|":
            return ("abs", self.enclosed("|", "|"))
        if token == "(":
            return self.enclosed("(", ")")
        if token == "{":
            return self.enclosed("{", "}")
        self.take()
        if token[0] == "«":
            return self.term(self.terms[int(token[1:-1])])
        if token.isdigit():
            return ("number", int(token))
        if token in ("\\frac", "\\tfrac"):
            return ("/", self.group(), self.group())
        if token in FUNCTIONS:
            return ("name", FUNCTIONS[token], [self.group() if self.peek() == "{" else self.factor()])
        if token in ("\\max", "\\min"):
            self.take("(")
            first = self.sum()
            self.take(",")
            second = self.sum()
            self.take(")")
            return ("name", "Rmax" if token == "\\max" else "Rmin", [first, second])
        if token == "e" and self.peek() == "^":
            self.take()
            return ("name", "exp", [self.group()])
        return self.symbol(token)

    def term(self, coq):
        match = re.fullmatch(r"([∑∏]) (\S+) (∈|<) (.+)", coq)
        if not match:
            return Coq(coq).whole()
        big, self.big = self.big, True
        body = self.product()
        self.big = big
        domain = ("" if match[3] == "∈" else "<") + match[4]
        return ("sum" if match[1] == "∑" else "product", [match[2]], domain, body)

    def symbol(self, token):
        name = GREEK.get(token[1:], "") if token[0] == "\\" else token
        if not name or not re.fullmatch(r"\w+", name):
            raise Unreadable(f"{token} stands for nothing")
        while self.peek() == "'":
            name += self.take()
        if self.peek() != "_":
            return ("name", name, [])
        self.take()
        below = self.take()
        if below == "{":
            raise Unreadable(f"{token}_{{…}} stands for nothing")
        if below[0] == "«":
            return ("name", name, [Coq(self.terms[int(below[1:-1])]).whole()])
        if below in INDICES:
            return ("name", name, [("name", below, [])])
        return ("name", name + GREEK.get(below[1:], below), [])


# ---- relations ----------------------------------------------------------------------------------

def split_outside(text, separators, open_="({[", close=")}]"):
    """The parts of a text between separators that stand in no bracket, and the separators."""
    parts, depth, at, start = [], 0, 0, 0
    while at < len(text):
        match = separators.match(text, at) if depth == 0 else None
        if match and match.end() > at:
            parts += [text[start:at], match[0]]
            at = start = match.end()
            continue
        depth += (text[at] in open_) - (text[at] in close)
        at += 1
    return [*parts, text[start:]]


def related(sides, relations):
    """[(relation, value, value)] of a chain: <= or =, larger sides last."""
    found = set()
    for n, relation in enumerate(r.strip() for r in relations):
        pair = sides[n:n + 2]
        found.add(("=" if relation in ("=", ":=") else "<" if relation in ("<", ">") else "<=",
                   *(pair[::-1] if relation in (">=", ">", "\\ge") else pair)))
    return found


PIECES = re.compile(r"\s*(?:->|<->|/\\)\s*|\blet\b|\bin\b|\bforall\b[^,]*,|\bexists\b[^,]*,")
COQ_RELATION = re.compile(r":=|<=|>=|<>|=(?!>)|(?<!∑ \w )<(?!-)|>")  # "∑ k < n" is no relation


def pieces_of(statement):
    """The relations and definitions of a theorem, as texts."""
    open_, found = [statement], []
    while open_:
        parts = split_outside(open_.pop(), PIECES)
        for part in (re.sub(r"\)%\w+$", ")", p.strip()) for p in parts[::2]):
            enclosed = part[:1] == "(" and split_outside(part[1:], re.compile(r"\)"))
            if enclosed and enclosed[2:] == [""]:
                open_.append(enclosed[0])
            elif len(parts) > 1:
                open_.append(part)
            else:
                found.append(part)
    return found


@functools.cache
def theorems_of(region):
    """[(relations, definitions)] of the theorems of a region, as far as they are read."""
    found = []
    for theorem in re.split(r"^\s*(?:Theorem|Corollary|Lemma)\s+[\w']+", region, flags=re.MULTILINE)[1:]:
        statement = "".join(split_outside(theorem.strip().rstrip("."), re.compile(r":(?!=)"))[2:])
        chains, defined = [], {}
        for piece in pieces_of(statement):
            parts = split_outside(piece, COQ_RELATION)
            try:
                if parts[1:2] == [":="]:
                    name, *parameters = parts[0].split()
                    defined[name] = parameters, Coq("".join(parts[2:])).whole()
                elif len(parts) > 1:
                    chains.append(([Coq(p).whole() for p in parts[::2]], parts[1::2]))
            except Unreadable:
                pass
        relations = set()
        for sides, signs in chains:
            relations |= related([value(side, {}, defined) for side in sides], signs)
        found.append((relations, defined))
    return found


def plain(latex):
    return " ".join(TYPOGRAPHY.sub(" ", latex).split())


def printed(formula):
    """The relations of a LaTeX block, without its typography."""
    cases = re.compile(r"\\begin\{cases\}.*?\\end\{cases\}", re.DOTALL)
    text = cases.sub(lambda m: m[0].replace("\\\\", " "), formula.replace("$$", " ")).replace("\\\\", "\0")
    parts = split_outside(plain(text), re.compile(r"\0|,?\s*\\qquad|\\Longrightarrow"))
    return [p.strip(" ,") for p in parts[::2] if p.strip(" ,")]


def translated(text, dictionary):
    """The text with every part that the dictionary names replaced, longest first, and their terms."""
    terms = []
    for latex, coq in sorted(dictionary.items(), key=lambda item: -len(item[0])):
        spaced = r"\s*".join(re.escape(t) for t in Latex.TOKENS.findall(plain(latex)) if t)
        before = r"(?<![a-zA-Z\\])" if latex[0].isalpha() else ""
        after = r"(?![a-zA-Z])" if latex[-1].isalpha() else ""
        if re.search(before + spaced + after, text):
            text = re.sub(before + spaced + after, f" «{len(terms)}» ", text)
            terms.append(coq)
    return text, terms


LATEX_RELATION = re.compile(r"\\le(?![a-zA-Z])|\\ge(?![a-zA-Z])|\\in(?![a-zA-Z])|=|<|>")


def latex_relations(text, dictionary, defined):
    """What one printed relation says: with each sign of its \\pm where it has one."""
    text, terms = translated(text, dictionary)
    parts = split_outside(text, LATEX_RELATION)
    if len(parts) < 3:
        raise Unreadable("no relation")

    def side(part, upper):
        return value(Latex(part, terms, upper).whole(), {}, defined)
    if parts[1] == "\\in":
        middle = side(parts[0], True)
        return {("<=", side(parts[2], False), middle), ("<=", middle, side(parts[2], True))}
    names = split_outside(parts[0], re.compile(","))[::2]
    if len(names) == 2:  # x, y = f(\mp): x with the upper sign, y with the lower
        return {("=", side(n, u), side(parts[2], u)) for n, u in zip(names, (True, False))}
    signs = (True, False) if re.search(r"\\(?:pm|mp)(?![a-zA-Z])", text) else (True,)
    return set().union(*(related([side(p, u) for p in parts[::2]], parts[1::2]) for u in signs))


def choices(dictionary):
    """Each reading of a dictionary in which names stand for different terms, written "a | b"."""
    each = [[(latex, term.strip()) for term in coq.split(" | ")] for latex, coq in dictionary.items()]
    return [dict(one) for one in itertools.product(*each)]


@functools.cache
def missing(text, region, dictionary):
    """What is wrong with one printed relation; None when a theorem of the region has it. dictionary: its items."""
    readings, why = choices(dict(dictionary)), "no relation of the theorems"
    for relations, defined in theorems_of(region):
        try:
            says = (latex_relations(text, reading, defined) for reading in readings)
            if any(all(r in relations or r[0] == "=" and (r[1] == r[2] or ("=", r[2], r[1]) in relations)
                       for r in said) for said in says):
                return None
        except Unreadable as reason:
            why = f"not read: {reason}"
    return why


def unproved(formula, region, dictionary):
    """[(printed relation, what is wrong)]: those that no theorem of the region has."""
    found = [(text, missing(text, region, tuple(dictionary.items()))) for text in printed(formula)]
    return [(text, why) for text, why in found if why is not None]

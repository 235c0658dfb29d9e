# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Holds the numbers of a question and those of its solution to one another, for exercise.py and test_exercises.py.

A line of a solution that takes numbers from the question says from which of its words, in a comment at its end
("#" in commands):

    size_t window = 128, position = 200; // given: "The last 128 keys", "position 200"

Each phrase stands in the question to the letter, and the phrases' numbers are the line's, in their order, repeats
in a row left out. Every number of the question stands in some phrase; numbers are also written out, two to sixteen.
A solution's other numbers are its own, and a line says which and what for: // own: 100, percent. Only 0 and 1
need no word where they are no value by themselves: in arithmetic, in an index, where a loop or a sum begins.

A given number that a program does not use would agree with any question, so that variants() changes each by itself,
and test_exercises.py asks whether the program prints another answer. "// given, of no effect:" says that it does not.
"""
import re
from collections import namedtuple
from fractions import Fraction

WORDS = {word: str(n) for n, word in enumerate(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split(), 2)}
GIVEN = re.compile(r'^(.*?)\s*(?://|#)(?: .*[.;])? given(, of no effect)?: ("[^"]*"(?:, "[^"]*")*)$')
OWN = re.compile(r"^(.*?)\s*(?://|#)(?: .*[.;])? own: (.*)$")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
LITERAL = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][-+]?\d+)?|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
SAID = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:\^\{?-?\d+\}?)?(?: million)?")
Line = namedtuple("Line", "code kind phrases own")  # kind: None, "given" or "idle", a given number of no effect


def plain(text):
    """A question's words without its links' targets, the statements that it cites and its mathematical marks."""
    text = re.sub(r"\[chapter \d+\]\([^)]*\)|eq\[[^\]]*\]|\]\([^)]*\)", " ", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text.replace("$", ""))
    return " ".join(text.split())


def signed(text, at):
    """Whether the minus before a number is its sign: it touches the number and nothing before it."""
    before = text[:at]
    return before.endswith("-") and not re.search(r"[\w)\]}]$", before[:-1])


def value(word):
    word, million = word.removesuffix(" million"), 10**6 if word.endswith(" million") else 1
    base, power, exponent = word.partition("^")
    if power:
        return Fraction(base) ** int(exponent.strip("{}")) * million
    return Fraction(float.fromhex(word)) if word[:2] in ("0x", "0X") else Fraction(word) * million


def stated(text):
    """The numbers of a question's words, in their order."""
    text = re.sub(rf"\b(?:{'|'.join(WORDS)})\b", lambda m: WORDS[m[0].lower()], plain(text), flags=re.IGNORECASE)
    return [-value(m[0]) if signed(text, m.start()) else value(m[0]) for m in SAID.finditer(text)]


def shown(value):
    return str(value) if value.denominator == 1 and abs(value) < 10**9 else f"{float(value):g}"


def lines_of(solution):
    """A program's lines, apart from what it includes and its comments."""
    for text in solution.splitlines():
        given, own = GIVEN.match(text), OWN.match(text)
        code = given[1] if given else own[1] if own else re.sub(r"(?<!:)//.*$", "", text)
        phrases = [phrase[1:-1] for phrase in STRING.findall(given[3])] if given else []
        mine = [value(m[0]) for m in LITERAL.finditer(own[2])] if own else []
        yield Line("" if code.lstrip().startswith("#include") else code, given and ("idle" if given[2] else "given"), phrases, mine)


def bare(code):
    """A line without what it prints and where commands send it, every number in its place."""
    blank = lambda m: " " * len(m[0]) if re.search(r"[%{\\]", m[0]) else m[0]  # noqa: E731
    return re.sub(r"\d?>&?\d?", lambda m: " " * len(m[0]) if ">&" in m[0] or m[0][0].isdigit() else m[0], STRING.sub(blank, code))


def literals(code):
    """(where, value) of each number of a line, but an array's size and which of its members is meant."""
    code = bare(code)
    return [(m, -value(m[0]) if signed(code, m.start()) else value(m[0])) for m in LITERAL.finditer(code) if not index(code, m)]


def index(code, match):
    """Whether a number is an array's size, or says which of its members."""
    before = bare(code)[:match.start()]
    return before.count("[") > before.count("]")


def neutral(code, match, program):
    """Whether a 0 or 1 is part of the arithmetic and no value that a question could have stated otherwise."""
    code, (start, end) = bare(code), match.span()
    before, after = code[:start].rstrip(), code[end:].lstrip("uUlLfF").lstrip()
    if re.search(r"\b(?:return|exit)$|[=!<>]=$", before) or re.search(r"\bfor \([^;]*=$", before):
        return True
    if not (re.search(r"[({,?:=]$", before) and (not after or after[0] in ")},;:")):
        return True
    if re.search(r"\.rows =$", before):
        return True
    begun = re.search(r"(\w+)(?:\[\w*\])*\s*=\s*\{?$", before)  # a sum that begins: it is changed later
    return bool(begun and re.search(rf"\b{begun[1]}(?:\[[^\]]*\])*\s*(?:[-+*/]?=(?![={{])|\+\+)|&{begun[1]}\b",
                                    program.replace(code.strip(), "", 1)))


def collapsed(numbers):
    return [n for k, n in enumerate(numbers) if k == 0 or n != numbers[k - 1]]


def listed(numbers):
    return ", ".join(map(shown, numbers)) or "none"


def disagreements(question, solution):
    """Sentences that say where the numbers of a question and of its solution are not the same ones."""
    wrong, words, lines = [], plain(question), list(lines_of(solution))
    rest, own, used = words, [n for line in lines for n in line.own], set()
    for line in lines:
        numbers = [n for _, n in literals(line.code)]
        for phrase in map(plain, line.phrases):
            if phrase not in words:
                wrong.append(f'"{phrase}" is said to be given, and the question does not have it')
            rest = rest.replace(phrase, " ")
        said = [n for phrase in line.phrases for n in stated(phrase)]
        if line.kind and collapsed(numbers) != collapsed(said):
            wrong.append(f"the question says {listed(said)} and the solution takes {listed(numbers)}: {line.code.strip()}")
        if line.kind:
            continue
        for match, number in literals(line.code):
            if number in own or -number in own:
                used.update((number, -number))
            elif number not in (0, 1) or not neutral(line.code, match, solution):
                wrong.append(f"the question does not state {shown(number)}: {line.code.strip()}")
    wrong += [f"the solution takes nothing from the question's {shown(n)}" for n in stated(rest)]
    return wrong + [f"the solution calls {shown(n)} its own and does not use it" for n in own if n not in used]


def variants(solution):
    """(whether it has an effect, the number, programs that differ in it alone) of each number that is given."""
    lines, texts = list(lines_of(solution)), solution.splitlines()
    for at, line in enumerate(lines):
        if not line.kind:
            continue
        strings = [m.span() for m in STRING.finditer(line.code)]
        for match, number in literals(line.code):
            if any(a < match.start() < b and line.code[a + 1:b - 1] != match[0] for a, b in strings):
                continue  # a name that has a number in it
            whole, changed = re.fullmatch(r"\d+", match[0]), []
            for by in (1, -1, 9):
                n = value(match[0]) + (by if whole or not number else by * value(match[0]) / 4)
                text = str(n) if whole else repr(float(n))
                changed.append("\n".join([*texts[:at], line.code[:match.start()] + text + line.code[match.end():],
                                          *texts[at + 1:]]) + "\n")
            yield line.kind == "given", number, changed

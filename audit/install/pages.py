# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Writes the manual pages and the shells' completions from the text of --help and of the header.

    python3 audit/install/pages.py PROGRAM VERSION OUT

OUT/man1 gets sinkproof.1 and a page of each command, from their --help; OUT/man3 sinkproof.3, from
audit/sinkproof.h; OUT/completions the files for bash, zsh and fish. All of them contain what --help says.
"""
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from collections import namedtuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
Option = namedtuple("Option", "short name argument text group")
Help = namedtuple("Help", "name summary usage before options after")

OPTION = re.compile(r"^ {2,6}(?:-(\S), )? *--([a-z-]+)(?:=(\S+))?(?: +(.*))?$")
COMMAND = re.compile(r"^  ([a-z0-9]+) +(.*)$")
# The words that an option takes, if its --help names them: those that a command lists where it refuses another one.
ASKED = {"policy": ("info",), "engine": ("run", "MODEL"), "layout": ("synth", "MODEL", "--out=OUT")}
WORDS = {}
FILES = {"FILE", "TRACE", "OUT", "OUT.safetensors", "FILE|-"}  # arguments that are paths


def say_help(program, *words):
    # Every option and paragraph on one line, however long.
    wide = dict(os.environ, ARGP_HELP_FMT="rmargin=4000", LC_ALL="C")
    return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True, env=wide).stdout


def read_help(program, name, summary):
    """Parses the --help of one command."""
    usage, before, options, after, group = [], [], [], [], ""
    for line in say_help(program, name).splitlines():
        match = OPTION.match(line)
        if match:
            options.append(Option(match[1], match[2], match[3], (match[4] or "").strip(), group))
        elif line.startswith(("Usage: ", "  or:  ")):
            usage.append(line[7:].strip())
        elif options and line.startswith("   ") and line.strip():
            options[-1] = options[-1]._replace(text=f"{options[-1].text} {line.strip()}".strip())
        elif re.match(r"^ [A-Z].*:$", line):
            group = line.strip()
        else:
            (after if options else before).append(line)
    return Help(name, summary, usage, "\n".join(before).strip(), options, "\n".join(after).strip())


def read_program(program):
    """Parses the top page, and the page of each command that it lists."""
    for option, words in ASKED.items():
        refused = subprocess.run([program, *words, f"--{option}=?"], capture_output=True, text=True)
        listed = re.search("(?:known are|layout) (.*?)(?:, or @FILE|, found|$)", refused.stderr, re.MULTILINE)[1]
        WORDS[option] = ["auto", *re.split("(?:,| and| or)+ ", listed)]
    top = say_help(program).splitlines()
    commands = [m.groups() for m in map(COMMAND.match, top) if m]
    start = next(i for i, line in enumerate(top) if line.startswith("Commands"))
    end = max(i for i, line in enumerate(top) if COMMAND.match(line))
    whole = Help("", "", [top[0][7:]], "\n".join(top[1:start]).strip(), [], "\n".join(top[end + 1:]).strip())
    return whole, [read_help(program, *command) for command in commands]


def words_of(option):
    """The words that an option takes, or none; for --points those of the table of points."""
    words = [w for w in WORDS.get(option.name, []) if re.search(rf"(?<![\w-]){re.escape(w)}(?![\w-])",
                                                                f"{option.argument} {option.text}")]
    if option.name == "points":
        table = (ROOT / "ref/points.h").read_text(encoding="utf-8")
        words = re.findall(r'^    P\(\w+, +"([\w.]+)", +\w+, +(?:ENDS|LAYER),', table, re.MULTILINE)
    return words


# ---- manual pages ----------------------------------------------------------------------------------------

def roff(text):
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraphs(text):
    return "\n.PP\n".join(roff(" ".join(p.split())) for p in re.split(r"\n\s*\n", text) if p.strip())


def title(name, section, version):
    return [f'.TH {name.upper()} {section} "" "sinkproof {version}" "sinkproof"']


def option_line(option):
    short = rf"\fB\-{option.short}\fR, " if option.short else ""
    argument = rf"=\fI{roff(option.argument)}\fR" if option.argument else ""
    return rf"{short}\fB\-\-{roff(option.name)}\fR{argument}"


def command_page(page, version):
    lines = title(f"sinkproof-{page.name}", 1, version)
    lines += [".SH NAME", rf"sinkproof\-{page.name} \- {roff(page.summary)}", ".SH SYNOPSIS"]
    lines += ["\n.br\n".join(rf"\fB{roff(' '.join(u.split()[:2]))}\fR {roff(' '.join(u.split()[2:]))}" for u in page.usage)]
    lines += [".SH DESCRIPTION", paragraphs(page.before), ".SH OPTIONS"]
    group = ""
    for option in page.options:
        if option.group != group:
            group = option.group
            lines += [f".SS {roff(group)}"]
        lines += [".TP", option_line(option), roff(option.text)]
    if page.after:
        lines += [".SH NOTES", paragraphs(page.after)]
    return "\n".join([*lines, ".SH SEE ALSO", r"\fBsinkproof\fR(1)", ""])


def top_page(whole, pages, version):
    lines = title("sinkproof", 1, version)
    lines += [".SH NAME", r"sinkproof \- is what an engine computes what GPT\-OSS is?", ".SH SYNOPSIS",
              rf"\fBsinkproof\fR {roff(whole.usage[0].split(' ', 1)[1])}", ".SH DESCRIPTION", paragraphs(whole.before),
              ".SH COMMANDS"]
    for page in pages:
        lines += [".TP", rf"\fBsinkproof\-{page.name}\fR(1)", roff(page.summary)]
    also = ",\n".join(rf"\fBsinkproof\-{p.name}\fR(1)" for p in pages)
    return "\n".join([*lines, ".SH NOTES", paragraphs(whole.after), ".SH SEE ALSO", also + ",", r"\fBsinkproof\fR(3)", ""])


def library_page(header, version):
    """The header as a manual page: its comments become text, its declarations are copied."""
    body = header.split("#define SINKPROOF_PUBLIC_H", 1)[1].split('extern "C" {', 1)[1]
    body = re.sub(r"^#(?:if|endif|define SINKPROOF_ERROR).*\n", "", body, flags=re.MULTILINE).split("\n}\n", 1)[0]
    opening = header.split("//\n", 1)[1].split("#ifndef", 1)[0]
    opening = re.sub(r"^// ?", "", opening, flags=re.MULTILINE)
    lines = title("sinkproof", 3, version)
    lines += [".SH NAME", r"sinkproof \- judge an engine from a program of one's own", ".SH SYNOPSIS", ".nf",
              "#include <sinkproof.h>", "", r"cc program.c $(pkg\-config \-\-cflags \-\-libs sinkproof)", ".fi",
              ".SH DESCRIPTION", ".nf", roff(opening.strip()), ".fi"]
    for part in re.split(r"^// ---- ", body, flags=re.MULTILINE):
        name, _, text = part.partition(" -----")
        text = text.split("\n", 1)[1] if "\n" in text else text
        lines += [f".SH {roff(name.upper())}" if text else ".SH VERSION", ".nf", roff((text or part).strip()), ".fi"]
    return "\n".join([*lines, ".SH SEE ALSO", r"\fBsinkproof\fR(1), \fBsinkproof\-judge\fR(1)", ""])


# ---- completions -----------------------------------------------------------------------------------------

def bash(pages):
    cases = []
    for page in pages:
        spelled = " ".join(f"--{o.name}{'=' if o.argument else ''}" for o in page.options)
        cases.append(f"    {page.name}) options='{spelled}' ;;")
    words = {}
    for page in pages:
        for option in page.options:
            if words_of(option):
                words.setdefault((option.name, " ".join(words_of(option))), []).append(page.name)
    values = [f"    {'|'.join(f'{c}:--{name}' for c in where)}) words='{text}' ;;" for (name, text), where in words.items()]
    template = r"""
        # bash completion for sinkproof, made from its --help
        _sinkproof() {
            local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options= words=
            local command=${COMP_WORDS[1]} list=
            COMPREPLY=()
            if [ "$COMP_CWORD" -eq 1 ]; then
                mapfile -t COMPREPLY < <(compgen -W '@COMMANDS@ --help --version' -- "$current")
                return
            fi
            # "--engine=fa" comes as three words
            if [ "$current" = "=" ]; then current=; elif [ "$before" = "=" ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
            case $command:$before in
        @VALUES@
            esac
            if [ -n "$words" ]; then
                case $current in *,*) list=${current%,*}, ;; esac # the last word of a list
                mapfile -t COMPREPLY < <(compgen -P "$list" -W "$words" -- "${current##*,}")
                return
            fi
            case $command in
        @CASES@
            esac
            case $current in
            -*)
                mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
                if [ "${#COMPREPLY[@]}" -eq 1 ]; then case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac; fi
                ;;
            *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
            esac
            return 0
        }
        complete -F _sinkproof -o filenames sinkproof
    """
    text = textwrap.dedent(template).strip() + "\n"
    return (text.replace("@COMMANDS@", " ".join(p.name for p in pages)).replace("@VALUES@", "\n".join(values))
            .replace("@CASES@", "\n".join(cases)))


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_option(option):
    text = option.text.replace("[", "(").replace("]", ")").replace(":", r"\:")
    words = words_of(option)
    kind = f"({' '.join(words)})" if words else "_files" if option.argument in FILES else "_directories" if option.argument == "DIR" else " "
    if option.name == "points":
        kind = f"_values -s , point {' '.join(words)}"
    argument = f":{option.argument}:{kind}".replace("|", r"\|") if option.argument else ""
    equals = "=" if option.argument else ""
    spelled = [f"--{option.name}{equals}"] + ([f"-{option.short}{'+' if option.argument else ''}"] if option.short else [])
    return "\n".join(f"            {quoted(f'{s}[{text}]{argument}')} \\" for s in spelled)


def zsh(pages):
    lines = ["#compdef sinkproof", "# made from its --help", "", "_sinkproof() {", "    local -a commands", "    commands=("]
    lines += [f"        {quoted(p.name + ':' + p.summary.replace(':', chr(92) + ':'))}" for p in pages]
    lines += ["    )", "    if (( CURRENT == 2 )); then", "        _describe command commands", "        return", "    fi",
              "    case $words[2] in"]
    for page in pages:
        lines += [f"    {page.name})", "        shift words; (( CURRENT-- ))", "        _arguments -S \\"]
        lines += [zsh_option(o) for o in page.options]
        lines += ["            '*:file:_files'", "        ;;"]
    return "\n".join([*lines, "    esac", "}", "", '_sinkproof "$@"', ""])


def fish(pages):
    lines = ["# fish completion for sinkproof, made from its --help", ""]
    for page in pages:
        lines += [f"complete -c sinkproof -n __fish_use_subcommand -x -a {page.name} -d {quoted(page.summary)}"]
    for page in pages:
        for o in page.options:
            short = f" -s {quoted(o.short)}" if o.short else ""
            takes = ""
            if o.argument:
                takes = " -r" if o.argument in FILES or o.argument == "DIR" else " -x"
                takes += f" -a {quoted(' '.join(words_of(o)))}" if words_of(o) else ""
            text = o.text if len(o.text) <= 80 else textwrap.shorten(o.text, 80, placeholder=" ...")
            lines += [f"complete -c sinkproof -n '__fish_seen_subcommand_from {page.name}' -l {o.name}{short}{takes} -d {quoted(text)}"]
    return "\n".join([*lines, ""])


def main():
    program, version, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    whole, pages = read_program(program)
    files = {f"man1/sinkproof-{p.name}.1": command_page(p, version) for p in pages}
    files["man1/sinkproof.1"] = top_page(whole, pages, version)
    files["man3/sinkproof.3"] = library_page((ROOT / "audit/sinkproof.h").read_text(encoding="utf-8"), version)
    files["completions/sinkproof"] = bash(pages)
    files["completions/_sinkproof"] = zsh(pages)
    files["completions/sinkproof.fish"] = fish(pages)
    for name, text in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

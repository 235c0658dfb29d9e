# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs a Python script repeatedly, each time in a fresh state, but loads its imports once.

    python3 tests/shared/again.py SCRIPT     (tests/shared/again.sh starts it, and sends requests)

A request is a line of fields separated by TABs: the folder to run in, the file for the output, any
NAME=VALUE for the environment, then the arguments. A child process of its own answers each request, so
that no run sees another's memory; the answer is a line with its exit status.
"""
import os
import re
import sys


def run(script, code, question):
    """Runs in the child as `python3 SCRIPT ARGUMENTS` would."""
    folder, said, *words = question
    os.chdir(folder)
    for number in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if number == 1 else 0) | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    while words and re.match(r"[A-Z]+=", words[0]):
        name, value = words.pop(0).split("=", 1)
        os.environ[name] = value
    sys.argv = [script, *words]
    exec(code, {"__name__": "__main__", "__file__": script})
    sys.exit(0)


def main(script):
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    with open(script, encoding="utf-8") as file:
        code = compile(file.read(), script, "exec")
    exec(code, {"__name__": "loaded", "__file__": script})  # its imports
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(script, code, line.rstrip("\n").split("\t"))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status if status >= 0 else 128 - status, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

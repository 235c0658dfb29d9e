# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# A script of Python that a shell test runs some hundred times: `again_of SCRIPT`, once, and then
# `again ARGUMENTS` is what `python3 SCRIPT ARGUMENTS` would be, without its start (tests/shared/again.py).
# Sourced from the project's root, where $work is a folder of the test's own.
again_of() { # script
    mkfifo "$work/again-asked" "$work/again-answered" || exit 1
    python3 tests/shared/again.py "$1" <"$work/again-asked" >"$work/again-answered" &
    again_process=$!
    exec 6>"$work/again-asked" 7<"$work/again-answered"
}

# In the present folder; variables of the environment may stand in front as NAME=VALUE. Both what is said
# and what is complained of go to the standard output.
again() {
    {
        printf '%s' "$PWD"
        printf '\t%s' "$work/again-said" "$@"
        echo
    } >&6
    again_status=
    read -r again_status <&7
    cat "$work/again-said"
    return "${again_status:-99}"
}

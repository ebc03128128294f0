#!/usr/bin/env python3
"""Runs cases of the program misuse, each in a process of its own, and compares how it ended.

A case writes to stdout the line, as a regular expression, that is to be the only one on stderr before SIGABRT; nothing
if it is no misuse, and then it must end with 0 and be silent.
"""

import argparse
import os
import re
import signal
import subprocess
import sys


def run(program, *words):
    environment = {"RTSPAN_ARENA": "4G"} | dict(os.environ)
    return subprocess.run([program, *words], env=environment, capture_output=True, text=True, errors="replace")


def fault_of(program, case):
    """What is wrong about the case's end, or nothing."""
    ended = run(program, case)
    expected = ended.stdout.splitlines()
    status = -signal.SIGABRT if expected else 0
    if ended.returncode != status:
        return f"ended with {ended.returncode}, not {status}: {ended.stderr}"
    if len(expected) > 1:
        return f"went on after: {expected[0]}"
    if not re.fullmatch(expected[0] + "\n" if expected else "", ended.stderr):
        return f"wrote {ended.stderr!r}, not {expected}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="compare the names alone with the program's, all of them")
    parser.add_argument("program")
    parser.add_argument("cases", nargs="+", metavar="CASE")
    args = parser.parse_args()
    if args.names:
        known = run(args.program, "--list").stdout.split()
        faults = [f"{name}: not in both lists" for name in sorted(set(known) ^ set(args.cases))]
    else:
        faults = [f"{case}: {fault}" for case in args.cases if (fault := fault_of(args.program, case))]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

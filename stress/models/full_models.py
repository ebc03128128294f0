#!/usr/bin/env python3
"""The larger configurations of the models, one after the other: gigabytes and many minutes each."""

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
RUNS = [
    ["span.pml", "-D", "FREERS=2", "-D", "BUFFER=1"],
    ["span.pml", "-D", "FREERS=1", "-D", "BLOCKS=3"],
    ["span.pml", "-D", "FREERS=1", "-D", "JUMPS"],
    ["index_set.pml"],
    ["set.pml", "-D", "LIVES=2", "-D", "EVALUATED_AFTER_PUBLISH"],
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory-mib", type=int, default=16384, help="for each (default 16384)")
    options = parser.parse_args()
    common = ["-O2", "-C", "COLLAPSE", "--depth", "20000000", "--memory-mib", str(options.memory_mib)]
    results = [subprocess.run([FOLDER / "run_model", *run, *common], check=False).returncode for run in RUNS]
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run benchmarks by name: python -m bench [NAME ...] [--all] [--quick], or draw them: python -m bench report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.running import main


def _run() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="what to run; report draws the last runs; none lists what there is")
    parser.add_argument("--all", action="store_true", help="all but the large ones; those on Spark if it is installed")
    parser.add_argument("--quick", action="store_true", help="small workloads, noted in build/ and not in history")
    parser.add_argument("--output", type=Path, help="the page to write")
    given = parser.parse_args()
    try:
        return main(given.names, everything=given.all, quick=given.quick, output=given.output)
    except LookupError as error:
        parser.error(str(error.args[0]))


if __name__ == "__main__":
    sys.exit(_run())

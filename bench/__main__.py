"""Run benchmarks by name: python -m bench [slide rounds ...] [--quick]."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from bench import citibike, combination, disorder, mta, mta_large, products, rounds, slide, stores, tables
from bench.measuring import record

SUITES = {
    suite.NAME: suite for suite in (slide, rounds, products, disorder, combination, citibike, mta, stores, tables)
}
LARGE = {mta_large.NAME: mta_large}  # run only if they are named


def main() -> None:
    """Run what is asked for, show each row as it comes, and keep a line of history."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=f"any of {', '.join(SUITES | LARGE)}; all but the large if none is named"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, nothing recorded")
    arguments = parser.parse_args()
    for name in arguments.names or SUITES:
        suite = (SUITES | LARGE).get(name)
        if suite is None:
            parser.error(f"unknown benchmark {name!r}; choose from {', '.join(SUITES | LARGE)}")
        print(f"\n{name}: {(suite.__doc__ or '').splitlines()[0]}")
        rows = []
        for row in suite.run(quick=arguments.quick):
            print("  " + _shown(row))
            sys.stdout.flush()
            rows.append(row)
        if not arguments.quick:
            print(f"  recorded in {record(name, rows)}")


def _shown(row: dict[str, Any]) -> str:
    return "  ".join(f"{key} {value}" if key != "what" else f"{value:<22}" for key, value in row.items())


if __name__ == "__main__":
    main()

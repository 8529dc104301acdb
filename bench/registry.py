"""Everything that can be run, by name: the experiments of the papers, the peers, and suites of our own.

Experiments that need Spark are listed like the others, with needs="spark": they run where pyspark is installed. Suites
have no paper; their claims are the bars of DESIGN.md, and what a suite is there to show.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from bench.cycles import IS_READABLE
from bench.experiments import daba, engines, fiba, mta, on_spark, pba, peers, reactive, reference
from bench.experiments.contract import Claim, Experiment, Row, Size

SUITES = {  # module -> what it shows; those of our own, older than the experiments, and frozen like them
    "slide": "Fixed windows over 10^7 numbers, beside a copy of the array, and a user's aggregate",
    "rounds": "Rounds of evict, insert and query: every in-order algorithm, compiled",
    "products": "Several aggregates in one window: what one more costs",
    "disorder": "Finger trees: rows in order, their memory, and rows in bulk",
    "combination": "DABA Lite behind a small finger tree, for bounded disorder",
    "citibike": "A year of bicycle rides: time windows in order of stop time and in file order",
    "mta": "The monoid tree AMTA beside queues, at any size of window",
    "stores": "Windows in a store beside windows in memory",
    "tables": "One declaration over tables of many keys, beside the peers",
}
LARGE = {"mta_large": "The monoid trees at 2^25 elements, which takes gigabytes"}
ON_SPARK = {
    "spark": "Tables of Spark: our windows against its own",
    "stream": "Streams: answers for every event beside Spark's hopping windows",
}


def _suite(module: str, title: str, **further: Any) -> Experiment:
    def run(size: Size) -> Iterator[Row]:
        found = importlib.import_module(f"bench.{module}")
        yield from found.run(quick=size > Size.FULL)

    def claims(rows: Sequence[Row]) -> list[Claim]:
        return getattr(importlib.import_module(f"bench.{module}"), "claims", _none)(rows)

    return Experiment(module.replace("_", "-"), title, run, claims=claims, **further)


def _none(rows: Sequence[Row]) -> list[Claim]:
    return []


EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        *mta.EXPERIMENTS, *daba.EXPERIMENTS, *reactive.EXPERIMENTS, *pba.EXPERIMENTS, *fiba.EXPERIMENTS,
        *peers.EXPERIMENTS, *reference.EXPERIMENTS,
        *on_spark.EXPERIMENTS, *engines.EXPERIMENTS,
        *(_suite(*each) for each in SUITES.items()),
        *(_suite(*each, is_large=True) for each in LARGE.items()),
        *(_suite(*each, needs="spark") for each in ON_SPARK.items()),
    )
}  # fmt: skip


def is_on_spark(experiment: Experiment) -> bool:
    """Whether an experiment starts Spark."""
    return experiment.needs in ("spark", "engines")


def lacks(experiment: Experiment) -> str:
    """What this machine has not that an experiment needs; nothing if it can run."""
    if is_on_spark(experiment) and find_spec("pyspark") is None:
        return "pyspark is not installed: make bench-spark installs it"
    if experiment.needs == "engines" and not any(map(engines.python_of, engines.ENVIRONMENTS)):
        return f"there is neither Flink nor Pathway in {engines.ENGINES}: make bench-engines installs them"
    if experiment.needs == "reference":
        return reference.lack()
    if experiment.needs == "x86" and not IS_READABLE:
        return "only x86 processors let a program read their clock"
    return ""

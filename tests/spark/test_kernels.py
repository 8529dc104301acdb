"""Machine code on workers: made once, found again by later workers, loaded once in each of them."""

from __future__ import annotations

import json

from tests.spark.programs import run

CODE = """
import json, os, sash
from pathlib import Path
from pyspark.sql import functions as F
spark = sash.spark.session(master="local[2]", memory="512m", settings={
    "spark.sql.shuffle.partitions": 4, "spark.python.worker.reuse": %s, "spark.sql.adaptive.enabled": False})
df = spark.range(20_000).select((F.col("id") %% 50).alias("k"), "id", (F.col("id") * 7 %% 13).alias("x"))

@sash.aggregate(state={"n": "i8", "total": "i8"})
class Even:
    identity = (0, 0)
    def lift(x): return (1, x) if x %% 2 == 0 else (0, 0)
    def combine(older, newer): return (older[0] + newer[0], older[1] + newer[1])
    def lower(s): return s[1]

spec = sash.window(by="k", order_by="id").rows(30).agg(total=sash.sum("x"), even=sash.agg(Even, "x"))
answered = spec(df)
def kept():
    paths = Path(os.environ["SASH_CACHE_DIR"]).rglob("*")
    return {str(path): path.stat().st_mtime_ns for path in paths if path.is_file()}

before = kept()
total, even = answered.agg(F.sum("total"), F.sum("even")).first()
print(json.dumps({"total": total, "even": even, "made_by_workers": len(kept().items() - before.items()),
                  "made": len(kept())}))
"""


def test_workers_find_the_machine_code_that_the_driver_has_made(tmp_path):
    first = json_of(run(CODE % True, SASH_JIT="1", SASH_CACHE_DIR=str(tmp_path)))
    assert first["made"] > 0
    assert first["made_by_workers"] == 0  # nothing is compiled in any of four tasks
    later = json_of(run(CODE % False, SASH_JIT="1", SASH_CACHE_DIR=str(tmp_path)))  # a new worker for each task
    assert later["made"] == first["made"]
    assert later["made_by_workers"] == 0
    windows = [[(i * 7 % 13) for i in range(k, 20_000, 50)] for k in range(50)]
    total = sum(sum(values[max(0, j - 29) : j + 1]) for values in windows for j in range(len(values)))
    even = sum(
        sum(x for x in values[max(0, j - 29) : j + 1] if x % 2 == 0) for values in windows for j in range(len(values))
    )
    assert (first["total"], first["even"]) == (later["total"], later["even"]) == (total, even)


def json_of(text):
    return json.loads(text.splitlines()[-1])

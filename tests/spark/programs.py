"""Programs of their own: a session that others have started before cannot be started differently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(code, *, timeout=180, **environment):
    """Run code in a fresh interpreter; what it printed. A variable that is None is taken away."""
    kept = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SASH_JIT": "0", **environment}
    kept = {name: value for name, value in kept.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=timeout, env=kept, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout

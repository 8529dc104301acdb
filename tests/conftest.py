"""Hypothesis profiles: how long to look. SASH_HYPOTHESIS_PROFILE chooses one of them."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A first example may have to compile: seconds, which are no sign of anything.
COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("dev", max_examples=25, stateful_step_count=30, **COMMON)
settings.register_profile("ci", max_examples=100, **COMMON)
settings.register_profile("nightly", max_examples=5000, **COMMON)
settings.load_profile(os.environ.get("SASH_HYPOTHESIS_PROFILE", "dev"))

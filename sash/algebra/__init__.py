"""WHAT is aggregated: lift, combine, lower; their laws; the aggregates built in."""

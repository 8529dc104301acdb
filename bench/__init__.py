"""Benchmarks: fixed workloads with names that never change; every ratio is of one run."""

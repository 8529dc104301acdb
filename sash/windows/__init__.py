"""WHEN: which rows belong to which window."""

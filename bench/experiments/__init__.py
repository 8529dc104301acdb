"""The tables and figures of the five papers, and the peers, as experiments: what was said, what is measured here."""

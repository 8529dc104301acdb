"""How one source becomes machine code. The only package that imports Numba."""

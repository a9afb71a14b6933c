"""For the tests and for the examples in docstrings: what must be so before the first of them runs."""

from retrograd.core.quiet import restore_names

restore_names()  # see quiet.py: NumPy's deprecation warnings are heard, and doctest finds the examples in kernels

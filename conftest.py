"""For the tests and for the examples in docstrings: what must be so before the first of them runs."""

from importlib.util import find_spec

from retrograd.core.quiet import restore_names

restore_names()  # see quiet.py: NumPy's deprecation warnings are heard, and doctest finds the examples in kernels

# Modules on top of packages that retrograd does not bring cannot be imported to look for examples.
collect_ignore = [] if find_spec("tensorboard") else ["src/retrograd/utils/tensorboard"]

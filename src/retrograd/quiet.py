"""IEEE arithmetic without NumPy's warnings.

Kernels divide by zero and overflow as IEEE arithmetic says, and torch says nothing about it.  NumPy warns, unless it is
told not to in every call (which costs more than most small kernels) or for the whole process (which is not ours to
do).  So:

* at import, a warnings filter for warnings that NumPy attributes to this package's own modules;
* where somebody turned warnings into errors in front of that filter, a kernel that raised is run again with NumPy's
  checks off;
* what must not run twice (a write in place, a backward pass) is run with the checks off from the start,
  when the filter is no longer the first one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"retrograd\.")
_filter = warnings.filters[0]


def quietly(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call `function` with NumPy's floating-point checks off."""
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


def once(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function that must not run twice."""
    filters = warnings.filters
    if filters and filters[0] is _filter:
        return function(*args, **kwargs)
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)

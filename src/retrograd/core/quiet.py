"""IEEE arithmetic without NumPy's warnings.

Kernels divide by zero and overflow as IEEE arithmetic says, and torch says nothing about it.  NumPy warns, unless it is
told not to in every call (which costs more than most small kernels) or for the whole process (which is not ours to
do).  So:

* the modules that compute have no name (`drop_names`): Python drops a warning that comes from such a module, as it
  does in those that are being torn down at exit;
* at import, a warnings filter for warnings that NumPy attributes to the package's other modules;
* where somebody turned warnings into errors in front of that filter, a kernel that raised is run again with NumPy's
  checks off;
* what must not run twice (a write in place, a backward pass) is run with the checks off from the start,
  when somebody has put such a filter in front of ours (a single ufunc that writes in place has written when it
  warns, so that its warning can be dropped).

What a missing name costs: all warnings of such a module are dropped, also those by which NumPy says that what we call
will go away; and tools that go by a module's name (doctest) find none. So our own tests give the names back
(`restore_names`, in conftest.py): a DeprecationWarning in a kernel is an error there, and the examples in kernels
are run. tests/test_warnings.py takes them away again, to see that nothing is heard.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

#: Has each context filters of its own (Python 3.14, by default in free-threaded builds), where `warnings.filters` are
#: those of all others?
_by_context: bool = getattr(sys.flags, "context_aware_warnings", False)

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"retrograd\.")
_filter = (warnings._get_filters() if _by_context else warnings.filters)[0]  # type: ignore[attr-defined]


#: What `is_quiet` last saw, (list, length, first filter, answer): looked at again only when the filters change.
_seen: tuple[Any, int, Any, bool] = (None, 0, None, False)


def is_quiet() -> bool:
    """Does no filter in front of ours turn NumPy's warnings in this package into something else?"""
    global _seen
    filters: Any = warnings._get_filters() if _by_context else warnings.filters  # type: ignore[attr-defined]
    seen = _seen
    if filters is not seen[0] or len(filters) != seen[1] or filters[0] is not seen[2]:
        answer = False
        for entry in filters:
            if entry is _filter:
                answer = True
                break
            if entry[0] != "ignore" and issubclass(RuntimeWarning, entry[2]):
                break
        seen = _seen = (filters, len(filters), filters[0] if filters else None, answer)
    return seen[3]


#: The modules whose names are dropped, by name.
_unnamed: dict[str, ModuleType] = {}


def drop_names(*packages: str) -> None:
    """Take their names from the modules below `packages`, once they are all imported."""
    for name, module in list(sys.modules.items()):
        if name.startswith(packages):
            _unnamed[name] = module
            vars(module)["__name__"] = None


def restore_names() -> None:
    """Give the modules their names back: for tests, which want to hear of warnings, and doctest."""
    for name, module in _unnamed.items():
        vars(module)["__name__"] = name


def quietly(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call `function` with NumPy's floating-point checks off."""
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


def once(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function that must not run twice."""
    return function(*args, **kwargs) if is_quiet() else quietly(function, *args, **kwargs)

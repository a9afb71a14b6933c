"""What conftest.py of the root has set aside from the garbage collector is there for captures: see below."""

from __future__ import annotations

import gc
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any, nextitem: Any) -> Any:
    """A capture asks how much is set aside, and is told by counting, which would take longer than most captures do."""
    gc.unfreeze()
    result = yield
    if nextitem is not None and nextitem.path.parent != item.path.parent:
        gc.collect()
        gc.freeze()
    return result

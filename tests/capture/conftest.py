"""What conftest.py of the root has set aside from the garbage collector is not set aside while captures are tested."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any, nextitem: Any) -> Any:
    """A capture asks how much is set aside, and is told by counting, which would take longer than most captures do."""
    if item.path.parent != HERE:  # pytest calls this for the tests of all folders
        return (yield)
    gc.unfreeze()
    result = yield
    if nextitem is not None and nextitem.path.parent != HERE:
        gc.collect()
        gc.freeze()
    return result

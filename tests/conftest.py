"""Fixtures that tests of several files share."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@pytest.fixture(params=["retrograd", pytest.param("torch", marks=pytest.mark.parity)])
def torch(request: pytest.FixtureRequest) -> Any:
    """retrograd and, where it is installed, torch: what a test says of the one must be true of the other."""
    if request.param == "retrograd":
        return importlib.import_module("retrograd")
    module = pytest.importorskip("torch")
    module.set_num_threads(1)
    return module


@pytest.fixture
def clean_state() -> Iterator[None]:
    """The thread's modes are after a test what they were before it."""
    from retrograd.core import dtypes
    from retrograd.core.state import local

    yield
    state = local.state
    assert state.grad_enabled is True
    assert state.interceptor is None
    assert state.graph_task is None
    assert state.current_node is None
    assert dtypes.default == ["float32", "complex64"]


def _is_ours(thing: Any) -> bool:
    import numpy as np

    cls = type(thing)
    return cls.__module__.startswith("retrograd") or issubclass(cls, np.ndarray)


@pytest.fixture
def no_cycles() -> Iterator[Callable]:
    """``with no_cycles():`` fails if its body leaves a reference cycle with a tensor, node or array of ours in it."""

    @contextmanager
    def check() -> Iterator[None]:
        gc.collect()
        gc.freeze()  # what was there before is not looked at, nor later: conftest.py says why
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            yield
            gc.collect()
            left = [thing for thing in gc.garbage if _is_ours(thing)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
        assert not left, f"in a reference cycle: {[type(thing).__name__ for thing in left]}"

    enabled = gc.isenabled()
    gc.disable()
    yield check
    if enabled:
        gc.enable()


@pytest.fixture
def all_cases(request: pytest.FixtureRequest) -> None:
    """For tests of what all cases of another test have shown, as whether its exceptions are all needed."""
    if request.config.getoption("--every") > 1:
        pytest.skip("--every left some cases out")


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)

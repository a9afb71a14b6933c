"""The number of threads an operator may use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from retrograd.core import threads


@pytest.fixture(autouse=True)
def restored():
    before = threads.get_num_threads(), threads.get_num_interop_threads()
    yield
    threads.set_num_threads(before[0])
    threads.set_num_interop_threads(before[1])


def test_numbers_are_kept_apart():
    threads.set_num_threads(3)
    threads.set_num_interop_threads(5)
    assert threads.get_num_threads() == 3
    assert threads.get_num_interop_threads() == 5


@pytest.mark.parametrize("setter", [threads.set_num_threads, threads.set_num_interop_threads])
def test_what_is_not_a_positive_int_is_refused(setter):
    before = threads.get_num_threads(), threads.get_num_interop_threads()
    for value in (0, -1):
        with pytest.raises(RuntimeError, match=f"{setter.__name__} expects a positive integer"):
            setter(value)
    for value in (1.5, "2", True):
        with pytest.raises(RuntimeError, match=f"{setter.__name__} expects an int, but got {type(value).__name__}"):
            setter(value)
    assert (threads.get_num_threads(), threads.get_num_interop_threads()) == before


def test_environment_sets_the_number_at_start(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    code = "import retrograd.core.threads as t; print(t.get_num_threads())"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "7"


def test_blas_is_told():
    ctypes = pytest.importorskip("ctypes")
    from numpy._core import _multiarray_umath

    getter = getattr(ctypes.CDLL(_multiarray_umath.__file__), "scipy_openblas_get_num_threads64_", None)
    if getter is None:
        pytest.skip("NumPy was not built with its own OpenBLAS")
    threads.set_num_threads(1)
    assert getter() == 1
    threads.set_num_threads(2)
    assert getter() == 2

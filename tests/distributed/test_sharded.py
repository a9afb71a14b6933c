"""Pipelines, sharded parameters and sharded optimizers against one process: programs/check_sharded.py."""

from __future__ import annotations

import pytest

from distributed.launch import needs_mpi, passes


@pytest.mark.parametrize("count", [pytest.param(2, marks=needs_mpi), pytest.param(4, marks=needs_mpi)])
def test_by_mpi(count: int) -> None:
    passes(count, "mpi", "check_sharded.py")


def test_by_sockets() -> None:
    passes(2, "gloo", "check_sharded.py")

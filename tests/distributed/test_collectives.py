"""Collective operations, by MPI and by sockets: programs/check_collectives.py checks itself."""

from __future__ import annotations

import pytest

from distributed.launch import needs_mpi, passes


@pytest.mark.parametrize("count", [pytest.param(2, marks=needs_mpi), pytest.param(4, marks=needs_mpi)])
def test_by_mpi(count: int) -> None:
    passes(count, "mpi", "check_collectives.py")


def test_by_sockets() -> None:
    passes(3, "gloo", "check_collectives.py")

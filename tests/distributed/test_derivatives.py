"""Operations with gradients: programs/check_derivatives.py compares them with finite differences across processes."""

from __future__ import annotations

from distributed.launch import needs_mpi, passes

pytestmark = needs_mpi


def test_on_two() -> None:
    passes(2, "mpi", "check_derivatives.py")


def test_on_four() -> None:
    some = ("sum", "product", "reduce_scatter", "broadcast", "gather", "all_to_all", "messages", "chain")
    passes(4, "mpi", "check_derivatives.py", *some)

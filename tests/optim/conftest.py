"""Fixtures of the tests of optimizers."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd


@pytest.fixture
def doubles() -> Any:
    """Both packages in float64."""
    changed = []

    def change(torch: Any) -> None:
        for package in (retrograd, torch):
            changed.append(package)
            package.set_default_dtype(package.float64)

    yield change
    for package in changed:
        package.set_default_dtype(package.float32)

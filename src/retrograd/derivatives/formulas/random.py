"""Formula helpers of draws."""

from __future__ import annotations

from typing import Any


def dirichlet_backward(ops: Any, grad: Any, self: Any, result: Any) -> Any:
    """One part moves with its concentration, and the others make room in proportion."""
    slope = ops.dirichlet_grad(result, self, ops.expand(ops.sum(self, -1, True), self.shape))
    return slope * (grad - ops.sum(result * grad, -1, True))

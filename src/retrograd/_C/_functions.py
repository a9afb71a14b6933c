"""``torch._C._functions``: nodes that belong to no operator."""

from __future__ import annotations

from ..autograd.accumulate_grad import AccumulateGrad
from ..autograd.basic_nodes import DelayedError, Error, GraphRoot, UndefinedGrad

__all__ = ["AccumulateGrad", "DelayedError", "Error", "GraphRoot", "UndefinedGrad"]

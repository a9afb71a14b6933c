"""Parameter: a leaf tensor that is meant to be trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..printing import tensor_str
from ..tensor import Tensor, new


class Parameter(Tensor):
    """A tensor that requires grad unless told otherwise; results of operations on it are plain Tensors.

    >>> import retrograd as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if data is None:
            array = np.empty((0,), dtypes.default[0])
        elif isinstance(data, Tensor):
            array = data._data  # shared, as in torch
        else:
            raise TypeError(f"Parameter(): argument 'data' must be Tensor, not {type(data).__name__}")
        result = new(cls)
        result._data = array
        result._vc = None if data is None else data.detach()._vc
        result._meta = result._edge = None
        if requires_grad:
            result.requires_grad_()
        return result

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + tensor_str(self, tensor_contents)

"""Parameter: a leaf tensor that is meant to be trained; Buffer: one that is state but not trained."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes
from ..tensor import Tensor, new, wrap
from ..tensor.printing import tensor_str


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


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and "persistent" in instance.__dict__


class Buffer(metaclass=_BufferMeta):
    """A tensor that a Module registers as a buffer when it is assigned to an attribute of it.

    What ``Buffer(data)`` gives is a plain Tensor on the memory of `data`, marked.

    >>> import retrograd as torch
    >>> m = torch.nn.Module()
    >>> m.mean = torch.nn.Buffer(torch.zeros(2), persistent=False)
    >>> list(m.buffers()), list(m.state_dict())
    ([tensor([0., 0.])], [])
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        result = wrap(np.empty((0,), dtypes.default[0])) if data is None else data.detach()
        if data is not None and data.requires_grad:
            result.requires_grad_()
        result.__dict__["persistent"] = persistent
        return result

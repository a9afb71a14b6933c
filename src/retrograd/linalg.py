"""``torch.linalg``: decompositions, solutions, determinants, norms and products of matrices, batched.

What stands here is what the table and `ops/registry.py` say: operators called ``linalg_NAME``, and others under a
second name.

>>> import retrograd as torch
>>> A = torch.tensor([[2., 1.], [1., 3.]])
>>> torch.linalg.solve(A, torch.tensor([3., 4.]))
tensor([1., 1.])
"""

from .kernels.linalg_checks import LinAlgError as LinAlgError
from .ops import namespace as _namespace  # noqa: F401  # (declares the operators)
from .ops.linalg_calls import public as _public
from .ops.registry import SPACES as _SPACES

globals().update({_name: _public(_name, _function) for _name, _function in _SPACES["linalg"].items()})
__all__ = sorted(["LinAlgError", *_SPACES["linalg"]])


def __getattr__(name: str) -> object:
    raise AttributeError(f"module 'torch.linalg' has no attribute {name!r}")

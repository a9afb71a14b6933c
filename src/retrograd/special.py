"""``torch.special``: special functions under the names of scipy.special.

What stands here is what the table and `ops/registry.py` say: operators called ``special_NAME``, and others under a
second name.

>>> import retrograd as torch
>>> torch.special.xlogy(torch.tensor([0., 2.]), torch.tensor([0., 1.]))
tensor([0., 0.])
"""

from .ops import namespace as _namespace  # noqa: F401  # (declares the operators)
from .ops.registry import SPACES as _SPACES

globals().update(_SPACES["special"])
__all__ = sorted(_SPACES["special"])

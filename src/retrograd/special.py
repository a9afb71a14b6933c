"""``torch.special``: special functions under the names of scipy.special.

>>> import retrograd as torch
>>> torch.special.xlogy(torch.tensor([0., 2.]), torch.tensor([0., 1.]))
tensor([0., 0.])
"""

from __future__ import annotations

from typing import Any

from ._generated import functions as _table
from .ops import namespace as ops
from .ops.checked import checked as _checked
from .ops.checked import implementation as _implementation
from .ops.support import renamed as _renamed

_SAME = (
    "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit", "logsumexp",
    "polygamma", "round", "sinc", "softmax", "xlogy",
)  # fmt: skip
_RENAMED = {
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "modified_bessel_i0": "i0",
    "modified_bessel_i1": "special_i1", "multigammaln": "mvlgamma", "psi": "digamma",
}  # fmt: skip
_PREFIX = "special_"

_functions: dict[str, Any] = {name: getattr(ops, name) for name in _SAME}
_functions |= {name: getattr(ops, target) for name, target in _RENAMED.items()}
_functions |= {name.removeprefix(_PREFIX): f for name, f in vars(ops).items() if name.startswith(_PREFIX)}
for _name, _function in _functions.items():
    if _function in _table.PUBLIC.values():
        _functions[_name] = _renamed(_function, _name)
    else:
        _functions[_name] = _checked(_implementation(_function), _name, f"special.{_name}")
globals().update(_functions)

__all__ = sorted(_functions)

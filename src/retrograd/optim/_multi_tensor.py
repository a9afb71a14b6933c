"""``torch.optim._multi_tensor``: optimizers that are asked for their ``foreach`` implementation from the start."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from .. import optim


def _foreach(cls: Any) -> Any:
    return type("NewCls", (cls,), {"__init__": partialmethod(cls.__init__, foreach=True), "__module__": __name__})


Adadelta, Adagrad, Adam, Adamax, AdamW = map(
    _foreach, (optim.Adadelta, optim.Adagrad, optim.Adam, optim.Adamax, optim.AdamW)
)
ASGD, NAdam, RAdam, RMSprop, Rprop, SGD = map(
    _foreach, (optim.ASGD, optim.NAdam, optim.RAdam, optim.RMSprop, optim.Rprop, optim.SGD)
)

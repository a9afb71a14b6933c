"""``torch.optim``: what changes parameters by their gradients. Each optimizer is imported when it is first used."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import lr_scheduler, swa_utils
    from ._adafactor import Adafactor
    from ._muon import Muon
    from ._stateless import swap_in_optimizer_params_and_state
    from .adadelta import Adadelta
    from .adagrad import Adagrad
    from .adam import Adam
    from .adamax import Adamax
    from .adamw import AdamW
    from .asgd import ASGD
    from .lbfgs import LBFGS
    from .nadam import NAdam
    from .optimizer import Optimizer
    from .radam import RAdam
    from .rmsprop import RMSprop
    from .rprop import Rprop
    from .sgd import SGD
    from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

#: Names whose modules are not their own in small letters.
_MODULES = {
    "Adafactor": "_adafactor",
    "Muon": "_muon",
    "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}


#: Modules that are found without having been imported.
_SUBMODULES = {_MODULES.get(name, name.lower()) for name in __all__} | {"_functional", "_multi_tensor"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return _import_module("." + name, __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module("." + _MODULES.get(name, name.lower()), __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

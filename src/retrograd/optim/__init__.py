"""``torch.optim``: what changes parameters by their gradients."""

from . import optimizer
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "optimizer"]

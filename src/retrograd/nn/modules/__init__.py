"""torch's path to the modules: ``torch.nn.modules.module``; they live in ``nn/module.py`` and ``nn/layers``."""

from ..containers import *
from ..layers.activation import *
from ..layers.dropout import *
from ..layers.linear import *
from ..layers.loss import *
from ..layers.normalization import *
from ..layers.shape import *
from ..module import Module
from . import module

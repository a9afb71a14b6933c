"""``torch.nn``: modules, layers and losses, their functions, initialisation and utilities."""

from . import functional, init, parallel, utils
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .layers.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from .layers.dropout import Dropout
from .layers.linear import Bilinear, Embedding, Identity, Linear
from .layers.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    PairwiseDistance,
    SmoothL1Loss,
)
from .layers.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    RMSNorm,
)
from .layers.shape import Flatten, Unflatten
from .module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter

from . import modules  # isort: skip  # after what it names

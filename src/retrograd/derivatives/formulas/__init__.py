"""Helpers that derivative formulas call, one file a family.

Each takes the namespace as its first argument: ``ops`` is ``kernels`` in the ordinary backward pass, where everything
is an array, and the operators when the pass is itself recorded, where everything is a Tensor.
The text is the same, so the two cannot disagree.
"""

from .conv import *
from .fft import *
from .index import *
from .linalg import *
from .nn import *
from .pointwise import *
from .reduce import *
from .shape import *
from .special import *

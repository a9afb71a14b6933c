"""Helpers that derivative formulas call, one file per family.

Each takes the namespace as its first argument: ``ops`` is ``kernels`` in the ordinary backward pass, where everything
is an array, and the operators when the pass is itself recorded, where everything is a Tensor.
The text is the same, so the two cannot disagree.
"""

from .conv import *
from .decompositions import *
from .fft import *
from .index import *
from .linalg import *
from .matrix_functions import *
from .nn import *
from .normalization import *
from .pointwise import *
from .pool import *
from .reduce import *
from .resample import *
from .shape import *
from .special import *
from .statistics import *

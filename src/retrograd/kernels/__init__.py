"""What operators compute, on bare arrays: see README.md in this folder.

This namespace is the "array namespace" of derivative formulas: every kernel by its operator's name.
"""

from typing import TYPE_CHECKING, Any

import numpy as ufuncs
from numpy import ndarray

from .activation import *
from .arithmetic import *
from .attention import *
from .bitwise import *
from .comparison import *
from .complex_parts import *
from .conv import *
from .conv_tbc import *
from .creation import *
from .decompositions import *
from .dims import *
from .distance import *
from .einsum import *
from .embedding import *
from .fft import *
from .gather import *
from .index import *
from .losses import *
from .mask import *
from .matrix_functions import *
from .memory import *
from .normalization import *
from .number_parts import *
from .pointwise import *
from .pool import *
from .powers import *
from .products import *
from .promotion import as_array as as_array
from .promotion import cast_number as cast_number
from .promotion import element as element
from .random import *
from .rearrange import *
from .recurrent import *
from .reduce import *
from .resample import *
from .scan import *
from .shape import *
from .softmax import *
from .solve import *
from .sort import *
from .sparse import *
from .special import *
from .statistics import *
from .storage import *
from .trigonometry import *

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

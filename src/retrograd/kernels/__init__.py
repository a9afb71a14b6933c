"""What operators compute, on bare arrays: see README.md in this folder.

This namespace is the "array namespace" of derivative formulas: every kernel by its operator's name.
"""

from typing import TYPE_CHECKING, Any

import numpy as ufuncs
from numpy import ndarray

from .activation import *
from .comparison import *
from .complex_parts import *
from .conv import *
from .conv_tbc import *
from .creation import *
from .decompositions import *
from .dims import *
from .draws import *
from .einsum import *
from .fft import *
from .fold import *
from .fractional_pool import *
from .index import *
from .ldl import *
from .linalg import *
from .matrix_functions import *
from .nn import *
from .normalization import *
from .number_parts import *
from .pointwise import *
from .pool import *
from .promotion import as_array as as_array
from .promotion import cast_number as cast_number
from .promotion import element as element
from .rearrange import *
from .reduce import *
from .resample import *
from .shape import *
from .sort import *
from .special import *
from .special_functions import *
from .statistics import *
from .storage import *

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

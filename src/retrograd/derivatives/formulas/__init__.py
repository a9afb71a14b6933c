"""Helpers that derivative formulas call, one file per family.

Each takes the namespace as its first argument: ``ops`` is ``kernels`` in the ordinary backward pass, where everything
is an array, and the operators when the pass is itself recorded, where everything is a Tensor.
The text is the same, so the two cannot disagree.
"""

from .activation import *
from .arithmetic import *
from .attention import *
from .comparison import *
from .complex_parts import *
from .conv import *
from .decompositions import *
from .distance import *
from .embedding import *
from .fft import *
from .gather import *
from .losses import *
from .mask import *
from .matrix_functions import *
from .normalization import *
from .number_parts import *
from .pool import *
from .powers import *
from .products import *
from .random import *
from .rearrange import *
from .recurrent import *
from .reduce import *
from .resample import *
from .scan import *
from .shape import *
from .shared import *
from .softmax import *
from .solve import *
from .special import *
from .trigonometry import *

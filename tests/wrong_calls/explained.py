"""What remains between torch's verdicts on wrong calls and ours, and why.

Each entry is a regular expression for a whole call (``function: what is wrong [the right call]``), the most calls that
it may explain, and the reason. One that explains none has to go.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from wrong_calls.mutations import Call


@dataclass(frozen=True)
class Reason:
    """Calls of one class that may remain."""

    calls: str
    most: int
    why: str


LEAKS = [
    Reason(r"nn\.functional\.embedding: ", 6, "torch raises an AssertionError about padding_idx, too"),
]

ACCEPTED = [
    Reason(r"\S*logsumexp: ", 6, "no dimensions at all: torch's own kernel trips over keepdim, ours reduces all"),
    Reason(r"(resize_as_|Tensor\.resize_): ", 3, "torch cannot resize memory that it shares with NumPy; ours can"),
    Reason(r"isin: (test_)?element=", 4, "beside a tensor, a number under a name of its own is not looked at"),
    Reason(r"index_put: ", 4, "formulas give it a number for its values; the method refuses one"),
    Reason(r"(gru|lstm|rnn_\w+): ", 8, "states and weights that broadcast: the whole network does not check each"),
    Reason(r"linalg\.(vector_)?norm: .*10\*\*30", 2, "an order of more than 64 bits, after one of its class was right"),
    Reason(r"convolution: ", 5, "output_padding is not looked at unless the convolution is transposed"),
    Reason(r"lobpcg: ", 1, "everything is computed at once, so that a first guess is not looked at"),
    Reason(r"(Tensor\.)?(std|var): without dim", 4, "unbiased and keepdim mean the same without a dim"),
    Reason(r"flip: argument 2", 4, "one int for a list of ints, as the method takes it"),
    Reason(r"(Tensor\.)?(stft): ", 3, "torch reads one of its own strides wrongly, or has a window of another size"),
    Reason(r"segment_reduce: ", 3, "torch does not wrap the axis round, and wants offsets of the rank of the data"),
    Reason(r"nn\.functional\.(upsample|\w*max_pool2d|adaptive\w+): ", 6, "one number stands for as many as are wanted"),
    Reason(r"nn\.functional\.(max_unpool\dd|gumbel_softmax|upsample\w*): ", 5, "an option that is not looked at here"),
    Reason(r"(nn\.functional\.\w+|max_pool1d|randint_like|normal|linspace): .* (is|tensor|complex128|int64|1j)", 12,
           "torch has no kernel for the dtype, or no place for its result; ours computes"),
    Reason(r"(cumulative_)?trapezoid: dx", 2, "True is 1 where a number is wanted"),
    Reason(r"(finfo|cdist|norm|randint|randint_like|(Tensor\.)?round_?): .* is None", 8, "None is the default"),
    Reason(r"tensordot: ", 2, "one list of dimensions of two: torch reads an int, and refuses it by accident"),
    Reason(r"(feature_alpha_dropout_?|instance_norm): ", 4, "a shape that the function can compute with"),
    Reason(r"(range|fft\.rfftfreq): ", 2, "an empty range"),
    Reason(r"Tensor\.type: ", 2, "a tensor for a dtype: torch's older types are callable"),
]  # fmt: skip


#: What torch takes and we do not: nothing here has a value that one could want.
REFUSED = [
    Reason(r"triplet_margin_loss: argument 4 is -7", 1, "a negative margin, as nn.functional's refuses it"),
    Reason(r"(\w+_loss|kl_div|grid_sampler\w*): (argument \d|reduction)(=| is )(-7|3|10\*\*15)", 37,
           "a number that is no reduction, interpolation or padding mode (top-level losses, grid samplers)"),
    Reason(r"nn\.functional\.poisson_nll_loss: reduction=", 5, "torch makes the error, and does not raise it"),
    Reason(r"(special\.)?(shifted_)?(chebyshev|hermite)\w+: .*10\*\*15", 10, "NaN in torch, a degree without end"),
    Reason(r"(special\.|Tensor\.)?round_?: decimals is 10\*\*15", 5, "NaN in torch, more decimals than there are"),
    Reason(r"(\w+|nn\.functional\.normalize): out=2\.5", 9, "torch writes the result to a number that nobody sees"),
    Reason(r"linalg\.solve_triangular: ", 6, "a mixture of dtypes that torch's kernel does not look at"),
    Reason(r"(nn\.functional\.)?(instance_norm|native_batch_norm|batch_norm): ", 10,
           "weights of another dtype or size (torch reads past their end), a negative eps"),
    Reason(r"nn\.functional\.hardtanh_: ", 7, "bounds that are upside down: hardtanh refuses them, in torch too"),
    Reason(r"affine_grid_generator: ", 2, "affine_grid refuses what are no floats, in torch too"),
    Reason(r"(nn\.functional\.)?\w*(cross_entropy|binary_cross_entropy_with_logits): ", 5,
           "a negative label_smoothing; targets and weights whose dtype the loss could not have"),
    Reason(r"\S*(bincount|fill_?|native_dropout|soft_margin_loss|adaptive_avg_pool1d|gradient|conv_tbc): ", 12,
           "complex numbers that lose their imaginary part, bools that are negated"),
    Reason(r"(nn\.functional\.)?ctc_loss: argument 2 is tensor", 2, "torch reads the bits of floats as labels"),
    Reason(r"(nn\.functional\.)?embedding_bag: ", 6,
           "bools for indices, whose bytes torch reads as longer ints; offsets that do not cover the indices"),
    Reason(r"nn\.functional\.fractional_max_pool\dd(_with_indices)?: argument 2 is -7", 6,
           "a negative size of the window"),
    Reason(r"(Tensor\.)?istft: length=-7", 2, "a negative length"),
    Reason(r"lobpcg: (niter|method)=", 6, "an option of a method that is not used"),
    Reason(r"broadcast_shapes: ", 3, "None is no shape"),
    Reason(r"einsum: argument 5 is {}", 1, "a dictionary is no list of subscripts"),
    Reason(r"nn\.functional\.max_unpool\dd: ", 4, "True and 2.5 are no sizes; torch's arithmetic happens to pass them"),
    Reason(r"linalg\.pinv: rtol is tensor", 1, "one tolerance a matrix, and there are two for one"),
]  # fmt: skip


def remaining(calls: list[Call], reasons: list[Reason]) -> list[str]:
    """The calls without a reason, and the reasons with too many calls or none."""
    used: Counter[Reason] = Counter()
    unexplained = []
    for call in calls:
        reason = next((r for r in reasons if re.match(r.calls, str(call)) and used[r] < r.most), None)
        if reason is None:
            unexplained.append(str(call))
        else:
            used[reason] += 1
    stale = [f"explains nothing any more: {r.calls} ({r.why})" for r in reasons if not used[r]]
    return unexplained + stale

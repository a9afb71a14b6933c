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
    Reason(r"(slice_copy|\S*split\w*): .*10\*\*30", 3, "an int of more than 64 bits is as good as the size"),
    Reason(r"linalg\.(vector_)?norm: .*10\*\*30", 2, "an order of more than 64 bits, after one of its class was right"),
    Reason(r"convolution: ", 5, "output_padding is not looked at unless the convolution is transposed"),
    Reason(r"lobpcg: ", 1, "everything is computed at once, so that a first guess is not looked at"),
    Reason(r"(Tensor\.)?(std|var): without dim", 4, "unbiased and keepdim mean the same without a dim"),
    Reason(r"flip: argument 2", 4, "one int for a list of ints, as the method takes it"),
    Reason(r"(Tensor\.)?(stft): ", 3, "torch reads one of its own strides wrongly, or has a window of another size"),
    Reason(r"(bucketize|searchsorted): .* is 1j", 3, "complex numbers are compared as NumPy does"),
    Reason(r"segment_reduce: ", 3, "torch does not wrap the axis round, and wants offsets of the rank of the data"),
    Reason(r"nn\.functional\.(upsample|\w*max_pool2d|adaptive\w+): ", 6, "one number stands for as many as are wanted"),
    Reason(r"nn\.functional\.(max_unpool\dd|gumbel_softmax|upsample\w*): ", 5, "an option that is not looked at here"),
    Reason(r"(nn\.functional\.\w+|max_pool1d|randint_like|normal|linspace): .* (is|tensor|complex128|int64|1j)", 12,
           "torch has no kernel for the dtype, or no place for its result; ours computes"),
    Reason(r"(sub|subtract): argument 1 is True", 2, "a number, where torch makes a bool tensor of it first"),
    Reason(r"(cumulative_)?trapezoid: dx", 2, "True is 1 where a number is wanted"),
    Reason(r"(finfo|cdist|norm|randint|randint_like): .* is None", 4, "None is the default"),
    Reason(r"tensordot: ", 2, "one list of dimensions of two: torch reads an int, and refuses it by accident"),
    Reason(r"(feature_alpha_dropout_?|instance_norm): ", 4, "a shape that the function can compute with"),
    Reason(r"(range|fft\.rfftfreq): ", 2, "an empty range"),
    Reason(r"Tensor\.type: ", 2, "a tensor for a dtype: torch's older types are callable"),
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

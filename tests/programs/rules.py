"""The differences between retrograd and torch that are accepted, each with its reason and its share of programs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .compare import TOLERANCE, Difference, numbers


@dataclass
class Rule:
    """One accepted difference."""

    name: str
    reason: str
    test: Callable[[Difference], bool]
    budget: float  # the share of programs that it may explain
    goes_on: bool = False  # nothing follows from such a difference: the rest of the program is compared


def defined(d: Difference, name: str | None = None) -> str:
    """The last line before the difference that gave the name its value, '' if there is none."""
    name = name or d.what.partition(".")[0]
    found = ""
    for line in d.source.split("\n"):
        if f"with at({d.number})" in line:
            break
        left, equals, right = line.partition(" = ")
        if equals and re.search(rf"\b{name}\b", left):
            found = right
    return found


def earlier(d: Difference) -> str:
    """The program up to the difference, its statement included."""
    head, at, rest = d.source.partition(f"with at({d.number})")
    return head + at + rest.partition("\n")[0]


def raised(mine: str | None, theirs: str | None) -> Callable[[Difference], bool]:
    """Ours says `mine` (a pattern; None: it says nothing) where torch says `theirs`."""

    def test(d: Difference) -> bool:
        if d.what not in ("raised", "order", "length"):
            return False
        for pattern, text in ((mine, d.my_error), (theirs, d.their_error)):
            if (pattern is None) != (text == "") or (pattern is not None and not re.search(pattern, text)):
                return False
        return True

    return test


def coarse(d: Difference) -> float:
    """The tolerance of the coarsest dtype that the program has spoken of; functions of integers are float32."""
    return max([TOLERANCE[name] for name in TOLERANCE if "torch." + name in earlier(d)] + [TOLERANCE["float32"]])


def split(value: Any) -> tuple[list[float], Any]:
    """The numbers of tensors that an event tells of, and all the rest."""
    if isinstance(value, (list, int, float, complex)) and not isinstance(value, bool):
        return numbers(value), None
    if isinstance(value, tuple):
        if len(value) == 5 and isinstance(value[0], str) and value[0].startswith("torch."):
            return numbers(value[2]), (value[:2], value[3:])
        parts = [split(one) for one in value]
        return [x for found, _ in parts for x in found], [rest for _, rest in parts]
    return [], value


def apart(d: Difference) -> float | None:
    """How far two values are apart, relative to the largest, or to 1 if all are smaller; None if they differ in other
    things than numbers."""
    if d.kind not in ("value", "grad", "tangent", "hook", "backward", "inside"):
        return None
    (mine, rest), (theirs, their_rest) = split(d.mine), split(d.theirs)
    if rest != their_rest or not mine or len(mine) != len(theirs):
        return None
    return distance(mine, theirs)


def without_history(value: Any) -> Any:
    """What an event tells, but for numbers and for whether tensors require grad."""
    if isinstance(value, tuple):
        if len(value) == 5 and isinstance(value[0], str) and value[0].startswith("torch."):
            return value[:2]
        return [without_history(one) for one in value]
    return value


def distance(mine: list[float], theirs: list[float]) -> float:
    scale = max((abs(x) for x in theirs if abs(x) < float("inf")), default=0.0)
    scale = max(scale, 1.0)  # what has cancelled, of numbers of that size
    far = 0.0
    for x, y in zip(mine, theirs):
        if x != y and not (x != x and y != y):
            if not abs(x - y) < float("inf"):
                return float("inf")
            far = max(far, abs(x - y) / scale)
    return far


def ill_conditioned(d: Difference) -> bool:
    """Do torch's own results change as much, where it starts from numbers that differ in their last bits?"""
    far = apart(d)
    if far is None:
        return False
    for source in (nudge(d, sign) for nudge in (lambda d, sign: nudged(d.source, sign), moved) for sign in (1, -1, 3)):
        event = d.again(source)
        if event is not None and event[1] == d.event[1]:
            (other, _), (theirs, _) = split(event[2]), split(d.theirs)
            if len(other) == len(theirs) and distance(other, theirs) >= far / 16:
                return True
    return False


def nudged(source: str, sign: int) -> str:
    """The program, with its numbers a few bits off."""
    coarse = {"bfloat16": 8e-3, "float16": 1e-3, "float32": 3e-7, "complex64": 3e-7, ".float()": 3e-7}
    step = sign * max([1e-15] + [size for name, size in coarse.items() if name in source])
    counter = itertools.count(1)
    source = source.replace(".sin()", f".mul(1 + {step}).sin()")  # of large integers
    return re.sub(r"\b\d+\.\d+\b", lambda m: repr(float(m[0]) * (1 + step * (next(counter) % 3))), source)


def moved(d: Difference, sign: int) -> str:
    """The program, with the arguments of what gave the differing tensor its value a few bits off: it may jump there."""
    line = defined(d)
    step = sign * coarse(d) / 64
    counter = itertools.count(1)
    off = re.sub(r"\bv\d+\b", lambda m: f"{m[0]}.mul(1 + {step * (next(counter) % 3)})", line)
    return d.source.replace(f" = {line}\n", f" = {off}\n") if line else d.source


#: Nodes with other names, where an operator is composed of others in one library and not in the other, as (ours,
#: torch's).
NODES = {
    ("AliasBackward", "ViewBackward"),  # make_dual
    ("AsStridedBackward", "ViewAsRealBackward"),
    ("AsStridedBackward", "ConjBackward"),  # squeeze_ on a view, which then finds its place by strides
    ("AliasBackward", "Identity"),  # unpack_dual
    ("BmmBackward", "UnsafeViewBackward"),
    ("ConvolutionBackward", "AddBackward"),  # of complex numbers
    ("CopyBackwards", "EqBackward"),  # eq_
    ("CopyBackwards", "RenormBackward"),  # renorm_
    ("CopySlices", "SelectScatterBackward"),
    ("CopySlices", "SliceScatterBackward"),
    ("Deg2radBackward", "Deg2RadBackward"),
    ("FloorDivideBackward", "NotImplemented"),
    ("HeavisideBackward", "NotImplemented"),
    ("LinalgVectorNormBackward", "CdistBackward"),
    ("LinalgVectorNormBackward", "DistBackward"),
    ("MulBackward", "LdexpBackward"),
    ("WhereBackward", "RenormBackward"),
    ("RemainderBackward", "NotImplemented"),
    ("SoftsignBackward", "DivBackward"),
}

#: Torch's own implementation writes to its new result, and counts that; or ours does.
COUNTED = re.compile(r"isfinite|one_hot|_scatter\(|linear\(.*sum|quantile")

REFUSED_LATE = ("Inplace update to inference tensor outside InferenceMode", "ZeroDivisionError", "is an out= function")

MODIFIED = re.compile("modified by an inplace|another view of its base has been modified inplace")
LOSSES = re.compile("_loss|cross_entropy_with")
DTYPES = re.compile("Found dtype|can't be cast to the desired|with two bool tensors")

RULES = [
    Rule(
        "duals in place",
        "torch reads what it has overwritten for the tangent of ``x.mul_(x)``; the tangent of ``x % 2`` is that of x",
        lambda d: (
            (d.kind == "tangent" and bool(re.search(r" % .*(_\(| [*+/-]= )", earlier(d), re.S)))
            or (
                d.kind in ("tangent", "value")
                and "make_dual" in earlier(d)
                and bool(re.search(r"(v\d+)\.\w+_\(\1\b|make_dual\((v\d+), \2\)", earlier(d)))
            )
        ),
        0.002,
    ),
    Rule(
        "ldexp",
        "torch computes 2**n in integers for the gradient, which is 0 for a negative n",
        lambda d: "ldexp" in earlier(d) and (apart(d) is not None or d.kind == "tangent"),
        0.002,
    ),
    Rule(
        "larger storage",
        "torch's storage of a sum is larger than the sum",
        lambda d: d.what == "raised" and "setStorage" in d.my_error and "as_strided" in d.statement,
        0.002,
    ),
    Rule(
        "0-d repeat_interleave",
        "torch splits a tensor without dimensions along the dimension that is none",
        lambda d: "repeat_interleave" in d.statement and d.what == "raised",
        0.003,
    ),
    Rule(
        "complex bounds",
        "torch's clamp takes complex numbers for real ones, its clamp_min does not",
        raised("clamp is not supported for complex", None),
        0.002,
    ),
    Rule(
        "complex infinities",
        "products of complex numbers with infinite parts, and torch's differences, which are products with -1",
        lambda d: apart(d) == float("inf") and "j" in repr((d.mine, d.theirs)),
        0.006,
    ),
    Rule(
        "means of infinities",
        "torch's var_mean and std_mean compute the mean in steps, which are infinite",
        lambda d: apart(d) == float("inf") and bool(re.search(r"(var|std)_mean\(", earlier(d))),
        0.002,
    ),
    Rule(
        "mode of NaN",
        "which of several NaN are alike is not promised",
        lambda d: ".mode(" in earlier(d) and "nan" in repr((d.mine, d.theirs)),
        0.002,
    ),
    Rule(
        "special values",
        "NaN and inf that come of the sign of a zero of torch's kernels (gelu of inf), or of a mask that is a factor",
        lambda d: apart(d) == float("inf") or (d.kind == "shape" and bool(re.search(r"float\('", earlier(d)))),
        0.004,
    ),
    Rule(
        "rounding",
        "a value that came out of coarser arithmetic: the last bits of half and bfloat16 are seen in float64",
        lambda d: (far := apart(d)) is not None and far <= 4 * coarse(d),
        0.016,
        goes_on=True,
    ),
    Rule(
        "nodes",
        "an operator is composed of others in one library: its node has another name",
        lambda d: d.kind == "grad_fn" and (d.mine, d.theirs) in NODES,
        0.16,
        goes_on=True,
    ),
    Rule(
        "layout",
        "the order in memory of a new result is not promised",
        lambda d: (
            d.kind == "stride" or (d.what == "raised" and "view size is not compatible" in d.my_error + d.their_error)
        ),
        0.06,
    ),
    Rule(
        "no kernel",
        "torch has no CPU kernel for that dtype",
        raised(
            None,
            "not implemented for|not supported for|not supported on CPU|not support bool dtypes|inputs to be Half, Fl",
        ),
        0.015,
    ),
    Rule(
        "no kernel, said otherwise",
        "neither takes that dtype; which check comes first is not promised",
        lambda d: (
            d.what == "raised"
            and bool(d.my_error)
            and "not implemented for" in d.my_error + d.their_error
            and {d.mine, d.theirs} == {"RuntimeError", "NotImplementedError"}
        ),
        0.01,
    ),
    Rule(
        "counted writes",
        "an implementation's write to its own new result is a version of it in one library",
        lambda d: d.kind == "version" and bool(COUNTED.search(earlier(d))),
        0.06,
        goes_on=True,
    ),
    Rule(
        "versions after inference mode",
        "what torch computes from inference tensors has versions of its own",
        lambda d: d.kind in ("version", "is_view", "base") and "inference_mode()" in earlier(d),
        0.021,
        goes_on=True,
    ),
    Rule(
        "refused late",
        "torch refuses to write to an inference tensor, to a dual one or to divide by 0 after it has written",
        lambda d: any(text in error for text in REFUSED_LATE for error in d.their_errors),
        0.004,
    ),
    Rule(
        "saved for nothing",
        "one library saves, and refuses to save, what the other does not need",
        lambda d: (
            d.what == "raised"
            and None in (d.mine, d.theirs)
            and "Inference tensors cannot be saved for backward" in d.my_error + d.their_error
        ),
        0.002,
    ),
    Rule(
        "complex gradients",
        "torch has no gradient of some operators for complex numbers",
        raised(None, "does not support automatic differentiation for outputs with complex dtype"),
        0.004,
    ),
    Rule(
        "ties",
        "which of equal elements is found is not promised",
        lambda d: (
            bool(re.search(r"\.(kthvalue|mode|topk|median|argmax|argmin|argsort|sort)\(", earlier(d)))
            and (
                d.kind in ("tangent", "grad")
                or (d.kind == "value" and all(isinstance(x, int) for x in split(d.mine)[0]))
            )
        ),
        0.004,
    ),
    Rule(
        "nodes that are not needed",
        "torch's backward(inputs=) calls the grad_fn of an input that is no leaf",
        lambda d: "inputs=" in d.statement and d.kind in ("raised", "order", "length", "hook", "backward"),
        0.003,
    ),
    Rule(
        "inputs retain",
        "torch has told inputs to retain their gradients before it refuses a backward pass",
        lambda d: d.what == "order" and "inputs=" in earlier(d),
        0.002,
    ),
    Rule(
        "forward mode",
        "torch has no formula for that operator, or none for it in place",
        lambda d: (
            d.what in ("raised", "order")
            and bool(
                re.search(
                    "Trying to use forward AD|derivative for 'inplace version|remainder is not impl|with a bool tensor",
                    d.their_error,
                )
            )
        ),
        0.005,
    ),
    Rule(
        "logical in place",
        "a logical operator in place passes gradients on in torch as if it had not written",
        lambda d: (
            bool(re.search(r"logical_\w+_\(", earlier(d)))
            and (
                d.kind in ("grad_fn", "requires_grad", "tangent") or d.mine == "RuntimeError" or "logical" in d.my_error
            )
        ),
        0.009,
    ),
    Rule(
        "nothing",
        "of tensors without elements, or of none, one library refuses what the other does not",
        lambda d: (
            ("torch.zeros((0" in earlier(d) and d.kind in ("raised", "shape", "value", "grad"))
            or (
                d.what == "raised" and bool(re.search("with size 0|dim should be positive", d.my_error + d.their_error))
            )
        ),
        0.008,
    ),
    Rule(
        "matrix_exp",
        "torch's series overflows in bfloat16",
        lambda d: "matrix_exp" in earlier(d) and (apart(d) is not None or d.kind == "shape"),
        0.002,
    ),
    Rule(
        "losses' dtypes",
        "a loss of two dtypes has the one that is in the middle of torch's formula",
        lambda d: (
            (d.kind == "dtype" and bool(LOSSES.search(defined(d))))
            or (
                d.what in ("raised", "order")
                and "" in (d.my_error, d.their_error)
                and bool(LOSSES.search(earlier(d)))
                and bool(DTYPES.search(d.my_error + d.their_error))
            )
        ),
        0.003,
    ),
    Rule(
        "out= of another dtype",
        "ours checks whether out= can hold the result, for all operators alike",
        lambda d: (
            "out=" in d.statement
            and d.what == "raised"
            and bool(
                re.search(
                    "can't be cast to the desired output|Expected out type|Found dtype", d.my_error + d.their_error
                )
            )
        ),
        0.004,
    ),
    Rule(
        "multi-grad hooks of roots",
        "torch calls a hook for all of several tensors twice if one is the root of the pass",
        lambda d: "register_multi_grad_hook" in earlier(d) and d.kind in ("hook", "order", "length"),
        0.002,
    ),
    Rule(
        "inference tensors that require grad",
        "torch's operators do not record them outside of inference mode, though they say that they require grad",
        lambda d: (
            bool(
                re.search(
                    r"inference_mode\(\).*(requires_grad(_\(|=True)|enable_grad|apply\(|checkpoint\()", earlier(d), re.S
                )
            )
            and (d.kind in ("requires_grad", "grad_fn") or d.what in ("raised", "order"))
        ),
        0.002,
    ),
    Rule(
        "complex gradients of real tensors",
        "torch cannot take the real part of a gradient that a custom function returns",
        raised(None, r"isFloatingType\(grad.scalar_type"),
        0.002,
    ),
    Rule(
        "which error",
        "there are two reasons to refuse, and torch finds the other first",
        lambda d: (
            d.what == "raised"
            and bool(d.my_error)
            and bool(d.their_error)
            and bool(
                re.search(
                    "modified by an inplace operation|inplace version of|is a view and|incompatible with .grad"
                    "|has no dimensions|Index to scalar can have only|dimensionality must match"
                    "|value tensor of shape|Dimension out of range",
                    d.my_error + d.their_error,
                )
            )
        ),
        0.002,
    ),
    Rule(
        "saved and modified",
        "one library has saved what the other did not need",
        lambda d: (
            d.what in ("raised", "order") and bool(MODIFIED.search(d.their_error)) != bool(MODIFIED.search(d.my_error))
        ),
        0.002,
    ),
    Rule(
        "comparisons in place",
        "a comparison in place requires grad in torch, if what it compares with does; its gradient is 0",
        lambda d: bool(re.search(r"\.eq_\(", earlier(d))) and d.kind in ("requires_grad", "raised", "is_leaf"),
        0.002,
    ),
    Rule(
        "no storage",
        "torch's gradient of 0 has no memory, and cannot be read",
        raised(None, "unallocated storage|ZeroTensors are immutable|INTERNAL ASSERT|Autograd not support dtype"),
        0.002,
    ),
    Rule(
        "resized out=",
        "torch writes to what it has shrunk in the same memory, here it is new",
        lambda d: "out=v" in earlier(d) and d.kind in ("value", "sharing", "stride", "version"),
        0.002,
    ),
    Rule(
        "detach_ in inference mode",
        "does nothing in torch",
        lambda d: bool(re.search(r"inference_mode\(\).*detach_\(", earlier(d), re.S)),
        0.002,
    ),
    Rule(
        "overlap",
        "which operators refuse arguments that overlap what they write to",
        lambda d: d.what == "raised" and bool(re.search("to a single memory location", d.my_error + d.their_error)),
        0.002,
    ),
    Rule(
        "tangents",
        "how a tangent lies in memory, and by which operators it was made, is the formula's own affair",
        lambda d: (
            "tangent(" in defined(d) and d.kind in ("is_view", "base", "version", "requires_grad", "grad_fn", "is_leaf")
        ),
        0.002,
    ),
    Rule(
        "edges of numbers",
        "``x[...] = 2`` has an edge for the number in torch",
        lambda d: (
            d.kind == "hook" and len(d.mine) != len(d.theirs) and [x for x in d.mine if x] == [x for x in d.theirs if x]
        ),
        0.002,
    ),
    Rule(
        "backward in inference mode",
        "torch computes again in inference mode what was checkpointed outside of it",
        lambda d: (
            "inference_mode()" in earlier(d)
            and bool(re.search(r"autograd.grad\(|backward\(|multi_grad_hook", d.statement))
        ),
        0.002,
    ),
    Rule(
        "branch cuts",
        "the sign of an imaginary part of 0, which torch's multiplication by 1 loses, decides the branch",
        lambda d: (
            "j" in repr(d.theirs)
            and apart(d) is not None
            and bool(re.search("pow|log|sqrt|asin|acos|atan|\\*\\*|angle", earlier(d)))
        ),
        0.002,
    ),
    Rule(
        "einsum",
        "the product of two is a view in torch, of a result of bmm that nobody else sees",
        lambda d: (
            bool(re.search(r"einsum\('[^']*,", earlier(d)))
            and d.kind in ("is_view", "base", "version", "grad_fn", "grad", "raised", "order")
        ),
        0.021,
    ),
    Rule(
        "zero or None",
        "a gradient that is 0 is None in one library",
        lambda d: (
            d.kind in ("grad", "hook")
            and not any(split(d.mine)[0] + split(d.theirs)[0])
            and "None" in repr((d.mine, d.theirs))
        ),
        0.002,
    ),
    Rule(
        "checkpoints of duals",
        "torch saves other tensors when it computes again outside of the dual level",
        lambda d: "CheckpointError" in (d.theirs, d.mine) or "A different number of tensors was saved" in d.their_error,
        0.002,
    ),
    Rule(
        "take_along_dim",
        "torch reads past the end",
        raised("out of bounds for dimension", None),
        0.002,
    ),
    Rule(
        "0-d",
        "torch's kernel looks at the dtype only if there are dimensions",
        raised("not implemented for 'Bool'", None),
        0.002,
    ),
    Rule(
        "polar",
        "torch's gradient of polar() has the wrong sign for a negative length",
        lambda d: "polar" in earlier(d) and "grad" in d.what,
        0.002,
    ),
    Rule(
        "dtypes of tangents",
        "torch's tangent has another dtype than its tensor",
        lambda d: (
            d.kind == "tangent"
            and isinstance(d.mine, tuple)
            and isinstance(d.theirs, tuple)
            and d.mine[0] != d.theirs[0]
            and d.mine[1] == d.theirs[1]
        ),
        0.002,
    ),
    Rule(
        "bias of another dtype",
        "torch's linear() adds it in place",
        lambda d: d.kind == "dtype" and "F.linear" in defined(d),
        0.002,
    ),
    Rule(
        "detached inference tensors",
        "torch lets one be written to if detach() is called before",
        lambda d: (
            raised("Inplace update to inference tensor", None)(d) and bool(re.search(r"detach\(\)|\.data", earlier(d)))
        ),
        0.002,
    ),
    Rule(
        "retained gradients of another shape",
        "torch keeps the shape that a tensor had when it was told to retain its gradient",
        lambda d: (
            d.kind == "grad"
            and bool(re.search(r"(retain_grad|inputs=).*(squeeze_|t_|transpose_|swapdims_)\(", earlier(d), re.S))
        ),
        0.002,
    ),
    Rule(
        "prelu at 0",
        "torch's forward formula takes the other side at 0 than its backward formula",
        lambda d: "prelu" in earlier(d) and d.kind == "tangent",
        0.002,
    ),
    Rule(
        "hooks of composed operators",
        "the node of an operator that is composed of others is another one, and is given another gradient",
        lambda d: (
            d.kind == "hook"
            and bool(re.search(r"grad_fn\.register", earlier(d)))
            and bool(re.search(r"softsign|@|tensordot|ldexp|renorm|cdist|dist\(|_scatter", earlier(d)))
        ),
        0.002,
    ),
    Rule(
        "cross",
        "torch's product of a vector with itself is not 0 but what rounding leaves",
        lambda d: "cross(" in earlier(d) and d.kind in ("value", "shape"),
        0.002,
    ),
    Rule(
        "conjugates",
        "torch's vdot of a conjugate is the conjugate of a dot",
        lambda d: "vdot" in earlier(d) and d.kind in ("bits", "is_view"),
        0.002,
    ),
    Rule(
        "sign of NaN",
        "is not defined",
        lambda d: "copysign" in earlier(d) and apart(d) is not None,
        0.002,
    ),
    Rule(
        "views of what a function modified",
        "torch takes a view for a leaf until it has looked at what became of its base",
        lambda d: raised(None, "a leaf Variable that requires grad is being used")(d) and "mark_dirty" in earlier(d),
        0.002,
    ),
    Rule(
        "numbers beyond integers",
        "what a number is that an integer cannot hold",
        lambda d: ".long()" in earlier(d) and d.kind == "value",
        0.002,
    ),
    Rule(
        "linear of a vector",
        "torch's linear() with a bias has no kernel for a weight that is a vector",
        raised(None, "mat2 must be a matrix"),
        0.002,
    ),
    Rule(
        "freed for nothing",
        "one library has saved, and freed, what the other does not need",
        lambda d: (
            (d.what == "raised" and ("graph a second time" in d.their_error) != ("graph a second time" in d.my_error))
            or (d.what == "order" and "graph a second time" in d.their_error + d.my_error)
        ),
        0.002,
    ),
    Rule(
        "tangents that vary",
        "torch's tangent has a history in which its derivative is 0",
        lambda d: (
            d.kind == "tangent"
            and isinstance(d.mine, tuple)
            and isinstance(d.theirs, tuple)
            and d.mine[3:] != d.theirs[3:]
            and d.mine[:2] == d.theirs[:2]
            and not 4 * coarse(d) < distance(split(d.mine)[0], split(d.theirs)[0]) < float("inf")
        ),
        0.005,
        goes_on=True,
    ),
    Rule(
        "tangents of inference tensors",
        "torch forgets the tangent of an inference tensor, whatever its shape",
        lambda d: (
            "inference_mode()" in earlier(d)
            and ((d.kind == "tangent" and d.theirs is None) or "Trying to set a forward gradient" in d.my_error)
        ),
        0.002,
    ),
    Rule(
        "tangents of 0",
        "torch leaves out a tangent that is 0",
        lambda d: d.kind == "tangent" and None in (d.mine, d.theirs) and not any(split(d.mine)[0] + split(d.theirs)[0]),
        0.002,
        goes_on=True,
    ),
    Rule(
        "ties in forward mode",
        "torch's forward formula takes the other of two equal numbers than its backward formula",
        lambda d: bool(re.search(r"fmax|maximum|minimum|clamp\(v", earlier(d))) and d.kind == "tangent",
        0.002,
    ),
    Rule(
        "median of expanded",
        "torch's median reads past the memory of an expanded tensor",
        lambda d: (
            bool(re.search(r"expand|broadcast|unfold|meshgrid", earlier(d)))
            and "median" in earlier(d)
            and d.kind in ("value", "grad")
        ),
        0.002,
    ),
    Rule(
        "gradient of a modified tensor",
        "torch forgets the .grad of a tensor that retains it and is modified by a custom function",
        lambda d: d.kind == "grad" and d.theirs is None and "mark_dirty" in earlier(d),
        0.002,
    ),
    Rule(
        "gradients that vary",
        "a gradient has a history, in which its derivative is 0, in one library",
        lambda d: (
            "create_graph" in earlier(d)
            and (
                d.kind in ("requires_grad", "grad_fn", "is_leaf")
                or (
                    d.kind in ("grad", "hook", "backward")
                    and without_history(d.mine) == without_history(d.theirs)
                    and distance(split(d.mine)[0], split(d.theirs)[0]) <= 4 * coarse(d)
                )
            )
        ),
        0.002,
    ),
    Rule(
        "ill-conditioned",
        "torch's own result is another where its numbers are off by their last bits",
        ill_conditioned,
        0.002,
    ),
]


def explain(d: Difference) -> str | None:
    """The name of the rule that explains a difference, with ``*`` if nothing can be compared after it."""
    for rule in RULES:
        if rule.test(d):
            return rule.name if rule.goes_on else rule.name + "*"
    return None

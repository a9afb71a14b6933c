"""Samples of pointwise operators: arithmetic, powers, exp and log, trigonometry, rounding, Python's operators."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from samples.spec import (
    E,
    Op,
    S,
    Same,
    Sample,
    T,
    V,
    distinct,
    given,
    integers,
    mask,
    nonzero,
    positive,
    real,
)

Domain = Callable[..., T]

SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan")]


def between(low: float, high: float, avoid: tuple[float, ...] = ()) -> Domain:
    """A domain of one's own: float64 in [low, high], away from the kinks in `avoid`."""
    return lambda *shape, **spec: T(shape, low=low, high=high, avoid=avoid, **spec)


# ---------------------------------------------------------------------------------------------- one operand


def unary_samples(domain: Domain, integer: bool = True, boolean: bool = True) -> list[Sample]:
    """What every function of one operand is tried on."""
    samples = [
        S("matrix", domain(2, 3)),
        S("0-d", domain()),
        S("empty", domain(0, 3)),
        S("transposed", domain(2, 3, layout="transposed"), as_complex=False),
        S("strided", domain(3, layout="strided"), as_complex=False),
        S("expanded", domain(2, 2, layout="expanded"), as_complex=False),
        V("half-way numbers", given([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])),
        V("zeros, infinities and nan", given(SPECIAL)),
        V("float32 special", given(SPECIAL, "float32")),
        V("float16", given([0.25, 0.5, 1.0], "float16", requires_grad=False)),
    ]
    if integer:
        samples.append(V("int64", given([-2, 0, 1, 3], "int64")))
        samples.append(V("uint8", given([0, 1, 2], "uint8")))
    if boolean:
        samples.append(V("bool", given([True, False], "bool")))
    return samples


def unary(name: str, domain: Domain = real, *, fn: Any = None, more: list[Sample] | None = None, **options: Any) -> Op:
    """An `Op` of one operand; `options` are those of `Op`, and which integer kinds torch takes."""
    kinds = {key: options.pop(key) for key in ("integer", "boolean") if key in options}
    defaults = {"method": name, "inplace": name + "_"}
    return Op(name, fn or name, unary_samples(domain, **kinds) + (more or []), **(defaults | options))


def _scipy(name: str) -> Callable[..., Any]:
    def call(x: np.ndarray) -> Any:
        from scipy import special

        return getattr(special, name)(x)

    return call


BOOL_NEGATION = E(
    "bool", RuntimeError, r"Negation, the `-` operator, on a bool tensor is not supported", mask([True, False])
)
NOT_A_TENSOR = E("number", TypeError, r"must be Tensor, not float", 1.5)

UNARY = [
    unary("neg", supports_complex=True, boolean=False, reference=np.negative, errors=[BOOL_NEGATION, NOT_A_TENSOR]),
    unary("negative", boolean=False, reference=np.negative),
    unary("positive", supports_complex=True, boolean=False, inplace=None, view=None, reference=np.positive),
    unary("abs", nonzero, supports_complex=True, boolean=False, reference=np.abs),
    unary("absolute", nonzero, boolean=False, reference=np.abs),
    # torch calls the sign of NaN zero.
    unary("sign", nonzero, reference=lambda x: np.where(x > 0, 1, np.where(x < 0, -1, 0))),
    unary("sgn", nonzero, supports_complex=True, extra=True),
    unary("reciprocal", nonzero, supports_complex=True, reference=lambda x: 1 / x),
    unary("square", supports_complex=True, reference=np.square),
    unary("sqrt", positive, supports_complex=True, reference=np.sqrt),
    unary("rsqrt", positive, supports_complex=True, reference=lambda x: 1 / np.sqrt(x)),
    unary("exp", supports_complex=True, reference=np.exp, errors=[NOT_A_TENSOR]),
    unary("exp2", supports_complex=True, reference=np.exp2),
    unary("expm1", supports_complex=True, reference=np.expm1),
    unary("log", positive, supports_complex=True, reference=np.log, errors=[NOT_A_TENSOR]),
    unary("log2", positive, supports_complex=True, reference=np.log2),
    unary("log10", positive, supports_complex=True, reference=np.log10),
    unary("log1p", between(-0.7, 2.0), supports_complex=True, reference=np.log1p),
    unary("sin", supports_complex=True, reference=np.sin),
    unary("cos", supports_complex=True, reference=np.cos),
    unary("tan", between(-1.2, 1.2), supports_complex=True, reference=np.tan),
    unary("asin", between(-0.8, 0.8), supports_complex=True, reference=np.arcsin),
    unary("acos", between(-0.8, 0.8), supports_complex=True, reference=np.arccos),
    unary("atan", between(-0.8, 0.8), supports_complex=True, reference=np.arctan),
    unary("sinh", supports_complex=True, reference=np.sinh),
    unary("cosh", supports_complex=True, reference=np.cosh),
    unary("tanh", supports_complex=True, reference=np.tanh),
    # torch has no derivative of the inverse hyperbolic functions in place.
    unary("asinh", between(-0.8, 0.8), inplace=None, supports_complex=True, reference=np.arcsinh),
    unary("acosh", between(1.3, 3.0), inplace=None, supports_complex=True, reference=np.arccosh),
    unary("atanh", between(-0.8, 0.8), inplace=None, supports_complex=True, reference=np.arctanh),
    unary("arcsin", between(-0.8, 0.8), extra=True),
    unary("arccos", between(-0.8, 0.8), extra=True),
    unary("arctan", between(-0.8, 0.8), extra=True),
    unary("arcsinh", between(-0.8, 0.8), inplace=None, extra=True),
    unary("arccosh", between(1.3, 3.0), inplace=None, extra=True),
    unary("arctanh", between(-0.8, 0.8), inplace=None, extra=True),
    unary("sigmoid", supports_complex=True, reference=lambda x: 1 / (1 + np.exp(np.multiply(x, -1.0)))),
    unary("erf", extra=True, reference=_scipy("erf")),
    unary("erfc", extra=True, reference=_scipy("erfc")),
    # Steps: flat wherever they are differentiable.
    unary("floor", between(-2, 2, (-2, -1, 0, 1, 2)), boolean=False, extra=True, reference=np.floor),
    unary("ceil", between(-2, 2, (-2, -1, 0, 1, 2)), boolean=False, extra=True, reference=np.ceil),
    unary("trunc", between(-2, 2, (-2, -1, 0, 1, 2)), boolean=False, extra=True, reference=np.trunc),
    unary(
        "round",
        between(-2, 2, (-1.5, -0.5, 0.5, 1.5)),
        boolean=False,
        extra=True,
        more=[V("decimals", real(2, 3), decimals=1), V("negative decimals", real(4, low=-99, high=99), decimals=-1)],
    ),
    unary(
        "frac",
        between(-2, 2, (-2, -1, 0, 1, 2)),
        integer=False,
        boolean=False,
        extra=True,
        reference=lambda x: np.fmod(x, 1),
    ),
    unary("conj", fn="conj", supports_complex=True, inplace=None, view=None, extra=True, reference=np.conj),
    unary("angle", nonzero, supports_complex=True, inplace=None, extra=True),
    Op(
        "real",
        "real",
        [S("complex", real(2, 3, dtype="complex128")), S("complex 0-d", real(dtype="complex128"))],
        view=True,
        extra=True,
    ),
    Op(
        "imag",
        "imag",
        [S("complex", real(2, 3, dtype="complex128")), S("complex 0-d", real(dtype="complex128"))],
        errors=[E("real", RuntimeError, r"imag is not implemented for tensors with non-complex dtypes", real(2))],
        view=True,
        extra=True,
    ),
    Op(
        "__neg__",
        lambda torch, x: -x,
        [S("matrix", real(2, 3)), V("int64", integers(3))],
        errors=[BOOL_NEGATION],
        supports_complex=True,
    ),
    Op("__pos__", lambda torch, x: +x, [S("matrix", real(2, 3)), V("int64", integers(3))], view=None),
    Op("__abs__", lambda torch, x: abs(x), [S("matrix", nonzero(2, 3)), V("zero", given([0.0, -0.0]))]),
    Op(
        "__invert__",
        lambda torch, x: ~x,
        [V("bool", mask([True, False])), V("int64", integers(3))],
        errors=[E("float", TypeError, r"only implemented on integer and Boolean-type tensors", real(2))],
        differentiable=False,
    ),
]

# ---------------------------------------------------------------------------------------------- two operands


def binary_samples(left: Domain, right: Domain, number: float | None = 1.7, **kinds: bool) -> list[Sample]:
    """What every function of two operands is tried on; `number` is a Python number for the right-hand side."""
    samples = [
        S("same shape", left(2, 3), right(2, 3)),
        S("broadcast", left(2, 3), right(3)),
        S("broadcast both", left(2, 1), right(1, 3)),
        S("0-d on the left", left(), right(2, 2), as_complex=False),
        S("0-d on the right", left(2, 2), right()),
        S("0-d both", left(), right(), as_complex=False),
        S("empty", left(0, 3), right(3), as_complex=False),
        S("empty by broadcasting", left(2, 0, 1), right(1, 3), as_complex=False),
        S("only the left requires grad", left(3), right(3, requires_grad=False), as_complex=False),
        S("only the right requires grad", left(3, requires_grad=False), right(2, 3), as_complex=False),
        S("layouts", left(2, 3, layout="transposed"), right(2, 3, layout="strided"), as_complex=False),
        S("expanded", left(2, 3, layout="expanded"), right(3, layout="strided"), as_complex=False),
        V("float32 and float64", left(2, 3, dtype="float32"), right(3)),
        V("float64 and float32", left(3), right(2, 3, dtype="float32")),
        V("float32 and 0-d float64", left(2, 3, dtype="float32"), right()),
        V("0-d float64 and float32", left(), right(2, dtype="float32")),
        V("0-d float32 and 1-d float64", left(dtype="float32"), right(2)),
    ]
    if kinds.get("integer", True):
        whole = {"dtype": "int64", "values": [1, 2, 3]}
        samples += [
            V("int64 and float32", T((3,), **whole), right(2, 3, dtype="float32")),
            V("float64 and int64", left(2, 3), T((3,), **whole)),
            V("int64 and int64", given([[-7, 7], [5, -5]], "int64"), given([2, 3], "int64")),
            V("int64 and 0-d float32", T((3,), **whole), right(dtype="float32")),
            V("float32 and 0-d int64", left(2, dtype="float32"), given(3, "int64")),
            V("uint8 and int8", given([1, 2, 3], "uint8"), given([1, 2, 3], "int8")),
            V("int32 and 0-d int64", given([1, 2, 3], "int32"), given(2, "int64")),
        ]
    if kinds.get("boolean", True):
        samples.append(V("bool and float64", mask([True, True, False]), right(3)))
    if number is not None:
        samples += [
            S("number", left(2, 3), number),
            S("whole number", left(2, 2), 2, as_complex=False),
            S("number and 0-d", left(), number, as_complex=False),
            V("float32 and number", left(2, dtype="float32"), number),
        ]
        if kinds.get("integer", True):
            samples += [
                V("int64 and number", given([1, 2, 3], "int64"), number),
                V("int64 and whole number", given([1, 2, 3], "int64"), 2),
                V("int32 and whole number", given([1, 2, 3], "int32"), 3),
            ]
        if kinds.get("boolean", True):
            samples.append(V("bool and whole number", mask([True, False]), 2))
    return samples


def mismatch(match: str = r"The size of tensor a \(3\) must match the size of tensor b \(4\)") -> Any:
    """Shapes that do not broadcast."""
    return E("shapes", RuntimeError, match, real(2, 3), real(4))


def binary(
    name: str,
    left: Domain = real,
    right: Domain = real,
    *,
    number: float | None = 1.7,
    more: list[Sample] | None = None,
    **options: Any,
) -> Op:
    """An `Op` of two operands that broadcast."""
    kinds = {key: options.pop(key) for key in ("integer", "boolean") if key in options}
    samples = binary_samples(left, right, number, **kinds) + (more or [])
    if options.get("supports_complex"):
        # A real operand of a complex result gets the real part of its gradient.
        samples += [
            S("complex128 and float64", left(2, 3, dtype="complex128"), right(3), as_complex=False),
            S("float64 and complex128", left(2, 1), right(3, dtype="complex128"), as_complex=False),
            S("float64 and complex number", left(2, 3), 1.5 + 0.5j, as_complex=False),
            S("complex128 and number", left(2, dtype="complex128"), 1.7, as_complex=False),
        ]
    errors = options.pop("errors", [])
    if not any(error.name == "shapes" for error in errors):
        errors = [mismatch(), *errors]
    defaults = {"method": name, "inplace": name + "_", "errors": errors}
    return Op(name, options.pop("fn", name), samples, **(defaults | options))


def _scaled(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, alpha=1: function(x, alpha * np.asarray(y))


def _divided(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    quotient = np.true_divide(x, y)
    return {None: lambda q: q, "floor": np.floor, "trunc": np.trunc}[rounding_mode](quotient)


def quotients(name: str) -> list[Sample]:
    """Operands of rounded division whose quotients are not near a whole number."""
    return [
        S(f"{name} tensors", given([[7.3, -7.3], [5.2, -1.1]]), given([2.0, 3.0])),
        S(f"{name} number", given([7.3, -7.3, 5.2]), 2.5),
        V(f"{name} int64", given([7, -7, 5, -5], "int64"), given([2, 2, -3, -3], "int64")),
        V(f"{name} float by zero", given([1.0, -1.0, 0.0]), given([0.0, 0.0, 0.0])),
        V(f"{name} int64 and number", given([7, -7], "int64"), 2),
        V(f"{name} exact", given([6.0, -6.0]), given([3.0, 3.0])),
        V(f"{name} float32", given([7.3, -7.3], "float32"), given([2.0, 3.0], "float32")),
    ]


def rounded_division(mode: str) -> list[Sample]:
    """`quotients` for div(rounding_mode=mode)."""
    samples = quotients(mode)
    for sample in samples:
        sample.kwargs["rounding_mode"] = mode
        sample.as_complex = False
    return samples


ALPHA = [
    S("alpha", real(2, 3), real(3), alpha=2.5),
    S("whole alpha", real(2, 3), real(2, 3), alpha=-2),
    S("alpha and number", real(2, 3), 1.5, alpha=3),
    V("int64 alpha", integers(3), integers(3), alpha=2),
]
ALPHA_ERRORS = [
    E(
        "float alpha of integers",
        RuntimeError,
        r"For integral input tensors, argument alpha must not be a floating point number",
        integers(3),
        integers(3),
        alpha=0.5,
    )
]


def alpha_samples() -> list[Sample]:
    """Fresh copies: an `Op` puts its own seeds into its samples."""
    return [Sample(s.name, s.args, dict(s.kwargs), s.smooth, s.second) for s in ALPHA]


BINARY = [
    binary(
        "add",
        supports_complex=True,
        more=[S("with itself", real(2, 3), Same(0)), *alpha_samples()],
        errors=[*ALPHA_ERRORS, E("string", TypeError, r"argument 'other'.* must be Tensor, not str", real(2), "a")],
        reference=_scaled(np.add),
    ),
    binary(
        "sub",
        boolean=False,
        supports_complex=True,
        more=[S("with itself", real(2, 3), Same(0)), *alpha_samples()],
        errors=[
            *ALPHA_ERRORS,
            E(
                "bool",
                RuntimeError,
                r"Subtraction, the `-` operator, with two bool tensors",
                mask([True]),
                mask([True]),
            ),
        ],
        reference=_scaled(np.subtract),
    ),
    binary(
        "rsub",
        inplace=None,
        method=None,
        boolean=False,
        supports_complex=True,
        errors=[mismatch(r"The size of tensor a \(4\) must match the size of tensor b \(3\)")],
        reference=lambda x, y: y - x,
    ),
    binary(
        "mul",
        supports_complex=True,
        more=[S("with itself", real(2, 3), Same(0))],
        reference=np.multiply,
    ),
    binary("multiply", reference=np.multiply),
    binary(
        "div",
        right=nonzero,
        supports_complex=True,
        more=[
            S("by itself", nonzero(2, 3), Same(0)),
            V("by zero", given([1.0, -1.0, 0.0]), 0.0),
            *rounded_division("floor"),
            *rounded_division("trunc"),
        ],
        errors=[
            E("mode", RuntimeError, r"div expected rounding_mode to be one of", real(2), real(2), rounding_mode="up"),
            E(
                "integers by zero",
                RuntimeError,
                r"ZeroDivisionError",
                integers(2),
                given([0, 0], "int64"),
                rounding_mode="floor",
            ),
        ],
        reference=_divided,
    ),
    binary("divide", right=nonzero, reference=np.true_divide),
    binary("true_divide", right=nonzero, reference=np.true_divide),
    Op(
        "floor_divide",
        "floor_divide",
        [*quotients("floor"), V("broadcast", nonzero(2, 1), nonzero(3, requires_grad=False))],
        errors=[mismatch()],
        method="floor_divide",
        inplace="floor_divide_",
        differentiable=False,
    ),
    Op(
        "remainder",
        "remainder",
        [*quotients("remainder"), V("number on the left", 7.3, given([2.0, 3.0], requires_grad=False), method=False)],
        errors=[mismatch()],
        method="remainder",
        inplace="remainder_",
        reference=np.remainder,
    ),
    Op(
        "fmod",
        "fmod",
        quotients("fmod"),
        errors=[mismatch()],
        method="fmod",
        inplace="fmod_",
        reference=np.fmod,
    ),
    binary("atan2", positive, nonzero, number=None, boolean=False, extra=True, reference=np.arctan2),
    binary("logaddexp", number=None, integer=False, boolean=False, inplace=None, extra=True, reference=np.logaddexp),
    binary("xlogy", right=positive, extra=True, reference=lambda x, y: x * np.log(np.float64(y))),
    binary(
        "maximum",
        distinct,
        lambda *shape, **spec: T(shape, distinct=True, low=-1.9, high=2.2, **spec),
        number=None,
        inplace=None,
        more=[
            V("ties", given([1.0, 2.0, 3.0]), given([1.0, 3.0, 2.0])),
            V("tied with itself", real(2, 3), Same(0)),
            V("nan", given([1.0, float("nan"), 3.0]), given([float("nan"), 3.0, float("inf")])),
        ],
        reference=np.maximum,
    ),
    binary(
        "minimum",
        distinct,
        lambda *shape, **spec: T(shape, distinct=True, low=-1.9, high=2.2, **spec),
        number=None,
        inplace=None,
        more=[
            V("ties", given([1.0, 2.0, 3.0]), given([1.0, 3.0, 2.0])),
            V("nan", given([1.0, float("nan"), 3.0]), given([float("nan"), 3.0, float("-inf")])),
        ],
        reference=np.minimum,
    ),
    Op(
        "max.other",
        "max",
        [S("broadcast", distinct(2, 3), distinct(3, low=-1.9)), V("ties", given([1.0, 2.0]), given([1.0, 1.0]))],
        method="max",
        reference=np.maximum,
    ),
    Op(
        "min.other",
        "min",
        [S("broadcast", distinct(2, 3), distinct(3, low=-1.9)), V("ties", given([1.0, 2.0]), given([1.0, 1.0]))],
        method="min",
        reference=np.minimum,
    ),
    binary("fmax", distinct, lambda *s, **k: T(s, distinct=True, low=-1.9, **k), number=None, inplace=None, extra=True),
    binary("fmin", distinct, lambda *s, **k: T(s, distinct=True, low=-1.9, **k), number=None, inplace=None, extra=True),
]

# ---------------------------------------------------------------------------------------------- powers

EXPONENTS = [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, 2.0, 0.0]

POWERS = [
    binary(
        "pow",
        positive,
        real,
        number=2.5,
        boolean=False,
        supports_complex=True,
        more=[
            *[S(f"exponent {e!r}", positive(2, 3), e) for e in EXPONENTS],
            S("negative base", nonzero(2, 3), 3, as_complex=False),
            S("negative base, negative exponent", nonzero(2, 3), -2, as_complex=False),
            S("number as base", 2.5, real(2, 3), method=False),
            S("whole number as base", 3, real(2, 3), method=False, as_complex=False),
            V("number as base of int64", 2, given([0, 1, 3], "int64"), method=False),
            V("zero base", given([0.0, 0.0, 0.0, 0.0]), given([0.0, 1.0, 2.0, 0.5])),
            V("zero as base", 0.0, given([0.0, 1.0, 2.0]), method=False),
            V("one as base", 1.0, real(3), method=False),
            V("zero to 0", given([0.0, 1.0]), 0),
            V("zero to 1", given([0.0, 1.0]), 1),
            V("zero to 2", given([0.0, -1.0]), 2),
            V("zero to 3", given([0.0, -1.0]), 3),
            V("negative to a fraction", given([-1.0, 4.0]), 0.5),
            V("int64 to 3", given([-2, 3], "int64"), 3),
            V("int64 to a fraction", given([2, 4], "int64"), 0.5),
        ],
        errors=[
            E(
                "integers to negative powers",
                RuntimeError,
                r"Integers to negative integer powers are not allowed",
                integers(3),
                -1,
            )
        ],
    ),
    Op(
        "float_power",
        "float_power",
        [S("tensors", positive(2, 3), real(3)), S("number", positive(3), 2), V("int64", given([1, 2], "int64"), 2)],
        method="float_power",
        extra=True,
    ),
]

# ---------------------------------------------------------------------------------------------- Python's operators


def _python(symbol: str, function: Callable[[Any, Any], Any], left: Domain, right: Domain, **options: Any) -> list[Op]:
    """`x ∘ y` with tensors and numbers on either side; the numbers stand where __rop__ is asked."""
    numbers = (2, 1.5)
    into_right = options.pop("into_right", True)  # whether a gradient flows into y where x is a number
    both = [S("tensors", left(2, 3), right(3)), S("0-d", left(), right(2), as_complex=False)]
    both += [S(f"tensor and {n!r}", left(2, 2), n, as_complex=n == numbers[0]) for n in numbers]
    both += [
        S(f"{n!r} and tensor", n, right(2, 2, requires_grad=into_right), as_complex=n == numbers[0]) for n in numbers
    ]
    both += [
        V("int64 and 2", given([1, 2, 3], "int64"), 2),
        V("2 and int64", 2, given([1, 2, 3], "int64")),
        V("int64 and 1.5", given([1, 2, 3], "int64"), 1.5),
        V("1.5 and int64", 1.5, given([1, 2, 3], "int64")),
        V("1.5 and float32", 1.5, right(2, dtype="float32", requires_grad=into_right)),
        V("int64 and float64", given([1, 2, 3], "int64"), right(3)),
    ]
    return [Op(f"__{symbol}__", lambda torch, x, y: function(x, y), both, errors=[mismatch()], **options)]


PYTHON = [
    *_python("add", operator.add, real, real, supports_complex=True, reference=np.add),
    *_python("sub", operator.sub, real, real, supports_complex=True, reference=np.subtract),
    *_python("mul", operator.mul, real, real, supports_complex=True, reference=np.multiply),
    *_python("truediv", operator.truediv, nonzero, nonzero, supports_complex=True, reference=np.true_divide),
    *_python("pow", operator.pow, positive, real, supports_complex=True),
    *_python("mod", operator.mod, between(5.1, 5.7), between(2.1, 2.4), into_right=False, reference=np.remainder),
    Op(
        "__floordiv__",
        lambda torch, x, y: x // y,
        [
            V("tensors", given([7.3, -7.3]), given([2.0, 2.0])),
            V("number", given([7.3, -7.3]), 2),
            V("number on the left", 7.5, given([2.0, -2.0])),
            V("int64", given([7, -7], "int64"), 2),
        ],
        differentiable=False,
        reference=np.floor_divide,
    ),
    *[
        Op(
            f"__{name}__",
            lambda torch, x, y, function=function: function(x, y),
            [
                V("bool", mask([True, True, False]), mask([True, False, False])),
                V("int64", given([6, 5], "int64"), given([3, 3], "int64")),
                V("int64 and number", given([6, 5], "int64"), 3),
                V("number and int64", 3, given([6, 5], "int64")),
                V("bool and bool number", mask([True, False]), True),
            ],
            differentiable=False,
            reference=function,
        )
        for name, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor))
    ],
]

OPS = [*UNARY, *BINARY, *POWERS, *PYTHON]

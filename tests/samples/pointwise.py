"""Samples of pointwise operators are made here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samples.spec import E, Op, S, Sample, T, V, given, mask, real

Domain = Callable[..., T]

SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan")]


def between(low: float, high: float, avoid: tuple[float, ...] = ()) -> Domain:
    """A domain of one's own: float64 in [low, high], away from the kinks in `avoid`."""
    return lambda *shape, **spec: T(shape, low=low, high=high, avoid=avoid, **spec)


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


NOT_A_TENSOR = E("number", TypeError, r"must be Tensor, not float", 1.5)


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

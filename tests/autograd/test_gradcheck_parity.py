"""gradcheck and gradgradcheck beside torch: the same verdict on right and wrong functions, in the same words."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import retrograd

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def functions(lib: Any) -> SimpleNamespace:
    """Custom functions, each wrong in a way of its own."""

    def made(forward: Callable, backward: Callable, jvp: Callable | None = None) -> Callable:
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        if jvp is not None:
            members["jvp"] = staticmethod(jvp)
        return type("Wrong", (lib.autograd.Function,), members).apply

    def two_outputs(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, y * 2

    def from_nothing(ctx: Any, a: Any, b: Any) -> Any:
        first = lib.ones(2, dtype=lib.float64) if a is None else a * 2
        return first, None if b is None else b * 2

    def twice(ctx: Any, x: Any) -> Any:
        return x * 2

    return SimpleNamespace(
        wrong_gradient=made(twice, lambda ctx, g: g * 3),
        wrong_tangent=made(twice, lambda ctx, g: g * 2, lambda ctx, t: t * 3),
        random_gradient=made(twice, lambda ctx, g: g * 2 * (1 + lib.rand(1, dtype=g.dtype) * 1e-6)),
        wrong_dtype=made(twice, lambda ctx, g: (g * 2).to(lib.float32)),
        gradient_from_zero=made(twice, lambda ctx, g: g * 2 + 1e-3),
        no_undefined=made(two_outputs, lambda ctx, a, b: (a * 2, None if b is None else b * 2)),
        gradient_from_nothing=made(two_outputs, from_nothing),
        wrong_shape=made(lambda ctx, x: x.sum(), lambda ctx, g: g),
    )


def calls(lib: Any, fast: bool) -> dict[str, Callable[[], Any]]:
    wrong = functions(lib)

    def x(dtype: Any = lib.float64) -> Any:
        return lib.tensor([0.5, 1.5], dtype=dtype, requires_grad=True)

    def z() -> Any:
        return lib.tensor([0.5 + 1j, 1.5 - 2j], dtype=lib.complex128, requires_grad=True)

    def check(function: Callable, *inputs: Any, **options: Any) -> Callable[[], Any]:
        return lambda: lib.autograd.gradcheck(function, inputs, fast_mode=fast, **options)

    def second(function: Callable, *inputs: Any, **options: Any) -> Callable[[], Any]:
        return lambda: lib.autograd.gradgradcheck(function, inputs, fast_mode=fast, **options)

    def twice(a: Any) -> Any:
        return a * 2

    def cube(a: Any) -> Any:
        return a**3

    both = {"check_forward_ad": True}
    forward_only = {"check_forward_ad": True, "check_backward_ad": False}
    plain = {"check_undefined_grad": False}
    return {
        "right": check(twice, x(), **both),
        "wrong gradient": check(wrong.wrong_gradient, x()),
        "wrong gradient, complex": check(wrong.wrong_gradient, z()),
        "wrong gradient, no exception": check(wrong.wrong_gradient, x(), raise_exception=False),
        "wrong tangent": check(wrong.wrong_tangent, x(), **both),
        "wrong tangent, complex": check(wrong.wrong_tangent, z(), **both),
        "wrong tangent, no exception": check(wrong.wrong_tangent, x(), **both, raise_exception=False),
        "random": check(wrong.random_gradient, x()),
        "random, tolerated": check(wrong.random_gradient, x(), nondet_tol=1e-4),
        "wrong dtype": check(wrong.wrong_dtype, x(), check_grad_dtypes=True, atol=1e-2),
        "wrong dtype, not checked": check(wrong.wrong_dtype, x(), atol=1e-2),
        "gradient of zero": check(wrong.gradient_from_zero, x(), atol=1e-1),
        "undefined": check(wrong.no_undefined, x(), x()),
        "undefined, not checked": check(wrong.no_undefined, x(), x(), **plain),
        "gradient from nothing": check(wrong.gradient_from_nothing, x(), x()),
        "wrong shape": check(wrong.wrong_shape, x()),
        "nothing requires grad": check(twice, x().detach()),
        "single precision": check(twice, x(lib.float32)),
        "expanded": check(twice, lib.ones(1, dtype=lib.float64, requires_grad=True).expand(3)),
        "not a leaf": check(twice, x() * 2),
        "integer output": check(lambda a: (a * 2, a.long()), x()),
        "only integer output": check(lambda a: a.long(), x()),
        "constant": check(lambda a: lib.ones(2, dtype=lib.float64), x()),
        "detached": check(lambda a: a.detach() * 2, x()),
        "detached, forward": check(lambda a: a.detach() * 2, x(), **both),
        "neither mode": check(twice, x(), check_backward_ad=False),
        "batches without backward": check(twice, x(), **forward_only, check_batched_grad=True),
        "batches without forward": check(twice, x(), check_batched_forward_grad=True),
        "batches": check(twice, x(), check_batched_grad=True),
        "forward only": check(twice, x(), **forward_only),
        "masked": check(twice, x(), masked=True),
        "not masked": check(twice, x(), masked=False),
        "raises": check(lambda a: 1 / 0, x()),
        "raises, no exception": check(lambda a: 1 / 0, x(), raise_exception=False),
        "several inputs": check(lambda a, b: a * b, x(), x(), **both),
        "other inputs": check(lambda a, b: a * b, x(), 2.0),
        "no tensor": check(twice, 2.0),
        "an input as output": check(lambda a: a, x()),
        "writes to its input": check(lambda a: a.mul_(2), x()),
        "empty": check(twice, lib.zeros(0, dtype=lib.float64, requires_grad=True)),
        "large step": check(cube, x(), eps=1e-1),
        "complex to real": check(lambda a: a.abs(), z(), **both),
        "real to complex": check(lambda a: a * (1 + 2j), x(), **both),
        "complex and real": check(lambda a, b: a * b, x(), z(), **both),
        "second": second(cube, x(), check_fwd_over_rev=True),
        "second, complex": second(cube, z(), check_fwd_over_rev=True),
        "second, wrong": second(wrong.wrong_gradient, x()),
        "second, linear": second(twice, x()),
        "second, spread out": second(cube, x(), gen_non_contig_grad_outputs=True),
        "second, forward only": second(cube, x(), check_fwd_over_rev=True, check_rev_over_rev=False, **plain),
        "second, forward and undefined": second(cube, x(), check_fwd_over_rev=True, check_rev_over_rev=False),
        "second, neither": second(cube, x(), check_rev_over_rev=False, **plain),
        "second, forward and batches": second(
            cube, x(), check_fwd_over_rev=True, check_rev_over_rev=False, check_batched_grad=True, **plain
        ),
    }


def verdict(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What came back, or the kind and the first words of the error; and the warnings' first words."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            # Without the numbers of a fast check, which are random, and what comes after the first sentence.
            text = re.sub(r"-?\d+\.\d*(e-?\d+)?j?", "N", str(error))
            result = type(error).__name__, re.split(r"\.(?=[ \nA-Z]|$)|\n", text)[0]
    told = [str(w.message)[:60] for w in seen if "torch.jit" not in str(w.message)]
    return result, told


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("name", calls(retrograd, False))
def test_the_verdict_is_torchs(name, fast):
    retrograd.manual_seed(0)  # directions of the fast mode: along some of them an error can be too small to be seen
    assert verdict(calls(retrograd, fast)[name]) == verdict(calls(torch, fast)[name])

"""A number that is written into a tensor fits, or is refused before anything is written; and is a number at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import retrograd

NAN, INF = float("nan"), float("inf")


def _set(x: Any, key: Any, value: Any) -> None:
    x[key] = value


#: Ways to write a number into a tensor of three elements.
WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fill_": lambda torch, x, v: x.fill_(v),
    "fill": lambda torch, x, v: torch.fill(x, v),
    "full_like": lambda torch, x, v: torch.full_like(x, v),
    "full": lambda torch, x, v: torch.full((3,), v, dtype=x.dtype),
    "new_full": lambda torch, x, v: x.new_full((3,), v),
    "scalar_tensor": lambda torch, x, v: torch.scalar_tensor(v, dtype=x.dtype),
    "x[0] =": lambda torch, x, v: _set(x, 0, v),
    "x[:2] =": lambda torch, x, v: _set(x, slice(0, 2), v),
    "x[mask] =": lambda torch, x, v: _set(x, torch.tensor([True, False, True]), v),
    "x[index] =": lambda torch, x, v: _set(x, torch.tensor([0, 2]), v),
    "scatter_": lambda torch, x, v: x.scatter_(0, torch.tensor([0]), v),
    "scatter": lambda torch, x, v: torch.scatter(x, 0, torch.tensor([0]), v),
    "masked_fill_": lambda torch, x, v: x.masked_fill_(torch.tensor([True, False, True]), v),
    "masked_fill": lambda torch, x, v: x.masked_fill(torch.tensor([True, False, True]), v),
    "index_fill_": lambda torch, x, v: x.index_fill_(0, torch.tensor([0]), v),
    "index_fill": lambda torch, x, v: x.index_fill(0, torch.tensor([0]), v),
    "fill_diagonal_": lambda torch, x, v: x.reshape(1, 3).fill_diagonal_(v),
    "threshold": lambda torch, x, v: torch.nn.functional.threshold(x, 0, v),
    "index_add alpha": lambda torch, x, v: x.index_add(0, torch.tensor([0]), x[:1], alpha=v),
    "addcmul value": lambda torch, x, v: torch.addcmul(x, x, x, value=v),
}


@pytest.mark.parametrize("value", [NAN, INF, 1j, 2.0**70], ids=str)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("way", WRITES)
def test_an_integer_takes_what_it_can_hold(torch: Any, way: str, dtype: str, value: Any) -> None:
    x = torch.ones(3, dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match=r"without overflow|Converting complex Scalar"):
        WRITES[way](torch, x, value)
    assert x.tolist() == [1, 1, 1]
    assert x._version == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("way", WRITES)
def test_a_real_tensor_takes_no_imaginary_part(torch: Any, way: str, dtype: str) -> None:
    x = torch.ones(3, dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match=r"without overflow|Converting complex Scalar"):
        WRITES[way](torch, x, 1j)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [None, "a", b"x", [], object()], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16", "complex64"])
@pytest.mark.parametrize("way", WRITES)
def test_what_is_no_number_is_refused(torch: Any, way: str, dtype: str, value: Any) -> None:
    x = torch.ones(3, dtype=getattr(torch, dtype))
    # (An empty list in x[key] = [] has the wrong shape, and torch calls a list of none a ValueError.)
    with pytest.raises((TypeError, ValueError, NotImplementedError, RuntimeError, IndexError)):
        WRITES[way](torch, x, value)
    assert x.tolist() == [1, 1, 1]
    assert x._version == 0


@pytest.mark.parametrize("way", ["fill_", "full_like", "scalar_tensor", "x[0] =", "masked_fill"])
def test_none_is_no_nan(torch: Any, way: str) -> None:
    with pytest.raises(TypeError):
        WRITES[way](torch, torch.ones(3), None)


@pytest.mark.parametrize("way", ["x[mask] =", "masked_fill", "index_fill"])
def test_a_tensor_of_one_number_is_a_number(torch: Any, way: str) -> None:
    """Where torch takes the number out of a tensor without dimensions, it is checked as a number is."""
    x = torch.ones(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="without overflow"):
        WRITES[way](torch, x, torch.tensor(NAN))
    y = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"without overflow|Converting complex Scalar"):
        WRITES[way](torch, y, torch.tensor(1j))


def test_complex_numbers_without_imaginary_part_are_real(torch: Any) -> None:
    for way in ("fill_", "x[0] =", "scatter", "masked_fill", "addcmul value"):
        WRITES[way](torch, torch.ones(3), 1 + 0j)
    assert torch.ones(2, dtype=torch.bool).fill_(1j).tolist() == [True, True]


def test_half_precision_overflows_as_torch_has_it(torch: Any) -> None:
    """An assignment rounds to infinity; what is asked for by value has to be had."""
    x = torch.ones(3, dtype=torch.float16)
    x[torch.tensor([True, False, True])] = -1e9
    assert x.tolist() == [-INF, 1.0, -INF]
    with pytest.raises(RuntimeError, match="c10::Half without overflow"):
        x.masked_fill_(torch.tensor([True, False, True]), -1e9)
    with pytest.raises(RuntimeError, match="float without overflow"):
        torch.ones(3).fill_(1e300)


@pytest.mark.parametrize(("start", "end"), [(1j, 1.0), (0.0, 1j)])
def test_linspace_of_complex_ends_is_not_real(torch: Any, start: Any, end: Any) -> None:
    with pytest.raises(RuntimeError, match="can't be safely cast"):
        torch.linspace(start, end, 3, dtype=torch.float32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_distributions_take_numbers(torch: Any, dtype: str) -> None:
    x = torch.ones(2, dtype=getattr(torch, dtype))
    for name, args in {
        "normal_": ("a",), "uniform_": ("a", "b"), "cauchy_": ("a",), "log_normal_": ("a",), "exponential_": ("a",),
        "geometric_": ("a",), "bernoulli_": ("a",), "random_": ("a",),
    }.items():  # fmt: skip
        with pytest.raises(TypeError):
            getattr(x, name)(*args)
    for name, args in {"normal_": (0, NAN), "exponential_": (NAN,), "uniform_": (0, INF)}.items():
        with pytest.raises(RuntimeError):
            getattr(x, name)(*args)
    assert x.tolist() == [1, 1]


def test_no_wrong_number_ends_the_interpreter() -> None:
    """150,000 calls in a process of their own; before, `ones(2, dtype=bfloat16).normal_("a")` was its last."""
    program = Path(__file__).with_name("wrong_numbers.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ended by {done.stderr.splitlines()[-1:]}"
    assert int(done.stdout) > 100_000


@pytest.mark.parametrize("value", [-0.375, -1.5, 255.5, 256.0, 256])
def test_floats_do_not_wrap_in_unsigned_tensors(torch: Any, value: float) -> None:
    """-1 is 255 there; -0.375 and 255.5 are beyond the ends."""
    x = torch.ones(2, dtype=torch.uint8)
    for write in (x.fill_, lambda v: x.__setitem__(0, v), lambda v: torch.full((2,), v, dtype=torch.uint8)):
        with pytest.raises(RuntimeError, match="without overflow"):
            write(value)
    assert x.tolist() == [1, 1] and x.fill_(-1).tolist() == [255, 255] and x.fill_(254.5).tolist() == [254, 254]


def test_bits_of_bfloat16(torch: Any) -> None:
    x = torch.ones(2, dtype=torch.bfloat16)
    for operator in (lambda: x & x, lambda: x | x, lambda: x ^ x, lambda: x.clone().bitwise_xor_(x)):
        with pytest.raises(NotImplementedError, match="not implemented for 'BFloat16'"):
            operator()


def _write(torch, key, value, dtype="float32"):
    x = torch.zeros(2, dtype=getattr(torch, dtype))
    x[key(torch) if callable(key) else key] = value
    return x


COMPLEX_THAT_IS_REAL = {
    "threshold": (lambda torch: torch.threshold(torch.zeros(2), 1 + 0j, 1 + 0j), [1.0, 1.0]),
    "scatter": (lambda torch: torch.zeros(2).scatter(0, torch.tensor([0]), 1 + 0j), [1.0, 0.0]),
    "lerp": (lambda torch: torch.lerp(torch.zeros(2), torch.ones(2), 0.5 + 0j), [0.5, 0.5]),
    "setitem": (lambda torch: _write(torch, 0, 1 + 0j), [1.0, 0.0]),
    "setitem, advanced": (lambda torch: _write(torch, lambda torch: torch.tensor([1]), 1 + 0j), [0.0, 1.0]),
    "clamp": (lambda torch: torch.zeros(2).clamp(min=1 + 0j), [1.0, 1.0]),
    "clamp, both": (lambda torch: torch.ones(2).clamp(0 + 0j, 0.5), [0.5, 0.5]),
    "clamp_": (lambda torch: torch.ones(2).clamp_(max=0.5 + 0j), [0.5, 0.5]),
    "hardshrink": (lambda torch: torch.hardshrink(torch.ones(2), 1 + 0j), [0.0, 0.0]),
    "softshrink": (lambda torch: torch.nn.functional.softshrink(torch.ones(2), 0.5 + 0j), [0.5, 0.5]),
    "leaky_relu": (lambda torch: torch.nn.functional.leaky_relu(-torch.ones(2), 2 + 0j), [-2.0, -2.0]),
    "celu": (lambda torch: torch.nn.functional.celu(torch.ones(2), 1 + 0j), [1.0, 1.0]),
    "rrelu": (lambda torch: torch.nn.functional.rrelu(-torch.ones(2), 2 + 0j, 2 + 0j), [-2.0, -2.0]),
    "softplus": (lambda torch: torch.nn.functional.softplus(30 * torch.ones(2), 1 + 0j), [30.0, 30.0]),
    "histc": (lambda torch: torch.histc(torch.ones(2), 2, 0j, 2 + 0j), [0.0, 2.0]),
    "arange": (lambda torch: torch.arange(0, 2 + 0j), [0.0, 1.0]),
}


@pytest.mark.parametrize("name", COMPLEX_THAT_IS_REAL)
def test_a_complex_number_without_imaginary_part_is_real(torch, name):
    call, expected = COMPLEX_THAT_IS_REAL[name]
    result = call(torch)
    assert result.dtype == torch.float32 and result.tolist() == expected


REFUSED = {
    "threshold": lambda torch: torch.threshold(torch.zeros(2), 1, 1j),
    "scatter": lambda torch: torch.zeros(2).scatter(0, torch.tensor([0]), 1j),
    "lerp": lambda torch: torch.lerp(torch.zeros(2), torch.ones(2), 1j),
    "setitem": lambda torch: _write(torch, 0, 1j),
    "clamp": lambda torch: torch.zeros(2).clamp(min=1j),
    "leaky_relu": lambda torch: torch.nn.functional.leaky_relu(torch.ones(2), 1j),
    "softplus": lambda torch: torch.nn.functional.softplus(torch.ones(2), 1j),
    "softplus, threshold": lambda torch: torch.nn.functional.softplus(torch.ones(2), 1, 1j),
    "softshrink": lambda torch: torch.nn.functional.softshrink(torch.ones(2), 1j),
    "hardshrink": lambda torch: torch.hardshrink(torch.ones(2), 1j),
    "elu": lambda torch: torch.nn.functional.elu(torch.ones(2), 1j),
    "celu": lambda torch: torch.nn.functional.celu(torch.ones(2), 1j),
    "histc": lambda torch: torch.histc(torch.ones(2), 2, 1j, 2),
    "arange": lambda torch: torch.arange(0, 2j),
    "setitem, too large": lambda torch: _write(torch, 0, 1e39),
    "setitem, too large, slice": lambda torch: _write(torch, slice(None), 1e39),
    "setitem, too large, advanced": lambda torch: _write(torch, lambda torch: torch.tensor([1]), -1e39),
    "setitem, too large, mask": lambda torch: _write(torch, lambda torch: torch.tensor([True, False]), 1e39),
    "setitem, too large, complex": lambda torch: _write(torch, 0, 1e39, "complex64"),
    "scalar_tensor": lambda torch: torch.scalar_tensor(1e39),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_number_that_does_not_fit_is_refused(torch, name):
    with pytest.raises(RuntimeError, match=r"value cannot be converted to type .* without overflow"):
        REFUSED[name](torch)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_alpha_is_a_number_of_the_tensors_kind(torch, name):
    x, n = torch.ones(2), torch.ones(2, dtype=torch.int64)
    for call in (getattr(torch, name), getattr(torch.Tensor, name + "_")):
        with pytest.raises(RuntimeError, match="argument alpha must not be a complex number"):
            call(x, x, alpha=1 + 0j)
        with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
            call(n, n, alpha=1.0)
        assert call(x, 1, alpha=1.0).dtype == torch.float32
    assert x.tolist() == ([2.0, 2.0] if name == "add" else [0.0, 0.0]) and n.tolist() == [1, 1]


def test_complex_numbers_have_no_place_among_reals(torch):
    with pytest.raises(NotImplementedError, match="searchsorted_out_cpu"):
        torch.searchsorted(torch.ones(2), 1 + 0j)
    with pytest.raises(RuntimeError, match="renorm: p must be real-valued"):
        torch.renorm(torch.ones(2, 2), 1 + 0j, 0, 1)
    with pytest.raises(RuntimeError, match="renorm: maxnorm must be real-valued"):
        torch.renorm(torch.ones(2, 2), 1, 0, 1 + 0j)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("key", [0, slice(1), lambda torch: torch.tensor([0])])
def test_what_is_too_large_for_16_bits_is_written_as_infinite(torch, dtype, key):
    """In torch it goes through float32 there, and the conversion is not checked."""
    assert _write(torch, key, 1e39, dtype).tolist() == [float("inf"), 0.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("value", [2**63, 2**70, -(2**63) - 1])
def test_an_integer_of_more_than_64_bits_is_not_written(torch, dtype, value):
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        _write(torch, 0, value, dtype)


def test_clamp_between_complex_limits_has_a_gradient():
    """torch's backward compares with the complex number itself, and fails."""
    x = retrograd.tensor([0.0, 2.0], requires_grad=True)
    x.clamp(min=1 + 0j).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]

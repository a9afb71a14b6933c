"""What warns, as in torch; what does not, although NumPy would; and NumPy's functions on Tensors."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.core import quiet


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda t: float(t.tensor(1.5, requires_grad=True)), "Converting a tensor with requires_grad=True to a scalar"),
        (lambda t: t.arange(3)[t.tensor([1, 0, 1], dtype=t.uint8)], "indexing with dtype torch.uint8 is now deprec"),
        (lambda t: t.where(t.tensor([1, 0], dtype=t.uint8), t.ones(2), t.zeros(2)), "uint8 condition tensor"),
        (lambda t: t.var(t.tensor([1.0])), "degrees of freedom is <= 0"),
        (lambda t: t.ones(3, 1).std(1), "degrees of freedom is <= 0"),
        (lambda t: t.tensor([np.ones(2), np.ones(2)]), "list of numpy.ndarrays is extremely slow"),
        (lambda t: t.range(1, 3), "torch.range is deprecated"),
        (lambda t: t.stft(t.ones(8), 4, return_complex=True), "A window was not provided"),
        (lambda t: t.ones(2, 3, 4).T, "dimension other than 2"),
    ],
)
def test_warns(torch: Any, call: Any, match: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(torch)
    seen = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    if not seen and torch.__name__ == "torch":
        pytest.skip("torch warns of this once in a process, and has")
    assert any(match in text for text in seen)


@pytest.fixture
def as_installed() -> Iterator[None]:
    """The modules that compute have no names, as for users; conftest.py has given them back."""
    quiet.drop_names(*quiet._unnamed)
    yield
    quiet.restore_names()


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("action", ["always", "error", "default"])
def test_numpys_warnings_stay_inside(action: str) -> None:
    """Whatever filters are in force: no warning, no error, forward or backward."""
    divide_by_zero(action)
    retrograd.ones(1, dtype=retrograd.float8_e4m3fn)  # has kernels guarded from now on
    divide_by_zero(action)


def test_a_warning_that_is_raised_in_a_module_with_a_name_has_no_effect() -> None:
    """What raised is computed again, what must not be was computed quietly: it does not hang on missing names alone."""
    divide_by_zero("error")


def divide_by_zero(action: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        x = retrograd.tensor([0.0, -1.0, 3e38], requires_grad=True)
        for result in (1 / x, x.log(), x * 1e10, x**0.5, x.sqrt(), x / 0, x.mean() * 1e38, (x - x) / (x - x)):
            result.sum().backward()
        assert retrograd.tensor([]).mean().isnan()
        assert retrograd.tensor([float("nan")]).to(retrograd.int64).dtype is retrograd.int64
        x.detach().div_(0)
        retrograd.tensor([1e39, 1.0], dtype=retrograd.float64).to(retrograd.float32)
    assert not caught


def test_numpys_deprecations_are_heard_in_tests() -> None:
    """A kernel that calls what NumPy is about to take away fails, by the filters in pyproject.toml."""
    assert len(quiet._unnamed) > 30
    for name, module in quiet._unnamed.items():
        assert module.__name__ == name
        with pytest.raises(DeprecationWarning, match="will go away"):
            exec("import warnings; warnings.warn('it will go away', DeprecationWarning)", vars(module))


def test_modules_that_compute_have_no_name_elsewhere() -> None:
    script = """
import warnings
warnings.simplefilter("error")
import retrograd as torch
from retrograd.core import quiet
assert len(quiet._unnamed) > 30
assert {vars(module)["__name__"] for module in quiet._unnamed.values()} == {None}
print(torch.ops.aten.mul.Tensor, (torch.ones(1) / 0).item())
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("aten.mul.Tensor inf\n", "")


@pytest.mark.skipif(sys.version_info < (3, 14), reason="an option of Python 3.14")
def test_numpys_warnings_stay_inside_where_each_context_has_filters_of_its_own() -> None:
    script = """
import warnings
import retrograd as torch
x = torch.tensor([3e38], requires_grad=True)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    (x * 1e10).sum().backward()
    (x * -1e10).sum().backward()     # inf - inf: an invalid sum
    x.detach().div_(0)
print(x.grad.item())
"""
    command = [sys.executable, "-X", "context_aware_warnings=1", "-c", script]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("0.0\n", "")


def test_numpys_functions(torch: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's about torch
        assert isinstance(np.sin(torch.zeros(2)), torch.Tensor)
        assert np.add(torch.ones(2), np.ones(2)).tolist() == [2, 2]
        product = torch.ones(2) * np.array([2.0, 3.0])
        assert isinstance(product, torch.Tensor)
        assert product.tolist() == [2, 3]
        assert np.isnan(torch.zeros(1)).dtype is torch.uint8
    assert (torch.ones(2) == np.array([1.0, 2.0])).tolist() == [True, False]
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        np.spacing(torch.zeros(1, requires_grad=True))  # NumPy alone has it


def test_reversed(torch: Any) -> None:
    assert reversed(torch.tensor([[1, 2], [3, 4]])).tolist() == [[3, 4], [1, 2]]
    assert reversed(torch.tensor(1)).item() == 1


def test_no_item_can_be_deleted(torch: Any) -> None:
    with pytest.raises(TypeError, match="does not support deleting items"):
        del torch.ones(2)[0]


def test_masked_select_takes_bools(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="expected BoolTensor for mask"):
        torch.masked_select(torch.ones(2), torch.ones(2, dtype=torch.uint8))


def test_results_have_names(torch: Any) -> None:
    found = torch.sort(torch.tensor([2.0, 1.0]))
    assert repr(found) == "torch.return_types.sort(\nvalues=tensor([1., 2.]),\nindices=tensor([1, 0]))"
    assert isinstance(found, torch.return_types.sort)
    again = type(found)([x + 1 for x in found])  # how torch's are made
    assert again.values.tolist() == [2, 3] and again.n_fields == 2
    with pytest.raises(TypeError, match="takes a 2-sequence"):
        type(found)([found.values])

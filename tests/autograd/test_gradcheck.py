"""gradcheck: it says yes to what is right, and no, in words, to each thing that can be wrong; the same on torch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")

BOTH = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


@pytest.fixture
def x(torch):
    return torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)


@pytest.fixture
def z(torch):
    return torch.tensor([0.5 + 1j, 1.5 - 0.3j], dtype=torch.complex128, requires_grad=True)


def error_of(torch: Any) -> type:
    if torch is retrograd:
        from retrograd.autograd.gradcheck import GradcheckError
    else:
        from torch.autograd.gradcheck import GradcheckError
    return GradcheckError


def off(amount: float) -> Any:
    """A function whose gradient is off by `amount`."""

    def function(x: Any) -> Any:
        y = x.clone()
        y.register_hook(lambda grad: grad + amount)
        return y

    return function


def doubled(x: Any) -> Any:
    y = x.clone()
    y.register_hook(lambda grad: None if grad is None else grad * 2)
    return y


# ------------------------------------------------------------------------------------------------------------------ yes


@BOTH
def test_right_functions(torch, x, z, fast_mode):
    both = {"fast_mode": fast_mode, "check_forward_ad": True}
    gradcheck = torch.autograd.gradcheck
    assert gradcheck(lambda x: x.exp() * x, x, **both) is True
    assert gradcheck(lambda x: (x * 2, x.sum()), (x,), **both)
    assert gradcheck(lambda x, n, y: x**n * y, (x, 3, x.detach().clone()), **both)
    if torch is retrograd:  # torch miscounts the outputs, and takes differences of bools
        assert gradcheck(lambda x: x > 1, (x,), fast_mode=fast_mode)
        assert gradcheck(lambda x: (x > 1, x.detach(), x * 2), (x,), **both)
    assert gradcheck(lambda x: (), (x,), fast_mode=fast_mode)
    assert gradcheck(lambda x, y: x @ y, (x, x.detach().clone().requires_grad_()), **both)


@BOTH
def test_right_complex_functions(torch, x, z, fast_mode):
    both = {"fast_mode": fast_mode, "check_forward_ad": True}
    gradcheck = torch.autograd.gradcheck
    assert gradcheck(lambda z: z * z, z, **both)
    assert gradcheck(lambda z: z.abs(), z, **both)
    assert gradcheck(lambda z: (z.conj() * 2j, z.real), z, **both)
    assert gradcheck(lambda x: torch.complex(x, x * x), x, **both)
    assert gradcheck(lambda x, z: x * z, (x, z), **both)


@BOTH
def test_second_order(torch, x, z, fast_mode):
    gradgradcheck = torch.autograd.gradgradcheck
    assert gradgradcheck(lambda x: x.exp() * x, x, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x**3, x, fast_mode=fast_mode, check_fwd_over_rev=True)
    only_forward = {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False}
    assert gradgradcheck(lambda x: x**3, x, fast_mode=fast_mode, **only_forward)
    assert gradgradcheck(lambda x: x**3, x, gen_non_contig_grad_outputs=True, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x**3, x, torch.ones(2, dtype=torch.float64, requires_grad=True), fast_mode=fast_mode)
    assert gradgradcheck(lambda z: z * z * z.conj(), z, fast_mode=fast_mode)


def test_batches_and_dtypes(torch, x):
    assert torch.autograd.gradcheck(
        lambda x: (x.exp(), x * x),
        x,
        check_batched_grad=True,
        check_forward_ad=True,
        check_batched_forward_grad=True,
        check_grad_dtypes=True,
    )
    assert torch.autograd.gradgradcheck(lambda x: x**3, x, check_batched_grad=True)


def test_inputs_are_left_as_they_were(torch, x):
    before = x.tolist()
    torch.autograd.gradcheck(lambda x: x.exp(), x)
    assert x.tolist() == before
    assert x.grad is None
    assert x._version == 0

    def fail(x: Any) -> Any:
        if x[0] > 0.5:
            raise ZeroDivisionError
        return x * 1

    with pytest.raises(ZeroDivisionError):
        torch.autograd.gradcheck(fail, x)
    if torch is retrograd:  # torch leaves the last step in it
        assert x.tolist() == before


def test_any_layout(torch):
    m = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    for layout in (m.t(), m[:, ::2], m[1:]):
        given = layout.detach().requires_grad_()
        assert torch.autograd.gradcheck(lambda m: m * m, given, check_forward_ad=True)


def test_empty_and_0_d(torch):
    for shape in ((0,), (0, 3), ()):
        x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
        for fast_mode in (False, True):
            assert torch.autograd.gradcheck(lambda x: x * x, x, check_forward_ad=True, fast_mode=fast_mode)


def test_fast_mode_leaves_the_random_numbers_alone(torch):
    """A function that draws the same whenever the state is the same is checked as it is."""
    noisy = torch.nn.RReLU()

    def frozen(x):
        state = torch.get_rng_state()
        try:
            return noisy(x)
        finally:
            torch.set_rng_state(state)

    x = torch.tensor([-1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    state = torch.get_rng_state()
    assert torch.autograd.gradcheck(frozen, x, fast_mode=True)
    assert torch.get_rng_state().equal(state)


# ------------------------------------------------------------------------------------------------------------------- no


@BOTH
def test_a_wrong_gradient(torch, x, fast_mode):
    with pytest.raises(error_of(torch), match="Jacobian mismatch for output 0 with respect to input 0") as caught:
        torch.autograd.gradcheck(off(1e-2), x, fast_mode=fast_mode)
    text = str(caught.value)
    assert "numerical:" in text
    assert "analytical:" in text
    assert ("slow mode" in text) == fast_mode
    assert isinstance(caught.value, RuntimeError)
    assert torch.autograd.gradcheck(off(1e-2), x, fast_mode=fast_mode, raise_exception=False) is False


def test_the_report_names_the_place():
    x = retrograd.tensor([1.0, 2.0, 3.0], dtype=retrograd.float64, requires_grad=True)

    class Wrong(retrograd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * retrograd.tensor([1.0, 1.0, 1.5], dtype=retrograd.float64)

    with pytest.raises(RuntimeError) as caught:
        retrograd.autograd.gradcheck(Wrong.apply, x)
    text = str(caught.value)
    assert "The largest difference is 0.5, between element 2 of the input and element 2 of the output" in text


def test_a_wrong_complex_gradient(torch, x, z):
    with pytest.raises(error_of(torch), match="While considering the imaginary part of complex outputs only"):
        torch.autograd.gradcheck(off(1e-2), z)
    with pytest.raises(error_of(torch), match="While considering the real part of complex outputs only"):
        torch.autograd.gradcheck(lambda z: torch.complex(doubled(z.real), z.imag), z)
    with pytest.raises(error_of(torch), match=r"^Jacobian mismatch for output 0 with respect to input 0"):
        torch.autograd.gradcheck(lambda z: off(1e-2)(z.real), z)


@BOTH
def test_a_wrong_tangent(torch, x, z, fast_mode):
    forward = torch.autograd.forward_ad

    def wrong(x: Any, y: Any) -> Any:
        if forward._current_level >= 0:
            primal, tangent = forward.unpack_dual(y)
            y = forward.make_dual(primal, tangent * 1.1)
        return x + y, y

    text = "Jacobian computed with forward mode mismatch for output 0 with respect to input 1"
    for first, second in ((x, x), (z, x), (z, z)):
        inputs = (first, second.detach().clone().requires_grad_())
        with pytest.raises(error_of(torch), match=text):
            torch.autograd.gradcheck(wrong, inputs, check_forward_ad=True, fast_mode=fast_mode)
        assert torch.autograd.gradcheck(wrong, inputs, fast_mode=fast_mode)


@BOTH
def test_a_gradient_that_is_there_only_numerically(torch, x, fast_mode):
    with pytest.raises(error_of(torch), match="Numerical gradient for function expected to be zero"):
        torch.autograd.gradcheck(lambda x: x.detach() * 2, x, fast_mode=fast_mode)


@BOTH
def test_a_backward_that_is_random(torch, x, fast_mode):
    def jitter(amount: float) -> Any:
        def function(x: Any) -> Any:
            y = x.clone()
            y.register_hook(lambda grad: None if grad is None else grad * (1 + torch.rand_like(grad) * amount))
            return y

        return function

    with pytest.raises(error_of(torch), match="Backward is not reentrant"):
        torch.autograd.gradcheck(jitter(1e-6), x, fast_mode=fast_mode)
    assert torch.autograd.gradcheck(jitter(1e-6), x, fast_mode=fast_mode, nondet_tol=1e-5)


def test_a_backward_that_adds(torch, x):
    with pytest.raises(error_of(torch), match="backward not multiplied by grad_output"):
        torch.autograd.gradcheck(off(1e-2), x, atol=1e-1)


def test_a_backward_that_cannot_take_undefined_gradients(torch, x):
    def function(x: Any) -> Any:
        def hook(grad: Any) -> None:
            if grad is None:
                raise RuntimeError("undefined")

        y = x.clone()
        y.register_hook(hook)
        return y

    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking feature"),
        pytest.raises(error_of(torch), match="Expected backward function to handle undefined output grads"),
    ):
        torch.autograd.gradcheck(function, x)
    assert torch.autograd.gradcheck(function, x, check_undefined_grad=False)


@BOTH
def test_outputs_that_change_their_kind(torch, fast_mode):
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="return outputs with the same shape when inputs are perturbed"):
        torch.autograd.gradcheck(lambda x: torch.cat([x, x]) if x > 1 else x * 1, x, fast_mode=fast_mode)
    with pytest.raises(AssertionError, match="return outputs with the same dtype when inputs are perturbed"):
        torch.autograd.gradcheck(lambda x: x.to(torch.float32) if x > 1 else x * 1, x, fast_mode=fast_mode)


def test_wrong_calls(torch, x):
    gradcheck = torch.autograd.gradcheck
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, x.detach(), raise_exception=False)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x, x.expand(2, 2), raise_exception=False)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert gradcheck(lambda x: x * 1, torch.ones(1, requires_grad=True), atol=1e-1)
    with pytest.raises(AssertionError, match="Expected at least one of"):
        gradcheck(lambda x: x, x, check_backward_ad=False)
    with pytest.raises(AssertionError, match="requires check_backward_ad"):
        gradcheck(lambda x: x, x, check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
    with pytest.raises(AssertionError, match="requires check_forward_ad"):
        gradcheck(lambda x: x, x, check_batched_forward_grad=True)
    for option in ("check_batched_grad", "check_undefined_grad"):
        others = {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False}
        with pytest.raises(AssertionError, match=f"Setting {option}=True requires check_rev_over_rev to be True"):
            torch.autograd.gradgradcheck(lambda x: x, x, **{**others, option: True})
    with pytest.raises(RuntimeError, match="mine"):
        gradcheck(_raises, x, raise_exception=False)


def _raises(x: Any) -> Any:
    raise RuntimeError("mine")


def test_only_the_modes_asked_for(torch, x):
    forward = torch.autograd.forward_ad
    seen: list[str] = []

    def function(x: Any) -> Any:
        seen.append("forward" if forward._current_level >= 0 else "plain")
        y = x * 1
        if y.requires_grad:
            y.register_hook(lambda grad: seen.append("backward"))
        return y

    torch.autograd.gradcheck(function, x)
    assert set(seen) == {"plain", "backward"}
    seen.clear()
    torch.autograd.gradcheck(function, x, check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False)
    assert set(seen) == {"plain", "forward"}


# ---------------------------------------------------------------------------------------------------------- older names


def test_names(torch):
    import importlib
    import sys

    name = torch.__name__
    importlib.import_module(f"{name}.autograd.gradcheck")
    module = sys.modules[f"{name}.autograd.gradcheck"]
    assert torch.autograd.gradcheck is module.gradcheck
    assert torch.autograd.gradgradcheck is module.gradgradcheck
    assert issubclass(module.GradcheckError, RuntimeError)


def test_jacobians_of_old(torch, x):
    import sys

    module = sys.modules[f"{torch.__name__}.autograd.gradcheck"]
    y = x.detach().clone().requires_grad_()

    def function(inputs: Any) -> Any:
        return 2 * inputs[0] + inputs[1], inputs[0]

    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of PyTorch's private API"):
        found = module.get_numerical_jacobian(function, (x, y), eps=1e-6)
    np.testing.assert_allclose(np.array(found[0].tolist()), 2 * np.eye(2), atol=1e-8)
    np.testing.assert_allclose(np.array(found[1].tolist()), np.eye(2), atol=1e-8)
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part of PyTorch's private API"):
        jacobians, reentrant, sizes, types = module.get_analytical_jacobian((x, y), 2 * x + y)
    assert [j.tolist() for j in jacobians] == [[[2, 0], [0, 2]], [[1, 0], [0, 1]]]
    assert (reentrant, sizes, types) == (True, True, True)
    with warnings.catch_warnings(), pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        warnings.simplefilter("ignore")
        module.get_numerical_jacobian(function, (x, y), grad_out=2.0)


def test_fast_mode_repeats_with_the_seed():
    """The random directions come from the package's generator."""
    x = retrograd.tensor([1.0, 2.0], dtype=retrograd.float64, requires_grad=True)
    texts = []
    for _ in range(2):
        retrograd.manual_seed(3)
        with pytest.raises(RuntimeError) as caught:
            retrograd.autograd.gradcheck(off(1e-2), x, fast_mode=True)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]

"""autograd.functional: products with Jacobians and Hessians, and these themselves; the same on torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


def values(thing: Any) -> Any:
    """Nested tuples of tensors as nested tuples of lists."""
    return tuple(values(part) for part in thing) if isinstance(thing, (tuple, list)) else thing.detach().tolist()


def cubes(x: Any) -> Any:
    return x**3


def mixed(x: Any, y: Any) -> Any:
    return x * y.sum(), (x * x).sum() * y


@pytest.fixture
def x(torch):
    return torch.tensor([1.0, 2.0])


@pytest.fixture
def y(torch):
    return torch.tensor([3.0, 4.0, 5.0])


# ------------------------------------------------------------------------------------------------------- what they give


def test_vjp(torch, x, y):
    vjp = torch.autograd.functional.vjp
    assert values(vjp(cubes, x, torch.tensor([1.0, 10.0]))) == ([1, 8], [3, 120])
    assert values(vjp(lambda x: cubes(x).sum(), x)) == (9, [3, 12])
    outputs, products = vjp(mixed, (x, y), (torch.ones(2), torch.ones(3)))
    assert values(outputs) == ([12, 24], [15, 20, 25])
    assert values(products) == ([12 + 2 * 12, 12 + 4 * 12], [8, 8, 8])


def test_jvp(torch, x, y):
    jvp = torch.autograd.functional.jvp
    assert values(jvp(cubes, x, torch.tensor([1.0, 10.0]))) == ([1, 8], [3, 120])
    assert values(jvp(lambda x: x**3, torch.tensor([2.0]))) == ([8], [12])
    outputs, products = jvp(mixed, (x, y), (torch.ones(2), torch.ones(3)))
    assert values(outputs) == ([12, 24], [15, 20, 25])
    assert values(products) == ([12 + 3, 12 + 6], [6 * 3 + 5, 6 * 4 + 5, 6 * 5 + 5])


def test_both_strategies_of_jvp_agree():
    jvp = retrograd.autograd.functional.jvp
    x, y = retrograd.tensor([1.0, 2.0]), retrograd.tensor([3.0, 4.0, 5.0])
    v = (retrograd.ones(2), retrograd.ones(3))
    assert values(jvp(mixed, (x, y), v)) == values(jvp(mixed, (x, y), v, strategy="forward-mode"))
    with pytest.raises(RuntimeError, match="not supported together"):
        jvp(cubes, x, retrograd.ones(2), strict=True, strategy="forward-mode")
    with pytest.raises(AssertionError, match="Expected strategy"):
        jvp(cubes, x, retrograd.ones(2), strategy="sideways")


STRATEGIES = [
    {},
    {"vectorize": True},
    {"vectorize": True, "strategy": "forward-mode"},
]


@pytest.mark.parametrize("how", STRATEGIES, ids=str)
def test_jacobian(torch, x, y, how):
    jacobian = torch.autograd.functional.jacobian
    assert values(jacobian(cubes, x, **how)) == [[3, 0], [0, 12]]
    assert values(jacobian(lambda x: x.sum(), x, **how)) == [1, 1]
    assert values(jacobian(cubes, torch.tensor(2.0), **how)) == 12
    (xx, xy), (yx, yy) = jacobian(mixed, (x, y), **how)
    assert values(xx) == [[12, 0], [0, 12]]
    assert values(xy) == [[1, 1, 1], [2, 2, 2]]
    assert values(yx) == [[6, 12], [8, 16], [10, 20]]
    assert values(yy) == [[5, 0, 0], [0, 5, 0], [0, 0, 5]]


@pytest.mark.parametrize("how", STRATEGIES, ids=str)
def test_jacobian_keeps_tuples_and_shapes(torch, how):
    jacobian = torch.autograd.functional.jacobian
    m = torch.arange(6.0).reshape(2, 3)
    assert jacobian(lambda m: m.t() * 2, m, **how).shape == (3, 2, 2, 3)
    (single,) = jacobian(lambda m: m.sum(), (m,), **how)
    assert single.shape == (2, 3)
    (single,) = jacobian(lambda m: (m.sum(),), m, **how)
    assert single.shape == (2, 3)
    ((single,),) = jacobian(lambda m: (m.sum(),), (m,), **how)
    assert single.shape == (2, 3)


@pytest.mark.parametrize("how", STRATEGIES, ids=str)
def test_what_is_independent_is_zero(torch, x, how):
    jacobian = torch.autograd.functional.jacobian
    assert values(jacobian(lambda x, y: x, (x, x), **how)) == ([[1, 0], [0, 1]], [[0, 0], [0, 0]])
    assert values(jacobian(lambda x: x.detach(), x, **how)) == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    "how", [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}], ids=str
)
def test_hessian(torch, x, y, how):
    hessian = torch.autograd.functional.hessian
    assert values(hessian(lambda x: cubes(x).sum(), x, **how)) == [[6, 0], [0, 12]]
    assert values(hessian(lambda x: cubes(x).sum().reshape(1), x, **how)) == [[6, 0], [0, 12]]
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x * x).sum() * (y * y).sum(), (x, y), **how)
    assert values(xx) == [[100, 0], [0, 100]]
    assert values(xy) == [[12, 16, 20], [24, 32, 40]]
    assert values(yx) == [[12, 24], [16, 32], [20, 40]]
    assert values(yy) == [[10, 0, 0], [0, 10, 0], [0, 0, 10]]


@pytest.mark.parametrize("name", ["vhp", "hvp"])
def test_hessian_products(torch, x, y, name):
    product = getattr(torch.autograd.functional, name)
    assert values(product(lambda x: cubes(x).sum(), x, torch.tensor([1.0, 10.0]))) == (9, [6, 120])
    value, products = product(lambda x, y: (x * x).sum() * (y * y).sum(), (x, y), (torch.ones(2), torch.zeros(3)))
    assert values(value) == 250
    assert values(products) == ([100, 100], [36, 48, 60])
    assert values(product(lambda x: x.sum(), x, torch.ones(2))) == (3, [0, 0])


# -------------------------------------------------------------------------------------------------- histories and modes


def test_inputs_are_left_alone(torch):
    x = torch.ones(2, requires_grad=True)
    functional = torch.autograd.functional
    for result in (
        functional.vjp(cubes, x, torch.ones(2)),
        functional.jvp(cubes, x, torch.ones(2)),
        functional.vhp(lambda x: cubes(x).sum(), x, torch.ones(2)),
        functional.hvp(lambda x: cubes(x).sum(), x, torch.ones(2)),
        (functional.jacobian(cubes, x), functional.hessian(lambda x: cubes(x).sum(), x)),
    ):
        assert not any(part.requires_grad for part in result)
    assert x.grad is None
    assert x.grad_fn is None


def test_products_with_a_derivative_that_is_not_symmetric(torch):
    """The package's own formulas have symmetric Hessians, somebody's gradient need not: then the side matters."""

    class FirstAlone(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x[0] * x[1] * x[1]

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * torch.stack([x[1] * x[1], x[1] * 0])

    x, v = torch.tensor([2.0, 3.0]), torch.tensor([5.0, 7.0])
    functional = torch.autograd.functional
    assert functional.hvp(FirstAlone.apply, x, v)[1].tolist() == [42.0, 0.0]
    assert functional.vhp(FirstAlone.apply, x, v)[1].tolist() == [0.0, 30.0]

    def hooked(x):
        y = x[0] * x[1] * x[1]
        z = x * 1
        z.register_hook(lambda grad: grad * x[1])
        return y + z.sum()

    # the gradient: [x1 * x1 + x1, 2 * x0 * x1 + x1]
    assert functional.hvp(hooked, x, v)[1].tolist() == [6 * 7.0 + 7.0, 6 * 5.0 + 4 * 7.0 + 7.0]


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_create_graph_of_products(torch, name):
    product = getattr(torch.autograd.functional, name)
    scalar = name in ("vhp", "hvp")

    def function(x: Any) -> Any:
        return (x**4).sum() if scalar else x**4

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([1.0, 10.0], requires_grad=True)
    _, found = product(function, x, v, create_graph=True)
    gx, gv = torch.autograd.grad(found.sum(), (x, v))
    power, factor = (1, 24) if scalar else (2, 12)
    assert gx.tolist() == [factor * 1, factor * 2**power * 10]
    assert gv.tolist() == ([12, 48] if scalar else [4, 32])


@pytest.mark.parametrize("vectorize", [False, True])
def test_create_graph_of_matrices(torch, vectorize):
    functional = torch.autograd.functional
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = functional.jacobian(cubes, x, create_graph=True, vectorize=vectorize)
    assert torch.autograd.grad(found.sum(), x)[0].tolist() == [6, 12]
    found = functional.hessian(lambda x: (x**4).sum(), x, create_graph=True, vectorize=vectorize)
    assert torch.autograd.grad(found.sum(), x)[0].tolist() == [24, 48]


def test_create_graph_of_inputs_that_require_nothing(torch, x):
    found = torch.autograd.functional.jacobian(cubes, x, create_graph=True)
    assert found.requires_grad
    assert not x.requires_grad


def test_under_no_grad(torch, x):
    functional = torch.autograd.functional
    with torch.no_grad():
        _, product = functional.jvp(cubes, x, torch.ones(2))
        assert values(product) == [3, 12]
        assert values(functional.hessian(lambda x: cubes(x).sum(), x)) == [[6, 0], [0, 12]]
        assert functional.jacobian(cubes, x, create_graph=True).requires_grad


def test_forward_mode_jacobian_nests():
    """The Jacobian of a Jacobian, both by forward mode: two dual levels."""
    jacobian = retrograd.autograd.functional.jacobian

    def inner(x: Any) -> Any:
        return jacobian(lambda y: y**3 * x, x, vectorize=True, strategy="forward-mode")

    x = retrograd.tensor([1.0, 2.0], dtype=retrograd.float64)
    assert inner(x).tolist() == [[3, 0], [0, 24]]
    with retrograd.autograd.forward_ad.dual_level():
        dual = retrograd.autograd.forward_ad.make_dual(x, retrograd.ones_like(x))
        product = retrograd.autograd.functional.jvp(cubes, dual, retrograd.ones_like(x), True, strategy="forward-mode")[
            1
        ]
        assert product.tolist() == [3, 12]


# --------------------------------------------------------------------------------------------------------------- strict


def constant(torch: Any) -> Any:
    return lambda x: torch.ones(2, requires_grad=True) * 2


@pytest.mark.parametrize("name", ["vjp", "jvp"])
def test_strict_products(torch, x, name):
    product = getattr(torch.autograd.functional, name)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        product(lambda x: x.detach(), x, x, strict=True)
    with pytest.raises(RuntimeError, match="The output of the user-provided function is independent of input 0"):
        product(constant(torch), x, x, strict=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function is independent of input 0"):
        product(lambda x: 2 * x, x, x, strict=True, create_graph=True)
    assert values(product(cubes, x, torch.ones(2), strict=True))[1] == [3, 12]


def test_strict_jacobian(torch, x):
    jacobian = torch.autograd.functional.jacobian
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        jacobian(lambda x: x.detach(), x, strict=True)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function is independent of input 0"):
        jacobian(constant(torch), x, strict=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function is independent of input 0"):
        jacobian(lambda x: 2 * x, x, strict=True, create_graph=True)
    with pytest.raises(RuntimeError, match="not supported together"):
        jacobian(cubes, x, strict=True, vectorize=True)
    with pytest.raises(RuntimeError, match="not supported together"):
        jacobian(cubes, x, strict=True, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="not supported together"):
        jacobian(cubes, x, create_graph=True, vectorize=True, strategy="forward-mode")


def test_strict_hessians(torch, x):
    functional = torch.autograd.functional
    linear = "jacobian of the user-provided function with respect to input 0 is independent"
    for call in (
        lambda f: functional.hessian(f, x, strict=True),
        lambda f: functional.vhp(f, x, x, strict=True),
        lambda f: functional.hvp(f, x, x, strict=True),
    ):
        with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
            call(lambda x: x.sum().detach())
        with pytest.raises(RuntimeError, match=linear):
            call(lambda x: x.sum())


# ---------------------------------------------------------------------------------------------------------- wrong calls


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
def test_wrong_inputs_and_outputs(torch, x, name):
    function = getattr(torch.autograd.functional, name)
    v = () if name in ("jacobian", "hessian") else (x,)
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be either a Tensor"):
        function(lambda x, n: x.sum(), (x, 2), *v)
    with pytest.raises(TypeError, match=f"The outputs of the user-provided function given to {name} must"):
        function(lambda x: 3, x, *v)


@pytest.mark.parametrize("name", ["hessian", "vhp", "hvp"])
def test_hessians_need_one_number(torch, x, name):
    function = getattr(torch.autograd.functional, name)
    v = () if name == "hessian" else (x,)
    with pytest.raises(RuntimeError, match=f"The Tensor returned by the function given to {name} should contain"):
        function(cubes, x, *v)
    with pytest.raises(RuntimeError, match=f"The function given to {name} should return a single Tensor"):
        function(lambda x: (x.sum(), x.sum()), x, *v)


def test_wrong_vectors(torch, x):
    functional = torch.autograd.functional
    with pytest.raises(RuntimeError, match="The vector v can only be None if the user-provided function returns"):
        functional.vjp(cubes, x)
    with pytest.raises(RuntimeError, match="The vector v can only be None if the input to the user-provided function"):
        functional.jvp(cubes, x)
    with pytest.raises(RuntimeError, match="The given v should contain a single Tensor"):
        functional.vjp(cubes, x, (x, x))
    with pytest.raises(RuntimeError, match=r"v has invalid size: should be torch.Size\(\[2\]\)"):
        functional.jvp(cubes, x, x[:1])
    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 2 but got 1"):
        functional.jvp(lambda x, y: x, (x, x), (x,))
    with pytest.raises(RuntimeError, match="Entry 1 in v has invalid size"):
        functional.jvp(lambda x, y: x, (x, x), (x, x[:1]))
    with pytest.raises(TypeError, match="The v given to vhp must be either a Tensor"):
        functional.vhp(lambda x: x.sum(), x, 3)
    with pytest.raises(AssertionError, match="Expected strategy to be either"):
        functional.jacobian(cubes, x, strategy="sideways")


def test_jacobian_against_differences():
    rng = np.random.default_rng(0)
    array = rng.normal(size=(2, 3))

    def function(m: Any) -> Any:
        return (m @ m.t()).exp().sum(0)

    m = retrograd.from_numpy(array)
    found = [
        retrograd.autograd.functional.jacobian(function, m, vectorize=True, strategy=strategy).numpy().reshape(2, 6)
        for strategy in ("reverse-mode", "forward-mode")
    ]
    expected = np.zeros((2, 6))
    for column, cell in enumerate(np.ndindex(array.shape)):
        step = np.zeros_like(array)
        step[cell] = 1e-6
        ahead, behind = (function(retrograd.from_numpy(a)).numpy() for a in (array + step, array - step))
        expected[:, column] = (ahead - behind) / 2e-6
    np.testing.assert_allclose(found[0], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_what_comes_back_is_not_what_was_given(torch, x):
    v = torch.tensor([1.0, 2.0])
    for function in (torch.autograd.functional.vhp, torch.autograd.functional.hvp):
        value, product = function(lambda x: (x * x).sum() / 2, x, v)  # whose Hessian is the identity
        assert product is not v and product.tolist() == v.tolist()
        assert not value.requires_grad and not product.requires_grad
        assert not x.requires_grad and not v.requires_grad
    product.requires_grad_()
    assert not v.requires_grad


def test_a_result_that_the_function_keeps_shares_its_version(torch, x):
    kept = []

    def func(x):
        kept.append((x**3).sum())
        return kept[0]

    value, _ = torch.autograd.functional.vhp(func, x, torch.ones(2))
    assert value._version == kept[0]._version == 0
    value.add_(1)
    assert kept[0]._version == 1


@pytest.mark.parametrize("name", ["vhp", "hvp", "vjp", "jvp"])
def test_the_grad_mode_is_as_it_was(torch, x, name):
    function = getattr(torch.autograd.functional, name)
    for enabled in (True, False):
        for create_graph in (True, False):
            with torch.set_grad_enabled(enabled):
                given = x.clone().requires_grad_()
                v = None if name == "vjp" else torch.ones(2)
                _, product = function(lambda x: (x**3).sum(), given, v, create_graph=create_graph)
                assert torch.is_grad_enabled() is enabled
                assert product.requires_grad is (create_graph and given.requires_grad)


def test_no_inputs_are_refused(torch):
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises((RuntimeError, ValueError)):
        torch.autograd.functional.vhp(lambda: (weight**2).sum(), (), ())


def test_modes_see_what_torch_shows_them(torch, x):
    from importlib import import_module

    names = []

    class Listening(import_module(f"{torch.__name__}.overrides").TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            names.append(function.__name__)
            return function(*args, **(kwargs or {}))

    v = torch.ones(2)
    with Listening():
        torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, v)
    assert names.count("grad") == 2 and names.count("detach") >= 3
    assert "mul" not in names  # what `grad` does is its own affair

"""Why ours is right where an operator differs from torch at NaN, infinities or zeros: a test for each reason.

`special_value_exceptions.py` has the reasons and the operators.  Where an operator is defined by others
(`special_value_definitions.py`), torch's own computation of the definition decides, on the same inputs and for all
cells that differ; else the limit does, or double precision, exact arithmetic, or torch itself in another place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import retrograd
from operator_runs import needs_torch
from samples import OPS, Op
from special_value_definitions import DEFINITIONS
from special_value_exceptions import MEANT, WHY
from special_values import unlike_their_definition

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.parity, needs_torch]

NAN, INF = math.nan, math.inf
F, TF = retrograd.nn.functional, torch.nn.functional
PROVED: set[str] = {"as the gradient", "no key", "attention", "stuck"}  # in test_special_values.py


def proves(*reasons: str) -> Callable[[Any], Any]:
    """Mark the test of a reason."""
    assert set(reasons) <= set(WHY), reasons
    PROVED.update(reasons)
    return lambda test: test


def gradient(module: Any, function: Any, *values: Any, dtype: str = "float64") -> list[np.ndarray]:
    """The gradients of the sum of a function's result."""
    leaves = [module.tensor(v, dtype=getattr(module, dtype)).requires_grad_() for v in values]
    return [np.array(g.tolist()) for g in module.autograd.grad(function(*leaves).sum(), leaves)]


def equal(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=tolerance, atol=tolerance)


def of(reason: str) -> list[str]:
    """The operators that have the reason."""
    return [name for name, (_, why) in MEANT.items() if why == reason]


# ----------------------------------------------------------------------------------------------------- by definition


@proves("definition", "sign of nan")
@pytest.mark.parametrize("op", [op for op in OPS if op.name in DEFINITIONS], ids=lambda op: op.name)
def test_by_definition(op: Op) -> None:
    if op.name == "logcumsumexp":  # of complex infinities torch's logaddexp knows nothing; see below
        op = replace(op, samples=[s for s in op.samples if "complex" not in s.name], supports_complex=False)
    assert not unlike_their_definition(op, DEFINITIONS[op.name], MEANT[op.name][0])


def test_definitions_are_used() -> None:
    assert {*of("definition"), *of("sign of nan")} == DEFINITIONS.keys()


# --------------------------------------------------------------------------------------------------------------- limits

#: Functions, a point, and points that come near it: what ours is there is what torch comes to.
LIMITS: dict[str, tuple[Callable[[Any, Any], Any], float, list[float]]] = {
    "log_ndtr": (lambda t, x: t.special.log_ndtr(x), -INF, [-1e3, -1e4]),
    "softsign": (lambda t, x: t.nn.functional.softsign(x), INF, [1e5, 1e6]),
    "softsign below": (lambda t, x: t.nn.functional.softsign(x), -INF, [-1e5, -1e6]),
    "polygamma": (lambda t, x: t.polygamma(1, x), INF, [1e5, 1e6]),
    "polygamma at a pole": (lambda t, x: t.digamma(x), -1.0, [-1 - 1e-5, -1 + 1e-6]),
    "zeta": (lambda t, x: t.special.zeta(t.full_like(x, 2.0).detach(), x), INF, [1e20, 1e30]),
}


@proves("limit")
@pytest.mark.parametrize("name", LIMITS)
def test_slopes_are_limits(name: str) -> None:
    """torch's slopes come nearer and nearer to 0, or grow without end; at the point itself it has NaN, or 1e32."""
    function, point, near = LIMITS[name]
    ((found,),) = gradient(retrograd, lambda x: function(retrograd, x), [point])
    first, second = (gradient(torch, lambda x: function(torch, x), [x])[0][0] for x in near)
    if found == 0:
        assert 10 * abs(second) < abs(first) < 1e-9
    else:
        assert found == math.copysign(INF, second) and abs(second) > 9 * abs(first) > 9


@proves("limit")
def test_values_are_limits() -> None:
    far = retrograd.tensor([INF, -INF])
    assert retrograd.special.airy_ai(far).tolist() == [0, 0]  # at most 1 / sqrt(pi sqrt(|x|))
    assert torch.special.airy_ai(torch.tensor([1e2, -1e30], dtype=torch.float64)).abs().max() < 1e-7
    assert retrograd.special.zeta(retrograd.tensor([2.0, 3.5, INF]), retrograd.tensor([INF] * 3)).tolist() == [0, 0, 0]
    assert torch.special.zeta(torch.tensor([2.0, 3.5], dtype=torch.float64), torch.tensor(1e20)).max() < 1e-19


@proves("limit")
def test_poles_of_polygamma() -> None:
    """All numbers from 2**53 on are integers, poles; -inf counts as one, as in torch's third derivative."""
    poles = [-1.0, -2.0, -100.0, -1e20, -INF]
    for n in (1, 3):
        assert retrograd.polygamma(n, retrograd.tensor(poles, dtype=retrograd.float64)).tolist() == [INF] * 5
    assert torch.polygamma(3, torch.tensor(poles, dtype=torch.float64)).tolist() == [INF] * 5


@pytest.mark.parametrize("x", [-1e7, -3e8, -1e10])
def test_airy_function_far_out(x: float) -> None:
    """cos(2/3 |x|^1.5 - pi/4) / sqrt(pi sqrt(|x|)), the angle known to forty digits."""
    with localcontext() as context:
        context.prec = 60
        pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
        angle = (Decimal(-x) * Decimal(-x).sqrt() * 2 / 3 - pi / 4) % (2 * pi)
    expected = math.cos(angle) / math.sqrt(math.pi * math.sqrt(-x))
    found = retrograd.special.airy_ai(retrograd.tensor(x, dtype=retrograd.float64)).item()
    digits = 1e-4 if np.finfo(np.longdouble).eps < 1e-18 else 1
    assert abs(found - expected) < digits * abs(x) ** -0.25


@proves("complex infinity")
def test_directions_of_complex_infinities() -> None:
    """What lies infinitely far out on an axis lies on the axis: torch says so up to 1e300."""
    axes = [complex(1, 0), complex(-1, 0), complex(0, 1), complex(0, -1)]
    far = [complex(INF, 0), complex(-INF, 0), complex(0, INF), complex(0, -INF)]
    assert retrograd.sgn(retrograd.tensor(far, dtype=retrograd.complex128)).tolist() == axes
    large = torch.tensor([1e300 * a for a in axes], dtype=torch.complex128)
    equal(torch.sgn(large).tolist(), axes)
    for name in ("abs", "sgn"):
        (found,) = gradient(retrograd, lambda x, f=name: getattr(retrograd, f)(x).real, far, dtype="complex128")
        (near,) = gradient(torch, lambda x, f=name: getattr(torch, f)(x).real, large.tolist(), dtype="complex128")
        equal(found, near)
    for function in (lambda t, x: t.linalg.vector_norm(x, INF), lambda t, x: t.norm(x, p=INF)):
        (found,) = gradient(retrograd, lambda x, f=function: f(retrograd, x), [far[2], 1.0], dtype="complex128")
        (near,) = gradient(torch, lambda x, f=function: f(torch, x), [1e300j, 1.0], dtype="complex128")
        equal(found, near)
    # Nothing is said of what is infinite in both directions, or in one with a NaN in the other.
    assert retrograd.isnan(retrograd.sgn(retrograd.tensor([complex(INF, INF), complex(INF, NAN)]))).all()


@proves("complex infinity")
def test_size_of_complex_infinities() -> None:
    """C's hypot(inf, NaN) is inf: whatever the other part is.  torch's abs says so, its pairwise_distance does not."""
    x, y = [[complex(INF, NAN), 1.0]], [[0.0, 0.0]]
    assert math.hypot(INF, NAN) == INF == torch.tensor(complex(INF, NAN)).abs()
    assert F.pairwise_distance(retrograd.tensor(x), retrograd.tensor(y, dtype=retrograd.complex64)).item() == INF


@proves("power of 0")
def test_complex_powers_of_degree_0_and_1() -> None:
    """x ** 0 is 1 for all x, NaN included, and x ** 1 has the slope 1: C's rule, Python's, and torch's for floats."""
    numbers = [0j, complex(NAN, 0), complex(INF, 0), 1j]
    assert (torch.tensor([0.0, NAN, INF, 2.0]) ** torch.zeros(4)).tolist() == [1] * 4 == [x**0 for x in numbers]
    zeros, ones = np.zeros(4, complex), np.ones(4, complex)
    x = retrograd.tensor(numbers, dtype=retrograd.complex128)
    assert (x ** retrograd.from_numpy(zeros)).tolist() == [1] * 4
    (slopes,) = gradient(retrograd, lambda x: (x ** retrograd.from_numpy(ones)).real, numbers, dtype="complex128")
    equal(slopes, ones)
    (slopes,) = gradient(torch, lambda x: x ** torch.ones(4), [0.0, NAN, INF, 2.0])
    equal(slopes, np.ones(4))


@proves("complex infinity")
def test_complex_logcumsumexp_of_an_infinity() -> None:
    """Beside inf nothing else counts, as beside 800, of which the exponential of all others' differences is 0."""

    def found(module: Any, large: float) -> list[Any]:
        return gradient(module, lambda x: module.logcumsumexp(x, 0).real, [1 + 1j, large, 2.0], dtype="complex128")

    equal(found(retrograd, INF), found(torch, 800.0))


# ------------------------------------------------------------------------------------------- torch in another place


@proves("bfloat16 kernels")
@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_in_bfloat16_are_those_in_float32(dims: int, value: float) -> None:
    image, weight = np.ones((1, 1, *[4] * dims)), np.ones((1, 1, *[2] * dims))
    image.reshape(-1)[1] = weight.reshape(-1)[0] = value
    for of_image, of_weight in ((image, np.ones_like(weight)), (np.ones_like(image), weight)):
        ours = [retrograd.tensor(a.tolist(), dtype=retrograd.bfloat16) for a in (of_image, of_weight)]
        theirs = [torch.tensor(a.tolist(), dtype=torch.float32) for a in (of_image, of_weight)]
        name = f"conv{dims}d"
        equal(getattr(F, name)(*ours).tolist(), getattr(TF, name)(*theirs).tolist())


@proves("bfloat16 kernels", "vectorized")
def test_functions_in_bfloat16_are_those_in_float64() -> None:
    x = [INF, -INF, 1.0] * 8
    expected = TF.gelu(torch.tensor(x, dtype=torch.float64)).tolist()
    equal(F.gelu(retrograd.tensor(x, dtype=retrograd.bfloat16)).tolist(), expected, 1e-2)
    generator = np.random.default_rng(1)
    errors = np.zeros(2)
    for _ in range(50):
        image, places = generator.uniform(-2, 2, (1, 1, 3, 3)), generator.uniform(-1, 1, (1, 2, 2, 2))
        half = [torch.tensor(a).bfloat16() for a in (image, places)]
        right = TF.grid_sample(*[a.double() for a in half], mode="bicubic", align_corners=False)
        ours = F.grid_sample(
            *[retrograd.tensor(a.tolist(), dtype=retrograd.bfloat16) for a in half], mode="bicubic", align_corners=False
        )
        theirs = TF.grid_sample(*half, mode="bicubic", align_corners=False)
        errors += [np.abs(np.array(a.tolist()) - right.numpy()).sum() for a in (ours, theirs)]
    assert errors[0] < 0.8 * errors[1]  # the coarse weights are torch's alone


@proves("vectorized")
@pytest.mark.parametrize("name", ["hardtanh", "relu6", "hardshrink", "softshrink"])
def test_the_slope_at_a_nan_in_torchs_other_loop(name: str) -> None:
    assert gradient(torch, getattr(TF, name), [NAN])[0].tolist() == [1.0]
    assert gradient(torch, getattr(TF, name), [NAN] * 32)[0].tolist() == [0.0] * 32
    for size in (1, 32):
        assert gradient(retrograd, getattr(F, name), [NAN] * size)[0].tolist() == [1.0] * size


@proves("order of a transform")
@pytest.mark.parametrize("function", ["irfft", "hfft"])
def test_transforms_of_an_infinity(function: str) -> None:
    """How the terms are grouped decides where inf - inf comes about: of 64 points, it does nearly everywhere in torch,
    of 9 nowhere.  What it does not come to is right in both."""
    for n, least in ((9, 0.0), (64, 0.9)):
        x = np.random.default_rng(n).standard_normal(n // 2 + 1).astype(complex)
        x[3] = INF
        theirs = np.array(getattr(torch.fft, function)(torch.from_numpy(x), n))
        ours = np.array(getattr(retrograd.fft, function)(retrograd.from_numpy(x), n).tolist())
        assert np.isnan(theirs).mean() >= least
        known = ~np.isnan(ours) & ~np.isnan(theirs)
        equal(ours[known], theirs[known])


@proves("order of a sum")
def test_sums_of_the_largest_numbers() -> None:
    """Which cancel: in torch, too, the sum of the same numbers is infinite or NaN as they lie. Where nothing overflows,
    the gradient of log_softmax is torch's."""
    most = float(np.finfo(np.float64).max)
    in_turn, in_halves = ([[most], [-most]] * 72, [[most]] * 72 + [[-most]] * 72)
    assert math.isnan(torch.tensor(in_turn, dtype=torch.float64).sum(0).item())
    assert math.isinf(torch.tensor(in_halves, dtype=torch.float64).sum(0).item())
    grad, output = np.random.default_rng(0).standard_normal((2, 144, 1)) * [[[1e300]], [[5.0]]]
    grad, output = grad[None], output[None]
    ours, theirs = (
        module._log_softmax_backward_data(module.tensor(grad), module.tensor(output), 1, module.float64)
        for module in (retrograd, torch)
    )
    equal(np.array(ours.tolist()) / 1e300, np.array(theirs.tolist()) / 1e300)


@proves("nan place")
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_volumes_of_depth_1_are_images(padding: str) -> None:
    """torch documents that a NaN in a grid is -1, and has it so in two dimensions."""
    image = np.arange(12.0).reshape(1, 1, 3, 4)
    places = np.array([NAN, 0.3, -0.4, 1.0, 2.5])
    grid = np.stack(np.meshgrid(places, places), -1)[None]
    deep = np.concatenate([grid, np.zeros((*grid.shape[:-1], 1))], -1)[:, None]
    flat = torch.from_numpy(image), torch.from_numpy(grid)
    expected = TF.grid_sample(*flat, padding_mode=padding, align_corners=True)
    found = F.grid_sample(
        retrograd.from_numpy(image[:, :, None]), retrograd.from_numpy(deep), padding_mode=padding, align_corners=True
    )
    equal(found[:, :, 0].tolist(), expected.tolist())


@proves("shares")
@pytest.mark.parametrize("reduce", ["max", "min"])
def test_shares_along_the_second_dimension_are_those_along_the_first(reduce: str) -> None:
    data, lengths = [[1.0, 1.0, 0.0, 2.0, 2.0], [3.0, 3.0, 3.0, 0.0, 0.0]], [[3, 2], [3, 2]]
    (found,) = gradient(
        retrograd, lambda x: retrograd.segment_reduce(x, reduce, lengths=retrograd.tensor(lengths), axis=1), data
    )
    for row, own in zip(data, found, strict=True):
        (expected,) = gradient(torch, lambda x: torch.segment_reduce(x, reduce, lengths=torch.tensor([3, 2])), row)
        equal(own, expected)


@proves("amax of nan")
@pytest.mark.parametrize("value", [NAN, INF])
def test_the_gradient_of_a_largest_element_goes_to_it(value: float) -> None:
    """As in torch's max() and segment_reduce(), and in its index_reduce() of any other number."""
    (expected,) = gradient(torch, torch.max, [1.0, value])
    for module in (retrograd,) if math.isnan(value) else (retrograd, torch):

        def largest(x: Any, m: Any = module) -> Any:
            return m.index_reduce(x[:1], 0, m.tensor([0]), x[1:], "amax")

        equal(gradient(module, largest, [1.0, value])[0], expected)


@proves("nan propagates")
def test_a_nan_is_not_lost() -> None:
    """torch keeps it in the function of the same family, or for other arguments."""
    x = retrograd.tensor([NAN], dtype=retrograd.float64)
    for name in ("i0", "i0e"):
        assert np.isnan(gradient(torch, getattr(torch.special, name), [NAN])[0])
    for name in ("i1", "i1e"):
        assert np.isnan(gradient(retrograd, getattr(retrograd.special, name), [NAN])[0])
    for name in ("gammainc", "gammaincc"):
        for other in (0.0, INF, 1.0):
            pairs = [(x, retrograd.tensor([other], dtype=x.dtype)), (retrograd.tensor([INF], dtype=x.dtype), x)]
            assert all(getattr(retrograd.special, name)(*pair).isnan().all() for pair in pairs)
        assert getattr(torch.special, name)(torch.tensor([NAN]), torch.tensor([1.0])).isnan()
    rows = [[1.0], [NAN], [2.0]]
    bags = [0, 1, 2], [0]
    found = F.embedding_bag(retrograd.tensor(bags[0]), retrograd.tensor(rows), retrograd.tensor(bags[1]), mode="max")
    assert found.isnan().all() and torch.tensor(rows).amax(0).isnan()


@proves("uninitialized")
@pytest.mark.parametrize("name", of("uninitialized"))
def test_polynomials_of_a_nan(name: str) -> None:
    """Of the first kind torch's are NaN."""
    x, n = [NAN, 0.5, NAN], [3.0, NAN, NAN]
    found = getattr(retrograd.special, name.removeprefix("special."))(retrograd.tensor(x), retrograd.tensor(n))
    assert found.isnan().all()
    assert torch.special.chebyshev_polynomial_t(torch.tensor(NAN), torch.tensor(3)).isnan()


@proves("bits of nan")
def test_the_sign_of_a_nan_means_nothing() -> None:
    """torch has two: of one number that is rounded to bfloat16, and of many."""
    signs = {torch.tensor([NAN] * n).bfloat16().signbit()[0].item() for n in (1, 2, 8, 16, 32, 64)}
    signs |= {torch.tensor(NAN, dtype=torch.bfloat16).signbit().item()}
    assert signs == {True, False}
    nan = retrograd.tensor([NAN] * 32).bfloat16()
    assert not nan.signbit().any() and nan.isnan().all()


@proves("zero weight")
def test_what_has_no_weight_takes_no_part() -> None:
    """The corner of an enlarged image is the corner, as where nothing is enlarged, in torch too."""
    image = [[[[1.0, NAN], [2.0, INF]]]]
    assert TF.interpolate(torch.tensor(image), (2, 2), mode="bilinear", align_corners=True)[0, 0, 0, 0] == 1
    found = F.interpolate(retrograd.tensor(image), (3, 3), mode="bilinear", align_corners=True)[0, 0].tolist()
    assert [row[0] for row in found] == [1.0, 1.5, 2.0] and np.isnan(found[0][1:]).all() and found[2][1:] == [INF, INF]


@proves("not sorted")
def test_places_in_sequences_with_nan() -> None:
    """sort() puts NaN last, in torch too; among what is sorted so, the place of x is the number of what is less."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.choice([NAN, INF, -INF, 0.0, 1.0, 2.0], 7)
        row = torch.tensor(values).sort().values.tolist()
        for x in (-INF, 0.0, 0.5, 2.0, INF):
            less = sum(y < x for y in row)
            assert retrograd.searchsorted(retrograd.tensor(row), retrograd.tensor(x)).item() == less
            assert retrograd.bucketize(retrograd.tensor(x), retrograd.tensor(row)).item() == less
    with_nan, one = torch.tensor([1.0, NAN, NAN]), torch.tensor(0.5)
    assert torch.searchsorted(with_nan, one).item() != 0  # torch's search takes NaN for less than anything


@proves("which of equals")
def test_of_equal_elements_any_may_be_found() -> None:
    """The element at the index is the one that was found, and it alone has the gradient; torch finds now this, now
    that of equal ones."""
    for module in (retrograd, torch):
        found = set()
        for n in range(3, 9):
            x = module.zeros(n, requires_grad=True)
            value, index = module.kthvalue(x, n // 2 + 1)
            found.add("first" if index == 0 else "last" if index == n - 1 else "middle")
            value.backward()
            assert x.grad.nonzero().tolist() == [[index.item()]]
            values, indices = module.topk(module.tensor([1.0, 3.0, 3.0, 3.0, 0.0]), 2, sorted=False)
            assert values.tolist() == [3, 3] and len({*indices.tolist()} & {1, 2, 3}) == 2
        assert len(found) > 1 or module is retrograd


@proves("which of equals")
def test_the_mode_does_not_depend_on_the_order() -> None:
    """A NaN equals nothing, so that each is there once (as unique() counts); of what is there as often, the smallest.

    torch sorts with a comparison to which a NaN is neither less nor greater, and finds what comes first by accident.
    """
    import itertools

    rows = list(itertools.permutations([NAN, 1.0, NAN, 2.0]))
    assert {retrograd.tensor(row).mode().values.item() for row in rows} == {1.0}
    assert len({str(torch.tensor(row).mode().values.item()) for row in rows}) > 1
    assert len(torch.tensor([NAN, NAN]).unique()) == 2


@proves("singular")
def test_what_is_divided_by_a_pivot_that_is_0() -> None:
    """Infinite, as in the forward pass of both; torch multiplies it by a permutation, whose zeros make NaN of it."""
    for module in (retrograd, torch):
        zeros, ones = module.zeros(1, 1), module.ones(1, 1)
        assert module.linalg.solve_ex(zeros, ones)[0].item() == INF
    ((found,),) = gradient(retrograd, lambda b: retrograd.linalg.solve_ex(b.detach() * 0, b)[0], [[1.0]])
    assert found == [INF]
    forward = retrograd.autograd.forward_ad
    with forward.dual_level():
        matrix = forward.make_dual(retrograd.zeros(1, 1), retrograd.ones(1, 1))
        assert forward.unpack_dual(retrograd.linalg.slogdet(matrix)[1]).tangent.item() == INF  # log's, which is 1 / 0


@proves("clamped")
@pytest.mark.parametrize(("p", "slope"), [(0.0, 100.0), (1.0, -100.0), (0.25, math.log(3))])
def test_the_loss_is_linear_in_the_target(p: float, slope: float) -> None:
    """binary_cross_entropy with logarithms clamped at -100: finite differences of torch's own loss say the slope."""
    p_, targets = torch.tensor([p]).double(), torch.tensor([[0.25], [0.75]]).double()
    low, high = (TF.binary_cross_entropy(p_, target).item() for target in targets)
    equal(high - low, slope / 2)
    for target in (0.0, 0.25, 1.0):
        equal(gradient(retrograd, F.binary_cross_entropy, [p], [target])[1], [slope])


@proves("denormal")
def test_arithmetic_of_denormal_numbers() -> None:
    """Exactly: 0.5 * (tiny / tiny) is a half.  torch multiplies first, and what it multiplies has two digits."""
    tiny = float(np.finfo(np.float64).smallest_subnormal) * 3
    assert tiny != 0, "something has told the processor to flush denormal numbers in this process"
    x, y = (retrograd.tensor([v], dtype=retrograd.float64) for v in (0.0, tiny))
    assert Fraction(1, 2) * (Fraction(tiny) / Fraction(tiny)) == retrograd.addcdiv(x, y, y, value=0.5).item()
    single = float(np.float32(4.2e-45))
    expected = 1.3 / math.sqrt(2)
    far = []
    for module in (retrograd, torch):
        a = module.tensor([single], requires_grad=True)
        module.hypot(a, a.detach()).backward(module.tensor([1.3]))
        far.append(abs(a.grad.item() - expected))
    assert far[0] < far[1]


# ------------------------------------------------------------------------------------------ other places, looked at


def test_a_gradient_of_layer_norm_with_an_infinite_weight_is_a_limit() -> None:
    """Where ours is not NaN, as torch's is everywhere, it is what torch's comes to for larger and larger weights."""
    x = [[1.0, 2.0, 4.0]]
    found, _ = gradient(retrograd, lambda x, w: F.layer_norm(x, (3,), w), x, [1.0, INF, 2.0])
    near, _ = gradient(torch, lambda x, w: TF.layer_norm(x, (3,), w), x, [1.0, 1e200, 2.0])
    known = ~np.isnan(found)
    assert known.any() and np.array_equal(found[known], np.copysign(INF, near[known]))


@pytest.mark.parametrize("name", ["logsumexp", "std"])
def test_tangents_of_nothing(name: str) -> None:
    """The sum of no slopes times no directions is 0; torch has NaN, though its gradient has no elements either."""
    forward = retrograd.autograd.forward_ad
    nothing = retrograd.zeros(2, 0)
    with forward.dual_level():
        found = getattr(forward.make_dual(nothing, nothing), name)(1)
        assert forward.unpack_dual(found).tangent.tolist() == [0, 0]
    assert gradient(torch, lambda x: getattr(x, name)(1), [[], []])[0].shape == (2, 0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_roots_of_minus_infinity(dtype: str) -> None:
    """C's pow(-inf, 0.5) is inf, but torch takes the square root, NaN, for all but halves."""
    found = []
    for module in (retrograd, torch):
        x = module.tensor([-INF, -0.0, 4.0], dtype=getattr(module, dtype))
        found.append([*(x**0.5).tolist(), *(x**-0.5).tolist(), *x.clone().pow_(0.5).tolist()])
    np.testing.assert_array_equal(*found)


def test_the_nearest_pixel_to_an_infinite_place() -> None:
    """There is none: 0, also where the place requires grad."""
    image, places = retrograd.ones(1, 1, 2, 2), retrograd.full((1, 1, 1, 2), INF).requires_grad_()
    found = F.grid_sample(image, places, mode="nearest", align_corners=False)
    assert found.tolist() == [[[[0.0]]]] and found.requires_grad
    found.sum().backward()
    assert places.grad.tolist() == [[[[0.0, 0.0]]]]


def test_every_reason_has_a_test() -> None:
    assert set(WHY) == PROVED

"""Forward mode: dual levels, dual tensors, views and in-place writes, all mixtures of modes.

Tests that take the `torch` fixture say of retrograd what is true of torch, and are run on both.
"""

from __future__ import annotations

import gc
import itertools
import math
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.autograd.forward_ad as fwAD
from retrograd.autograd.forward_grad import has_same_meta, set_fw_grad, zeros_of_layout
from retrograd.autograd.intercept import observing
from retrograd.core.state import live_states, local, process

pytestmark = pytest.mark.usefixtures("clean_state")


@pytest.fixture(autouse=True)
def _no_level_is_left_open() -> Any:
    yield
    assert process.dual_levels == ()
    assert local.state.fw_grad_enabled is True


def values(tensor: Any) -> Any:
    """A tensor as nested lists; None stays None."""
    return None if tensor is None else tensor.detach().tolist()


def tangent(torch: Any, tensor: Any) -> Any:
    return values(torch.autograd.forward_ad.unpack_dual(tensor).tangent)


# --------------------------------------------------------------------------------------------------------------- levels


def test_a_level_is_a_number_from_0(torch):
    forward = torch.autograd.forward_ad
    assert forward._current_level == -1
    with forward.dual_level() as level:
        assert level == 0
        assert forward._current_level == 0
    assert forward._current_level == -1


def test_enter_and_exit(torch):
    forward = torch.autograd.forward_ad
    level = forward.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        forward.exit_dual_level(level=level + 1)
    forward.exit_dual_level(level=level)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        forward.exit_dual_level()


def test_enter_dual_level_alone_does_not_nest(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        forward.enter_dual_level()


def test_enter_dual_level_nests_if_it_is_meant():
    with fwAD.dual_level():
        assert fwAD.enter_dual_level(nested=True) == 1
        fwAD.exit_dual_level()


def test_a_level_ends_with_an_exception(torch):
    forward = torch.autograd.forward_ad
    with pytest.raises(ZeroDivisionError), forward.dual_level():
        raise ZeroDivisionError
    assert forward._current_level == -1


def test_tangents_end_with_their_level(torch):
    forward = torch.autograd.forward_ad
    x = torch.ones(2)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(2))
        result = dual * 2
        view = result[0]
    assert tangent(torch, dual) is None
    with forward.dual_level():
        assert [tangent(torch, t) for t in (x, dual, result, view)] == [None] * 4
        again = forward.make_dual(x, torch.zeros(2))
        assert tangent(torch, again) == [0, 0]


def in_thread(function: Any) -> Any:
    """What it returns, called by a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_levels_are_the_process_s(torch):
    """Threads that began before the level was opened, and those that begin later, see the tangents."""
    forward = torch.autograd.forward_ad

    def look() -> Any:
        return forward._current_level, tangent(torch, dual * 2)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: torch.ones(2) * 2).result()
        with forward.dual_level():
            dual = forward.make_dual(torch.ones(2), torch.ones(2))
            assert pool.submit(look).result() == in_thread(look) == (0, [2, 2])
            made = pool.submit(lambda: forward.make_dual(torch.ones(2), torch.ones(2)) * 3).result()
            assert tangent(torch, made) == [3, 3]
        assert pool.submit(look).result() == in_thread(look) == (-1, None)
        with forward.dual_level():
            assert pool.submit(look).result() == (0, None)


def test_what_another_thread_does_first_with_a_dual_tensor(torch):
    """A custom function, a backward pass, a view that is asked for its tangent: not only operators look for levels."""
    forward = torch.autograd.forward_ad

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 2

    def slope_of_gradient() -> Any:
        (gradient,) = torch.autograd.grad(y, dual, retain_graph=True)
        return tangent(torch, gradient)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with ThreadPoolExecutor(3) as pool:
        for _ in range(2):  # the second time, the threads have seen a level go
            with forward.dual_level():
                dual = forward.make_dual(x, torch.ones(2))
                y = (dual**3).sum()
                assert pool.submit(lambda dual: tangent(torch, Double.apply(dual)), dual).result() == [2, 2]
                assert pool.submit(slope_of_gradient).result() == [6, 12]
                assert pool.submit(lambda dual: tangent(torch, dual[0]), dual).result() == 1


def test_a_second_thread_opens_no_level(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            in_thread(forward.enter_dual_level)
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            in_thread(lambda: forward.dual_level().__enter__())
        assert forward._current_level == 0
    assert in_thread(forward.enter_dual_level) == 0  # a level outlives the thread that opened it
    assert forward._current_level == 0
    forward.exit_dual_level()


def test_nested_levels_are_those_of_the_thread_that_opened_the_first():
    with fwAD.dual_level(), fwAD.dual_level() as inner:
        assert inner == 1
        with pytest.raises(RuntimeError, match="another thread has opened"):
            in_thread(lambda: fwAD.enter_dual_level(nested=True))
        outer = fwAD.make_dual(retrograd.tensor(3.0), retrograd.tensor(1.0), level=0)
        both = fwAD.make_dual(outer, retrograd.tensor(1.0))
        cube = in_thread(lambda: both**3)
        first = fwAD.unpack_dual(cube).tangent
        assert fwAD.unpack_dual(first, level=0).tangent.item() == 18


def test_threads_with_modes_of_their_own_hear_of_levels():
    """Around its operators a thread has an observer, enters and leaves one, while another opens and closes levels."""
    steps: SimpleQueue[Any] = SimpleQueue()
    seen: SimpleQueue[Any] = SimpleQueue()

    def work() -> None:
        observed = []

        def observer(operator: Any, args: Any, kwargs: Any, proceed: Any) -> Any:
            observed.append(operator.__name__)
            return proceed()

        with observing(observer):
            seen.put(tangent(retrograd, steps.get() * 2))
            dual = steps.get()
        seen.put(tangent(retrograd, dual * 3))
        with observing(observer):
            seen.put(tangent(retrograd, steps.get() * 4))
        retrograd.ones(1) * 2
        seen.put((local.state.observers, local.state.interceptor))
        seen.put(observed)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with fwAD.dual_level():
        dual = fwAD.make_dual(retrograd.ones(1), retrograd.ones(1))
        steps.put(dual)
        assert seen.get(timeout=60) == [2]
        steps.put(dual)
        assert seen.get(timeout=60) == [3]
    steps.put(dual)
    assert seen.get(timeout=60) is None
    assert seen.get(timeout=60) == ((), None)
    assert seen.get(timeout=60)[0] == "mul"
    thread.join(60)


def test_levels_opened_and_closed_beside_busy_threads():
    """No thread ever misses a level or keeps one: each product is made when the level is known to be open."""
    x = retrograd.ones(2)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            with retrograd.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                x * 2
            x * 3

    def work(number: int) -> list[float]:
        return tangent(retrograd, dual * number)

    busy_threads = [threading.Thread(target=busy) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in busy_threads:
            thread.start()
        with ThreadPoolExecutor(1) as pool:
            for _ in range(60):
                with fwAD.dual_level():
                    dual = fwAD.make_dual(x, x)
                    assert list(pool.map(work, range(4))) == [[n, n] for n in range(4)]
                    with retrograd.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                        assert work(5) == [5, 5]
                assert list(pool.map(work, range(2))) == [None, None]
            pool.submit(lambda: x * 2).result()
            assert pool.submit(lambda: (local.state.observers, local.state.interceptor)).result() == ((), None)
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        for thread in busy_threads:
            thread.join()
    assert not any(thread.is_alive() for thread in busy_threads)


def test_the_states_of_threads_that_have_ended_are_forgotten():
    in_thread(lambda: retrograd.ones(2) * 2)
    before = len(live_states)
    for _ in range(10):
        in_thread(lambda: retrograd.ones(2) * 2)
    gc.collect()
    assert len(live_states) <= before


def test_decorator():
    @fwAD.dual_level()
    def slope(x: Any) -> Any:
        return fwAD.unpack_dual(fwAD.make_dual(x, retrograd.ones_like(x)) ** 2).tangent

    assert slope(retrograd.tensor(3.0)).item() == 6


def test_code_without_duals_pays_nothing():
    assert local.state.interceptor is None
    with fwAD.dual_level():
        assert local.state.interceptor is not None
    assert local.state.interceptor is None
    assert local.state.observers == ()


# --------------------------------------------------------------------------------------------------------- dual tensors


def test_make_and_unpack(torch):
    forward = torch.autograd.forward_ad
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    with forward.dual_level():
        dual = forward.make_dual(x, t)
        unpacked = forward.unpack_dual(dual)
        assert unpacked._fields == ("primal", "tangent")
        assert unpacked.tangent is t
        assert values(unpacked.primal) == [1, 2]
        assert unpacked.primal is not dual
        assert forward.unpack_dual(x).tangent is None
        assert forward.unpack_dual(unpacked.primal).tangent is None


def test_a_dual_is_an_alias_of_its_primal(torch):
    forward = torch.autograd.forward_ad
    x = torch.zeros(2)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(2))
        primal = forward.unpack_dual(dual).primal
        x.add_(1)
        assert dual.tolist() == primal.tolist() == [1, 1]
        assert dual._version == primal._version == x._version == 1
        assert dual._base is x
        assert primal._base is x


def test_gradients_go_through_packing_and_unpacking(torch):
    forward = torch.autograd.forward_ad
    x = torch.ones(2, requires_grad=True)
    t = torch.ones(2, requires_grad=True)
    with forward.dual_level():
        primal, got = forward.unpack_dual(forward.make_dual(x, t))
        gradients = torch.autograd.grad(primal.sum(), (x, t), allow_unused=True)
        assert [values(g) for g in gradients] == [[1, 1], None]
        gradients = torch.autograd.grad(got.sum(), (x, t), allow_unused=True)
        assert [values(g) for g in gradients] == [None, [1, 1]]


def test_refusals(torch):
    forward = torch.autograd.forward_ad
    x, whole = torch.ones(2), torch.ones(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="no level exists"):
        forward.make_dual(x, x)
    with forward.dual_level():
        with pytest.raises(RuntimeError, match="different size"):
            forward.make_dual(x, torch.ones(3))
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
            forward.make_dual(x, whole)
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            forward.make_dual(whole, x)
        dual = forward.make_dual(x, x)
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            forward.make_dual(x, dual)
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
            forward.make_dual(dual, x)


def test_printing(torch):
    forward = torch.autograd.forward_ad
    x = torch.ones(2)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.zeros(2))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([0., 0.]))"
        assert repr(x) == repr(forward.unpack_dual(dual).primal) == "tensor([1., 1.])"


def test_forward_mode_can_be_switched_off(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.ones(2), torch.ones(2))
        with forward._set_fwd_grad_enabled(False):
            assert not forward._is_fwd_grad_enabled()
            assert tangent(torch, dual) is None
            off = dual * 2
        assert tangent(torch, dual) == [1, 1]
        assert tangent(torch, off) is None


def test_detach_drops_and_no_grad_keeps_tangents(torch):
    forward = torch.autograd.forward_ad
    x = torch.ones(2, requires_grad=True)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(2))
        assert tangent(torch, dual.detach()) is None
        assert tangent(torch, dual.data) is None
        with torch.no_grad():
            result = dual * 3
        assert not result.requires_grad
        assert tangent(torch, result) == [3, 3]
        copy = dual.clone()
        assert tangent(torch, copy) == [1, 1]
        copy.detach_()
        assert tangent(torch, copy) is None


def test_inference_mode(torch):
    forward = torch.autograd.forward_ad
    with torch.inference_mode(), forward.dual_level():
        x = torch.zeros(2)
        dual = forward.make_dual(x, torch.ones(2))
        assert not dual._is_view()
        dual *= 2
        dual += 1
        assert x.tolist() == [1, 1]
        assert forward.unpack_dual(dual).tangent is None  # forward mode is off there


def test_out_is_refused(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual, out = forward.make_dual(torch.ones(2), torch.ones(2)), torch.ones(2)
        for args, target in (((out, out), dual), ((dual, out), out)):
            with pytest.raises(RuntimeError, match="out= function"):
                torch.add(*args, out=target)


def test_an_operator_without_formula_says_so(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.ones(2), torch.ones(2))
        with pytest.raises(NotImplementedError, match=r"Trying to use forward AD with .*floor_divide that does not"):
            torch.floor_divide(dual, 2.0)
        assert torch.floor_divide(torch.ones(2), 2.0).tolist() == [0, 0]


def test_what_does_not_vary(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.ones(2), torch.ones(2))
        assert tangent(torch, dual == 1) is None
        assert tangent(torch, dual.argmax()) is None
        assert tangent(torch, torch.zeros_like(dual)) is None
        dual.zero_()
        assert tangent(torch, dual) == [0, 0]


def test_names_and_numbers_reach_the_formula(torch):
    """Keywords, NumPy's names, sizes one by one, reflected operators."""
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
        assert tangent(torch, dual.sum(axis=1)) == [7]
        assert tangent(torch, dual.sum(dim=1, keepdim=True)) == [[7]]
        assert tangent(torch, dual.view(2, 1)) == [[3], [4]]
        assert tangent(torch, dual.reshape((2,))) == [3, 4]
        assert tangent(torch, 1 - dual) == [[-3, -4]]
        assert tangent(torch, 2 / dual) == [[-6, -2]]
        assert tangent(torch, torch.cat([dual, dual, torch.ones(1, 2)], dim=0)) == [[3, 4], [3, 4], [0, 0]]
        assert [tangent(torch, part) for part in dual.unbind(1)] == [[3], [4]]
        assert tangent(torch, dual.max(dim=1).values) == [4]
        assert tangent(torch, dual[:, torch.tensor([1, 0])]) == [[4, 3]]


def test_a_tangent_has_the_shape_and_dtype_of_its_result(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        small = forward.make_dual(torch.ones(2), torch.ones(2))
        result = small + torch.ones(3, 2, dtype=torch.float64)
        t = forward.unpack_dual(result).tangent
        assert tuple(t.shape) == (3, 2)
        assert t.dtype == torch.float64
        result = small * torch.ones(2, dtype=torch.complex64)
        assert forward.unpack_dual(result).tangent.dtype == torch.complex64


def test_results_do_not_share_tangents_with_arguments(torch):
    """Writing to a result leaves the tangents of what it was made of alone."""
    forward = torch.autograd.forward_ad
    makers = (
        lambda x: x + 1,
        lambda x: x.clone(),
        lambda x: x - 0.0,
        lambda x: torch.zeros(2).copy_(x),
        lambda x: 1 * x,
    )
    for make in makers:
        with forward.dual_level():
            dual = forward.make_dual(torch.ones(2), torch.ones(2))
            result = make(dual)
            result *= 5
            assert tangent(torch, dual) == [1, 1]
            assert tangent(torch, result) == [5, 5]


# -------------------------------------------------------------------------------------------- memory: nothing is kept


def test_a_level_keeps_nothing_alive():
    with fwAD.dual_level():
        t = retrograd.ones(2)
        reference = weakref.ref(t)
        dual = fwAD.make_dual(retrograd.ones(2), t)
        del t
        assert reference() is not None
        del dual
        assert reference() is None


def test_a_long_level_forgets_the_dead():
    with fwAD.dual_level():
        x = fwAD.make_dual(retrograd.ones(2), retrograd.ones(2))
        for _ in range(5000):
            x = x * 1.0
        assert len(process.dual_levels[0].members) < 3000


def test_closing_a_level_breaks_cycles(no_cycles):
    """A tangent whose node has saved the tensor it is the tangent of."""

    def run() -> None:
        t = retrograd.ones(3, requires_grad=True)
        with fwAD.dual_level():
            fwAD.make_dual(retrograd.ones(3), t).exp()

    run()
    gc.collect()
    kept = []
    with fwAD.dual_level():
        t = retrograd.ones(3, requires_grad=True)
        result = fwAD.make_dual(retrograd.ones(3), t).exp()
        kept.append(weakref.ref(fwAD.unpack_dual(result).tangent))
    gc.disable()
    try:
        del result
        assert kept[0]() is None
    finally:
        gc.enable()


def test_detach_does_not_keep_its_source(torch):
    x = torch.ones(2)
    reference = weakref.ref(x)
    alias = x.detach()
    del x
    assert reference() is None
    assert alias.tolist() == [1, 1]


# --------------------------------------------------------------------------------------------------------------- layout


def layouts() -> list[np.ndarray]:
    base = np.arange(24.0).reshape(4, 6)
    return [
        base.copy(),
        np.asfortranarray(base),
        base[1:],
        base[:, ::2],
        base.T,
        base[2:, 1],
        np.zeros((0, 3)),
        base[1:2],
    ]


@pytest.mark.parametrize("array", layouts(), ids=lambda a: str((a.shape, a.strides)))
def test_zeros_of_layout_have_the_same_meta(array):
    x = retrograd.from_numpy(array)
    zeros = zeros_of_layout(x)
    assert has_same_meta(x, zeros)
    assert zeros.shape == x.shape
    assert zeros.stride() == x.stride()
    assert zeros.storage_offset() == x.storage_offset()
    assert not np.may_share_memory(zeros.numpy(), x.numpy())
    assert not zeros.numpy().any()


def test_has_same_meta_looks_at_strides_offset_and_storage():
    x = retrograd.zeros(4, 4)
    assert has_same_meta(x, retrograd.zeros(4, 4))
    assert not has_same_meta(x, retrograd.zeros(4, 4).t())
    assert not has_same_meta(x[0], retrograd.zeros(4))
    assert not has_same_meta(x[1], x[0])
    assert not has_same_meta(x, retrograd.zeros(2, 8))
    assert has_same_meta(x[:1].t(), retrograd.zeros(4, 4)[:1].t())


def test_a_tangent_of_another_layout_is_copied(torch):
    forward = torch.autograd.forward_ad
    x, t = torch.zeros(2, 3).t(), torch.arange(6.0).reshape(3, 2)
    with forward.dual_level():
        dual = forward.make_dual(x, t)
        got = forward.unpack_dual(dual).tangent
        assert got is not t
        assert got.stride() == dual.stride()
        assert values(got) == values(t)
        dual.as_strided((2, 3), (3, 1), 0)  # the same place in both


# --------------------------------------------------------------------------- the six cases of views and in-place writes
# Note [Forward gradients of views]. `foo` is written to or its view is; `bar` is what is written.

MIXTURES = list(itertools.product((False, True), repeat=2))


def operands(torch: Any, foo_dual: bool, bar_dual: bool, bar_shape: tuple[int, ...]) -> tuple[Any, Any]:
    forward = torch.autograd.forward_ad
    foo, bar = torch.zeros(3, 2), torch.full(bar_shape, 5.0)
    if foo_dual:
        foo = forward.make_dual(foo, torch.ones(3, 2))
    if bar_dual:
        bar = forward.make_dual(bar, torch.full(bar_shape, 7.0))
    return foo, bar


def full(value: float) -> list:
    return [[value, value]] * 3


@pytest.mark.parametrize(("foo_dual", "bar_dual"), MIXTURES)
def test_case_1_no_view(torch, foo_dual, bar_dual):
    with torch.autograd.forward_ad.dual_level():
        foo, bar = operands(torch, foo_dual, bar_dual, (3, 2))
        before = torch.autograd.forward_ad.unpack_dual(foo).tangent
        foo.copy_(bar)
        expected = full(7) if bar_dual else full(0) if foo_dual else None
        assert tangent(torch, foo) == expected
        assert tangent(torch, bar) == (full(7) if bar_dual else None)
        if foo_dual:
            assert torch.autograd.forward_ad.unpack_dual(foo).tangent is before
        foo.add_(1)
        assert tangent(torch, bar) == (full(7) if bar_dual else None)


@pytest.mark.parametrize(("foo_dual", "bar_dual"), MIXTURES)
def test_cases_2_and_4_view_to_base(torch, foo_dual, bar_dual):
    with torch.autograd.forward_ad.dual_level():
        foo, bar = operands(torch, foo_dual, bar_dual, (2,))
        view = foo[0]
        view.copy_(bar)
        rest = 1 if foo_dual else 0
        expected = [[7, 7] if bar_dual else [0, 0], [rest] * 2, [rest] * 2] if foo_dual or bar_dual else None
        assert tangent(torch, foo) == expected
        assert tangent(torch, view) == (None if expected is None else expected[0])
        # From here on they go together.
        foo *= 2
        if expected is not None:
            assert tangent(torch, view) == [2 * e for e in expected[0]]
            view *= 2
            assert tangent(torch, foo)[0] == [4 * e for e in expected[0]]
            assert tangent(torch, foo)[1] == [2 * e for e in expected[1]]


@pytest.mark.parametrize(("foo_dual", "bar_dual"), MIXTURES)
def test_cases_3_and_5_base_to_view(torch, foo_dual, bar_dual):
    with torch.autograd.forward_ad.dual_level():
        foo, bar = operands(torch, foo_dual, bar_dual, (3, 2))
        view = foo[0]
        columns = foo.t()[1]
        foo.copy_(bar)
        value = 7 if bar_dual else 0 if foo_dual else None
        assert tangent(torch, view) == (None if value is None else [value] * 2)
        assert tangent(torch, columns) == (None if value is None else [value] * 3)
        if value is not None:
            view.mul_(3)
            assert tangent(torch, foo) == [[3 * value] * 2, [value] * 2, [value] * 2]
            assert tangent(torch, columns) == [3 * value, value, value]


@pytest.mark.parametrize(("foo_dual", "bar_dual"), MIXTURES)
def test_case_6_view_to_sibling(torch, foo_dual, bar_dual):
    with torch.autograd.forward_ad.dual_level():
        foo, bar = operands(torch, foo_dual, bar_dual, (2,))
        row, column, other = foo[0], foo[:, 1], foo[2]
        if foo_dual:
            tangent(torch, column)
        row.copy_(bar)
        if not foo_dual and not bar_dual:
            assert tangent(torch, column) is None
            return
        rest = 1 if foo_dual else 0
        value = 7 if bar_dual else 0
        assert tangent(torch, column) == [value, rest, rest]
        assert tangent(torch, other) == [rest, rest]
        column.mul_(10)
        assert tangent(torch, row) == [value, 10 * value]
        assert tangent(torch, foo)[0] == [value, 10 * value]


#: Ways to look at a matrix; the same expressions for tensors and arrays.
VIEWS = {
    "row": lambda x: x[1],
    "column": lambda x: x[:, 0],
    "part": lambda x: x[:, 1:],
    "steps": lambda x: x[::2],
    "transpose": lambda x: x.T,
    "diagonal": lambda x: x.reshape(9)[::4],
    "new dimension": lambda x: x[None],
    "reshape": lambda x: x.reshape(3, 1, 3)[1:],
    "view of a view": lambda x: x[1:].T[0],
}
#: Writes, and what they make of (value, tangent) of what was there and of what comes in.
WRITES = {
    "copy_": lambda x, xt, y, yt: (y, yt),
    "add_": lambda x, xt, y, yt: (x + y, xt + yt),
    "sub_": lambda x, xt, y, yt: (x - y, xt - yt),
    "mul_": lambda x, xt, y, yt: (x * y, xt * y + x * yt),
    "div_": lambda x, xt, y, yt: (x / y, (xt - x / y * yt) / y),
}


@pytest.mark.parametrize("through", [None, *VIEWS])
def test_all_views_and_writes(torch, through):
    """A write to the base or through a view, seen by base and all other views, which existed before it or not."""
    for write, (foo_dual, bar_dual) in itertools.product(WRITES, MIXTURES):
        check_views_and_writes(torch, through, write, foo_dual, bar_dual)


def check_views_and_writes(torch: Any, through: str | None, write: str, foo_dual: bool, bar_dual: bool) -> None:
    forward = torch.autograd.forward_ad
    rng = np.random.default_rng(0)
    x, xt, y, yt = (rng.uniform(1, 2, (3, 3)) for _ in range(4))
    look = VIEWS.get(through, lambda x: x)  # type: ignore[arg-type]
    y, yt = look(y), look(yt)
    xt, yt = (xt if foo_dual else np.zeros_like(xt)), (yt if bar_dual else np.zeros_like(yt))
    expected, expected_t = x.copy(), xt.copy()
    look(expected)[...], look(expected_t)[...] = WRITES[write](look(x), look(xt), y, yt)
    with forward.dual_level():
        foo, bar = torch.from_numpy(x.copy()), torch.from_numpy(y.copy())
        foo = forward.make_dual(foo, torch.from_numpy(xt.copy())) if foo_dual else foo
        bar = forward.make_dual(bar, torch.from_numpy(yt.copy())) if bar_dual else bar
        before = {name: view(foo) for name, view in VIEWS.items()}
        was = forward.unpack_dual(foo).tangent
        getattr(look(foo), write)(bar)
        np.testing.assert_allclose(foo.numpy(), expected, rtol=1e-14)
        now = forward.unpack_dual(foo).tangent
        for name, view in VIEWS.items():
            for made in (before[name], view(foo)):
                found = forward.unpack_dual(made).tangent
                if not foo_dual and not bar_dual:
                    assert found is None
                    continue
                np.testing.assert_allclose(found.numpy(), view(expected_t), rtol=1e-13, atol=1e-13)
                assert found._base is now
                assert found.stride() == made.stride()
                assert found.storage_offset() == made.storage_offset()
        if foo_dual:
            assert now is was
        if bar_dual:
            np.testing.assert_array_equal(forward.unpack_dual(bar).tangent.numpy(), yt)


def test_a_view_of_another_layout_becomes_dual(torch):
    """A tangent with another layout than the view's is written into the view of the base's."""
    forward = torch.autograd.forward_ad
    writes = (lambda x, y: x.add_(y), lambda x, y: x.mul_(y), lambda x, y: x.copy_(y))
    for write in writes:
        base = torch.ones(2, 2)
        view = base.t()
        with forward.dual_level():
            write(view, forward.make_dual(torch.ones(2, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])))
            assert tangent(torch, base) == [[1, 3], [2, 4]]
            view *= 2
            assert tangent(torch, base) == [[2, 6], [4, 8]]
            assert forward.unpack_dual(view).tangent._base is forward.unpack_dual(base).tangent


def test_one_tensor_may_be_the_tangent_of_base_and_view(torch):
    """If all layouts agree, the base gets the very tangent of the view."""
    forward = torch.autograd.forward_ad
    base = torch.zeros(2, 2)
    view = base.view_as(base)
    with forward.dual_level():
        dual = forward.make_dual(torch.zeros(2, 2), torch.ones(2, 2))
        view.copy_(dual)
        assert forward.unpack_dual(view).tangent is forward.unpack_dual(base).tangent
        assert forward.unpack_dual(view).tangent is not forward.unpack_dual(dual).tangent


def test_duals_and_primals_are_no_forward_views(torch):
    forward = torch.autograd.forward_ad
    x = torch.ones(2)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(2))
        dual *= 2
        assert x.tolist() == [2, 2]
        assert tangent(torch, x) is None
        primal = forward.unpack_dual(dual).primal
        primal *= 2
        assert tangent(torch, primal) is None
        assert tangent(torch, dual) == [2, 2]
        # A view of the dual is a view of it, not of `x`.
        part = dual.narrow(0, 0, 1)
        part *= 3
        assert tangent(torch, dual) == [6, 2]
        assert tangent(torch, x) is None
        y = torch.zeros(2)
        alias = y.detach()
        alias += dual
        assert tangent(torch, y) is None


def test_a_view_of_an_unpacked_primal_becomes_dual():
    x = retrograd.zeros(3)
    with fwAD.dual_level():
        primal = fwAD.unpack_dual(x).primal
        part, other = primal[:2], primal[1:]
        part.copy_(fwAD.make_dual(retrograd.ones(2), retrograd.tensor([3.0, 4.0])))
        assert tangent(retrograd, primal) == [3, 4, 0]
        assert tangent(retrograd, other) == [4, 0]
        assert tangent(retrograd, x) is None


def test_subscripts_write_tangents(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.ones(2), torch.tensor([3.0, 4.0]))
        x = torch.zeros(2, 2)
        x[0] = dual
        assert tangent(torch, x) == [[3, 4], [0, 0]]
        x[:, torch.tensor([1])] = dual[:, None]
        assert tangent(torch, x) == [[3, 3], [0, 4]]
        x[1, 1] = 0.0
        assert tangent(torch, x) == [[3, 3], [0, 0]]


def test_inplace_operators_use_the_values_before_the_write(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        x = forward.make_dual(torch.tensor([2.0]), torch.tensor([1.0])).clone()
        y = forward.make_dual(torch.tensor([3.0]), torch.tensor([10.0]))
        x.mul_(y)  # 1 * 3 + 2 * 10
        assert tangent(torch, x) == [23]
        x.div_(y)
        assert tangent(torch, x) == [pytest.approx(1)]
        x.pow_(3)
        assert tangent(torch, x) == [pytest.approx(12)]
        x.exp_()
        assert tangent(torch, x) == [pytest.approx(12 * math.exp(8), rel=1e-5)]


def test_tangents_that_inplace_operators_overwrite_can_be_differentiated(torch):
    """What the formula saves of a tangent is its value before the write."""
    forward = torch.autograd.forward_ad
    x = torch.tensor([4.0, 0.25], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([3.0, 2.0], dtype=torch.float64, requires_grad=True)
    with forward.dual_level():
        dual = forward.make_dual(x.clone(), t.clone())
        dual.sqrt_()
        made = forward.unpack_dual(dual).tangent
        assert values(made) == [0.75, 2.0]  # t / (2 sqrt(x))
        by_x, by_t = torch.autograd.grad(made.sum(), (x, t))
    assert values(by_x) == [-3 / 32, -4.0]  # -t / (4 x sqrt(x))
    assert values(by_t) == [0.25, 1.0]


def test_inplace_operators_with_themselves_or_their_views():
    with fwAD.dual_level():
        x = fwAD.make_dual(retrograd.tensor([2.0, 3.0]), retrograd.ones(2)).clone()
        x.mul_(x)
        assert tangent(retrograd, x) == [4, 6]
        x.mul_(x.view(2))  # (4 + 4e)**2 and (9 + 6e)**2
        assert tangent(retrograd, x) == [32, 108]


def test_reshaping_in_place(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        x = forward.make_dual(torch.ones(1, 2), torch.tensor([[3.0, 4.0]])).clone()
        x.squeeze_()
        assert tangent(torch, x) == [3, 4]
        x.unsqueeze_(1)
        assert tangent(torch, x) == [[3], [4]]
        x.t_()
        assert tangent(torch, x) == [[3, 4]]


def test_views_of_a_base_that_was_reshaped_in_place(torch):
    """They are where they were, although the steps that led to them were taken from another shape."""
    forward = torch.autograd.forward_ad
    tangents = torch.arange(6.0).reshape(3, 2)
    for through_view in (False, True):
        base = torch.zeros(2, 3)
        last, row = base[:, 2], base[0]
        base.t_()
        with forward.dual_level():
            (base.t().t() if through_view else base).copy_(forward.make_dual(torch.ones(3, 2), tangents))
            assert tangent(torch, last) == [4, 5]
            assert tangent(torch, row) == [0, 2, 4]
        with forward.dual_level():
            row.copy_(forward.make_dual(torch.ones(3), torch.tensor([7.0, 8.0, 9.0])))
            assert tangent(torch, base) == [[7, 0], [8, 0], [9, 0]]
            assert tangent(torch, last) == [9, 0]


def test_an_integer_tensor_has_no_tangent(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        x = torch.zeros(2, dtype=torch.int64)
        x.copy_(forward.make_dual(torch.ones(2), torch.ones(2)))
        assert x.tolist() == [1, 1]
        assert tangent(torch, x) is None


# -------------------------------------------------------------------------------------------------------- mixed modes


def f(x: Any) -> Any:
    """Enough of everything: its first four derivatives at a number are all different."""
    return (x.exp() * x.sin()) / (1 + x * x)


def derivative(n: int, x: float) -> float:
    """The n-th derivative of `f`, by the Taylor series of numbers: t**i -> coefficients."""
    series = _exp_series(x) * _sin_series(x)
    denominator = np.polynomial.Polynomial([1 + x * x, 2 * x, 1])
    quotient, rest = [], np.zeros(8)
    rest[: len(series.coef[:8])] = series.coef[:8]
    d = np.zeros(8)
    d[:3] = denominator.coef
    for k in range(6):
        q = (rest[k] - sum(quotient[i] * d[k - i] for i in range(k))) / d[0]
        quotient.append(q)
    return quotient[n] * math.factorial(n)


def _exp_series(x: float) -> Any:
    return np.polynomial.Polynomial([math.exp(x) / math.factorial(k) for k in range(8)])


def _sin_series(x: float) -> Any:
    return np.polynomial.Polynomial([math.sin(x + k * math.pi / 2) / math.factorial(k) for k in range(8)])


def forward_derivative(function: Any) -> Any:
    """The derivative by a dual level of its own; may be nested."""

    def differentiated(x: Any) -> Any:
        with fwAD.dual_level():
            slope = fwAD.unpack_dual(function(fwAD.make_dual(x, retrograd.ones_like(x)))).tangent
            return retrograd.zeros_like(x) if slope is None else slope

    return differentiated


def reverse_derivative(function: Any) -> Any:
    """The derivative by a backward pass of its own."""

    def differentiated(x: Any) -> Any:
        alias = x.view_as(x) if x.requires_grad or fwAD._current_level >= 0 else x.detach()
        if not alias.requires_grad:
            alias = alias.requires_grad_()
        result = function(alias)
        if not result.requires_grad:
            return retrograd.zeros_like(x)
        (slope,) = retrograd.autograd.grad(result, alias, create_graph=True, materialize_grads=True)
        return slope

    return differentiated


@pytest.mark.parametrize("modes", ["".join(m) for n in (1, 2, 3, 4) for m in itertools.product("FR", repeat=n)])
def test_modes_nest_in_every_order(modes):
    """Derivatives up to the fourth, each order by either mode, innermost first."""
    function = f
    for mode in modes:
        function = forward_derivative(function) if mode == "F" else reverse_derivative(function)
    x = retrograd.tensor(0.7, dtype=retrograd.float64)
    assert function(x).item() == pytest.approx(derivative(len(modes), 0.7), rel=1e-9)


DERIVATIVES = {"F": forward_derivative, "R": reverse_derivative}
PAIRS = list(itertools.product("FR", repeat=2))
TRIPLES = list(itertools.product("FR", repeat=3))


def number(value: float) -> Any:
    return retrograd.tensor(value, dtype=retrograd.float64)


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_perturbations_are_not_confused(outer, inner):
    """d/dx (x * d/dy (x + y)) is 1, and not 2: y varies inside, x outside."""
    d_outer, d_inner = DERIVATIVES[outer], DERIVATIVES[inner]
    assert d_outer(lambda x: x * d_inner(lambda y: x + y)(number(1.0)))(number(3.0)).item() == 1
    assert d_outer(lambda x: x * d_inner(lambda y: x + y)(x))(number(3.0)).item() == 1
    # d/dx (x * 2 x**2 y) at y = x: 2 x**4
    assert d_outer(lambda x: x * d_inner(lambda y: x * x * y * y)(x))(number(2.0)).item() == 64
    # An inner function that only uses the outer variable does not vary.
    assert d_outer(lambda x: d_inner(lambda y: x * x)(number(1.0)))(number(2.0)).item() == 0
    # d/dx (d/dy (x * y at y = x)) is the derivative of x.
    assert d_outer(lambda x: d_inner(lambda y: x * y)(x))(number(5.0)).item() == 1


@pytest.mark.parametrize("modes", TRIPLES, ids="".join)
def test_perturbations_are_not_confused_at_three_levels(modes):
    dx, dy, dz = (DERIVATIVES[mode] for mode in modes)
    # x * d/dy [y * d/dz (x*y*z)] = x * d/dy (x * y**2) = 2 x**2 y
    found = dx(lambda x: x * dy(lambda y: y * dz(lambda z: x * y * z)(number(7.0)))(number(5.0)))(number(3.0))
    assert found.item() == 4 * 3 * 5
    # The same with each variable at the value of the one outside: 2 x**3
    found = dx(lambda x: x * dy(lambda y: y * dz(lambda z: x * y * z)(y))(x))(number(3.0))
    assert found.item() == 6 * 9
    # d/dx [x * d/dy (x + y) * d/dz (x + z)]: 1, three times over
    found = dx(lambda x: x * dy(lambda y: (x + y) * dz(lambda z: x + y + z)(y))(x))(number(3.0))
    assert found.item() == 1
    # exp(x y z): the mixed derivative is (1 + 3 u + u**2) exp(u) with u = x y z
    found = dx(lambda x: dy(lambda y: dz(lambda z: (x * y * z).exp())(number(0.5)))(number(0.7)))(number(1.1))
    u = 0.5 * 0.7 * 1.1
    assert found.item() == pytest.approx((1 + 3 * u + u * u) * math.exp(u), rel=1e-12)


@pytest.mark.parametrize("modes", TRIPLES, ids="".join)
def test_a_derivative_of_a_derivative_operator(modes):
    """The shift ``u -> f(x + u)``, differentiated at 0 and applied three times, where mixed-up levels give 0."""

    def shifted(d: Any, inner: Any) -> Any:
        return lambda x: d(lambda u: inner(x + u))(number(0.0))

    function: Any = f
    for mode in modes:
        function = shifted(DERIVATIVES[mode], function)
    assert function(number(0.7)).item() == pytest.approx(derivative(3, 0.7), rel=1e-9)


def in_one_level(modes: str, x: Any) -> tuple[Any, Any]:
    """Derivatives of `f` at one level: F takes the tangent, R the gradient for `x` of what there is so far."""
    with fwAD.dual_level():
        found = f(fwAD.make_dual(x, retrograd.ones_like(x)))
        for mode in modes:
            if mode == "F":
                found = fwAD.unpack_dual(found).tangent
            else:
                (found,) = retrograd.autograd.grad(found, x, create_graph=True)
        return found.item(), tangent(retrograd, found)


@pytest.mark.parametrize(
    ("modes", "order", "varies"),
    [("F", 1, False), ("R", 1, True), ("FR", 2, False), ("RF", 2, False), ("RR", 2, True), ("FRR", 3, False),
     ("RFR", 3, False), ("RRF", 3, False), ("RRR", 3, True)],
)  # fmt: skip
def test_mixed_modes_within_one_level(modes, order, varies):
    """A tangent does not vary at its own level, nor do its gradients; gradients of what varies do."""
    x = number(0.7).requires_grad_()
    value, its_tangent = in_one_level(modes, x)
    assert value == pytest.approx(derivative(order, 0.7), rel=1e-9)
    assert its_tangent == (pytest.approx(derivative(order + 1, 0.7), rel=1e-9) if varies else None)


def test_the_gradient_of_a_primal_does_not_vary():
    x = number(0.7).requires_grad_()
    with fwAD.dual_level():
        result = f(fwAD.make_dual(x, retrograd.ones_like(x)))
        (slope,) = retrograd.autograd.grad(fwAD.unpack_dual(result).primal, x, retain_graph=True)
        assert slope.item() == pytest.approx(derivative(1, 0.7))
        assert tangent(retrograd, slope) is None
        # A gradient that varies comes out varying.
        direction = fwAD.make_dual(number(1.0), number(3.0))
        (slope,) = retrograd.autograd.grad(fwAD.unpack_dual(result).primal, x, direction)
        assert slope.item() == pytest.approx(derivative(1, 0.7))


def test_a_tangent_times_a_dual(torch):
    """x * f'(x) at the same level: the tangent that was taken out is a constant."""
    forward = torch.autograd.forward_ad
    x = torch.tensor(2.0, requires_grad=True)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.tensor(1.0))
        product = dual * forward.unpack_dual(dual * dual * dual).tangent
        assert tangent(torch, product) == 12  # 3 x**2, not 9 x**2
        (gradient,) = torch.autograd.grad(product, x)
        assert gradient.item() == 36  # but it is a function of x


def test_a_tangent_has_saved_no_dual_tensors():
    """What a formula's nodes keep does not vary at the level of the tangent that they belong to."""
    x = number(0.7).requires_grad_()
    for function in (lambda t: t * t, lambda t: t.exp(), lambda t: t.clone().mul_(t), lambda t: t.sin().sqrt()):
        with fwAD.dual_level():
            node = fwAD.unpack_dual(function(fwAD.make_dual(x, retrograd.ones_like(x)))).tangent.grad_fn
            for name in (n for n in dir(node) if n.startswith("_saved_")):
                saved = getattr(node, name)
                assert not isinstance(saved, retrograd.Tensor) or tangent(retrograd, saved) is None, (node, name)


def test_levels_by_number():
    """A tensor that is dual at two levels, taken apart at either."""
    x = retrograd.tensor(2.0)
    one = retrograd.tensor(1.0)
    with fwAD.dual_level():
        outer = fwAD.make_dual(x, one)
        with fwAD.dual_level():
            both = fwAD.make_dual(outer, one)
            cube = both * both * both
            at_0 = fwAD.unpack_dual(cube, level=0)
            at_1 = fwAD.unpack_dual(cube, level=1)
            assert at_0.tangent.item() == at_1.tangent.item() == 12
            assert fwAD.unpack_dual(at_1.tangent, level=0).tangent.item() == 12
            assert fwAD.unpack_dual(at_0.tangent, level=1).tangent.item() == 12
            assert fwAD.unpack_dual(at_0.primal, level=0).tangent is None
            assert fwAD.unpack_dual(at_0.primal, level=1).tangent.item() == 12
            assert fwAD.unpack_dual(fwAD.unpack_dual(at_0.primal, level=1).tangent, level=0).tangent is None
            with pytest.raises(RuntimeError, match="at a level within it"):
                fwAD.make_dual(x, both, level=0)
        assert fwAD.unpack_dual(cube).tangent.item() == 12


def test_views_and_writes_at_two_levels():
    with fwAD.dual_level():
        x = fwAD.make_dual(retrograd.tensor([2.0, 3.0]), retrograd.ones(2))
        with fwAD.dual_level():
            y = fwAD.make_dual(x, retrograd.ones(2)).clone()
            y[0] = y[0] * y[0]
            y.mul_(y)  # x**4 and x**2
            slope = fwAD.unpack_dual(y).tangent
            assert values(slope) == [32, 6]
            assert tangent(retrograd, fwAD.unpack_dual(y).primal) is None
        assert tangent(retrograd, slope) == [48, 2]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp(),
        lambda x: x.sqrt() * x.tanh(),
        lambda x: x.clone().mul_(x).exp_(),
        lambda x: x.clone().sigmoid_() * x,
        lambda x: (x.view(1) * x.view(1)).view(()) * x,
        lambda x: retrograd.stack([x, x * x]).prod(),
        lambda x: x.softmax(0) if x.ndim else x.expand(2).cumprod(0).sum(),
    ],
)
def test_forward_over_reverse_of_saved_results(function):
    """What nodes save of a dual computation is dual: outputs, what was overwritten, views."""
    x = retrograd.tensor(0.7, dtype=retrograd.float64, requires_grad=True)
    (first,) = retrograd.autograd.grad(function(x), x, create_graph=True)
    (expected,) = retrograd.autograd.grad(first, x)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, retrograd.ones_like(x))
        (first,) = retrograd.autograd.grad(function(dual), x)
        assert fwAD.unpack_dual(first).tangent.item() == pytest.approx(expected.item(), rel=1e-12)


def test_forward_over_reverse_through_saved_tensor_hooks():
    x = retrograd.tensor(0.7, dtype=retrograd.float64, requires_grad=True)
    for enter_first in (True, False):
        hooks = retrograd.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)
        contexts = [fwAD.dual_level(), hooks] if enter_first else [hooks, fwAD.dual_level()]
        with contexts[0], contexts[1]:
            dual = fwAD.make_dual(x, retrograd.ones_like(x))
            (first,) = retrograd.autograd.grad(dual.exp(), x)
            assert fwAD.unpack_dual(first).tangent.item() == pytest.approx(math.exp(0.7))


def test_backward_within_a_level(torch):
    """`.grad` is computed as ever."""
    forward = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with forward.dual_level():
        dual = forward.make_dual(x, torch.ones(2))
        (dual * dual).sum().backward()
        (dual * dual).sum().backward()
    assert x.grad.tolist() == [4, 8]


def test_reverse_over_forward_reaches_tangent_and_primal(torch):
    forward = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    t = torch.tensor([3.0, 4.0], requires_grad=True)
    with forward.dual_level():
        slope = forward.unpack_dual((forward.make_dual(x, t) ** 3).sum()).tangent
        gx, gt = torch.autograd.grad(slope, (x, t))
    assert gx.tolist() == [18, 48]  # 6 x t
    assert gt.tolist() == [3, 12]  # 3 x**2


def test_complex_tangents(torch):
    forward = torch.autograd.forward_ad
    z, t = torch.tensor([1 + 2j]), torch.tensor([3 - 1j])
    with forward.dual_level():
        dual = forward.make_dual(z, t)
        assert tangent(torch, dual * dual) == [2 * (1 + 2j) * (3 - 1j)]
        assert tangent(torch, dual.conj()) == [3 + 1j]
        assert tangent(torch, dual.real) == [3]
        assert tangent(torch, dual.imag) == [-1]
        assert tangent(torch, dual.abs()) == [pytest.approx(((1 - 2j) * (3 - 1j)).real / math.sqrt(5), rel=1e-5)]


def test_real_part_written_through_a_view(torch):
    forward = torch.autograd.forward_ad
    z = torch.zeros(1, dtype=torch.complex64)
    with forward.dual_level():
        z.real.copy_(forward.make_dual(torch.ones(1), torch.full((1,), 3.0)))
        assert tangent(torch, z) == [3 + 0j]
        z.imag.copy_(forward.make_dual(torch.ones(1), torch.full((1,), 4.0)))
        assert tangent(torch, z) == [3 + 4j]


def test_jvp_of_a_network_is_the_directional_derivative():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((4, 3), (3, 5), (5,), (5, 2), (2,))]
    steps = [rng.normal(size=a.shape) for a in arrays]

    def network(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return ((x @ w1 + b1).tanh() @ w2 + b2).logsumexp(1).mean()

    with fwAD.dual_level():
        pairs = zip(arrays, steps, strict=True)
        duals = [fwAD.make_dual(retrograd.from_numpy(a), retrograd.from_numpy(s)) for a, s in pairs]
        slope = fwAD.unpack_dual(network(*duals)).tangent.item()
    h = 1e-6
    ahead, behind = (
        network(*(retrograd.from_numpy(a + sign * h * s) for a, s in zip(arrays, steps, strict=True))).item()
        for sign in (1, -1)
    )
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-7)


def test_a_number_that_an_element_cannot_hold(torch):
    x = torch.ones(2, dtype=torch.uint8)
    with torch.autograd.forward_ad.dual_level():
        x[0] = -1
        assert x.tolist() == [255, 1]
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            x[0] = 300
    assert x.tolist() == [255, 1]


def test_saved_results_have_tangents_of_their_own():
    """Unpacked twice, two tensors: what one is given at an inner level the other, and the result itself, do not see."""
    with fwAD.dual_level():
        x = fwAD.make_dual(retrograd.ones(2, requires_grad=True), retrograd.ones(2))
        y = x.exp()
        with fwAD.dual_level():
            one, other = y.grad_fn._saved_result, y.grad_fn._saved_result
            level = process.dual_levels[-1]
            set_fw_grad(one, retrograd.full((2,), 5.0), level)
            assert fwAD.unpack_dual(one).tangent.tolist() == [5.0, 5.0]
            assert fwAD.unpack_dual(other).tangent is None
            assert fwAD.unpack_dual(y).tangent is None
        assert fwAD.unpack_dual(one).tangent.tolist() == fwAD.unpack_dual(y).tangent.tolist()


def test_packed_tensors_have_tangents_of_their_own():
    with fwAD.dual_level():
        x = fwAD.make_dual(retrograd.ones(2, requires_grad=True), retrograd.ones(2))
        with retrograd.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            y = x * x
        unpacked = y.grad_fn._saved_self
        assert unpacked._grad_meta_.fw_grad is not x._grad_meta_.fw_grad
        assert fwAD.unpack_dual(unpacked).tangent.tolist() == [1.0, 1.0]


def test_tangents_that_no_tensor_may_have():
    with fwAD.dual_level():
        level = process.dual_levels[-1]
        with pytest.raises(RuntimeError, match="Cannot set a forward grad that is an undefined Tensor"):
            set_fw_grad(retrograd.ones(2), None, level)
        view = retrograd.ones(2, 3).clone().t()
        with pytest.raises(RuntimeError, match="to have the tangent have the same layout as primal"):
            set_fw_grad(view, retrograd.ones(3, 2), level)
        assert fwAD.unpack_dual(view).tangent is None

"""inference_mode: inference tensors and their rules."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("clean_state")


@pytest.fixture
def made(torch):
    """An inference tensor."""
    with torch.inference_mode():
        return torch.ones(2, 3) * 2


def test_what_is_made_inside(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        z = torch.ones(2)
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    assert y.is_inference() and z.is_inference() and not x.is_inference()
    assert not y.requires_grad and y.grad_fn is None


def test_views_of_normal_tensors_are_normal(torch):
    x = torch.ones(2, 3)
    with torch.inference_mode():
        v = x[0]
        v.add_(1)
    assert not v.is_inference() and v._is_view() and v._base is x
    assert x._version == 1 and x.tolist()[0] == [2.0, 2.0, 2.0]


def test_views_of_inference_tensors_are_inference_tensors(torch, made):
    v = made[0]
    assert v.is_inference() and not v._is_view() and v._base is None


def test_no_version(torch, made):
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        made._version


def test_writes(torch, made):
    with torch.inference_mode():
        made.add_(1)
        made[0] = 0.0
    assert made.tolist() == [[0.0] * 3, [3.0] * 3]


WRITES = {
    "add_": lambda t: t.add_(1),
    "zero_": lambda t: t.zero_(),
    "copy_": lambda t: t.copy_(t + 1),
    "transpose_": lambda t: t.transpose_(0, 1),
    "exp_": lambda t: t.exp_(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_outside(torch, made, write):
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        write(made)


def test_a_refused_write_has_changed_nothing():
    """(In torch it has.)"""
    import retrograd

    with retrograd.inference_mode():
        x = retrograd.ones(3)
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 5.0), lambda: x.unsqueeze_(0)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            write()
    assert x.tolist() == [1.0, 1.0, 1.0] and x.shape == (3,)


def test_requires_grad(torch, made):
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        made.requires_grad_()
    assert not made.requires_grad
    assert made.clone().requires_grad_().requires_grad
    with torch.inference_mode():
        leaf = torch.ones(2, requires_grad=True)
    assert leaf.requires_grad and leaf.is_inference()


def test_saving(torch, made):
    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * made
    (x + made).sum().backward()  # nothing to save
    assert x.grad.tolist() == [[1.0] * 3] * 2
    (x * made.clone()).sum().backward()
    assert x.grad.tolist() == [[3.0] * 3] * 2


def test_results_outside_are_normal(torch, made):
    y = made * 2
    assert not y.is_inference() and not made.clone().is_inference()
    y.add_(1)


def test_normal_tensors_written_to_inside(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    with torch.inference_mode():
        y.add_(1)
    assert y._version == 1 and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_what_was_saved_before_is_watched_inside(torch):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    with torch.inference_mode():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_nesting(torch):
    with torch.inference_mode():
        with torch.inference_mode(False):
            assert torch.is_grad_enabled() and not torch.ones(1).is_inference()
        with torch.enable_grad():
            assert torch.ones(1).is_inference()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_as_a_decorator(torch):
    @torch.inference_mode()
    def f(x):
        return x * 2

    assert f(torch.ones(2)).is_inference()

    with pytest.raises(ZeroDivisionError):
        with torch.inference_mode():
            1 / 0
    assert not torch.is_inference_mode_enabled()


def test_backward_with_an_inference_gradient(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        g = torch.ones(2)
    (x * 2).backward(g)
    assert x.grad.tolist() == [2.0, 2.0]


# --------------------------------------------------------------- grad mode switched on inside: nothing is recorded


def _switched_on(torch, how):
    return torch.enable_grad() if how == "enable_grad" else torch.set_grad_enabled(True)


@pytest.mark.parametrize("how", ["enable_grad", "set_grad_enabled"])
def test_enable_grad_inside_records_nothing(torch, how):
    x = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        with _switched_on(torch, how):
            assert torch.is_grad_enabled()
            y = x * 2
            z = torch.ones(2, requires_grad=True)
            assert not y.requires_grad and y.grad_fn is None and y.is_inference()
            assert z.requires_grad and not (z * 2).requires_grad
            with torch.no_grad():
                assert not torch.is_grad_enabled()
            assert torch.is_grad_enabled() and not (x * 2).requires_grad
            with torch.inference_mode(False):
                assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled() and (x * 2).requires_grad


def test_writes_inside_are_not_recorded_either(torch):
    x = torch.ones(3, requires_grad=True)
    y, z = x.clone(), torch.ones(3)
    with torch.inference_mode(), torch.enable_grad():
        y.mul_(2)
        z.mul_(x)
        torch.mul(x, x, out=torch.ones(3))
    assert type(y.grad_fn).__name__ == "CloneBackward0" and y._version == 1
    assert not z.requires_grad and z._version == 1


def test_a_view_of_a_leaf_inside(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.inference_mode(), torch.enable_grad():
        view = x[1:]
    assert view._is_view() and view.grad_fn is None and not view.is_inference()


def test_custom_functions_and_checkpoints_inside(torch):
    """Custom functions are recorded, as torch does it; what a checkpoint runs is not."""
    import importlib

    checkpoint = importlib.import_module(f"{torch.__name__}.utils.checkpoint").checkpoint

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(3, requires_grad=True)
    with torch.inference_mode(), torch.enable_grad():
        y = Double.apply(x)
        assert y.requires_grad and y.is_inference()
        assert not checkpoint(lambda t: t * 2, x, use_reentrant=False).requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_pass_inside_gives_inference_tensors(torch, create_graph):
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    with torch.inference_mode():
        (grad,) = torch.autograd.grad(y, x, create_graph=create_graph, retain_graph=True)
        assert grad.is_inference() and not grad.requires_grad and grad.tolist() == [2.0, 2.0, 2.0]
        y.backward()
    assert x.grad.is_inference() and x.grad.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        (x * 3).sum().backward()
    if torch.__name__ == "retrograd":  # torch refuses it when it has added already
        assert x.grad.tolist() == [2.0, 2.0, 2.0]


NEW = {
    "chain_matmul": lambda t, x: t.chain_matmul(x),
    "combinations": lambda t, x: t.combinations(x[0], 0),
    "embedding_bag": lambda t, x: t.embedding_bag(x, t.tensor([0]), t.tensor([0]))[2],
    "histogram": lambda t, x: t.histogram(x, 2).hist,
    "isin": lambda t, x: t.isin(x, 1.0),
    "multinomial": lambda t, x: t.multinomial(x, 1),
    "new_zeros": lambda t, x: x.new_zeros(2),
    "nonzero": lambda t, x: t.nonzero(x, as_tuple=True)[0],
    "nonzero_static": lambda t, x: t.nonzero_static(x, size=2),
    "unravel_index": lambda t, x: t.unravel_index(t.tensor([0]), (2, 3))[0],
    "vander": lambda t, x: t.vander(x[0], 0),
}


@pytest.mark.parametrize("name", NEW)
@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
def test_operators_outside_of_the_table(torch, name):
    x = torch.ones(2, 3, requires_grad=True)
    with torch.inference_mode():
        y = NEW[name](torch, x)
    assert y.is_inference() and not y.requires_grad

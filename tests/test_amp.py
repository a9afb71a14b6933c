"""Mixed precision: which dtype results have, where the mode ends, and what follows it into checkpoints."""

from __future__ import annotations

import warnings

import pytest

import retrograd
from retrograd.core.state import local
from retrograd.utils.checkpoint import checkpoint

pytest.importorskip("ml_dtypes")
pytestmark = pytest.mark.usefixtures("clean_state")


def calls(torch, dtype="bfloat16"):
    """Calls under autocast on float32 (a, v) and low-precision (low) arguments."""
    f = torch.nn.functional
    a, v, i = torch.ones(3, 3), torch.ones(3), torch.tensor([0, 1, 2])
    low, image = torch.ones(3, 3).to(getattr(torch, dtype)), torch.ones(1, 1, 3, 3)
    return {
        # in the mode's dtype
        "@": lambda: a @ a,
        "matrix @ vector": lambda: a @ v,
        "vector @ vector": lambda: v @ v,
        "mm": lambda: torch.mm(a, a),
        "bmm": lambda: torch.bmm(a[None], a[None]),
        "addmm": lambda: torch.addmm(a, a, a),
        "baddbmm": lambda: torch.baddbmm(a[None], a[None], a[None]),
        "linear": lambda: f.linear(a, a, v),
        "Linear": lambda: torch.nn.Linear(3, 3)(a),
        "conv1d": lambda: f.conv1d(a[None], torch.ones(3, 3, 1)),
        "conv2d": lambda: f.conv2d(image, torch.ones(1, 1, 2, 2)),
        "conv_transpose2d": lambda: f.conv_transpose2d(image, torch.ones(1, 1, 2, 2)),
        "attention": lambda: f.scaled_dot_product_attention(a[None], a[None], a[None]),
        "einsum": lambda: torch.einsum("ij,jk->ik", a, a),
        "prelu": lambda: f.prelu(a, torch.ones(1)),
        "vecdot": lambda: torch.linalg.vecdot(a, a),
        "multi_dot": lambda: torch.linalg.multi_dot([a, a, a]),
        # in float32
        "cross_entropy": lambda: f.cross_entropy(low, i),
        "nll_loss": lambda: f.nll_loss(low, i),
        "mse_loss": lambda: f.mse_loss(low, low),
        "l1_loss": lambda: f.l1_loss(low, low),
        "smooth_l1_loss": lambda: f.smooth_l1_loss(low, low),
        "huber_loss": lambda: f.huber_loss(low, low),
        "kl_div": lambda: f.kl_div(low, low, reduction="batchmean"),
        "bce": lambda: f.binary_cross_entropy_with_logits(low, low),
        "triplet": lambda: f.triplet_margin_loss(low, low, low),
        "prod": lambda: low.prod(),
        "trace": lambda: low.trace(),
        "cdist": lambda: torch.cdist(a, a),
        # the widest
        "cat of both": lambda: torch.cat([low, a]),
        "cat of one": lambda: torch.cat([low, low]),
        "stack": lambda: torch.stack([low, a]),
        # as given
        "mv": lambda: torch.mv(a, v),
        "dot": lambda: torch.dot(v, v),
        "outer": lambda: torch.outer(v, v),
        "bilinear": lambda: f.bilinear(a, a, torch.ones(2, 3, 3)),
        "+": lambda: low + a,
        "softmax": lambda: f.softmax(low, 0),
        "gelu": lambda: f.gelu(low),
        "layer_norm": lambda: f.layer_norm(low, (3,)),
        "sum": lambda: low.sum(),
        "norm": lambda: torch.linalg.vector_norm(low),
        "avg_pool2d": lambda: f.avg_pool2d(low[None], 2),
        "double": lambda: a.double() @ a.double(),
        "integers": lambda: i + i,
    }


@pytest.mark.parity
@pytest.mark.parametrize("name", list(calls(retrograd)))
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dtypes_are_torch_s(name, dtype):
    torch = pytest.importorskip("torch")

    results = []
    for library in (torch, retrograd):
        with library.autocast("cpu", dtype=getattr(library, dtype)):
            results.append(calls(library, dtype)[name]())
    theirs, ours = results
    assert str(ours.dtype) == str(theirs.dtype)
    if name != "Linear":  # initialised at random
        assert ours.float().flatten().tolist() == pytest.approx(theirs.float().flatten().tolist(), rel=2e-2)


def test_the_outermost_listed_function_decides(torch):
    """It is found on the stack (see amp.py): one operator, called by three functions."""
    v, m = torch.ones(3), torch.ones(3, 3)
    with torch.autocast("cpu"):
        assert torch.dot(v, v).dtype is torch.float32  # as given
        assert torch.matmul(v, v).dtype is (v @ v).dtype is torch.bfloat16
        assert torch.linalg.vecdot(v, v).dtype is torch.bfloat16
        assert torch.mv(m, v).dtype is torch.float32
        assert torch.matmul(m, v).dtype is torch.bfloat16


def test_the_mode_begins_and_ends(torch):
    a = torch.ones(2, 2)
    assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert not torch.is_autocast_enabled("cpu") and (a @ a).dtype is torch.float32
        with torch.amp.autocast("cpu", dtype=torch.float16):
            assert (a @ a).dtype is torch.get_autocast_dtype("cpu") is torch.float16
        assert (a @ a).dtype is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu") and (a @ a).dtype is torch.float32


def test_as_a_decorator_and_after_an_error(torch):
    a = torch.ones(2, 2)
    mode = torch.autocast("cpu")
    assert mode(lambda: (a @ a).dtype)() is torch.bfloat16
    with pytest.raises(ZeroDivisionError), mode:
        1 / 0
    assert not torch.is_autocast_enabled("cpu")


def test_gradients_have_the_dtype_of_their_leaves(torch):
    w, x = torch.full((3, 3), 0.5, requires_grad=True), torch.ones(2, 3)
    with torch.autocast("cpu"):
        y = torch.nn.functional.linear(x, w)
        loss = torch.nn.functional.mse_loss(y, torch.zeros(2, 3))
    assert y.dtype is torch.bfloat16 and loss.dtype is torch.float32
    loss.backward()
    assert w.grad.dtype is torch.float32 and w.grad.tolist() == [[1.0] * 3] * 3


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_recompute_in_the_mode_of_their_forward(reentrant):
    seen = []

    def function(x, y):
        z = x @ y
        seen.append(z.dtype)
        return z * z

    x, y = retrograd.ones(2, 2, requires_grad=True), retrograd.ones(2, 2, requires_grad=True)
    with retrograd.autocast("cpu"):
        z = checkpoint(function, x, y, use_reentrant=reentrant)
    plain = checkpoint(function, x, y, use_reentrant=reentrant)
    with retrograd.autocast("cpu", dtype=retrograd.float16):  # not the mode of either forward
        z.sum().backward()
        plain.sum().backward()
    low, full = retrograd.bfloat16, retrograd.float32
    assert seen == [low, full, low, full] and x.grad.tolist() == [[16.0] * 2] * 2


def test_other_observers_see_the_operators_too(torch):
    packed = []
    w = torch.ones(2, 2, requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.dtype) or t, lambda t: t)
    with torch.autocast("cpu"), hooks:
        y = w @ w
    y.sum().backward()
    assert packed == [torch.bfloat16] * 2 and w.grad.dtype is torch.float32


def test_custom_functions(torch):
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            seen.append((grad.float() @ a).dtype)
            return grad.float()

    class Exact(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, a):
            seen.append((a.dtype, torch.is_autocast_enabled("cpu")))
            return a @ a

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(torch.is_autocast_enabled("cpu"))
            return grad

    seen = []
    a = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        y = Product.apply(a)
    y.sum().backward()
    assert seen == [torch.bfloat16] and y.dtype is torch.bfloat16
    seen.clear()
    with torch.autocast("cpu"):
        y = Exact.apply(a.to(torch.bfloat16))
    y.sum().backward()
    assert seen == [(torch.float32, False), False] and y.dtype is torch.float32


def test_what_is_refused(torch):
    with pytest.raises(RuntimeError, match="device type at start of device string: nowhere"):
        torch.autocast("nowhere")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)
    with pytest.warns(UserWarning, match="the target dtype is not supported. Disabling autocast"):
        mode = torch.autocast("cpu", dtype=torch.float64)
    with mode:
        assert not torch.is_autocast_enabled("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autocast("cpu", dtype=torch.float64, enabled=False)


def test_nothing_is_left_when_it_is_off():
    with retrograd.autocast("cpu"):
        pass
    assert local.state.observers == () and local.state.interceptor is None


LINALG = {
    "eigh": lambda t, a, b: t.linalg.eigh(a)[0], "eigvalsh": lambda t, a, b: t.linalg.eigvalsh(a),
    "eig": lambda t, a, b: t.linalg.eig(a)[0], "eigvals": lambda t, a, b: t.linalg.eigvals(a),
    "svd": lambda t, a, b: t.linalg.svd(a)[1], "svdvals": lambda t, a, b: t.linalg.svdvals(a),
    "inv": lambda t, a, b: t.linalg.inv(a), "solve": lambda t, a, b: t.linalg.solve(a, b),
    "cholesky": lambda t, a, b: t.linalg.cholesky(a), "qr": lambda t, a, b: t.linalg.qr(a)[0],
    "lstsq": lambda t, a, b: t.linalg.lstsq(a, b[:, None])[0], "matrix_rank": lambda t, a, b: t.linalg.matrix_rank(a),
    "cond": lambda t, a, b: t.linalg.cond(a), "cholesky_solve": lambda t, a, b: t.cholesky_solve(b[:, None], a),
    "cholesky_inverse": lambda t, a, b: t.cholesky_inverse(a), "geqrf": lambda t, a, b: t.geqrf(a)[0],
    "triangular_solve": lambda t, a, b: t.triangular_solve(b[:, None], a)[0],
    "tensordot": lambda t, a, b: t.tensordot(a, a),
    "reflect": lambda t, a, b: t.nn.functional.pad(a[None], (1, 1), mode="reflect"),
    "replicate": lambda t, a, b: t.nn.functional.pad(a[None, None], (1, 1, 1, 1), mode="replicate"),
    "adaptive_avg_pool3d": lambda t, a, b: t.nn.functional.adaptive_avg_pool3d(a[None, None], 1),
    "inner": lambda t, a, b: t.inner(b.float(), b.float()),
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", LINALG)
def test_matrices_are_taken_apart_in_float32(name):
    """What is computed of low precision within the block has no solver of that precision: torch takes float32."""
    found = []
    for torch in (retrograd, pytest.importorskip("torch")):
        a = torch.eye(3, dtype=torch.bfloat16) * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result = LINALG[name](torch, a, torch.ones(3, dtype=torch.bfloat16))
        found.append((str(result.dtype), [abs(complex(x)) for x in result.flatten().tolist()]))
    assert found[0][0] == found[1][0] and found[0][1] == pytest.approx(found[1][1], rel=1e-5)

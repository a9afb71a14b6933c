"""Tensors on meta: every operator of the sample database gives what it gives on the CPU, but for the values.

Sizes, dtypes and strides of results and gradients are compared. The sizes of samples are small; the second pair of
probes, which leaves small sizes alone (Note [Probes] in ops/meta/inference.py), is switched off here, so that they are
inferred as large ones are.
"""

from __future__ import annotations

import copy
import pickle
import resource
import time
import warnings

import numpy as np
import pytest

import retrograd
from operator_runs import Run, is_tensor
from retrograd.ops.meta import inference
from retrograd.tensor.meta import MetaArray, meta_tensor
from samples import OPS
from samples import sparse as sparse_samples

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

#: Operators that are refused, with the reason. No more than one in twenty.
REFUSED = {
    **dict.fromkeys(
        ("bincount", "unique", "unique, options", "_unique", "_unique, options", "unique_consecutive", "nonzero",
         "nonzero_static", "argwhere", "masked_select"),
        "the size of the result depends on values",
    ),
    **dict.fromkeys(
        ("equal", "allclose", "allclose, options", "is_nonzero", "narrow, options", "new tensors, options"),
        "the result is a value, or an argument is one",
    ),
    "nn.functional.embedding, options": "rows are renormalised by value",
    **dict.fromkeys(
        ("segment_reduce", "histogram", "histogram, options", "histogramdd, options", "hash_tensor",
         "repeat_interleave, options", "nn.functional.ctc_loss", "torch.ctc_loss", "nn.functional.embedding_bag",
         "torch.embedding_bag", "torch.embedding_bag, all results", "nn.functional.embedding_bag, options"),
        "lengths, edges or offsets are read as values",
    ),
}  # fmt: skip
#: Samples of others that are refused, or whose gradient is.
REFUSED_SAMPLES = {
    "__getitem__.copy": "masks", "index_put": "masks", "nn.functional.one_hot": "classes are counted",
    "masked.median": "looks for NaN",
    "index_reduce": "the gradient reads indices", "index_reduce_, options": "the gradient reads indices",
    "masked_fill": "the gradient of a tensor's value chooses by the mask", "masked_scatter": "so does that of a source",
    **dict.fromkeys(("rnn_tanh", "gru", "lstm"), "the batch sizes of packed sequences are values"),
}  # fmt: skip
#: Samples whose tensors are not all made from the sample's arrays, or whose gradient lies otherwise in memory.
DIFFERENT = {
    "combinations": "none of no elements is a new tensor",
    "nn.functional.conv1d": "the gradient of a transposed weight is not transposed",
}  # fmt: skip
_SPARSE = {op.name for op in sparse_samples.OPS}
TESTED = [op for op in OPS if op.name not in _SPARSE and "sparse" not in op.name and any(s.specs for s in op.samples)]


class OnMeta:
    """The library with tensors that lie as arrays do, without their values."""

    @staticmethod
    def from_numpy(array):
        return meta_tensor(MetaArray.strided(array.shape, array.dtype, array.strides))

    def __getattr__(self, name):
        return getattr(retrograd, name)


def _looks(thing):
    if not is_tensor(thing):
        return None
    shape = tuple(thing.shape)
    strides = [step for step, n in zip(thing.stride(), shape, strict=True) if n > 1] if 0 not in shape else []
    return shape, str(thing.dtype), strides, thing.requires_grad


def _compare(op, sample):
    """Why the sample differs, None if it does not."""
    try:
        on_cpu = Run(retrograd, op, sample)
        expected = [_looks(out) for out in on_cpu.outputs]
    except Exception:
        return None  # a sample of what is refused anywhere
    try:
        with retrograd.device("meta"):  # what a sample makes of its own is made there too
            on_meta = Run(OnMeta(), op, sample)
    except (NotImplementedError, RuntimeError) as error:
        return f"refused: {error}"
    if [_looks(out) for out in on_meta.outputs if is_tensor(out)] != [look for look in expected if look is not None]:
        return f"results are {[_looks(out) for out in on_meta.outputs]}, and {expected} on the CPU"
    if any(out.device.type != "meta" for out in on_meta.outputs if is_tensor(out)):
        return "a result is not on meta"
    # A pass over meta runs on Tensors, so that strides are those of one that is recorded.
    try:
        wanted = [None if g is None else _looks(g)[:3] for g in on_cpu.gradients(create_graph=True)]
    except RuntimeError:
        return None  # it has no derivative
    try:
        found = [None if g is None else _looks(g)[:3] for g in on_meta.gradients()]
    except (NotImplementedError, RuntimeError, AttributeError) as error:
        return f"refused: gradient: {error}"
    # Whether a gradient that is one number everywhere is expanded or written out is nobody's promise.
    same = all(f is w or (f[:2] == w[:2] and (f[2] == w[2] or 0 in f[2])) for f, w in zip(found, wanted, strict=True))
    return None if same else f"gradients are {found}, and {wanted} on the CPU"


def _check(op, samples, monkeypatch, whole):
    monkeypatch.setattr(inference, "_KEPT", 1)
    reasons = {sample.name: _compare(op, sample) for sample in samples}
    failed = {name: why for name, why in reasons.items() if why is not None}
    if op.name in REFUSED:
        assert all(why is not None and why.startswith("refused") for why in reasons.values()), reasons
    elif op.name in REFUSED_SAMPLES:
        assert all(why.startswith("refused") for why in failed.values()), failed
        assert failed or not whole, "stale: take it out of the list"
        results = [why for why in failed.values() if not why.startswith("refused: gradient")]
        assert len(results) < len(reasons) or not whole, "all are refused"
    elif op.name in DIFFERENT:
        assert failed or not whole, "stale: take it out of the list"
    else:
        assert not failed


@pytest.mark.parametrize("op", TESTED, ids=lambda op: op.name)
def test_an_operator_gives_the_same_without_values(op, monkeypatch):
    _check(op, [s for s in op.samples if s.specs][:2], monkeypatch, False)


@pytest.mark.slow
@pytest.mark.parametrize("op", TESTED, ids=lambda op: op.name)
def test_all_samples_give_the_same_without_values(op, monkeypatch):
    _check(op, [s for s in op.samples if s.specs], monkeypatch, True)


def test_few_operators_are_refused():
    names = {op.name for op in TESTED}
    assert set(REFUSED) | set(REFUSED_SAMPLES) | set(DIFFERENT) <= names
    assert len(REFUSED) <= 0.05 * len(TESTED)
    assert len(REFUSED_SAMPLES) + len(DIFFERENT) <= 0.02 * len(TESTED)


# ------------------------------------------------------------------------------------------- beside tensors with values

#: Calls with values beside none that torch takes and we refuse, or the other way round: which of them, and why.
MIXED = {
    "floor_divide": "torch looks only when the dividend has the values", "__floordiv__": "the same",
    "__rmatmul__, options": "the second factor is the first argument, and has values",
    "lu_solve": "the first argument is the second of the operator, which has values",
    "nn.functional.embedding": "the table has values, and torch gives memory that nothing was written to",
    "rnn_tanh_cell": "a sum of both is refused elsewhere", "rnn_relu_cell": "the same", "lstm_cell": "the same",
    "linalg.multi_dot": "a product of the two is taken elsewhere", "tensordot, options": "the same",
    "multi_margin_loss, shapes": "the target alone is read",
}  # fmt: skip


class Mixed:
    """A library in which the first tensor of a sample is on meta and the others are not, or the other way round."""

    def __init__(self, library, first):
        self.library, self.first, self.made = library, first, 0

    def from_numpy(self, array):
        made = self.library.from_numpy(array)
        self.made += 1
        return made.to("meta") if (self.made == 1) == self.first else made

    def __getattr__(self, name):
        return getattr(self.library, name)


def _refuses(library, op, sample, first):
    """Is a call with values beside none refused?  None: it has but one tensor."""
    mixed = Mixed(library, first)
    try:
        built = sample.build(mixed, None)
        op.call(mixed, built.args, built.kwargs)
        refused = False
    except Exception:
        refused = True
    return refused if mixed.made > 1 else None


@pytest.mark.parity
def test_values_beside_none():
    """Refused where torch refuses; and where the first argument has values, since torch then gives unwritten memory."""
    torch = pytest.importorskip("torch")

    met, counted = set(), {True: 0, False: 0}
    for op in TESTED:
        sample = next(s for s in op.samples if s.specs)
        for first in (True, False) if op.name not in REFUSED else ():
            theirs = _refuses(torch, op, sample, first)
            if theirs is None:
                continue
            ours = _refuses(retrograd, op, sample, first)
            counted[theirs] += 1
            if ours is theirs or (ours and not first):
                continue
            assert op.name in MIXED, f"{op.name}, meta first: {first}: refused {ours}, by torch {theirs}"
            met.add(op.name)
    assert met == set(MIXED), f"stale: {set(MIXED) - met}"
    assert counted[True] > 450 and counted[False] > 100


def test_numbers_and_indices_with_values(torch):
    m, number = torch.ones(2, 3, device="meta"), torch.tensor(2.0)
    for made in (m * number, number - m, torch.where(m > 0, m, number), m[torch.tensor([0, 1])],
                 m.clone().copy_(torch.ones(2, 3))):  # fmt: skip
        assert made.is_meta and made.shape == (2, 3)
    with pytest.raises(RuntimeError, match="Tensor on device cpu is not on the expected device meta!"):
        m + torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        torch.ones(2, 3) + m
    with pytest.raises(RuntimeError, match="Tensor on device meta is not on the expected device cpu!"):
        torch.ones(2, 3) * number.to("meta")
    with pytest.raises(RuntimeError, match="expected device meta but got cpu"):
        (m.requires_grad_() * 2).backward(torch.ones(2, 3))


# -------------------------------------------------------------------------------------------------------- the tensor


def test_what_it_is(torch):
    x = torch.ones(2, 3, device="meta")
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))" and str(x) == repr(x)
    assert repr(x.long()) == "tensor(..., device='meta', size=(2, 3), dtype=torch.int64)"
    assert repr(x.clone().requires_grad_() * 2) == "tensor(..., device='meta', size=(2, 3), grad_fn=<MulBackward0>)"
    assert x.is_meta and not x.is_cpu and x.device == torch.device("meta") and x.type() == "torch.meta.FloatTensor"
    assert (x.shape, x.stride(), x.storage_offset(), x.data_ptr(), x.numel(), x.nbytes) == ((2, 3), (3, 1), 0, 0, 6, 24)
    assert x.t().stride() == (1, 3) and x[1:, 1:].storage_offset() == 4 and len(x) == 2
    assert not x.t().is_contiguous() and x.t().contiguous().is_contiguous()
    assert x.as_strided((2, 2), (1, 2), 1).stride() == (1, 2)
    assert repr(torch.nn.Parameter(x)).startswith("Parameter containing:\ntensor(..., device='meta'")
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (again.shape, again.device.type) == ((2, 3), "meta")


def test_files(torch, tmp_path):
    saved = {"x": torch.ones(2, 3, device="meta").t(), "p": torch.nn.Parameter(torch.ones(2, device="meta"))}
    torch.save(saved, tmp_path / "file")
    for library in (torch, retrograd):
        found = library.load(tmp_path / "file")
        assert found["x"].is_meta and found["x"].stride() == (1, 3) and isinstance(found["p"], library.nn.Parameter)


def test_factories(torch):
    made = [
        torch.zeros(2, 3, device="meta"), torch.ones((2, 3), device="meta"), torch.empty(2, 3, device="meta"),
        torch.full((2, 3), 1.0, device="meta"), torch.rand(2, 3, device="meta"), torch.randn(2, 3, device="meta"),
        torch.randint(0, 5, (2, 3), device="meta").float(), torch.eye(2, 3, device="meta"),
        torch.tensor([[1.0, 2, 3]] * 2, device="meta"), torch.ones(2, 3).to("meta"),
        torch.zeros_like(torch.ones(2, 3), device="meta"), torch.empty_strided((2, 3), (3, 1), device="meta"),
        torch.ones(1, device="meta").new_zeros(2, 3), torch.randn_like(torch.ones(2, 3, device="meta")),
        torch.as_tensor(np.ones((2, 3), np.float32), device="meta"),
    ]  # fmt: skip
    for x in made:
        assert (x.device.type, x.shape, x.dtype, x.stride()) == ("meta", (2, 3), torch.float32, (3, 1))
    assert torch.arange(5, device="meta").shape == (5,) and torch.linspace(0, 1, 4, device="meta").shape == (4,)
    assert torch.ones(2, 3, device="meta", requires_grad=True).requires_grad
    assert torch.empty_like(torch.ones(2, 3, device="meta"), device="cpu").device.type == "cpu"


def test_a_default_device(torch):
    with torch.device("meta"):
        assert torch.ones(2).is_meta and torch.tensor(3.0).is_meta and torch.arange(3).is_meta
        assert torch.get_default_device() == torch.device("meta")
        assert not torch.zeros_like(torch.ones(2, device="cpu")).is_meta
        with torch.device("cpu"):
            assert not torch.ones(2).is_meta
        assert not torch.from_numpy(np.ones(2)).is_meta
    assert not torch.ones(2).is_meta and torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("meta")
    try:
        assert torch.rand(2).is_meta
    finally:
        torch.set_default_device(None)


def test_values_are_refused(torch):
    x = torch.ones(2, 3, device="meta")
    refused = [
        (lambda: x.item(), RuntimeError, "6 elements cannot be converted to Scalar"),
        (lambda: x.sum().item(), RuntimeError, "cannot be called on meta tensors"),
        (lambda: bool(x.sum()), RuntimeError, "cannot be called on meta tensors"),
        (lambda: x.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda: x.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: x.to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: torch.ones(2, 3).copy_(x), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
        (lambda: x.nonzero(), NotImplementedError, "nonzero"),
        (lambda: x[x > 0], NotImplementedError, "nonzero"),
        (lambda: x.masked_select(x > 0), NotImplementedError, "aten::masked_select: attempted to run this operator"),
        (lambda: x.unique(), NotImplementedError, "aten::_unique2"),
        (lambda: torch.equal(x, x), NotImplementedError, "aten::equal"),
        (lambda: torch.nn.Linear(2, 3, device="meta").to("cpu"), NotImplementedError, "no data!"),
        (lambda: x + torch.ones(4, device="meta"), RuntimeError, ""),
        (lambda: x.view(4), RuntimeError, "shape '\\[4\\]' is invalid for input of size 6"),
        (lambda: x.t().view(6), RuntimeError, ""),
        (lambda: x @ x, RuntimeError, ""),
    ]
    for call, error, words in refused:
        with pytest.raises(error, match=words):
            call()


def test_writes_and_views(torch):
    x = torch.zeros(3, 4, device="meta", requires_grad=True)
    y = x * 1
    before = y._version
    y[0] = 5.0
    y[:, 1].mul_(2)
    y.add_(torch.ones(4, device="meta"))
    assert y._version == before + 3 and y.grad_fn.name() == "AddBackward0"
    y.sum().backward()
    assert x.grad.is_meta and x.grad.shape == (3, 4)
    assert y.copy_(torch.ones(3, 4)) is y
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="one of the variables needed for gradient computation has been modified"):
        z = (x * 1).exp()
        out = z * z
        z.add_(1)
        out.sum().backward()


def test_modules(torch):
    with torch.device("meta"):
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Dropout(0.5), torch.nn.Flatten(), torch.nn.Linear(8 * 16, 10),
        )  # fmt: skip
        x = torch.randn(5, 3, 8, 8)
    loss = torch.nn.functional.cross_entropy(model(x), torch.zeros(5, dtype=torch.long, device="meta"))
    loss.backward()
    for parameter in model.parameters():
        assert parameter.grad.is_meta and parameter.grad.shape == parameter.shape
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    real = torch.nn.Linear(2, 3)
    for shared in (torch.nn.Linear(2, 3, device="meta"), torch.nn.Linear(2, 3).to("meta")):
        assert isinstance(shared.weight, torch.nn.Parameter) and shared.weight.is_meta
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shared.load_state_dict(real.state_dict())  # nothing is copied
        assert shared.weight.is_meta
        shared.load_state_dict(real.state_dict(), assign=True)
        assert torch.equal(shared.weight, real.weight)
    empty = torch.nn.Linear(2, 3, device="meta").to_empty(device="cpu")
    assert empty.weight.device.type == "cpu" and empty.weight.shape == (3, 2)


def test_out_and_checks(torch):
    x, out = torch.ones(2, 3, device="meta"), torch.empty(0, device="meta")
    assert torch.add(x, x, out=out) is out and out.shape == (2, 3)
    with pytest.raises(NotImplementedError):
        torch.nn.Linear(2, 2, device="meta").cpu()
    torch.testing.assert_close(x, torch.zeros(2, 3, device="meta"))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(x, torch.zeros(3, 2, device="meta"))
    y = torch.ones(3, device="meta", requires_grad=True)
    torch.utils.checkpoint.checkpoint(torch.exp, y, use_reentrant=False).sum().backward()
    assert y.grad.is_meta
    assert torch.vmap(lambda a: (a * a).sum())(x).shape == (2,)
    assert torch.func.jacrev(torch.sin)(x).shape == (2, 3, 2, 3)


def test_errors_name_the_sizes_of_the_call():
    torch = retrograd
    a, b = torch.ones(1000, 2000, device="meta"), torch.ones(1000, 3000, device="meta")
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(1000x2000 and 1000x3000\)"):
        a @ b
    with pytest.raises(RuntimeError, match=r"tensor a \(2000\) must match the size of tensor b \(3000\)"):
        a + b


def test_gradients_of_gradients():
    torch = retrograd
    x = torch.ones(3, device="meta", requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.is_meta and h.is_meta and h.shape == (3,) and g.requires_grad


def test_nothing_is_left_of_a_failed_write():
    torch = retrograd
    x = torch.zeros(3, device="meta")
    version = x._version
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.ones(2, 3, device="meta"))
    assert x._version == version


def test_random_numbers_are_not_drawn():
    torch = retrograd
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    torch.rand(5, device="meta").normal_().uniform_()
    torch.nn.functional.dropout(torch.ones(100, device="meta"))
    torch.nn.Linear(3, 4, device="meta")
    assert torch.equal(torch.rand(2), expected)


def test_what_is_saved_for_backward_is_known_before():
    torch = retrograd
    saved = []
    for device in ("cpu", "meta"):
        torch.manual_seed(0)
        model = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, device=device)
        out = model(torch.ones(3, 5, 16, device=device))
        saved.append(torch.autograd.graph.saved_memory(out.sum()))
    assert saved[0].total == saved[1].total > 0
    assert saved[0].by_operation == saved[1].by_operation


def test_a_billion_parameters():
    torch = retrograd
    started, most = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with torch.device("meta"):
        layer = torch.nn.TransformerEncoderLayer(2048, 16, 8192, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 20, enable_nested_tensor=False)
        x = torch.randn(4, 512, 2048)
    assert sum(p.numel() for p in model.parameters()) > 1e9
    loss = model(x).sum()
    assert torch.autograd.graph.saved_memory(loss).total > 8e9
    loss.backward()
    assert all(p.grad.shape == p.shape for p in model.parameters())
    assert time.process_time() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < 200_000  # of what is there in kilobytes


def test_a_file_is_loaded_without_values(torch, tmp_path):
    model = torch.nn.Linear(3, 2)
    torch.save({"model": model.state_dict(), "p": model.weight, "view": torch.ones(4, 3).t()[1:]}, tmp_path / "file")
    for where in ("meta", torch.device("meta")):
        found = torch.load(tmp_path / "file", map_location=where)
        assert {tensor.device.type for tensor in found["model"].values()} == {"meta"}
        assert type(found["p"]) is torch.nn.Parameter or isinstance(found["p"], torch.nn.Parameter)
        assert found["p"].is_meta and found["p"].requires_grad and found["p"].shape == (2, 3)
        assert found["view"].shape == (2, 4) and found["view"].stride() == (1, 3)


def test_what_has_values_is_not_written_to_by_what_has_none():
    """torch says nothing and leaves the tensor as it was, as if something had been added."""
    import retrograd

    x = retrograd.ones(2)
    with pytest.raises(RuntimeError, match="not on the expected device cpu"):
        x.add_(retrograd.ones(2, device="meta"))
    assert x.tolist() == [1.0, 1.0] and x._version == 0

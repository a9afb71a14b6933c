"""Devices as torch has them: where tensors are made, moved, and may not meet."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import retrograd as torch
from retrograd.arrays import places

FIRST, SECOND = torch.device("cuda", 0), torch.device("cuda", 1)

FACTORIES = {
    "zeros": lambda d: torch.zeros(2, device=d), "ones": lambda d: torch.ones(2, device=d),
    "empty": lambda d: torch.empty(2, device=d), "full": lambda d: torch.full((2,), 3.0, device=d),
    "tensor": lambda d: torch.tensor([1.0, 2.0], device=d), "arange": lambda d: torch.arange(3, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 3, device=d), "logspace": lambda d: torch.logspace(0, 1, 3, device=d),
    "eye": lambda d: torch.eye(2, device=d), "rand": lambda d: torch.rand(2, device=d),
    "randn": lambda d: torch.randn(2, device=d), "randint": lambda d: torch.randint(3, (2,), device=d),
    "randperm": lambda d: torch.randperm(3, device=d), "as_tensor": lambda d: torch.as_tensor([1.0], device=d),
    "asarray": lambda d: torch.asarray([1.0], device=d), "scalar_tensor": lambda d: torch.scalar_tensor(1.0, device=d),
    "empty_strided": lambda d: torch.empty_strided((2, 2), (1, 2), device=d),
    "zeros_like": lambda d: torch.zeros_like(torch.ones(2), device=d),
    "ones_like": lambda d: torch.ones_like(torch.ones(2), device=d),
    "full_like": lambda d: torch.full_like(torch.ones(2), 2.0, device=d),
    "empty_like": lambda d: torch.empty_like(torch.ones(2), device=d),
    "rand_like": lambda d: torch.rand_like(torch.ones(2), device=d),
    "randn_like": lambda d: torch.randn_like(torch.ones(2), device=d),
    "normal": lambda d: torch.normal(0.0, 1.0, (2,), device=d),
    "tril_indices": lambda d: torch.tril_indices(2, 2, device=d),
    "hann_window": lambda d: torch.hann_window(4, device=d),
    "new_zeros": lambda d: torch.ones(1).new_zeros(2, device=d),
    "new_tensor": lambda d: torch.ones(1).new_tensor([1.0], device=d),
    "new_full": lambda d: torch.ones(1).new_full((2,), 1.0, device=d),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cuda", "cuda:1", SECOND, 1])
def test_factories_make_tensors_where_they_are_told(gpu, device):
    expected = FIRST if device == "cuda" else SECOND
    assert {name for name, make in FACTORIES.items() if make(device).device != expected} == set()


def test_factories_follow_a_device_block(gpu):
    for name, make in FACTORIES.items():
        if "_like" in name or name.startswith("new_"):
            continue  # these follow their tensor
        with torch.device("cuda:1"):
            assert make(None).device == SECOND, name
            assert make("cpu").device == torch.device("cpu"), name
        assert make(None).device == torch.device("cpu"), name


def test_what_is_made_like_a_tensor_is_on_its_device(gpu):
    x = torch.ones(2, device="cuda:1")
    for make in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like, torch.randn_like):
        assert make(x).device == SECOND
        assert make(x, device="cpu").device == torch.device("cpu")
    assert x.new_zeros(3).device == SECOND and torch.full_like(x, 2.0).tolist() == [2.0, 2.0]
    for made in (x.new_ones(3), x.new_empty(3), x.new_full((3,), 1.0), x.new_tensor([1.0]),
                 x.new_zeros(3, requires_grad=True), x.new_empty_strided((2,), (1,))):  # fmt: skip
        assert made.device == SECOND
    with torch.device("cuda:0"):
        assert x.cpu().new_ones(1).is_cpu  # it follows the tensor
    assert x.clone().device == x.detach().device == (x * 2).device == x[0].device == SECOND


def test_set_default_device(gpu):
    torch.set_default_device("cuda:1")
    try:
        assert torch.ones(2).device == SECOND and torch.get_default_device() == SECOND
    finally:
        torch.set_default_device(None)


def test_moves(gpu):
    x = torch.arange(6.0).reshape(2, 3)
    y = x.to("cuda")
    assert y.device == FIRST and y.is_cuda and not y.is_cpu and y.get_device() == 0
    assert y.to("cuda:0") is y and y.cuda() is y and x.cpu() is x
    assert y.cpu().tolist() == x.tolist() and y.cpu().device.type == "cpu"
    assert y.cuda(1).device == SECOND and y.cuda(1).tolist() == x.tolist()
    assert y.to(torch.float64).dtype == torch.float64 and y.to(torch.float64).device == FIRST
    assert y.to("cpu", torch.float16).dtype == torch.float16
    assert y.to(x).device.type == "cpu" and x.to(y).device == FIRST
    assert y.to("cuda:0", copy=True) is not y
    t = x.t().to("cuda")
    assert t.stride() == (1, 3) and t.tolist() == x.t().tolist() and t.cpu().stride() == (1, 3)
    assert x[:, ::2].to("cuda").tolist() == x[:, ::2].tolist()
    with torch.cuda.device(1):
        assert x.cuda().device == SECOND and torch.ones(1, device="cuda").device == SECOND
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    x.copy_(y * 2)
    assert x.device.type == "cpu" and x.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]


def test_gradients_go_back_to_their_device(gpu):
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], device="cuda:1", requires_grad=True)
    y = (a.cuda() * b.to("cuda:0")).cpu().sum()
    y.backward()
    assert a.grad.device.type == "cpu" and a.grad.tolist() == [3.0, 4.0]
    assert b.grad.device == SECOND and b.grad.tolist() == [1.0, 2.0]
    (g,) = torch.autograd.grad((a.cuda() ** 3).sum(), a, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), a)
    assert h.tolist() == [6.0, 12.0] and h.device.type == "cpu"


def test_tangents_travel(gpu):
    import retrograd.autograd.forward_ad as fwAD

    with fwAD.dual_level():
        x = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        tangent = fwAD.unpack_dual((x.cuda() * 3).cpu()).tangent
    assert tangent.tolist() == [3.0, 30.0]


MIXED = [
    lambda x, y: x + y, lambda x, y: y * x, lambda x, y: x @ y, lambda x, y: torch.cat([x, y]),
    lambda x, y: torch.where(x > 0, x, y), lambda x, y: x.add_(y), lambda x, y: torch.nn.functional.linear(x, y),
    lambda x, y: torch.stack([y, x]), lambda x, y: torch.maximum(x, y), lambda x, y: torch.addmm(x, x, y),
]  # fmt: skip


@pytest.mark.parametrize("other", ["cpu", "cuda:1"])
def test_devices_may_not_be_mixed(gpu, other):
    x, y = torch.ones(2, 2, device="cuda:0"), torch.ones(2, 2, device=other)
    for call in MIXED:
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two"):
            call(x, y)
    assert x.tolist() == y.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_sparse_tensors_on_devices(gpu):
    here = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
    there = here.to("cuda:1")
    assert there.device == there.values().device == there.indices().device == SECOND and there.is_coalesced()
    assert "device='cuda:1'" in repr(there) and there.cpu().device.type == "cpu"
    assert there.to_sparse_csr().crow_indices().device == SECOND and there.to_dense().tolist() == [[0, 2], [3, 0]]
    assert torch.sparse_coo_tensor([[0], [1]], [5.0], (2, 2), device="cuda").device == FIRST
    assert torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1, device="cuda:1")).device == SECOND
    assert torch.zeros_like(there).device == SECOND and (there * 2).device == SECOND
    dense = torch.ones(2, 2, device="cuda")
    for call in (lambda: there @ torch.ones(2, 2), lambda: there + here, lambda: dense + there,
                 lambda: torch.cat([here, there])):  # fmt: skip
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call()
    other = here.clone().zero_()
    other.copy_(there)
    assert other.device.type == "cpu" and other.to_dense().tolist() == [[0, 2], [3, 0]]
    weight = torch.ones(4, 3, device="cuda:1", requires_grad=True)
    torch.nn.functional.embedding(torch.tensor([1, 3, 1], device="cuda:1"), weight, sparse=True).sum().backward()
    assert weight.grad.layout is torch.sparse_coo and weight.grad.device == SECOND
    torch.optim.SGD([weight], lr=0.5).step()
    assert weight.tolist() == [[1.0] * 3, [0.0] * 3, [1.0] * 3, [0.5] * 3]
    leaf = torch.ones(2, requires_grad=True)
    torch.sparse_coo_tensor([[0, 1]], leaf, (2,)).to("cuda").to_dense().mul(3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]
    file = io.BytesIO()
    torch.save(there, file)
    file.seek(0)
    assert torch.load(file).device == SECOND


def test_a_number_of_the_cpu_may_be_beside_a_tensor_of_a_device(gpu):
    x = torch.ones(2, device="cuda", requires_grad=True)
    s = torch.tensor(3.0, requires_grad=True)
    y = x * s + s
    assert y.device == FIRST and y.tolist() == [6.0, 6.0]
    y.sum().backward()
    assert s.grad.device.type == "cpu" and s.grad.item() == 4.0
    assert (s * x).device == FIRST and (torch.tensor(2) * x).dtype == torch.float32
    assert x.detach()[torch.tensor([0])].device == FIRST  # indices of the CPU
    z = x.detach().clone()
    z[torch.tensor([1])] = 5.0
    assert z.tolist() == [1.0, 5.0]


def test_nothing_becomes_numpy_unasked(gpu):
    x = torch.ones(2, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        np.asarray(x)
    assert x.cpu().numpy().tolist() == [1.0, 1.0] == x.numpy(force=True).tolist()


def test_a_device_that_is_not_there(gpu):
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1, device="cuda:7")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(7)


def test_pinned_memory(gpu):
    x = torch.arange(4.0).pin_memory()
    assert x.untyped_storage().is_pinned() and x.storage().is_pinned() and not torch.ones(2).storage().is_pinned()
    assert x.is_pinned() and not torch.ones(2).is_pinned() and x.pin_memory() is x
    assert torch.zeros(2, pin_memory=True).is_pinned() and torch.tensor([1.0], pin_memory=True).is_pinned()
    assert x.to("cuda", non_blocking=True).tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.cuda().pin_memory()


def test_copies_that_do_not_wait(late):
    x = torch.arange(4.0).pin_memory()
    y = x.to("cuda", non_blocking=True) * 2
    host = y.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    assert host.tolist() == [0.0, 2.0, 4.0, 6.0] and host.is_pinned()


def test_generators_of_devices(gpu):
    torch.manual_seed(7)
    first, second = torch.rand(3, device="cuda:0"), torch.rand(3, device="cuda:1")
    assert first.tolist() == second.tolist()  # each device has its own, and all have the seed
    state = torch.cuda.get_rng_state(0)
    one = torch.rand(3, device="cuda:0")
    torch.cuda.set_rng_state(state, 0)
    assert torch.rand(3, device="cuda:0").tolist() == one.tolist()
    torch.cuda.manual_seed(3)
    a = torch.rand(3, device="cuda")
    torch.cuda.manual_seed_all(3)
    assert torch.rand(3, device="cuda").tolist() == a.tolist() == torch.rand(3, device="cuda:1").tolist()
    assert torch.cuda.initial_seed() == 3 and len(torch.cuda.get_rng_state_all()) == 2
    g = torch.Generator("cuda").manual_seed(5)
    drawn = torch.rand(3, device="cuda", generator=g)
    assert torch.rand(3, device="cuda", generator=g.manual_seed(5)).tolist() == drawn.tolist()
    cpu = torch.get_rng_state()
    torch.nn.functional.dropout(torch.ones(8, device="cuda"), 0.5)
    torch.ones(8, device="cuda").uniform_().normal_()
    assert torch.get_rng_state().tolist() == cpu.tolist()  # the CPU's was not drawn from


def test_distributions_draw_where_their_parameters_are(gpu):
    one = torch.ones(3, device="cuda:1")
    D = torch.distributions
    made = [
        D.Normal(0.0, one), D.Gamma(one, 1.0), D.Beta(one, 2.0), D.Dirichlet(one), D.Categorical(one),
        D.Laplace(one, 1.0), D.Bernoulli(one * 0.5), D.Exponential(one), D.Uniform(one * 0, one), D.Cauchy(one, 1.0),
        D.VonMises(one, 1.0),
        D.MultivariateNormal(one, torch.eye(3, device="cuda:1")), D.OneHotCategorical(one), D.Geometric(one * 0.5),
    ]  # fmt: skip
    for one in made:
        assert one.sample((2,)).device == SECOND and one.log_prob(one.sample()).device == SECOND, one


def test_questions_about_devices(gpu):
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2 and torch.cuda.is_initialized()
    assert torch.cuda.get_device_name() and torch.cuda.get_device_capability()[0] >= 1
    properties = torch.cuda.get_device_properties(0)
    assert properties.total_memory > 0 and properties.multi_processor_count > 0
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total and torch.cuda.is_bf16_supported()
    torch.cuda.set_device(1)
    try:
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device == SECOND
    finally:
        torch.cuda.set_device(0)
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    torch.cuda.synchronize()
    assert torch.accelerator.is_available() and str(torch.accelerator.current_accelerator()) == "cuda"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(gpu, dtype):
    x = torch.linspace(-2, 2, 7).to(dtype).cuda().requires_grad_()
    y = (x * x + 1).tanh().sum()
    y.backward()
    c = torch.linspace(-2, 2, 7).to(dtype).requires_grad_()
    (c * c + 1).tanh().sum().backward()
    assert x.grad.dtype == dtype and x.grad.device == FIRST
    assert torch.allclose(x.grad.cpu().float(), c.grad.float(), rtol=2e-2, atol=2e-2)
    w = torch.ones(7, 7, dtype=dtype, device="cuda")
    assert (x.detach() @ w).dtype == dtype


def test_autocast_and_grad_scaler(gpu):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    x = torch.ones(2, 4, device="cuda")
    before = model.weight.detach().clone()
    with torch.autocast("cuda", dtype=torch.float16):
        y = model(x)
        assert y.dtype == torch.float16 and (x @ x.t()).dtype == torch.float16
        loss = y.float().sum()
    scaler.scale(loss).backward()
    assert model.weight.grad.device == FIRST and torch.allclose(
        model.weight.grad, torch.full((3, 4), 16.0, device="cuda")
    )
    scaler.step(optimizer)
    scaler.update()
    assert torch.allclose(model.weight, before - 0.2, atol=1e-5) and model.weight.device == FIRST


def test_modules_and_optimizers_on_a_device(gpu):
    torch.manual_seed(0)
    here = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    torch.manual_seed(0)
    there = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).to("cuda")
    assert all(p.device == FIRST and p.is_leaf for p in there.parameters())
    x = torch.arange(6.0).reshape(2, 3) / 6
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        ours, theirs = kind(here.parameters(), lr=0.01), kind(there.parameters(), lr=0.01)
        for _ in range(3):
            for model, optimizer, data in ((here, ours, x), (there, theirs, x.cuda())):
                optimizer.zero_grad()
                model(data).pow(2).sum().backward()
                optimizer.step()
    for a, b in zip(here.parameters(), there.parameters(), strict=True):
        assert torch.allclose(a, b.cpu(), atol=1e-5)
    for parameter in there.cpu().parameters():
        assert parameter.device.type == "cpu"


def test_save_and_load(gpu):
    x = {"a": torch.arange(3.0, device="cuda:1"), "b": torch.ones(2)}
    file = io.BytesIO()
    torch.save(x, file)
    for location, device in (
        (None, SECOND), ("cpu", torch.device("cpu")), ("cuda:0", FIRST), ({"cuda:1": "cuda:0"}, FIRST),
        (torch.device("cuda", 0), FIRST), (lambda storage, place: storage.cuda(0) if "cuda" in place else None, FIRST),
    ):  # fmt: skip
        file.seek(0)
        found = torch.load(file, map_location=location)
        assert found["a"].device == device and found["a"].tolist() == [0.0, 1.0, 2.0]
    assert pickle.loads(pickle.dumps(x["a"])).device == SECOND


def test_dlpack(gpu):
    x = torch.arange(3.0, device="cuda")
    assert x.__dlpack_device__() == (2, 0)
    assert torch.from_dlpack(x.__dlpack__(dl_device=(1, 0))).tolist() == x.tolist()
    with pytest.raises(BufferError, match="there can only be a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    if gpu.real:
        cupy = places.places[0].module
        there = cupy.from_dlpack(x)
        there += 1
        assert x.tolist() == [1.0, 2.0, 3.0]  # the same memory
        back = torch.from_dlpack(there)
        back.mul_(2)
        assert back.device == FIRST and x.tolist() == [2.0, 4.0, 6.0]
        theirs = pytest.importorskip("torch")
        y = theirs.from_dlpack(x)
        y += 1
        theirs.cuda.synchronize()
        assert x.tolist() == [3.0, 5.0, 7.0]
        z = torch.from_dlpack(theirs.ones(2, device="cuda"))
        assert z.device == FIRST and z.tolist() == [1.0, 1.0]


def test_storages_and_views(gpu):
    x = torch.zeros(2, 3, device="cuda")
    v = x[1]
    v += 1
    assert x.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    assert v.storage_offset() == 3 and v.data_ptr() == x.data_ptr() + 12 and x.t().stride() == (1, 3)
    assert x.as_strided((2,), (3,), 1).tolist() == [0.0, 1.0]
    assert x.view(3, 2)[1].tolist() == [0.0, 1.0] and repr(v).startswith("tensor([1., 1., 1.], device='cuda:0'")
    y = torch.ones(3, device="cuda", requires_grad=True)
    z = y * 1
    z[0] = 5.0
    z[1:].mul_(2)
    z.sum().backward()
    assert y.grad.tolist() == [0.0, 2.0, 2.0]


def test_checkpoint_and_hooks(gpu):
    from retrograd.utils.checkpoint import checkpoint

    x = torch.ones(3, device="cuda", requires_grad=True)
    checkpoint(lambda t: (t * 2).sin(), x, use_reentrant=False).sum().backward()
    expected = (2 * torch.cos(torch.full((3,), 2.0))).tolist()
    assert torch.allclose(x.grad.cpu(), torch.tensor(expected))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_draw_the_same_numbers_on_a_device(gpu, reentrant):
    from retrograd.utils.checkpoint import checkpoint, get_device_states, set_device_states

    x = torch.ones(200, device="cuda", requires_grad=True)
    y = checkpoint(torch.nn.functional.dropout, x, use_reentrant=reentrant)
    torch.rand(3, device="cuda")  # between the passes others draw
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()  # the mask of the first time
    numbers, states = get_device_states(3, [x], {"y": y.cpu()})
    assert numbers == [0]
    drawn = torch.rand(3, device="cuda").tolist()
    set_device_states(numbers, states)
    assert torch.rand(3, device="cuda").tolist() == drawn


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems_of_many_rows(gpu, upper, left):
    """More rows than are solved one by one, in a batch, against the CPU's solver."""
    torch.manual_seed(0)
    a = torch.randn(2, 40, 40, dtype=torch.float64) / 10 + 3 * torch.eye(40, dtype=torch.float64)
    b = torch.randn(2, 40, 5, dtype=torch.float64)
    b = b if left else b.mT.contiguous()
    here = torch.linalg.solve_triangular(a, b, upper=upper, left=left)
    there = torch.linalg.solve_triangular(a.cuda(), b.cuda(), upper=upper, left=left)
    assert there.device == FIRST and torch.allclose(here, there.cpu(), rtol=1e-10, atol=1e-10)


def test_generators_of_devices_are_forked_and_drawn_from_under_vmap(gpu):
    x = torch.ones(3, 64, device="cuda")
    torch.cuda.manual_seed(5)
    with torch.random.fork_rng():
        drawn = torch.rand(4, device="cuda")
    with torch.random.fork_rng(devices=[0]):
        assert torch.rand(4, device="cuda").tolist() == drawn.tolist()
    with torch.random.fork_rng(devices=[]):
        assert torch.rand(4, device="cuda").tolist() == drawn.tolist()
    assert torch.rand(4, device="cuda").tolist() != drawn.tolist()
    each = torch.vmap(torch.nn.functional.dropout, randomness="different")(x)
    assert each.device == FIRST and {0.0, 2.0} == set(each.flatten().tolist())
    one = torch.vmap(torch.nn.functional.dropout, randomness="same")(x)
    assert (one == one[0]).all()


def test_the_accelerator_is_cuda(gpu):
    accelerator = torch.accelerator
    assert accelerator.is_available() and accelerator.current_accelerator() == torch.device("cuda")
    assert accelerator.device_count() == 2 and accelerator.current_device_index() == 0
    with accelerator.device_index(1):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device == SECOND
    assert torch.cuda.current_device() == 0
    accelerator.reset_peak_memory_stats()
    before = accelerator.memory_allocated()
    x = torch.ones(1000, device="cuda")
    assert accelerator.memory_allocated() - before >= 4000 and accelerator.max_memory_allocated() >= before + 4000
    assert accelerator.memory_reserved() >= 4000 and accelerator.memory_stats() == torch.cuda.memory_stats()
    side = torch.cuda.Stream()
    first = accelerator.current_stream()
    accelerator.set_stream(side)
    assert torch.cuda.current_stream() == side == accelerator.current_stream()
    accelerator.set_stream(first)
    accelerator.synchronize()
    del x
    accelerator.empty_cache()

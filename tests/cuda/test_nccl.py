"""The backend "nccl" with one rank: on CuPy's NCCL where there is a GPU, else on an imitation of its binding."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import retrograd as torch
import retrograd.distributed as dist
from gpu import imitated_nccl, simulated
from retrograd.arrays import places
from retrograd.distributed import nccl
from retrograd.distributed.nn import functional as differentiable
from retrograd.nn.parallel import DistributedDataParallel


@pytest.fixture
def group(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A group of one process."""
    if not gpu.real:
        cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
        cupy.cuda, cuda.nccl = cuda, imitated_nccl.binding()  # type: ignore[attr-defined]
        for name, module in (("cupy", cupy), ("cupy.cuda", cuda), ("cupy.cuda.nccl", cuda.nccl)):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(nccl, "find_spec", lambda name: True)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    dist.init_process_group("nccl", store=store, rank=0, world_size=1)
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()
        store.close()


def cuda(*values: float, dtype: Any = torch.float32) -> Any:
    return torch.tensor(values, dtype=dtype, device="cuda")


DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64,
    torch.complex64, torch.bool,
)  # fmt: skip


def test_every_operation_on_tensors_of_a_device(group: Any) -> None:
    assert dist.get_backend() == "nccl" and (dist.get_rank(), dist.get_world_size()) == (0, 1)
    for dtype in DTYPES:
        x = torch.tensor([1, 0, 1], device="cuda").to(dtype)
        dist.all_reduce(x)
        assert x.tolist() == torch.tensor([1, 0, 1]).to(dtype).tolist(), dtype
    x = cuda(1, 2, 3) * 2
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MIN, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
        y = x + 0
        dist.all_reduce(y, op)
        dist.reduce(y, 0, op)
        assert y.tolist() == [2, 4, 6]
    dist.broadcast(x, 0)
    dist.barrier()
    for run in (
        lambda out: dist.all_gather([out], x), lambda out: dist.all_gather_into_tensor(out, x),
        lambda out: dist.reduce_scatter(out, [x]), lambda out: dist.reduce_scatter_tensor(out, x),
        lambda out: dist.all_to_all([out], [x]), lambda out: dist.all_to_all_single(out, x),
        lambda out: dist.gather(x, [out], 0), lambda out: dist.scatter(out, [x], 0),
    ):  # fmt: skip
        out = cuda(0, 0, 0)
        run(out)
        assert out.tolist() == [2, 4, 6]
    strided = torch.zeros(3, 2, device="cuda")
    dist.all_gather([strided[:, 0]], x)  # into memory that does not lie side by side
    assert strided.tolist() == [[2, 0], [4, 0], [6, 0]]


def test_messages(group: Any) -> None:
    """To oneself, which ``dist.send`` refuses: with one rank there is nobody else."""
    x, out, backend = cuda(1, 2), cuda(0, 0), group.backend
    with backend.together():
        works = [backend.send(x._numbers_, 0, 0), backend.recv(out._numbers_, 0, 0)]
    for work in works:
        work._group = group
        assert work.wait()
    assert out.tolist() == [1, 2]
    with pytest.raises(ValueError, match="no tags"):
        backend.send(x._numbers_, 0, 3)


def test_objects(group: Any) -> None:
    found: list[Any] = [None]
    dist.all_gather_object(found, {"a": 1})
    assert found == [{"a": 1}]
    things = ["x", 2]
    dist.broadcast_object_list(things, 0)
    assert things == ["x", 2]
    dist.gather_object("one", found, 0)
    assert found == ["one"]
    dist.scatter_object_list(found, ["mine"], 0)
    assert found == ["mine"]


@pytest.mark.parametrize("rule", [True, False])
def test_an_operation_waits_for_what_computes_its_tensor(group: Any, gpu: Any, monkeypatch: Any, rule: bool) -> None:
    """With the wait taken out, the number is wrong."""
    if gpu.real and not rule:
        pytest.skip("what is not waited for may be there in time")
    simulated.machine.delayed = not gpu.real  # streams do nothing before somebody waits for them
    simulated.poison()
    if not rule:
        monkeypatch.setattr(places.Place, "join", lambda self, before, after: None)
    gpu.delay()
    x = torch.full((64,), 2.0, device="cuda") * 3
    out = torch.zeros(64, device="cuda")
    torch.cuda.current_stream().synchronize() if not rule else None
    y = x * 1
    work = dist.all_gather_into_tensor(out, y, async_op=True)
    if not gpu.real:
        group.backend._class.stream.synchronize()
        simulated.machine.delayed = False
    assert work.wait() and work.is_completed()
    assert (out.tolist() == [6.0] * 64) is rule


def test_what_it_refuses(group: Any) -> None:
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        dist.all_reduce(torch.ones(2))
    with pytest.raises(ValueError, match="BXOR"):
        dist.all_reduce(cuda(1, dtype=torch.int32), dist.ReduceOp.BXOR)
    with pytest.raises(RuntimeError, match="not supported for NCCL"):
        dist.all_reduce(cuda(1, dtype=torch.int16))


def test_groups(group: Any) -> None:
    other = dist.new_group([0])
    x = cuda(1, 2)
    dist.all_reduce(x, group=other)
    assert x.tolist() == [1, 2] and other.device == x.device


def test_gradients_through_operations(group: Any) -> None:
    x = cuda(1, 2).requires_grad_()
    y = differentiable.all_reduce(x * 2) + differentiable.broadcast(x * 3, 0)
    (y * y).sum().backward()
    assert y.tolist() == [5, 10] and x.grad.tolist() == [50, 100]


@pytest.mark.parametrize("as_views", [False, True])
@pytest.mark.parametrize("unused", [False, True])
def test_data_parallel_training_on_a_device(group: Any, as_views: bool, unused: bool) -> None:
    def model() -> Any:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).cuda()

    plain = model()
    parallel = DistributedDataParallel(model(), gradient_as_bucket_view=as_views, find_unused_parameters=unused)
    x = torch.arange(12.0, device="cuda").reshape(3, 4) / 12
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (plain, parallel)]
    for _ in range(3):
        for one, optimizer in zip((plain, parallel), optimizers, strict=True):
            optimizer.zero_grad()
            one(x).square().sum().backward()
            optimizer.step()
    for a, b in zip(plain.parameters(), parallel.parameters(), strict=True):
        assert b.device == torch.device("cuda", 0) and torch.allclose(a, b)


def test_two_ranks_on_one_gpu_are_refused_by_nccl(gpu: Any) -> None:
    """So with one GPU there is no more to be run than one rank."""
    if not gpu.real:
        pytest.skip("NCCL itself is asked")
    from cupy.cuda import nccl as binding

    with pytest.raises(binding.NcclError, match="NCCL_ERROR_INVALID_USAGE"):
        binding.NcclCommunicator.initAll([0, 0])


def test_without_gpus() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no GPUs found"):
            dist.init_process_group("nccl")
        assert not dist.is_nccl_available()

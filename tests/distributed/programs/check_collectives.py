"""Every operation, on all processes, against values worked out by hand."""

import sys
import threading
from datetime import timedelta

import retrograd as torch
import retrograd.distributed as dist

dist.init_process_group(timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
everybody = range(size)
total = sum(everybody)
assert (
    dist.is_initialized() and dist.get_backend() in ("mpi", "gloo") and dist.get_process_group_ranks() == [*everybody]
)


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{words}: not raised")


def test_all_reduce():
    for dtype in (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.uint8,
        torch.complex64,
    ):
        x = torch.arange(5).to(dtype) + rank
        dist.all_reduce(x)
        assert x.dtype == dtype and x.tolist() == [size * i + total for i in range(5)], (dtype, x)
    for op, expected in (
        (dist.ReduceOp.MIN, 1), (dist.ReduceOp.MAX, size), (dist.ReduceOp.AVG, (size + 1) / 2),
        (dist.ReduceOp.PRODUCT, {1: 1, 2: 2, 3: 6, 4: 24}[size]),
    ):  # fmt: skip
        x = torch.full((2, 2), float(rank + 1))
        dist.all_reduce(x, op)
        assert x.tolist() == [[expected, expected]] * 2, (op, x)
    x = torch.tensor([1 << rank, 3])
    dist.all_reduce(x, dist.ReduceOp.BOR)
    assert x.tolist() == [2**size - 1, 3]
    dist.all_reduce(x, dist.ReduceOp.BXOR)
    assert x.tolist() == ([0, 0] if size % 2 == 0 else [2**size - 1, 3])
    x = torch.tensor([rank == 0, True])
    dist.all_reduce(x)
    assert x.tolist() == [True, True]
    dist.all_reduce(x, dist.ReduceOp.PRODUCT)
    x = torch.tensor([rank == 0])
    dist.all_reduce(x, dist.ReduceOp.MIN)
    assert x.tolist() == [size == 1]
    dist.all_reduce(torch.tensor(1.0))  # no dimensions
    dist.all_reduce(torch.empty(0))  # no elements


def test_memory():
    """Contiguous memory is written to where it is; other memory, too, by way of a copy. Both count as written to."""
    base = torch.zeros(4, 3)
    view = base.t()
    view += rank
    version, place = base._version, base.data_ptr()
    dist.all_reduce(view)
    assert (base == total).all() and base.data_ptr() == place and base._version > version
    part = torch.ones(6)[2:4]
    dist.all_reduce(part)
    assert part.tolist() == [size, size]


def test_bytes_on_the_wire():
    """A sum over n processes sends 2 (n - 1) / n of the array from each, and little else."""
    backend = dist.group.WORLD.backend
    if backend.name != "gloo":
        return  # MPI does not say
    sent, send = [], backend._mesh.send

    def counted(context, to, tag, array):
        sent.append(array.nbytes)
        send(context, to, tag, array)

    backend._mesh.send = counted
    count = 1200 * size
    dist.all_reduce(torch.ones(count))
    backend._mesh.send = send
    assert sum(sent) == 2 * (size - 1) * 4 * count // size and len(sent) == 2 * (size - 1), sent


def test_broadcast_and_reduce():
    x = torch.tensor([float(rank), 1.0])
    dist.broadcast(x, size - 1)
    assert x.tolist() == [size - 1, 1]
    x = torch.tensor([float(rank)])
    dist.reduce(x, 0)
    assert rank != 0 or x.item() == total
    x = torch.tensor([float(rank)])
    dist.reduce(x, size - 1, dist.ReduceOp.AVG)
    assert rank != size - 1 or x.item() == total / size
    assert rank == size - 1 or x.item() == rank


def test_gathering():
    outs = [torch.zeros(2) for _ in everybody]
    dist.all_gather(outs, torch.full((2,), float(rank)))
    assert [t.tolist() for t in outs] == [[r, r] for r in everybody]
    out = torch.zeros(size, 2)
    dist.all_gather_into_tensor(out, torch.full((2,), float(rank)))
    assert out.tolist() == [[r, r] for r in everybody]
    outs = [torch.zeros(1) for _ in everybody] if rank == size - 1 else None
    dist.gather(torch.tensor([float(rank)]), outs, dst=size - 1)
    assert outs is None or [t.item() for t in outs] == [*everybody]
    x = torch.zeros(1)
    dist.scatter(x, [torch.tensor([10.0 * r]) for r in everybody] if rank == 0 else None, src=0)
    assert x.item() == 10 * rank


def test_scattered_sums():
    x = torch.zeros(2)
    dist.reduce_scatter(x, [torch.full((2,), float(r + rank)) for r in everybody])
    assert x.tolist() == [rank * size + total] * 2
    dist.reduce_scatter_tensor(x, torch.arange(2.0 * size), dist.ReduceOp.AVG)
    assert x.tolist() == [2 * rank, 2 * rank + 1]


def test_all_to_all():
    outs = [torch.zeros(1) for _ in everybody]
    dist.all_to_all(outs, [torch.tensor([10.0 * rank + r]) for r in everybody])
    assert [t.item() for t in outs] == [10 * r + rank for r in everybody]
    # rank r sends s + 1 rows to rank s
    given = torch.cat([torch.full((s + 1, 2), float(rank)) for s in everybody])
    out = torch.empty(size * (rank + 1), 2)
    dist.all_to_all_single(out, given, [rank + 1] * size, [s + 1 for s in everybody])
    assert out[:, 0].tolist() == [r for r in everybody for _ in range(rank + 1)]


def test_messages():
    if size == 1:
        return
    after, before = (rank + 1) % size, (rank - 1) % size
    x, y = torch.tensor([float(rank)]), torch.zeros(1)
    works = [dist.isend(x, after), dist.irecv(y, before)]
    for work in works:
        assert work.wait() and work.is_completed() and work.is_success()
    assert y.item() == before
    if rank == 0:  # tags are told apart, whatever the order
        dist.send(torch.tensor([1.0]), 1, tag=1)
        dist.send(torch.tensor([2.0]), 1, tag=2)
    if rank == 1:
        dist.recv(y, 0, tag=2)
        assert y.item() == 2
        assert dist.recv(y, tag=1) == 0 and y.item() == 1  # from anybody
    ops = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert y.item() == before


def test_handles():
    xs = [torch.full((50_000,), float(rank + i)) for i in range(6)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for i in reversed(range(6)):
        works[i].wait()
        assert xs[i][0].item() == total + size * i and works[i].result()[0] is xs[i]
    work = dist.all_reduce(torch.ones(1), async_op=True)
    ran = []
    after = work.get_future().then(lambda done: ran.append(threading.current_thread()) or done.value()[0] + 1)
    assert after.wait().item() == size + 1 and ran == [threading.main_thread()]


def test_objects():
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "long": "x" * (100 * rank)})
    assert [each["rank"] for each in found] == [*everybody] and len(found[-1]["long"]) == 100 * (size - 1)
    things = [rank, torch.tensor([rank])]
    dist.broadcast_object_list(things, size - 1)
    assert things[0] == size - 1 and things[1].item() == size - 1
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in everybody] if rank == 0 else None)
    assert out == [f"for {rank}"]
    found = [None] * size if rank == 0 else None
    dist.gather_object(rank, found)
    assert found is None or found == [*everybody]
    if rank == 0 and size > 1:
        dist.send_object_list(["a", 2], 1)
    if rank == 1:
        out = [None, None]
        assert dist.recv_object_list(out, 0) == 0 and out == ["a", 2]


def test_groups():
    evens = [r for r in everybody if r % 2 == 0]
    group = dist.new_group(evens)
    if rank in evens:
        assert dist.get_world_size(group) == len(evens) and dist.get_group_rank(group, rank) == evens.index(rank)
        x = torch.tensor([float(rank)])
        dist.all_reduce(x, group=group)
        assert x.item() == sum(evens)
        x = torch.tensor([float(rank)])
        dist.broadcast(x, evens[-1], group=group)
        assert x.item() == evens[-1]
        raises(ValueError, "not part of group", lambda: dist.broadcast(x, 10, group=group))
        dist.destroy_process_group(group)
        raises(ValueError, "destroyed", lambda: dist.all_reduce(x, group=group))
    else:
        assert group is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(group) == -1
        assert dist.all_reduce(torch.ones(1), group=group) is None
    whole = dist.new_group()
    x = torch.ones(1)
    dist.all_reduce(x, group=whole)
    assert x.item() == size
    dist.monitored_barrier(timeout=timedelta(seconds=30))


def test_wrong_calls():
    raises(TypeError, "torch.Tensor", lambda: dist.all_reduce([1.0]))
    raises(RuntimeError, "PREMUL_SUM", lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.PREMUL_SUM))
    raises(RuntimeError, "AVG", lambda: dist.all_reduce(torch.ones(1).long(), dist.ReduceOp.AVG))
    raises(ValueError, "complex", lambda: dist.all_reduce(torch.ones(1) + 0j, dist.ReduceOp.MAX))
    raises(RuntimeError, "BAND", lambda: dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND))
    raises(ValueError, "each with one", lambda: dist.all_gather([torch.ones(1)] * (size + 1), torch.ones(1)))
    raises(ValueError, "different dtypes", lambda: dist.all_gather([torch.ones(1)] * size, torch.ones(1).double()))
    raises(ValueError, "world_size times", lambda: dist.all_gather_into_tensor(torch.ones(size + 1), torch.ones(1)))
    raises(ValueError, "twice", lambda: dist.init_process_group())
    raises(ValueError, "own" if size == 0 else "not be the same", lambda: dist.send(torch.ones(1), rank))
    history = torch.ones(1, requires_grad=True) * 2
    raises(RuntimeError, "history", lambda: dist.all_reduce(history))
    raises(RuntimeError, "dense", lambda: dist.all_reduce(torch.eye(2).to_sparse()))
    raises(ValueError, "destination rank", lambda: dist.gather(torch.ones(1)) if rank == 0 else dist.gather(
        torch.ones(1), [torch.ones(1)] * size))  # fmt: skip


def test_sampler():
    sampler = torch.utils.data.DistributedSampler(range(3 * size), shuffle=False)
    assert list(sampler) == [rank + i * size for i in range(3)]


for name, check in sorted(vars().items()):
    if name.startswith("test_") and (len(sys.argv) < 2 or name in sys.argv):
        check()
print(f"rank {rank}: all is well\n", end="", flush=True)
dist.destroy_process_group()
assert not dist.is_initialized()

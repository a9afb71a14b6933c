"""DistributedDataParallel against one process on the joined batch: losses and gradients over 20 steps."""

import sys
from contextlib import nullcontext
from datetime import timedelta

import small_models

import retrograd as torch
import retrograd.distributed as dist
from retrograd.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from retrograd.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
EACH, STEPS = 3, 20


def close(one, other, what, within=1e-6):
    difference = (one - other).abs().max().item()
    assert difference < within, (what, difference)


def loss_of(output, target):
    return (output - target).pow(2).mean()


def joined_gradients(model, x, y, compress):
    """One process: the loss of the joined batch and its gradients; with `compress`, as if the parts had been sent so;
    and how near to them the others have to be.
    """
    params = list(model.parameters())
    if compress is None:
        loss = loss_of(model(x), y)
        found = torch.autograd.grad(loss, params, allow_unused=True)
        return loss, found, 1e-6
    losses, sums, sizes = [], None, 0.0
    for r in range(size):
        loss = loss_of(model(x[r * EACH : (r + 1) * EACH]), y[r * EACH : (r + 1) * EACH])
        losses.append(loss.detach())
        grads = [g.to(compress).div_(size) for g in torch.autograd.grad(loss, params)]
        sums = grads if sums is None else [a + b for a, b in zip(sums, grads)]
        sizes = max(sizes, *(g.abs().max().item() for g in grads))
    # Two numbers have one sum. That of more depends on the order, which is MPI's: each addition may round otherwise.
    within = 1e-6 if size == 2 else size * (size - 1) * sizes * torch.finfo(compress).eps
    return torch.stack(losses).mean(), [g.double() for g in sums], within


def compare(name, accumulate=False, compress=None, hook=None, state=None, **settings):
    alone, shape, outputs = small_models.make(torch, name)
    mine = small_models.make(torch, name)[0]
    if rank:
        with torch.no_grad():
            for param in mine.parameters():  # process 0's come to all
                param.zero_()
    ddp = DDP(mine, **settings)
    if hook is not None:
        ddp.register_comm_hook(state, hook)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in (alone, ddp)]
    part = slice(rank * EACH, (rank + 1) * EACH)
    for step in range(STEPS):
        x, y = small_models.batch(torch, shape, outputs, EACH * size, step)
        keep = accumulate and step % 3 != 2  # two steps of three add up
        if name == "branches":
            alone.which = mine.which = step % 2
        if compress is not None and size > 2:
            alone.load_state_dict(mine.state_dict())  # so that what is rounded does not add up
        expected, gradients, within = joined_gradients(alone, x, y, compress)
        for param, gradient in zip(alone.parameters(), gradients):
            if gradient is not None:
                param.grad = gradient if param.grad is None else param.grad + gradient
        with ddp.no_sync() if keep else nullcontext():
            loss = loss_of(ddp(x[part]), y[part])
            loss.backward()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        close(mean, expected, (name, "loss", step))
        if keep:
            continue
        for (key, one), other in zip(mine.named_parameters(), alone.parameters()):
            assert (one.grad is None) == (other.grad is None), (key, step)
            if one.grad is not None:
                close(one.grad, other.grad, (name, key, step), within)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return ddp


def test_models():
    for name in ("mlp", "convnet", "transformer"):
        for accumulate in (False, True):
            compare(name, accumulate)
            compare(name, accumulate, gradient_as_bucket_view=True, bucket_cap_mb=0.0005)
        compare(name, compress=torch.float16, hook=default_hooks.fp16_compress_hook)
        compare(name, compress=torch.bfloat16, hook=default_hooks.bf16_compress_hook)
        compare(name, find_unused_parameters=True)
        compare(name, accumulate=True, static_graph=True)
        compare(name, hook=default_hooks.allreduce_hook)


def test_full_rank_powersgd():
    """With as many columns as a matrix has there is nothing to leave out."""
    state = powerSGD_hook.PowerSGDState(None, 40, 2, min_compression_rate=1e-3)
    compare("mlp", hook=powerSGD_hook.powerSGD_hook, state=state)
    assert state.iter == STEPS and state.compression_stats()[1] > 0


def test_powersgd_learns():
    """With one column it is not the gradient; but nothing is lost for good, and it gets where the gradient gets."""
    ends = []
    for hook in (None, powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
        model, shape, outputs = small_models.make(torch, "mlp")
        ddp = DDP(model)
        if hook is not None:
            state = powerSGD_hook.PowerSGDState(None, 1, 2, min_compression_rate=1)
            ddp.register_comm_hook(state, hook)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
        x, y = small_models.batch(torch, shape, outputs, EACH * size, 0)
        part = slice(rank * EACH, (rank + 1) * EACH)
        losses = []
        for _ in range(150):
            optimizer.zero_grad()
            loss = loss_of(ddp(x[part]), y[part])
            loss.backward()
            optimizer.step()
            dist.all_reduce(loss := loss.detach().clone(), dist.ReduceOp.AVG)
            losses.append(loss.item())
        ends.append((losses[0], losses[-1]))
        if hook is powerSGD_hook.powerSGD_hook:
            assert state.compression_stats()[0] > 1.5, state.compression_stats()
    assert all(end < 0.1 * start for start, end in ends), ends


def test_unused():
    """Branches that are not used have no part in it; those that one process has used are everybody's."""
    compare("branches", find_unused_parameters=True)
    compare("branches", accumulate=True, find_unused_parameters=True)
    model = small_models.make(torch, "branches")[0]
    ddp = DDP(model, find_unused_parameters=True)
    x, _ = small_models.batch(torch, (6,), 3, EACH, 0)
    model.which = 0 if rank == 0 else 1
    ddp(x).sum().backward()
    grads = [branch.weight.grad for branch in model.branches]
    assert grads[2] is None and grads[0] is not None and grads[1] is not None
    alone = small_models.make(torch, "branches")[0]
    alone(x).sum().backward()
    close(grads[0], alone.branches[0].weight.grad / size, "one of all")


def test_order_of_buckets():
    """Small buckets, whose order is the parameters' reversed, then that of arrival."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(5)])
    ddp = DDP(model, bucket_cap_mb=1e-5)
    assert ddp.reducer.assignment == [[i] for i in reversed(range(10))] and not ddp.reducer.rebuilt
    ddp(torch.ones(1, 4)).sum().backward()
    ddp(torch.ones(1, 4)).sum().backward()
    assert ddp.reducer.rebuilt
    arrived = [i for bucket in ddp.reducer.assignment for i in bucket]
    assert sorted(arrived) == list(range(10)) and {8, 9} == set(arrived[:2])


def test_during_backward():
    """The buckets of the second layer are on their way before the gradients of the first are computed."""
    seen = []

    class Watched(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x):
            hidden = self.first(x)
            hidden.register_hook(lambda grad: seen.append(sum(b.future is not None for b in ddp.reducer.buckets)))
            return self.second(hidden)

    ddp = DDP(Watched(), bucket_cap_mb=1e-5)
    for _ in range(3):
        ddp(torch.ones(1, 4)).sum().backward()
    assert seen == [2, 2, 2] and len(ddp.reducer.buckets) == 4, seen


def test_checkpoints_inside():
    """A parameter whose gradient arrives several times in a pass: with static_graph."""
    from retrograd.utils.checkpoint import checkpoint

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4).double()

        def forward(self, x):
            for _ in range(2):
                x = checkpoint(self.inner, x, use_reentrant=True)
            return x

    model, alone = small_models.filled(torch, Twice()), small_models.filled(torch, Twice())
    ddp = DDP(model, static_graph=True)
    for step in range(3):
        x, y = small_models.batch(torch, (4,), 4, EACH * size, step)
        model.zero_grad()
        alone.zero_grad()
        part = slice(rank * EACH, (rank + 1) * EACH)
        loss_of(ddp(x[part].requires_grad_()), y[part]).backward()
        loss_of(alone(x.requires_grad_()), y).backward()
        close(model.inner.weight.grad, alone.inner.weight.grad, step)


def test_buffers():
    model = torch.nn.BatchNorm1d(3)
    ddp = DDP(model)
    for step in range(2):
        ddp(torch.full((4, 3), float(rank + step)) + torch.arange(4.0)[:, None])
    means = [None] * size
    ddp(torch.ones(2, 3) * torch.arange(2.0)[:, None])
    dist.all_gather_object(means, model.num_batches_tracked.item())
    assert means == [3] * size
    assert next(iter(ddp.state_dict())).startswith("module.")


def test_uneven_inputs():
    """As many batches as a process has; the gradient is the sum over all, divided by the number of processes."""
    from retrograd.distributed.algorithms.join import Join
    from retrograd.distributed.optim import ZeroRedundancyOptimizer

    def batches(r):
        return [small_models.batch(torch, (6,), 3, EACH, 10 * r + i) for i in range(2 + r)]

    for shared in (False, True):
        alone, model = (small_models.make(torch, "mlp")[0] for _ in range(2))
        ddp = DDP(model, bucket_cap_mb=0.001)
        kind = torch.optim.Adam
        mine = ZeroRedundancyOptimizer(ddp.parameters(), kind, lr=0.01) if shared else kind(ddp.parameters(), lr=0.01)
        theirs = kind(alone.parameters(), lr=0.01)
        with Join([ddp, mine] if shared else [ddp]):
            for x, y in batches(rank):
                mine.zero_grad()
                loss_of(ddp(x), y).backward()
                mine.step()
        for step in range(1 + size):
            theirs.zero_grad()
            for r in range(size):
                if step < len(batches(r)):
                    (loss_of(alone(batches(r)[step][0]), batches(r)[step][1]) / size).backward()
            theirs.step()
        for one, other in zip(model.parameters(), alone.parameters()):
            close(one, other, "uneven")
    ddp = DDP(small_models.make(torch, "mlp")[0])
    try:
        with ddp.join(throw_on_early_termination=True):
            for x, y in batches(rank):
                loss_of(ddp(x), y).backward()
    except RuntimeError as error:
        assert "exhausted" in str(error)
    else:
        raise AssertionError("it ended early, and nothing was raised")


def test_two_models():
    """Of two wrapped models, both sum."""
    models = [DDP(small_models.make(torch, "mlp")[0]) for _ in range(2)]
    x, _ = small_models.batch(torch, (6,), 3, EACH * size, 0)
    part = slice(rank * EACH, (rank + 1) * EACH)
    models[1](torch.cat([models[0](x[part])] * 2, 1)).mean().backward()
    alone = [small_models.make(torch, "mlp")[0] for _ in range(2)]
    alone[1](torch.cat([alone[0](x)] * 2, 1)).mean().backward()
    for model, other in zip(models, alone):
        for one, two in zip(model.parameters(), other.parameters()):
            close(one.grad, two.grad, "two models")


def test_different_models():
    """An error in all processes, that names the parameter and the ranks."""
    wide = torch.nn.Linear(2, 3 if rank == size - 1 else 2)
    try:
        DDP(wide)
    except RuntimeError as error:
        assert "weight" in str(error) and f"on ranks [{size - 1}]" in str(error), error
    else:
        raise AssertionError("models differ")


for name, check in list(vars().items()):
    if name.startswith("test_") and (len(sys.argv) < 2 or name in sys.argv):
        check()
print(f"rank {rank}: all is well\n", end="", flush=True)

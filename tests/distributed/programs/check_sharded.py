"""Models that are shared out (pipelines, sharded parameters, sharded optimizers) against one process."""

import gc
import sys
import weakref
from datetime import timedelta

import small_models

import retrograd as torch
import retrograd.distributed as dist
from retrograd.distributed.fsdp import FullyShardedDataParallel as FSDP
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from retrograd.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
nn = torch.nn
EACH = 3


def close(one, other, what):
    difference = (one - other).abs().max().item()
    assert difference < 1e-9, (what, difference)


def loss_of(output, target):
    return (output - target).pow(2).mean()


def deep():
    layers = [layer for _ in range(2 * size) for layer in (nn.Linear(6, 6), nn.Tanh())]
    return small_models.filled(torch, nn.Sequential(*layers, nn.Linear(6, 3)).double())


def part_of(model):
    """This process's layers."""
    layers = list(model)
    return layers[4 * rank : 4 * rank + 4] if rank < size - 1 else layers[4 * rank :]


def test_pipelines():
    parts = 8
    for kind in (Schedule1F1B, ScheduleGPipe):
        alone, mine = deep(), nn.Sequential(*part_of(deep()))
        schedule = kind(PipelineStage(mine, rank, size), parts, loss_fn=loss_of)
        optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (alone, mine)]
        for step in range(5):
            x, y = small_models.batch(torch, (6,), 3, 16, step)
            for optimizer in optimizers:
                optimizer.zero_grad()
            expected = alone(x)
            loss = loss_of(expected, y)
            loss.backward()
            losses = []
            output = schedule.step(*([x] if rank == 0 else []), target=y if rank == size - 1 else None, losses=losses)
            if rank == size - 1:
                close(output, expected, "output")
                close(torch.stack(losses).mean(), loss, "loss")
            for one, other in zip(mine.parameters(), nn.Sequential(*part_of(alone)).parameters()):
                close(one.grad, other.grad, (kind.__name__, step))
            for optimizer in optimizers:
                optimizer.step()
        # what it is for: how many micro-batches are held at a time
        assert schedule.most_waiting == (parts if kind is ScheduleGPipe else size - rank)
        x, y = small_models.batch(torch, (6,), 3, 16, 99)
        output = schedule.eval(*([x] if rank == 0 else []), target=y if rank == size - 1 else None)
        if rank == size - 1:
            close(output, alone(x), "eval")


def test_a_stage_that_gives_two_tensors():
    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 4), nn.Linear(6, 2)

        def forward(self, x):
            return self.a(x), self.b(x).sin()

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Linear(6, 3)

        def forward(self, a, b):
            return self.c(torch.cat([a, b], 1))

    class Between(nn.Module):
        def forward(self, a, b):
            return a * 2, b

    stages = [First(), *[Between() for _ in range(size - 2)], Last()] if size > 1 else []
    if not stages:
        return
    stages = [small_models.filled(torch, stage.double()) for stage in stages]
    schedule = Schedule1F1B(PipelineStage(stages[rank], rank, size), 3, loss_fn=loss_of)
    x, y = small_models.batch(torch, (6,), 3, 6, 1)
    schedule.step(*([x] if rank == 0 else []), target=y if rank == size - 1 else None)
    alone = [First(), *[Between() for _ in range(size - 2)], Last()]
    alone = [small_models.filled(torch, stage.double()) for stage in alone]
    values = (x,)
    for stage in alone:
        result = stage(*values)
        values = result if isinstance(result, tuple) else (result,)
    loss_of(values[0], y).backward()
    for one, other in zip(stages[rank].parameters(), alone[rank].parameters()):
        close(one.grad, other.grad, "two tensors")


def sharded():
    layers = list(deep())
    return FSDP(nn.Sequential(*[FSDP(la) if isinstance(la, nn.Linear) else la for la in layers[:-1]], layers[-1]))


def test_sharded_parameters():
    alone, mine = deep(), sharded()
    count = sum(p.numel() for p in alone.parameters())
    assert sum(p.numel() for p in mine.parameters()) <= count // size + 2 * size + 2  # its share, and some padding
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (alone, mine)]
    part = slice(rank * EACH, (rank + 1) * EACH)
    for step in range(6):
        x, y = small_models.batch(torch, (6,), 3, EACH * size, step)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss_of(alone(x), y).backward()
        loss_of(mine(x[part]), y[part]).backward()
        expected = nn.utils.clip_grad_norm_(alone.parameters(), 0.05)
        close(mine.clip_grad_norm_(0.05), expected, "norm")
        for optimizer in optimizers:
            optimizer.step()
    found, expected = mine.state_dict(), alone.state_dict()
    assert list(found) == list(expected)
    for key in expected:
        close(found[key], expected[key], key)
    other = sharded()
    other.load_state_dict(found)
    close(other(x), alone(x), "loaded")
    with FSDP.summon_full_params(other):
        with torch.no_grad():
            other.module[0].module.weight.zero_()
    assert not other.state_dict()["0.weight"].any()


def test_what_is_held():
    """After the forward pass no process holds more than its shards; in the backward pass, one unit at a time."""
    mine = sharded()
    gathered, most, gather = [], [0], FSDP._gather

    def watched(self, shard):
        whole = gather(self, shard)
        gathered.append(weakref.ref(whole._numbers_))
        most[0] = max(most[0], sum(ref() is not None for ref in gathered))
        return whole

    FSDP._gather = watched
    try:
        x, _ = small_models.batch(torch, (6,), 3, EACH, 0)
        loss = mine(x.requires_grad_()).sum()
        gc.collect()
        units = 2 * size + 1
        assert len(gathered) == units and sum(ref() is not None for ref in gathered) == 0, "held after forward"
        assert most[0] <= 2  # the outer unit, and one inside
        most[0] = 0
        loss.backward()
        # The weights are needed again, but for the outer unit's ... all of them: x requires grad.
        assert len(gathered) == 2 * units and most[0] <= 2
    finally:
        FSDP._gather = gather


def test_sharded_optimizers():
    for views in (False, True):
        alone = small_models.make(torch, "mlp")[0]
        mine = DDP(small_models.make(torch, "mlp")[0])
        theirs = torch.optim.AdamW(alone.parameters(), lr=0.01)
        own = ZeroRedundancyOptimizer(mine.parameters(), torch.optim.AdamW, parameters_as_bucket_view=views, lr=0.01)
        schedulers = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (theirs, own)]

        def train(first, last, mine=mine, alone=alone, theirs=theirs, own=own, schedulers=schedulers):
            for step in range(first, last):
                x, y = small_models.batch(torch, (6,), 3, EACH * size, step)
                part = slice(rank * EACH, (rank + 1) * EACH)
                theirs.zero_grad()
                own.zero_grad()
                loss_of(alone(x), y).backward()
                loss_of(mine(x[part]), y[part]).backward()
                theirs.step()
                own.step()
                for scheduler in schedulers:
                    scheduler.step()
            for one, other in zip(mine.parameters(), alone.parameters()):
                close(one, other, "sharded optimizer")

        train(0, 5)
        states = len(own.optim.state) if own.optim is not None else 0
        assert states < len(list(alone.parameters())) or size == 1  # its share alone
        own.consolidate_state_dict(to=0)
        whole = [own.state_dict() if rank == 0 else None]
        if rank == 0:
            expected = theirs.state_dict()["state"]
            for number, state in whole[0]["state"].items():
                close(state["exp_avg_sq"], expected[number]["exp_avg_sq"], number)
            assert len(whole[0]["state"]) == len(expected)
        else:
            try:
                own.state_dict()
            except RuntimeError as error:
                assert "consolidate" in str(error)
            else:
                raise AssertionError("there is no whole state here")
        dist.broadcast_object_list(whole, 0)
        own = ZeroRedundancyOptimizer(mine.parameters(), torch.optim.AdamW, lr=1.0)
        own.load_state_dict(whole[0])
        schedulers[1].optimizer = own
        train(5, 8, own=own)


for name, check in list(vars().items()):
    if name.startswith("test_") and (len(sys.argv) < 2 or name in sys.argv):
        check()
print(f"rank {rank}: all is well\n", end="", flush=True)

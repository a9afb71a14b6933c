"""A training script for torch, with torch's DDP; retrograd runs it with another import. Process 0 prints its
numbers.
"""

import json
import sys
from contextlib import nullcontext

import small_models
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def run(name, accumulate=False, hook=None, **settings):
    model, shape, outputs = small_models.make(torch, name)
    ddp = DDP(model, **settings)
    if hook is not None:
        ddp.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    numbers = []
    for step in range(20):
        x, y = small_models.batch(torch, shape, outputs, 3 * size, step)
        part = slice(3 * rank, 3 * rank + 3)
        if name == "branches":
            model.which = (step + rank) % 2
        keep = accumulate and step % 2 == 0
        with ddp.no_sync() if keep else nullcontext():
            loss = (ddp(x[part]) - y[part]).pow(2).mean()
            loss.backward()
        numbers.append(loss.item())
        if keep:
            continue
        numbers += [None if p.grad is None else p.grad.double().norm().item() for p in model.parameters()]
        optimizer.step()
        optimizer.zero_grad()
    return numbers


found = {}
for name in ("mlp", "convnet", "transformer"):
    found[name] = run(name)
    found[name + " no_sync"] = run(name, accumulate=True)
    found[name + " views"] = run(name, gradient_as_bucket_view=True, bucket_cap_mb=0.001)
    found[name + " static"] = run(name, static_graph=True)
    found[name + " half"] = run(name, hook=default_hooks.fp16_compress_hook)
found["unused"] = run("branches", find_unused_parameters=True)
found["unused no_sync"] = run("branches", accumulate=True, find_unused_parameters=True)

# uneven inputs
model, shape, outputs = small_models.make(torch, "mlp")
ddp = DDP(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
with ddp.join():
    for step in range(2 + 2 * rank):
        x, y = small_models.batch(torch, shape, outputs, 3, step)
        optimizer.zero_grad()
        (ddp(x) - y).pow(2).mean().backward()
        optimizer.step()
found["join"] = [p.norm().item() for p in model.parameters()]
with ddp.join(divide_by_initial_world_size=False):
    for step in range(2 + 2 * rank):
        x, y = small_models.batch(torch, shape, outputs, 3, step)
        optimizer.zero_grad()
        (ddp(x) - y).pow(2).mean().backward()
        optimizer.step()
found["join, divided by those left"] = [p.norm().item() for p in model.parameters()]

# collective operations
x = torch.arange(4.0) + rank
dist.all_reduce(x)
outs = [torch.zeros(2) for _ in range(size)]
dist.all_gather(outs, torch.full((2,), float(rank)))
things = [None] * size
dist.all_gather_object(things, {"rank": rank})
found["operations"] = [x.tolist(), [t.tolist() for t in outs], things]
if rank == 0:
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
dist.barrier()  # the file is there before any process ends
dist.destroy_process_group()

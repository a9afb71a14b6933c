"""Training with a checkpoint after every step: ``resuming.py folder steps [kill]``; prints losses.

With "kill", process 0 is killed in the fourth checkpoint: the file is written, and not yet renamed.
"""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import small_models

import retrograd as torch
import retrograd.distributed as dist
import retrograd.distributed.checkpoint as dcp
from retrograd.nn.parallel import DistributedDataParallel as DDP

folder, steps, kill = Path(sys.argv[1]), int(sys.argv[2]), "kill" in sys.argv
dist.init_process_group(timeout=timedelta(seconds=10))
rank, size = dist.get_rank(), dist.get_world_size()
model, shape, outputs = small_models.make(torch, "mlp")
ddp = DDP(model)
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
start = 0
if (folder / "state.pt").exists():
    state = {"model": ddp.state_dict(), "optimizer": {}, "step": 0}
    dcp.load(state, checkpoint_id=folder)
    optimizer.load_state_dict(state["optimizer"])
    start = state["step"]
for step in range(start, steps):
    if kill and step == 3 and rank == 0:
        os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
    x, y = small_models.batch(torch, shape, outputs, 3 * size, step)
    part = slice(3 * rank, 3 * rank + 3)
    optimizer.zero_grad()
    loss = (ddp(x[part]) - y[part]).pow(2).mean()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss := loss.detach().clone())
    if rank == 0:
        print(f"step {step} loss {loss.item():.15e}", flush=True)
    dcp.save({"model": ddp.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, checkpoint_id=folder)

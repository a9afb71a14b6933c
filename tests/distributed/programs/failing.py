"""A program in which one process fails in the way that its arguments say: what, and which rank."""

import os
import signal
import sys
import time
from datetime import timedelta

import retrograd as torch
import retrograd.distributed as dist
from retrograd.nn.parallel import DistributedDataParallel as DDP

what, who = sys.argv[1], int(sys.argv[2])
if what == "never starts" and int(os.environ["RANK"]) == who:
    sys.exit(3)
dist.init_process_group(timeout=timedelta(seconds=3))
rank, size = dist.get_rank(), dist.get_world_size()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x, short):
        return self.first(x) if short else self.second(self.first(x))


model = DDP(Model()) if what.startswith("graph") else None
x = torch.ones(3)
for step in range(6):
    if what != "graph differs":
        dist.all_reduce(x)
    failing = step == 3 and rank == who
    if model is not None:
        model(torch.ones(1, 2), short=failing).sum().backward()
        if failing and what == "graph ends":
            break
        continue
    if failing:
        if what == "dies":
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "raises":
            raise ValueError("something of its own")
        elif what == "hangs":
            time.sleep(1000)
        elif what == "stops":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif what == "ends":
            sys.exit(0)
        elif what == "computes":  # the others fail, and it does not notice
            time.sleep(1000)
    if what == "computes" and step == 3:
        raise ValueError("something else")
    if what == "is caught" and step == 3:
        try:
            if rank != who:
                dist.barrier()
        except dist.DistBackendError as error:
            assert f"rank {who} is computing" in str(error), error
            print(f"rank {rank} caught it\n", end="", flush=True)
            os._exit(0)
        time.sleep(4)
        os._exit(0)

"""Operations with gradients against finite differences: first and second derivatives, both modes, across processes."""

import sys
from datetime import timedelta

import retrograd as torch
import retrograd.distributed as dist
from retrograd.distributed.nn import functional as F
from retrograd.distributed.nn.gradcheck import gradcheck, gradgradcheck

dist.init_process_group(timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
everybody = range(size)
op = dist.ReduceOp


def ring(x):
    """Everybody's goes to the next one, and comes to something there."""
    token = F.send(x**2, (rank + 1) % size)
    return F.recv(x * 0, (rank - 1) % size).sin() * x + token


def chain(x):
    """Each waits for the one before it."""
    y = x if rank == 0 else F.recv(x * 0, rank - 1) * x
    return y + F.send(y.sin(), rank + 1) if rank < size - 1 else y


FUNCTIONS = {
    "sum": lambda x: F.all_reduce(x.sin()) * x,
    "mean": lambda x: F.all_reduce(x.exp(), op.AVG),
    "product": lambda x: F.all_reduce(x, op.PRODUCT),
    "maximum": lambda x: F.all_reduce(x**3, op.MAX),
    "minimum": lambda x: F.all_reduce(x**3, op.MIN) * x,
    "all_gather": lambda x: torch.cat(F.all_gather(x.sin())) ** 2,
    "reduce_scatter": lambda x: F.reduce_scatter(x, [x**2 * (r + 1) for r in everybody]) ** 2,
    "broadcast": lambda x: F.broadcast(x**3, size - 1) * x,
    "reduce": lambda x: F.reduce(x**3, size - 1) * x,
    "gather": lambda x: torch.stack(F.gather(x**2, 0)).sin(),
    "scatter": lambda x: F.scatter([x ** (r + 2) for r in everybody], 0) * x,
    "all_to_all": lambda x: torch.cat(F.all_to_all([x] * size, [x ** (r + 2) for r in everybody])),
    "all_to_all_single": lambda x: F.all_to_all_single(torch.cat([x] * size), torch.cat([x**2] * size)) * 2,
    "messages": ring,
    "chain": chain,
}

torch.manual_seed(rank)
x = torch.randn(2 if size == 2 else 1, dtype=torch.float64, requires_grad=True)
for name, function in FUNCTIONS.items():
    if len(sys.argv) > 1 and name not in sys.argv:
        continue
    second = size == 2 or name in ("sum", "all_gather", "messages")
    assert gradcheck(function, x, check_forward_ad=True), name
    assert not second or gradgradcheck(function, x, check_fwd_over_rev=True), name


# A wrong formula is found, in all processes.
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad  # everybody's are missing


if len(sys.argv) == 1:
    try:
        gradcheck(Wrong.apply, x)
    except RuntimeError as error:
        assert "Jacobian mismatch" in str(error)
    else:
        raise AssertionError("a wrong formula passes")

# The third derivative, by hand: of the sum of everybody's cube of the sum of all.
z = torch.tensor(float(rank + 1), dtype=torch.float64, requires_grad=True)
total = size * (size + 1) / 2
(y,) = torch.autograd.grad(F.all_reduce(z) ** 3, z, create_graph=True)
assert abs(y.item() - 3 * size * total**2) < 1e-9
(second,) = torch.autograd.grad(y, z, create_graph=True)
assert abs(second.item() - 6 * size**2 * total) < 1e-9
(third,) = torch.autograd.grad(second, z)
assert abs(third.item() - 6 * size**3) < 1e-9
print(f"rank {rank}: all is well\n", end="", flush=True)

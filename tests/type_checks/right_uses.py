"""Right uses: no type checker has anything to say about this program. tests/test_types.py asks mypy and pyright."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import Tensor, nn
from retrograd.autograd import Function, gradcheck
from retrograd.autograd.function import FunctionCtx
from retrograd.nn import init
from retrograd.utils.checkpoint import checkpoint
from retrograd.utils.data import DataLoader, TensorDataset

# ------------------------------------------------------------------------------------------------------------ factories

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y: Tensor = torch.zeros(2, 3, dtype=torch.float64, device="cpu")
y = torch.zeros((2, 3))
y = torch.ones([2, 3], dtype=float)
y = torch.rand(2, 2, generator=torch.Generator().manual_seed(0))
y = torch.arange(3) + torch.arange(0, 10, 2) - torch.arange(1.0)
y = torch.full((2,), 1.5) * torch.eye(3, 4)[:2, 0]
y = torch.from_numpy(np.ones(3)) + torch.as_tensor([1, 2, 3])
y = torch.zeros_like(x, dtype=torch.bfloat16, memory_format=torch.preserve_format)
y = torch.empty(x.shape, device=torch.device("cpu"), layout=torch.strided)
size: torch.Size = x.shape
rows: int = x.size(0) + x.shape[-1] + len(x.shape[1:]) + x.stride(0)
steps: tuple[int, ...] = x.stride()
kind: torch.dtype = x.dtype
named: str = x.type()

# ------------------------------------------------------------------------------------------------ overloads and results

values, indices = x.max(0)
values = torch.max(x, 0).values + torch.max(x, dim=1, keepdim=True).indices + x.max(axis=0).values
y = torch.max(x) + torch.max(x, y) + x.max() + x.min(y)
y = torch.sort(x, descending=True).values + x.topk(1).values + torch.median(x) + x.median(0)[0]
y = x.sum() + x.sum(0) + x.sum((0, 1)) + x.sum(dim=-1, keepdim=True) + x.sum(axis=0) + x.sum(dtype=torch.float64)
y = torch.add(x, 2, alpha=3) + torch.add(2, x) + x.add(x) + 2 * x - x / 2 + (1 - x) ** 2 + 2**x + x // 2 + x % 2
y = torch.div(x, 2, rounding_mode="floor") + x @ x + -x + abs(x) + (x > 1) * (x == x) + ~(x != 1)
y += 1
y *= x
y = x.view(4, 1).view((2, 2)).view(-1).reshape(2, -1).permute(1, 0).transpose(0, 1).expand(2, 2).unsqueeze(-1).squeeze()
y = x.add_(1).mul_(x).requires_grad_().detach().to(torch.float64).to("cpu", non_blocking=True).float().T
y = x[0] + x[:, 1] + x[..., None] + x[x > 0] + x[[0, 1]] + x[torch.tensor(0)] + x[np.array([0])]
x.data[0] = 1.0
x.data[:, 1] = y
nonzero: Tensor = torch.nonzero(x)
places: tuple[Tensor, ...] = torch.nonzero(x, as_tuple=True)
unique, counts = torch.unique(x, return_counts=True)
unique, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
pieces: tuple[Tensor, ...] = torch.split(x, 1) + x.chunk(2) + torch.unbind(x)
y = torch.cat([x, x], dim=1) + torch.stack((x, x)) + torch.cat([t for t in pieces])
y = torch.where(x > 0, x, 0.0) + torch.where(x > 0)[0]
y = torch.einsum("ij,jk->ik", x, x) + torch.linalg.eigh(x).eigenvalues + torch.linalg.svd(x, full_matrices=False).Vh
sign, logabsdet = torch.linalg.slogdet(x)
norm: Tensor = torch.linalg.norm(x) + torch.linalg.norm(x, ord="fro") + torch.linalg.norm(x, 2, dim=(0, 1))
y = torch.special.xlogy(x, 2.0) + torch.fft.rfft(x, n=4, dim=-1).real + torch.special.expit(x, out=y)
y = torch.std(x, dim=0, correction=1) + torch.var(x) + x.std(unbiased=False)
flag: bool = torch.equal(x, y) or torch.allclose(x, y, atol=1e-3) or torch.is_tensor(x) or x.is_contiguous()
number: float = x.sum().item() + float(x[0, 0])
count: int = x.numel() + x.dim() + torch.get_num_threads()
array: np.ndarray = x.detach().numpy()
y = torch.clamp(x, min=0) + x.clamp(0, 1) + torch.clip(x, None, y)
sorted_type: torch.return_types.sort = torch.sort(x)

# ------------------------------------------------------------------------------------------------------------- autograd

y = (x * x).sum()
y.backward(retain_graph=True, create_graph=True)
if x.grad is not None:
    x.grad.zero_()
(g,) = torch.autograd.grad(y, x, create_graph=True)
handle = x.register_hook(lambda grad: grad * 2)
handle.remove()
with torch.no_grad(), torch.autograd.detect_anomaly():
    z = x * 2
torch.set_grad_enabled(True)
passed: bool = gradcheck(lambda a: a * a, (x.double(),))


class Square(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor) -> Tensor:
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> Tensor:
        (a,) = ctx.saved_tensors
        return 2 * a * grad


y = Square.apply(x) + checkpoint(torch.sin, x, use_reentrant=False)

# ------------------------------------------------------------------------------------------------------------------- nn


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1, bias=False))
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = self.layers(input)
        return result * self.scale


net = Net(3)
output: Tensor = net(x)
loss: Tensor = F.mse_loss(output, torch.zeros(2, 1)) + nn.CrossEntropyLoss()(output, torch.zeros(2, dtype=torch.long))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
adam = torch.optim.Adam([{"params": net.layers.parameters(), "lr": 1e-3}, {"params": [net.scale]}])
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3)
optimizer.zero_grad()
loss.backward()
optimizer.step()
scheduler.step()
state: dict[str, Tensor] = dict(net.state_dict())
net.load_state_dict(OrderedDict(state))
for _name, parameter in net.named_parameters():
    init.normal_(parameter, mean=0.0, std=0.1)
pooled, where = F.max_pool2d(torch.rand(1, 1, 4, 4), 2, return_indices=True)
pooled = F.max_pool2d(torch.rand(1, 1, 4, 4), kernel_size=2, stride=2)
y = F.conv2d(torch.rand(1, 1, 4, 4), torch.rand(1, 1, 2, 2), padding="same") + F.relu(x, inplace=True) + F.gelu(x)
y = F.softmax(x, dim=-1) + F.cross_entropy(x, torch.tensor([0, 1]), reduction="sum", label_smoothing=0.1)
activations: list[Callable[[Tensor], Tensor]] = [torch.tanh, F.relu, torch.sigmoid, nn.Tanh()]
total: Tensor = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
for batch in DataLoader(TensorDataset(x, x), batch_size=2, shuffle=True):
    net(batch[0])
torch.manual_seed(0)
torch.save(net.state_dict(), "model.pt")
with torch.autocast("cpu", dtype=torch.bfloat16):
    y = x @ x

"""Wrong uses: a type checker reports every line that says ``# wrong``, and no other. tests/test_types.py asks two."""

from __future__ import annotations

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn

x = torch.ones(2, 2)

# Names that do not exist.
x.foo  # wrong
torch.nosuch(x)  # wrong
torch.linalg.nosuch(x)  # wrong
torch.special.nosuch(x)  # wrong
torch.fft.nosuch(x)  # wrong
F.nosuch(x)  # wrong
nn.NoSuch(3)  # wrong
torch.optim.NoSuch([x])  # wrong
torch.autograd.nosuch(x)  # wrong
nn.init.nosuch_(x)  # wrong
torch.return_types.nosuch  # wrong
torch.sort(x).median  # wrong
torch.max(x, 0).foo  # wrong
x.vlaues  # wrong
torch.kernel_mul(x, x)  # wrong
torch.utils.checkpoint.nosuch  # wrong

# Arguments of the wrong type.
x.sum(dim="a")  # wrong
torch.zeros(3, dtype="float")  # wrong
torch.zeros("3")  # wrong
torch.ones(2, requires_grad="yes")  # wrong
torch.mul(x, "2")  # wrong
x + "a"  # wrong
x @ 2  # wrong
x["key"] = None  # wrong
torch.cat(x)  # wrong
torch.stack([1, 2])  # wrong
torch.where(True, x, x)  # wrong
x.view("2", 2)  # wrong
x.to([1])  # wrong
torch.arange("3")  # wrong
torch.rand(2, generator=0)  # wrong
torch.linalg.solve(x, 2)  # wrong
torch.fft.fft(x, dim="last")  # wrong
torch.special.gammaln("x")  # wrong
F.dropout(x, p="half")  # wrong
F.conv2d(x, x, stride="two")  # wrong
F.mse_loss(x, 2)  # wrong
nn.Linear("3", 4)  # wrong
nn.init.normal_(x, mean="0")  # wrong
torch.optim.SGD([x], lr="fast")  # wrong
torch.manual_seed("seed")  # wrong
x.backward(2)  # wrong
torch.set_default_dtype("float64")  # wrong

# Arguments that are missing, too many, or not there.
torch.mul(x)  # wrong
x.mul()  # wrong
x.sum(dmi=0)  # wrong
torch.max(x, 0, True, 3)  # wrong
torch.max(x, keepdim=True)  # wrong
torch.cat()  # wrong
x.transpose(0)  # wrong
F.relu()  # wrong
nn.Linear(3)  # wrong
torch.optim.SGD()  # wrong
x.detach(1)  # wrong

# Results that are not what they are taken for.
values: int = torch.max(x, 0).values  # wrong
total: torch.Tensor = torch.sort(x)  # wrong
one: torch.Tensor = x.numel()  # wrong
pieces: torch.Tensor = torch.split(x, 1)  # wrong
found: torch.Tensor = torch.nonzero(x, as_tuple=True)  # wrong
pooled: torch.Tensor = F.max_pool2d(x, 2, return_indices=True)  # wrong
gradient: torch.Tensor = x.grad  # wrong
shape: int = x.shape  # wrong
x.grad.zero_()  # wrong
torch.equal(x, x).sum()  # wrong

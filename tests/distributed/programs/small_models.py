"""Models and data of the programs beside it: small, and the same in every process and library."""

from __future__ import annotations

from typing import Any


def fill(torch: Any, tensor: Any, number: float) -> Any:
    """Values that look random and are the same everywhere."""
    with torch.no_grad():
        count = torch.arange(tensor.numel(), dtype=tensor.dtype)
        tensor.copy_((torch.sin(count * 12.9898 + number * 78.233) * 0.4).view(tensor.shape))
    return tensor


def filled(torch: Any, model: Any) -> Any:
    for number, param in enumerate(model.parameters()):
        fill(torch, param, number + 1)
    return model


def make(torch: Any, name: str) -> tuple[Any, tuple[int, ...], int]:
    """A model, the shape of one example, and how many numbers it gives."""
    nn = torch.nn
    if name == "mlp":
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 3))
        shape: tuple[int, ...] = (6,)
    elif name == "convnet":
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16, 3),
        )
        shape = (1, 8, 8)
    elif name == "transformer":
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        model = nn.Sequential(nn.Linear(4, 8), layer, nn.Flatten(), nn.Linear(40, 3))
        shape = (5, 4)
    else:
        model, shape = Branches(torch), (6,)
    return filled(torch, model.double()), shape, 3


def Branches(torch: Any) -> Any:
    """A model of which each call uses one of two branches, and never a third."""
    nn = torch.nn

    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 8)
            self.branches = nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 3), nn.Linear(8, 3)])
            self.which = 0

        def forward(self, x: Any) -> Any:
            return self.branches[self.which](torch.tanh(self.first(x)))

    return Module()


def batch(torch: Any, shape: tuple[int, ...], outputs: int, size: int, step: int) -> tuple[Any, Any]:
    """Inputs and targets of the whole batch of a step."""
    x = fill(torch, torch.empty((size, *shape), dtype=torch.float64), 100 + step) * 3
    y = fill(torch, torch.empty((size, outputs), dtype=torch.float64), 200 + step)
    return x, y

"""The pages that browser tests and screenshots are about."""

from __future__ import annotations

import threading
from pathlib import Path

import retrograd as torch
from retrograd import explorer, nn
from retrograd.explorer.__main__ import main
from retrograd.utils.checkpoint import checkpoint

PROGRAMS = Path(__file__).parent / "programs"


def program(name: str, folder: Path, *arguments: str) -> Path:
    """A program's last backward pass, as the command makes a page of it."""
    path = folder / f"{name}{''.join(arguments)}.html"
    assert main(["--no-open", "-o", str(path), str(PROGRAMS / f"{name}.py"), *arguments]) == 0
    return path


def small(folder: Path) -> Path:
    """A regression with a hook, a custom name and a leaf that is used twice."""
    torch.manual_seed(0)
    w = torch.tensor([[0.5], [-1.0]], requires_grad=True)
    b = torch.tensor([0.1], requires_grad=True)
    x, y = torch.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]]), torch.tensor([[1.0], [0.0], [1.0]])
    with explorer.record(title="logistic regression") as recording:
        p = torch.sigmoid(x @ w + b)
        p.register_hook(lambda grad: grad.clamp(-1, 1))
        loss = ((p - y) ** 2).mean() + 0.1 * (w * w).sum()
        loss.backward()
    return recording.page().save(folder / "small.html")


def graph(folder: Path) -> Path:
    """The same kind of thing, not run: a figure."""
    w, b = torch.ones(2, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    x = torch.ones(3, 2)
    with explorer.watch():
        loss = torch.sigmoid(x @ w + b).log().mean()
    return explorer.show(loss, title="a graph", open=False, path=folder / "graph.html").path


def compared(folder: Path) -> Path:
    """With and without checkpoints."""
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)) for _ in range(3)])
    pages = []
    for checkpointed in (False, True):
        layers.zero_grad()
        with explorer.record(title="with checkpoints" if checkpointed else "without checkpoints") as recording:
            x = torch.ones(8, 16)
            for layer in layers:
                x = checkpoint(layer, x, use_reentrant=False) if checkpointed else layer(x)
            x.sum().backward()
        pages.append(recording.page())
    return explorer.compare(*pages, open=False, path=folder / "compared.html").path


def dual(folder: Path) -> Path:
    """A forward pass with dual numbers."""

    def spiral(angle, growth):
        radius = torch.exp(growth * angle)
        return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)])

    recording = explorer.record(spiral, open=False, path=folder / "dual.html")
    return recording.jvp((torch.tensor(1.0), torch.tensor(0.2)), (torch.tensor(1.0), torch.tensor(0.0))).path


def threads(folder: Path) -> Path:
    """Passes of two threads, with a pass inside one of them."""
    first, second = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
    inner = torch.ones(2, requires_grad=True)

    def hook(grad):
        with torch.enable_grad():
            (inner * inner).sum().backward()

    losses = [(first * 2).sin().sum(), (second * 3).cos().sum()]
    losses[0].register_hook(hook)
    with explorer.record(title="two threads") as recording:
        workers = [threading.Thread(target=loss.backward, name=f"worker {n}") for n, loss in enumerate(losses)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return recording.page().save(folder / "threads.html")


def hostile(folder: Path) -> Path:
    """Names that would be markup."""
    x = torch.ones(2, requires_grad=True)
    names = {"</script><script>window.hurt=1</script><img src=x onerror='window.hurt=1'>": x}
    return explorer.show(x.exp(), names=names, title="<b>bold</b>", open=False, path=folder / "hostile.html").path

"""What the examples share: the loop over epochs with its progress bar, the checkpoints, the picture at the end.

An example is a class with a `model`, mostly an `optimizer` and a `scheduler`, the number of `epochs` and of `steps`
in each, and the methods `batches()` (of one epoch), `step(batch)` (one update; returns the loss) and `picture(figure)`.
Whatever it draws at random comes from torch's generator, whose state is in the checkpoint too: a run that was
killed goes on with `--resume` as if nothing had been.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
from pathlib import Path
from typing import Any

import retrograd as torch

HERE = Path(__file__).parent
EXTRAS = "pip install 'retrograd[examples]'"


def main(example: type, seed: int = 0) -> None:
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=(sys.modules["__main__"].__doc__ or "").split("\n\n")[0])
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint of a run that was stopped")
    parser.add_argument("--epochs", type=int, default=example.epochs, help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=example.steps, help="steps in an epoch (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=HERE / "out", help="where files go (default: %(default)s)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(seed)
    task = example()
    checkpoint = options.out / f"{name}.pt"
    losses = train(task, options.epochs, options.steps, checkpoint, options.resume)
    if losses:
        last = losses[-options.steps :]
        print(f"loss {losses[0]:.4f} at first, {sum(last) / len(last):.4f} over the last epoch")
        print(f"weights in {checkpoint}")
    draw(task, losses, options.out / f"{name}.png")


def train(task: Any, epochs: int, steps: int, checkpoint: Path, resume: bool) -> list[float]:
    """Trains to the end of the last epoch and returns the loss of every step, those before a `resume` included."""
    parts = {name: getattr(task, name) for name in ("model", "optimizer", "scheduler") if hasattr(task, name)}
    losses: list[float] = []
    done = 0
    if resume:
        if not checkpoint.exists():
            raise SystemExit(f"there is no {checkpoint} to resume from; run without --resume first")
        saved = torch.load(checkpoint)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        torch.set_rng_state(saved["random"])
        losses, done = saved["losses"], saved["epochs"]
    with progress(total=epochs * steps, initial=min(done, epochs) * steps) as bar:
        for epoch in range(done, epochs):
            task.model.train()
            for batch in itertools.islice(task.batches(), steps):
                losses.append(task.step(batch))
                bar.update()
                bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
            if "scheduler" in parts:
                task.scheduler.step()
            state = {name: part.state_dict() for name, part in parts.items()}
            state |= {"random": torch.get_rng_state(), "losses": losses, "epochs": epoch + 1}
            torch.save(state, checkpoint)  # replaces the file as a whole: a kill in the middle leaves the last one
    task.model.eval()
    return losses


def progress(total: int, initial: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        print(f"training {total - initial} steps (for a progress bar: {EXTRAS})", flush=True)
        return contextlib.nullcontext(_Silent())
    return tqdm(total=total, initial=initial, unit="step")


class _Silent:
    def update(self) -> None:
        pass

    def set_postfix(self, **values: Any) -> None:
        pass


def draw(task: Any, losses: list[float], path: Path) -> None:
    """The losses on the left, what the example has to show on the right."""
    try:
        import matplotlib
    except ImportError:
        print(f"no picture: matplotlib is missing ({EXTRAS})")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2, 3])
    axes = left.subplots()
    axes.plot(losses, color="0.75", linewidth=0.8)
    window = max(1, len(losses) // 30)
    means = [sum(losses[i - window : i]) / window for i in range(window, len(losses) + 1)]
    axes.plot(range(window - 1, len(losses)), means, label=f"mean of {window}")
    axes.set(xlabel="step", ylabel="loss", title="training")
    axes.legend()
    task.picture(right)
    figure.savefig(path, dpi=100)
    print(f"picture in {path}")

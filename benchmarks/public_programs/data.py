"""What stands in for the programs' data: small files, made from a seed, where the programs look for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

_WORDS = (
    "the a of and to in sea ship wind sail night day light old man captain said went saw long white under over"
).split()


def _text(count: int, seed: int = 0) -> str:
    """Sentences of made-up prose."""
    numbers = np.random.RandomState(seed)
    lines = []
    while count > 0:
        words = [_WORDS[numbers.randint(len(_WORDS))] for _ in range(numbers.randint(4, 12))]
        count -= len(words)
        lines.append(" ".join(words).capitalize() + " .")
    return "\n".join(lines) + "\n"


def nanogpt(place: Path) -> None:
    """Tokens of a text of 26 characters, in which each depends on the one before it."""
    numbers = np.random.RandomState(0)
    for name, count in (("train", 5000), ("val", 1000)):
        tokens = np.cumsum(numbers.randint(1, 4, count)) % 26
        (place / "data" / "small").mkdir(parents=True, exist_ok=True)
        tokens.astype(np.uint16).tofile(place / "data" / "small" / f"{name}.bin")


def input_text(place: Path) -> None:
    (place / "input.txt").write_text(_text(4000))


def wikitext(place: Path) -> None:
    folder = place / "data" / "wikitext-2"
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(("train", "valid", "test")):
        (folder / f"{name}.txt").write_text(_text(6000 if name == "train" else 1000, seed))


def results_folder(place: Path) -> None:
    (place / "results").mkdir(exist_ok=True)


def cora(place: Path) -> None:
    """Papers with words, classes and citations: those of one class share words and cite each other."""
    numbers = np.random.RandomState(0)
    count, words, classes = 1700, 60, 7
    labels = numbers.randint(0, classes, count)
    kinds = numbers.uniform(size=(classes, words)) < 0.15
    features = numbers.uniform(size=(count, words)) < 0.04
    features |= kinds[labels] & (numbers.uniform(size=(count, words)) < 0.4)
    features[:, 0] = True  # a paper has a word
    rows = [" ".join(map(str, row.astype(int))) for row in features]
    lines = [f"{paper} {row} class{label}" for paper, (row, label) in enumerate(zip(rows, labels))]
    pairs = set()
    while len(pairs) < 4000:
        one, other = numbers.randint(0, count, 2)
        if one != other and (labels[one] == labels[other] or numbers.uniform() < 0.1):
            pairs.add((int(one), int(other)))
    for folder in (place / "cora", place / "data" / "cora", place.parent / "data" / "cora"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cora.content").write_text("\n".join(lines) + "\n")
        (folder / "cora.cites").write_text("\n".join(f"{one}\t{other}" for one, other in sorted(pairs)) + "\n")


def lecun(place: Path) -> None:
    """Digits of 16 × 16 pixels, and a 1 among -1s for the class, in a file of torch's, which both libraries read."""
    import torch

    numbers = np.random.RandomState(0)
    for name, count in (("train1989", 60), ("test1989", 20)):
        labels = numbers.randint(0, 10, count)
        images = numbers.normal(size=(count, 1, 16, 16)).astype(np.float32)
        images[np.arange(count), 0, labels] += 2
        wanted = np.full((count, 10), -1, np.float32)
        wanted[np.arange(count), labels] = 1
        torch.save((torch.from_numpy(images.clip(-1, 1)), torch.from_numpy(wanted)), place / f"{name}.pt")


def lego(place: Path) -> None:
    """Pictures of 10 × 10 pixels of a ball, from cameras around it."""
    numbers = np.random.RandomState(0)
    y, x = np.mgrid[:10, :10] - 4.5
    images = np.repeat((np.hypot(y, x) < 3)[None, ..., None], 110, 0) * numbers.uniform(0.5, 1, (110, 1, 1, 3))
    poses = np.tile(np.eye(4), (110, 1, 1))
    for pose, angle in zip(poses, np.linspace(0, 2 * np.pi, 110)):
        pose[:3, :3] = [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
        pose[:3, 3] = pose[:3, 2] * 4
    (place / "cache").mkdir(exist_ok=True)
    arrays = {"images": images.astype(np.float32), "poses": poses.astype(np.float32), "focal": np.float64(12.0)}
    np.savez(place / "cache" / "tiny_nerf_data.npz", **arrays)

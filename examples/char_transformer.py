"""A small transformer that learns to write like this project's documents, one character after the other.

    python examples/char_transformer.py
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn

ROOT = Path(__file__).parent.parent
TEXT = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ["README.md", "docs/ARCHITECTURE.md"])
TEXT = re.sub(r"[^\n -~]", "", TEXT)  # plain letters only,
TEXT = re.sub(r" *\n\s*", "\n", re.sub(r" +", " ", TEXT))  # and without the wide spaces of drawings
ALPHABET = sorted(set(TEXT))


class Transformer(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, context: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), width)
        self.places = nn.Embedding(context, width)
        block = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.05, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(block, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, len(ALPHABET))
        for embedding in self.letters, self.places:
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, letters):
        length = letters.shape[1]
        x = self.letters(letters) + self.places(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)  # nobody looks ahead
        return self.head(self.blocks(x, mask=mask, is_causal=True))


class Writer:
    epochs, steps = 20, 50

    def __init__(self, width: int = 64, heads: int = 4, layers: int = 2, context: int = 48, batch: int = 24) -> None:
        self.context, self.batch = context, batch
        self.text = torch.tensor([ALPHABET.index(letter) for letter in TEXT])
        self.model = Transformer(width, heads, layers, context)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=self.epochs, eta_min=3e-4)

    def batches(self):
        """Pieces of the text from places drawn at random: each letter is to be told from those before it."""
        while True:
            start = torch.randint(len(self.text) - self.context, (self.batch, 1))
            pieces = self.text[start + torch.arange(self.context + 1)]
            yield pieces[:, :-1], pieces[:, 1:]

    def step(self, batch) -> float:
        letters, following = batch
        loss = F.cross_entropy(self.model(letters).flatten(0, 1), following.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def write(self, beginning: str, length: int, temperature: float = 0.7) -> str:
        letters = [ALPHABET.index(letter) for letter in beginning]
        for _ in range(length):
            scores = self.model(torch.tensor([letters[-self.context :]]))[0, -1]
            letters.append(torch.multinomial(F.softmax(scores / temperature, dim=0), 1).item())
        return "".join(ALPHABET[letter] for letter in letters)

    def picture(self, figure) -> None:
        written = self.write("The engine ", 900)
        lines = [piece for line in written.split("\n") for piece in textwrap.wrap(line, 64) or [""]]
        figure.suptitle("what it writes after 'The engine '")
        figure.text(0.02, 0.9, "\n".join(lines[:24]), family="monospace", fontsize=9, va="top", parse_math=False)


if __name__ == "__main__":
    import training

    training.main(Writer)

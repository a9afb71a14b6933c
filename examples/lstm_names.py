"""An LSTM reads the names of all operators, packed sequences of unequal length, and invents new ones.

    python examples/lstm_names.py
"""

from __future__ import annotations

import re
from pathlib import Path

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn
from retrograd.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_sequence

SIGNATURES = Path(__file__).parent.parent / "src" / "retrograd" / "ops" / "signatures" / "torch.txt"
NAMES = sorted(set(re.findall(r"^([a-z][a-z_0-9]{2,})\(", SIGNATURES.read_text(encoding="utf-8"), flags=re.M)))
ALPHABET = "." + "".join(sorted(set("".join(NAMES))))  # the dot begins and ends a name


class Recurrent(nn.Module):
    def __init__(self, width: int, layers: int = 2) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), width)
        self.lstm = nn.LSTM(width, width, layers, dropout=0.2)
        self.head = nn.Linear(width, len(ALPHABET))

    def forward(self, letters, state=None):
        """Scores of the following letter for each of a packed sequence (or a plain one), and the state after it."""
        if isinstance(letters, torch.Tensor):
            x, state = self.lstm(self.letters(letters), state)
            return self.head(x), state
        packed, state = self.lstm(letters._replace(data=self.letters(letters.data)), state)
        return self.head(packed.data), state


class Names:
    epochs, steps = 20, 20

    def __init__(self, width: int = 64, batch: int = 32) -> None:
        self.batch = batch
        self.names = [torch.tensor([ALPHABET.index(letter) for letter in f".{name}."]) for name in NAMES]
        self.model = Recurrent(width)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=7, gamma=0.4)

    def batches(self):
        while True:
            chosen = [self.names[i] for i in torch.randint(len(self.names), (self.batch,)).tolist()]
            lengths = torch.tensor([len(name) - 1 for name in chosen])
            padded = pad_sequence(chosen)
            letters = pack_padded_sequence(padded[:-1], lengths, enforce_sorted=False)
            following = pack_sequence([name[1:] for name in chosen], enforce_sorted=False)
            yield letters, following

    def step(self, batch) -> float:
        letters, following = batch
        scores, _ = self.model(letters)
        loss = F.cross_entropy(scores, following.data)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def invent(self, temperature: float = 0.7) -> str:
        name, letter, state = "", 0, None
        while len(name) < 30:
            scores, state = self.model(torch.tensor([[letter]]), state)
            letter = torch.multinomial(F.softmax(scores[0, 0] / temperature, dim=0), 1).item()
            if letter == 0:
                break
            name += ALPHABET[letter]
        return name

    def picture(self, figure) -> None:
        invented = [name for name in (self.invent() for _ in range(60)) if name]
        fresh = sum(name not in NAMES for name in invented)
        figure.suptitle(f"{len(invented)} names written, {fresh} of them new (bold)")
        for place, name in enumerate(invented):
            column, row = divmod(place, 20)
            weight = "normal" if name in NAMES else "bold"
            figure.text(0.03 + 0.33 * column, 0.88 - 0.044 * row, name, family="monospace", fontsize=9, weight=weight)


if __name__ == "__main__":
    import training

    training.main(Names)

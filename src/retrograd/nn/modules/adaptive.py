"""The softmax over very many classes that spends its time on the frequent ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...ops import namespace as ops
from ...tensor import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax in two steps: over the frequent classes and clusters of rarer ones, then within a cluster.

    Classes are numbered from the most frequent one; those below ``cutoffs[0]`` are the short list, and each further
    cutoff ends a cluster, whose projection is `div_value` times narrower than that of the one before.

    >>> import retrograd as torch
    >>> m = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10], div_value=2.0)
    >>> m.log_prob(torch.ones(3, 8)).shape, m.predict(torch.ones(3, 8)).shape
    (torch.Size([3, 20]), torch.Size([3]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        listed = list(cutoffs)
        if not listed:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            any(int(c) != c for c in listed)
            or listed != sorted(set(listed))
            or min(listed) <= 0
            or max(listed) > n_classes - 1
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs: list[int] = [*listed, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size: int = self.cutoffs[0]
        self.n_clusters: int = len(self.cutoffs) - 1
        self.head_size: int = self.shortlist_size + self.n_clusters
        self.head: Linear = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail: ModuleList = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, device=device, dtype=dtype),
                    Linear(width, classes, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw new first values."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probability of each target, and minus their mean."""
        if target_.dim() == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    "1D target tensor expects 2D input tensors, but found inputs with size", input_.size()
                )
        elif target_.dim() == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    "0D target tensor expects 1D input tensors, but found inputs with size", input_.size()
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        single = target_.dim() == 0
        input, target = (input_.unsqueeze(0), target_.unsqueeze(0)) if single else (input_, target_)
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        first = target.clone()  # the class, or the cluster, in the head
        logs = input.new_zeros(target.size(0))
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            within = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            chosen = within.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
            logs = logs.index_copy(0, rows, chosen)
            first.index_fill_(0, rows, self.shortlist_size + i)
        output = logs + F.log_softmax(self.head(input), dim=1).gather(1, first.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """The log-probabilities of all classes, from what the head gives."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, at : at + 1])
        return ops.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The class of the highest probability; clusters are looked into only where they win."""
        head = self.head(input)
        output = head.argmax(dim=1)
        rows = (output >= self.shortlist_size).nonzero().squeeze(1)
        if not rows.numel():
            return output
        full = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows))
        return output.index_copy(0, rows, full.argmax(dim=1))

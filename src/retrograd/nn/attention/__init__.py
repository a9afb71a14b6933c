"""``torch.nn.attention``: which implementation of attention may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum

from ...core.attention import allowed

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """Torch's implementations of `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Iterable[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[None]:
    """Allow only some implementations within the block.

    Attention on the CPU is refused, as in torch, where neither `MATH` nor `FLASH_ATTENTION` is among them, and where
    the latter alone is, for what it does not take: it wants batches of heads of one width, and no dropout.

    >>> import retrograd as torch
    >>> from retrograd.nn.attention import SDPBackend, sdpa_kernel
    >>> x = torch.ones(1, 2, 3)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     y = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    """
    listed = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not listed or not all(isinstance(backend, SDPBackend) for backend in listed):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    before = dict(allowed)
    allowed.update({name: backend in listed for name, backend in _SWITCHES.items()})
    try:
        yield
    finally:
        allowed.update(before)


_SWITCHES = {
    "flash": SDPBackend.FLASH_ATTENTION, "mem_efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}  # fmt: skip

"""``torch.functional``: functions of torch's top level, by the name of the module that has them there."""

from .ops.registry import SPACES

_NAMES = [
    "align_tensors", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "lu", "meshgrid", "norm", "split", "stft", "tensordot",
    "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip
__all__ = [name for name in _NAMES if name in SPACES["torch"]]

globals().update({name: SPACES["torch"][name] for name in __all__})

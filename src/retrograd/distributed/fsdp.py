"""``torch.distributed.fsdp``: parameters shared out among processes. Here is one process: its names refuse."""

from .refusals import names_of

_NAMES = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "FullyShardedDataParallel", "LocalStateDictConfig", "MixedPrecision",
    "MixedPrecisionPolicy", "ShardedStateDictConfig", "ShardingStrategy", "StateDictType", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)

"""``torch.distributed.rpc``: functions called in other processes. Its names refuse."""

from .refusals import names_of

_NAMES = [
    "RRef", "TensorPipeRpcBackendOptions", "functions", "get_worker_info", "init_rpc", "remote", "rpc_async",
    "rpc_sync", "shutdown",
]  # fmt: skip

__all__ = list(_NAMES)
__getattr__ = names_of(__name__, _NAMES)

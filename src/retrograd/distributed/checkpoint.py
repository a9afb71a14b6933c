"""``torch.distributed.checkpoint``: checkpoints that are whole or absent.

Process 0 writes the file aside, makes sure that it is on the disk, and renames it: whoever reads finds the old one or
the new one, also when a process is killed meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..autograd.grad_mode import no_grad
from ..serialization import load as _load
from ..serialization import save as _save
from ..tensor import Tensor
from .objects import broadcast_object_list
from .process_group import is_initialized, resolve
from .refusals import names_of

_REFUSED = ["DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "async_save",
            "load_state_dict", "save_state_dict"]  # fmt: skip

__all__ = [*_REFUSED, "load", "save"]

_refused = names_of(__name__, _REFUSED)
_FILE = "state.pt"


def __getattr__(name: str) -> Any:
    return _refused(name)


def save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike, process_group: Any = None) -> None:
    """Write process 0's `state_dict` into the folder `checkpoint_id`. All processes call it, and it is there when
    they return.

    >>> import retrograd as torch, tempfile
    >>> from retrograd.distributed import checkpoint
    >>> folder = tempfile.mkdtemp()
    >>> checkpoint.save({"w": torch.ones(2), "step": 3}, checkpoint_id=folder)
    >>> state = {"w": torch.zeros(2), "step": 0}
    >>> checkpoint.load(state, checkpoint_id=folder); state
    {'w': tensor([1., 1.]), 'step': 3}
    """
    problem: list[Any] = [None]
    if _is_first(process_group):
        try:
            _write(state_dict, Path(checkpoint_id))
        except Exception as error:
            problem = [error]
    if is_initialized():
        broadcast_object_list(problem, group=process_group, group_src=0)
    if problem[0] is not None:
        raise RuntimeError(
            f"the checkpoint {os.fspath(checkpoint_id)} has not been written: {problem[0]}"
        ) from problem[0]


def _is_first(process_group: Any) -> bool:
    if not is_initialized():
        return True
    found = resolve(process_group)
    return found is not None and found.rank() == 0


def _write(state_dict: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"{_FILE}.{os.getpid()}.part"
    try:
        with open(aside, "wb") as file:
            _save(state_dict, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, folder / _FILE)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name has to be on the disk, too
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@no_grad()
def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike, process_group: Any = None) -> None:
    """Read a checkpoint into `state_dict`: tensors are written to in place, other values replaced. All processes call
    it.
    """
    if process_group is not None and resolve(process_group) is None:
        return
    found = _load(Path(checkpoint_id) / _FILE, weights_only=False)
    missing = sorted(set(state_dict) - set(found))
    if missing:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}.")
    waiting = [(state_dict, found)]
    while waiting:
        into, given = waiting.pop()
        for key, value in into.items():
            new = given.get(key, value)
            if isinstance(value, Tensor) and isinstance(new, Tensor):
                value.detach().copy_(new)
            elif isinstance(value, dict) and isinstance(new, dict) and value:
                waiting.append((value, new))
            else:
                into[key] = new

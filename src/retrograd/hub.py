"""``torch.hub``: downloads programs and weights and runs them; refused here, with the way to do it by hand."""

from __future__ import annotations

import os
from typing import Any, NoReturn

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_directory: dict[str, str] = {}


def get_dir() -> str:
    """Where torch keeps what it has downloaded."""
    home = os.environ.get("TORCH_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "torch"
    )
    return _directory.get("hub") or os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str) -> None:
    """Look for it elsewhere."""
    _directory["hub"] = os.path.expanduser(d)


def load(repo_or_dir: Any, model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    raise RuntimeError(
        f"torch.hub.load({repo_or_dir!r}, {model!r}): retrograd downloads and runs no programs of others. Get the code "
        "of the model yourself, import it with retrograd in the place of torch, and give it weights with "
        "model.load_state_dict(torch.load(path))"
    )


def list(github: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    load(github, "list")


def help(github: Any, model: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    load(github, model)


def load_state_dict_from_url(url: str, model_dir: Any = None, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    raise RuntimeError(
        f"torch.hub.load_state_dict_from_url({url!r}): retrograd downloads nothing. Download the file yourself and "
        "read it with torch.load(path)"
    )


def download_url_to_file(url: str, dst: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused."""
    load_state_dict_from_url(url)

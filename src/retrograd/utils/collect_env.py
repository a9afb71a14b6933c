"""``python -m retrograd.utils.collect_env``: what a report of a bug should say of the machine and its packages.

>>> from retrograd.utils.collect_env import get_env_info
>>> get_env_info().python_platform == __import__("platform").platform()
True
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from typing import NamedTuple

from .. import __config__, cuda
from ..version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

#: The packages that computations depend on.
_PACKAGES = ("retrograd", "retrograd-fast", "numpy", "scipy", "ml_dtypes", "cupy", "cupy-cuda12x", "torch", "mpi4py")
_ABSENT = "Could not collect"


class SystemEnv(NamedTuple):
    """What was found out."""

    torch_version: str
    built_of: str
    os: str
    libc_version: str
    gcc_version: str
    clang_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    gpus: str
    cpu: str
    processors: str
    threads: str
    settings: tuple[str, ...]
    packages: tuple[str, ...]


def _said(*command: str) -> str:
    """The first line that a program writes, if there is such a program."""
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return _ABSENT
    return found.partition("\n")[0].strip() or _ABSENT


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or _ABSENT


def _operating_system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"


def _versions(names: Iterable[str]) -> tuple[str, ...]:
    found = []
    for name in names:
        try:
            found.append(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def get_env_info() -> SystemEnv:
    """The machine, the interpreter and the packages."""
    has_gpu = cuda.is_available()
    gpus = "\n".join(cuda.get_device_name(i) for i in range(cuda.device_count())) if has_gpu else _ABSENT
    mine = [f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith(("RETROGRAD_", "OMP_"))]
    return SystemEnv(
        __version__, __config__.show().strip(), _operating_system(), "-".join(platform.libc_ver()) or _ABSENT,
        _said("gcc", "--version"), _said("clang", "--version"),
        f"{sys.version.replace(os.linesep, ' ')} ({sys.maxsize.bit_length() + 1}-bit runtime)", platform.platform(),
        str(has_gpu), gpus, _cpu(), str(os.cpu_count()), __config__.parallel_info().strip(), tuple(mine),
        _versions(_PACKAGES),
    )  # fmt: skip


def get_pretty_env_info() -> str:
    """The same, to be read and copied."""
    found = get_env_info()
    lines = [
        f"retrograd version: {found.torch_version}", f"Built of: {found.built_of}", "", f"OS: {found.os}",
        f"Libc version: {found.libc_version}", f"GCC version: {found.gcc_version}",
        f"Clang version: {found.clang_version}", "", f"Python version: {found.python_version}",
        f"Python platform: {found.python_platform}", f"Is CUDA available: {found.is_cuda_available}",
        f"GPU models and configuration: {found.gpus}", "", f"CPU: {found.cpu}", f"Processors: {found.processors}",
        f"Threads: {found.threads}", "", "Settings in the environment:",
        *[f"  {one}" for one in found.settings or ("none",)], "", "Versions of relevant libraries:",
        *[f"[pip3] {one}" for one in found.packages],
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()

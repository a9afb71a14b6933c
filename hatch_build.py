"""Runs the code generator when retrograd is built, and by hand.

Hatch calls `GenerateHook` for a wheel and for an editable install, so both have `src/retrograd/_generated/`. An
sdist carries only the sources it is made from. `python hatch_build.py` (or `make generate`) does the same by hand
after a change to the table.

The generator is imported as a package of its own, `codegen`, and never as `retrograd.codegen`: retrograd cannot be
imported before its generated files exist.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # run by hand, outside a build
    BuildHookInterface = object  # type: ignore[assignment,misc]

ROOT = Path(__file__).resolve().parent


def load_generator(package_dir: Path) -> Any:
    """Imports `package_dir/codegen` as the top-level package `codegen` and returns its `main` module.

    The package is registered by hand, and `package_dir` is kept off `sys.path`: it holds modules named like torch's
    (`random`, `types` …) that would hide the standard library's.
    """
    for name in [name for name in sys.modules if name == "codegen" or name.startswith("codegen.")]:
        del sys.modules[name]
    directory = package_dir / "codegen"
    spec = importlib.util.spec_from_file_location(
        "codegen", directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    if spec is None or spec.loader is None or not (directory / "__init__.py").is_file():
        raise FileNotFoundError(f"the code generator is missing: {directory / '__init__.py'}")
    package = importlib.util.module_from_spec(spec)
    sys.modules["codegen"] = package
    spec.loader.exec_module(package)
    return importlib.import_module("codegen.main")


def generate(root: Path = ROOT) -> list[Path]:
    """Writes `src/retrograd/_generated` from `src/retrograd/derivatives` and returns the files written."""
    package_dir = root / "src" / "retrograd"
    out_dir = package_dir / "_generated"
    out_dir.mkdir(exist_ok=True)
    written = load_generator(package_dir).generate(package_dir / "derivatives", out_dir, package_dir)
    if not written:
        raise RuntimeError(f"the code generator wrote nothing into {out_dir}")
    return list(written)


class GenerateHook(BuildHookInterface):
    """Hatch's custom build hook: generate before a wheel is put together or an editable install is made."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatch before each build; `version` is "standard" or "editable"."""
        if self.target_name == "wheel":
            generate(Path(self.root))


if __name__ == "__main__":
    for path in generate():
        print(Path(path).resolve().relative_to(ROOT))

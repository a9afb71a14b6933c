"""Which operators users find under which names."""

from __future__ import annotations

import re
from pathlib import Path

from .public_stubs import Sources, read_functions, read_members
from .signatures import read_signatures
from .stubs import read_composites
from .table import Entry

#: Functions of nn.functional that one function makes for one, two and three dimensions.
_FAMILIES = re.compile(r"(torch\.|nn\.functional\.)?\w+\dd(_with_indices)?$")


def read_sources(package: Path, entries: list[Entry]) -> Sources:
    """What the table and the declarations (`ops/registry.py`) put into each namespace."""
    signatures = read_signatures(
        [path for path in sorted((package / "ops" / "signatures").glob("*.txt")) if path.stem != "overloads"]
    )
    modules = sorted([*(package / "ops").glob("*factories.py"), *(package / "ops" / "composite").glob("*.py")])
    defined = read_functions(modules)
    functions = sorted((package / "nn" / "functional").glob("*.py"))
    elsewhere = [path for path in functions if path.stem in ("top_level", "recurrent")]
    functional = [path for path in functions if path not in elsewhere]
    for name, node in read_functions(elsewhere).items():
        if name not in {e.name for e in entries}:
            defined.setdefault(name, node)
    spaces = ("torch", "Tensor", "linalg", "special", "fft", "nn.functional")
    places: dict[str, dict[str, str]] = {space: {} for space in spaces}
    for entry in entries:
        for space, name, inplace in entry.places():
            places[space][name] = entry.name + "_" * inplace
    composites = read_composites([*modules, *elsewhere, *functional])
    for composite in composites:
        for space in set(spaces).intersection(composite.places):
            if not composite.attribute or space != "Tensor":
                places[space].update(dict.fromkeys(composite.places[space], composite.own))
    for key in signatures:
        space, _, name = key.rpartition(".")
        if (space == "Tensor" or _FAMILIES.match(key)) and name not in places[space or "torch"]:
            places[space or "torch"][name] = name
    for space, members in places.items():
        for name in [name for name in members if name.startswith("_") and not name.startswith("__")]:
            if space != "torch":  # where programs call torch's operators by these names
                del members[name]
    out = {composite.own for composite in composites if composite.out} | {"std", "var"}
    classes = ("tensor", "conversion", "autograd_attributes")
    members_of_tensor = read_members([package / "tensor" / f"{name}.py" for name in classes])
    return Sources(entries, signatures, defined, read_functions(functional), places, out, members_of_tensor)

"""Which operators users find under which names."""

from __future__ import annotations

import ast
from pathlib import Path

from .public_stubs import Sources, body, read_functions, read_members
from .signatures import read_signatures
from .stubs import Composite
from .table import Entry

#: Functions that are methods as well and have no decorator that says so.
_METHODS = (
    "hardshrink", "prelu", "where", "polygamma", "std", "var", "std_mean", "var_mean", "hsplit", "vsplit",
    "dsplit", "as_strided_",
)  # fmt: skip
_SPECIAL = {
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "modified_bessel_i0": "i0",
    "modified_bessel_i1": "special_i1", "multigammaln": "mvlgamma", "psi": "digamma",
    **{name: name for name in (
        "digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "log_softmax", "logit", "logsumexp",
        "polygamma", "round", "sinc", "softmax", "xlogy",
    )},
}


def read_sources(package: Path, entries: list[Entry], composites: list[Composite]) -> Sources:
    signatures = read_signatures(
        [path for path in sorted((package / "ops" / "signatures").glob("*.txt")) if path.stem != "overloads"]
    )
    modules = [package / "ops" / "settings.py", package / "ops" / "factories.py", package / "fft.py",
               *sorted((package / "ops" / "composite").glob("*.py"))]
    defined = read_functions(modules)
    elsewhere = ("top_level.py", "recurrent.py")  # called as the functions of nn.functional are, and public in torch
    nn = read_functions([p for p in sorted((package / "nn" / "functional").glob("*.py")) if p.name not in elsewhere])
    for name, node in read_functions([package / "nn" / "functional" / n for n in elsewhere]).items():
        if name not in {e.name for e in entries}:
            defined.setdefault(name, node)
    out = {name for c in composites if c.out for name in c.names} | {"std", "var"}
    spaces = ("torch", "Tensor", "linalg", "special", "fft", "nn.functional")
    places: dict[str, dict[str, str]] = {space: {} for space in spaces}
    names = {e.name for e in entries}
    for e in entries:
        if not e.schema.overload and not e.name.startswith("_"):
            for name in (e.name, *e.aliases):
                places["torch"][name] = e.name
                if e.inplace:
                    places["torch"][name + "_"] = e.name + "_"
        if e.method:
            for name in (e.schema.base, *e.aliases):
                places["Tensor"][name] = e.name
                if e.inplace:
                    places["Tensor"][name + "_"] = e.name + "_"
        elif e.inplace:
            places["Tensor"][e.name + "_"] = e.name + "_"
        if e.name.startswith("special_"):
            places["special"][e.name.removeprefix("special_")] = e.name
    for c in composites:
        for name in c.names:
            if c.function:
                places["torch"][name] = c.names[0]
            if c.method:
                places["Tensor"][name] = c.names[0]
            if name.startswith("special_"):
                places["special"][name.removeprefix("special_")] = c.names[0]
    for name in _exported(package / "ops" / "factories.py"):
        if name in defined:
            places["torch"][name] = name
    places["special"] |= {name: target for name, target in _SPECIAL.items() if target in defined or target in names}
    for name in signatures:
        space, _, own = name.rpartition(".")
        if space == "":
            places["torch"].setdefault(own, own)
            if own == "get_device":  # a function of settings.py
                del places["torch"][own]
        elif space == "linalg":
            places[space][own] = f"linalg_{own}" if f"linalg_{own}" in defined or f"linalg_{own}" in names else own
        else:
            places[space].setdefault(own, own)
    places["Tensor"] |= {name: name for name in _METHODS if name in signatures}
    classes = ("tensor", "conversion", "autograd_attributes")
    members = read_members([package / "tensor" / f"{name}.py" for name in classes])
    return Sources(entries, signatures, defined, nn, places, out, members)


def _exported(path: Path) -> list[str]:
    for node in body(path):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []

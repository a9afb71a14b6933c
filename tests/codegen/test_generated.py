"""What is generated from the package's own table: it parses, agrees with itself, and saves no more than it must."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

import retrograd
from retrograd._generated import functions, nodes
from retrograd.autograd.node import Node

yaml = pytest.importorskip("yaml")

PACKAGE = Path(retrograd.__file__).parent
GENERATED = PACKAGE / "_generated"
ROOT = PACKAGE.parent.parent


@pytest.fixture(scope="module")
def entries():
    from retrograd.codegen import main
    from retrograd.codegen.formula import Names
    from retrograd.codegen.table import load_table

    names = Names(
        kernels=main._top_level_names(sorted((PACKAGE / "kernels").glob("*.py"))),
        ops=main._top_level_names(
            [*sorted((PACKAGE / "ops/composite").glob("*.py")), *sorted((PACKAGE / "ops").glob("*factories.py"))]
        ),
        helpers=main._top_level_names(sorted((PACKAGE / "derivatives" / "formulas").glob("*.py"))),
    )
    return {e.name: e for e in load_table(sorted((PACKAGE / "derivatives").glob("*.yaml")), names)}


def test_what_is_there_is_what_the_table_gives(tmp_path):
    from retrograd.codegen.main import generate

    for path in generate(PACKAGE / "derivatives", tmp_path):
        made = path.read_text(encoding="utf-8")
        assert made == (GENERATED / path.name).read_text(encoding="utf-8"), f"{path.name} is stale: run `make generate`"


def test_generating_twice_changes_nothing(tmp_path):
    from retrograd.codegen.main import generate

    generate(PACKAGE / "derivatives", tmp_path)
    times = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    generate(PACKAGE / "derivatives", tmp_path)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == times


@pytest.mark.skipif(not (ROOT / "hatch_build.py").exists(), reason="not a checkout")
def test_the_build_hook_generates_without_importing_the_package(tmp_path):
    spec = importlib.util.spec_from_file_location("hatch_build_of_tests", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = {name for name in sys.modules if name.split(".")[0] == "codegen"}
    generator = module.load_generator(PACKAGE)
    assert generator.__name__ == "codegen.main"
    for name in {name for name in sys.modules if name.split(".")[0] == "codegen"} - before:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["functions.py", "nodes.py", "jvps.py", "functions.pyi", "tensor_operators.pyi"])
def test_it_parses(name):
    tree = ast.parse((GENERATED / name).read_text(encoding="utf-8"))
    assert len(tree.body) > 10 or any(isinstance(n, ast.ClassDef) for n in tree.body)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.pyi")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_stubs_name_only_what_exists(path):
    """Every name in a stub's annotations is imported or defined by it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = set(dir(builtins))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            known |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif isinstance(node, ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.Assign):
            known |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    annotations = [
        a.annotation
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for a in [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        if a is not None and a.annotation is not None
    ] + [node.returns for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    used = {n.id for a in annotations for n in ast.walk(a) if isinstance(n, ast.Name)}
    assert used <= known


def test_stubs_have_every_function(entries):
    tree = ast.parse((GENERATED / "functions.pyi").read_text(encoding="utf-8"))
    stubs = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert stubs >= set(entries) | {f"{name}_" for name, e in entries.items() if e.inplace}


def test_stubs_have_the_parameters_of_the_functions(entries):
    tree = ast.parse((GENERATED / "functions.pyi").read_text(encoding="utf-8"))
    for stub in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
        real = inspect.signature(getattr(functions, stub.name)).parameters
        named = {a.arg for a in [*stub.args.args, *stub.args.kwonlyargs]}
        assert named <= set(real), stub.name


def test_methods_are_attached(entries):
    for name, entry in entries.items():
        if entry.method:
            assert hasattr(retrograd.Tensor, entry.schema.base), name
        for operator in entry.operators:
            assert hasattr(retrograd.Tensor, operator), operator


def test_every_node_has_both_namespaces(entries):
    for entry in entries.values():
        if entry.differentiable:
            cls = getattr(nodes, entry.node)
            assert issubclass(cls, Node)
            assert "apply" in vars(cls) and "apply_tensors" in vars(cls), entry.node
            assert "__dict__" not in dir(cls), entry.node


def test_node_names_are_unique(entries):
    names = [e.node for e in entries.values() if e.differentiable]
    assert len(names) == len(set(names))


class _Undo(ast.NodeTransformer):
    """Writes both namespaces the same way: ``kernels.f(x, y)``, ``ops.f(x, y)`` and ``x.f(y)`` all as ``f(x, y)``."""

    def visit_Call(self, node):
        node = self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute):
            name = ast.Name(function.attr, ast.Load())
            if isinstance(function.value, ast.Name) and function.value.id in ("kernels", "ops"):
                return ast.Call(name, node.args, node.keywords)
            if isinstance(function.value, ast.Name) and function.value.id == "formulas":
                assert ast.unparse(node.args[0]) in ("kernels", "ops")
                return ast.Call(name, node.args[1:], node.keywords)
            return ast.Call(name, [function.value, *node.args], node.keywords)
        return node


def _formulas(method):
    """What a generated method computes: its returned and assigned gradients, in one spelling."""
    found = []
    for node in ast.walk(method):
        if isinstance(node, ast.Return):
            found.append(node.value)
        elif isinstance(node, ast.Assign) and "grad_" in ast.unparse(node.targets[0]):
            if "node." not in ast.unparse(node.value) and "unpack_" not in ast.unparse(node.value):
                found.append(node.value)
    return [ast.unparse(ast.fix_missing_locations(_Undo().visit(value))) for value in found]


def test_both_namespaces_come_from_one_text(entries):
    source = ast.parse((GENERATED / "nodes.py").read_text(encoding="utf-8"))
    compared = 0
    for cls in (n for n in source.body if isinstance(n, ast.ClassDef)):
        methods = {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)}
        if "apply" not in methods and cls.bases[0].id != "Node":
            continue  # another name of the class that it inherits from
        arrays, tensors = _formulas(methods["apply"]), _formulas(methods["apply_tensors"])
        assert arrays == tensors, cls.name
        compared += len(arrays)
    assert compared > len([e for e in entries.values() if e.differentiable])


def test_gradients_do_not_overwrite_arguments(entries):
    """``softmax_backward(grad_output, output)``: the gradient of `output` must not be called grad_output."""
    source = ast.parse((GENERATED / "nodes.py").read_text(encoding="utf-8"))
    classes = {n.name: n for n in source.body if isinstance(n, ast.ClassDef)}
    for entry in entries.values():
        if not entry.differentiable or len(entry.differentiable_arguments) < 2:
            continue
        arguments = {a.name for a in entry.schema.arguments}
        for method in (n for n in classes[entry.tensor_node or entry.node].body if isinstance(n, ast.FunctionDef)):
            returned = [n.value for n in ast.walk(method) if isinstance(n, ast.Return)]
            names = {n.id for value in returned for n in ast.walk(value) if isinstance(n, ast.Name)}
            if method.name in ("apply", "apply_tensors"):
                assert not names & arguments, (entry.node, names & arguments)


def test_slots_are_what_the_formulas_read(entries):
    for entry in entries.values():
        if not entry.differentiable:
            continue
        cls, reads = getattr(nodes, entry.node), entry.reads()
        for argument in entry.schema.arguments:
            if argument.is_tensor:
                assert (f"{argument.name}_" in cls.__slots__) == reads.value(argument.name), (entry.node, argument.name)
        for result in entry.schema.results:
            assert (f"{result}_" in cls.__slots__) == reads.value(result), (entry.node, result)


def test_saved_names(entries):
    for entry in entries.values():
        if entry.differentiable:
            cls = getattr(nodes, entry.node)
            for name in cls.saved_tensors_names:
                shown = [other for other, f in entry.saved.items() if f is not None and f.text == name]
                if name in entry.saved and entry.saved[name] is None and not shown:
                    continue  # for the formulas alone
                assert isinstance(inspect.getattr_static(cls, f"_saved_{(shown or [name])[0]}"), property)


def test_every_line_of_a_wrapper_is_straight(entries):
    """No loops over arguments in an ordinary operator."""
    tree = ast.parse((GENERATED / "functions.py").read_text(encoding="utf-8"))
    mul = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "__mul__")
    assert not any(isinstance(n, ast.For | ast.While | ast.ListComp | ast.GeneratorExp) for n in ast.walk(mul))


# ------------------------------------------------------------------------------------------- what is saved, by running


@pytest.mark.parametrize(("needs", "saved"), [("self", {"other"}), ("other", {"self"}), ("both", {"self", "other"})])
def test_a_product_saves_the_other_factor(needs, saved):
    a = retrograd.ones(2, requires_grad=needs in ("self", "both"))
    b = retrograd.ones(2, requires_grad=needs in ("other", "both"))
    node = (a * b).grad_fn
    assert {name for name in ("self", "other") if hasattr(node, f"{name}_")} == saved
    for name, tensor in (("self", a), ("other", b)):
        assert getattr(node, f"_saved_{name}") is (tensor if name in saved else None)


def test_the_value_of_a_number_is_not_a_tensor():
    node = (retrograd.ones(2, requires_grad=True) * 3.5).grad_fn
    assert node.other_ == 3.5


def test_nothing_is_saved_without_a_node():
    import weakref

    a, b = retrograd.ones(2), retrograd.ones(2)
    result = a * b
    reference = weakref.ref(a)
    del a
    assert reference() is None and result.grad_fn is None


def test_a_wrapper_of_your_own_table(tmp_path):
    """A small table of its own, generated and read back."""
    from retrograd.codegen.main import generate

    package = tmp_path / "package"
    for folder in ("kernels", "ops/composite", "derivatives/formulas"):
        (package / folder).mkdir(parents=True)
    (package / "kernels" / "k.py").write_text("def twice(a):\n    return a * 2\n")
    (package / "derivatives" / "t.yaml").write_text(
        "- name: twice(Tensor self) -> Tensor\n  self: grad * 2\n  result: auto_linear\n  doc: Two of it.\n"
    )
    written = generate(package / "derivatives", package / "out")
    assert {p.name for p in written} >= {"__init__.py", "nodes.py", "functions.py", "functions.pyi"}
    text = (package / "out" / "nodes.py").read_text()
    assert "class TwiceBackward0(Node):" in text and "return (grad * 2,)" in text
    function = (package / "out" / "functions.py").read_text()
    assert '"""Two of it."""' in function and "kernel_twice(input_array)" in function
    for path in written:
        ast.parse(path.read_text())

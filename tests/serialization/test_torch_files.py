"""Files beside torch's: the same members, byte for byte, and each reads what the other wrote."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated"),
]

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip


@pytest.fixture
def theirs() -> Any:
    return pytest.importorskip("torch")


def of(T: Any, dtype: str, shape: tuple[int, ...] = (2, 3)) -> Any:
    """A tensor with the same odd bits in both libraries: NaNs with payloads, denormals, negative zeros."""
    octets = np.random.default_rng(len(dtype)).integers(0, 256, 2000, dtype=np.uint8)
    if dtype == "bool":
        octets &= 1
    kind = getattr(T, dtype)
    count = int(np.prod(shape))
    return T.frombuffer(bytearray(octets.tobytes())[: count * kind.itemsize], dtype=kind).reshape(shape)


def things(T: Any) -> dict[str, Any]:
    """Everything that a file of weights may have in it."""
    x = of(T, "float32", (4, 6))
    z = of(T, "complex64", (3, 4))
    attributed = of(T, "float64")
    attributed.note = "mine"
    parameter = T.nn.Parameter(of(T, "float32"))
    tagged = T.nn.Parameter(of(T, "float32"), requires_grad=False)
    tagged.tag = [1, 2]
    leaf = of(T, "float32")
    leaf.requires_grad_()
    state = OrderedDict(weight=x[:2], bias=parameter)
    state._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]
    shared = of(T, "int64", (4,))
    return {
        **{f"of {dtype}": of(T, dtype) for dtype in DTYPES},
        "views": [x, x.t(), x[1:, ::2], x[0], x[2, 3], x.view(-1), x],
        "expanded": of(T, "float32", (1, 3)).expand(5, 3),
        "0-d": of(T, "float32", ()), "empty": [T.empty(0), T.empty(0, 3), T.zeros(2, 0, 4)],
        "tied": {"in": parameter, "out": parameter},
        "conj": z.conj(), "conjs": [z.conj(), z.conj().t(), of(T, "complex128").conj()],
        "neg": of(T, "complex64", (2, 2)).conj().imag,
        "real": of(T, "complex64", (2, 5)).real,
        "leaf": leaf, "non-leaf": leaf.clone() * 2, "tagged": tagged, "attributed": attributed, "state": state,
        "typed storage": of(T, "int16").storage(), "untyped storage": of(T, "int32").untyped_storage(),
        "shared storage": [shared, shared.storage()],
        "dtypes": [getattr(T, name) for name in DTYPES], "devices": [T.device("cpu"), T.device("cuda", 1)],
        "size": [T.Size([2, 3]), T.Size([]), x.shape], "layout": T.strided, "types": [T.FloatTensor, T.LongTensor],
        "bytes": [b"", b"ab\xff", bytearray(b"q"), bytearray()], "sets": [set(), {1}, frozenset([2])],
        "numbers": [0, -1, 255, 65536, 1 << 40, 1 << 70, -(1 << 2000), 0.5, 1j, True, False, None, float("inf")],
        "text": ["", "ä€😀", "x" * 300], "counter": Counter("aab"), "nest": [[{"a": ({},)}]], "same": [x.shape] * 2,
        "many": list(range(3000)), "many keys": {str(i): i for i in range(2500)},
    }  # fmt: skip


NAMES = list(things(retrograd))


def members(raw: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist() if "serialization_id" not in name}


def saved(T: Any, thing: Any, **how: Any) -> bytes:
    buffer = io.BytesIO()
    T.save(thing, buffer, **how)
    return buffer.getvalue()


def facts(thing: Any) -> Any:
    """All there is to an object, in words that have nothing of either library."""
    name = type(thing).__name__
    if hasattr(thing, "untyped_storage") and not isinstance(thing, type):
        memory = bytes(thing.untyped_storage().tolist())
        layout = thing.storage_offset(), tuple(thing.stride()), tuple(thing.shape)
        bits = thing.is_conj(), thing.is_neg(), thing.requires_grad
        return name, str(thing.dtype), memory, layout, bits, str(thing.device), facts(vars(thing))
    if name in ("TypedStorage", "UntypedStorage"):
        return name, str(getattr(thing, "dtype", "")), bytes(thing.untyped().tolist())
    if isinstance(thing, dict):
        attributes = vars(thing) if name == "OrderedDict" else {}
        return name, [(facts(k), facts(v)) for k, v in (*thing.items(), *attributes.items())]
    if isinstance(thing, (list, tuple)):
        return name, [facts(part) for part in thing]
    return repr(thing) if isinstance(thing, type) or name in ("layout", "_Layout") else (name, repr(thing))


def sharing(things: list[Any]) -> list[tuple[int, int]]:
    """Which of the tensors in a list share memory."""
    pointers = [t.data_ptr() if "Storage" in type(t).__name__ else t.untyped_storage().data_ptr() for t in things]
    return [(i, j) for i, j in itertools.combinations(range(len(things)), 2) if pointers[i] == pointers[j]]


# torch makes the name of the bit anew for each tensor, and so does not find it again.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "conjs"])
def test_the_same_bytes(theirs: Any, name: str) -> None:
    assert members(saved(retrograd, things(retrograd)[name])) == members(saved(theirs, things(theirs)[name]))


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_both_ways(theirs: Any, name: str, legacy: bool) -> None:
    how = {"_use_new_zipfile_serialization": not legacy}
    mine, other = things(retrograd)[name], things(theirs)[name]
    expected = facts(mine)
    assert facts(other) == expected
    for weights_only in (True, False):
        assert facts(retrograd.load(io.BytesIO(saved(theirs, other, **how)), weights_only=weights_only)) == expected
        assert facts(retrograd.load(io.BytesIO(saved(retrograd, mine, **how)), weights_only=weights_only)) == expected
        if name == "untyped storage":
            # Torch makes a typed one of it, or fails: the same with its own file.
            with pytest.raises((AssertionError, AttributeError)):
                found = theirs.load(io.BytesIO(saved(theirs, other, **how)), weights_only=weights_only)
                assert facts(found) == expected
        elif name in ("sets", "bytes") and weights_only:
            # What torch refuses of its own files, it refuses of ours too.
            for T, thing in ((theirs, other), (retrograd, mine)):
                with pytest.raises(Exception, match="was not an allowed global"):
                    theirs.load(io.BytesIO(saved(T, thing, **how)), weights_only=True)
        else:
            assert facts(theirs.load(io.BytesIO(saved(retrograd, mine, **how)), weights_only=weights_only)) == expected


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("name", ["views", "shared storage", "conjs"])
def test_memory_is_shared_as_it_was(theirs: Any, name: str, legacy: bool) -> None:
    how = {"_use_new_zipfile_serialization": not legacy}
    expected = sharing(things(theirs)[name])
    assert sharing(retrograd.load(io.BytesIO(saved(theirs, things(theirs)[name], **how)))) == expected
    assert sharing(theirs.load(io.BytesIO(saved(retrograd, things(retrograd)[name], **how)))) == expected
    assert expected


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(theirs: Any, protocol: int) -> None:
    mine, other = things(retrograd), things(theirs)
    del mine["untyped storage"], other["untyped storage"]
    for T, thing in ((retrograd, mine), (theirs, other)):
        raw = saved(T, thing, pickle_protocol=protocol)
        for weights_only in (True, False):
            assert facts(retrograd.load(io.BytesIO(raw), weights_only=weights_only)) == facts(mine)
        assert facts(theirs.load(io.BytesIO(raw), weights_only=False)) == facts(mine)


def test_mapped(theirs: Any, tmp_path: Path) -> None:
    names = [name for name in NAMES if name not in ("sets", "bytes", "untyped storage")]
    for T in (retrograd, theirs):
        path = tmp_path / T.__name__
        T.save({name: things(T)[name] for name in names}, path)
        for reader in (retrograd, theirs):
            found = reader.load(path, mmap=True)
            assert facts(found) == facts({name: things(retrograd)[name] for name in names})
            assert found["of float64"].data_ptr() % 64 == 0


def test_without_checksums_and_byte_order(theirs: Any) -> None:
    thing = {"x": of(retrograd, "float64"), "n": 1}
    for T in (retrograd, theirs):
        T.serialization.set_crc32_options(False)
        try:
            raw = saved(T, {"x": of(T, "float64"), "n": 1}, _disable_byteorder_record=True)
        finally:
            T.serialization.set_crc32_options(True)
        assert b"byteorder" not in raw or T is theirs
        for reader in (retrograd, theirs):
            assert facts(reader.load(io.BytesIO(raw))) == facts(thing)


def test_modules_and_optimizers(theirs: Any, tmp_path: Path) -> None:
    trained = {}
    for T in (retrograd, theirs):
        net = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2))
        with T.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_(T.arange(p.numel(), dtype=T.float32).reshape(p.shape) / 10 - i)
        optimizer = T.optim.Adam(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            net(T.ones(1, 3)).sum().backward()
            optimizer.step()
        T.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / T.__name__)
        trained[T] = net, optimizer
    for T, other in ((retrograd, theirs), (theirs, retrograd)):
        found = T.load(tmp_path / other.__name__)
        net = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2))
        net.load_state_dict(found["net"])
        optimizer = T.optim.Adam(net.parameters(), lr=0.5)
        optimizer.load_state_dict(found["optimizer"])
        for model, stepper in ((net, optimizer), trained[other]):
            stepper.zero_grad()
            lib = T if model is net else other
            model(lib.ones(1, 3)).sum().backward()
            stepper.step()
        for p, q in zip(net.parameters(), trained[other][0].parameters()):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5)


def test_whole_modules(theirs: Any) -> None:
    for T, other in ((retrograd, theirs), (theirs, retrograd)):
        net = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.ReLU())
        found = other.load(io.BytesIO(saved(T, net)), weights_only=False)
        assert type(found) is other.nn.Sequential and type(found[0]) is other.nn.Linear
        x = np.ones((2, 3), np.float32)
        np.testing.assert_allclose(
            found(other.from_numpy(x)).detach().numpy(), net(T.from_numpy(x)).detach().numpy(), rtol=1e-6
        )
        with pytest.raises(Exception, match=r"Weights only load failed.*GLOBAL torch.nn"):
            retrograd.load(io.BytesIO(saved(T, net)))
        allowed = [retrograd.nn.Sequential, retrograd.nn.Linear, retrograd.nn.ReLU]
        with retrograd.serialization.safe_globals(allowed):
            assert type(retrograd.load(io.BytesIO(saved(T, net)))[1]) is retrograd.nn.ReLU


def test_dtypes_that_are_not_here(theirs: Any) -> None:
    thing = theirs.zeros(2, dtype=theirs.uint8).view(theirs.bits8)
    for how in ({}, {"weights_only": False}):
        with pytest.raises(retrograd.serialization.LoadError, match="bits8"):
            retrograd.load(io.BytesIO(saved(theirs, thing)), **how)


def test_one_memory_of_two_types_is_refused(torch: Any) -> None:
    x = torch.ones(4)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data"):
        torch.save([x, x.view(torch.int32)], io.BytesIO())
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data"):
        torch.save([x, x.untyped_storage()], io.BytesIO())


def test_names_that_are_not_safe(theirs: Any) -> None:
    thing = [Path, Counter, np.int64(3), "os.system"]
    for protocol in (2, 4):
        mine = retrograd.serialization.get_unsafe_globals_in_checkpoint(
            io.BytesIO(saved(retrograd, thing, pickle_protocol=protocol))
        )
        assert "pathlib.Path" in mine and "collections.Counter" not in mine and "os.system" not in mine
        if protocol == 2:  # torch's does not read others
            other = theirs.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(saved(theirs, thing)))
            assert sorted(mine) == sorted(other)

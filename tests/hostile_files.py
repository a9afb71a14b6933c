"""Files that `load` must not fall for, made the same each time: crafted by hand, and mutated from good ones.

``python hostile_files.py`` loads them all under an audit hook, which cannot be taken off again, and so is run in a
process of its own by `test_hostile_files.py`.  It prints what happened as JSON.

The format is written down here a second time, so that the tests do not hang on the code that they test: a magic line;
lengths of pickle and memory, checksum of the pickle; checksum of all that; pickle; memory; checksum of the memory.
"""

from __future__ import annotations

import copyreg
import gzip
import io
import json
import os
import pickle
import random
import struct
import sys
import time
import warnings
import zipfile
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy

import retrograd as torch

MAGIC = b"retrograd tensors 2\n"
HEADER = 44


def file_of(body: bytes, memory: bytes = b"") -> bytes:
    """A file with right lengths and checksums."""
    header = MAGIC + struct.pack("<QQI", len(body), len(memory), zlib.crc32(body))
    return header + struct.pack("<I", zlib.crc32(header)) + body + memory + struct.pack("<I", zlib.crc32(memory))


def program(*instructions: bytes) -> bytes:
    return b"\x80\x04" + b"".join(instructions) + b"."


# ------------------------------------------------------------------------------------------- instructions of a pickle


def value(thing: Any) -> bytes:
    """The instructions that make a plain value, or `Raw` ones."""
    if isinstance(thing, Raw):
        return thing.code
    if thing is None or isinstance(thing, bool):
        return {None: b"N", True: b"\x88", False: b"\x89"}[thing]
    if isinstance(thing, int):
        octets = thing.to_bytes(thing.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(octets)]) + octets
    if isinstance(thing, float):
        return b"G" + struct.pack(">d", thing)
    if isinstance(thing, str):
        return b"X" + struct.pack("<I", len(thing.encode())) + thing.encode()
    if isinstance(thing, bytes):
        return b"B" + struct.pack("<I", len(thing)) + thing
    if isinstance(thing, tuple):
        return b"(" + b"".join(map(value, thing)) + b"t"
    if isinstance(thing, list):
        return b"](" + b"".join(map(value, thing)) + b"e"
    assert isinstance(thing, dict)
    return b"}(" + b"".join(value(k) + value(v) for k, v in thing.items()) + b"u"


class Raw:
    def __init__(self, code: bytes) -> None:
        self.code = code


def named(module: str, name: str) -> bytes:
    return value(module) + value(name) + b"\x93"


def called(function: bytes, *arguments: Any) -> Raw:
    return Raw(function + value(arguments) + b"R")


def piece(number: Any = 0, dtype: Any = "float32", length: Any = 4) -> Raw:
    return Raw(value(("piece", number, dtype, length)) + b"Q")


OURS = "retrograd.serialization"


def tensor(
    kind: Any = "Tensor", memory: Any = None, offset: Any = 0, shape: Any = (4,), stride: Any = (1,),
    requires_grad: Any = False, attributes: Any = None, bits: Any = (False, False),
) -> Raw:  # fmt: skip
    memory = memory or piece()
    return called(named(OURS, "_tensor"), kind, memory, offset, shape, stride, requires_grad, attributes, bits)


def of_tensor(octets: bytes = bytes(16), **how: Any) -> bytes:
    return file_of(program(tensor(**how).code), octets)


# --------------------------------------------------------------------------------------------------------- by hand

#: What one would like to call, with something to call it with.
TARGETS: list[tuple[str, str, tuple]] = [
    ("os", "system", ("true",)), ("posix", "system", ("true",)), ("nt", "system", ("true",)),
    ("os", "popen", ("true",)), ("os", "execv", ("/bin/true", ["true"])), ("os", "remove", ("/nonexistent",)),
    ("subprocess", "Popen", (["true"],)), ("subprocess", "check_output", (["true"],)),
    ("builtins", "eval", ("1+1",)), ("builtins", "exec", ("x = 1",)), ("builtins", "compile", ("1", "", "eval")),
    ("builtins", "__import__", ("os",)), ("builtins", "getattr", ("", "join")), ("builtins", "open", ("/dev/null",)),
    ("builtins", "breakpoint", ()), ("builtins", "type", ("T", (), {})), ("builtins", "object", ()),
    ("builtins", "range", (10**12,)), ("builtins", "list", ((1,),)), ("builtins", "memoryview", (b"",)),
    ("__builtin__", "eval", ("1+1",)), ("__main__", "os.system", ("true",)),
    ("importlib", "import_module", ("antigravity",)), ("runpy", "run_path", ("/dev/null",)),
    ("codecs", "decode", (b"", "utf-8")), ("_codecs", "encode", ("a", "latin1")), ("copyreg", "_reconstructor", ()),
    ("operator", "attrgetter", ("a",)), ("functools", "partial", ()), ("types", "FunctionType", ()),
    ("types", "CodeType", ()), ("ctypes", "CDLL", (None,)), ("sys", "exit", ()), ("sys", "settrace", (None,)),
    ("pickle", "loads", (b".",)), ("_pickle", "loads", (b".",)), ("marshal", "loads", (b"N",)),
    ("shutil", "rmtree", ("/nonexistent",)), ("socket", "create_connection", (("localhost", 1),)),
    ("webbrowser", "open", ("about:blank",)), ("timeit", "timeit", ("1",)), ("pdb", "run", ("1",)),
    ("numpy", "load", ("/dev/null",)), ("numpy", "fromfile", ("/dev/null",)), ("numpy", "zeros", (10**9,)),
    ("numpy", "ndarray", ((2,),)), ("numpy.core.multiarray", "_reconstruct", ()), ("numpy", "frompyfunc", ()),
    ("numpy._core.multiarray", "_reconstruct", ()), ("torch", "load", ("/dev/null",)),
    ("retrograd", "load", ("/dev/null",)), ("retrograd", "save", (1, "/nonexistent/x")),
    ("retrograd", "zeros", (10**9,)), ("retrograd", "Tensor", ()), ("retrograd.tensor", "Tensor", ()),
    ("retrograd.nn.parameter", "Parameter", ()), (OURS, "load", ("/dev/null",)), (OURS, "pickle.loads", (b".",)),
    (OURS, "os.system", ("true",)), (OURS, "_tensor.__globals__", ()), (OURS, "_tensor.__class__", ()),
    (OURS, "np.load", ("/dev/null",)), (OURS, "_Unpickler", (b".",)), (OURS + "._tensor", "__globals__", ()),
    ("collections", "OrderedDict.__init__.__globals__", ()), ("collections", "namedtuple", ("a", "b")),
    ("collections", "OrderedDict.fromkeys", ((1,),)), ("collections", "defaultdict", ()), ("collections", "deque", ()),
    ("", "", ()), ("os\nsystem", "x", ()), ("ös", "systém", ()),
]  # fmt: skip


def attempts() -> Iterator[tuple[str, bytes]]:
    """Every target by every instruction that calls something."""
    for module, name, arguments in TARGETS:
        there, given = named(module, name), value(arguments)
        label = f"{module}.{name}"
        yield f"{label} by REDUCE", program(there, given, b"R")
        yield f"{label} by NEWOBJ", program(there, given, b"\x81")
        yield f"{label} by NEWOBJ_EX", program(there, given, b"}\x92")
        yield f"{label} by OBJ", program(b"(", there, *map(value, arguments), b"o")
        yield f"{label} as kind", program(tensor(kind=Raw(there)).code)
        if module.isascii() and "\n" not in module:
            line = f"{module}\n{name}\n".encode()
            yield f"{label} by GLOBAL", program(b"c" + line, given, b"R")
            yield f"{label} by INST", program(b"(", *map(value, arguments), b"i" + line)


def nested(depth: int) -> bytes:
    return b")" + b"\x85" * depth


def doubled(times: int) -> bytes:
    """((t, t), (t, t)) …, each level in the memo."""
    return b")\x94" + b"".join(b"h%ch%c\x86\x94" % (i, i) for i in range(times))


def programs() -> Iterator[tuple[str, bytes, bytes]]:
    """Pickles that make no sense, with the memory that follows them."""
    a_tensor, four = tensor().code, bytes(16)
    expanded = tensor(shape=(1 << 40,), stride=(0,)).code
    build = value({"a": 1}) + b"b"
    ordered = named("collections", "OrderedDict")
    for name, body in {
        "attributes of a function": (named(OURS, "_tensor"), build),
        "attributes of a class": (ordered, build),
        "attributes of a dict": (b"}", build),
        "attributes of a set": (b"\x8f", build),
        "attributes of an int": (value(1), build),
        "attributes of nothing": (build,),
        "a state that is a list": (called(ordered).code, b"]b"),
        "a state with numbers for names": (called(ordered).code, value({1: 2}), b"b"),
        "a state that is a pair": (called(ordered).code, b"N", value({"a": 1}), b"\x86b"),
        "a dict called": (b"}", b")R"),
        "a string called": (value("a"), b")R"),
        "called with a list": (ordered, value([1]), b"R"),
        "called with a string": (ordered, value("ab"), b"R"),
        "an OrderedDict of something": (called(ordered, [("a", 1)]).code,),
        "a Counter of a string": (called(named("collections", "Counter"), "aab").code,),
        "a set of a string": (called(named("builtins", "set"), "ab").code,),
        "a frozenset of a tuple": (called(named("builtins", "frozenset"), (1,)).code,),
        "a complex of a string": (called(named("builtins", "complex"), "1").code,),
        "a bytearray of a trillion": (called(named("builtins", "bytearray"), 10**12).code,),
        "a bytearray of a list": (called(named("builtins", "bytearray"), [1]).code,),
        "a set with a list in it": (b"\x8f(]\x90",),
        "a frozenset with a dict in it": (b"(}\x91",),
        "a list for a key": (b"}]Ns",),
        "items into an int": (value(1), value(1), value(1), b"s"),
        "items into a list": (b"]", value(0), value(1), b"s"),
        "items into a list, many": (b"](", value(0), value(1), b"u"),
        "an odd number of items": (b"}(", value(0), b"u"),
        "appended to a dict": (b"}", value(0), b"a"),
        "appended to a set": (b"\x8f(", value(0), b"e"),
        "added to a list": (b"](", value(0), b"\x90"),
        "added to a dict": (b"}(", value(0), b"\x90"),
        "STOP with nothing made": (),
        "POP of nothing": (b"0",),
        "two of what is not there": (b"\x86",),
        "the memo's first, which is not there": (b"h\x00",),
        "a frame larger than the machine": (b"\x95" + b"\xff" * 8, b"N"),
        "bytes larger than the file": (b"\x8e" + struct.pack("<Q", 1 << 40), b"a"),
        "bytes larger than the machine": (b"\x8e" + b"\xff" * 8, b"a"),
        "text larger than the file": (b"\x8d" + struct.pack("<Q", 1 << 40), b"a"),
        "a bytearray larger than the file": (b"\x96" + struct.pack("<Q", 1 << 40), b"a"),
        "an integer larger than the file": (b"\x8b" + struct.pack("<i", (1 << 31) - 1), b"a"),
        "an integer of a negative size": (b"\x8b" + struct.pack("<i", -1), b"a"),
        "text that is none": (b"\x8c\x02\xff\xfe",),
        "half a surrogate": (b"\x8c\x03\xed\xa0\x80", b")R"),
        "a later protocol": (b"\x80\x63N",),
        "a buffer from elsewhere": (b"\x97",),
        "an extension": (b"\x82\xf0",),
        "an extension by two bytes": (b"\x83\xf0\x00",),
        "an extension by four bytes": (b"\x84\xf0\x00\x00\x00",),
        "a reference by text": (b"Ppiece 0\n",),
        "a reference that is a number": (value(0), b"Q"),
        "a reference that is an empty tuple": (b")Q",),
        "a reference to something else": (value(("block", 0, "float32", 4)), b"Q"),
        "a reference with a list in it": (value(("piece", [], "float32", 4)), b"Q"),
        "a key of many levels": (b"}", nested(200_000), b"Ns"),
        "a key of many levels, among others": (b"}(", nested(200_000), b"Nu"),
        "a member of many levels": (b"\x8f(", nested(200_000), b"\x90"),
        "a frozen member of many levels": (b"(", nested(200_000), b"\x91"),
        "a listed member of many levels": (named("builtins", "set"), b"](", nested(200_000), b"e\x85R"),
        "a key of a quintillion parts": (b"}", doubled(60), b"Ns"),
        "a quintillion parts called": (b"}", doubled(60), b"R"),
        "a quintillion parts made an instance of": (doubled(60), b")\x81"),
        "a quintillion parts for a reference": (doubled(60), b"Q"),
        "a quintillion parts for a kind": (tensor(kind=Raw(doubled(60)), memory=Raw(b"N")).code,),
        "the same bytes a thousand times": (
            value(bytes(10_000)), b"\x94", named("builtins", "bytearray"), b"\x94",
            b"(", b"h\x01h\x00\x85R" * 1000, b"t",
        ),
        "the same state a thousand times": (
            value({str(i): i for i in range(1000)}), b"\x94", ordered, b"\x94", b"(", b"h\x01)Rh\x00b" * 1000, b"t",
        ),
        "a size of names": (called(named(OURS, "_size"), ("a",)).code,),
        "a size of a list": (called(named(OURS, "_size"), [1]).code,),
        "no such dtype": (called(named(OURS, "_dtype"), "float7").code,),
        "a dtype of NumPy's": (called(named(OURS, "_dtype"), "object").code,),
        "a dtype that is a number": (called(named(OURS, "_dtype"), 7).code,),
        "a dtype of nothing": (called(named(OURS, "_dtype")).code,),
        "no such device": (called(named(OURS, "_device"), "moon").code,),
        "a device that is a number": (called(named(OURS, "_device"), 0).code,),
        "a tensor of nothing": (called(named(OURS, "_tensor")).code,),
    }.items():  # fmt: skip
        yield name, program(*body), b""
    for name, body in {
        "a tensor called": (a_tensor, b")R"),
        "an instance of a tensor": (a_tensor, b")\x81"),
        "attributes of a tensor": (a_tensor, build),
        "attributes of memory": (piece().code, build),
        "memory written by the pickle": (piece().code, value(0), value(1.0), b"s"),
        "a tensor written by the pickle": (a_tensor, value(0), value(1.0), b"s"),
        "a tensor extended by the pickle": (a_tensor, b"(", value(1.0), b"e"),
        "a set of a trillion": (named("builtins", "set"), expanded, b"\x85R"),
        "called with a trillion": (ordered, expanded, b"R"),
        "a size of a trillion": (named(OURS, "_size"), expanded, b"\x85R"),
        "a shape of a trillion": (tensor(shape=Raw(expanded)).code,),
        "attributes by the trillion": (tensor(attributes=Raw(expanded)).code,),
        "a trillion for a kind": (tensor(kind=Raw(expanded)).code,),
        "memory for a key": (b"}", piece().code, b"Ns"),
    }.items():
        yield name, program(*body), four


def tensors() -> Iterator[tuple[str, bytes]]:
    """Tensors that cannot be."""
    most = (1 << 63) - 1
    for how in (
        {"shape": (5,)}, {"shape": (100,)}, {"shape": (most,)}, {"shape": (1 << 64,)}, {"shape": (-1,)},
        {"shape": (-4,), "stride": (-1,)}, {"shape": (4, 4)}, {"shape": (4, 4), "stride": (1, 1)}, {"shape": ()},
        {"shape": [4]}, {"shape": (4.0,)}, {"shape": (True,)}, {"shape": ("4",)}, {"shape": None}, {"shape": "4"},
        {"shape": (1,) * 65, "stride": (1,) * 65}, {"shape": (most, most), "stride": (0, 0)},
        {"shape": (2,), "stride": (4,)}, {"shape": (2,), "stride": (most,)}, {"shape": (2,), "stride": (-1,)},
        {"shape": (3,), "stride": (1 << 63,)}, {"shape": (0,), "stride": (-1,)}, {"shape": (0, -1), "stride": (1, 1)},
        {"shape": (0, most, most), "stride": (0, 0, 0)}, {"stride": [1]}, {"stride": (1.0,)}, {"stride": None},
        {"stride": ()}, {"stride": (1, 1)}, {"offset": -1}, {"offset": 1}, {"offset": 4}, {"offset": most},
        {"offset": 1 << 64}, {"offset": 0.0}, {"offset": False}, {"offset": None}, {"offset": "0"},
        {"offset": -1, "shape": (0,)}, {"kind": "Storage"}, {"kind": None}, {"kind": 1}, {"kind": ("Tensor",)},
        {"memory": Raw(b"N")}, {"memory": Raw(value(bytes(16)))}, {"memory": Raw(value([0.0] * 4))},
        {"memory": tensor()}, {"memory": piece(1)}, {"memory": piece(-1)}, {"memory": piece(False)},
        {"memory": piece(0.0)}, {"memory": piece("0")}, {"memory": piece(length=-4)}, {"memory": piece(length=3)},
        {"memory": piece(length=5)}, {"memory": piece(length=1 << 40)}, {"memory": piece(length=1 << 70)},
        {"memory": piece(length=4.0)}, {"memory": piece(length="4")}, {"memory": piece(length=None)},
        {"memory": piece(dtype="float7")}, {"memory": piece(dtype="object")}, {"memory": piece(dtype="O")},
        {"memory": piece(dtype="str")}, {"memory": piece(dtype="void")}, {"memory": piece(dtype="float64")},
        {"memory": piece(dtype="int8")}, {"memory": piece(dtype="")}, {"memory": piece(dtype=None)},
        {"memory": piece(dtype=["float32"])}, {"memory": Raw(piece().code + b"0" + piece(length=2).code)},
        {"memory": Raw(piece(length=2).code + b"0" + piece(0, "int32", 2).code)},
        {"memory": piece(dtype="int32"), "requires_grad": True}, {"requires_grad": 1}, {"requires_grad": None},
        {"attributes": [1]}, {"attributes": {1: 2}}, {"attributes": "ab"}, {"attributes": (("a", 1),)},
        {"bits": (True, False)}, {"bits": (1, 0)}, {"bits": (True,)}, {"bits": None}, {"bits": "no"}, {"bits": (2, 3)},
    ):  # fmt: skip
        yield f"a tensor with {next(iter(how))}: {how}", of_tensor(**how)  # type: ignore[arg-type]
    yield "memory that nothing refers to", file_of(program(b"N"), bytes(16))
    yield "a truth value of 2", of_tensor(b"\x00\x01\x02\x01", memory=piece(dtype="bool"))


def other_files() -> Iterator[tuple[str, bytes]]:
    """What is no file of ours, or one with a broken header."""
    good = file_of(program(b"N"))
    yield from {
        "nothing": b"", "a letter": b"r", "half of the magic": MAGIC[:10], "the magic": MAGIC, "text": b"weights" * 50,
        "zeros": bytes(1000), "a later version": MAGIC.replace(b"2", b"3") + good[20:],
        "the version before": MAGIC.replace(b"2", b"1") + program(b"N"), "upper case": MAGIC.upper() + good[20:],
        "a bare pickle": pickle.dumps([1]), "the end of lines of Windows": good.replace(b"\n", b"\r\n"),
        "gzip": gzip.compress(good), "two bytes before": b"\xef\xbb" + good,
    }.items()  # fmt: skip
    for name in ("save", "savez"):
        buffer = io.BytesIO()
        getattr(numpy, name)(buffer, numpy.arange(4))
        yield f"numpy.{name}", buffer.getvalue()
    for name, members in {
        "an archive as torch's": ("archive/data.pkl", "archive/version", "archive/data/0"),
        "an archive with a name twice": ("archive/data.pkl", "archive/data.pkl"),
        "an archive that climbs": ("../../data.pkl", "/data.pkl"),
    }.items():
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for member in members:
                archive.writestr(member, bytes(1_000_000))
        yield name, buffer.getvalue()
        yield f"{name}, with our magic", MAGIC + buffer.getvalue()
        yield f"{name}, of the wrong size", buffer.getvalue().replace(struct.pack("<I", 1_000_000), b"\xff" * 4)
    body, memory = program(a := tensor().code), bytes(16)
    checked = zlib.crc32(body)
    for name, numbers in {
        "a longer pickle": (len(body) + 1, 16, checked), "a shorter pickle": (len(body) - 1, 16, checked),
        "no pickle": (0, 16, checked), "a pickle of an exabyte": (1 << 60, 16, checked),
        "a pickle of all bytes": ((1 << 64) - 1, 16, checked), "more memory": (len(body), 17, checked),
        "less memory": (len(body), 15, checked), "no memory": (len(body), 0, checked),
        "an exabyte of memory": (len(body), 1 << 60, checked), "all memory": (len(body), (1 << 64) - 1, checked),
        "another checksum": (len(body), 16, checked ^ 1),
    }.items():  # fmt: skip
        header = MAGIC + struct.pack("<QQI", *numbers)
        rest = body + memory + struct.pack("<I", zlib.crc32(memory))
        yield f"a header that says: {name}", header + struct.pack("<I", zlib.crc32(header)) + rest
        yield f"a header that says: {name}, unchecked", header + rest
    large = program(tensor(memory=piece(length=1 << 38), shape=(1 << 38,)).code)
    header = MAGIC + struct.pack("<QQI", len(large), 1 << 40, zlib.crc32(large))
    yield "a terabyte that is not there", header + struct.pack("<I", zlib.crc32(header)) + large + memory
    yield "a pickle in a pickle", file_of(program(a) + b"N", memory)[:-1]


def crafted() -> Iterator[tuple[str, bytes]]:
    """Every file that is to be refused, with a name."""
    for name, body in attempts():
        yield name, file_of(body, bytes(16) if name.endswith("as kind") else b"")
    for name, body, memory in programs():
        yield name, file_of(body, memory)
    yield from tensors()
    yield from other_files()
    yield "no STOP", file_of(b"\x80\x04N")
    yield "no pickle at all", file_of(b"")


def instructions() -> Iterator[bytes]:
    """Every instruction after a few others: some of it makes sense, and loads."""
    for code in range(256):
        for before in (b"", b"N", b"(", b"NN", b"}(NN", b"](N"):
            yield file_of(b"\x80\x04" + before + bytes([code]) + b".")


# ----------------------------------------------------------------------------------------------------------- mutated


def samples() -> list[Any]:
    """Objects whose files are small and have every kind of thing in them."""
    generator = numpy.random.default_rng(0)
    x = torch.from_numpy(generator.standard_normal((3, 4)))
    state = OrderedDict(weight=torch.nn.Parameter(x[:2].float()), steps=torch.tensor(7))
    state._metadata = {"": {"version": 1}}  # type: ignore[attr-defined]
    return [
        {"net": state, "lr": 0.1, "names": ["a", "b"], "flags": {1, 2}, "raw": b"\x00\xff", "none": None, "n": 1 << 70},
        [x, x[1], x.t(), x[:, ::2], torch.zeros(0, 3), torch.tensor(True), torch.arange(5, dtype=torch.int16)],
        (torch.tensor([1 + 2j]).conj(), torch.ones(3, dtype=torch.bfloat16), torch.Size([2, 3]), torch.float16,
         torch.device("cpu"), Counter("aab"), frozenset([1]), bytearray(b"xy"), 1j, torch.ones(1).expand(3)),
    ]  # fmt: skip


def saved(thing: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer.getvalue()


def in_words(thing: Any) -> str:
    """All there is to an object: what two must have in common to be the same."""
    if isinstance(thing, torch.Tensor):
        numbers = thing.detach().resolve_conj().to(torch.complex128).numpy().tobytes().hex()
        return f"{type(thing).__name__} {thing.dtype} {thing.shape} {thing.stride()} {thing.requires_grad} {numbers}"
    if isinstance(thing, dict):
        extra = in_words(vars(thing)) if type(thing) is OrderedDict and vars(thing) else ""
        return f"{type(thing).__name__} {[(in_words(k), in_words(v)) for k, v in thing.items()]} {extra}"
    if isinstance(thing, (list, tuple)):
        return f"{type(thing).__name__} {[in_words(part) for part in thing]}"
    return f"{type(thing).__name__} {thing!r}"


def mutated(good: list[bytes]) -> Iterator[tuple[int, str, bytes]]:
    """(which of the files it was, what was done, the file): checksums as they were."""
    chance = random.Random(0)
    for which, raw in enumerate(good):
        for end in range(len(raw)):
            yield which, "cut", raw[:end]
        for bit in range(0, 8 * len(raw), 3):
            flipped = bytearray(raw)
            flipped[bit // 8] ^= 1 << bit % 8
            yield which, "bit", bytes(flipped)
        for _ in range(600):
            how = chance.choice(("octet", "bits", "swap", "delete", "insert", "repeat", "zero", "splice", "shift"))
            yield which, how, change(how, raw, good, chance)
        yield which, "more", raw + raw
        yield which, "more", raw + b"\x00"


def change(how: str, raw: bytes, good: list[bytes], chance: random.Random) -> bytes:
    """One mutation."""
    a, b = sorted(chance.sample(range(len(raw)), 2))
    n = chance.randint(1, 16)
    data = bytearray(raw)
    if how == "octet":
        data[a] = chance.randrange(256)
    elif how == "bits":
        for _ in range(n):
            data[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    elif how == "swap":
        n = min(n, b - a, len(raw) - b)
        data[a : a + n], data[b : b + n] = data[b : b + n], data[a : a + n]
    elif how == "delete":
        del data[a : a + n]
    elif how == "insert":
        data[a:a] = chance.randbytes(n)
    elif how == "repeat":
        data[b:b] = data[a : a + n]
    elif how == "zero":
        data[a : a + n] = bytes(len(data[a : a + n]))
    elif how == "splice":
        other = chance.choice(good)
        data[a:] = other[min(a, len(other)) :]
    else:
        data[a:b] = data[a + 1 : b] + data[a : a + 1]
    return bytes(data)


def disguised(good: list[bytes], number: int = 2500) -> Iterator[bytes]:
    """Mutated pickles and memory with checksums that are right: what somebody who means harm would write."""
    chance = random.Random(1)
    for raw in good:
        size = struct.unpack("<Q", raw[20:28])[0]
        body, memory = raw[HEADER : HEADER + size], raw[HEADER + size : -4]
        for _ in range(number):
            how = chance.choice(("octet", "octet", "bits", "swap", "delete", "insert", "repeat", "zero", "splice"))
            changed = change(how, body, [r[HEADER:-4] for r in good], chance)
            yield file_of(changed, memory if chance.random() < 0.9 else memory[: chance.randrange(len(memory))])


# ------------------------------------------------------------------------------------------------------- the experiment


class Registered:
    """Known to pickles by number, and in the cache of those numbers."""


def memory_used() -> float:
    """The most that this process has had, in MiB, where that is known."""
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Loads everything, and reports."""
    copyreg.add_extension(Registered.__module__, "Registered", 0xF0)
    pickle.loads(pickle.dumps(Registered, 2))
    things = samples()
    good = [saved(thing) for thing in things]
    words = [in_words(thing) for thing in things]
    files: dict[str, list[Any]] = {  # made before the hook is there
        "crafted": list(crafted()), "mutated": list(mutated(good)), "disguised": list(disguised(good)),
        "instructions": list(instructions()),
    }  # fmt: skip
    for raw, expected in zip(good, words):
        assert in_words(torch.load(io.BytesIO(raw))) == expected
    for raw in good:  # whatever is imported late
        for weights_only in (True, False):
            torch.load(io.BytesIO(raw), weights_only=weights_only)

    seen: Counter[str] = Counter()
    watching = [False]

    def hook(event: str, arguments: tuple) -> None:
        if watching[0]:
            seen[f"{event} {arguments[1]}" if event == "object.__getattr__" else event] += 1

    sys.addaudithook(hook)
    report: dict[str, Any] = {"problems": [], "loaded": Counter(), "refused": Counter()}
    slowest = 0.0
    memory = memory_used()

    def attempt(family: str, label: str, raw: bytes, expected: str | None, may_load: bool) -> None:
        nonlocal slowest
        start = time.perf_counter()
        watching[0] = True
        try:
            result = torch.load(io.BytesIO(raw))
        except torch.serialization.LoadError:
            watching[0] = False
            report["refused"][family] += 1
        except BaseException as error:
            watching[0] = False
            report["problems"].append(f"{family}: {label}: {type(error).__name__}: {error}"[:300])
        else:
            watching[0] = False
            report["loaded"][family] += 1
            if not may_load:
                report["problems"].append(f"{family}: {label}: loaded as {type(result)}")
            elif expected is not None and in_words(result) != expected:
                report["problems"].append(f"{family}: {label}: loaded, but is not what was saved")
        slowest = max(slowest, time.perf_counter() - start)

    for name, raw in files["crafted"]:
        attempt("crafted", name, raw, None, may_load=False)
    for which, how, raw in files["mutated"]:
        # Was nothing changed, or only something added after the end; or has it become another of the good files?
        same = [words for words, whole in zip(words, good) if raw[: len(whole)] == whole]
        attempt("mutated", f"{how} of {which}", raw, same[0] if same else None, may_load=bool(same))
    for family in ("disguised", "instructions"):
        for raw in files[family]:
            attempt(family, raw[HEADER:].hex(), raw, None, may_load=True)
    report["events"] = seen.copy()
    report["memory"] = memory_used() - memory
    report["slowest"] = slowest
    report["files"] = {family: len(these) for family, these in files.items()}

    # And would the hook have seen it?
    seen.clear()
    watching[0] = True
    torch.load(io.BytesIO(file_of(program(named("os", "system"), value(("exit 0",)), b"R"))), weights_only=False)
    watching[0] = False
    report["canary"] = sorted(seen)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # nested tuples by the hundred thousand are not worth waiting for

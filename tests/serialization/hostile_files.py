"""Files that `load` must not fall for, made the same each time: crafted by hand, and mutated from good ones.

``python hostile_files.py [thorough]`` loads them all under an audit hook, which cannot be taken off again, and so is
run in a process of its own by `test_hostile_files.py`.  It prints what happened as JSON.

The archives are written by Python's own zipfile, so that the tests do not hang on the code that they test.
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
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy

import retrograd as torch


def file_of(body: bytes, *memories: bytes, **others: bytes) -> bytes:
    """An archive of torch's kind with this pickle and these storages, and with right sizes and checksums."""
    return archive_of({"data.pkl": body, **{f"data/{i}": memory for i, memory in enumerate(memories)}, **others})


def archive_of(members: dict[str, bytes], directory: str = "archive/", compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in {"version": b"3\n", "byteorder": b"little", **members}.items():
            archive.writestr(zipfile.ZipInfo(directory + name), data, compression)
    return buffer.getvalue()


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


def piece(key: Any = "0", kind: Any = "FloatStorage", length: Any = 4, location: Any = "cpu") -> Raw:
    """A reference to a storage."""
    kind = kind if isinstance(kind, Raw) else Raw(named("torch", kind))
    return Raw(value(("storage", kind, key, location, length)) + b"Q")


UTILS = "torch._utils"
FROM_TYPE = named("torch._tensor", "_rebuild_from_type_v2")
PLAIN = named(UTILS, "_rebuild_tensor_v2")
HOOKS = Raw(named("collections", "OrderedDict") + b")R")


def arguments_of(
    memory: Any = None, offset: Any = 0, shape: Any = (4,), stride: Any = (1,), requires_grad: Any = False,
    hooks: Any = HOOKS, metadata: Any = None,
) -> tuple:  # fmt: skip
    return (memory or piece(), offset, shape, stride, requires_grad, hooks, metadata)


def tensor(**how: Any) -> Raw:
    return called(PLAIN, *arguments_of(**how))


def of_type(kind: Any = None, func: Any = None, arguments: Any = None, state: Any = None) -> Raw:
    """A tensor of a subclass, or with attributes."""
    return called(
        FROM_TYPE, func or Raw(PLAIN), kind or Raw(named("torch", "Tensor")), arguments or arguments_of(), state
    )


def parameter(data: Any = None, requires_grad: Any = False, hooks: Any = HOOKS) -> Raw:
    return called(named(UTILS, "_rebuild_parameter"), data or tensor(), requires_grad, hooks)


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
    ("codecs", "decode", (b"", "utf-8")), ("_codecs", "encode", ("a", "rot13")), ("_codecs", "decode", (b"", "zip")),
    ("copyreg", "_reconstructor", ()),
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
    ("retrograd.nn.parameter", "Parameter", ()), ("torch.serialization", "load", ("/dev/null",)),
    ("torch.serialization", "pickle.loads", (b".",)), ("torch.serialization", "os.system", ("true",)),
    (UTILS, "_rebuild_tensor_v2.__globals__", ()), (UTILS, "_rebuild_tensor_v2.__class__", ()),
    (UTILS + "._rebuild_tensor_v2", "__globals__", ()), ("torch", "Tensor", (10**12,)), ("torch", "Tensor", ()),
    ("torch", "FloatTensor", (10**12,)), ("torch", "FloatStorage", (10**12,)), ("torch", "float32", ()),
    ("torch.storage", "UntypedStorage", (10**12,)), ("torch.storage", "UntypedStorage.from_file", ("/dev/null",)),
    ("torch.nn.parameter", "Parameter", ()), ("torch.nn", "Linear", (2, 2)), ("torch.hub", "load", ("a",)),
    ("torch.jit", "load", ("/dev/null",)), ("torch.utils.data", "DataLoader", ([],)), ("torch", "zeros", (10**12,)),
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
        if (module, name) not in (("torch", "Tensor"), ("torch.nn.parameter", "Parameter")):
            yield f"{label} as kind", program(of_type(kind=Raw(there)).code)
        yield f"{label} as func", program(of_type(func=Raw(there), arguments=arguments).code)
        if (module, name) != ("torch", "FloatStorage"):
            yield f"{label} as storage", program(piece(kind=Raw(there)).code)
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
        "attributes of a function": (PLAIN, build),
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
        "a reference to something else": (value(("block", Raw(named("torch", "FloatStorage")), "0", "cpu", 4)), b"Q"),
        "a reference with a list in it": (value(("storage", [], "0", "cpu", 4)), b"Q"),
        "a key of many levels": (b"}", nested(200_000), b"Ns"),
        "a key of many levels, among others": (b"}(", nested(200_000), b"Nu"),
        "a member of many levels": (b"\x8f(", nested(200_000), b"\x90"),
        "a frozen member of many levels": (b"(", nested(200_000), b"\x91"),
        "a listed member of many levels": (named("builtins", "set"), b"](", nested(200_000), b"e\x85R"),
        "a key of a quintillion parts": (b"}", doubled(60), b"Ns"),
        "a quintillion parts called": (b"}", doubled(60), b"R"),
        "a quintillion parts made an instance of": (doubled(60), b")\x81"),
        "a quintillion parts for a reference": (doubled(60), b"Q"),
        "a quintillion parts for a kind": (of_type(kind=Raw(doubled(60)), arguments=(1,)).code,),
        "a quintillion parts for arguments": (of_type(arguments=Raw(doubled(60))).code,),
        "the same bytes a thousand times": (
            value(bytes(10_000)), b"\x94", named("builtins", "bytearray"), b"\x94",
            b"(", b"h\x01h\x00\x85R" * 1000, b"t",
        ),
        "the same state a thousand times": (
            value({str(i): i for i in range(1000)}), b"\x94", ordered, b"\x94", b"(", b"h\x01)Rh\x00b" * 1000, b"t",
        ),
        "a size of names": (called(named("torch", "Size"), ("a",)).code,),
        "a size of a list": (called(named("torch", "Size"), [1]).code,),
        "no such dtype": (named("torch", "float7"),),
        "a dtype of NumPy's": (named("torch", "object"),),
        "a dtype called": (called(named("torch", "float32"), 7).code,),
        "no such device": (called(named("torch", "device"), "moon").code,),
        "a device that is a number": (called(named("torch", "device"), 0).code,),
        "no such layout": (called(named("torch.serialization", "_get_layout"), "torch.sparse_nothing").code,),
        "a layout of a list": (called(named("torch.serialization", "_get_layout"), []).code,),
        "a tensor of nothing": (called(PLAIN).code,),
        "a parameter of nothing": (parameter(data=Raw(b"N")).code,),
        "bytes of another encoding": (called(named("_codecs", "encode"), "a", "utf-8").code,),
        "bytes of a codec": (called(named("_codecs", "encode"), "a", "zlib_codec").code,),
        "bytes of a trillion": (called(named("builtins", "bytes"), 10**12).code,),
        "the same text encoded a thousand times": (
            value("x" * 10_000), b"\x94", named("_codecs", "encode"), b"\x94", value("latin1"), b"\x94",
            b"(", b"h\x01h\x00h\x02\x86R" * 1000, b"t",
        ),
        "a name of Python 2 that is not safe": (b"0c__builtin__\neval\n",),
    }.items():  # fmt: skip
        yield name, program(*body), b""
    for name, body in {
        "a tensor called": (a_tensor, b")R"),
        "an instance of a tensor": (a_tensor, b")\x81"),
        "attributes of a tensor": (a_tensor, build),
        "attributes of a storage": (piece().code, build),
        "memory written by the pickle": (piece().code, value(0), value(1.0), b"s"),
        "a tensor written by the pickle": (a_tensor, value(0), value(1.0), b"s"),
        "a tensor extended by the pickle": (a_tensor, b"(", value(1.0), b"e"),
        "a set of a trillion": (named("builtins", "set"), expanded, b"\x85R"),
        "called with a trillion": (ordered, expanded, b"R"),
        "a size of a trillion": (named("torch", "Size"), expanded, b"\x85R"),
        "a shape of a trillion": (tensor(shape=Raw(expanded)).code,),
        "attributes by the trillion": (of_type(state=Raw(expanded)).code,),
        "metadata by the trillion": (tensor(metadata=Raw(expanded)).code,),
        "a trillion for a kind": (of_type(kind=Raw(expanded)).code,),
        "a trillion for a function": (of_type(func=Raw(expanded)).code,),
        "a trillion for arguments": (of_type(arguments=Raw(expanded)).code,),
        "a trillion for hooks": (tensor(hooks=Raw(expanded)).code,),
        "a list for a key": (b"}]Ns",),
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
        {"offset": -1, "shape": (0,)}, {"memory": Raw(b"N")}, {"memory": Raw(value(bytes(16)))},
        {"memory": Raw(value([0.0] * 4))}, {"memory": tensor()}, {"memory": piece("1")}, {"memory": piece("-1")},
        {"memory": piece(0)}, {"memory": piece(None)}, {"memory": piece("../data.pkl")}, {"memory": piece("0/../0")},
        {"memory": piece("")}, {"memory": piece(["0"])}, {"memory": piece(length=-4)}, {"memory": piece(length=3)},
        {"memory": piece(length=5)}, {"memory": piece(length=1 << 40)}, {"memory": piece(length=1 << 70)},
        {"memory": piece(length=4.0)}, {"memory": piece(length="4")}, {"memory": piece(length=None)},
        {"memory": piece(length=True)}, {"memory": piece(kind="Float7Storage")}, {"memory": piece(kind="float32")},
        {"memory": piece(kind="FloatTensor")}, {"memory": piece(kind="DoubleStorage")},
        {"memory": piece(kind="CharStorage")}, {"memory": piece(kind=Raw(b"N"))},
        {"memory": piece(kind=Raw(value("FloatStorage")))}, {"memory": piece(kind=Raw(named("torch", "Tensor")))},
        {"memory": piece(kind=Raw(named("torch.storage", "UntypedStorage")), length=16)},
        {"memory": piece(kind=Raw(named("torch.storage", "TypedStorage")))},
        {"memory": piece(location="moon")}, {"memory": piece(location="cuda:0")}, {"memory": piece(location=0)},
        {"memory": piece(location=None)}, {"memory": piece(location="c" * 100_000)},
        {"memory": Raw(piece().code + b"0" + piece(kind="IntStorage").code)},
        {"memory": piece(kind="IntStorage"), "requires_grad": True}, {"requires_grad": 1}, {"requires_grad": None},
        {"hooks": Raw(value([1]))}, {"hooks": {"a": 1}}, {"hooks": "ab"}, {"hooks": 7},
        {"metadata": {"conj": True}}, {"metadata": {"conj": 1}}, {"metadata": {"color": True}}, {"metadata": "no"},
        {"metadata": {1: True}}, {"metadata": [("conj", True)]}, {"metadata": (True, False)},
    ):  # fmt: skip
        yield f"a tensor with {next(iter(how))}: {how}", of_tensor(**how)  # type: ignore[arg-type]
    for name, code in {
        "attributes that are a list": of_type(state=[1]), "attributes that are numbered": of_type(state={1: 2}),
        "attributes that are text": of_type(state="ab"), "attributes that are pairs": of_type(state=(("a", 1),)),
        "slots of a tensor": of_type(state=(None, {"_numbers_": 1})),
        "the edge of a tensor": of_type(state=({}, {"_edge_": 1})),
        "a tensor made by a tensor": of_type(func=Raw(FROM_TYPE)),
        "a tensor of no arguments": of_type(arguments=Raw(b")")),
        "a tensor of a list of arguments": of_type(arguments=[1]), "a parameter of a number": parameter(data=7),
        "a parameter that requires text": parameter(requires_grad="yes"),
        "a parameter of ints that requires grad": parameter(tensor(memory=piece(kind="IntStorage")), True),
        "a bare storage of another length": piece(length=5),
    }.items():  # fmt: skip
        yield name, file_of(program(code.code), bytes(16))
    yield "a truth value of 2", of_tensor(b"\x00\x01\x02\x01", memory=piece(kind="BoolStorage"))
    yield "a storage that ends within an element", of_tensor(bytes(15))
    yield "a storage that has more", of_tensor(bytes(20))


def other_files() -> Iterator[tuple[str, bytes]]:
    """What is no archive of torch's, or one whose table of contents lies."""
    good = file_of(program(tensor().code), bytes(16))
    yield from {
        "nothing": b"", "a letter": b"P", "half of the magic": b"PK", "the magic": b"PK\3\4", "text": b"weights" * 50,
        "zeros": bytes(1000), "our own format of before": b"retrograd tensors 2\n" + bytes(60),
        "the version before": b"retrograd tensors 1\n" + bytes(60), "a bare pickle": pickle.dumps([1]),
        "the end of lines of Windows": good.replace(b"\n", b"\r\n"), "gzip": gzip.compress(good),
        "two bytes before": b"\xef\xbb" + good, "a tar of before 2018": b"storages" + bytes(1000),
        "an empty archive": archive_of({})[-22:], "a magic of zeros": bytes(4) + good[4:],
        "no members but the magic": b"PK\3\4" + bytes(26) + b"PK\5\6" + bytes(18),
    }.items()  # fmt: skip
    for name in ("save", "savez", "savez_compressed"):
        buffer = io.BytesIO()
        getattr(numpy, name)(buffer, numpy.arange(4))
        yield f"numpy.{name}", buffer.getvalue()
    body, zeros = program(tensor().code), bytes(1_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, members in {
            "no pickle": {"data/0": bytes(16)}, "a pickle of zeros": {"data.pkl": zeros}, "nothing within": {},
            "TorchScript": {"data.pkl": body, "constants.pkl": body, "data/0": bytes(16)},
            "a version that is none": {"data.pkl": body, "data/0": bytes(16), "version": b"three"},
            "a version of later": {"data.pkl": body, "data/0": bytes(16), "version": b"11\n"},
            "a version of a million": {"data.pkl": body, "data/0": bytes(16), "version": b"1" * 1_000_000},
            "a byte order that is none": {"data.pkl": body, "data/0": bytes(16), "byteorder": b"middle"},
            "a storage that is missing": {"data.pkl": body},
            "a storage that is elsewhere": {"data.pkl": body, "0": zeros},
        }.items():  # fmt: skip
            yield name, archive_of(members)
        yield "a bomb", archive_of({"data.pkl": body, "data/0": bytes(1 << 26)}, compression=zipfile.ZIP_DEFLATED)
        yield "a compressed pickle", archive_of({"data.pkl": body, "data/0": bytes(16)}, compression=zipfile.ZIP_BZIP2)
        yield "members that climb", archive_of({"data.pkl": body, "data/0": bytes(16), "../../x": b""}, "")
        yield "members from the root", archive_of({"data.pkl": body, "data/0": bytes(16)}, "/")[:-1]
        for directory, name in (("archive/", "data.pkl"), ("archive/", "data/0"), ("other/", "data.pkl")):
            buffer = io.BytesIO(good)
            with zipfile.ZipFile(buffer, "a") as archive:
                archive.writestr(zipfile.ZipInfo(directory + name), body)
            yield f"a second {directory}{name}", buffer.getvalue()
    table = good.index(b"PK\1\2")
    entries = [i for i in range(len(good)) if good[i : i + 4] == b"PK\1\2"]
    end = good.index(b"PK\5\6")
    for number, at in enumerate(entries):
        fields = list(struct.unpack("<4s6H3I5H2I", good[at : at + 46]))
        for name, where, what in [
            ("encrypted", 3, 1), ("compressed", 4, 8), ("of an unknown method", 4, 99), ("longer", 9, fields[9] + 1),
            ("of another packed size", 8, fields[8] + 1), ("of 4 GiB", 9, 0xFFFFFFFF), ("with a longer name", 10, 200),
            ("with a shorter name", 10, 5), ("with a field of 60000 bytes", 11, 60000), ("with a comment", 12, 60000),
            ("on another disk", 13, 1), ("elsewhere", 16, fields[16] + 1), ("at the end", 16, len(good)),
            ("far away", 16, 0xFFFFFFFE), ("in the table", 16, table), ("of another checksum", 7, fields[7] ^ 1),
        ]:  # fmt: skip
            lying = fields[:where] + [what] + fields[where + 1 :]
            if name in ("longer", "of 4 GiB"):
                lying[8] = what
            if name == "elsewhere" and number == 0:
                continue  # it would begin before the archive does
            if name == "of another checksum" and number > 3:
                continue
            yield f"a member {number} that is {name}", good[:at] + struct.pack("<4s6H3I5H2I", *lying) + good[at + 46 :]
    for name, fields in {
        "more members": (0, 0, 5, 5, end - table, table), "fewer members": (0, 0, 3, 3, end - table, table),
        "60000 members": (0, 0, 60000, 60000, end - table, table), "no members": (0, 0, 0, 0, 0, table),
        "a longer table": (0, 0, 4, 4, end - table + 1, table),
        "a table elsewhere": (0, 0, 4, 4, end - table, table + 1),
        "a table of 4 GiB": (0, 0, 4, 4, 0xFFFFFFFF, table), "a table far away": (0, 0, 4, 4, end - table, 0xFFFFFFFF),
        "another disk": (1, 1, 4, 4, end - table, table),
    }.items():  # fmt: skip
        yield f"an end that says: {name}", good[:end] + b"PK\5\6" + struct.pack("<4H2IH", *fields, 0)
    wide = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1 << 60, 1 << 60, 1 << 60, 0)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    yield "an end of 64 bits with all members there could be", good[:end] + wide + locator + good[end:]
    yield "an end of 64 bits far away", good[:end] + struct.pack("<4sIQI", b"PK\6\7", 0, 1 << 62, 1) + good[end:]
    overlapping = bytearray(good)
    for at in entries[1:]:  # every member is the first
        overlapping[at + 42 : at + 46] = bytes(4)
    yield "members that overlap", bytes(overlapping)
    for part in ("PK\3\4", "archive/data/0", "archive/data.pkl"):
        yield f"a header without its {part!r}", good.replace(part.encode("latin1"), b"X" * len(part), 1)
    terabyte = tensor(memory=piece(length=1 << 38), shape=(1 << 38,))
    yield "a terabyte that is not there", file_of(program(terabyte.code), bytes(16))


def legacy_files() -> Iterator[tuple[str, bytes]]:
    """The older format: pickles, then memory."""
    head = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    magic, version, facts = (pickle.dumps(thing, 2) for thing in head)
    old = Raw(value(("storage", Raw(named("torch", "FloatStorage")), "0", "cpu", 4, None)) + b"Q")
    body, keys = program(tensor(memory=old).code), pickle.dumps(["0"], 2)
    memory = struct.pack("<q", 4) + bytes(16)
    assert torch.load(io.BytesIO(magic + version + facts + body + keys + memory)).tolist() == [0, 0, 0, 0]

    def pid(*parts: Any) -> bytes:
        return program(tensor(memory=Raw(value(parts) + b"Q")).code)

    floats = Raw(named("torch", "FloatStorage"))
    begun = magic + version + facts
    yield from {
        "old: nothing but the magic": magic,
        "old: another version": magic + pickle.dumps(1002, 2) + facts + body + keys,
        "old: the magic twice": magic + magic + facts + body + keys + memory,
        "old: a version that runs code": magic + program(named("os", "system"), value(("true",)), b"R"),
        "old: facts that run code": magic + version + program(named("os", "system"), value(("true",)), b"R"),
        "old: names that run code": begun + body + program(named("os", "system"), value(("true",)), b"R"),
        "old: code": begun + program(named("os", "system"), value(("true",)), b"R"),
        "old: no names": begun + body, "old: no memory": begun + body + keys,
        "old: less memory": begun + body + keys + memory[:-1],
        "old: other names": begun + body + pickle.dumps(["1"], 2) + memory,
        "old: more names": begun + body + pickle.dumps(["0", "1"], 2) + memory + memory,
        "old: no name": begun + body + pickle.dumps([], 2),
        "old: a name twice": begun + body + pickle.dumps(["0", "0"], 2) + memory * 2,
        "old: names that are text": begun + body + pickle.dumps("0", 2) + memory,
        "old: another count": begun + body + keys + struct.pack("<q", 3) + bytes(16),
        "old: a negative count": begun + body + keys + struct.pack("<q", -4) + bytes(16),
        "old: a count of all": begun + body + keys + struct.pack("<q", (1 << 63) - 1) + bytes(16),
        "old: a terabyte": begun + pid("storage", floats, "0", "cpu", 1 << 38, None) + keys + memory,
        "old: a negative size": begun + pid("storage", floats, "0", "cpu", -4, None) + keys + memory,
        "old: a part of a part": begun + pid("storage", floats, "0", "cpu", 4, ("1", 1, 4)) + keys + memory,
        "old: a part before": begun + pid("storage", floats, "0", "cpu", 4, ("1", -1, 4)) + keys + memory,
        "old: a part that is text": begun + pid("storage", floats, "0", "cpu", 4, "part") + keys + memory,
        "old: a module's source": begun + pid("module", floats, "file", "source") + keys + memory,
        "old: a reference in the names": begun + body + program(value(("storage", floats, "0", "cpu", 4, None)), b"Q"),
        "old: bytes larger than the file": begun + program(b"\x8e" + struct.pack("<Q", 1 << 40), b"a"),
        "old: a frame larger than the machine": begun + program(b"\x95" + b"\xff" * 8, b"N"),
    }.items()  # fmt: skip


def crafted() -> Iterator[tuple[str, bytes]]:
    """Every file that is to be refused, with a name."""
    for name, body in attempts():
        yield name, file_of(body, bytes(16))
    for name, body, memory in programs():
        yield name, file_of(body, memory)
    yield from tensors()
    yield from other_files()
    yield from legacy_files()
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


def mutated(good: list[bytes], thorough: bool) -> Iterator[tuple[int, str, bytes]]:
    """(which of the files it was, what was done, the file): checksums as they were."""
    chance = random.Random(0)
    for which, raw in enumerate(good):
        for end in range(0, len(raw), 1 if thorough else 4):
            yield which, "cut", raw[:end]
        for bit in range(0, 8 * len(raw), 1 if thorough else 19):
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
    opened = [zipfile.ZipFile(io.BytesIO(raw)) for raw in good]
    contents = [{name.partition("/")[2]: z.read(name) for name in z.namelist()} for z in opened]
    bodies = [members["data.pkl"] for members in contents]
    for members in contents:
        storages = [name for name in members if name.startswith("data/")]
        for _ in range(number):
            how = chance.choice(("octet", "octet", "bits", "swap", "delete", "insert", "repeat", "zero", "splice"))
            changed = {**members, "data.pkl": change(how, members["data.pkl"], bodies, chance)}
            if chance.random() < 0.1 and storages:
                name = chance.choice(storages)
                changed[name] = members[name][: chance.randrange(len(members[name]) + 1)]
            yield archive_of(changed)


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
    thorough = "thorough" in sys.argv
    copyreg.add_extension(Registered.__module__, "Registered", 0xF0)
    pickle.loads(pickle.dumps(Registered, 2))
    things = samples()
    good = [saved(thing) for thing in things]
    words = [in_words(thing) for thing in things]
    files: dict[str, list[Any]] = {  # made before the hook is there
        "crafted": list(crafted()), "mutated": list(mutated(good, thorough)),
        "disguised": list(disguised(good, 20_000 if thorough else 2400)),
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

    torch.cuda.is_available()  # looks for CuPy, once: a file whose tensors were on a GPU makes `load` ask
    sys.addaudithook(hook)
    report: dict[str, Any] = {"problems": [], "loaded": Counter(), "refused": Counter()}
    slowest = 0.0
    memory = memory_used()

    def attempt(family: str, label: str, raw: bytes, expected: list[str] | None, may_load: bool) -> None:
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
            elif expected is not None and in_words(result) not in expected:
                report["problems"].append(f"{family}: {label}: loaded, but is not what was saved")
        slowest = max(slowest, time.perf_counter() - start)

    for name, raw in files["crafted"]:
        attempt("crafted", name, raw, None, may_load=False)
    for which, how, raw in files["mutated"]:
        # What is neither pickle nor memory nor tells where they are (padding, dates) may be anything; with the end of
        # another good file it may have become that one.
        same = words if how == "splice" else [words[which]]
        attempt("mutated", f"{how} of {which}", raw, same, may_load=True)
    for family in ("disguised", "instructions"):
        for raw in files[family]:
            attempt(family, raw.hex(), raw, None, may_load=True)
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

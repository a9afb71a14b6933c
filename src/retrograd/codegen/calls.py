"""The parts of a wrapper that any call runs through: parameters, tensors to arrays, the kernel, the results."""

from __future__ import annotations

from .argument_checks import argument_call, is_plain_number, not_plain
from .schema import Argument
from .table import Entry

COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
#: NumPy's names for arguments that torch also accepts.
ALIASES = {"dim": "axis", "keepdim": "keepdims"}


def signature(entry: Entry, inplace: bool = False) -> str:
    """The Python parameters, as they stand between the brackets of ``def``."""
    parts, star = [], False
    late = _late(entry)
    for a in entry.schema.arguments:
        if a.type == "int[]...":
            parts.append(f"*{a.parameter}")
            star = True
            continue
        if a.keyword_only and not star:
            parts.append("*old" if entry.old_form else "*")
            star = True
        default = "None" if a in late and not inplace else a.default
        parts.append(a.parameter if default is None else f"{a.parameter}={default}")
    if has_out(entry) and not inplace:
        if not star:
            parts.append("*")
        parts.append("out=None")
    if _has_aliases(entry):
        parts.append("**aliases")
    return ", ".join(parts)


def _has_aliases(entry: Entry) -> bool:
    """Does the function take NumPy's names, or ``size=(2, 3)``?"""
    public = entry.method or not entry.view
    return any((a.name in ALIASES and public) or a.type == "int[]..." for a in entry.schema.arguments)


def _late(entry: Entry) -> list[Argument]:
    """The arguments that must be given, from the first on that has NumPy's name too, and may be given by that."""
    required = [a for a in entry.schema.arguments if a.default is None and not a.keyword_only]
    first = next((i for i, a in enumerate(required) if a.name in ALIASES), len(required))
    late = required[first:]
    may_be_none = any(a.type == "any" or a.type.endswith(("?", "...")) for a in late)
    return [] if may_be_none else late


def has_out(entry: Entry) -> bool:
    """Does the function take ``out=``? Those whose results are new memory."""
    return not entry.view and not entry.schema.returns_list


def _call_arguments(entry: Entry) -> str:
    """The arguments as the wrapper received them, to call it (or an interceptor) again."""
    return "".join(
        f"*{a.parameter}, " if a.type == "int[]..." else f"{a.parameter}, "
        for a in entry.schema.arguments
        if not a.keyword_only
    )


def _keywords(entry: Entry) -> str:
    return "{" + ", ".join(f'"{a.parameter}": {a.parameter}' for a in entry.schema.arguments if a.keyword_only) + "}"


def _array(a: Argument) -> str:
    """The local name of what the kernel gets for an argument."""
    return f"{a.parameter}_array" if a.is_tensor or a.type == "dtype?" else a.parameter


def _send_strangers_away(entry: Entry) -> list[str]:
    """In a special method, before an interceptor is called: what `_unwrap` does later for calls without one."""
    operands = "Tensor" if entry.schema.arguments[1].type == "Tensor" else "(Tensor, *NUMBERS)"
    return [f"    if not isinstance(other, {operands}):", "        return NotImplemented"]


def takes_numbers(entry: Entry) -> bool:
    """May the first argument be a number too, as in ``torch.mul(2, x)``? If Python has a sign that computes with it."""
    arguments = entry.schema.arguments
    return any(o not in COMPARISONS for o in entry.operators) and [a.type for a in arguments[1:2]] == ["Tensor|Scalar"]


def own_name(entry: Entry, inplace: bool = False) -> str:
    """The function itself, within its wrapper: in `threshold(input, threshold, value)` its name is an argument's."""
    shadowed = any(a.parameter == entry.name for a in entry.schema.arguments)
    return f"{entry.name}_" if inplace else f'globals()["{entry.name}"]' if shadowed else entry.name


def _unwrap(entry: Entry, operator: str | None = None, inplace: bool = False) -> list[str]:
    """Tensors to arrays, and the checks that go with it."""
    lines = []
    public, arguments, keywords = own_name(entry, inplace), _call_arguments(entry), _keywords(entry)
    late = _late(entry) if not operator and not inplace and _has_aliases(entry) else []
    for position, a in enumerate(entry.schema.arguments, 1):
        p, arr = a.parameter, _array(a)
        where = f'"{entry.schema.base}", "{p}", {position}'
        call = f"{public}, {where}, {p}, ({arguments}), {keywords}"
        if a.type == "Tensor" or (inplace and position == 1):
            # A view is taken of the memory, whatever its bits say. See Note [Lazy conjugation].
            data = "_viewed_" if entry.view and position == 1 else "_numbers_"
            lines += ["try:", f"    {arr} = {p}.{data}", "except AttributeError:"]
            if operator and position == 2:
                lines.append(f"    return no_array({call}) if isinstance({p}, Tensor) else NotImplemented")
            elif position == 1 and takes_numbers(entry) and not inplace:
                lines.append(f"    return number_first({public}, {where}, ({arguments}), {keywords})")
            else:
                lines.append(f"    return no_array({call})")
        elif a.type == "Tensor?":
            lines += ["try:", f"    {arr} = None if {p} is None else {p}._numbers_", "except AttributeError:"]
            lines.append(f"    return no_array({call})")
        elif a.type == "Tensor|Scalar":
            number = [f"{is_plain_number(p)}:", f"    {arr} = {p}"] if operator and entry.ufunc else []
            if number and operator and operator.startswith("__r"):  # which is asked about numbers alone
                lines += ["if " + number[0], number[1]]
            test = "elif" if number and lines[-1] == number[1] else "if"
            lines += [f"{test} {p}.__class__ is Tensor or isinstance({p}, Tensor):"]
            lines += ["    try:", f"        {arr} = {p}._numbers_", "    except AttributeError:"]
            lines += [f"        return no_array({call})"]
            if number and operator and not operator.startswith("__r"):
                lines += ["elif " + number[0], number[1]]
            if operator:
                compares = operator in ("__eq__", "__ne__")
                answer = f"array_second({entry.name}, input, {p})" if compares else "NotImplemented"
                lines += [f"elif not isinstance({p}, NUMBERS):", f"    return {answer}"]
            elif a.default == "None":
                lines += [f"elif {p} is None:", f"    {arr} = None"]
            lines += ["else:", f"    {p} = {arr} = number({where}, {p})"]
        elif a.type == "Tensor[]":
            lines += [f"{p} = tensor_list({where}, {p})", "try:", f"    {arr} = tensor_list_arrays({p})"]
            lines += ["except AttributeError:", f"    return no_array({call})"]
        elif a.type == "int[]...":
            if not entry.view:  # (views are asked for no sizes from within)
                lines += [f"if not {p}:", f'    raise missing("{entry.schema.base}", "{p}")']
            lines.append(f"{p} = int_tuple({where}, {p})")
        elif operator and position > 2:
            continue  # its default
        elif a.type == "dtype?":
            lines.append(f"{arr} = None if {p} is None else as_numpy_dtype({p})")
        elif (unlike := not_plain(a)) is not None and not (a.type == "int" and a in late):  # (or looked at already)
            lines += [f"if {unlike}:", f"    {p} = {argument_call(entry, a, position)}"]
    either = [a for a in entry.schema.arguments if a.is_tensor]
    if either and all(a.type == "Tensor|Scalar" for a in either):
        # A number is its own array.
        numbers = " and ".join(f"{a.parameter} is {_array(a)}" for a in either)
        names = ", ".join(a.parameter for a in either)
        lines += [f"if {numbers}:", f'    raise needs_a_tensor("{entry.schema.base}", {names})']
    return lines


def _kernel_arguments(entry: Entry) -> str:
    return ", ".join(_array(a) for a in entry.schema.arguments)


def _run_kernel(entry: Entry) -> list[str]:
    targets = [f"{r}_array" for r in entry.schema.results] + entry.saves
    if entry.schema.returns_list:
        targets = ["arrays", *entry.saves]
    target, arguments = ", ".join(targets), _kernel_arguments(entry)
    call = f"{target} = kernel_{entry.kernel}({arguments})"
    if entry.inline:
        return [
            "try:",
            f"    result_array = {entry.inline.replace('self', 'input_array')}",
            "    shape = result_array.shape",
            "    if result_array.base is not input_array or shape != size:",
            f"        result_array = kernels.checked_{entry.kernel}({arguments}, result_array)",
            "except (TypeError, ValueError):",
            f"    {call}",
            "    shape = result_array.shape",
        ]
    if entry.first:
        first = entry.first.replace("self", "input_array")
        return [
            "try:",
            f"    {target} = {first} else kernel_{entry.kernel}({arguments})",
            "except (IndexError, AttributeError):",  # which the kernel tells better; NoArray is for it, too
            f"    {call}",
        ]
    if entry.view:
        return [call]
    # See core/quiet.py.
    return [
        "try:",
        f"    {call}",
        "except RuntimeWarning:",
        f"    {target} = quietly(kernel_{entry.kernel}, {arguments})",
    ]


#: What Python computes with numbers as the function does with 0-d arrays of double precision, to the last bit.
_PYTHONS_SIGNS = {"multiply": "*", "add": "+", "subtract": "-"}


def _run_ufunc(entry: Entry, reflected: bool) -> list[str]:
    """The kernel, with its commonest cases inline: two arrays of one dtype, and an array with a number.

    `dtype` is that of the result: reading it from an array takes longer than one would think.
    """
    call = f"kernel_{entry.kernel}({_kernel_arguments(entry)})"
    ufunc = f"ufunc_{entry.ufunc}"
    arrays = [
        "    if other_array.__class__ is ndarray and (dtype := input_array.dtype) is other_array.dtype:",
        f"        result_array = {ufunc}(input_array, other_array)",
        "        if result_array.__class__ is not ndarray:",
        "            result_array = asarray(result_array)",
    ]
    other = "other_array" if entry.schema.arguments[1].is_tensor else "other"
    swapped = entry.schema.base == "rsub"
    number = f"{other}, {{}}" if swapped else f"{{}}, {other}"
    numbers = [
        f"    {'if' if reflected else 'elif'} ({other}.__class__ is float or {other}.__class__ is int) and "
        "input_array.__class__ is ndarray and ((dtype := input_array.dtype) is DOUBLE or dtype is SINGLE):"
    ]
    if sign := _PYTHONS_SIGNS.get(entry.ufunc or ""):
        a, b = number.format("input_array.item()").split(", ")
        numbers += ["        if dtype is DOUBLE and not input_array.shape:"]
        numbers += [f"            result_array = asarray({a} {sign} {b})"]
        numbers += ["        else:"]
    indent = "    " * (3 if sign else 2)
    array = f"asarray({other}, dtype)"  # a 0-d array costs a ufunc less than a number does
    operands = f"{array}, input_array" if swapped else f"input_array, {array}"
    numbers += [f"{indent}result_array = {ufunc}({operands})"]
    numbers += [f"{indent}if result_array.__class__ is not ndarray:"]
    numbers += [f"{indent}    result_array = asarray(result_array)"]
    return [
        "try:",
        *([] if reflected else arrays),
        *numbers,
        "    else:",
        f"        result_array = {call}",
        "        dtype = result_array.dtype",
        "except (RuntimeWarning, TypeError, ValueError):",
        f"    result_array = quietly(kernel_{entry.kernel}, {_kernel_arguments(entry)})",
        "    dtype = result_array.dtype",
    ]


def _make_results(entry: Entry) -> list[str]:
    lines = []
    data = "_memory_" if entry.view else "_numbers_"
    cls = f'class_with_flipped_bit(input, "{entry.flips}")' if entry.flips else "Tensor"
    if entry.view:
        lines.append("vc = input._vc_ or version_counter(input)")
    if entry.schema.returns_list:
        lines += ["results = []", "for array in arrays:", "    result = new(Tensor)", f"    result.{data} = array"]
        lines += [f"    result._vc_ = {'vc' if entry.view else 'state.new_vc'}"]
        lines += ["    result._grad_meta_ = result._edge_ = None"]
        lines += ["    results.append(result)"]
        return lines
    for r in entry.schema.results:
        lines += [f"{r} = new({cls})", f"{r}.{data} = {r}_array"]
        lines += [f"{r}._vc_ = {'vc' if entry.view else 'state.new_vc'}"]
        # (A view gets its meta below, a single result its edge.)
        if edge_comes_last(entry):
            lines += [f"{r}._grad_meta_ = None"]
        else:
            made_below = entry.view and entry.differentiable
            lines += [f"{r}._edge_ = None" if made_below else f"{r}._grad_meta_ = {r}._edge_ = None"]
    return lines


def overlap_allowed(entry: Entry) -> str:
    """The last argument of `begin_inplace`, if it is not the default."""
    if entry.may_overlap == "warned":
        return f', "{entry.schema.base}_"'
    return ", True" if entry.may_overlap else ""


def edge_comes_last(entry: Entry) -> bool:
    """Is there one result, which gets its edge, or None, at the end?"""
    return entry.differentiable and not entry.view and not entry.schema.returns_list and len(entry.schema.results) == 1


def _returned(entry: Entry) -> str:
    if entry.schema.returns_list:
        return "tuple(results)"
    if len(entry.schema.results) == 1:
        return entry.schema.results[0]
    return f"{entry.name}_result({', '.join(entry.schema.results)})"

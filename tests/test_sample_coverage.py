"""Is every operator in the sample database, with every option at some value that is not its default?

The samples are run under a profile function that sees each call of an operator of the table, of a composite, or of a
function of `nn.functional`, `linalg`, `fft` and `special`, whoever makes it.
"""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import retrograd
from retrograd._generated import functions as table
from retrograd.ops.registry import DECLARED, SPACES
from samples import OPS

#: Operators without a sample, and why.
EXEMPT = {
    "draws random numbers; tests/test_random.py has its tests": """
        bernoulli binomial multinomial poisson nn.functional.gumbel_softmax Tensor.bernoulli_ Tensor.cauchy_
        Tensor.exponential_ Tensor.geometric_ Tensor.log_normal_ Tensor.normal_ Tensor.random_ Tensor.uniform_
    """,
    "draws random numbers, or is their derivative; tests/distributions has its tests": """
        _sample_dirichlet _standard_gamma dirichlet_drawn dirichlet_grad standard_gamma_drawn standard_gamma_grad
    """,
    "draws random numbers; tests/nn/test_second_derivatives.py has its test": "_rrelu_with_noise",
    "is of integers alone; tests/test_single_calls.py has its test": "_int_mm",
    "is about memory and not about numbers; tests/composite has its tests": """
        Tensor.is_pinned Tensor.is_shared Tensor.pin_memory Tensor.share_memory_ Tensor._typed_storage
        _assert_tensor_metadata Tensor.resize_ resize_as_ Tensor.set_ Tensor.storage Tensor.untyped_storage
        _debug_has_internal_overlap from_file Tensor.storage_type
        Tensor.new_empty_strided Tensor.as_subclass Tensor.dim_order empty_permuted frombuffer Tensor.new slice_inverse
    """,
    "gives one answer for all examples of a vmap; tests/composite/test_reduce.py has its test": """
        _is_all_true _is_any_true
    """,
    "is another form of addmm; tests/test_linalg.py has its test": "_addmm_activation",
    "is about memory and streams; tests/cuda/test_streams.py has its test": "Tensor.record_stream",
    "is the in-place form of what has samples; tests/test_registry.py has its test": """
        Tensor.ge_ Tensor.gt_ Tensor.le_ Tensor.lt_ Tensor.ne_ Tensor.swapaxes_ Tensor.swapdims_ Tensor.t_ as_strided_
        detach_ selu_ rrelu_ nn.functional.hardtanh_ nn.functional.leaky_relu_ nn.functional.relu_
        nn.functional.threshold_
    """,
    "is another form of what has samples; tests/test_registry.py has its test": """
        Tensor.byte Tensor.cdouble Tensor.cfloat Tensor.chalf Tensor.char Tensor.half Tensor.short Tensor.__rlshift__
        Tensor.__rrshift__ _conj_copy _neg_view_copy detach get_device
    """,
    "is for nested tensors; tests/nested has its tests": "Tensor.to_padded_tensor",
    "reads calls as torch once wrote them; tests/test_old_forms.py has its tests": "old_form",
    "asks for a device that is not here; tests/test_around.py has its test": "Tensor.cuda",
    "takes float8; tests/test_aten_functions.py has its test": "_scaled_mm",
    "is a question to sparse tensors, who answer it themselves; samples/sparse.py has it": """
        Tensor._coalesced_ Tensor._indices Tensor._nnz Tensor._values Tensor.ccol_indices Tensor.coalesce
        Tensor.col_indices Tensor.crow_indices Tensor.indices Tensor.is_coalesced Tensor.row_indices Tensor.sparse_mask
        Tensor.sparse_resize_ Tensor.sparse_resize_and_clear_ Tensor.to_dense Tensor.values hspmm resize_as_sparse_ smm
        spmm sspaddmm
    """,
    "torch has no form of it for sparse tensors of coordinates; tests/sparse has its test": "indices_copy values_copy",
    "takes a Python function for each element": "Tensor.apply_ Tensor.map_ Tensor.map2_",
    "is called by formulas alone: the second derivatives of the operator that it belongs to are its test": """
        adaptive_avg_pool_backward avg_pool_backward convolution_backward_input convolution_backward_weight
        diagonal_backward embedding_dense_backward embedding_sparse_gradient gather_backward gather_sparse_gradient
        gelu_backward index_backward index_select_backward
        linear_recurrence max_pool_backward max_pool_gather native_batch_norm_backward
        native_group_norm_backward native_layer_norm_backward nll_loss_backward resample_backward select_backward
        sigmoid_backward silu_backward slice_backward tanh_backward threshold_backward through_storage
        value_selecting_reduction_backward zero
        _linalg_eigvals copy resample
    """,
}

#: Options that no sample has at another value than the default: function -> {why: the options}.
EXEMPT_OPTIONS: dict[str, dict[str, str]] = {
    "nn.functional.multi_head_attention_forward": {
        "the module's tests have these": "use_separate_proj_weight q_proj_weight k_proj_weight v_proj_weight",
        "the keys and values that a caller has already are tested there too": "static_k static_v",
        "draws random numbers": "training",
        "a hint that goes with a mask": "is_causal",
    },
    "nn.functional.rrelu": {"draws random numbers": "training"},
    "nn.functional.scaled_dot_product_attention": {"draws random numbers": "dropout_p"},
    "nn.functional.linear_cross_entropy": {
        "is that of cross_entropy, which has it": "ignore_index",
        "hints for a compiler": "options",
    },
    "lobpcg": {"steers an iteration that ends in the same place": """
        n iK method tracker ortho_iparams ortho_fparams ortho_bparams
    """},
    "segment_reduce": {"is refused": "indices", "leaves out checks": "unsafe"},
    "expand_copy": {"means nothing": "implicit"},
    "hash_tensor": {"is refused, which is an error sample": "mode"},
    **{
        name: {"is that of the view operator, which has it": options}
        for name, options in {
            "as_strided_copy": "storage_offset", "diagonal_copy": "dim1 dim2", "slice_copy": "dim step",
            "split_copy": "dim", "split_with_sizes_copy": "dim", "unbind_copy": "dim", "view_copy": "dtype",
        }.items()
    },
    "rsub_Scalar": {"is multiplied with in rsub, the tensor form of which has it": "alpha"},
    "prod_dim_int": {"is that of prod, which has it": "dtype"},
    "linalg_tensorsolve": {"permutes the dimensions before the rest, which has its samples": "dims"},
    "_linalg_eigh": {"is false for eigenvalues alone, which have no formula of their own": "compute_v"},
    "_linalg_svd": {"is false for singular values alone, which have no formula of their own": "compute_uv"},
    **{
        f"Tensor.to_sparse{form}": {"tests/sparse has its tests": options}
        for form, options in {
            "": "blocksize dense_dim",
            **dict.fromkeys(("_csr", "_csc", "_bsr", "_bsc"), "dense_dim"),
        }.items()
    },
    **{
        name: {"tests/sparse has its tests": "dtype"}
        for name in ("sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor")
    },
    **{
        name: {"chooses a method of cuSOLVER, and is refused on the CPU": "driver"}
        for name in ("linalg_svd", "linalg_svdvals")
    },
    **{
        name: {"pivot=False is refused on the CPU, which is an error sample": "pivot"}
        for name in ("linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "lu")
    },
}

#: Arguments that every function of a kind has, and that other tests are for.
COMMON = {
    "device", "dtype_of_result", "generator", "inplace", "layout", "memory_format", "non_blocking", "out", "pin_memory",
    "requires_grad", "size_average", "_stacklevel",
}  # fmt: skip


def operators() -> dict[types.CodeType, tuple[Callable[..., Any], str]]:
    """Every operator by its code, with the shortest of its names."""
    of_table = [
        (name, f)
        for name, f in [*SPACES["torch"].items(), *vars(table).items()]
        if name not in DECLARED["torch"] and not name.startswith("__") and not name.endswith("_")
    ]
    named: list[tuple[str, Any]] = [*of_table, *DECLARED["torch"].items(), *DECLARED["internal"].items()]
    for prefix in ("nn.functional", "linalg", "fft", "special"):
        module: Any = retrograd
        for part in prefix.split("."):
            module = getattr(module, part)
        public = [name for name in vars(module) if not name.startswith("_")]
        named += [(f"{prefix}.{name}", getattr(module, name)) for name in getattr(module, "__all__", public)]
    named += [(f"Tensor.{name}", method) for name, method in DECLARED["Tensor"].items()]
    found: dict[types.CodeType, tuple[Callable[..., Any], str]] = {}
    for name, function in named:
        function = inspect.unwrap(function) if callable(function) else function
        if isinstance(function, types.FunctionType) and _is_operator(function):
            found.setdefault(function.__code__, (function, name))
    return found


def _is_operator(function: types.FunctionType) -> bool:
    """Not a helper of generated code, nor what has tests of its own.

    Those are factories, ``_foreach_*``, and torch.NAME of a network's function: nn.functional.NAME has the samples.
    """
    helpers = ("retrograd.ops.support", "retrograd.ops.accidents", "retrograd.ops.arguments", "retrograd.kernels",
               "retrograd.tensor", "retrograd.core", "retrograd.autograd", "retrograd.return_types",
               "retrograd.nn.functional.top_level", "retrograd.nn.functional.recurrent",
               "retrograd.ops.composite.foreach", "retrograd.ops.factories",
               "retrograd.ops.random_factories")  # fmt: skip
    return function.__module__.startswith("retrograd") and not function.__module__.startswith(helpers)


OPERATORS = operators()
PARAMETERS = {
    code: [
        p for p in inspect.signature(function).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    for code, (function, _) in OPERATORS.items()
}


def _is_default(value: Any, parameter: inspect.Parameter) -> bool:
    if parameter.default is parameter.empty:
        return False
    same_type = type(value) is type(parameter.default)
    return value is parameter.default or (same_type and bool(value == parameter.default))


@pytest.fixture(scope="module")
def seen() -> dict[types.CodeType, set[str]]:
    """For each operator that some sample calls, the arguments that some call gave another value than the default."""
    calls: dict[types.CodeType, set[str]] = {}

    def profile(frame: types.FrameType, event: str, _: Any) -> None:
        parameters = PARAMETERS.get(frame.f_code) if event == "call" else None
        if parameters is None:
            return
        given = calls.setdefault(frame.f_code, set())
        if len(given) < len(parameters):
            values = frame.f_locals
            given |= {p.name for p in parameters if p.name not in given and not _is_default(values[p.name], p)}

    before = sys.getprofile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(profile)
        try:
            for op in OPS:
                _run(op)
        finally:
            sys.setprofile(before)
    return calls


def _run(op: Any) -> None:
    if op.missing_from(retrograd):
        return
    for sample in op.samples:
        built = sample.build(retrograd)
        op.call(retrograd, built.args, built.kwargs)
    for name in (op.method, op.inplace):
        sample = next((s for s in op.samples if s.method and s.args), None)
        if name and sample and hasattr(retrograd.Tensor, name):
            built = sample.build(retrograd, requires_grad=False)
            try:
                getattr(built.args[0], name)(*built.args[1:], **built.kwargs)
            except RuntimeError:
                pass  # an in-place operator whose result has another shape or dtype: the operator tests know which


def test_every_operator_has_a_sample(seen: dict) -> None:
    exempt = {name for names in EXEMPT.values() for name in names.split()}
    without = {name for code, (_, name) in OPERATORS.items() if code not in seen}
    assert sorted(without - exempt) == [], "add samples for these to tests/samples"
    assert sorted(exempt - without) == [], "these have samples now: they need no exemption"


def test_every_option_has_a_sample(seen: dict) -> None:
    missing = {}
    exempt = {name: set(" ".join(reasons.values()).split()) for name, reasons in EXEMPT_OPTIONS.items()}
    for code, (_, name) in OPERATORS.items():
        if code in seen:
            left = {p.name for p in PARAMETERS[code] if p.name not in seen[code] and p.name not in COMMON}
            allowed = exempt.setdefault(name, set())
            if left - allowed:
                missing[name] = sorted(left - allowed)
            allowed -= left
    assert missing == {}, "add samples with these options to tests/samples"
    assert {name: left for name, left in exempt.items() if left} == {}, "these have samples now: no exemption needed"

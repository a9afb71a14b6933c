"""Right calls of every public function: those of the sample database, and here the ones that it does not have.

A call is a `Sample`, so that it can be built for any module that speaks torch's names.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import retrograd
from retrograd.ops.registry import BEHIND
from samples import OPS
from samples.spec import Attr, Sample, T, given, index, mask, positive, real

#: Where public functions are.
SPACES = ("", "linalg", "fft", "special", "nn.functional", "Tensor")

#: Public names that are left out, and why.
LEFT_OUT = {
    "they change the settings of the whole process, or tell them": """
        are_deterministic_algorithms_enabled get_autocast_dtype get_default_device get_default_dtype
        get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads get_num_threads get_rng_state
        initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_enabled
        is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled is_warn_always_enabled
        manual_seed seed set_anomaly_enabled set_default_device set_default_dtype set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads set_printoptions
        set_default_tensor_type set_rng_state set_warn_always use_deterministic_algorithms
    """,
    "they read and write files": "load save",
    "they are protocols between libraries": """
        from_dlpack to_dlpack from_numpy Tensor.__array__ Tensor.__array_wrap__ Tensor.__dlpack__
        Tensor.__dlpack_device__ Tensor.__torch_dispatch__ Tensor.__torch_function__
    """,
    "they read memory that the caller vouches for": "frombuffer",
    "it makes files": "from_file",
    "they call what they are given": "compile Tensor.apply_ Tensor.map_ Tensor.map2_",
    "they take sparse or nested tensors, of which the machine-made calls have none: see tests/sparse": """
        ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_
        row_indices_copy saddmm smm spmm sspaddmm values_copy Tensor.ccol_indices Tensor.coalesce Tensor.col_indices
        Tensor.crow_indices Tensor.dense_dim Tensor.indices Tensor.is_coalesced Tensor.resize_as_sparse_
        Tensor.row_indices Tensor.smm Tensor.sparse_dim Tensor.sparse_mask Tensor.sparse_resize_
        Tensor.sparse_resize_and_clear_ Tensor.sspaddmm Tensor.to_padded_tensor Tensor.values
    """,
    "torch does not look at what they are given unless it is told to (check_invariants), and we do": """
        sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
        sparse_csr_tensor
    """,
    "it moves a tensor to a device that is not there": "Tensor.cuda",
    "it has twenty-four arguments, which the module of the same name checks": """
        nn.functional.multi_head_attention_forward
    """,
    "there is no right call of it": "Tensor.__delitem__",
    "they move a tensor's memory to where torch has another": "Tensor.pin_memory Tensor.share_memory_",
    "the machine-made calls cannot say what a subclass or a storage is": """
        Tensor.as_subclass Tensor.set_ Tensor.new is_storage
    """,
}

#: Words of the calls below.
WORDS: dict[str, Any] = {
    "X": real(2, 3),
    "Y": real(2, 3),
    "V": real(3),
    "W": real(3),
    "S": given([[2.0, 0.3, -0.4], [0.3, 1.7, 0.2], [-0.4, 0.2, 1.4]]),  # symmetric, positive definite
    "L": given([[2.0, 0.0, 0.0], [0.3, 1.7, 0.0], [-0.4, 0.2, 1.4]]),
    "P": T((2, 3), low=0.1, high=0.9),
    "PV": T((3,), low=0.1, high=0.9),
    "POS": positive(2, 3),
    "I": index([0, 1, 1]),
    "J": index([[0, 1, 1], [1, 0, 2]]),
    "PIVOTS": T((3,), "int32", values=[1, 2, 3]),
    "M": mask([[True, False, True], [False, True, True]]),
    "Z": given(1.5),
    "N": index(2),
    "C": T((2, 3), "complex128"),
    "CUBE": real(2, 2, 2),
    "SIGNAL": real(1, 2, 8),
    "IMAGE": real(1, 2, 6, 6),
    "VOLUME": real(1, 2, 4, 4, 4),
    "PAIRS": real(3, 2),
    "float32": Attr("float32"),
    "int64": Attr("int64"),
    "contiguous_format": Attr("contiguous_format"),
}

#: Calls of what the sample database has no plain call of. A name alone takes the calls of another function.
CALLS = """
arange(6)
arange(1, 6)
arange(1, 6, 2, dtype=int64)
range(1, 6, 2)
linspace(0, 1, 5)
linspace(0, 1, steps=5, dtype=float32)
logspace(0, 1, 5, 10.0)
eye(3)
eye(3, 4, dtype=float32)
empty(2, 3)
empty((2, 3), dtype=float32)
empty_like(X, dtype=float32)
empty_permuted((2, 3), (0, 1))
empty_strided((2, 3), (3, 1))
zeros(2, 3)
zeros((2, 3), dtype=float32, requires_grad=True)
ones(2, 3)
ones((2, 3), dtype=float32)
full((2, 3), 1.5)
full((2,), 1, dtype=int64, requires_grad=False)
rand(2, 3)
rand((2, 3), dtype=float32)
randn(2, 3)
randn((2, 3), dtype=float32)
rand_like(X)
randn_like(X, dtype=float32)
randint(5, (2, 3))
randint(1, 5, (2, 3), dtype=int64)
randint_like(X, 5)
randint_like(X, 1, 5)
randperm(5)
normal(X, POS)
normal(1.0, 2.0, (2, 3))
tensor([1.0, 2.0])
tensor(1.5, dtype=float32, requires_grad=True)
as_tensor([1.0, 2.0], dtype=float32)
asarray([1.0, 2.0], dtype=float32)
scalar_tensor(1.5, dtype=float32)
tril_indices(3, 3, 0)
triu_indices(3, 3, offset=1)
complex(V, W)
can_cast(float32, int64)
promote_types(float32, int64)
result_type(X, 2)
is_tensor(X)
is_complex(X)
is_conj(X)
is_floating_point(X)
is_inference(X)
is_neg(X)
numel(X)
get_device(X)
finfo(float32)
iinfo(int64)
broadcast_shapes((2, 3), (3,))
broadcast_tensors(X, V)
meshgrid(V, W, indexing="ij")
atleast_1d(X)
atleast_2d(X)
atleast_3d(X)
column_stack([X, Y])
row_stack([X, Y])
dstack([X, Y])
concatenate([X, Y], 0)
concatenate([X, Y], dim=1)
dsplit(CUBE, 2)
hsplit(CUBE, 2)
vsplit(CUBE, [1])
split_with_sizes(X, [1, 2], 1)
unsafe_chunk(X, 2, 1)
unsafe_split(X, 1, 0)
unsafe_split_with_sizes(X, [1, 2], 1)
slice_inverse(X, Y, 0, 0, 2, 1)
moveaxis(X, 0, 1)
swapdims(X, 0, 1)
as_strided(X, (2, 2), (1, 1))
as_strided(X, (2, 2), (1, 1), 0)
as_strided_(V, (2,), (1,))
adjoint(X)
view_as_complex(PAIRS)
view_as_real(C)
resolve_conj(C)
resolve_neg(C)
conj_physical(C)
detach(X)
zero_(V)
fix(X)
lgamma(POS)
digamma(POS)
bitwise_not(I)
subtract(X, Y, alpha=2)
constant_pad_nd(X, (1, 1), 0.5)
convolution(SIGNAL, real(2, 2, 3), None, (1,), (0,), (1,), False, (0,), 1)
bilinear(X, X, real(2, 3, 3), real(2))
binary_cross_entropy_with_logits(X, P)
bernoulli(P)
bernoulli(P, 0.5)
binomial(POS, P)
multinomial(P, 2)
multinomial(P, 2, True)
poisson(POS)
dropout(X, 0.5, True)
alpha_dropout(X, 0.5, True)
feature_dropout(X, 0.5, True)
feature_alpha_dropout(X, 0.5, True)
native_dropout(X, 0.5, True)
embedding(X, I)
embedding_renorm_(real(2, 3, requires_grad=False), I, 1.0, 2.0)
layer_norm(X, (3,), V, W, 1e-5)
group_norm(IMAGE, 2, real(2), real(2), 1e-5)
native_batch_norm(X, V, W, None, None, True, 0.1, 1e-5)
native_group_norm(IMAGE, real(2), real(2), 1, 2, 36, 2, 1e-5)
native_layer_norm(X, (3,), V, W, 1e-5)
cholesky(S)
cholesky(S, True)
cholesky_inverse(L)
cholesky_solve(S, L, False)
lu_unpack(S, PIVOTS)
svd(S)
svd(S, True, True)
qr(S)
qr(S, True)
orgqr(S, V)
matrix_power(S, 2)
pca_lowrank(S, 2)
svd_lowrank(S, 2)
lobpcg(S, 1)
triangular_solve(S, L)
triangular_solve(S, L, False, False, False)
linalg.cholesky(S)
linalg.cholesky(S, upper=True)
linalg.cholesky_ex(S, upper=True, check_errors=True)
linalg.cond(S)
linalg.cond(S, 2)
linalg.eig(S)
linalg.eigh(S)
linalg.eigh(S, "U")
linalg.eigvals(S)
linalg.eigvalsh(S, "L")
linalg.inv(S)
linalg.ldl_factor(S)
linalg.ldl_factor_ex(S, hermitian=True)
linalg.ldl_solve(S, PIVOTS, S)
linalg.lstsq(S, S)
linalg.lstsq(S, S, rcond=0.1, driver="gelsd")
linalg.matrix_power(S, 2)
linalg.multi_dot([S, S, S])
linalg.pinv(S)
linalg.pinv(S, rtol=0.1, hermitian=True)
linalg.qr(S)
linalg.qr(S, "complete")
linalg.solve(S, V)
linalg.solve(S, S, left=False)
linalg.solve_triangular(L, S, upper=False)
linalg.svd(S)
linalg.svd(S, False)
linalg.svdvals(S)
linalg.tensorsolve(S, V)
linalg.matrix_rank(S, hermitian=True)
special.gammainc(POS, POS)
special.gammaincc(POS, POS)
special.multigammaln(positive(3, low=3.0, high=4.0), 2)
cosine_similarity(X, Y, 1)
pairwise_distance(X, Y, 2.0)
threshold(X, 0.5, 1.0)
rms_norm(X, (3,), V)
rrelu(X, 0.1, 0.3)
prelu(X, given([0.2]))
hardshrink(X, 0.5)
celu(X, 1.0)
selu(X)
channel_shuffle(IMAGE, 2)
pixel_shuffle(real(1, 4, 2, 2), 2)
pixel_unshuffle(IMAGE, 2)
adaptive_avg_pool1d(SIGNAL, 2)
avg_pool1d(SIGNAL, 2)
avg_pool1d(SIGNAL, (2,), (1,), (0,), False, True)
max_pool1d(SIGNAL, 2)
max_pool1d_with_indices(SIGNAL, 2)
max_pool2d(IMAGE, 2)
max_pool2d(IMAGE, (2, 2), (1, 1), (0, 0), (1, 1), False)
max_pool3d(VOLUME, 2)
nn.functional.max_pool1d_with_indices(SIGNAL, 2)
nn.functional.max_pool2d_with_indices(IMAGE, 2)
nn.functional.max_pool3d_with_indices(VOLUME, 2)
nn.functional.gumbel_softmax(X, 1.0, False, 1e-10, 1)
conv1d(SIGNAL, real(2, 2, 3))
conv1d(SIGNAL, real(2, 2, 3), real(2), (1,), (0,), (1,), 1)
conv2d(IMAGE, real(2, 2, 3, 3), real(2), 1, 0, 1, 1)
conv3d(VOLUME, real(2, 2, 2, 2, 2))
conv_transpose1d(SIGNAL, real(2, 2, 3), real(2), (1,), (0,), (0,), 1, (1,))
conv_transpose2d(IMAGE, real(2, 2, 3, 3))
conv_transpose3d(VOLUME, real(2, 2, 2, 2, 2))
ctc_loss(real(4, 1, 3), index([[1, 2]]), index([4]), index([2]))
stft(real(32), 8, return_complex=True)
istft(stft_of, 8)
gru_cell(real(2, 3), real(2, 2), real(6, 3), real(6, 2))
lstm_cell(real(2, 3), [real(2, 2), real(2, 2)], real(8, 3), real(8, 2))
rnn_tanh_cell(real(2, 3), real(2, 2), real(2, 3), real(2, 2))
gru(real(4, 1, 3), real(1, 1, 2), [real(6, 3), real(6, 2)], False, 1, 0.0, False, False, False)
lstm(real(4, 1, 3), [real(1, 1, 2), real(1, 1, 2)], [real(8, 3), real(8, 2)], False, 1, 0.0, False, False, False)
rnn_relu(real(4, 1, 3), real(1, 1, 2), [real(2, 3), real(2, 2)], False, 1, 0.0, False, False, False)
rnn_tanh(real(4, 1, 3), real(1, 1, 2), [real(2, 3), real(2, 2)], False, 1, 0.0, False, False, False)
scatter_reduce(X, 1, J, Y, "sum")
scatter_reduce(X, 1, J, Y, "amax", include_self=False)
trapz(X)
trapz(X, dx=0.5)
resize_as_(real(2, 3, requires_grad=False), V)
Tensor.__abs__(X)
Tensor.__add__(X, Y)
Tensor.__and__(I, 1)
Tensor.__bool__(Z)
Tensor.__complex__(Z)
Tensor.__contains__(X, 1.0)
Tensor.__deepcopy__(X, {})
Tensor.__float__(Z)
Tensor.__floordiv__(X, 2.0)
Tensor.__getitem__(X, 0)
Tensor.__getitem__(X, (0, 1))
Tensor.__setitem__(real(2, 3, requires_grad=False), 0, 1.0)
Tensor.__setitem__(real(2, 3, requires_grad=False), M, Z)
Tensor.__iadd__(V, 1.0)
Tensor.__index__(N)
Tensor.__int__(Z)
Tensor.__invert__(I)
Tensor.__iter__(X)
Tensor.__len__(X)
Tensor.__lshift__(I, 1)
Tensor.__matmul__(S, V)
Tensor.__mod__(X, 2.0)
Tensor.__mul__(X, Y)
Tensor.__neg__(X)
Tensor.__pos__(X)
Tensor.__pow__(POS, 2.0)
Tensor.__radd__(X, 1.0)
Tensor.__reversed__(X)
Tensor.__rfloordiv__(X, 1.0)
Tensor.__rmatmul__(S, S)
Tensor.__rmod__(X, 1.0)
Tensor.__rmul__(X, 1.0)
Tensor.__rpow__(X, 2.0)
Tensor.__rsub__(X, 1.0)
Tensor.__rtruediv__(X, 1.0)
Tensor.__rand__(I, 1)
Tensor.__rlshift__(I, 1)
Tensor.__rrshift__(I, 1)
Tensor.__rshift__(I, 1)
Tensor.__rxor__(I, 1)
Tensor.__sub__(X, Y)
Tensor.__truediv__(X, Y)
Tensor.__xor__(I, 1)
Tensor.__iand__(I, 1)
Tensor.__ifloordiv__(V0, 2.0)
Tensor.__ilshift__(I, 1)
Tensor.__imod__(V0, 2.0)
Tensor.__imul__(V0, 2.0)
Tensor.__ior__(I, 1)
Tensor.__ipow__(V0, 2.0)
Tensor.__irshift__(I, 1)
Tensor.__isub__(V0, 2.0)
Tensor.__iadd__(V0, 2.0)
Tensor.__itruediv__(V0, 2.0)
Tensor.__ixor__(I, 1)
Tensor.backward(Z)
Tensor.backward(X, Y)
Tensor.bernoulli_(V0, 0.5)
Tensor.bfloat16(X)
Tensor.bool(X)
Tensor.byte(I)
Tensor.cdouble(X)
Tensor.cfloat(X)
Tensor.char(I)
Tensor.contiguous(X)
Tensor.copy_(V0, W)
Tensor.copy_(V0, W, False)
Tensor.cpu(X)
Tensor.data_ptr(X)
Tensor.detach_(X)
Tensor.dim(X)
Tensor.dim_order(X)
Tensor.double(X)
Tensor.element_size(X)
Tensor.expand(V, 2, 3)
Tensor.expand(V, (2, 3))
Tensor.expand_as(V, X)
Tensor.fill_diagonal_(real(3, 3, requires_grad=False), 1.5)
Tensor.fill_diagonal_(real(3, 3, requires_grad=False), 1.5, True)
Tensor.float(X)
Tensor.half(X)
Tensor.int(X)
Tensor.long(X)
Tensor.short(X)
Tensor.is_contiguous(X)
Tensor.is_pinned(X)
Tensor.is_set_to(X, Y)
Tensor.is_shared(X)
Tensor.module_load(X, X)
Tensor.item(Z)
Tensor.ndimension(X)
Tensor.nelement(X)
Tensor.new_empty(X, (2, 3))
Tensor.new_empty_strided(X, (2, 3), (3, 1))
Tensor.new_full(X, (2, 3), 1.5)
Tensor.new_ones(X, (2, 3))
Tensor.new_ones(X, 2, 3)
Tensor.new_zeros(X, (2, 3), dtype=float32)
Tensor.new_tensor(X, [1.0, 2.0])
Tensor.normal_(V0, 0.0, 1.0)
Tensor.cauchy_(V0, 0.0, 1.0)
Tensor.exponential_(V0, 1.0)
Tensor.geometric_(V0, 0.5)
Tensor.log_normal_(V0, 1.0, 2.0)
Tensor.random_(V0)
Tensor.random_(V0, 5)
Tensor.random_(V0, 1, 5)
Tensor.uniform_(V0, 0.0, 1.0)
Tensor.numpy(V0)
Tensor.register_hook(X, hook)
Tensor.register_post_accumulate_grad_hook(X, hook)
Tensor.repeat(X, 2, 2)
Tensor.repeat(X, (2, 2))
Tensor.requires_grad_(X)
Tensor.requires_grad_(X, True)
Tensor.reshape_as(X, PAIRS)
Tensor.resize_(V0, 2)
Tensor.resize_(V0, (2, 1))
Tensor.retain_grad(X)
Tensor.size(X)
Tensor.size(X, 0)
Tensor.storage(X)
Tensor.storage_offset(X)
Tensor.storage_type(X)
Tensor.stride(X)
Tensor.stride(X, 0)
Tensor.sum_to_size(X, 1, 3)
Tensor.sum_to_size(X, (1, 3))
Tensor.to(X, float32)
Tensor.to(X, Y)
Tensor.to(X, "cpu", float32, False, True)
Tensor.to(X, dtype=float32)
Tensor.tolist(X)
Tensor.type(X)
Tensor.type(X, float32)
Tensor.type_as(X, I)
Tensor.untyped_storage(X)
Tensor.view(X, 3, 2)
Tensor.view(X, (3, 2))
Tensor.view(X, int64)
Tensor.view_as(X, PAIRS)
Tensor.reshape(X, 3, 2)
Tensor.reshape(X, (3, 2))
Tensor.permute(X, 1, 0)
Tensor.flip(X, 0)
Tensor.flip(X, (0, 1))
Tensor.tile(X, 2, 2)
Tensor.zero_(V0)
Tensor.unfold(X, 1, 2, 1)
Tensor.where(X, M, Y)
Tensor.where(X, M, 1.5)
Tensor.polygamma(POS, 1)
Tensor.greater_(V0, 1.0)
Tensor.greater_equal_(V0, 1.0)
Tensor.less_(V0, 1.0)
Tensor.less_equal_(V0, 1.0)
Tensor.not_equal_(V0, 1.0)
typename(X)
Tensor.chalf(X)
Tensor.to_dense(X)
Tensor.to_sparse(X)
Tensor.to_sparse(X, 1)
Tensor.to_sparse_coo(X)
Tensor.to_sparse_csr(X)
Tensor.to_sparse_csc(X)
Tensor.to_sparse_bsr(X, (1, 3))
Tensor.to_sparse_bsc(X, (2, 1))
lu_solve(S, S, PIVOTS)
linalg.lu_solve(S, PIVOTS, S)
linalg.lu_solve(S, PIVOTS, S, left=True, adjoint=False)
histogramdd(PAIRS, [2, 2])
"""


def hook(_: Any) -> None:
    """For functions that take a function."""


WORDS |= {
    "hook": hook,
    "V0": real(3, requires_grad=False),
    "stft_of": T((5, 17), "complex128", requires_grad=False),
    "real": real,
    "given": given,
    "index": index,
    "positive": positive,
}


def public_names(torch: Any) -> list[str]:
    """The dotted names of all public functions that torch has too: what `names.txt` holds."""
    left_out = {name for names in LEFT_OUT.values() for name in names.split()}
    found = ["finfo", "iinfo"]
    for space in SPACES:
        ours, theirs = _module(retrograd, space), _module(torch, space)
        for name in sorted(dir(ours)):
            special = space == "Tensor" and name.startswith("__") and not hasattr(object, name)
            thing = getattr(ours, name)
            if space == "Tensor":
                thing = BEHIND.get(name, thing)  # not the compiled core's form of it
            if (name.startswith("_") and not special) or not callable(thing) or isinstance(thing, types.ModuleType):
                continue
            if isinstance(thing, type) or _elsewhere(thing) or not callable(getattr(theirs, name, None)):
                continue
            dotted = f"{space}.{name}" if space else name
            if dotted not in left_out:
                found.append(dotted)
    return found


NAMES = Path(__file__).with_name("names.txt")


def _elsewhere(thing: Any) -> bool:
    """Not a function of the package, or a helper that a module imports for its own use."""
    module = getattr(thing, "__module__", "") or ""
    return not module.startswith("retrograd") or module.startswith(("retrograd.op_support", "retrograd.kernels"))


def _module(torch: Any, space: str) -> Any:
    for part in filter(None, space.split(".")):
        torch = getattr(torch, part)
    return torch


def _written() -> Iterator[tuple[str, Sample]]:
    for line in CALLS.strip().splitlines():
        call = ast.parse(line.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        args = tuple(_value(a) for a in call.args)
        kwargs = {str(k.arg): _value(k.value) for k in call.keywords}
        yield ast.unparse(call.func), Sample(line, args, kwargs)


def _value(node: ast.expr) -> Any:
    return eval(compile(ast.Expression(node), "base_calls", "eval"), dict(WORDS))


def _from_database() -> Iterator[tuple[str, Sample]]:
    for op in OPS:
        for sample in op.samples:
            if isinstance(op.fn, str):
                yield op.fn, sample
            if op.fn in ("where", "nn.functional.unfold"):
                continue  # the methods take other arguments
            if sample.method and sample.args and isinstance(sample.args[0], T):
                for name in (op.method, op.inplace):
                    if name:
                        yield f"Tensor.{name}", sample


#: The most calls that one function has.
MOST = 3
#: Samples with larger tensors take too long.
LARGEST = 4096


def base_calls() -> dict[str, list[Sample]]:
    """Right calls for every public name: few, and such that together they give as many arguments as there are."""
    candidates: dict[str, list[Sample]] = {}
    for source in (_written(), _from_database()):
        for name, sample in source:
            if all(np.prod(spec.shape) <= LARGEST for spec in sample.specs):
                candidates.setdefault(name, []).append(sample)
    return {name: _few(_candidates(name, candidates)) for name in NAMES.read_text().split()}


def _candidates(name: str, candidates: dict[str, list[Sample]]) -> list[Sample]:
    """The calls of a function; where it has none, those of the same function by another name."""
    space, _, base = name.rpartition(".")
    prefixes = ("", "Tensor.", "nn.functional.", "linalg.", "special.", "fft.")
    others = [name, *(p + base for p in prefixes), f"{space}_{base}"]
    for space in ("linalg", "fft", "special"):
        others.append(base.replace(f"{space}_", f"{space}."))
    if base.endswith("_") and not base.endswith("__"):
        others += [p + base[:-1] for p in prefixes]
    ours = _function(name)
    others += [other for other in candidates if ours is not None and _code(_function(other)) is _code(ours)]
    for other in others:
        found = candidates.get(other, [])
        if name.startswith("Tensor.") and not other.startswith("Tensor."):
            found = [s for s in found if s.args and isinstance(s.args[0], T)]
        if found:
            return found
    return []


def _function(name: str) -> Any:
    try:
        return _module(retrograd, name)
    except AttributeError:
        return None


def _code(function: Any) -> Any:
    """What functions have in common that are one under several names."""
    return getattr(function, "__code__", function)


def _few(samples: list[Sample]) -> list[Sample]:
    """Those that give an argument of a kind that the ones before them do not."""
    chosen: list[Sample] = []
    seen: set[tuple[Any, str]] = set()
    for sample in sorted(samples, key=lambda s: -len(s.args) - len(s.kwargs)):
        kinds = {(key, type(value).__name__) for key, value in [*enumerate(sample.args), *sample.kwargs.items()]}
        if (kinds - seen or not chosen) and len(chosen) < MOST:
            chosen.append(sample)
            seen |= kinds
    return chosen

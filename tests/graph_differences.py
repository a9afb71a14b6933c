"""Where a graph is not torch's: the reasons that test_graphs.py accepts.

Each operator of the sample database that records other nodes, saves or packs something else is listed under a reason,
and so is each attribute of a node that shows something else, whatever operator it is of. One that is listed in vain
fails.
"""

from __future__ import annotations

from graphs import NODES, PACKED, SAVED

BATCHES = (
    "A product of batches is one node. Torch puts an expansion and a view around each factor and a view around "
    "the result, whether or not they change anything; here that would make attention slower."
)
ARRANGED = (
    "The same numbers by other operators, or in another order: it is composed of others in torch, too."
)
COMPOSED = (
    "One node in torch, composed of operators here: it can be differentiated to any order, in forward mode as "
    "well."
)
ONE_NODE = (
    "One node here, with a formula that is exact where torch's composition loses digits or takes several passes."
)
DERIVATIVE = (
    "It has a derivative here and none in torch, whose node only raises."
)
MORE_EDGES = (
    "An argument that torch gives no gradient has one here."
)
ORIGINAL = (
    "The gradient is computed from the original values, which are kept; torch has none, or one from the result "
    "that is right for some arguments alone."
)
RECOMPUTED = (
    "What torch keeps for backward is computed from the input then, which needs less memory."
)
BYTES = (
    "Which element of a window is the largest is kept as one byte; torch keeps its index, in eight."
)
STATISTICS = (
    "The statistics that were used are kept, which torch reads from the running ones in evaluation; and torch "
    "packs those before they are updated."
)
WEIGHTS = (
    "The weights of attention are kept, with which backward is faster; torch keeps the logarithms of their sums, "
    "and computes them again."
)
NOTHING = (
    "The result has no derivative, and nothing is saved for it; torch saves, and throws away."
)
SIGNS = (
    "Singular and eigenvectors are unique but for their sign, which LAPACK is free to choose."
)
EXACT = (
    "Added up in the order that infinities stand, where torch subtracts from a sum."
)
INSIDES = (
    "An underscored name of torch's insides, which is the public operator here, or is composed of such."
)
NEVER = (
    "Python never calls it with a tensor: the sign between two tensors is the left one's."
)
NUMBER = (
    "A number is kept as a number where torch makes a tensor of it that counts as given."
)
MM_SIZES = (
    "The shapes of a product's factors follow from the result and the other factor."
)
STRIDES = (
    "NumPy has other strides for dimensions of one element."
)
OTHER_END = (
    "The same dimension, or the same end of a slice, counted from the other side."
)
GIVEN = (
    "What was given, where torch shows what it made of it: a mask of numbers from one of truth values."
)
AS_USED = (
    "What was used, where torch shows what was given: nothing, or one number for all dimensions."
)

#: (reason, kinds of differences, operators).
_LISTED: list[tuple[str, frozenset[str], list[str]]] = [
    (BATCHES, frozenset({NODES}), [
        "matmul", "linalg.cholesky_solve", "linalg.cholesky_inverse", "linalg.cholesky", "linalg.cholesky_ex",
        "linalg.eigh", "svd_lowrank", "nn.functional.scaled_dot_product_attention", "multi_head_attention_forward",
    ]),
    (ARRANGED, frozenset({NODES}), [
        "gradient", "gradient, options", "quantile", "nanquantile", "cov", "corrcoef", "cov, options",
        "linalg.matrix_norm", "nuclear_norm", "nn.functional.cosine_similarity", "norm, options",
        "cosine_similarity, options", "cdist, options", "combinations", "fill_diagonal_", "view_copy, options",
        "nn.functional.rrelu", "masked.logaddexp", "inner", "tensordot", "kron", "chain_matmul", "linalg.tensorinv",
        "linalg.tensorinv, options", "linalg.matrix_power", "nn.functional.linear_cross_entropy",
        "nn.functional.local_response_norm", "nn.functional.batch_norm, options", "nn.functional.unfold",
        "nn.functional.fold", "nn.functional.pad", "fft.hfft2", "fft.ihfft2", "fft.ihfftn", "fft.hfftn", "stft",
        "istft", "istft, options", "rnn_tanh", "gru_cell", "gru", "lstm_cell", "lstm", "rnn_relu",
    ]),
    (ARRANGED, frozenset({NODES, PACKED}), [
        "linalg.cond",
    ]),
    (ARRANGED, frozenset({PACKED}), [
        "nn.functional.cosine_embedding_loss", "nn.functional.poisson_nll_loss", "torch.kl_div",
        "torch.cosine_embedding_loss", "torch.poisson_nll_loss", "nn.functional.kl_div",
        "nn.functional.cosine_embedding_loss, options", "nn.functional.kl_div, options",
        "nn.functional.poisson_nll_loss, options",
    ]),
    (ARRANGED, frozenset({PACKED, SAVED}), [
        "rnn_tanh_cell", "rnn_relu_cell",
    ]),
    (COMPOSED, frozenset({NODES}), [
        "polygamma_", "embedding_bag, sparse gradient", "segment_reduce", "as_strided_scatter", "ormqr", "lobpcg",
        "nn.functional.ctc_loss", "torch.ctc_loss", "nn.functional.embedding_bag", "torch.embedding_bag",
        "nn.functional.embedding_bag, options", "nn.functional.grid_sample", "grid_sampler", "grid_sampler_2d",
        "grid_sampler_3d",
    ]),
    (ONE_NODE, frozenset({NODES}), [
        "ndtr", "nn.functional.softsign", "einsum", "nn.functional.conv1d", "nn.functional.conv_transpose1d",
    ]),
    (DERIVATIVE, frozenset({NODES}), [
        "floor_divide", "__floordiv__", "linalg.ldl_solve", "native_channel_shuffle",
    ]),
    (MORE_EDGES, frozenset({NODES}), [
        "nn.functional.soft_margin_loss", "nn.functional.soft_margin_loss, options",
    ]),
    (ORIGINAL, frozenset({PACKED}), [
        "arccosh_, options", "polar", "nn.functional.elu_, options", "nn.functional.celu_, options",
    ]),
    (RECOMPUTED, frozenset({PACKED}), [
        "nn.functional.logsigmoid", "linalg.solve", "linalg.det", "linalg.slogdet", "logdet",
        "linalg.logdet of negative", "det", "slogdet", "linalg.solve_ex", "nn.functional.multilabel_soft_margin_loss",
        "nn.functional.multilabel_soft_margin_loss, options", "multilabel_soft_margin_loss, options",
    ]),
    (RECOMPUTED, frozenset({NODES, PACKED}), [
        "linalg.tensorsolve",
    ]),
    (BYTES, frozenset({PACKED}), [
        "nn.functional.max_pool1d", "nn.functional.max_pool2d", "nn.functional.max_pool3d",
        "nn.functional.max_pool_with_indices, options",
    ]),
    (STATISTICS, frozenset({NODES, PACKED}), [
        "nn.functional.batch_norm",
    ]),
    (STATISTICS, frozenset({PACKED}), [
        "batch_norm, running statistics", "nn.functional.instance_norm", "instance_norm, running statistics",
        "torch.batch_norm", "batch_norm, running", "nn.functional.instance_norm, options",
    ]),
    (WEIGHTS, frozenset({PACKED}), [
        "nn.functional.scaled_dot_product_attention, heads",
    ]),
    (NOTHING, frozenset({PACKED}), [
        "isfinite", "isclose", "argsort", "linalg.matrix_rank",
    ]),
    (SIGNS, frozenset({NODES, PACKED}), [
        "linalg.svd",
    ]),
    (SIGNS, frozenset({PACKED}), [
        "linalg.svd of one side", "linalg.svdvals", "linalg.eigh of one triangle", "linalg.eigvalsh",
    ]),
    (EXACT, frozenset({NODES}), [
        "trapezoid",
    ]),
    (INSIDES, frozenset({NODES}), [
        "_chunk_cat", "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate", "_safe_softmax",
        "_masked_softmax",
        "_native_batch_norm_legit",
    ]),
    (NEVER, frozenset({NODES}), [
        "__rsub__, options", "__rtruediv__, options",
    ]),
    (NUMBER, frozenset({PACKED}), [
        "div, options",
    ]),
]  # fmt: skip

OPERATORS: dict[str, tuple[frozenset[str], str]] = {
    name: (kinds, reason) for reason, kinds, names in _LISTED for name in names
}

#: What nodes show otherwise.
_SHOWN: list[tuple[str, list[str]]] = [
    (ARRANGED, [
        "AddmmBackward0._saved_mat1", "AddmmBackward0._saved_mat2",
    ]),
    (ORIGINAL, [
        "AcoshBackward1._saved_self", "AsinhBackward1._saved_self", "AtanhBackward1._saved_self",
        "CeluBackward1._saved_result", "CeluBackward1._saved_self", "EluBackward1._saved_result",
        "EluBackward1._saved_self", "PolarBackward0._saved_angle",
    ]),
    (RECOMPUTED, [
        "LinalgDetBackward0._saved_LU", "LinalgDetBackward0._saved_pivots", "LinalgSlogdetBackward0._saved_LU",
        "LinalgSlogdetBackward0._saved_pivots", "LinalgSolveExBackward0._saved_LU",
        "LinalgSolveExBackward0._saved_pivots", "LogSigmoidBackward0._saved_buffer",
    ]),
    (BYTES, [
        "MaxPool2DWithIndicesBackward0._saved_result1", "MaxPool3DWithIndicesBackward0._saved_result1",
    ]),
    (STATISTICS, [
        "NativeBatchNormBackward0._saved_result1", "NativeBatchNormBackward0._saved_result2",
    ]),
    (MM_SIZES, [
        "AddmmBackward0._saved_mat1_sym_sizes", "AddmmBackward0._saved_mat2_sym_sizes",
        "MmBackward0._saved_mat2_sym_sizes", "MmBackward0._saved_self_sym_sizes",
    ]),
    (STRIDES, [
        "AddmmBackward0._saved_mat1_sym_strides", "AddmmBackward0._saved_mat2_sym_strides",
        "MmBackward0._saved_mat2_sym_strides", "MmBackward0._saved_self_sym_strides",
    ]),
    (OTHER_END, [
        "CatBackward0._saved_dim", "CumsumBackward0._saved_dim", "MeanBackward1._saved_dim",
        "PermuteBackward0._saved_dims", "SliceBackward0._saved_dim", "SliceBackward0._saved_end",
        "SliceBackward0._saved_start", "SumBackward1._saved_dim", "UnsqueezeBackward0._saved_dim",
    ]),
    (GIVEN, [
        "ScaledDotProductFlashAttentionForCpuBackward0._saved_attn_mask",
    ]),
    (AS_USED, [
        "AvgPool2DBackward0._saved_stride",
        "AvgPool3DBackward0._saved_stride", "ConvolutionBackward0._saved_output_padding",
        "ConvolutionBackward0._saved_padding", "MaxPool2DWithIndicesBackward0._saved_stride",
        "MaxPool3DWithIndicesBackward0._saved_stride",
    ]),
]  # fmt: skip

ATTRIBUTES: dict[str, str] = {name: reason for reason, names in _SHOWN for name in names}

"""Every module of torch.nn over its options: how it is made, and what it is called with.

A case is an expression with the names of ``nn`` (and of ``torch``, as ``torch``), and the names of its inputs among
`INPUTS`.  An input that is an array of floats is differentiated for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape)


def _distinct(*shape: int) -> np.ndarray:
    """No two values are near each other, and none is zero, so that maxima and signs are clear."""
    return _RNG.permutation(np.prod(shape)).reshape(shape) * 0.1 - 0.05 * np.prod(shape) + 0.03


INPUTS: dict[str, Any] = {
    "vector": draw(6),
    "rows": draw(4, 6),
    "rows2": draw(4, 6),
    "rows3": draw(4, 6),
    "signal": _distinct(2, 4, 9),
    "signal1": _distinct(4, 9),
    "image": _distinct(2, 4, 6, 7),
    "image1": _distinct(4, 6, 7),
    "volume": _distinct(2, 4, 4, 5, 4),
    "volume1": _distinct(4, 4, 5, 4),
    "patches": draw(2, 8, 20),
    "maxima": (m := np.array([[[3.0, 5.0], [2.0, 9.0]]])),
    "places": np.array([[[1, 3], [0, 2]]]),
    "maxima2": m[:, None],
    "places2": np.array([[[[1, 3], [8, 10]]]]),
    "maxima3": m[:, None, None],
    "places3": np.array([[[[[1, 3], [8, 10]]]]]),
    "classes": np.array([0, 2, 1, 5]),
    "class": np.array(2),
    "signs": np.where(draw(4, 6) > 0, 1.0, -1.0),
    "signs1": np.where(draw(4) > 0, 1.0, -1.0),
    "zeros_ones": (draw(4, 6) > 0).astype(np.float64),
    "labels": np.array([[0, 2, -1, 1, 3, 4], [1, -1, 0, 0, 0, 0], [5, 4, 3, -1, 0, 0], [2, -1, 0, 0, 0, 0]]),
    "chances": 1 / (1 + np.exp(-draw(4, 6))),
    "logs": np.log(np.exp(c := draw(4, 6)) / np.exp(c).sum(1, keepdims=True)),
    "positive": np.abs(draw(4, 6)) + 0.1,
    "counts": np.abs(draw(4, 6)).round(),
    "class_map": _RNG.integers(0, 4, (2, 6, 7)),
    "words": np.array([[1, 2, 3, 1], [4, 0, 6, 1]]),
    "bag": np.array([1, 2, 4, 5, 4, 3]),
    "starts": np.array([0, 2, 2]),
    "starts_and_end": np.array([0, 2, 2, 6]),
    "weights": draw(6),
    "steps": draw(5, 3, 4),
    "steps1": draw(5, 4),
    "steps_first": draw(3, 5, 4),
    "state": draw(2, 3, 6),
    "state4": draw(4, 3, 6),
    "state1": draw(2, 6),
    "states": (draw(2, 3, 6), draw(2, 3, 6)),
    "states_projected": (draw(2, 3, 2), draw(2, 3, 6)),
    "states1": (draw(2, 6), draw(2, 6)),
    "cell_input": draw(3, 4),
    "cell_input1": draw(4),
    "cell_state": draw(3, 6),
    "cell_states": (draw(3, 6), draw(3, 6)),
    "query": draw(5, 2, 8),
    "query1": draw(5, 8),
    "key": draw(7, 2, 8),
    "key_k": draw(7, 2, 3),
    "value_v": draw(7, 2, 5),
    "query_first": draw(2, 5, 8),
    "mask": np.triu(np.ones((5, 5), bool), 1),
    "float_mask": np.triu(np.full((5, 5), -np.inf), 1),
    "padding_mask": np.array([[False] * 5, [False] * 3 + [True] * 2]),
    "speech": np.log(np.exp(s := draw(9, 2, 5)) / np.exp(s).sum(2, keepdims=True)),
    "speech_targets": np.array([[1, 2, 2, 3], [4, 1, 0, 0]]),
    "speech_lengths": np.array([9, 8]),
    "target_lengths": np.array([4, 2]),
}

#: Targets that torch takes no derivative for.
CONSTANT = {"signs"}

_PLAIN = """
    Identity(3, unused=4) | Sigmoid() | Tanh() | LogSigmoid() | Softsign() | Tanhshrink() | ReLU() | ReLU6() | SiLU()
    Mish() | SELU() | Hardsigmoid() | Hardswish() | LeakyReLU() | LeakyReLU(0.2) | ELU() | ELU(2.0) | CELU() | CELU(0.5)
    Hardtanh() | Hardtanh(-0.5, 0.7) | Threshold(0.1, -2.0) | GELU() | GELU('tanh') | Softplus() | Softplus(2, 1)
    Softshrink() | Softshrink(0.2) | Hardshrink() | PReLU() | PReLU(6, 0.1) | GLU() | GLU(0) | Softmax(1) | Softmin(0)
    LogSoftmax(-1) | RReLU(0.1, 0.3).eval() | RReLU(0.2, 0.2) | Linear(6, 3) | Linear(6, 3, bias=False)
    NonDynamicallyQuantizableLinear(6, 3) | Dropout(0.3).eval() | Dropout(1.0) | Dropout(0.0) | AlphaDropout(0.3).eval()
    AlphaDropout(1.0) | FeatureAlphaDropout(0.2).eval() | LayerNorm(6) | LayerNorm((4, 6), elementwise_affine=False)
    LayerNorm(6, bias=False) | LayerNorm(6, eps=0.1) | RMSNorm(6) | RMSNorm(6, eps=0.1, elementwise_affine=False)
    BatchNorm1d(6) | BatchNorm1d(6).eval() | BatchNorm1d(6, affine=False).eval() | BatchNorm1d(6, momentum=None)
    BatchNorm1d(6, momentum=0.3, eps=0.01) | BatchNorm1d(6, bias=False) | BatchNorm1d(6, track_running_stats=False)
    BatchNorm1d(6, track_running_stats=False).eval() | SyncBatchNorm(6).eval() | GroupNorm(2, 6)
    Unflatten(1, (2, 3)) | Flatten(0) | LazyLinear(3) | LazyLinear(3, bias=False) | LazyBatchNorm1d()
    Sequential(Linear(6, 3), ReLU(), Linear(3, 2)) | AdaptiveAvgPool1d(2) | MaxPool1d(2)
"""
_SIGNAL = """
    Conv1d(4, 6, 3) | Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2) | Conv1d(4, 6, 3, bias=False)
    Conv1d(4, 6, 4, padding='same') | Conv1d(4, 6, 3, padding='valid')
    Conv1d(4, 2, 3, padding=2, padding_mode='reflect')
    Conv1d(4, 2, 3, padding=2, padding_mode='replicate') | Conv1d(4, 2, 3, padding=2, padding_mode='circular')
    Conv1d(4, 2, 4, padding='same', padding_mode='circular') | ConvTranspose1d(4, 6, 3)
    ConvTranspose1d(4, 6, 3, stride=3, padding=1, output_padding=2, groups=2, dilation=2, bias=False)
    LazyConv1d(6, 3, groups=2) | LazyConvTranspose1d(6, 3, 2) | MaxPool1d(3) | MaxPool1d(3, 2, 1, 2)
    MaxPool1d(2, ceil_mode=True) | MaxPool1d(3, 2, return_indices=True) | AvgPool1d(3) | AvgPool1d(3, 2, 1, True, False)
    AvgPool1d((2,), (3,)) | LPPool1d(2, 3) | LPPool1d(3, 2, 1, True) | AdaptiveMaxPool1d(4) | AdaptiveMaxPool1d(4, True)
    AdaptiveAvgPool1d(4) | ConstantPad1d(2, 3.5) | ConstantPad1d((1, -2), 3.5) | ZeroPad1d((1, 2)) | ReflectionPad1d(2)
    ReflectionPad1d((3, 1)) | ReplicationPad1d((3, 1)) | CircularPad1d((3, 1)) | InstanceNorm1d(4)
    InstanceNorm1d(4, affine=True, track_running_stats=True) | InstanceNorm1d(4, affine=True, bias=False)
    InstanceNorm1d(4, track_running_stats=True).eval() | LazyInstanceNorm1d(affine=True) | BatchNorm1d(4)
    GroupNorm(2, 4)
    GroupNorm(4, 4, affine=False) | GroupNorm(1, 4, bias=False) | LocalResponseNorm(3)
    LocalResponseNorm(2, 0.1, 0.5, 2.0)
    ChannelShuffle(2) | Upsample(5) | Upsample(scale_factor=1.5, mode='linear') | Upsample(12, mode='nearest-exact')
    Upsample(scale_factor=2, mode='linear', align_corners=True, recompute_scale_factor=True) | Flatten()
    Dropout1d(0.2).eval() | Softmax(1) | SyncBatchNorm(4, momentum=None).eval()
"""
_IMAGE = """
    Conv2d(4, 6, 3) | Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2) | Conv2d(4, 8, 1)
    Conv2d(4, 6, 4, padding='same') | Conv2d(4, 2, 3, padding=(1, 2), padding_mode='reflect')
    Conv2d(4, 4, 3, groups=4)
    Conv2d(4, 2, 3, padding=(1, 2), padding_mode='replicate') | Conv2d(4, 2, 3, padding=(1, 2), padding_mode='circular')
    ConvTranspose2d(4, 6, 3) | ConvTranspose2d(4, 6, (3, 2), (2, 3), (1, 0), (1, 2), 2, False, (1, 2))
    LazyConv2d(6, 3) | LazyConvTranspose2d(6, 3, bias=False) | MaxPool2d(3)
    MaxPool2d((3, 2), (2, 1), 1, 2, False, True)
    MaxPool2d(2, return_indices=True) | AvgPool2d(3) | AvgPool2d((3, 2), (2, 1), (1, 0), True, False)
    AvgPool2d(2, divisor_override=3) | LPPool2d(2, 3) | LPPool2d(3, (2, 3), 2, True) | AdaptiveMaxPool2d((3, None))
    AdaptiveMaxPool2d(3, return_indices=True) | AdaptiveAvgPool2d((None, 2)) | AdaptiveAvgPool2d(3)
    ConstantPad2d((1, 2, 0, 3), 1.5) | ZeroPad2d(2) | ReflectionPad2d((1, 2, 3, 0)) | ReplicationPad2d((1, 2, 3, 0))
    CircularPad2d((1, 2, 3, 0)) | BatchNorm2d(4) | BatchNorm2d(4, affine=False, momentum=None) | BatchNorm2d(4).eval()
    LazyBatchNorm2d(momentum=0.2) | InstanceNorm2d(4) | InstanceNorm2d(4, affine=True) | LazyInstanceNorm2d()
    InstanceNorm2d(4, track_running_stats=True, momentum=0.5) | GroupNorm(2, 4) | LocalResponseNorm(3) | Softmax2d()
    PixelShuffle(2) | PixelUnshuffle(1) | ChannelShuffle(4) | Unfold((2, 3)) | Unfold(2, 2, 1, 2) | Upsample((9, 4))
    Upsample(scale_factor=2, mode='bilinear') | Upsample(scale_factor=(1.5, 2.0), mode='bicubic')
    Upsample((8, 8), mode='bicubic', align_corners=True) | UpsamplingNearest2d(scale_factor=2)
    UpsamplingBilinear2d(size=(4, 9)) | Flatten(1, 2) | Dropout2d(0.2).eval() | PReLU(4) | CrossMapLRN2d(7)
    FractionalMaxPool2d(2, output_size=(3, 4), _random_samples=torch.full((2, 4, 2), 0.3, dtype=torch.float64))
    FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True, _random_samples=torch.full((2, 4, 2), 0.6).double())
"""
_VOLUME = """
    Conv3d(4, 6, 3) | Conv3d(4, 6, (3, 2, 1), (1, 2, 1), (1, 0, 1), (1, 2, 1), 2, False)
    Conv3d(4, 2, 2, padding='same')
    Conv3d(4, 2, 3, padding=1, padding_mode='circular') | Conv3d(4, 2, 3, padding=1, padding_mode='replicate')
    Conv3d(4, 2, 3, padding=(1, 2, 1), padding_mode='reflect') | ConvTranspose3d(4, 2, 2)
    ConvTranspose3d(4, 6, (3, 2, 1), (2, 1, 1), 0, (1, 0, 0), 2) | LazyConv3d(2, 3) | LazyConvTranspose3d(2, 2)
    MaxPool3d(2) | MaxPool3d((2, 3, 1), 1, (1, 0, 0), return_indices=True, ceil_mode=True) | AvgPool3d(2)
    AvgPool3d((2, 3, 2), 2, 1, True, False, 3) | LPPool3d(2, 2) | AdaptiveMaxPool3d((2, None, 3)) | AdaptiveAvgPool3d(2)
    AdaptiveMaxPool3d(2, True) | ConstantPad3d((1, 2, 0, 1, 2, 0), 1.5) | ZeroPad3d(1)
    ReflectionPad3d((1, 2, 3, 0, 1, 1))
    ReplicationPad3d((1, 2, 3, 0, 1, 1)) | CircularPad3d((1, 2, 3, 0, 1, 1)) | BatchNorm3d(4) | LazyBatchNorm3d()
    InstanceNorm3d(4, affine=True) | LazyInstanceNorm3d(track_running_stats=True) | Upsample(5, mode='trilinear')
    Upsample(scale_factor=2, mode='trilinear', align_corners=True) | Dropout3d(0.2).eval()
    FractionalMaxPool3d(2, output_size=(2, 3, 2), _random_samples=torch.full((2, 4, 3), 0.3, dtype=torch.float64))
"""
_UNBATCHED = {
    "signal1": "Conv1d(4, 6, 3, padding_mode='circular', padding=1) | ConvTranspose1d(4, 2, 3) | MaxPool1d(2)"
    " | AvgPool1d(2)"
    " | InstanceNorm1d(4) | ReflectionPad1d(1) | ReplicationPad1d(1) | AdaptiveMaxPool1d(2) | LPPool1d(2, 2)"
    " | LazyConv1d(2, 2) | CircularPad1d(2)",
    "image1": "Conv2d(4, 6, 3) | ConvTranspose2d(4, 2, 3) | MaxPool2d(2) | AvgPool2d(2) | InstanceNorm2d(4)"
    " | Softmax2d()"
    " | AdaptiveAvgPool2d(2) | ReflectionPad2d(1) | Unfold(2) | PixelShuffle(2) | LPPool2d(2, 2)",
    "volume1": "Conv3d(4, 6, 3) | ConvTranspose3d(4, 2, 2) | MaxPool3d(2) | AvgPool3d(2) | InstanceNorm3d(4)"
    " | AdaptiveAvgPool3d(2) | ReplicationPad3d(1)",
}
_LOSSES = {
    "rows rows2": "MSELoss() | MSELoss(reduction='sum') | MSELoss(reduction='none') | L1Loss() | SmoothL1Loss(beta=0.5)"
    " | SmoothL1Loss(reduction='sum', beta=0.0) | HuberLoss(delta=0.5) | HuberLoss('none') | CosineSimilarity()"
    " | CosineSimilarity(0, 0.1) | PairwiseDistance() | PairwiseDistance(1.0, 0.1, True) | Bilinear(6, 6, 2)"
    " | Bilinear(6, 6, 2, bias=False)",
    "rows classes": "CrossEntropyLoss() | CrossEntropyLoss(label_smoothing=0.1, ignore_index=2) | NLLLoss()"
    " | CrossEntropyLoss(torch.arange(1.0, 7.0), reduction='sum') | NLLLoss(torch.arange(1.0, 7.0), ignore_index=1)"
    " | CrossEntropyLoss(torch.arange(1.0, 7.0), label_smoothing=0.2) | MultiMarginLoss() | NLLLoss(reduction='none')"
    " | MultiMarginLoss(2, 0.5, torch.arange(1.0, 7.0), reduction='sum') | LinearCrossEntropyLoss(6, 7, bias=True)"
    " | AdaptiveLogSoftmaxWithLoss(6, 8, [2, 4], 1.5)"
    " | AdaptiveLogSoftmaxWithLoss(6, 8, [3], head_bias=True, div_value=2.0)",
    "rows chances": "CrossEntropyLoss()"
    " | CrossEntropyLoss(torch.arange(1.0, 7.0), reduction='none', label_smoothing=0.1)"
    " | BCEWithLogitsLoss() | BCEWithLogitsLoss(torch.arange(1.0, 7.0), pos_weight=torch.arange(6.0), reduction='sum')",
    "chances zeros_ones": "BCELoss() | BCELoss(torch.arange(1.0, 7.0), reduction='sum') | BCELoss(reduction='none')",
    "logs chances": "KLDivLoss(reduction='batchmean') | KLDivLoss(reduction='sum') | KLDivLoss(reduction='none')",
    "logs rows": "KLDivLoss(reduction='batchmean', log_target=True)",
    "image class_map": "CrossEntropyLoss() | NLLLoss(reduction='none')",
    "vector class": "CrossEntropyLoss() | AdaptiveLogSoftmaxWithLoss(6, 8, [2, 4], 1.5)",
    "rows counts": "PoissonNLLLoss() | PoissonNLLLoss(full=True, reduction='sum')",
    "positive counts": "PoissonNLLLoss(log_input=False, eps=0.1)",
    "rows rows2 positive": "GaussianNLLLoss() | GaussianNLLLoss(full=True, eps=0.5, reduction='none')",
    "rows signs": "HingeEmbeddingLoss() | HingeEmbeddingLoss(0.3, reduction='sum') | SoftMarginLoss()"
    " | SoftMarginLoss(reduction='none')",
    "rows rows2 signs": "MarginRankingLoss() | MarginRankingLoss(0.5, reduction='sum')",
    "rows rows2 signs1": "CosineEmbeddingLoss() | CosineEmbeddingLoss(0.2, reduction='none')",
    "rows labels": "MultiLabelMarginLoss() | MultiLabelMarginLoss(reduction='sum')",
    "rows zeros_ones": "MultiLabelSoftMarginLoss()"
    " | MultiLabelSoftMarginLoss(torch.arange(1.0, 7.0), reduction='none')",
    "rows rows2 rows3": "TripletMarginLoss() | TripletMarginLoss(2.0, 1.0, 0.1, True, reduction='sum')"
    " | TripletMarginWithDistanceLoss(swap=True, margin=2.0)"
    " | TripletMarginWithDistanceLoss(distance_function=L1Loss())",
    "speech speech_targets speech_lengths target_lengths": "CTCLoss() | CTCLoss(reduction='sum')"
    " | CTCLoss(reduction='none', zero_infinity=True)",
}
_OTHERS = {
    "maxima places": "MaxUnpool1d(2) | MaxUnpool1d(2, 2, 0)",
    "maxima2 places2": "MaxUnpool2d(2) | MaxUnpool2d((2, 2), (2, 2))",
    "maxima3 places3": "MaxUnpool3d((1, 2, 2))",
    "patches": "Fold((5, 6), 2) | Fold((7, 6), 2, 2, 0, 1)",
    "words": "Embedding(7, 3) | Embedding(7, 3, padding_idx=1) | Embedding(7, 3, max_norm=1.0)"
    " | Embedding(7, 3, -1, 0.5, 1.0)"
    " | Embedding(7, 3, norm_type=1.0, scale_grad_by_freq=True) | EmbeddingBag(7, 3) | EmbeddingBag(7, 3, mode='sum')"
    " | EmbeddingBag(7, 3, mode='max') | EmbeddingBag(7, 3, padding_idx=1)"
    " | EmbeddingBag(7, 3, max_norm=1.0, norm_type=1.0)"
    " | Embedding.from_pretrained(torch.arange(21.0).reshape(7, 3), freeze=False)",
    "bag starts": "EmbeddingBag(7, 3) | EmbeddingBag(7, 3, mode='max') | EmbeddingBag(7, 3, mode='sum', padding_idx=4)",
    "bag starts_and_end": "EmbeddingBag(7, 3, include_last_offset=True)",
    "bag starts weights": "EmbeddingBag(7, 3, mode='sum')",
    "steps": "RNN(4, 6) | RNN(4, 6, 2, 'relu') | RNN(4, 6, num_layers=2, bidirectional=True, bias=False) | GRU(4, 6)"
    " | GRU(4, 6, 2, bidirectional=True) | LSTM(4, 6) | LSTM(4, 6, 2, dropout=0.5).eval() | LSTM(4, 6, proj_size=2)"
    " | LSTM(4, 6, 2, bidirectional=True, proj_size=3) | LSTM(4, 6, bias=False)",
    "steps state": "RNN(4, 6, 2) | GRU(4, 6, bidirectional=True)",
    "steps state4": "GRU(4, 6, 2, bidirectional=True)",
    "steps states": "LSTM(4, 6, 2)",
    "steps states_projected": "LSTM(4, 6, 2, proj_size=2)",
    "steps_first": "RNN(4, 6, batch_first=True) | LSTM(4, 6, 2, batch_first=True, bidirectional=True)",
    "steps1": "RNN(4, 6) | GRU(4, 6, batch_first=True) | LSTM(4, 6)",
    "steps1 state1": "RNN(4, 6, 2) | GRU(4, 6, 2)",
    "steps1 states1": "LSTM(4, 6, 2)",
    "cell_input": "RNNCell(4, 6) | RNNCell(4, 6, False, 'relu') | GRUCell(4, 6) | LSTMCell(4, 6)"
    " | LSTMCell(4, 6, bias=False)",
    "cell_input1": "RNNCell(4, 6) | GRUCell(4, 6) | LSTMCell(4, 6)",
    "cell_input cell_state": "RNNCell(4, 6, nonlinearity='relu') | GRUCell(4, 6, bias=False)",
    "cell_input cell_states": "LSTMCell(4, 6)",
    "query query query": "MultiheadAttention(8, 2)"
    " | MultiheadAttention(8, 4, bias=False, add_bias_kv=True, add_zero_attn=True)",
    "query key key": "MultiheadAttention(8, 2, 0.5).eval() | MultiheadAttention(8, 2, add_bias_kv=True)",
    "query key_k value_v": "MultiheadAttention(8, 2, kdim=3, vdim=5)"
    " | MultiheadAttention(8, 2, kdim=3, vdim=5, bias=False)",
    "query1 query1 query1": "MultiheadAttention(8, 2)",
    "query_first query_first query_first": "MultiheadAttention(8, 2, batch_first=True)",
    "query_first query_first query_first padding_mask": "MultiheadAttention(8, 2, batch_first=True)",
    "query": "TransformerEncoderLayer(8, 2, 16, 0.0) | TransformerEncoderLayer(8, 2, 16, 0.0, 'gelu', norm_first=True)"
    " | TransformerEncoder(TransformerEncoderLayer(8, 2, 16, 0.0, bias=False), 2, enable_nested_tensor=False)"
    " | TransformerEncoderLayer(8, 2, 16, 0.3, activation=SiLU()).eval()",
    "query mask": "TransformerEncoderLayer(8, 2, 16, 0.0)"
    " | TransformerEncoder(TransformerEncoderLayer(8, 2, 16, 0.0), 1,"
    " LayerNorm(8), enable_nested_tensor=False)",
    "query float_mask": "TransformerEncoderLayer(8, 2, 16, 0.0, layer_norm_eps=0.1)",
    "query_first mask padding_mask": "TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)",
    "query key": "TransformerDecoderLayer(8, 2, 16, 0.0)"
    " | TransformerDecoderLayer(8, 2, 16, 0.0, 'gelu', norm_first=True)"
    " | TransformerDecoder(TransformerDecoderLayer(8, 2, 16, 0.0, bias=False), 2, LayerNorm(8))",
    "key query": "Transformer(8, 2, 1, 1, 16, 0.0)"
    " | Transformer(8, 2, 1, 2, 16, 0.0, 'gelu', norm_first=True, bias=False)",
}


def _cases() -> list[tuple[str, str]]:
    tables = [("rows", _PLAIN), ("signal", _SIGNAL), ("image", _IMAGE), ("volume", _VOLUME)]
    for more in (_UNBATCHED, _LOSSES, _OTHERS):
        tables += list(more.items())
    found = []
    for inputs, text in tables:
        for line in text.replace("\n", " | ").split(" | "):
            if line.strip():
                found.append((line.strip(), inputs))
    return found


CASES = _cases()


class Names:
    """The names that an expression may use: those of ``nn``, and ``torch``."""

    def __init__(self, package: Any) -> None:
        self.package = package

    def __getitem__(self, name: str) -> Any:
        if name == "torch":
            return self.package
        if name == "NonDynamicallyQuantizableLinear":
            return self.package.nn.modules.linear.NonDynamicallyQuantizableLinear
        if hasattr(self.package.nn, name):
            return getattr(self.package.nn, name)
        raise KeyError(name)


def make(package: Any, expression: str) -> Any:
    """The module of a case."""
    return eval(expression, {}, Names(package))


def inputs(package: Any, names: str) -> list[Any]:
    """The inputs of a case as tensors that require grad where they can; the same name twice is the same tensor."""

    def tensor(value: Any, name: str) -> Any:
        if isinstance(value, tuple):
            return tuple(tensor(part, name) for part in value)
        made = package.from_numpy(np.array(value))
        return made.requires_grad_() if made.is_floating_point() and name not in CONSTANT else made

    seen = {name: tensor(INPUTS[name], name) for name in names.split()}
    return [seen[name] for name in names.split()]

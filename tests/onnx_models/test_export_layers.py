"""Each exportable layer type computes the same in onnxruntime, at four versions of the operators."""
import caffe.onnx
import nets
import numpy as np
import pytest

GOLDENS = sorted((nets.ROOT / "tests" / "golden").glob("layers/*.npz")) + sorted((nets.ROOT / "tests" / "golden").glob("nets/*.npz"))



def one_layer(kind, bottoms, options="", tops="y"):
    """A layer named l that reads x0, x1, ...; each letter of `tops` is one."""
    names = [f"bottom: 'x{k}'" for k in range(bottoms)] + [f"top: '{top}'" for top in tops]
    return f"layer {{ name: 'l' type: '{kind}' {' '.join(names)} {options} }} "


# Shapes of the bottoms, layers. These cases are not in tests/golden, which comes from BVLC Caffe.
CASES = {
    "ReLU6": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Power' bottom: 'x0' top: 'p' power_param { scale: 10 } } "
                              "layer { name: 'r' type: 'ReLU6' bottom: 'p' top: 'y' }"),
    "HardSwish": ([(2, 3, 4)], "layer { name: 'l' type: 'Power' bottom: 'x0' top: 'p' power_param { scale: 5 } } "
                               "layer { name: 'r' type: 'HardSwish' bottom: 'p' top: 'y' }"),
    "HardSigmoid": ([(2, 3)], "layer { name: 'l' type: 'HardSigmoid' bottom: 'x0' top: 'y' "
                              "hard_sigmoid_param { alpha: 0.3 beta: 0.4 } }"),
    "Mish": ([(2, 3)], "layer { name: 'l' type: 'Mish' bottom: 'x0' top: 'y' }"),
    "GELU": ([(2, 3)], "layer { name: 'l' type: 'GELU' bottom: 'x0' top: 'y' }"),
    "SiLU": ([(2, 3)], "layer { name: 'l' type: 'SiLU' bottom: 'x0' top: 'y' }"),
    "Axpy": ([(2, 3), (2, 3, 4, 5), (2, 3, 4, 5)],
             "layer { name: 'l' type: 'Axpy' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"),
    "Dropout that scales": ([(2, 3)], "layer { name: 'l' type: 'Dropout' bottom: 'x0' top: 'y' "
                                      "dropout_param { dropout_ratio: 0.25 scale_train: false } }"),
    "BN": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'BN' bottom: 'x0' top: 'y' }"),
    "BN of SegNet": ([(4, 3, 4, 5)], "layer { name: 'l' type: 'BN' bottom: 'x0' top: 'y' bn_param { bn_mode: LEARN } }"),
    "BN that scales": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'BN' bottom: 'x0' top: 'y' bn_param { bn_mode: INFERENCE } }"),
    "SyncBN": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'SyncBN' bottom: 'x0' top: 'y' }"),
    "BatchNorm of NVCaffe": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'BatchNorm' bottom: 'x0' top: 'y' "
                                             "batch_norm_param { scale_bias: true } }"),
    "LayerNorm": ([(2, 3, 8)], "layer { name: 'l' type: 'LayerNorm' bottom: 'x0' top: 'y' }"),
    "LayerNorm of two axes": ([(2, 3, 8)], "layer { name: 'l' type: 'LayerNorm' bottom: 'x0' top: 'y' "
                                           "layer_norm_param { axis: 1 affine: false } }"),
    "RMSNorm": ([(2, 3, 8)], "layer { name: 'l' type: 'RMSNorm' bottom: 'x0' top: 'y' }"),
    "RMSNorm of two axes": ([(2, 3, 8)], "layer { name: 'l' type: 'RMSNorm' bottom: 'x0' top: 'y' "
                                         "rms_norm_param { axis: 1 affine: false } }"),
    "MatMul": ([(2, 3, 4), (2, 5, 4)], "layer { name: 'l' type: 'MatMul' bottom: 'x0' bottom: 'x1' top: 'y' "
                                       "matmul_param { transpose_b: true } }"),
    "MatMul of broadcast matrices": ([(2, 3, 4, 6), (1, 5, 6)], "layer { name: 'l' type: 'MatMul' bottom: 'x0' bottom: 'x1' top: 'y' "
                                                                "matmul_param { transpose_b: true } }"),
    "Normalize": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Normalize' bottom: 'x0' top: 'y' "
                                  "norm_param { across_spatial: false } }"),
    "Normalize items": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Normalize' bottom: 'x0' top: 'y' "
                                        "norm_param { channel_shared: true } }"),
    "Permute": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Permute' bottom: 'x0' top: 'y' permute_param { order: 0 order: 2 } }"),
    "ConvolutionDepthwise": ([(2, 3, 8, 8)], "layer { name: 'l' type: 'ConvolutionDepthwise' bottom: 'x0' top: 'y' "
                                             "convolution_param { num_output: 3 kernel_size: 3 stride: 2 pad: 1 } }"),
    "Interp": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Interp' bottom: 'x0' top: 'y' interp_param { height: 9 width: 7 } }"),
    "Interp of areas": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Interp' bottom: 'x0' top: 'y' "
                        "interp_param { height: 9 width: 3 align_corners: false } }"),
    "Interp of a part": ([(2, 3, 6, 5)], "layer { name: 'l' type: 'Interp' bottom: 'x0' top: 'y' "
                                         "interp_param { zoom_factor: 3 pad_beg: -1 pad_end: -1 } }"),
    "Upsample": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Upsample' bottom: 'x0' top: 'y' upsample_param { scale: 3 } }"),
    "Upsample less": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Upsample' bottom: 'x0' top: 'y' "
                                      "upsample_param { scale: 2 pad_out_h: true } }"),
    "Upsample to a size": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Upsample' bottom: 'x0' top: 'y' "
                                           "upsample_param { upsample_h: 7 upsample_w: 12 } }"),
    "Upsample by a mask": ([(2, 3, 6, 8)],
                           "layer { name: 'p' type: 'Pooling' bottom: 'x0' top: 'p' top: 'm' pooling_param { kernel_size: 2 "
                           "stride: 2 } } layer { name: 'l' type: 'Upsample' bottom: 'p' bottom: 'm' top: 'y' "
                           "upsample_param { upsample_h: 6 upsample_w: 8 } }"),
    "Reorg": ([(2, 8, 4, 6)], "layer { name: 'l' type: 'Reorg' bottom: 'x0' top: 'y' reorg_param { stride: 2 } }"),
    "Reorg back": ([(2, 8, 4, 6)], "layer { name: 'l' type: 'Reorg' bottom: 'x0' top: 'y' "
                                   "reorg_param { stride: 2 reverse: true } }"),
    "ShuffleChannel": ([(2, 6, 2, 3)], "layer { name: 'l' type: 'ShuffleChannel' bottom: 'x0' top: 'y' "
                                       "shuffle_channel_param { group: 3 } }"),
    "Flip": ([(2, 3, 4, 5)], "layer { name: 'l' type: 'Flip' bottom: 'x0' top: 'y' flip_param { flip_height: true } }"),
    "Reverse": ([(2, 3, 4)], "layer { name: 'l' type: 'Reverse' bottom: 'x0' top: 'y' reverse_param { axis: 1 } }"),
    "GRU": ([(4, 2, 3), (4, 2)], "layer { name: 'l' type: 'GRU' bottom: 'x0' bottom: 'x1' top: 'y' "
                                 "recurrent_param { num_output: 5 } }"),
    "Lstm": ([(6, 3)], "layer { name: 'l' type: 'Lstm' bottom: 'x0' top: 'y' lstm_param { num_output: 4 batch_size: 2 } }"),
    "ROIPooling": ([(2, 3, 12, 10), (3, 5)], "layer { name: 'l' type: 'ROIPooling' bottom: 'x0' bottom: 'x1' top: 'y' "
                                             "roi_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.5 } }"),
    "ROIAlign": ([(2, 3, 12, 10), (3, 5)], "layer { name: 'l' type: 'ROIAlign' bottom: 'x0' bottom: 'x1' top: 'y' "
                                           "roi_align_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.5 } }"),
    "Resample": ([(2, 3, 6, 5)], "layer { name: 'l' type: 'Resample' bottom: 'x0' top: 'y' resample_param { height: 9 width: 13 } }"),
    "Resample to the nearest pixel": ([(2, 3, 6, 5)], "layer { name: 'l' type: 'Resample' bottom: 'x0' top: 'y' "
                                                      "resample_param { factor: 2 type: NEAREST } }"),
    "Resample to less": ([(2, 3, 12, 16), (1, 1, 5, 7)], "layer { name: 'l' type: 'Resample' bottom: 'x0' bottom: 'x1' top: 'y' "
                                                         "resample_param { type: CUBIC } }"),
    "Resample without options": ([(1, 3, 5, 6), (1, 1, 7, 4)], "layer { name: 'l' type: 'Resample' bottom: 'x0' bottom: 'x1' "
                                                               "top: 'y' }"),
    "Resample to means": ([(2, 3, 12, 16)], "layer { name: 'l' type: 'Resample' bottom: 'x0' top: 'y' "
                                            "resample_param { factor: 0.4 type: AREA } }"),
    "ImResize": ([(1, 3, 6, 8)], "layer { name: 'l' type: 'ImResize' bottom: 'x0' top: 'y' imresize_param { factor: 2.5 } }"),
    "ImResize of scales": ([(3, 2, 24, 32)], "layer { name: 'l' type: 'ImResize' bottom: 'x0' top: 'y' imresize_param { "
                                             "target_spatial_height: 30 target_spatial_width: 20 scale_gap: 0.2 } }"),
    "Downsample": ([(2, 3, 12, 9)], "layer { name: 'l' type: 'Log' bottom: 'x0' top: 'n' } "  # NaN for negative numbers
                                    "layer { name: 'd' type: 'Downsample' bottom: 'n' top: 'y' "
                                    "downsample_param { top_height: 4 top_width: 5 } }"),
    "BatchReduction": ([(5, 3, 4)], "layer { name: 'l' type: 'BatchReduction' bottom: 'x0' top: 'y' batch_reduction_param { "
                                    "level: 1 level: 2 reduction_param { operation: SUM coeff: 0.5 } } }"),
    "BatchReduction of all": ([(3, 5, 4)], "layer { name: 'l' type: 'BatchReduction' bottom: 'x0' top: 'y' "
                                           "batch_reduction_param { reduction_param { operation: MEAN axis: 1 } } }"),
    "BatchReduction of a diagonal": ([(4, 4, 3)], "layer { name: 'l' type: 'BatchReduction' bottom: 'x0' top: 'y' "
                                                  "batch_reduction_param { level: 2 pos: true "
                                                  "reduction_param { operation: MEAN } } }"),
    "FlowWarp": ([(2, 3, 7, 9), (2, 2, 7, 9)], "layer { name: 'f' type: 'Power' bottom: 'x1' top: 'f' power_param { scale: 4 } } "
                                               "layer { name: 'l' type: 'FlowWarp' bottom: 'x0' bottom: 'f' top: 'y' }"),
    "FlowWarp with NaN outside": ([(1, 3, 7, 9), (1, 2, 7, 9)],
                                  "layer { name: 'f' type: 'Power' bottom: 'x1' top: 'f' power_param { scale: 4 } } "
                                  "layer { name: 'l' type: 'FlowWarp' bottom: 'x0' bottom: 'f' top: 'y' "
                                  "flow_warp_param { fill_value: NOT_A_NUMBER } }"),
    "SpatialTransformer": ([(2, 3, 7, 9), (2, 6)], "layer { name: 'l' type: 'SpatialTransformer' bottom: 'x0' bottom: 'x1' "
                                                   "top: 'y' st_param { output_H: 5 output_W: 6 } }"),
    "SpatialTransformer that shifts": ([(2, 3, 7, 9), (2, 2)],
                                       "layer { name: 'l' type: 'SpatialTransformer' bottom: 'x0' bottom: 'x1' top: 'y' "
                                       "st_param { theta_1_1: 1 theta_1_2: 0.1 theta_2_1: 0 theta_2_2: 0.9 } }"),
    "Correlation": ([(2, 3, 8, 9), (2, 3, 8, 9)], "layer { name: 'l' type: 'Correlation' bottom: 'x0' bottom: 'x1' top: 'y' "
                                                  "correlation_param { kernel_size: 1 max_displacement: 4 stride_2: 2 pad: 4 } }"),
    "Correlation of patches": ([(1, 2, 12, 11), (1, 2, 12, 11)],
                               "layer { name: 'l' type: 'Correlation' bottom: 'x0' bottom: 'x1' top: 'y' correlation_param { "
                               "kernel_size: 3 max_displacement: 2 stride_1: 2 pad: 1 do_abs: true } }"),
    "Correlation of differences": ([(1, 2, 8, 9), (1, 2, 8, 9)],
                                   "layer { name: 'l' type: 'Correlation' bottom: 'x0' bottom: 'x1' top: 'y' correlation_param { "
                                   "kernel_size: 1 max_displacement: 1 pad: 3 correlation_type: SUBTRACT } }"),
    "Correlation1D": ([(1, 2, 6, 9), (1, 2, 6, 9)], "layer { name: 'l' type: 'Correlation1D' bottom: 'x0' bottom: 'x1' top: 'y' "
                                                    "correlation_param { kernel_size: 3 max_displacement: 2 pad: 3 } }"),
    "Correlation1D to the left": ([(1, 2, 6, 9), (1, 2, 6, 9)],
                                  "layer { name: 'l' type: 'Correlation1D' bottom: 'x0' bottom: 'x1' top: 'y' correlation_param "
                                  "{ kernel_size: 1 max_displacement: 3 pad: 3 single_direction: -1 } }"),
    "Correlation1D to the right": ([(1, 2, 6, 9), (1, 2, 6, 9)],
                                   "layer { name: 'l' type: 'Correlation1D' bottom: 'x0' bottom: 'x1' top: 'y' correlation_param "
                                   "{ kernel_size: 1 max_displacement: 3 pad: 3 single_direction: 1 } }"),
    "Filter": ([(5, 3), (5, 2, 2), (5, 1)],
               "layer { name: 's' type: 'Threshold' bottom: 'x2' top: 's' } layer { name: 'l' type: 'Filter' bottom: 'x0' "
               "bottom: 'x1' bottom: 's' top: 'y' top: 'z' } layer { name: 'p' type: 'InnerProduct' bottom: 'z' top: 'p' "
               "inner_product_param { num_output: 3 } }"),
    "Nms": ([(2, 4, 12, 14)], "layer { name: 'l' type: 'Nms' bottom: 'x0' top: 'y' nms_param { threshold: 0.1 max_peaks: 6 "
                              "num_parts: 3 } }"),
    "Nms of few pixels": ([(1, 1, 3, 3)], "layer { name: 'l' type: 'Nms' bottom: 'x0' top: 'y' nms_param { threshold: 0.1 "
                                          "max_peaks: 12 num_parts: 1 } }"),
    "PSROIPooling": ([(2, 18, 12, 10), (3, 5)], "layer { name: 'l' type: 'PSROIPooling' bottom: 'x0' bottom: 'x1' top: 'y' "
                                                "psroi_pooling_param { output_dim: 2 group_size: 3 spatial_scale: 0.5 } }"),
    **{f"{kind} of two layers in both directions": (
        [(4, 2, 3), (4, 2)], one_layer(kind, 2, "recurrent_param { num_output: 5 num_layers: 2 bidirectional: true }"))
       for kind in ("LSTM", "GRU", "RNN")},
    "LSTM of two layers with states and a static input": (
        [(4, 2, 3), (4, 2), (2, 6), (2, 2, 5), (2, 2, 5)],
        one_layer("LSTM", 5, "recurrent_param { num_output: 5 num_layers: 2 expose_hidden: true }", "yhc")),
    "LSTM with projections": (
        [(4, 2, 3), (4, 2)], one_layer("LSTM", 2, "recurrent_param { num_output: 5 projection_size: 2 num_layers: 2 bidirectional: true }")),
    "LSTM with a projection and states": (
        [(4, 2, 3), (4, 2), (1, 2, 3), (1, 2, 5)],
        one_layer("LSTM", 4, "recurrent_param { num_output: 5 projection_size: 3 expose_hidden: true }", "yhc")),
    "GRU in both directions with states": (
        [(4, 2, 3), (4, 2), (2, 2, 5)], one_layer("GRU", 3, "recurrent_param { num_output: 5 bidirectional: true expose_hidden: true }", "yh")),
    "GRU with a reset gate after the product": (
        [(4, 2, 3), (4, 2)], one_layer("GRU", 2, "recurrent_param { num_output: 5 reset_after: true num_layers: 2 bidirectional: true }")),
    "GRU in both directions without cont": ([(1, 2, 3)], one_layer("GRU", 1, "recurrent_param { num_output: 5 bidirectional: true }")),
    "GroupNorm": ([(2, 6, 4, 5)], one_layer("GroupNorm", 1, "group_norm_param { num_groups: 3 }")),
    "GroupNorm without scale": ([(2, 6, 7)], one_layer("GroupNorm", 1, "group_norm_param { num_groups: 2 affine: false eps: 0.1 }")),
    "GroupNorm of rows": ([(3, 6)], one_layer("GroupNorm", 1, "group_norm_param { num_groups: 2 }")),
    "InstanceNorm": ([(2, 3, 4, 5)], one_layer("InstanceNorm", 1)),
    "InstanceNorm without scale": ([(2, 3, 5)], one_layer("InstanceNorm", 1, "group_norm_param { affine: false }")),
    "InstanceNorm of rows": ([(2, 3)], one_layer("InstanceNorm", 1)),
    "PixelShuffle": ([(2, 18, 2, 3)], one_layer("PixelShuffle", 1, "pixel_shuffle_param { upscale_factor: 3 }")),
    "DropPath": ([(2, 3)], one_layer("DropPath", 1, tops="d") + "layer { name: 't' type: 'TanH' bottom: 'd' top: 'y' }"),
    **{f"Expression {expr}": (shapes, one_layer("Expression", len(shapes), f"expression_param {{ expr: '{expr}' {names} }}"))
       for expr, shapes, names in (
        ("x * sigmoid(1.702 * x)", [(2, 3)], ""), ("x", [(2, 3)], ""), ("-x^2 + 007.5 * x", [(2, 3)], ""), ("pi * tanh(x) / 01", [(2, 3)], ""),
        ("abs(x) - sign(x) * exp(-x)", [(2, 3)], ""), ("sin(x) + cos(x) * erf(x) + gelu(x)", [(2, 3)], ""),
        ("floor(3 * x) + round(5 * x)", [(2, 3)], ""), ("log(x ^ 2 + 1) + sqrt(square(x)) + rsqrt(x * x + 1)", [(2, 3)], ""),
        ("relu(x) + softplus(x) * pow(2, x)", [(2, 3)], ""), ("clip(x, -0.5, 0.5) + where(x > 0.1, x, 2 * x)", [(2, 3)], ""),
        ("(x < y) + (x <= y) * 2 + (x >= y) * 3 + (x == y)", [(2, 3), (3,)], ""), ("max(x, y) - min(x, 0.5) * z", [(2, 3, 4), (4,), (3, 1)], ""),
        ("sum(x, axis=1) + mean(x, axis=(0, -1)) * max(x)", [(2, 3, 4)], ""), ("min(x, axis=-1) * sum(x * y)", [(2, 3, 4), (3, 1)], ""),
        ("axis + e1 * if", [(2, 3), (2, 3), (2, 3)], "name: 'axis' name: 'e1' name: 'if'"),
        ("exp(x - max(x, axis=1)) / sum(exp(x - max(x, axis = 1)), axis=1)", [(2, 5)], ""))},
    "LayerScale": ([(2, 3, 4)], one_layer("LayerScale", 1)),
    "PatchEmbed": ([(2, 3, 4, 6)], one_layer("PatchEmbed", 1, "patch_embed_param { num_output: 5 patch_size: 2 }")),
    "Softplus": ([(2, 3)], one_layer("Softplus", 1)),
    "LogSoftmax": ([(2, 3, 4)], one_layer("LogSoftmax", 1)),
    "LogSoftmax of the last axis": ([(2, 3, 4)], one_layer("LogSoftmax", 1, "softmax_param { axis: -1 }")),
    **{f"{kind} {name}": (shapes, one_layer(kind, len(shapes), f"attention_param {{ {options} }}")) for kind, name, shapes, options in (
        ("Attention", "of one head", [(2, 3, 8), (2, 5, 8), (2, 5, 6)], ""),
        ("Attention", "with a mask", [(2, 3, 8), (2, 5, 8), (2, 5, 6), (2, 5)], "num_heads: 2"),
        ("Attention", "of shared keys", [(2, 3, 8), (2, 5, 4), (2, 5, 6), (2, 5)], "num_heads: 4 num_kv_heads: 2 causal: true scale: 0.3"),
        ("Attention", "of fewer keys", [(2, 5, 8), (2, 3, 8), (2, 3, 8)], "num_heads: 2 causal: true"),
        ("MultiHeadAttention", "of rows", [(2, 5, 8)], "num_heads: 2"),
        ("MultiHeadAttention", "that turns", [(2, 5, 8), (2, 5)], "num_heads: 4 num_kv_heads: 2 causal: true rotary_base: 100"),
        ("MultiHeadAttention", "without biases", [(2, 5, 8)], "num_heads: 2 bias_term: false"),
        ("MultiHeadAttention", "of a context", [(2, 5, 8), (2, 4, 3), (2, 4)], "num_heads: 2 num_kv_heads: 1 rotary_base: 50"),
        ("MultiHeadAttention", "of a mask before a context", [(2, 5, 8), (2, 4), (2, 4, 3)], "num_heads: 2 bias_term: false"))},
    **{f"Binary {operation}": ([(2, 3, 1), (4,)],
                               "layer { name: 'e' type: 'Exp' bottom: 'x0' top: 'e' } layer { name: 'l' type: 'Binary' bottom: 'e' "
                               f"bottom: 'x1' top: 'y' binary_param {{ operation: {operation} }} }}")
       for operation in ("ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MAXIMUM", "MINIMUM", "POWER")},
    "Binary of equal shapes": ([(2, 3), (2, 3)], one_layer("Binary", 2, "binary_param { operation: DIVIDE }")),
    "Where": ([(2, 3, 1), (4,), (3, 1)], "layer { name: 'r' type: 'ReLU' bottom: 'x0' top: 'r' } layer { name: 'l' type: 'Where' "
                                         "bottom: 'r' bottom: 'x1' bottom: 'x2' top: 'y' }"),
    "Gather": ([(3, 5, 2), (2, 5, 4)], "layer { name: 'a' type: 'ArgMax' bottom: 'x1' top: 'i' argmax_param { axis: 1 } } layer { "
                                       "name: 'l' type: 'Gather' bottom: 'x0' bottom: 'i' top: 'y' gather_param { axis: -2 } }"),
    "Scatter": ([(3, 5, 2), (3, 5, 2), (3, 2, 2)],
                "layer { name: 'k' type: 'TopK' bottom: 'x1' top: 'v' top: 'i' top_k_param { k: 2 axis: 1 } } layer { name: 'l' "
                "type: 'Scatter' bottom: 'x0' bottom: 'i' bottom: 'x2' top: 'y' scatter_param { axis: 1 } }"),
    "TopK": ([(3, 5, 2)], one_layer("TopK", 1, "top_k_param { k: 2 axis: 1 }", "yz")),
    "TopK of the smallest": ([(3, 5)], one_layer("TopK", 1, "top_k_param { k: 5 largest: false }")),
    "Cast to float16": ([(2, 3)], one_layer("Cast", 1, "cast_param { type: FP16 }")),
    "Cast to float": ([(2, 3)], one_layer("Cast", 1, tops="d") + "layer { name: 't' type: 'TanH' bottom: 'd' top: 'y' }"),
    "one bottom for three layers, in place": (
        [(2, 3)], "layer { name: 'a' type: 'ReLU' bottom: 'x0' top: 'x0' } layer { name: 'b' type: 'TanH' bottom: 'x0' top: 'y' } "
                  "layer { name: 'c' type: 'Split' bottom: 'x0' top: 's' top: 't' }"),
}
BOXES = np.array([[0, 1, 2, 15, 20], [1, 0, 0, 9, 9], [1, 4, 3, 19, 23]], np.float32)


@pytest.mark.parametrize("opset", nets.OPSETS)
@pytest.mark.parametrize("case", CASES)
def test_a_layer(case, opset):
    shapes, layers = CASES[case]
    net = nets.draw_weights(nets.net_with(shapes, layers))
    inputs = {"x1": BOXES} if "ROI" in case else None
    report = caffe.onnx.export(net, opset=opset, inputs=inputs)
    if opset >= 22 and report.not_compared:  # onnxruntime has older kernels only
        assert "Could not find an implementation for" in report.not_compared and case.startswith("ROI")
        return
    assert report.differences and max(report.differences.values()) <= 1e-5


@pytest.mark.parametrize("opset", nets.OPSETS)
@pytest.mark.parametrize("case", ["Attention with a mask", "Attention of shared keys", "MultiHeadAttention that turns"])
def test_an_item_that_a_mask_hides(case, opset):
    shapes, layers = CASES[case]
    mask = np.ones(shapes[-1], np.float32)
    mask[1], mask[0, 0] = 0, 0
    report = caffe.onnx.export(nets.draw_weights(nets.net_with(shapes, layers)), opset=opset, inputs={f"x{len(shapes) - 1}": mask})
    assert max(report.differences.values()) <= 1e-5


# Layers whose operators are newer than opset 11: opset, layers.
NEWER = {"adding": (16, "layer { name: 'l' type: 'Scatter' bottom: 'x0' bottom: 'i' bottom: 'v' top: 'y' scatter_param { add: true } }"),
         "rounding to bfloat16": (13, "layer { name: 'l' type: 'Cast' bottom: 'x0' top: 'y' cast_param { type: BF16 } }")}


@pytest.mark.parametrize("opset", nets.OPSETS)
@pytest.mark.parametrize("what", NEWER)
def test_layers_of_newer_operators(what, opset):
    least, layer = NEWER[what]
    net = nets.net_with([(5, 2)], "layer { name: 'k' type: 'TopK' bottom: 'x0' top: 'v' top: 'i' top_k_param { axis: 0 k: 3 } } " + layer)
    if opset < least:
        with pytest.raises(caffe.Unsupported, match=f"{what} needs opset {least}; the model has opset {opset}"):
            caffe.onnx.export(net, opset=opset)
        return
    assert max(caffe.onnx.export(net, opset=opset).differences.values()) <= 1e-5


@pytest.mark.parametrize("file", GOLDENS, ids=lambda file: file.stem)
def test_a_golden(file):
    net, inputs = nets.golden_net(file)
    if net is None or not nets.is_test_phase(file):
        pytest.skip("needs a file, or is of phase TRAIN")
    for opset in nets.OPSETS:
        try:
            read = caffe.onnx.export(net, opset=opset, check=False).inputs
        except caffe.InvalidArgument as error:
            assert "no layer is left" in str(error)  # the net is only a loss
            return
        caffe.onnx.export(net, opset=opset, inputs={name: inputs[name] for name in read}, tolerance=1e-5)


def test_all_types_that_are_exported_are_checked():
    checked = {layer.type for file in GOLDENS for net in [nets.golden_net(file)[0]] if net for layer in net.layers}
    checked |= {layer.type for shapes, layers in CASES.values() for layer in nets.net_with(shapes, layers).layers}
    elsewhere = {"DetectionOutput", "DepthwiseConvolution", "Proposal", "YoloDetectionOutput", "Yolov3DetectionOutput"}
    assert set(caffe.onnx.exported_types()) - checked - elsewhere == set()

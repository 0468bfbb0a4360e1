"""More Paddle ops, as in `op_cases.py`: those that create, move, sample and normalize."""

import numpy
from op_cases import F32, I64, X2, X3, X4, X5, normal, one, positive, whole


def creation():
    """Ops without inputs."""
    yield "assign", {"X": X2}, ["Out"], {}
    yield "assign_value", {}, ["Out"], {"shape": [2, 2], "dtype": F32, "fp32_values": [1.0, 2.0, 3.0, 4.5]}
    yield "assign_value", {}, ["Out"], {"shape": [2], "dtype": 0, "bool_values": [1, 0]}
    yield "cast", {"X": 4 * X2}, ["Out"], {"in_dtype": F32, "out_dtype": 2}
    yield "dropout", {"X": X2}, ["Out", "Mask"], {"dropout_prob": 0.25, "is_test": True, "dropout_implementation": "downgrade_in_infer"}
    yield "eye", {}, ["Out"], {"num_rows": 3, "num_columns": 4, "dtype": F32}
    yield "fill_any_like", {"X": X2}, ["Out"], {"value": 2.5, "dtype": -1}
    yield "fill_zeros_like", {"X": X2}, ["Out"], {}
    yield "fill_constant", {}, ["Out"], {"shape": [3, 2], "dtype": I64, "value": 7.0, "str_value": "7"}
    yield "fill_constant", {"ShapeTensor": one(2, 3)}, ["Out"], {"dtype": F32, "value": 1.5}
    yield "fill_constant", {"ShapeTensorList": [one(2, dtype="int32"), one(4, dtype="int32")]}, ["Out"], {"shape": [-1, -1], "dtype": F32, "value": 0.5}
    yield "fill_constant_batch_size_like", {"Input": X3}, ["Out"], {"shape": [-1, 5], "dtype": F32, "value": 3.0}
    yield "linspace", {"Start": one(1, dtype="float32"), "Stop": one(3, dtype="float32"), "Num": one(5, dtype="int32")}, ["Out"], {"dtype": F32}
    yield "range", {"Start": one(1), "End": one(9), "Step": one(3)}, ["Out"], {}
    yield "shape", {"Input": X3}, ["Out"], {}
    yield "share_data", {"X": X2}, ["Out"], {}
    yield "size", {"Input": X3}, ["Out"], {}
    yield "empty", {}, ["Out"], {"shape": [2, 3], "dtype": F32}
    yield "gaussian_random", {}, ["Out"], {"shape": [2, 3], "dtype": F32, "mean": 1.0, "std": 2.0}
    yield "uniform_random", {}, ["Out"], {"shape": [2, 3], "dtype": F32}


def movement():
    """Ops that move elements without changing them."""
    yield "concat", {"X": [X3, normal(2, 2, 4)]}, ["Out"], {"axis": 1}
    yield "stack", {"X": [X3, X3]}, ["Y"], {"axis": 1}
    yield "split", {"X": X4}, ["Out", "Out"], {"axis": 1, "num": 2}
    yield "split", {"X": X4}, ["Out", "Out"], {"axis": 1, "sections": [1, -1]}
    yield "unbind", {"X": X3}, ["Out", "Out", "Out"], {"axis": 1}
    yield "unstack", {"X": X3}, ["Y", "Y"], {"axis": 0, "num": 2}
    yield "reshape", {"X": X3}, ["Out"], {"shape": [0, -1]}
    yield "reshape2", {"X": X3}, ["Out", "XShape"], {"shape": [4, -1]}
    yield "reshape2", {"X": X3, "Shape": one(3, 8, dtype="int32")}, ["Out", "XShape"], {}
    yield "transpose", {"X": X3}, ["Out"], {"axis": [2, 0, 1]}
    yield "transpose2", {"X": X3}, ["Out", "XShape"], {"axis": [1, 0, 2]}
    yield "squeeze2", {"X": normal(2, 1, 3, 1)}, ["Out", "XShape"], {"axes": [0, 1]}
    yield "unsqueeze2", {"X": X2}, ["Out", "XShape"], {"axes": [0, 3]}
    yield "flatten2", {"X": X4}, ["Out", "XShape"], {"axis": 2}
    yield "flatten_contiguous_range", {"X": X4}, ["Out", "XShape"], {"start_axis": 1, "stop_axis": 2}
    yield "expand_v2", {"X": normal(1, 3, 1)}, ["Out"], {"shape": [2, -1, 4]}
    yield "expand_v2", {"X": normal(1, 3, 1), "Shape": one(2, 3, 4, dtype="int32")}, ["Out"], {}
    yield "expand_as_v2", {"X": normal(1, 3, 1), "Y": X3}, ["Out"], {"target_shape": [2, 3, 4]}
    yield "expand", {"X": X2}, ["Out"], {"expand_times": [2, 3]}
    yield "tile", {"X": X2}, ["Out"], {"repeat_times": [2, 1, 3]}
    yield "meshgrid", {"X": [normal(2), normal(3)]}, ["Out", "Out"], {}
    yield "flip", {"X": X3}, ["Out"], {"axis": [1, 2]}
    yield "reverse", {"X": X3}, ["Out"], {"axis": [0]}
    yield "roll", {"X": X3}, ["Out"], {"shifts": [1, -6], "axis": [1, 2]}
    yield "roll", {"X": X3}, ["Out"], {"shifts": [5], "axis": []}
    yield "tril_triu", {"X": normal(4, 4)}, ["Out"], {"diagonal": 1, "lower": True}
    yield "tril_triu", {"X": normal(4, 4)}, ["Out"], {"diagonal": -1, "lower": False}
    yield "repeat_interleave", {"X": X3}, ["Out"], {"Repeats": 2, "dim": 1}
    yield "crop_tensor", {"X": X3}, ["Out"], {"shape": [2, 2, -1], "offsets": [0, 1, 1]}
    yield "pad", {"X": X3}, ["Out"], {"paddings": [0, 1, 2, 0, 0, 0], "pad_value": 1.5}
    for mode in ["constant", "reflect", "replicate", "circular"]:
        yield "pad3d", {"X": X5}, ["Out"], {"paddings": [1, 2, 0, 1, 1, 0], "mode": mode, "value": 0.5, "data_format": "NCDHW"}
    yield "pixel_shuffle", {"X": X4}, ["Out"], {"upscale_factor": 2}
    yield "pixel_unshuffle", {"X": X4}, ["Out"], {"downscale_factor": 2}
    yield "channel_shuffle", {"X": X4}, ["Out"], {"groups": 2}
    yield "shuffle_channel", {"X": X4}, ["Out"], {"group": 2}


def convolutions():
    """Convolutions and pooling."""
    usual = {"strides": [1, 1], "paddings": [1, 1], "dilations": [1, 1], "groups": 1}
    filters = normal(5, 4, 3, 3)
    yield "conv2d", {"Input": X4, "Filter": filters}, ["Output"], usual
    yield "conv2d", {"Input": X4, "Filter": filters}, ["Output"], {**usual, "padding_algorithm": "SAME", "strides": [2, 2]}
    yield "conv2d", {"Input": X4, "Filter": filters}, ["Output"], {**usual, "paddings": [1, 0, 2, 1], "dilations": [2, 1]}
    last = numpy.ascontiguousarray(X4.transpose(0, 2, 3, 1))
    yield "conv2d", {"Input": last, "Filter": filters}, ["Output"], {**usual, "data_format": "NHWC"}
    yield "depthwise_conv2d", {"Input": X4, "Filter": normal(4, 1, 3, 3)}, ["Output"], {**usual, "groups": 4}
    yield "conv3d", {"Input": X5, "Filter": normal(3, 2, 2, 2, 2)}, ["Output"], {"strides": [1, 1, 1], "paddings": [1, 0, 1], "dilations": [1, 1, 1], "groups": 1}
    yield "conv2d_transpose", {"Input": X4, "Filter": normal(4, 3, 3, 3)}, ["Output"], {**usual, "strides": [2, 2], "output_padding": [1, 1]}
    yield "conv2d_transpose", {"Input": X4, "Filter": normal(4, 3, 3, 3)}, ["Output"], {**usual, "strides": [2, 2], "output_size": [12, 15]}
    yield "depthwise_conv2d_transpose", {"Input": X4, "Filter": normal(4, 1, 3, 3)}, ["Output"], {**usual, "groups": 4}
    yield "conv3d_transpose", {"Input": X5, "Filter": normal(2, 3, 2, 2, 2)}, ["Output"], {"strides": [2, 2, 2], "paddings": [0, 0, 0], "dilations": [1, 1, 1], "groups": 1}
    for kind in ["max", "avg"]:
        window = {"pooling_type": kind, "ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1]}
        yield "pool2d", {"X": X4}, ["Out"], window
        yield "pool2d", {"X": X4}, ["Out"], {**window, "ceil_mode": True, "paddings": [0, 0]}
        yield "pool2d", {"X": last}, ["Out"], {**window, "data_format": "NHWC"}
        yield "pool3d", {"X": X5}, ["Out"], {"pooling_type": kind, "ksize": [2, 2, 2], "strides": [2, 2, 2], "paddings": [0, 0, 0]}
    yield "pool2d", {"X": X4}, ["Out"], {"pooling_type": "avg", "ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1], "exclusive": False}
    for parts in [[1, 1], [3, 4], [4, 3]]:
        yield "pool2d", {"X": X4}, ["Out"], {"pooling_type": "avg", "ksize": parts, "adaptive": True}
    yield "max_pool2d_with_index", {"X": X4}, ["Out"], {"ksize": [4, 3], "adaptive": True, "strides": [1, 1], "paddings": [0, 0]}
    yield "max_pool2d_with_index", {"X": X4}, ["Out", "Mask"], {"ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0]}
    yield "max_pool3d_with_index", {"X": X5}, ["Out", "Mask"], {"ksize": [2, 2, 2], "strides": [2, 2, 2], "paddings": [0, 0, 0]}


def sampling():
    """Resampling of images."""
    rows = {"linear": X3, "bilinear": X4, "trilinear": X5, "nearest": X4, "bicubic": X4}
    for kind, x in rows.items():
        count = x.ndim - 2
        sizes = dict(zip(["out_d", "out_h", "out_w"][3 - count :], [5, 9, 7][3 - count :]))
        for corners in [True, False]:
            for mode in [0, 1] if kind.endswith("linear") else [1]:
                how = {"interp_method": kind, "align_corners": corners, "align_mode": mode, "data_layout": "NCHW"}
                yield kind + "_interp_v2", {"X": x}, ["Out"], {**how, **sizes}
                yield kind + "_interp_v2", {"X": x}, ["Out"], {**how, "scale": [2.0] * count}
        yield kind + "_interp", {"X": x}, ["Out"], {"interp_method": kind, "align_corners": False, "align_mode": 0, "data_layout": "NCHW", **sizes}
    last = {"interp_method": "nearest", "align_corners": False, "data_layout": "NHWC"}
    yield "nearest_interp_v2", {"X": numpy.ascontiguousarray(X4.transpose(0, 2, 3, 1))}, ["Out"], {**last, "scale": [2.0, 3.0]}
    how = {"interp_method": "nearest", "align_corners": False}
    yield "nearest_interp_v2", {"X": X4, "OutSize": one(9, 5, dtype="int32")}, ["Out"], how
    yield "nearest_interp_v2", {"X": X4, "SizeTensor": [one(9, dtype="int32"), one(5, dtype="int32")]}, ["Out"], how
    yield "nearest_interp_v2", {"X": X4, "Scale": one(2, dtype="float32")}, ["Out"], how
    grid = (RANDOM_GRID * 1.2).astype("float32")
    for mode in ["bilinear", "nearest"]:
        for outside in ["zeros", "border", "reflection"]:
            yield "grid_sampler", {"X": X4, "Grid": grid}, ["Output"], {"mode": mode, "padding_mode": outside, "align_corners": outside != "border", "use_cudnn": False}
    yield "affine_grid", {"Theta": normal(2, 2, 3)}, ["Output"], {"output_shape": [2, 3, 4, 5], "align_corners": True, "use_cudnn": False}
    usual = {"strides": [1, 1], "paddings": [1, 1], "dilations": [1, 1], "groups": 1, "deformable_groups": 1, "im2col_step": 1}
    moved = {"Input": X4, "Offset": normal(2, 18, 6, 8), "Filter": normal(5, 4, 3, 3)}
    yield "deformable_conv", {**moved, "Mask": positive(2, 9, 6, 8)}, ["Output"], usual
    yield "deformable_conv_v1", moved, ["Output"], usual
    yield "unfold", {"X": X4}, ["Y"], {"kernel_sizes": [2, 3], "strides": [2, 1], "paddings": [1, 1, 1, 1], "dilations": [1, 1]}
    parts = numpy.array([[0, 0, 5, 4], [1, 1, 7, 5], [2, 0, 6, 3]], "float32")
    for aligned in [True, False]:
        how = {"pooled_height": 2, "pooled_width": 3, "sampling_ratio": 2, "spatial_scale": 0.5, "aligned": aligned}
        yield "roi_align", {"X": X4, "ROIs": parts, "RoisNum": one(1, 2, dtype="int32")}, ["Out"], how


RANDOM_GRID = numpy.random.default_rng(3).uniform(-1, 1, (2, 5, 4, 2))


def normalization():
    """Normalization."""
    vectors = {"Scale": positive(4), "Bias": normal(4)}
    statistics = {"Mean": normal(4), "Variance": positive(4)}
    outputs = ["Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"]
    yield "batch_norm", {"X": X4, **vectors, **statistics}, outputs, {"is_test": True, "epsilon": 1e-3}
    last = numpy.ascontiguousarray(X4.transpose(0, 2, 3, 1))
    yield "batch_norm", {"X": last, **vectors, **statistics}, outputs, {"is_test": True, "data_layout": "NHWC"}
    yield "instance_norm", {"X": X4, **vectors}, ["Y", "SavedMean", "SavedVariance"], {}
    yield "instance_norm", {"X": X4}, ["Y", "SavedMean", "SavedVariance"], {}
    yield "group_norm", {"X": X4, **vectors}, ["Y", "Mean", "Variance"], {"groups": 2}
    yield "group_norm", {"X": last, **vectors}, ["Y", "Mean", "Variance"], {"groups": 2, "data_layout": "NHWC"}
    yield "layer_norm", {"X": X3, **vectors}, ["Y", "Mean", "Variance"], {"begin_norm_axis": 2}
    yield "layer_norm", {"X": X3, "Scale": positive(12), "Bias": normal(12)}, ["Y", "Mean", "Variance"], {"begin_norm_axis": 1}
    yield "layer_norm", {"X": X3}, ["Y", "Mean", "Variance"], {"begin_norm_axis": 1}
    yield "affine_channel", {"X": X4, **vectors}, ["Out"], {"data_layout": "NCHW"}
    yield "data_norm", {"X": X2, "BatchSize": positive(6) + 9, "BatchSum": normal(6), "BatchSquareSum": positive(6) + 9}, ["Y", "Means", "Scales"], {}
    yield "lrn", {"X": X4}, ["Out", "MidOut"], {"n": 3, "k": 2.0, "alpha": 0.1, "beta": 0.75}
    yield "norm", {"X": X3}, ["Out", "Norm"], {"axis": 1, "epsilon": 1e-6}


def boxes():
    """Object detection."""
    size = numpy.array([[96, 128], [64, 64]], "int32")
    anchors = {"anchors": [10, 13, 16, 30], "class_num": 3, "conf_thresh": 0.3, "downsample_ratio": 16}
    yield "yolo_box", {"X": normal(2, 16, 3, 4), "ImgSize": size}, ["Boxes", "Scores"], {**anchors, "clip_bbox": True}
    yield "yolo_box", {"X": normal(2, 18, 3, 4), "ImgSize": size}, ["Boxes", "Scores"], {**anchors, "clip_bbox": False, "scale_x_y": 1.05, "iou_aware": True, "iou_aware_factor": 0.4}
    how = {"min_sizes": [8.0, 12.0], "max_sizes": [16.0, 20.0], "aspect_ratios": [2.0, 3.0], "variances": [0.1, 0.1, 0.2, 0.2], "flip": True}
    picture = {"Input": normal(1, 2, 3, 4), "Image": normal(1, 3, 48, 64)}
    yield "prior_box", picture, ["Boxes", "Variances"], {**how, "clip": True}
    yield "prior_box", picture, ["Boxes", "Variances"], {**how, "min_max_aspect_ratios_order": True, "step_w": 15.0, "step_h": 17.0}
    corners = numpy.sort(positive(5, 2, 2), 1).reshape(5, 4)
    usual = {"code_type": "decode_center_size", "box_normalized": False}
    yield "box_coder", {"PriorBox": corners, "PriorBoxVar": positive(5, 4), "TargetBox": normal(2, 5, 4)}, ["OutputBox"], usual
    yield "box_coder", {"PriorBox": corners, "TargetBox": normal(5, 3, 4)}, ["OutputBox"], {**usual, "axis": 1, "variance": [0.1, 0.1, 0.2, 0.2], "box_normalized": True}
    low = numpy.random.default_rng(5).uniform(0, 20, (2, 30, 2))
    found = numpy.concatenate([low, low + numpy.random.default_rng(6).uniform(4, 12, (2, 30, 2))], 2).astype("float32")
    scores = numpy.random.default_rng(8).uniform(0, 1, (2, 3, 30)).astype("float32")
    how = {"score_threshold": 0.2, "nms_threshold": 0.4, "nms_top_k": 20, "keep_top_k": 12, "background_label": -1}
    outputs = ["Out", "Index", "NmsRoisNum"]
    yield "multiclass_nms3", {"BBoxes": found, "Scores": scores}, outputs, {**how, "normalized": True}
    yield "multiclass_nms3", {"BBoxes": found, "Scores": scores}, outputs, {**how, "normalized": False, "background_label": 0, "keep_top_k": -1}
    yield "multiclass_nms3", {"BBoxes": found, "Scores": scores}, outputs, {**how, "score_threshold": 2.0}


def quantized():
    """Quantization."""
    scale = one(1.5, dtype="float32")
    yield "quantize_linear", {"X": X2, "Scale": scale, "ZeroPoint": one(0, dtype="float32")}, ["Y"], {"quant_axis": -1, "bit_length": 8, "round_type": 0, "is_test": True}
    yield "dequantize_linear", {"X": whole(-127, 128, 4, 6, dtype="int8"), "Scale": positive(4), "ZeroPoint": numpy.zeros(4, "float32")}, ["Y"], {"quant_axis": 0, "bit_length": 8, "is_test": True}
    given = {"X": X2, "InScale": scale}
    yield "fake_quantize_dequantize_moving_average_abs_max", given, ["Out", "OutScale"], {"is_test": True, "bit_length": 8, "round_type": 0}
    yield "fake_quantize_moving_average_abs_max", given, ["Out", "OutScale"], {"is_test": True, "bit_length": 8, "round_type": 0}
    yield "fake_quantize_range_abs_max", given, ["Out", "OutScale"], {"is_test": True, "bit_length": 8, "round_type": 0}
    yield "fake_quantize_dequantize_abs_max", {"X": X2}, ["Out", "OutScale"], {"bit_length": 8, "round_type": 0}
    yield "fake_channel_wise_quantize_dequantize_abs_max", {"X": X2}, ["Out", "OutScale"], {"bit_length": 8, "quant_axis": 1, "round_type": 0}
    yield "fake_dequantize_max_abs", {"X": numpy.round(20 * X2), "Scale": scale}, ["Out"], {"max_range": 127.0}
    yield "fake_channel_wise_dequantize_max_abs", {"X": numpy.round(20 * X2), "Scales": [positive(4)]}, ["Out"], {"quant_bits": [8], "quant_axis": 0}
    yield "moving_average_abs_max_scale", {"X": X2}, ["Out", "OutScale"], {"is_test": True}


GROUPS = [creation, movement, convolutions, sampling, normalization, boxes, quantized]

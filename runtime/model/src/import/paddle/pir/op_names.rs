//! Maps ops of Paddle 3 to their names in Paddle 2.
//!
//! A row has the name of an op, its old name, the old names of operands and outputs, and renamed attributes. An operand with
//! `@` becomes an attribute if it is constant, and else the operand after the colon; `-` marks one that does not affect
//! results. `:=` sets an attribute that the new op name implies.

pub(super) struct PirOpNames {
    pub(super) old: &'static str,
    pub(super) inputs: &'static str,
    pub(super) outputs: &'static str,
    pub(super) attributes: &'static str,
}

/// The row of an op. In-place variants have an underscore appended.
pub(super) fn find_op_names(name: &str) -> Option<PirOpNames> {
    let of = |name: &str| RENAMED_OPS.iter().find(|row| row.0 == name);
    if let Some((_, old, inputs, outputs, attributes)) = of(name).or_else(|| of(name.strip_suffix('_')?)) {
        return Some(PirOpNames { old, inputs, outputs, attributes });
    }
    let same = |name: &str| UNCHANGED_OPS.iter().find(|same| **same == name);
    let old = same(name).or_else(|| same(name.strip_suffix('_')?))?;
    Some(PirOpNames { old, inputs: "X", outputs: "Out", attributes: "" })
}

/// Unary ops that were not renamed.
#[rustfmt::skip]
const UNCHANGED_OPS: [&str; 44] = [
    "abs", "acos", "acosh", "asin", "asinh", "assign", "atan", "atanh", "bitwise_not", "ceil", "celu", "cos", "cosh", "elu", "erf",
    "exp", "expm1", "floor", "gelu", "is_empty", "log", "log10", "log1p", "log2", "log_softmax", "logical_not", "logsigmoid",
    "maxout", "mish", "reciprocal", "relu", "relu6", "round", "rsqrt", "selu", "share_data", "sigmoid", "sign", "silu", "sin",
    "sinh", "softmax", "softplus", "sqrt",
];

#[rustfmt::skip]
const RENAMED_OPS: &[(&str, &str, &str, &str, &str)] = &[
    ("add", "elementwise_add", "X Y", "Out", ""),
    ("add_n", "sum", "X", "Out", ""),
    ("addmm", "addmm", "Input X Y", "Out", "alpha=Alpha beta=Beta"),
    ("affine_channel", "affine_channel", "X Scale Bias", "Out", ""),
    ("affine_grid", "affine_grid", "Theta @output_shape:OutputShape", "Output", ""),
    ("all", "reduce_all", "X", "Out", "axis=dim keepdim=keep_dim"),
    ("allclose", "allclose", "Input Other", "Out", ""),
    ("amax", "reduce_amax", "X", "Out", "axis=dim keepdim=keep_dim"),
    ("amin", "reduce_amin", "X", "Out", "axis=dim keepdim=keep_dim"),
    ("any", "reduce_any", "X", "Out", "axis=dim keepdim=keep_dim"),
    ("arange", "range", "Start End Step", "Out", ""),
    ("argmax", "arg_max", "X @axis:Axis", "Out", ""),
    ("argmin", "arg_min", "X @axis:Axis", "Out", ""),
    ("argsort", "argsort", "X", "Out Indices", ""),
    ("array_length", "lod_array_length", "X", "Out", ""),
    ("array_read", "read_from_array", "X I", "Out", ""),
    ("array_to_tensor", "tensor_array_to_tensor", "X", "Out OutIndex", ""),
    ("assign_out", "assign", "X -", "Out", ""),
    ("assign_value", "assign_value", "-", "Out", ""),
    ("atan2", "atan2", "X1 X2", "Out", ""),
    ("batch_norm", "batch_norm", "X Mean Variance Scale Bias", "Y - - - - -", "data_format=data_layout"),
    ("bicubic_interp", "bicubic_interp_v2", "X OutSize SizeTensor Scale", "Out", ""),
    ("bilinear_interp", "bilinear_interp_v2", "X OutSize SizeTensor Scale", "Out", ""),
    ("bitwise_and", "bitwise_and", "X Y", "Out", ""),
    ("bitwise_or", "bitwise_or", "X Y", "Out", ""),
    ("bitwise_xor", "bitwise_xor", "X Y", "Out", ""),
    ("bmm", "bmm", "X Y", "Out", ""),
    ("box_coder", "box_coder", "PriorBox PriorBoxVar TargetBox", "OutputBox", ""),
    ("cast", "cast", "X", "Out", "dtype=out_dtype"),
    ("channel_shuffle", "channel_shuffle", "X", "Out", ""),
    ("clip", "clip", "X @min:Min @max:Max", "Out", ""),
    ("concat", "concat", "X @axis:AxisTensor", "Out", ""),
    ("conv2d", "conv2d", "Input Filter", "Output", ""),
    ("conv2d_transpose", "conv2d_transpose", "Input Filter @output_size:OutputSize", "Output", ""),
    ("conv3d", "conv3d", "Input Filter", "Output", ""),
    ("conv3d_transpose", "conv3d_transpose", "Input Filter", "Output", ""),
    ("crop", "crop_tensor", "X @shape:Shape @offsets:Offsets", "Out", ""),
    ("cumsum", "cumsum", "X @axis:AxisTensor", "Out", ""),
    ("data_norm", "data_norm", "scale_w bias X BatchSize BatchSum BatchSquareSum", "Y - -", ""),
    ("deformable_conv", "deformable_conv", "Input Offset Filter Mask", "Output", ""),
    ("depthwise_conv2d", "depthwise_conv2d", "Input Filter", "Output", ""),
    ("depthwise_conv2d_transpose", "depthwise_conv2d_transpose", "Input Filter @output_size:OutputSize", "Output", ""),
    ("dequantize_linear", "dequantize_linear", "X Scale ZeroPoint - -", "Y - - -", ""),
    ("divide", "elementwise_div", "X Y", "Out", ""),
    ("dot", "dot", "X Y", "Out", ""),
    ("dropout", "dropout", "X - @dropout_prob", "Out -", "mode=dropout_implementation"),
    ("einsum", "einsum", "Operands", "Out - -", ""),
    ("elementwise_pow", "elementwise_pow", "X Y", "Out", ""),
    ("embedding", "lookup_table_v2", "Ids W", "Out", ""),
    ("empty", "empty", "@shape:ShapeTensor", "Out", ""),
    ("equal", "equal", "X Y", "Out", ""),
    ("equal_all", "equal_all", "X Y", "Out", ""),
    ("expand", "expand_v2", "X @shape:Shape", "Out", ""),
    ("expand_as", "expand_as_v2", "X Y", "Out", ""),
    ("eye", "eye", "@num_rows:RowsTensor @num_columns:ColumnsTensor", "Out", ""),
    ("fake_channel_wise_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs", "X Scales", "Out", ""),
    ("fake_channel_wise_quantize_dequantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max", "X", "Out -", ""),
    ("fake_dequantize_max_abs", "fake_dequantize_max_abs", "X Scale", "Out", ""),
    ("fake_quantize_dequantize_abs_max", "fake_quantize_dequantize_abs_max", "X", "Out -", ""),
    ("fake_quantize_dequantize_moving_average_abs_max", "fake_quantize_dequantize_moving_average_abs_max", "X InScale - -", "Out - - -", ""),
    ("fake_quantize_moving_average_abs_max", "fake_quantize_moving_average_abs_max", "X InScale - -", "Out OutScale - -", ""),
    ("fake_quantize_range_abs_max", "fake_quantize_range_abs_max", "X InScale -", "Out OutScale -", ""),
    ("flatten", "flatten_contiguous_range", "X", "Out", ""),
    ("flip", "flip", "X", "Out", ""),
    ("floor_divide", "elementwise_floordiv", "X Y", "Out", ""),
    ("fmax", "elementwise_fmax", "X Y", "Out", ""),
    ("fmin", "elementwise_fmin", "X Y", "Out", ""),
    ("frobenius_norm", "frobenius_norm", "X @dim", "Out", ""),
    ("full", "fill_constant", "", "Out", ""),
    ("full_batch_size_like", "fill_constant_batch_size_like", "Input", "Out", ""),
    ("full_int_array", "assign_value", "", "Out", "value=values"),
    ("full_like", "fill_any_like", "X @value", "Out", ""),
    ("full_with_tensor", "fill_constant", "ValueTensor @shape:ShapeTensor", "Out", ""),
    ("gather", "gather", "X Index @axis:Axis", "Out", ""),
    ("gather_nd", "gather_nd", "X Index", "Out", ""),
    ("gaussian", "gaussian_random", "@shape:ShapeTensor", "Out", ""),
    ("greater_equal", "greater_equal", "X Y", "Out", ""),
    ("greater_than", "greater_than", "X Y", "Out", ""),
    ("grid_sample", "grid_sampler", "X Grid", "Output", ""),
    ("group_norm", "group_norm", "X Scale Bias", "Y - -", "data_format=data_layout"),
    ("hardshrink", "hard_shrink", "X", "Out", ""),
    ("hardsigmoid", "hard_sigmoid", "X", "Out", ""),
    ("hardswish", "hard_swish", "X", "Out", ""),
    ("hardtanh", "brelu", "X", "Out", ""),
    ("increment", "increment", "X", "Out", "value=step"),
    ("index_sample", "index_sample", "X Index", "Out", ""),
    ("index_select", "index_select", "X Index", "Out", "axis=dim"),
    ("instance_norm", "instance_norm", "X Scale Bias", "Y - -", ""),
    ("isfinite", "isfinite_v2", "X", "Out", ""),
    ("isinf", "isinf_v2", "X", "Out", ""),
    ("isnan", "isnan_v2", "X", "Out", ""),
    ("layer_norm", "layer_norm", "X Scale Bias", "Y - -", ""),
    ("leaky_relu", "leaky_relu", "X", "Out", "negative_slope=alpha"),
    ("lerp", "lerp", "X Y Weight", "Out", ""),
    ("less_equal", "less_equal", "X Y", "Out", ""),
    ("less_than", "less_than", "X Y", "Out", ""),
    ("linear_interp", "linear_interp_v2", "X OutSize SizeTensor Scale", "Out", ""),
    ("linspace", "linspace", "Start Stop Num", "Out", ""),
    ("logical_and", "logical_and", "X Y", "Out", ""),
    ("logical_or", "logical_or", "X Y", "Out", ""),
    ("logical_xor", "logical_xor", "X Y", "Out", ""),
    ("logsumexp", "logsumexp", "X", "Out", ""),
    ("lrn", "lrn", "X", "Out -", ""),
    ("masked_select", "masked_select", "X Mask", "Y", ""),
    ("matmul", "matmul_v2", "X Y", "Out", "transpose_x=trans_x transpose_y=trans_y"),
    ("max", "reduce_max", "X @dim:Axis", "Out", "keepdim=keep_dim"),
    ("max_pool2d_with_index", "max_pool2d_with_index", "X", "Out Mask", "kernel_size=ksize"),
    ("max_pool3d_with_index", "max_pool3d_with_index", "X", "Out Mask", "kernel_size=ksize"),
    ("maximum", "elementwise_max", "X Y", "Out", ""),
    ("mean", "reduce_mean", "X @dim:Axis", "Out", "axis=dim keepdim=keep_dim"),
    ("mean_all", "mean", "X", "Out", ""),
    ("meshgrid", "meshgrid", "X", "Out", ""),
    ("min", "reduce_min", "X @dim:Axis", "Out", "keepdim=keep_dim"),
    ("minimum", "elementwise_min", "X Y", "Out", ""),
    ("multiclass_nms3", "multiclass_nms3", "BBoxes Scores RoisNum", "Out Index NmsRoisNum", ""),
    ("multiply", "elementwise_mul", "X Y", "Out", ""),
    ("mv", "mv", "X Vec", "Out", ""),
    ("nearest_interp", "nearest_interp_v2", "X OutSize SizeTensor Scale", "Out", ""),
    ("nonzero", "where_index", "Condition", "Out", ""),
    ("norm", "norm", "X", "Out -", ""),
    ("not_equal", "not_equal", "X Y", "Out", ""),
    ("numel", "size", "Input", "Out", ""),
    ("one_hot", "one_hot_v2", "X @depth:depth_tensor", "Out", ""),
    ("p_norm", "p_norm", "X", "Out", ""),
    ("pad", "pad", "X @pad_value", "Out", ""),
    ("pad3d", "pad3d", "X @paddings:Paddings", "Out", ""),
    ("pixel_shuffle", "pixel_shuffle", "X", "Out", ""),
    ("pixel_unshuffle", "pixel_unshuffle", "X", "Out", ""),
    ("pool2d", "pool2d", "X @ksize:KSize", "Out", ""),
    ("pool3d", "pool3d", "X", "Out", "kernel_size=ksize"),
    ("pow", "pow", "X", "Out", "y=factor"),
    ("prelu", "prelu", "X Alpha", "Out", ""),
    ("prior_box", "prior_box", "Input Image", "Boxes Variances", ""),
    ("prod", "reduce_prod", "X @dim:Axis", "Out", "keepdim=keep_dim"),
    ("put_along_axis", "put_along_axis", "Input Index Value", "Result", "axis=Axis reduce=Reduce"),
    ("quantize_linear", "quantize_linear", "X Scale ZeroPoint - -", "Y - - -", ""),
    ("remainder", "elementwise_mod", "X Y", "Out", ""),
    ("repeat_interleave", "repeat_interleave", "X", "Out", "repeats=Repeats axis=dim"),
    ("reshape", "reshape2", "X @shape:Shape", "Out", ""),
    ("rnn", "rnn", "Input PreState WeightList SequenceLength -", "Out - State -", ""),
    ("roi_align", "roi_align", "X ROIs RoisNum", "Out", ""),
    ("roll", "roll", "X @shifts:ShiftsTensor", "Out", ""),
    ("scale", "scale", "X @scale:ScaleTensor", "Out", ""),
    ("scatter", "scatter", "X Ids Updates", "Out", ""),
    ("scatter_nd_add", "scatter_nd_add", "X Index Updates", "Out", ""),
    ("sequence_mask", "sequence_mask", "X @maxlen:MaxLenTensor", "Y", ""),
    ("set_value", "set_value", "Input @starts:StartsTensor @ends:EndsTensor @steps:StridesTensor", "Out", ""),
    ("set_value_with_tensor", "set_value", "Input ValueTensor @starts:StartsTensor @ends:EndsTensor @steps:StridesTensor", "Out", ""),
    ("shape", "shape", "Input", "Out", ""),
    ("shape64", "shape", "Input", "Out", ""),
    ("shuffle_channel", "shuffle_channel", "X", "Out", ""),
    ("slice", "slice", "Input @starts:StartsTensor @ends:EndsTensor", "Out", ""),
    ("softshrink", "softshrink", "X", "Out", "threshold=lambda"),
    ("softsign", "softsign", "X", "Out", ""),
    ("split", "split", "X @sections:SectionsTensor @axis:AxisTensor", "Out", ""),
    ("split_with_num", "split", "X @axis:AxisTensor", "Out", ""),
    ("square", "square", "X", "Out", ""),
    ("squeeze", "squeeze2", "X @axes:AxesTensor", "Out", ""),
    ("stack", "stack", "X", "Y", ""),
    ("stanh", "stanh", "X", "Out", ""),
    ("strided_slice", "strided_slice", "Input @starts:StartsTensor @ends:EndsTensor @strides:StridesTensor", "Out", ""),
    ("subtract", "elementwise_sub", "X Y", "Out", ""),
    ("sum", "reduce_sum", "X @dim:Axis", "Out", "keepdim=keep_dim"),
    ("swish", "swish", "X", "Out", ""),
    ("sync_batch_norm", "batch_norm", "X Mean Variance Scale Bias", "Y - - - - -", "data_format=data_layout"),
    ("take_along_axis", "take_along_axis", "Input Index", "Result", "axis=Axis"),
    ("tan", "tan", "X", "Out", ""),
    ("tanh", "tanh", "X", "Out", ""),
    ("tanh_shrink", "tanh_shrink", "X", "Out", ""),
    ("thresholded_relu", "thresholded_relu", "X", "Out", ""),
    ("tile", "tile", "X @repeat_times:RepeatTimes", "Out", ""),
    ("topk", "top_k_v2", "X @k:K", "Out Indices", ""),
    ("transpose", "transpose2", "X", "Out", "perm=axis"),
    ("tril", "tril_triu", "X", "Out", "lower:=true"),
    ("trilinear_interp", "trilinear_interp_v2", "X OutSize SizeTensor Scale", "Out", ""),
    ("triu", "tril_triu", "X", "Out", "lower:=false"),
    ("trunc", "trunc", "X", "Out", ""),
    ("unbind", "unbind", "X", "Out", ""),
    ("unfold", "unfold", "X", "Y", ""),
    ("uniform", "uniform_random", "@shape:ShapeTensor @min @max", "Out", ""),
    ("unique", "unique", "X", "Out Indices Index Counts", ""),
    ("unsqueeze", "unsqueeze2", "X @axes:AxesTensor", "Out", ""),
    ("unstack", "unstack", "X", "Y", ""),
    ("where", "where", "Condition X Y", "Out", ""),
    ("yolo_box", "yolo_box", "X ImgSize", "Boxes Scores", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_about_an_op_that_is_supported() {
        let unsupported = |name: &&str| crate::import::paddle::ops::find_translator(name).is_none();
        let missing: Vec<&str> =
            RENAMED_OPS.iter().map(|row| row.1).chain(UNCHANGED_OPS).filter(unsupported).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn rows_are_in_order_and_each_name_has_one() {
        assert!(RENAMED_OPS.is_sorted_by(|one, next| one.0 < next.0));
        assert!(
            UNCHANGED_OPS.is_sorted()
                && UNCHANGED_OPS.iter().all(|name| !RENAMED_OPS.iter().any(|row| row.0 == *name))
        );
    }
}

//! Translations of Paddle ops: each has the operand `x` of shape [2, 4, 8, 8], a second one `z` if needed, and parameters.

use oarlock_model::import::paddle::messages::*;

use crate::model_builder::assert_contains;
use crate::paddle::*;

/// A program of one op. Its operands are `x`, its copy `z`, and vectors of 4 elements.
fn single_op_program(
    name: &str,
    inputs: &[(&str, &[&str])],
    output: &str,
    attributes: Vec<op_desc::Attr>,
) -> ProgramDesc {
    let vector = |name: &'static str| {
        build_op(
            "fill_constant",
            &[],
            &[("Out", &[name])],
            vec![int_attribute("dtype", F32_TYPE), ints_attribute("shape", &[4])],
        )
    };
    let dims = [2, 4, 8, 8];
    let variables = ["v", "w"].map(|name| build_variable(name, F32_TYPE, &[4])).into_iter();
    let variables =
        variables.chain(["x", "z", "y"].map(|name| build_variable(name, F32_TYPE, &dims))).collect();
    let copy = build_op("assign", &[("X", &["x"])], &[("Out", &["z"])], Vec::new());
    let ops = vec![vector("v"), vector("w"), copy, build_op(name, inputs, &[(output, &["y"])], attributes)];
    build_program(variables, ops)
}

/// Asserts the ONNX ops that an op of `x` becomes, with attributes and constants.
#[track_caller]
fn assert_becomes(name: &str, attributes: Vec<op_desc::Attr>, expected: &[&str]) {
    let graph = import_graph(&single_op_program(name, &[("X", &["x"])], "Out", attributes));
    assert_contains(&graph.to_string(), expected);
}

fn bool_attribute(name: &str, value: bool) -> op_desc::Attr {
    op_desc::Attr { b: Some(value), ..empty_attribute(name) }
}

fn float_attribute(name: &str, value: f32) -> op_desc::Attr {
    op_desc::Attr { f: Some(value), ..empty_attribute(name) }
}

#[test]
fn functions_of_one_element_keep_their_numbers() {
    assert_becomes("relu", Vec::new(), &["y = Relu(x)\n"]);
    assert_becomes("relu6", vec![float_attribute("threshold", 6.0)], &["y = Clip(x, [0.0], [6.0])"]);
    assert_becomes(
        "leaky_relu",
        vec![float_attribute("alpha", 0.25)],
        &["y = LeakyRelu(x) alpha=Float(0.25)"],
    );
    assert_becomes(
        "hard_sigmoid",
        vec![float_attribute("slope", 0.25)],
        &["HardSigmoid(x) alpha=Float(0.25) beta=Float(0.5)"],
    );
    assert_becomes(
        "gelu",
        vec![bool_attribute("approximate", true)],
        &["y = Gelu(x) approximate=String(\"tanh\")"],
    );
    assert_becomes("swish", vec![float_attribute("beta", 1.0)], &["= Sigmoid(x)\n", "y = Mul(x, "]);
    assert_becomes("softmax", vec![int_attribute("axis", 1)], &["y = Softmax(x) axis=Int(1)"]);
    let odd = single_op_program("hard_swish", &[("X", &["x"])], "Out", vec![float_attribute("offset", 2.0)]);
    assert_contains(&import_refusal(&odd), &["to be 3, 6 and 6, found 2, 6 and 6"]);
}

#[test]
fn scales_are_products_and_sums_in_their_order() {
    let both = || vec![float_attribute("scale", 2.0), float_attribute("bias", 1.0)];
    assert_becomes("scale", both(), &["= Mul(x, [2.0])\n", "y = Add("]);
    assert_becomes(
        "scale",
        [both(), vec![bool_attribute("bias_after_scale", false)]].concat(),
        &["= Add(x, [1.0])\n", "y = Mul("],
    );
    assert_becomes("scale", vec![float_attribute("scale", 1.0)], &["y = Identity(x)\n"]);
}

#[test]
fn shapes_are_written_as_onnx_has_them() {
    assert_becomes("reshape2", vec![ints_attribute("shape", &[0, -1])], &["y = Reshape(x, [0.0, -1.0])"]);
    assert_becomes(
        "transpose2",
        vec![ints_attribute("axis", &[0, 2, 3, 1])],
        &["y = Transpose(x) perm=Ints([0, 2, 3, 1])"],
    );
    let axes = |start, stop| vec![int_attribute("start_axis", start), int_attribute("stop_axis", stop)];
    assert_becomes("flatten_contiguous_range", axes(1, -1), &["y = Reshape(x, [0.0, -1.0])"]);
    assert_becomes("flatten_contiguous_range", axes(1, 2), &["y = Reshape(x, [0.0, -1.0, 8.0])"]);
    assert_becomes("flatten_contiguous_range", axes(0, 1), &["y = Reshape(x, [-1.0, 8.0, 8.0])"]);
    assert_becomes("unsqueeze2", vec![ints_attribute("axes", &[1])], &["y = Unsqueeze(x, [1.0])"]);
    assert_becomes(
        "expand_v2",
        vec![ints_attribute("shape", &[-1, 4, 8, 8])],
        &["y = Expand(x, [1.0, 4.0, 8.0, 8.0])"],
    );
    assert_contains(
        &import_refusal(&single_op_program("flatten_contiguous_range", &[("X", &["x"])], "Out", axes(3, 1))),
        &["two of 4 axes, found 3 and 1"],
    );
}

#[test]
fn slices_drop_the_dimensions_that_they_name() {
    let attributes = vec![
        ints_attribute("axes", &[1]),
        ints_attribute("starts", &[0]),
        ints_attribute("ends", &[1]),
        ints_attribute("decrease_axis", &[1]),
    ];
    let graph = import_graph(&single_op_program("slice", &[("Input", &["x"])], "Out", attributes));
    assert_contains(&graph.to_string(), &["= Slice(x, [0.0], [1.0], [1.0])\n", "y = Squeeze("]);
}

#[test]
fn indices_of_one_hot_are_as_wide_as_its_depth() {
    assert_becomes(
        "one_hot_v2",
        vec![int_attribute("depth", 9)],
        &["= Cast(x) to=Int(7)\n", ", [9.0], [0.0, 1.0]) axis=Int(-1)"],
    );
}

#[test]
fn products_of_matrices_are_transposed_where_they_say_so() {
    let inputs: [(&str, &[&str]); 2] = [("X", &["x"]), ("Y", &["z"])];
    let graph =
        import_graph(&single_op_program("matmul_v2", &inputs, "Out", vec![bool_attribute("trans_y", true)]));
    assert_contains(&graph.to_string(), &["= Transpose(x) perm=Ints([0, 1, 3, 2])\n", "y = MatMul(x, "]);
}

#[test]
fn convolutions_keep_their_padding() {
    let padded = |padding: &[i32], algorithm: &str| {
        let attributes = vec![
            ints_attribute("strides", &[1, 1]),
            ints_attribute("dilations", &[1, 1]),
            ints_attribute("paddings", padding),
            text_attribute("padding_algorithm", algorithm),
        ];
        import_graph(&single_op_program(
            "conv2d",
            &[("Input", &["x"]), ("Filter", &["z"])],
            "Output",
            attributes,
        ))
        .to_string()
    };
    assert_contains(&padded(&[1, 2], "EXPLICIT"), &["y = Conv(x, x)", "pads=Ints([1, 2, 1, 2])"]);
    assert_contains(&padded(&[1, 2, 3, 4], "EXPLICIT"), &["pads=Ints([1, 3, 2, 4])"]);
    assert_contains(&padded(&[], "SAME"), &["auto_pad=String(\"SAME_UPPER\")"]);
    assert_contains(&padded(&[], "VALID"), &["pads=Ints([0, 0, 0, 0])"]);
    let inputs: [(&str, &[&str]); 2] = [("Input", &["x"]), ("Filter", &["z"])];
    let usual = || {
        vec![
            ints_attribute("strides", &[1, 1]),
            ints_attribute("dilations", &[1, 1]),
            ints_attribute("paddings", &[0, 0]),
        ]
    };
    let last = [usual(), vec![text_attribute("data_format", "NHWC")]].concat();
    let graph = import_graph(&single_op_program("conv2d", &inputs, "Output", last));
    assert_contains(&graph.to_string(), &["= Transpose(x) perm=Ints([0, 3, 1, 2])\n", "y = Transpose("]);
    let odd = [usual(), vec![text_attribute("data_format", "CHWN")]].concat();
    assert_contains(
        &import_refusal(&single_op_program("conv2d", &inputs, "Output", odd)),
        &["`data_format` to be NCHW", "`CHWN`"],
    );
}

#[test]
fn windows_count_their_padding_where_they_say_so() {
    let pool = |attributes: Vec<op_desc::Attr>| {
        let window = vec![
            ints_attribute("ksize", &[2, 2]),
            ints_attribute("strides", &[2, 2]),
            ints_attribute("paddings", &[0, 0]),
        ];
        import_graph(&single_op_program("pool2d", &[("X", &["x"])], "Out", [window, attributes].concat()))
            .to_string()
    };
    assert_contains(
        &pool(vec![text_attribute("pooling_type", "max")]),
        &["y = MaxPool(x) ceil_mode=Int(0) kernel_shape=Ints([2, 2])"],
    );
    let average = || vec![text_attribute("pooling_type", "avg"), bool_attribute("exclusive", false)];
    assert_contains(&pool(average()), &["y = AveragePool(x)", "count_include_pad=Int(1)"]);
    assert_contains(
        &pool([average(), vec![bool_attribute("global_pooling", true)]].concat()),
        &["y = GlobalAveragePool(x)\n"],
    );
}

#[test]
fn normalization_is_that_of_inference() {
    let inputs: [(&str, &[&str]); 5] =
        [("X", &["x"]), ("Scale", &["v"]), ("Bias", &["w"]), ("Mean", &["v"]), ("Variance", &["w"])];
    let graph =
        import_graph(&single_op_program("batch_norm", &inputs, "Y", vec![bool_attribute("is_test", true)]));
    assert_contains(&graph.to_string(), &["y = BatchNormalization(x, ", "epsilon=Float(1e-5)"]);
    assert_contains(
        &import_refusal(&single_op_program("batch_norm", &inputs, "Y", Vec::new())),
        &["a program for inference"],
    );
    let flat = single_op_program("layer_norm", &inputs[..3], "Y", vec![int_attribute("begin_norm_axis", 2)]);
    assert_contains(
        &import_graph(&flat).to_string(),
        &["Reshape([0.0, 0.0, 0.0, 0.0], ", "y = LayerNormalization(x, "],
    );
}

#[test]
fn what_an_op_lacks_is_said() {
    assert_contains(
        &import_refusal(&single_op_program("relu", &[], "Out", Vec::new())),
        &["the `relu` that makes `y`", "the operand `X`, found none"],
    );
    assert_contains(
        &import_refusal(&single_op_program(
            "cast",
            &[("X", &["x"])],
            "Out",
            vec![int_attribute("out_dtype", 99)],
        )),
        &["found number 99"],
    );
}

//! What ops of Paddle become: each with the operand `x` of shape [2, 4, 8, 8], another `z` where it has two, and parameters.

use oarlock_engine::import::paddle::messages::*;

use crate::build::says;
use crate::paddle::*;

/// The program of one op. Its operands are `x`, of which `z` is a copy, and vectors of 4 elements.
fn program_of(
    name: &str,
    inputs: &[(&str, &[&str])],
    output: &str,
    attributes: Vec<op_desc::Attr>,
) -> ProgramDesc {
    let vector = |name: &'static str| {
        op("fill_constant", &[], &[("Out", &[name])], vec![int("dtype", F32), ints("shape", &[4])])
    };
    let dims = [2, 4, 8, 8];
    let variables = ["v", "w"].map(|name| variable(name, F32, &[4])).into_iter();
    let variables = variables.chain(["x", "z", "y"].map(|name| variable(name, F32, &dims))).collect();
    let copy = op("assign", &[("X", &["x"])], &[("Out", &["z"])], Vec::new());
    let ops = vec![vector("v"), vector("w"), copy, op(name, inputs, &[(output, &["y"])], attributes)];
    program(variables, ops)
}

/// The ops of ONNX that an op with `x` becomes, with their attributes; constants are shown.
#[track_caller]
fn becomes(name: &str, attributes: Vec<op_desc::Attr>, expected: &[&str]) {
    let graph = graph_of(&program_of(name, &[("X", &["x"])], "Out", attributes));
    says(&graph.to_string(), expected);
}

fn flag(name: &str, value: bool) -> op_desc::Attr {
    op_desc::Attr { b: Some(value), ..named(name) }
}

fn float(name: &str, value: f32) -> op_desc::Attr {
    op_desc::Attr { f: Some(value), ..named(name) }
}

#[test]
fn functions_of_one_element_keep_their_numbers() {
    becomes("relu", Vec::new(), &["y = Relu(x)\n"]);
    becomes("relu6", vec![float("threshold", 6.0)], &["y = Clip(x, [0.0], [6.0])"]);
    becomes("leaky_relu", vec![float("alpha", 0.25)], &["y = LeakyRelu(x) alpha=Float(0.25)"]);
    becomes(
        "hard_sigmoid",
        vec![float("slope", 0.25)],
        &["HardSigmoid(x) alpha=Float(0.25) beta=Float(0.5)"],
    );
    becomes("gelu", vec![flag("approximate", true)], &["y = Gelu(x) approximate=String(\"tanh\")"]);
    becomes("swish", vec![float("beta", 1.0)], &["= Sigmoid(x)\n", "y = Mul(x, "]);
    becomes("softmax", vec![int("axis", 1)], &["y = Softmax(x) axis=Int(1)"]);
    let odd = program_of("hard_swish", &[("X", &["x"])], "Out", vec![float("offset", 2.0)]);
    says(&refusal(&odd), &["to be 3, 6 and 6, found 2, 6 and 6"]);
}

#[test]
fn scales_are_products_and_sums_in_their_order() {
    let both = || vec![float("scale", 2.0), float("bias", 1.0)];
    becomes("scale", both(), &["= Mul(x, [2.0])\n", "y = Add("]);
    becomes(
        "scale",
        [both(), vec![flag("bias_after_scale", false)]].concat(),
        &["= Add(x, [1.0])\n", "y = Mul("],
    );
    becomes("scale", vec![float("scale", 1.0)], &["y = Identity(x)\n"]);
}

#[test]
fn shapes_are_written_as_onnx_has_them() {
    becomes("reshape2", vec![ints("shape", &[0, -1])], &["y = Reshape(x, [0.0, -1.0])"]);
    becomes("transpose2", vec![ints("axis", &[0, 2, 3, 1])], &["y = Transpose(x) perm=Ints([0, 2, 3, 1])"]);
    let axes = |start, stop| vec![int("start_axis", start), int("stop_axis", stop)];
    becomes("flatten_contiguous_range", axes(1, -1), &["y = Reshape(x, [0.0, -1.0])"]);
    becomes("flatten_contiguous_range", axes(1, 2), &["y = Reshape(x, [0.0, -1.0, 8.0])"]);
    becomes("flatten_contiguous_range", axes(0, 1), &["y = Reshape(x, [-1.0, 8.0, 8.0])"]);
    becomes("unsqueeze2", vec![ints("axes", &[1])], &["y = Unsqueeze(x, [1.0])"]);
    becomes("expand_v2", vec![ints("shape", &[-1, 4, 8, 8])], &["y = Expand(x, [1.0, 4.0, 8.0, 8.0])"]);
    says(
        &refusal(&program_of("flatten_contiguous_range", &[("X", &["x"])], "Out", axes(3, 1))),
        &["two of 4 axes, found 3 and 1"],
    );
}

#[test]
fn slices_drop_the_dimensions_that_they_name() {
    let attributes =
        vec![ints("axes", &[1]), ints("starts", &[0]), ints("ends", &[1]), ints("decrease_axis", &[1])];
    let graph = graph_of(&program_of("slice", &[("Input", &["x"])], "Out", attributes));
    says(&graph.to_string(), &["= Slice(x, [0.0], [1.0], [1.0])\n", "y = Squeeze("]);
}

#[test]
fn products_of_matrices_are_transposed_where_they_say_so() {
    let inputs: [(&str, &[&str]); 2] = [("X", &["x"]), ("Y", &["z"])];
    let graph = graph_of(&program_of("matmul_v2", &inputs, "Out", vec![flag("trans_y", true)]));
    says(&graph.to_string(), &["= Transpose(x) perm=Ints([0, 1, 3, 2])\n", "y = MatMul(x, "]);
}

#[test]
fn convolutions_keep_their_padding() {
    let padded = |padding: &[i32], algorithm: &str| {
        let attributes = vec![
            ints("strides", &[1, 1]),
            ints("dilations", &[1, 1]),
            ints("paddings", padding),
            text("padding_algorithm", algorithm),
        ];
        graph_of(&program_of("conv2d", &[("Input", &["x"]), ("Filter", &["z"])], "Output", attributes))
            .to_string()
    };
    says(&padded(&[1, 2], "EXPLICIT"), &["y = Conv(x, x)", "pads=Ints([1, 2, 1, 2])"]);
    says(&padded(&[1, 2, 3, 4], "EXPLICIT"), &["pads=Ints([1, 3, 2, 4])"]);
    says(&padded(&[], "SAME"), &["auto_pad=String(\"SAME_UPPER\")"]);
    says(&padded(&[], "VALID"), &["pads=Ints([0, 0, 0, 0])"]);
    let inputs: [(&str, &[&str]); 2] = [("Input", &["x"]), ("Filter", &["z"])];
    let usual = || vec![ints("strides", &[1, 1]), ints("dilations", &[1, 1]), ints("paddings", &[0, 0])];
    let last = [usual(), vec![text("data_format", "NHWC")]].concat();
    let graph = graph_of(&program_of("conv2d", &inputs, "Output", last));
    says(&graph.to_string(), &["= Transpose(x) perm=Ints([0, 3, 1, 2])\n", "y = Transpose("]);
    let odd = [usual(), vec![text("data_format", "CHWN")]].concat();
    says(&refusal(&program_of("conv2d", &inputs, "Output", odd)), &["`data_format` to be NCHW", "`CHWN`"]);
}

#[test]
fn windows_count_their_padding_where_they_say_so() {
    let pool = |attributes: Vec<op_desc::Attr>| {
        let window = vec![ints("ksize", &[2, 2]), ints("strides", &[2, 2]), ints("paddings", &[0, 0])];
        graph_of(&program_of("pool2d", &[("X", &["x"])], "Out", [window, attributes].concat())).to_string()
    };
    says(
        &pool(vec![text("pooling_type", "max")]),
        &["y = MaxPool(x) ceil_mode=Int(0) kernel_shape=Ints([2, 2])"],
    );
    let average = || vec![text("pooling_type", "avg"), flag("exclusive", false)];
    says(&pool(average()), &["y = AveragePool(x)", "count_include_pad=Int(1)"]);
    says(&pool([average(), vec![flag("global_pooling", true)]].concat()), &["y = GlobalAveragePool(x)\n"]);
}

#[test]
fn normalisation_is_that_of_inference() {
    let inputs: [(&str, &[&str]); 5] =
        [("X", &["x"]), ("Scale", &["v"]), ("Bias", &["w"]), ("Mean", &["v"]), ("Variance", &["w"])];
    let graph = graph_of(&program_of("batch_norm", &inputs, "Y", vec![flag("is_test", true)]));
    says(&graph.to_string(), &["y = BatchNormalization(x, ", "epsilon=Float(1e-5)"]);
    says(&refusal(&program_of("batch_norm", &inputs, "Y", Vec::new())), &["a program for inference"]);
    let flat = program_of("layer_norm", &inputs[..3], "Y", vec![int("begin_norm_axis", 2)]);
    says(&graph_of(&flat).to_string(), &["Reshape([0.0, 0.0, 0.0, 0.0], ", "y = LayerNormalization(x, "]);
}

#[test]
fn what_an_op_lacks_is_said() {
    says(
        &refusal(&program_of("relu", &[], "Out", Vec::new())),
        &["the `relu` that makes `y`", "the operand `X`, found none"],
    );
    says(
        &refusal(&program_of("cast", &[("X", &["x"])], "Out", vec![int("out_dtype", 99)])),
        &["found number 99"],
    );
}

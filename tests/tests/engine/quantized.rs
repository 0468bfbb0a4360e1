//! Quantized models: which ops run on integers, and that they match the float results.
//!
//! Scales are powers of two, so that floats are exact too and ties round the same way.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::export::onnx::OnnxExportOptions;
use oarlock_engine::graph::ValueId;
use oarlock_engine::{SessionOptions, import};

use crate::sketch::{GraphSketch, random_datum};

/// Scale and zero point of a tensor.
#[derive(Clone, Copy)]
pub(crate) struct QuantizationStep {
    pub(crate) dtype: Dtype,
    pub(crate) scale: f32,
    pub(crate) zero: i8,
}

pub(crate) const fn quantization_step(scale: f32, zero: i8) -> QuantizationStep {
    QuantizationStep { dtype: Dtype::U8, scale, zero }
}

/// Builds quantized graphs.
pub(crate) struct QuantizedSketch {
    pub(crate) sketch: GraphSketch,
    seed: u32,
}

impl QuantizedSketch {
    pub(crate) fn new() -> Self {
        Self { sketch: GraphSketch::new(), seed: 1 }
    }

    pub(crate) fn add_step(&mut self, step: QuantizationStep) -> [ValueId; 2] {
        let zero = Constant::new(step.dtype, &[], vec![step.zero.cast_unsigned()]).expect("a scalar");
        [self.sketch.add_scalar(step.scale), self.sketch.add_constant(zero)]
    }

    pub(crate) fn add_quantize(&mut self, x: ValueId, step: QuantizationStep) -> ValueId {
        let [scale, zero] = self.add_step(step);
        self.sketch.add_op("QuantizeLinear", &[x, scale, zero])
    }

    pub(crate) fn add_dequantize(&mut self, x: ValueId, step: QuantizationStep) -> ValueId {
        let [scale, zero] = self.add_step(step);
        self.sketch.add_op("DequantizeLinear", &[x, scale, zero])
    }

    /// Quantizes and dequantizes again.
    pub(crate) fn add_rounding(&mut self, x: ValueId, step: QuantizationStep) -> ValueId {
        let x = self.add_quantize(x, step);
        self.add_dequantize(x, step)
    }

    pub(crate) fn add_bytes(&mut self, dtype: Dtype, dims: &[i64]) -> ValueId {
        self.seed += 1;
        let count = usize::try_from(dims.iter().product::<i64>()).expect("few elements");
        let bytes = crate::sketch::random_floats(count, self.seed)
            .into_iter()
            .map(|value| ((value * 127.0) as i8).cast_unsigned());
        let bytes: Vec<u8> = bytes.map(|byte| if dtype == Dtype::U8 { byte ^ 0x80 } else { byte }).collect();
        self.sketch.add_constant(Constant::new(dtype, dims, bytes).expect("bytes of that many elements"))
    }

    /// Per-channel scales, all powers of two.
    pub(crate) fn add_scales(&mut self, count: i64) -> ValueId {
        let scales: Vec<f32> = (0..count).map(|at| 1.0 / (64 << (at % 3)) as f32).collect();
        self.sketch.add_floats(&[count], &scales)
    }

    /// Dequantized weights with one scale per index of an axis.
    pub(crate) fn add_weights(&mut self, dims: &[i64], axis: usize) -> ValueId {
        let (w, scales) = (self.add_bytes(Dtype::I8, dims), self.add_scales(dims[axis]));
        let axis = Attribute::Int(axis as i64);
        self.sketch.add_op_with("DequantizeLinear", &[w, scales], &[("axis", axis)])
    }

    /// A bias of whole quantization steps, as floats.
    pub(crate) fn add_bias(&mut self, count: i64, x: f32) -> ValueId {
        let bytes = (0..count as i32).flat_map(|at| (at * 31 - 200).to_ne_bytes()).collect::<Vec<u8>>();
        let bias = self.sketch.add_constant(Constant::new(Dtype::I32, &[count], bytes).expect("a list"));
        let scales: Vec<f32> = (0..count).map(|at| x / (64 << (at % 3)) as f32).collect();
        let scales = self.sketch.add_floats(&[count], &scales);
        self.sketch.add_op_with("DequantizeLinear", &[bias, scales], &[("axis", Attribute::Int(0))])
    }

    fn add_convolution(&mut self, x: ValueId, x_scale: f32, dims: &[i64], group: i64) -> ValueId {
        let (w, b) = (self.add_weights(dims, 0), self.add_bias(dims[0], x_scale));
        let pads = ("pads", Attribute::Ints(vec![dims[2] / 2; 4]));
        self.sketch.add_op_with("Conv", &[x, w, b], &[pads, ("group", Attribute::Int(group))])
    }

    pub(crate) fn add_input(&mut self, dims: &[i64]) -> ValueId {
        self.sketch.add_input("x", Dtype::F32, dims)
    }

    /// The remaining ops, without those that only move elements.
    fn remaining_ops(self, outputs: &[ValueId], dims: &[i64]) -> Vec<String> {
        let mut left = self.sketch.with_outputs(outputs).check_optimized(&[random_datum(dims, 9)]);
        left.retain(|op| op != "Transpose" && op != "Reshape");
        left
    }
}

const INPUT_STEP: QuantizationStep = quantization_step(1.0 / 64.0, 0x70);
const MIDDLE_STEP: QuantizationStep = quantization_step(0.125, 5);
const OUTPUT_STEP: QuantizationStep = quantization_step(0.25, 0x60);

#[test]
fn a_quantized_network_is_computed_with_integers() {
    for signed in [false, true] {
        let as_wanted = |step: QuantizationStep| {
            let zero = if signed { step.zero.wrapping_sub(-128) } else { step.zero };
            QuantizationStep { dtype: if signed { Dtype::I8 } else { Dtype::U8 }, zero, ..step }
        };
        let (input, first, second, sum) = (
            as_wanted(INPUT_STEP),
            as_wanted(MIDDLE_STEP),
            as_wanted(OUTPUT_STEP),
            as_wanted(quantization_step(0.5, 3)),
        );
        let mut graph = QuantizedSketch::new();
        let x = graph.add_input(&[1, 3, 12, 12]);
        let x = graph.add_rounding(x, input);
        let a = graph.add_convolution(x, input.scale, &[8, 3, 3, 3], 1);
        let a = graph.sketch.add_op("Relu", &[a]);
        let a = graph.add_rounding(a, first);
        let shape = [("kernel_shape", Attribute::Ints(vec![3, 3])), ("pads", Attribute::Ints(vec![1; 4]))];
        let pooled = graph.sketch.add_op_with("MaxPool", &[a], &shape);
        let pooled = graph.add_rounding(pooled, first);
        let deep = graph.add_convolution(pooled, first.scale, &[8, 1, 3, 3], 8);
        let [low, high] = [0.0, 6.0].map(|bound| graph.sketch.add_scalar(bound));
        let deep = graph.sketch.add_op("Clip", &[deep, low, high]);
        let deep = graph.add_rounding(deep, first);
        let b = graph.add_convolution(deep, first.scale, &[8, 8, 1, 1], 1);
        let b = graph.add_rounding(b, second);
        let added = graph.sketch.add_op("Add", &[b, pooled]);
        let added = graph.sketch.add_op("Relu", &[added]);
        let added = graph.add_rounding(added, sum);
        let mean = graph.sketch.add_op("GlobalAveragePool", &[added]);
        let mean = graph.add_rounding(mean, sum);
        let flat = graph.sketch.add_op("Flatten", &[mean]);
        let flat = graph.add_rounding(flat, sum);
        let w = graph.add_weights(&[5, 8], 0);
        let y = graph.sketch.add_op_with("Gemm", &[flat, w], &[("transB", Attribute::Int(1))]);
        let y = graph.add_rounding(y, second);
        let left = graph.remaining_ops(&[y], &[1, 3, 12, 12]);
        let expected = [
            "QuantizeLinear",
            "oarlock.QuantizedConv",
            "oarlock.MaxPool",
            "oarlock.QuantizedConv",
            "oarlock.QuantizedConv",
            "DequantizeLinear",
            "ReduceMean",
            "QuantizeLinear",
            "Flatten",
            "oarlock.QuantizedMatMul",
            "DequantizeLinear",
        ];
        let mut found = left.clone();
        found.retain(|op| op != "Flatten");
        let expected: Vec<_> = expected.into_iter().filter(|op| *op != "Flatten").collect();
        assert_eq!(found, expected, "signed: {signed}");
    }
}

#[test]
fn no_transpose_is_left_between_quantized_convolutions() {
    let mut graph = QuantizedSketch::new();
    let x = graph.add_input(&[2, 4, 9, 9]);
    let x = graph.add_rounding(x, INPUT_STEP);
    let a = graph.add_convolution(x, INPUT_STEP.scale, &[16, 4, 3, 3], 1);
    let a = graph.add_rounding(a, MIDDLE_STEP);
    let b = graph.add_convolution(a, MIDDLE_STEP.scale, &[16, 16, 3, 3], 1);
    let b = graph.add_rounding(b, OUTPUT_STEP);
    let sum = graph.sketch.add_op("Add", &[a, b]);
    let y = graph.add_rounding(sum, OUTPUT_STEP);
    let left = graph.sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[2, 4, 9, 9], 9)]);
    assert_eq!(left.iter().filter(|op| *op == "Transpose").count(), 2, "{left:?}");
    assert_eq!(left.iter().filter(|op| *op == "oarlock.QuantizedConv").count(), 2, "{left:?}");
}

#[test]
fn what_is_added_before_it_is_rounded_is_part_of_the_sum() {
    let mut graph = QuantizedSketch::new();
    let x = graph.add_input(&[1, 8, 5, 5]);
    let x = graph.add_rounding(x, INPUT_STEP);
    let a = graph.add_convolution(x, INPUT_STEP.scale, &[8, 8, 3, 3], 1);
    let sum = graph.sketch.add_op("Add", &[x, a]);
    let sum = graph.sketch.add_op("Relu", &[sum]);
    let y = graph.add_rounding(sum, MIDDLE_STEP);
    let left = graph.remaining_ops(&[y], &[1, 8, 5, 5]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.QuantizedConv", "DequantizeLinear"]);
}

#[test]
fn products_of_stacks_are_computed_with_integers() {
    let mut graph = QuantizedSketch::new();
    let x = graph.add_input(&[2, 5, 16]);
    let x = graph.add_rounding(x, INPUT_STEP);
    let w = graph.add_weights(&[16, 12], 1);
    let y = graph.sketch.add_op("MatMul", &[x, w]);
    let y = graph.add_rounding(y, MIDDLE_STEP);
    let left = graph.remaining_ops(&[y], &[2, 5, 16]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.QuantizedMatMul", "DequantizeLinear"]);
}

#[test]
fn ops_on_quantized_tensors_are_computed_the_same_way() {
    let mut graph = QuantizedSketch::new();
    let x = graph.add_input(&[1, 8, 5, 5]);
    let x = graph.add_quantize(x, INPUT_STEP);
    let ([x_scale, x_zero], [y_scale, y_zero]) = (graph.add_step(INPUT_STEP), graph.add_step(MIDDLE_STEP));
    let (w, scales) = (graph.add_bytes(Dtype::I8, &[6, 8, 3, 3]), graph.add_scales(6));
    let zeros = graph.sketch.add_constant(Constant::new(Dtype::I8, &[6], vec![0; 6]).unwrap());
    let operands = [x, x_scale, x_zero, w, scales, zeros, y_scale, y_zero];
    let a = graph.sketch.add_op("QLinearConv", &operands);
    let (w, w_zero) = (
        graph.add_bytes(Dtype::I8, &[3, 4]),
        graph.add_step(QuantizationStep { dtype: Dtype::I8, ..quantization_step(0.5, 0) }),
    );
    let [z_scale, z_zero] = graph.add_step(OUTPUT_STEP);
    let operands = [a, y_scale, y_zero, w, w_zero[0], w_zero[1], z_scale, z_zero];
    let y = graph.sketch.add_op("QLinearMatMul", &operands);
    let left = graph.remaining_ops(&[y], &[1, 8, 5, 5]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.QuantizedConv", "oarlock.QuantizedMatMul"]);
}

#[test]
fn weights_with_a_zero_point_are_moved_where_they_still_fit() {
    for (zero, op) in [(0x80u8, "oarlock.QuantizedConv"), (0x10, "oarlock.Conv")] {
        let mut graph = QuantizedSketch::new();
        let x = graph.add_input(&[1, 8, 5, 5]);
        let x = graph.add_rounding(x, INPUT_STEP);
        let w = graph.add_bytes(Dtype::U8, &[6, 8, 1, 1]);
        let w = graph.add_dequantize(w, quantization_step(1.0 / 64.0, zero.cast_signed()));
        let y = graph.sketch.add_op("Conv", &[x, w]);
        let y = graph.add_rounding(y, MIDDLE_STEP);
        let left = graph.remaining_ops(&[y], &[1, 8, 5, 5]);
        assert!(left.contains(&op.to_owned()), "{zero}: {left:?}");
    }
}

#[test]
fn what_does_not_fit_is_left_to_floats() {
    type WriteQuantized = fn(&mut QuantizedSketch, ValueId) -> ValueId;
    // The scales are per input channel, not per output channel.
    let other_axis: WriteQuantized = |graph, x| {
        let w = graph.add_weights(&[8, 8, 1, 1], 1);
        let y = graph.sketch.add_op("Conv", &[x, w]);
        graph.add_rounding(y, MIDDLE_STEP)
    };
    // Another node reads the floats.
    let read_twice: WriteQuantized = |graph, x| {
        let a = graph.add_convolution(x, INPUT_STEP.scale, &[8, 8, 1, 1], 1);
        let b = graph.add_rounding(a, MIDDLE_STEP);
        graph.sketch.add_op("Sub", &[a, b])
    };
    // The output is not rounded.
    let not_rounded: WriteQuantized = |graph, x| graph.add_convolution(x, INPUT_STEP.scale, &[8, 8, 1, 1], 1);
    // Different scales before and after.
    let other_step: WriteQuantized = |graph, x| {
        let shape = [("kernel_shape", Attribute::Ints(vec![2, 2]))];
        let y = graph.sketch.add_op_with("MaxPool", &[x], &shape);
        graph.add_rounding(y, MIDDLE_STEP)
    };
    for write in [other_axis, read_twice, not_rounded, other_step] {
        let mut graph = QuantizedSketch::new();
        let x = graph.add_input(&[1, 8, 6, 6]);
        let x = graph.add_rounding(x, INPUT_STEP);
        let y = write(&mut graph, x);
        let left = graph.remaining_ops(&[y], &[1, 8, 6, 6]);
        assert!(!left.iter().any(|op| op.contains("Quantized")), "{left:?}");
    }
}

#[test]
fn what_is_read_before_something_is_added_is_computed_for_itself() {
    let mut graph = QuantizedSketch::new();
    let x = graph.add_input(&[1, 8, 6, 6]);
    let x = graph.add_rounding(x, INPUT_STEP);
    let a = graph.add_convolution(x, INPUT_STEP.scale, &[8, 8, 1, 1], 1);
    let a = graph.add_rounding(a, MIDDLE_STEP);
    let sum = graph.sketch.add_op("Add", &[a, x]);
    let sum = graph.add_rounding(sum, OUTPUT_STEP);
    let left = graph.remaining_ops(&[sum, a], &[1, 8, 6, 6]);
    assert!(left.contains(&"Add".to_owned()), "{left:?}");
    assert_eq!(left.iter().filter(|op| *op == "oarlock.QuantizedConv").count(), 1, "{left:?}");
}

#[test]
fn few_rows_read_block_weights_directly_and_many_dequantize_them() {
    // Too many to be dequantized at import.
    let (depth, columns, block) = (512, 640, 32);
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, depth]);
    let mut integers = |dims: [i64; 2], factor: i64| {
        let bytes: Vec<u8> = (0..dims[0] * dims[1] / 2).map(|at| (at * factor % 256) as u8).collect();
        sketch.add_constant(Constant::new(Dtype::U4, &dims, bytes).expect("integers"))
    };
    let (weights, zeros) = (integers([columns, depth], 37), integers([columns, depth / block], 91));
    let scales = sketch.add_weights(&[columns, depth / block], 5);
    let attributes = [("axis", Attribute::Int(-1)), ("block_size", Attribute::Int(block))];
    let matrix = sketch.add_op_with("DequantizeLinear", &[weights, scales, zeros], &attributes);
    // 4-bit integers are newer than the default opset of sketches.
    sketch.graph.nodes.last_mut().expect("a node").opset = 21;
    let turned = sketch.add_op_with("Transpose", &[matrix], &[("perm", Attribute::Ints(vec![1, 0]))]);
    let y = sketch.add_op("MatMul", &[x, turned]);
    // What follows becomes part of the product only where the weights are dequantized.
    let bias = sketch.add_weights(&[columns], 7);
    let sum = sketch.add_op("Add", &[y, bias]);
    let z = sketch.add_op("Relu", &[sum]);
    let sketch = sketch.with_outputs(&[z]);
    let of_blocks = ["oarlock.BlockMatMul", "Add", "Relu"];
    assert_eq!(sketch.check_optimized(&[random_datum(&[1, depth], 3)]), of_blocks);
    assert_eq!(sketch.check_optimized(&[random_datum(&[16, depth], 3)]), of_blocks);
    assert_eq!(
        sketch.check_optimized(&[random_datum(&[17, depth], 3)]),
        ["DequantizeLinear", "oarlock.MatMul"]
    );
}

#[test]
fn a_product_with_block_weights_keeps_the_accuracy_that_the_model_wants() {
    let (depth, columns, block) = (512, 640, 32);
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, depth]);
    let bytes: Vec<u8> = (0..columns * depth / 2).map(|at| (at * 37 % 256) as u8).collect();
    let weights = sketch.add_constant(Constant::new(Dtype::U4, &[columns, depth], bytes).expect("integers"));
    let scales = sketch.add_weights(&[columns, depth / block], 5);
    let attributes = [("axis", Attribute::Int(-1)), ("block_size", Attribute::Int(block))];
    let matrix = sketch.add_op_with("DequantizeLinear", &[weights, scales], &attributes);
    sketch.graph.nodes.last_mut().expect("a node").opset = 21;
    let turned = sketch.add_op_with("Transpose", &[matrix], &[("perm", Attribute::Ints(vec![1, 0]))]);
    let level = [("accuracy_level", Attribute::Int(4))];
    let y = sketch.add_op_with("MatMul", &[x, turned], &level);
    let session = sketch.with_outputs(&[y]).start_session(&SessionOptions::default());
    let files = session.to_onnx(&OnnxExportOptions::default()).expect("a model");
    let read = import::onnx::decode_onnx(files.model.into(), None).expect("a model").graph;
    let [product] = &read.nodes[..] else { panic!("expected one product, found {:?}", read.nodes) };
    assert_eq!(&*product.op, "BlockMatMul");
    assert_eq!(product.attributes.get_int("accuracy_level").expect("an integer"), Some(4));
}

#[test]
fn weights_of_eight_bits_stay_so_in_a_model_that_is_to_stay_as_it_is() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 4]);
    let eight = sketch.add_constant(Constant::new(Dtype::I8, &[4, 3], vec![1; 12]).expect("a matrix"));
    let scale = sketch.add_scalar(0.5);
    let weights = sketch.add_op("DequantizeLinear", &[eight, scale]);
    let y = sketch.add_op("MatMul", &[x, weights]);
    let session = sketch
        .with_outputs(&[y])
        .start_session(&SessionOptions { is_plain: true, ..SessionOptions::default() });
    let files = session.to_onnx(&OnnxExportOptions::default()).expect("a model");
    let read = import::onnx::decode_onnx(files.model.into(), None).expect("a model").graph;
    let ops: Vec<&str> = read.nodes.iter().map(|node| &*node.op).collect();
    assert_eq!(ops, ["DequantizeLinear", "MatMul"]);
}

//! Quantised models: what is computed with integers, and that it is what floats make of it.
//!
//! Scales are powers of two, so that floats are exact too and ties are the same.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::export::onnx::About;
use oarlock_engine::graph::ValueId;
use oarlock_engine::{SessionOptions, import};

use crate::sketch::{Sketch, random};

/// How a tensor is quantised.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) dtype: Dtype,
    pub(crate) scale: f32,
    pub(crate) zero: i8,
}

pub(crate) const fn step(scale: f32, zero: i8) -> Step {
    Step { dtype: Dtype::U8, scale, zero }
}

/// A sketch of a quantised graph.
pub(crate) struct Quantized {
    pub(crate) sketch: Sketch,
    seed: u32,
}

impl Quantized {
    pub(crate) fn new() -> Self {
        Self { sketch: Sketch::new(), seed: 1 }
    }

    pub(crate) fn step(&mut self, step: Step) -> [ValueId; 2] {
        let zero = Constant::new(step.dtype, &[], vec![step.zero.cast_unsigned()]).expect("a scalar");
        [self.sketch.scalar(step.scale), self.sketch.constant(zero)]
    }

    pub(crate) fn quantized(&mut self, x: ValueId, step: Step) -> ValueId {
        let [scale, zero] = self.step(step);
        self.sketch.op("QuantizeLinear", &[x, scale, zero])
    }

    pub(crate) fn real(&mut self, x: ValueId, step: Step) -> ValueId {
        let [scale, zero] = self.step(step);
        self.sketch.op("DequantizeLinear", &[x, scale, zero])
    }

    /// Rounded to a step, as floats.
    pub(crate) fn stepped(&mut self, x: ValueId, step: Step) -> ValueId {
        let x = self.quantized(x, step);
        self.real(x, step)
    }

    pub(crate) fn bytes(&mut self, dtype: Dtype, dims: &[i64]) -> ValueId {
        self.seed += 1;
        let count = usize::try_from(dims.iter().product::<i64>()).expect("few elements");
        let bytes = crate::sketch::noise(count, self.seed)
            .into_iter()
            .map(|value| ((value * 127.0) as i8).cast_unsigned());
        let bytes: Vec<u8> = bytes.map(|byte| if dtype == Dtype::U8 { byte ^ 0x80 } else { byte }).collect();
        self.sketch.constant(Constant::new(dtype, dims, bytes).expect("bytes of that many elements"))
    }

    /// Scales of channels: powers of two.
    pub(crate) fn scales(&mut self, count: i64) -> ValueId {
        let scales: Vec<f32> = (0..count).map(|at| 1.0 / (64 << (at % 3)) as f32).collect();
        self.sketch.floats(&[count], &scales)
    }

    /// Weights with a scale for each of the sizes along an axis, as floats.
    pub(crate) fn weights(&mut self, dims: &[i64], axis: usize) -> ValueId {
        let (w, scales) = (self.bytes(Dtype::I8, dims), self.scales(dims[axis]));
        let axis = Attribute::Int(axis as i64);
        self.sketch.op_with("DequantizeLinear", &[w, scales], &[("axis", axis)])
    }

    /// A bias of whole steps, as floats.
    pub(crate) fn bias(&mut self, count: i64, x: f32) -> ValueId {
        let bytes = (0..count as i32).flat_map(|at| (at * 31 - 200).to_ne_bytes()).collect::<Vec<u8>>();
        let bias = self.sketch.constant(Constant::new(Dtype::I32, &[count], bytes).expect("a list"));
        let scales: Vec<f32> = (0..count).map(|at| x / (64 << (at % 3)) as f32).collect();
        let scales = self.sketch.floats(&[count], &scales);
        self.sketch.op_with("DequantizeLinear", &[bias, scales], &[("axis", Attribute::Int(0))])
    }

    fn conv(&mut self, x: ValueId, x_scale: f32, dims: &[i64], group: i64) -> ValueId {
        let (w, b) = (self.weights(dims, 0), self.bias(dims[0], x_scale));
        let pads = ("pads", Attribute::Ints(vec![dims[2] / 2; 4]));
        self.sketch.op_with("Conv", &[x, w, b], &[pads, ("group", Attribute::Int(group))])
    }

    pub(crate) fn input(&mut self, dims: &[i64]) -> ValueId {
        self.sketch.input("x", Dtype::F32, dims)
    }

    /// The ops that are left, without those that only move numbers.
    fn left(self, outputs: &[ValueId], dims: &[i64]) -> Vec<String> {
        let mut left = self.sketch.output(outputs).optimised(&[random(dims, 9)]);
        left.retain(|op| op != "Transpose" && op != "Reshape");
        left
    }
}

const X: Step = step(1.0 / 64.0, 0x70);
const A: Step = step(0.125, 5);
const B: Step = step(0.25, 0x60);

#[test]
fn a_quantised_network_is_computed_with_integers() {
    for signed in [false, true] {
        let as_wanted = |step: Step| {
            let zero = if signed { step.zero.wrapping_sub(-128) } else { step.zero };
            Step { dtype: if signed { Dtype::I8 } else { Dtype::U8 }, zero, ..step }
        };
        let (input, first, second, sum) = (as_wanted(X), as_wanted(A), as_wanted(B), as_wanted(step(0.5, 3)));
        let mut graph = Quantized::new();
        let x = graph.input(&[1, 3, 12, 12]);
        let x = graph.stepped(x, input);
        let a = graph.conv(x, input.scale, &[8, 3, 3, 3], 1);
        let a = graph.sketch.op("Relu", &[a]);
        let a = graph.stepped(a, first);
        let shape = [("kernel_shape", Attribute::Ints(vec![3, 3])), ("pads", Attribute::Ints(vec![1; 4]))];
        let pooled = graph.sketch.op_with("MaxPool", &[a], &shape);
        let pooled = graph.stepped(pooled, first);
        let deep = graph.conv(pooled, first.scale, &[8, 1, 3, 3], 8);
        let [low, high] = [0.0, 6.0].map(|bound| graph.sketch.scalar(bound));
        let deep = graph.sketch.op("Clip", &[deep, low, high]);
        let deep = graph.stepped(deep, first);
        let b = graph.conv(deep, first.scale, &[8, 8, 1, 1], 1);
        let b = graph.stepped(b, second);
        let added = graph.sketch.op("Add", &[b, pooled]);
        let added = graph.sketch.op("Relu", &[added]);
        let added = graph.stepped(added, sum);
        let mean = graph.sketch.op("GlobalAveragePool", &[added]);
        let mean = graph.stepped(mean, sum);
        let flat = graph.sketch.op("Flatten", &[mean]);
        let flat = graph.stepped(flat, sum);
        let w = graph.weights(&[5, 8], 0);
        let y = graph.sketch.op_with("Gemm", &[flat, w], &[("transB", Attribute::Int(1))]);
        let y = graph.stepped(y, second);
        let left = graph.left(&[y], &[1, 3, 12, 12]);
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
fn between_convolutions_nothing_is_transposed() {
    let mut graph = Quantized::new();
    let x = graph.input(&[2, 4, 9, 9]);
    let x = graph.stepped(x, X);
    let a = graph.conv(x, X.scale, &[16, 4, 3, 3], 1);
    let a = graph.stepped(a, A);
    let b = graph.conv(a, A.scale, &[16, 16, 3, 3], 1);
    let b = graph.stepped(b, B);
    let sum = graph.sketch.op("Add", &[a, b]);
    let y = graph.stepped(sum, B);
    let left = graph.sketch.output(&[y]).optimised(&[random(&[2, 4, 9, 9], 9)]);
    assert_eq!(left.iter().filter(|op| *op == "Transpose").count(), 2, "{left:?}");
    assert_eq!(left.iter().filter(|op| *op == "oarlock.QuantizedConv").count(), 2, "{left:?}");
}

#[test]
fn what_is_added_before_it_is_rounded_is_part_of_the_sum() {
    let mut graph = Quantized::new();
    let x = graph.input(&[1, 8, 5, 5]);
    let x = graph.stepped(x, X);
    let a = graph.conv(x, X.scale, &[8, 8, 3, 3], 1);
    let sum = graph.sketch.op("Add", &[x, a]);
    let sum = graph.sketch.op("Relu", &[sum]);
    let y = graph.stepped(sum, A);
    let left = graph.left(&[y], &[1, 8, 5, 5]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.QuantizedConv", "DequantizeLinear"]);
}

#[test]
fn products_of_stacks_are_computed_with_integers() {
    let mut graph = Quantized::new();
    let x = graph.input(&[2, 5, 16]);
    let x = graph.stepped(x, X);
    let w = graph.weights(&[16, 12], 1);
    let y = graph.sketch.op("MatMul", &[x, w]);
    let y = graph.stepped(y, A);
    let left = graph.left(&[y], &[2, 5, 16]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.QuantizedMatMul", "DequantizeLinear"]);
}

#[test]
fn ops_on_quantised_tensors_are_computed_the_same_way() {
    let mut graph = Quantized::new();
    let x = graph.input(&[1, 8, 5, 5]);
    let x = graph.quantized(x, X);
    let ([x_scale, x_zero], [y_scale, y_zero]) = (graph.step(X), graph.step(A));
    let (w, scales) = (graph.bytes(Dtype::I8, &[6, 8, 3, 3]), graph.scales(6));
    let zeros = graph.sketch.constant(Constant::new(Dtype::I8, &[6], vec![0; 6]).unwrap());
    let operands = [x, x_scale, x_zero, w, scales, zeros, y_scale, y_zero];
    let a = graph.sketch.op("QLinearConv", &operands);
    let (w, w_zero) =
        (graph.bytes(Dtype::I8, &[3, 4]), graph.step(Step { dtype: Dtype::I8, ..step(0.5, 0) }));
    let [z_scale, z_zero] = graph.step(B);
    let operands = [a, y_scale, y_zero, w, w_zero[0], w_zero[1], z_scale, z_zero];
    let y = graph.sketch.op("QLinearMatMul", &operands);
    let left = graph.left(&[y], &[1, 8, 5, 5]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.QuantizedConv", "oarlock.QuantizedMatMul"]);
}

#[test]
fn weights_with_a_zero_point_are_moved_where_they_still_fit() {
    for (zero, op) in [(0x80u8, "oarlock.QuantizedConv"), (0x10, "oarlock.Conv")] {
        let mut graph = Quantized::new();
        let x = graph.input(&[1, 8, 5, 5]);
        let x = graph.stepped(x, X);
        let w = graph.bytes(Dtype::U8, &[6, 8, 1, 1]);
        let w = graph.real(w, step(1.0 / 64.0, zero.cast_signed()));
        let y = graph.sketch.op("Conv", &[x, w]);
        let y = graph.stepped(y, A);
        let left = graph.left(&[y], &[1, 8, 5, 5]);
        assert!(left.contains(&op.to_owned()), "{zero}: {left:?}");
    }
}

#[test]
fn what_does_not_fit_is_left_to_floats() {
    type Write = fn(&mut Quantized, ValueId) -> ValueId;
    // The scales are not those of the outputs.
    let other_axis: Write = |graph, x| {
        let w = graph.weights(&[8, 8, 1, 1], 1);
        let y = graph.sketch.op("Conv", &[x, w]);
        graph.stepped(y, A)
    };
    // Somebody else wants the floats.
    let read_twice: Write = |graph, x| {
        let a = graph.conv(x, X.scale, &[8, 8, 1, 1], 1);
        let b = graph.stepped(a, A);
        graph.sketch.op("Sub", &[a, b])
    };
    // What comes out is not rounded.
    let not_rounded: Write = |graph, x| graph.conv(x, X.scale, &[8, 8, 1, 1], 1);
    // The steps before and after are not the same.
    let other_step: Write = |graph, x| {
        let shape = [("kernel_shape", Attribute::Ints(vec![2, 2]))];
        let y = graph.sketch.op_with("MaxPool", &[x], &shape);
        graph.stepped(y, A)
    };
    for write in [other_axis, read_twice, not_rounded, other_step] {
        let mut graph = Quantized::new();
        let x = graph.input(&[1, 8, 6, 6]);
        let x = graph.stepped(x, X);
        let y = write(&mut graph, x);
        let left = graph.left(&[y], &[1, 8, 6, 6]);
        assert!(!left.iter().any(|op| op.contains("Quantized")), "{left:?}");
    }
}

#[test]
fn what_is_read_before_something_is_added_is_computed_for_itself() {
    let mut graph = Quantized::new();
    let x = graph.input(&[1, 8, 6, 6]);
    let x = graph.stepped(x, X);
    let a = graph.conv(x, X.scale, &[8, 8, 1, 1], 1);
    let a = graph.stepped(a, A);
    let sum = graph.sketch.op("Add", &[a, x]);
    let sum = graph.stepped(sum, B);
    let left = graph.left(&[sum, a], &[1, 8, 6, 6]);
    assert!(left.contains(&"Add".to_owned()), "{left:?}");
    assert_eq!(left.iter().filter(|op| *op == "oarlock.QuantizedConv").count(), 1, "{left:?}");
}

#[test]
fn few_rows_read_weights_in_blocks_as_they_are_and_many_have_them_made_floats() {
    // So many that they are not made floats once and for all.
    let (depth, columns, block) = (512, 640, 32);
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, depth]);
    let mut integers = |dims: [i64; 2], factor: i64| {
        let bytes: Vec<u8> = (0..dims[0] * dims[1] / 2).map(|at| (at * factor % 256) as u8).collect();
        sketch.constant(Constant::new(Dtype::U4, &dims, bytes).expect("integers"))
    };
    let (weights, zeros) = (integers([columns, depth], 37), integers([columns, depth / block], 91));
    let scales = sketch.weights(&[columns, depth / block], 5);
    let attributes = [("axis", Attribute::Int(-1)), ("block_size", Attribute::Int(block))];
    let matrix = sketch.op_with("DequantizeLinear", &[weights, scales, zeros], &attributes);
    // Integers of four bits came later than the opset of sketches.
    sketch.graph.nodes.last_mut().expect("a node").opset = 21;
    let turned = sketch.op_with("Transpose", &[matrix], &[("perm", Attribute::Ints(vec![1, 0]))]);
    let y = sketch.op("MatMul", &[x, turned]);
    let sketch = sketch.output(&[y]);
    assert_eq!(sketch.optimised(&[random(&[1, depth], 3)]), ["oarlock.BlockMatMul"]);
    assert_eq!(sketch.optimised(&[random(&[4, depth], 3)]), ["oarlock.BlockMatMul"]);
    assert_eq!(sketch.optimised(&[random(&[5, depth], 3)]), ["DequantizeLinear", "oarlock.MatMul"]);
}

#[test]
fn weights_of_eight_bits_stay_so_in_a_model_that_is_to_stay_as_it_is() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[2, 4]);
    let eight = sketch.constant(Constant::new(Dtype::I8, &[4, 3], vec![1; 12]).expect("a matrix"));
    let scale = sketch.scalar(0.5);
    let weights = sketch.op("DequantizeLinear", &[eight, scale]);
    let y = sketch.op("MatMul", &[x, weights]);
    let session =
        sketch.output(&[y]).session(&SessionOptions { is_plain: true, ..SessionOptions::default() });
    let files = session.to_onnx(&About::default()).expect("a model");
    let read = import::onnx::decode(files.model.into(), None).expect("a model").graph;
    let ops: Vec<&str> = read.nodes.iter().map(|node| &*node.op).collect();
    assert_eq!(ops, ["DequantizeLinear", "MatMul"]);
}

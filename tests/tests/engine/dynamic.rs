//! Dynamically quantised models, as onnxruntime's tools write them: sums of integers become floats in one op.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::graph::ValueId;

use crate::sketch::{Sketch, noise, random};

/// A sketch of what `quantize_dynamic` writes.
pub(crate) struct Dynamic {
    pub(crate) sketch: Sketch,
    pub(crate) dtype: Dtype,
    seed: u32,
}

/// A tensor of bytes, with what its numbers stand for.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    pub(crate) value: ValueId,
    pub(crate) scale: ValueId,
    pub(crate) zero: ValueId,
}

impl Dynamic {
    pub(crate) fn new(dtype: Dtype) -> Self {
        Self { sketch: Sketch::new(), dtype, seed: 1 }
    }

    pub(crate) fn quantized(&mut self, x: ValueId) -> Bytes {
        let [value, scale, zero] = self.sketch.op_of("DynamicQuantizeLinear", &[x], &[], 3)[..] else {
            panic!("three outputs")
        };
        Bytes { value, scale, zero }
    }

    fn bytes(&mut self, dims: &[i64]) -> ValueId {
        self.bytes_of(self.dtype, dims)
    }

    fn bytes_of(&mut self, dtype: Dtype, dims: &[i64]) -> ValueId {
        self.seed += 1;
        let count = usize::try_from(dims.iter().product::<i64>()).expect("few elements");
        let bytes = noise(count, self.seed).into_iter().map(|value| ((value * 127.0) as i8).cast_unsigned());
        self.sketch.constant(Constant::new(dtype, dims, bytes.collect::<Vec<_>>()).expect("bytes"))
    }

    /// Weights with their zero points, of which there is one or one for each output.
    pub(crate) fn weights(&mut self, dims: &[i64], zeros: &[i64]) -> [ValueId; 2] {
        [self.bytes(dims), self.bytes(zeros)]
    }

    pub(crate) fn integers(
        &mut self,
        op: &str,
        x: Bytes,
        [w, zero]: [ValueId; 2],
        more: &[(&str, Attribute)],
    ) -> ValueId {
        self.sketch.op_with(op, &[x.value, w, x.zero, zero], more)
    }

    /// Sums of integers as floats, with scales of weights of a shape.
    pub(crate) fn real(&mut self, sum: ValueId, x: Bytes, scales: &[i64]) -> ValueId {
        self.seed += 1;
        let count = usize::try_from(scales.iter().product::<i64>()).expect("few elements");
        let list: Vec<f32> =
            noise(count, self.seed).iter().map(|value| (value.abs() + 0.1) / 128.0).collect();
        let w_scale = self.sketch.floats(scales, &list);
        let scale = self.sketch.op("Mul", &[x.scale, w_scale]);
        let sum = self.sketch.op_with("Cast", &[sum], &[("to", Attribute::Int(1))]);
        self.sketch.op("Mul", &[sum, scale])
    }

    fn product(&mut self, x: Bytes, [depth, columns]: [i64; 2]) -> ValueId {
        let w = self.weights(&[depth, columns], &[]);
        let sum = self.integers("MatMulInteger", x, w, &[]);
        self.real(sum, x, &[])
    }

    fn input(&mut self, dims: &[i64]) -> ValueId {
        self.sketch.input("x", Dtype::F32, dims)
    }

    fn left(self, outputs: &[ValueId], dims: &[i64]) -> Vec<String> {
        self.sketch.output(outputs).optimised(&[random(dims, 9)])
    }
}

#[test]
fn products_of_one_quantised_tensor_become_floats_with_bias_and_activation() {
    for dtype in [Dtype::I8, Dtype::U8] {
        let mut graph = Dynamic::new(dtype);
        let x = graph.input(&[2, 3, 20]);
        let x = graph.quantized(x);
        let [q, k] = [graph.product(x, [20, 33]), graph.product(x, [20, 33])];
        let bias = graph.sketch.weights(&[33], 5);
        let k = graph.sketch.op("Add", &[bias, k]);
        let k = graph.sketch.op("Relu", &[k]);
        let left = graph.left(&[q, k], &[2, 3, 20]);
        assert_eq!(left, ["DynamicQuantizeLinear", "oarlock.DequantizedMatMul", "oarlock.DequantizedMatMul"]);
    }
}

#[test]
fn scales_and_zero_points_may_be_those_of_columns() {
    let mut graph = Dynamic::new(Dtype::U8);
    let x = graph.input(&[4, 20]);
    let x = graph.quantized(x);
    let w = graph.weights(&[20, 33], &[33]);
    let sum = graph.integers("MatMulInteger", x, w, &[]);
    let y = graph.real(sum, x, &[1, 33]);
    let left = graph.left(&[y], &[4, 20]);
    assert_eq!(left, ["DynamicQuantizeLinear", "oarlock.DequantizedMatMul"]);
}

#[test]
fn a_scale_that_is_known_beforehand_is_one_for_both() {
    let mut graph = Dynamic::new(Dtype::I8);
    let x = graph.input(&[4, 20]);
    let (scale, zero) = (graph.sketch.scalar(0.125), graph.bytes_of(Dtype::U8, &[]));
    let value = graph.sketch.op("QuantizeLinear", &[x, scale, zero]);
    let y = graph.product(Bytes { value, scale, zero }, [20, 33]);
    let left = graph.left(&[y], &[4, 20]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.DequantizedMatMul"]);
}

#[test]
fn convolutions_keep_their_channels_last_between_them() {
    let mut graph = Dynamic::new(Dtype::U8);
    let mut x = graph.input(&[1, 3, 12, 11]);
    for (made, channels, integer_bias) in [(8, 3, false), (20, 8, true)] {
        let bytes = graph.quantized(x);
        let w = graph.weights(&[made, channels, 3, 3], &[]);
        let pads = [("pads", Attribute::Ints(vec![1; 4]))];
        let mut sum = graph.integers("ConvInteger", bytes, w, &pads);
        if integer_bias {
            // Not constant, as it is in units of what the image is quantised to.
            let list = graph.sketch.weights(&[made], 7);
            let list = graph.sketch.op("Div", &[list, bytes.scale]);
            let list = graph.sketch.op_with("Cast", &[list], &[("to", Attribute::Int(6))]);
            let shape = graph.sketch.ints(&[1, -1, 1, 1]);
            let list = graph.sketch.op("Reshape", &[list, shape]);
            sum = graph.sketch.op("Add", &[sum, list]);
        }
        x = graph.real(sum, bytes, &[]);
        if !integer_bias {
            let bias = graph.sketch.weights(&[1, made, 1, 1], 8);
            x = graph.sketch.op("Add", &[x, bias]);
        }
        x = graph.sketch.op("Relu", &[x]);
    }
    let mut left = graph.left(&[x], &[1, 3, 12, 11]);
    left.retain(|op| !["Reshape", "Div", "Cast"].contains(&op.as_str()));
    // The image is turned once before all convolutions, as bytes, and once behind.
    let (bytes, convolution, turned) = ("DynamicQuantizeLinear", "oarlock.DequantizedConv", "Transpose");
    assert_eq!(left, [bytes, turned, convolution, bytes, convolution, turned]);
}

#[test]
fn a_convolution_of_each_channel_for_itself_is_one_of_floats() {
    let mut graph = Dynamic::new(Dtype::U8);
    let x = graph.input(&[1, 20, 9, 8]);
    let bytes = graph.quantized(x);
    let w = graph.weights(&[20, 1, 3, 3], &[20]);
    let sum = graph.integers("ConvInteger", bytes, w, &[("group", Attribute::Int(20))]);
    let y = graph.real(sum, bytes, &[20, 1, 1]);
    let bias = graph.sketch.weights(&[1, 20, 1, 1], 8);
    let y = graph.sketch.op("Add", &[y, bias]);
    let left = graph.left(&[y], &[1, 20, 9, 8]);
    assert!(left.contains(&"oarlock.Conv".to_owned()), "{left:?}");
    assert!(!left.contains(&"ConvInteger".to_owned()), "{left:?}");
}

type Write = fn(&mut Dynamic, ValueId) -> Vec<ValueId>;

#[test]
fn sums_that_others_read_or_that_fit_nothing_stay_integers() {
    let read_twice: Write = |graph, x| {
        let x = graph.quantized(x);
        let w = graph.weights(&[20, 5], &[]);
        let sum = graph.integers("MatMulInteger", x, w, &[]);
        vec![graph.real(sum, x, &[]), sum]
    };
    let of_rows: Write = |graph, x| {
        let x = graph.quantized(x);
        let w = graph.weights(&[20, 5], &[]);
        let sum = graph.integers("MatMulInteger", x, w, &[]);
        vec![graph.real(sum, x, &[6, 1])]
    };
    let other_dtype: Write = |graph, x| {
        let x = graph.quantized(x);
        let w = graph.weights(&[20, 5], &[]);
        let sum = graph.integers("MatMulInteger", x, w, &[]);
        let half = |graph: &mut Dynamic, value| {
            graph.sketch.op_with("Cast", &[value], &[("to", Attribute::Int(10))])
        };
        let (sum, scale) = (half(graph, sum), half(graph, x.scale));
        vec![graph.sketch.op("Mul", &[sum, scale])]
    };
    let grown: Write = |graph, x| {
        let x = graph.quantized(x);
        let w = graph.weights(&[20, 5], &[]);
        let sum = graph.integers("MatMulInteger", x, w, &[]);
        vec![graph.real(sum, x, &[2, 1, 1])]
    };
    let not_constant: Write = |graph, x| {
        let [a, turned] = [graph.quantized(x), {
            let turned = graph.sketch.op_with("Transpose", &[x], &[("perm", Attribute::Ints(vec![1, 0]))]);
            graph.quantized(turned)
        }];
        let sum = graph.integers("MatMulInteger", a, [turned.value, turned.zero], &[]);
        let sum = graph.sketch.op_with("Cast", &[sum], &[("to", Attribute::Int(1))]);
        let scale = graph.sketch.op("Mul", &[a.scale, turned.scale]);
        vec![graph.sketch.op("Mul", &[sum, scale])]
    };
    for write in [read_twice, of_rows, other_dtype, grown, not_constant] {
        let mut graph = Dynamic::new(Dtype::I8);
        let x = graph.input(&[6, 20]);
        let outputs = write(&mut graph, x);
        let left = graph.left(&outputs, &[6, 20]);
        assert!(left.contains(&"MatMulInteger".to_owned()), "{left:?}");
    }
}

#[test]
fn an_addend_along_another_axis_is_no_bias() {
    let mut graph = Dynamic::new(Dtype::U8);
    let x = graph.input(&[1, 4, 6, 6]);
    let bytes = graph.quantized(x);
    let w = graph.weights(&[6, 4, 1, 1], &[]);
    let sum = graph.integers("ConvInteger", bytes, w, &[]);
    let y = graph.real(sum, bytes, &[]);
    // As many as there are channels, but along the width.
    let list = graph.sketch.weights(&[6], 8);
    let y = graph.sketch.op("Add", &[y, list]);
    let left = graph.left(&[y], &[1, 4, 6, 6]);
    assert!(left.contains(&"oarlock.DequantizedConv".to_owned()), "{left:?}");
    assert!(left.contains(&"Add".to_owned()), "{left:?}");
}

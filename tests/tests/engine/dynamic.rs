//! Dynamically quantized models, as onnxruntime's tools write them: integer sums are dequantized in one op.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::graph::ValueId;

use crate::sketch::{GraphSketch, random_datum, random_floats};

/// Builds graphs as `quantize_dynamic` writes them.
pub(crate) struct DynamicSketch {
    pub(crate) sketch: GraphSketch,
    pub(crate) dtype: Dtype,
    seed: u32,
}

/// A tensor of bytes, with its scale and zero point.
#[derive(Clone, Copy)]
pub(crate) struct DynamicBytes {
    pub(crate) value: ValueId,
    pub(crate) scale: ValueId,
    pub(crate) zero: ValueId,
}

impl DynamicSketch {
    pub(crate) fn new(dtype: Dtype) -> Self {
        Self { sketch: GraphSketch::new(), dtype, seed: 1 }
    }

    pub(crate) fn quantize_input(&mut self, x: ValueId) -> DynamicBytes {
        let [value, scale, zero] = self.sketch.add_op_with_outputs("DynamicQuantizeLinear", &[x], &[], 3)[..]
        else {
            panic!("three outputs")
        };
        DynamicBytes { value, scale, zero }
    }

    fn add_bytes(&mut self, dims: &[i64]) -> ValueId {
        self.add_bytes_of(self.dtype, dims)
    }

    fn add_bytes_of(&mut self, dtype: Dtype, dims: &[i64]) -> ValueId {
        self.seed += 1;
        let count = usize::try_from(dims.iter().product::<i64>()).expect("few elements");
        let bytes =
            random_floats(count, self.seed).into_iter().map(|value| ((value * 127.0) as i8).cast_unsigned());
        self.sketch.add_constant(Constant::new(dtype, dims, bytes.collect::<Vec<_>>()).expect("bytes"))
    }

    /// Weights with one zero point, or one for each output.
    pub(crate) fn add_weights(&mut self, dims: &[i64], zeros: &[i64]) -> [ValueId; 2] {
        [self.add_bytes(dims), self.add_bytes(zeros)]
    }

    pub(crate) fn add_integer_op(
        &mut self,
        op: &str,
        x: DynamicBytes,
        [w, zero]: [ValueId; 2],
        more: &[(&str, Attribute)],
    ) -> ValueId {
        self.sketch.add_op_with(op, &[x.value, w, x.zero, zero], more)
    }

    /// Dequantizes integer sums, with scales for the weights.
    pub(crate) fn dequantize_sum(&mut self, sum: ValueId, x: DynamicBytes, scales: &[i64]) -> ValueId {
        self.seed += 1;
        let count = usize::try_from(scales.iter().product::<i64>()).expect("few elements");
        let list: Vec<f32> =
            random_floats(count, self.seed).iter().map(|value| (value.abs() + 0.1) / 128.0).collect();
        let w_scale = self.sketch.add_floats(scales, &list);
        let scale = self.sketch.add_op("Mul", &[x.scale, w_scale]);
        let sum = self.sketch.add_op_with("Cast", &[sum], &[("to", Attribute::Int(1))]);
        self.sketch.add_op("Mul", &[sum, scale])
    }

    fn add_product(&mut self, x: DynamicBytes, [depth, columns]: [i64; 2]) -> ValueId {
        let w = self.add_weights(&[depth, columns], &[]);
        let sum = self.add_integer_op("MatMulInteger", x, w, &[]);
        self.dequantize_sum(sum, x, &[])
    }

    fn add_input(&mut self, dims: &[i64]) -> ValueId {
        self.sketch.add_input("x", Dtype::F32, dims)
    }

    fn remaining_ops(self, outputs: &[ValueId], dims: &[i64]) -> Vec<String> {
        self.sketch.with_outputs(outputs).check_optimized(&[random_datum(dims, 9)])
    }
}

#[test]
fn products_of_one_quantized_tensor_become_floats_with_bias_and_activation() {
    for dtype in [Dtype::I8, Dtype::U8] {
        let mut graph = DynamicSketch::new(dtype);
        let x = graph.add_input(&[2, 3, 20]);
        let x = graph.quantize_input(x);
        let [q, k] = [graph.add_product(x, [20, 33]), graph.add_product(x, [20, 33])];
        let bias = graph.sketch.add_weights(&[33], 5);
        let k = graph.sketch.add_op("Add", &[bias, k]);
        let k = graph.sketch.add_op("Relu", &[k]);
        let left = graph.remaining_ops(&[q, k], &[2, 3, 20]);
        assert_eq!(left, ["DynamicQuantizeLinear", "oarlock.DequantizedMatMul", "oarlock.DequantizedMatMul"]);
    }
}

#[test]
fn scales_and_zero_points_may_be_those_of_columns() {
    let mut graph = DynamicSketch::new(Dtype::U8);
    let x = graph.add_input(&[4, 20]);
    let x = graph.quantize_input(x);
    let w = graph.add_weights(&[20, 33], &[33]);
    let sum = graph.add_integer_op("MatMulInteger", x, w, &[]);
    let y = graph.dequantize_sum(sum, x, &[1, 33]);
    let left = graph.remaining_ops(&[y], &[4, 20]);
    assert_eq!(left, ["DynamicQuantizeLinear", "oarlock.DequantizedMatMul"]);
}

#[test]
fn a_scale_that_is_known_beforehand_is_one_for_both() {
    let mut graph = DynamicSketch::new(Dtype::I8);
    let x = graph.add_input(&[4, 20]);
    let (scale, zero) = (graph.sketch.add_scalar(0.125), graph.add_bytes_of(Dtype::U8, &[]));
    let value = graph.sketch.add_op("QuantizeLinear", &[x, scale, zero]);
    let y = graph.add_product(DynamicBytes { value, scale, zero }, [20, 33]);
    let left = graph.remaining_ops(&[y], &[4, 20]);
    assert_eq!(left, ["QuantizeLinear", "oarlock.DequantizedMatMul"]);
}

#[test]
fn convolutions_keep_their_channels_last_between_them() {
    let mut graph = DynamicSketch::new(Dtype::U8);
    let mut x = graph.add_input(&[1, 3, 12, 11]);
    for (made, channels, integer_bias) in [(8, 3, false), (20, 8, true)] {
        let bytes = graph.quantize_input(x);
        let w = graph.add_weights(&[made, channels, 3, 3], &[]);
        let pads = [("pads", Attribute::Ints(vec![1; 4]))];
        let mut sum = graph.add_integer_op("ConvInteger", bytes, w, &pads);
        if integer_bias {
            // Not constant, since it depends on the scale of the image.
            let list = graph.sketch.add_weights(&[made], 7);
            let list = graph.sketch.add_op("Div", &[list, bytes.scale]);
            let list = graph.sketch.add_op_with("Cast", &[list], &[("to", Attribute::Int(6))]);
            let shape = graph.sketch.add_ints(&[1, -1, 1, 1]);
            let list = graph.sketch.add_op("Reshape", &[list, shape]);
            sum = graph.sketch.add_op("Add", &[sum, list]);
        }
        x = graph.dequantize_sum(sum, bytes, &[]);
        if !integer_bias {
            let bias = graph.sketch.add_weights(&[1, made, 1, 1], 8);
            x = graph.sketch.add_op("Add", &[x, bias]);
        }
        x = graph.sketch.add_op("Relu", &[x]);
    }
    let mut left = graph.remaining_ops(&[x], &[1, 3, 12, 11]);
    left.retain(|op| !["Reshape", "Div", "Cast"].contains(&op.as_str()));
    // The image is transposed once before all convolutions, as bytes, and once after.
    let (bytes, convolution, turned) = ("DynamicQuantizeLinear", "oarlock.DequantizedConv", "Transpose");
    assert_eq!(left, [bytes, turned, convolution, bytes, convolution, turned]);
}

#[test]
fn a_convolution_of_each_channel_for_itself_is_one_of_floats() {
    let mut graph = DynamicSketch::new(Dtype::U8);
    let x = graph.add_input(&[1, 20, 9, 8]);
    let bytes = graph.quantize_input(x);
    let w = graph.add_weights(&[20, 1, 3, 3], &[20]);
    let sum = graph.add_integer_op("ConvInteger", bytes, w, &[("group", Attribute::Int(20))]);
    let y = graph.dequantize_sum(sum, bytes, &[20, 1, 1]);
    let bias = graph.sketch.add_weights(&[1, 20, 1, 1], 8);
    let y = graph.sketch.add_op("Add", &[y, bias]);
    let left = graph.remaining_ops(&[y], &[1, 20, 9, 8]);
    assert!(left.contains(&"oarlock.Conv".to_owned()), "{left:?}");
    assert!(!left.contains(&"ConvInteger".to_owned()), "{left:?}");
}

type WriteDynamic = fn(&mut DynamicSketch, ValueId) -> Vec<ValueId>;

#[test]
fn sums_that_others_read_or_that_fit_nothing_stay_integers() {
    let read_twice: WriteDynamic = |graph, x| {
        let x = graph.quantize_input(x);
        let w = graph.add_weights(&[20, 5], &[]);
        let sum = graph.add_integer_op("MatMulInteger", x, w, &[]);
        vec![graph.dequantize_sum(sum, x, &[]), sum]
    };
    let of_rows: WriteDynamic = |graph, x| {
        let x = graph.quantize_input(x);
        let w = graph.add_weights(&[20, 5], &[]);
        let sum = graph.add_integer_op("MatMulInteger", x, w, &[]);
        vec![graph.dequantize_sum(sum, x, &[6, 1])]
    };
    let other_dtype: WriteDynamic = |graph, x| {
        let x = graph.quantize_input(x);
        let w = graph.add_weights(&[20, 5], &[]);
        let sum = graph.add_integer_op("MatMulInteger", x, w, &[]);
        let half = |graph: &mut DynamicSketch, value| {
            graph.sketch.add_op_with("Cast", &[value], &[("to", Attribute::Int(10))])
        };
        let (sum, scale) = (half(graph, sum), half(graph, x.scale));
        vec![graph.sketch.add_op("Mul", &[sum, scale])]
    };
    let grown: WriteDynamic = |graph, x| {
        let x = graph.quantize_input(x);
        let w = graph.add_weights(&[20, 5], &[]);
        let sum = graph.add_integer_op("MatMulInteger", x, w, &[]);
        vec![graph.dequantize_sum(sum, x, &[2, 1, 1])]
    };
    let not_constant: WriteDynamic = |graph, x| {
        let [a, turned] = [graph.quantize_input(x), {
            let turned =
                graph.sketch.add_op_with("Transpose", &[x], &[("perm", Attribute::Ints(vec![1, 0]))]);
            graph.quantize_input(turned)
        }];
        let sum = graph.add_integer_op("MatMulInteger", a, [turned.value, turned.zero], &[]);
        let sum = graph.sketch.add_op_with("Cast", &[sum], &[("to", Attribute::Int(1))]);
        let scale = graph.sketch.add_op("Mul", &[a.scale, turned.scale]);
        vec![graph.sketch.add_op("Mul", &[sum, scale])]
    };
    for write in [read_twice, of_rows, other_dtype, grown, not_constant] {
        let mut graph = DynamicSketch::new(Dtype::I8);
        let x = graph.add_input(&[6, 20]);
        let outputs = write(&mut graph, x);
        let left = graph.remaining_ops(&outputs, &[6, 20]);
        assert!(left.contains(&"MatMulInteger".to_owned()), "{left:?}");
    }
}

#[test]
fn an_addend_along_another_axis_is_not_a_fused_bias() {
    let mut graph = DynamicSketch::new(Dtype::U8);
    let x = graph.add_input(&[1, 4, 6, 6]);
    let bytes = graph.quantize_input(x);
    let w = graph.add_weights(&[6, 4, 1, 1], &[]);
    let sum = graph.add_integer_op("ConvInteger", bytes, w, &[]);
    let y = graph.dequantize_sum(sum, bytes, &[]);
    // As many elements as there are channels, but along the width.
    let list = graph.sketch.add_weights(&[6], 8);
    let y = graph.sketch.add_op("Add", &[y, list]);
    let left = graph.remaining_ops(&[y], &[1, 4, 6, 6]);
    assert!(left.contains(&"oarlock.DequantizedConv".to_owned()), "{left:?}");
    assert!(left.contains(&"Add".to_owned()), "{left:?}");
}

//! Quantized graphs: between two rounding steps, floats and integers are both exact, so both round the same way.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::graph::ValueId;

use super::SeededRandom;
use crate::quantized::{QuantizationStep, QuantizedSketch};
use crate::sketch::random_datum;

const INPUT_SHAPE: [i64; 4] = [2, 4, 5, 6];
/// Larger sizes make sums that floats round. So do convolutions with equally many input and output channels, which use
/// transforms.
const MAX_EXACT_SIZE: i64 = 16;

/// A value that was quantized and dequantized.
#[derive(Clone, Copy)]
struct SteppedValue {
    value: ValueId,
    dims: [i64; 4],
    step: QuantizationStep,
}

struct RandomQuantizedGraph {
    graph: QuantizedSketch,
    values: Vec<SteppedValue>,
    /// Values before rounding that another node reads too.
    whole: Vec<ValueId>,
    dice: SeededRandom,
}

impl RandomQuantizedGraph {
    fn new(seed: u64) -> Self {
        let mut growing = Self {
            graph: QuantizedSketch::new(),
            values: Vec::new(),
            whole: Vec::new(),
            dice: SeededRandom(seed),
        };
        let x = growing.graph.add_input(&INPUT_SHAPE);
        growing.round_value(x, INPUT_SHAPE, None);
        growing
    }

    fn random_step(&mut self) -> QuantizationStep {
        QuantizationStep {
            dtype: self.dice.pick_one(&[Dtype::U8, Dtype::U8, Dtype::I8]),
            scale: self.dice.pick_one(&[0.5, 0.25, 0.125, 0.03125]),
            zero: self.dice.pick_one(&[0, 5, 0x60, -128, -3]),
        }
    }

    /// Rounds a value to some step, or usually to the one it had before.
    fn round_value(&mut self, value: ValueId, dims: [i64; 4], same: Option<QuantizationStep>) {
        let step = match same {
            Some(step) if self.dice.next_below(4) != 0 => step,
            _ => self.random_step(),
        };
        if self.dice.next_below(8) == 0 {
            self.whole.push(value);
        }
        let value = self.graph.add_rounding(value, step);
        self.values.push(SteppedValue { value, dims, step });
    }

    /// Mostly one of the latest values, so that chains grow.
    fn pick_value(&mut self) -> SteppedValue {
        let recent = self.values.len().saturating_sub(3);
        let from = if self.dice.next_below(4) == 0 { 0 } else { recent };
        self.values[from + self.dice.next_below(self.values.len() - from)]
    }

    /// Weights with one scale and a zero point.
    fn add_asymmetric_weights(&mut self, dims: &[i64]) -> ValueId {
        let w = self.graph.add_bytes(Dtype::U8, dims);
        let zero = self.dice.pick_one(&[-128, 0x10]);
        self.graph.add_dequantize(w, QuantizationStep { dtype: Dtype::U8, scale: 1.0 / 64.0, zero })
    }

    /// A float bias, not quantized, but of whole steps.
    fn add_bias(&mut self, count: i64) -> ValueId {
        let bias: Vec<f32> = (0..count).map(|at| at as f32 * 0.25 - 1.0).collect();
        self.graph.sketch.add_floats(&[count], &bias)
    }

    fn add_activation(&mut self, x: ValueId) -> ValueId {
        match self.dice.next_below(4) {
            0 => self.graph.sketch.add_op("Relu", &[x]),
            1 => {
                let [low, high] = [0.0, 6.0].map(|bound| self.graph.sketch.add_scalar(bound));
                self.graph.sketch.add_op("Clip", &[x, low, high])
            }
            _ => x,
        }
    }

    fn add_convolution(&mut self, x: SteppedValue) {
        let dims = x.dims;
        let (size, is_deep) = (self.dice.pick_one(&[1, 3]), self.dice.next_below(4) == 0);
        let (made, each) = if is_deep { (dims[1], 1) } else { (self.dice.pick_one(&[3, 8, 12]), dims[1]) };
        let shape = [made, each, size, size];
        let operands = match self.dice.next_below(4) {
            0 => vec![x.value, self.add_asymmetric_weights(&shape), self.add_bias(made)],
            1 => vec![x.value, self.graph.add_weights(&shape, 0), self.add_bias(made)],
            2 => vec![x.value, self.graph.add_weights(&shape, 0), self.graph.add_bias(made, x.step.scale)],
            _ => vec![x.value, self.graph.add_weights(&shape, 0)],
        };
        let group = Attribute::Int(if is_deep { dims[1] } else { 1 });
        let stride = self.dice.pick_one(&[1, 1, 2]);
        let attributes = [
            ("pads", Attribute::Ints(vec![size / 2; 4])),
            ("strides", Attribute::Ints(vec![stride; 2])),
            ("group", group),
        ];
        let made = (self.graph.sketch.add_op_with("Conv", &operands, &attributes), made);
        let value = self.add_activation(made.0);
        let shrunk = |size: i64| (size - 1) / stride + 1;
        self.round_value(value, [dims[0], made.1, shrunk(dims[2]), shrunk(dims[3])], None);
    }

    /// An op on integers that the graph itself contains.
    fn add_integer_op(&mut self, x: SteppedValue) {
        let to = self.random_step();
        let ([x_scale, x_zero], [y_scale, y_zero]) = (self.graph.add_step(x.step), self.graph.add_step(to));
        let x_bytes = self.graph.add_quantize(x.value, x.step);
        let (op, w, scales, zeros, dims) = if self.dice.next_below(2) == 0 {
            let w = self.graph.add_bytes(Dtype::I8, &[8, x.dims[1], 1, 1]);
            let zeros = Constant::new(Dtype::I8, &[8], vec![0; 8]).expect("eight bytes");
            let dims = [x.dims[0], 8, x.dims[2], x.dims[3]];
            ("QLinearConv", w, self.graph.add_scales(8), self.graph.sketch.add_constant(zeros), dims)
        } else {
            let w = self.graph.add_bytes(Dtype::I8, &[x.dims[3], 4]);
            let [scale, zero] =
                self.graph.add_step(QuantizationStep { dtype: Dtype::I8, scale: 0.03125, zero: 0 });
            ("QLinearMatMul", w, scale, zero, [x.dims[0], x.dims[1], x.dims[2], 4])
        };
        let operands = [x_bytes, x_scale, x_zero, w, scales, zeros, y_scale, y_zero];
        let made = self.graph.sketch.add_op(op, &operands);
        let value = self.graph.add_dequantize(made, to);
        self.values.push(SteppedValue { value, dims, step: to });
    }

    fn grow_node(&mut self) {
        let x = self.pick_value();
        let (value, dims, step) = (x.value, x.dims, x.step);
        let axis = self.dice.next_below(4);
        let number = Attribute::Int(axis as i64);
        match self.dice.next_below(12) {
            0..=3 => self.add_convolution(x),
            4 | 5 => {
                let alike: Vec<SteppedValue> =
                    self.values.iter().filter(|other| other.dims == dims).copied().collect();
                let other = alike[self.dice.next_below(alike.len())];
                let op = self.dice.pick_one(&["Add", "Add", "Mul"]);
                let made = self.graph.sketch.add_op(op, &[value, other.value]);
                let made = self.add_activation(made);
                self.round_value(made, dims, None);
            }
            6 => {
                let shape = ("kernel_shape", Attribute::Ints(vec![3, 3]));
                let pads = ("pads", Attribute::Ints(vec![1; 4]));
                let made = self.graph.sketch.add_op_with("MaxPool", &[value], &[shape, pads]);
                self.round_value(made, dims, Some(step));
            }
            7 if dims[axis] * 2 <= MAX_EXACT_SIZE => {
                let mut joined = dims;
                joined[axis] *= 2;
                let made = self.graph.sketch.add_op_with("Concat", &[value, value], &[("axis", number)]);
                self.round_value(made, joined, Some(step));
            }
            8 => {
                let order = self.dice.pick_one(&[[0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1, 3], [3, 2, 1, 0]]);
                let turned = order.map(|axis| dims[axis]);
                if turned.iter().any(|size| *size > MAX_EXACT_SIZE) {
                    return;
                }
                let order = Attribute::Ints(order.iter().map(|axis| *axis as i64).collect());
                let made = self.graph.sketch.add_op_with("Transpose", &[value], &[("perm", order)]);
                self.round_value(made, turned, Some(step));
            }
            9 => {
                let columns = self.dice.pick_one(&[4, 8]);
                let shape = [dims[3], columns];
                let w = match self.dice.next_below(4) {
                    0 => self.add_asymmetric_weights(&shape),
                    _ => self.graph.add_weights(&shape, 1),
                };
                let made = self.graph.sketch.add_op("MatMul", &[value, w]);
                let made = self.add_activation(made);
                self.round_value(made, [dims[0], dims[1], dims[2], columns], None);
            }
            10 => {
                let mut pads = [0; 8];
                pads[axis] = 1;
                let mut padded = dims;
                padded[axis] += 1;
                let pads = self.graph.sketch.add_ints(&pads);
                let made = self.graph.sketch.add_op("Pad", &[value, pads]);
                self.round_value(made, padded, Some(step));
            }
            _ => self.add_integer_op(x),
        }
    }
}

#[test]
fn passes_never_change_what_a_quantized_graph_computes() {
    let (seeds, mut integers) = (super::test_seeds(0..200), 0);
    for seed in seeds.clone() {
        let mut growing = RandomQuantizedGraph::new(seed * 6151 + 3);
        while growing.values.len() < 9 && growing.graph.sketch.graph.nodes.len() < 80 {
            growing.grow_node();
        }
        let count = growing.values.len();
        let mut outputs = vec![growing.values[count - 1].value, growing.values[count / 2].value];
        outputs.extend(growing.whole);
        let left = super::check_passes(
            seed,
            &growing.graph.sketch.with_outputs(&outputs),
            &[random_datum(&INPUT_SHAPE, 3)],
        );
        integers += left.iter().filter(|op| op.starts_with("oarlock.Quantized")).count();
    }
    let graphs = seeds.count();
    assert!(integers > graphs, "{integers} products of {graphs} graphs are computed with integers");
}

//! Quantised graphs: what is between the steps is exact in floats and in integers, so that both round the same way.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::graph::ValueId;

use super::Dice;
use crate::quantized::{Quantized, Step};
use crate::sketch::random;

const SHAPE: [i64; 4] = [2, 4, 5, 6];
/// Sizes beyond this make sums that floats round. So do convolutions of as many channels to as many, which go by transforms.
const MOST: i64 = 16;

/// A value that was rounded to a step and is floats again.
#[derive(Clone, Copy)]
struct Stepped {
    value: ValueId,
    dims: [i64; 4],
    step: Step,
}

struct Growing {
    graph: Quantized,
    values: Vec<Stepped>,
    /// What was not rounded, and somebody else reads too.
    whole: Vec<ValueId>,
    dice: Dice,
}

impl Growing {
    fn new(seed: u64) -> Self {
        let mut growing =
            Self { graph: Quantized::new(), values: Vec::new(), whole: Vec::new(), dice: Dice(seed) };
        let x = growing.graph.input(&SHAPE);
        growing.rounded(x, SHAPE, None);
        growing
    }

    fn any_step(&mut self) -> Step {
        Step {
            dtype: self.dice.pick(&[Dtype::U8, Dtype::U8, Dtype::I8]),
            scale: self.dice.pick(&[0.5, 0.25, 0.125, 0.03125]),
            zero: self.dice.pick(&[0, 5, 0x60, -128, -3]),
        }
    }

    /// Rounds a value, mostly, to some step or to the one it came with.
    fn rounded(&mut self, value: ValueId, dims: [i64; 4], same: Option<Step>) {
        let step = match same {
            Some(step) if self.dice.below(4) != 0 => step,
            _ => self.any_step(),
        };
        if self.dice.below(8) == 0 {
            self.whole.push(value);
        }
        let value = self.graph.stepped(value, step);
        self.values.push(Stepped { value, dims, step });
    }

    /// Mostly one of the last values, so that chains grow.
    fn any(&mut self) -> Stepped {
        let recent = self.values.len().saturating_sub(3);
        let from = if self.dice.below(4) == 0 { 0 } else { recent };
        self.values[from + self.dice.below(self.values.len() - from)]
    }

    /// Weights with one scale and a zero point.
    fn moved_weights(&mut self, dims: &[i64]) -> ValueId {
        let w = self.graph.bytes(Dtype::U8, dims);
        let zero = self.dice.pick(&[-128, 0x10]);
        self.graph.real(w, Step { dtype: Dtype::U8, scale: 1.0 / 64.0, zero })
    }

    /// A bias that is none of quantised numbers, and yet whole steps.
    fn bias(&mut self, count: i64) -> ValueId {
        let bias: Vec<f32> = (0..count).map(|at| at as f32 * 0.25 - 1.0).collect();
        self.graph.sketch.floats(&[count], &bias)
    }

    fn activated(&mut self, x: ValueId) -> ValueId {
        match self.dice.below(4) {
            0 => self.graph.sketch.op("Relu", &[x]),
            1 => {
                let [low, high] = [0.0, 6.0].map(|bound| self.graph.sketch.scalar(bound));
                self.graph.sketch.op("Clip", &[x, low, high])
            }
            _ => x,
        }
    }

    fn conv(&mut self, x: Stepped) {
        let dims = x.dims;
        let (size, is_deep) = (self.dice.pick(&[1, 3]), self.dice.below(4) == 0);
        let (made, each) = if is_deep { (dims[1], 1) } else { (self.dice.pick(&[3, 8, 12]), dims[1]) };
        let shape = [made, each, size, size];
        let operands = match self.dice.below(4) {
            0 => vec![x.value, self.moved_weights(&shape), self.bias(made)],
            1 => vec![x.value, self.graph.weights(&shape, 0), self.bias(made)],
            2 => vec![x.value, self.graph.weights(&shape, 0), self.graph.bias(made, x.step.scale)],
            _ => vec![x.value, self.graph.weights(&shape, 0)],
        };
        let group = Attribute::Int(if is_deep { dims[1] } else { 1 });
        let stride = self.dice.pick(&[1, 1, 2]);
        let attributes = [
            ("pads", Attribute::Ints(vec![size / 2; 4])),
            ("strides", Attribute::Ints(vec![stride; 2])),
            ("group", group),
        ];
        let made = (self.graph.sketch.op_with("Conv", &operands, &attributes), made);
        let value = self.activated(made.0);
        let shrunk = |size: i64| (size - 1) / stride + 1;
        self.rounded(value, [dims[0], made.1, shrunk(dims[2]), shrunk(dims[3])], None);
    }

    /// An op on quantised tensors, which the graph has as such.
    fn linear(&mut self, x: Stepped) {
        let to = self.any_step();
        let ([x_scale, x_zero], [y_scale, y_zero]) = (self.graph.step(x.step), self.graph.step(to));
        let x_bytes = self.graph.quantized(x.value, x.step);
        let (op, w, scales, zeros, dims) = if self.dice.below(2) == 0 {
            let w = self.graph.bytes(Dtype::I8, &[8, x.dims[1], 1, 1]);
            let zeros = Constant::new(Dtype::I8, &[8], vec![0; 8]).expect("eight bytes");
            let dims = [x.dims[0], 8, x.dims[2], x.dims[3]];
            ("QLinearConv", w, self.graph.scales(8), self.graph.sketch.constant(zeros), dims)
        } else {
            let w = self.graph.bytes(Dtype::I8, &[x.dims[3], 4]);
            let [scale, zero] = self.graph.step(Step { dtype: Dtype::I8, scale: 0.03125, zero: 0 });
            ("QLinearMatMul", w, scale, zero, [x.dims[0], x.dims[1], x.dims[2], 4])
        };
        let operands = [x_bytes, x_scale, x_zero, w, scales, zeros, y_scale, y_zero];
        let made = self.graph.sketch.op(op, &operands);
        let value = self.graph.real(made, to);
        self.values.push(Stepped { value, dims, step: to });
    }

    fn grow(&mut self) {
        let x = self.any();
        let (value, dims, step) = (x.value, x.dims, x.step);
        let axis = self.dice.below(4);
        let number = Attribute::Int(axis as i64);
        match self.dice.below(12) {
            0..=3 => self.conv(x),
            4 | 5 => {
                let alike: Vec<Stepped> =
                    self.values.iter().filter(|other| other.dims == dims).copied().collect();
                let other = alike[self.dice.below(alike.len())];
                let op = self.dice.pick(&["Add", "Add", "Mul"]);
                let made = self.graph.sketch.op(op, &[value, other.value]);
                let made = self.activated(made);
                self.rounded(made, dims, None);
            }
            6 => {
                let shape = ("kernel_shape", Attribute::Ints(vec![3, 3]));
                let pads = ("pads", Attribute::Ints(vec![1; 4]));
                let made = self.graph.sketch.op_with("MaxPool", &[value], &[shape, pads]);
                self.rounded(made, dims, Some(step));
            }
            7 if dims[axis] * 2 <= MOST => {
                let mut joined = dims;
                joined[axis] *= 2;
                let made = self.graph.sketch.op_with("Concat", &[value, value], &[("axis", number)]);
                self.rounded(made, joined, Some(step));
            }
            8 => {
                let order = self.dice.pick(&[[0, 2, 3, 1], [0, 3, 1, 2], [0, 2, 1, 3], [3, 2, 1, 0]]);
                let turned = order.map(|axis| dims[axis]);
                if turned.iter().any(|size| *size > MOST) {
                    return;
                }
                let order = Attribute::Ints(order.iter().map(|axis| *axis as i64).collect());
                let made = self.graph.sketch.op_with("Transpose", &[value], &[("perm", order)]);
                self.rounded(made, turned, Some(step));
            }
            9 => {
                let columns = self.dice.pick(&[4, 8]);
                let shape = [dims[3], columns];
                let w = match self.dice.below(4) {
                    0 => self.moved_weights(&shape),
                    _ => self.graph.weights(&shape, 1),
                };
                let made = self.graph.sketch.op("MatMul", &[value, w]);
                let made = self.activated(made);
                self.rounded(made, [dims[0], dims[1], dims[2], columns], None);
            }
            10 => {
                let mut pads = [0; 8];
                pads[axis] = 1;
                let mut padded = dims;
                padded[axis] += 1;
                let pads = self.graph.sketch.ints(&pads);
                let made = self.graph.sketch.op("Pad", &[value, pads]);
                self.rounded(made, padded, Some(step));
            }
            _ => self.linear(x),
        }
    }
}

#[test]
fn passes_never_change_what_a_quantised_graph_computes() {
    let (seeds, mut integers) = (super::seeds(0..200), 0);
    for seed in seeds.clone() {
        let mut growing = Growing::new(seed * 6151 + 3);
        while growing.values.len() < 9 && growing.graph.sketch.graph.nodes.len() < 80 {
            growing.grow();
        }
        let count = growing.values.len();
        let mut outputs = vec![growing.values[count - 1].value, growing.values[count / 2].value];
        outputs.extend(growing.whole);
        let left = super::check(seed, &growing.graph.sketch.output(&outputs), &[random(&SHAPE, 3)]);
        integers += left.iter().filter(|op| op.starts_with("oarlock.Quantized")).count();
    }
    let graphs = seeds.count();
    assert!(integers > graphs, "{integers} products of {graphs} graphs are computed with integers");
}

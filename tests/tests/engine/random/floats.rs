//! Float graphs: images, products, and ops that move elements.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;

use super::SeededRandom;
use crate::sketch::{GraphSketch, random_datum};

/// A growing graph, with the shapes of its values, which all have four dimensions.
struct RandomFloatGraph {
    sketch: GraphSketch,
    values: Vec<(ValueId, [i64; 4])>,
    dice: SeededRandom,
}

impl RandomFloatGraph {
    /// A graph with one input, declared as `declared`, whose first shape is [`INPUT_SHAPE`].
    fn new(seed: u64, declared: &[i64; 4]) -> Self {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, declared);
        Self { sketch, values: vec![(x, INPUT_SHAPE)], dice: SeededRandom(seed) }
    }

    /// Mostly one of the latest values, so that chains grow.
    fn pick_value(&mut self) -> (ValueId, [i64; 4]) {
        let recent = self.values.len().saturating_sub(3);
        let from = if self.dice.next_below(4) == 0 { 0 } else { recent };
        let at = from + self.dice.next_below(self.values.len() - from);
        self.values[at]
    }

    fn next_seed(&mut self) -> u32 {
        u32::try_from(self.dice.next_below(1 << 20)).unwrap_or(0)
    }

    fn add_weights(&mut self, dims: &[i64]) -> ValueId {
        let seed = self.next_seed();
        self.sketch.add_weights(dims, seed)
    }

    fn grow_node(&mut self) {
        let (x, dims) = self.pick_value();
        let axis = self.dice.next_below(4);
        let number = i64::try_from(axis).unwrap_or(0);
        let made = match self.dice.next_below(14) {
            0 => (
                self.sketch.add_op(
                    self.dice.pick_one(&["Relu", "Sigmoid", "Neg", "Tanh", "Gelu", "HardSwish"]),
                    &[x],
                ),
                dims,
            ),
            1 => {
                let same: Vec<ValueId> =
                    self.values.iter().filter(|(_, other)| *other == dims).map(|(id, _)| *id).collect();
                let other = self.dice.pick_one(&same);
                (self.sketch.add_op(self.dice.pick_one(&["Add", "Mul", "Sub"]), &[x, other]), dims)
            }
            2 => {
                let shapes = [
                    vec![1],
                    vec![],
                    vec![dims[3]],
                    vec![dims[1], 1, 1],
                    vec![1, dims[1], 1, 1],
                    dims.to_vec(),
                ];
                let (shape, op) =
                    (shapes[self.dice.next_below(shapes.len())].clone(), self.dice.pick_one(&["Add", "Mul"]));
                let other = self.add_weights(&shape);
                let operands = if self.dice.next_below(2) == 0 { [x, other] } else { [other, x] };
                (self.sketch.add_op(op, &operands), dims)
            }
            3 => {
                let order = self.dice.pick_one(&[
                    [0, 2, 3, 1],
                    [0, 3, 1, 2],
                    [0, 2, 1, 3],
                    [0, 1, 3, 2],
                    [3, 2, 1, 0],
                ]);
                let turned = order.map(|axis| dims[axis]);
                let order = order.iter().map(|axis| *axis as i64).collect();
                (self.sketch.add_op_with("Transpose", &[x], &[("perm", Attribute::Ints(order))]), turned)
            }
            4 | 5 => {
                let size = self.dice.pick_one(&[1, 3]);
                let channels = self.dice.pick_one(&[3, 8, 16]);
                let w = self.add_weights(&[channels, dims[1], size, size]);
                let pads = Attribute::Ints(vec![size / 2; 4]);
                let mut operands = vec![x, w];
                if self.dice.next_below(2) == 0 {
                    operands.push(self.add_weights(&[channels]));
                }
                let made = self.sketch.add_op_with("Conv", &operands, &[("pads", pads)]);
                (made, [dims[0], channels, dims[2], dims[3]])
            }
            6 => {
                let op = self.dice.pick_one(&["MaxPool", "AveragePool"]);
                let (kernel, pads) = (Attribute::Ints(vec![3, 3]), Attribute::Ints(vec![1; 4]));
                (self.sketch.add_op_with(op, &[x], &[("kernel_shape", kernel), ("pads", pads)]), dims)
            }
            7 if dims[axis] <= 16 => {
                let mut joined = dims;
                joined[axis] *= 2;
                (self.sketch.add_op_with("Concat", &[x, x], &[("axis", Attribute::Int(number))]), joined)
            }
            8 => (self.sketch.add_op_with("Softmax", &[x], &[("axis", Attribute::Int(number))]), dims),
            9 => {
                let axes = self.sketch.add_ints(&[number]);
                let mean = self.sketch.add_op("ReduceMean", &[x, axes]);
                (self.sketch.add_op("Sub", &[x, mean]), dims)
            }
            10 => {
                let [scale, shift, mean] = [0; 3].map(|_| self.add_weights(&[dims[1]]));
                let variance = self.sketch.add_floats(&[dims[1]], &vec![0.7; dims[1] as usize]);
                (self.sketch.add_op("BatchNormalization", &[x, scale, shift, mean, variance]), dims)
            }
            11 => {
                let columns = self.dice.pick_one(&[4, 8]);
                let w = self.add_weights(&[dims[3], columns]);
                (self.sketch.add_op("MatMul", &[x, w]), [dims[0], dims[1], dims[2], columns])
            }
            12 if dims[axis] > 2 => {
                let [starts, ends, axes] =
                    [1, dims[axis] - 1, number].map(|value| self.sketch.add_ints(&[value]));
                let mut cut = dims;
                cut[axis] -= 2;
                (self.sketch.add_op("Slice", &[x, starts, ends, axes]), cut)
            }
            13 => {
                let mut pads = [0; 8];
                pads[axis] = 1;
                let pads = self.sketch.add_ints(&pads);
                let mut padded = dims;
                padded[axis] += 1;
                (self.sketch.add_op("Pad", &[x, pads]), padded)
            }
            _ => return,
        };
        self.values.push(made);
    }
}

const INPUT_SHAPE: [i64; 4] = [2, 4, 5, 6];

fn grow_sketch(seed: u64, declared: &[i64; 4]) -> GraphSketch {
    let mut growing = RandomFloatGraph::new(seed * 7919 + 1, declared);
    while growing.values.len() < 12 && growing.sketch.graph.nodes.len() < 60 {
        growing.grow_node();
    }
    let count = growing.values.len();
    let outputs = [growing.values[count - 1].0, growing.values[count / 2].0];
    growing.sketch.with_outputs(&outputs)
}

#[test]
fn passes_never_change_what_a_graph_computes() {
    for seed in super::test_seeds(0..300) {
        super::check_passes(seed, &grow_sketch(seed, &INPUT_SHAPE), &[random_datum(&INPUT_SHAPE, 3)]);
    }
}

#[test]
fn a_graph_computes_for_every_shape_what_it_would_if_it_were_the_first() {
    for seed in super::test_seeds(0..60) {
        // Sizes that are part of the graph make other sizes invalid; every session must refuse them alike.
        crate::shape_changes::check_shapes(&grow_sketch(seed, &[-1; 4]), seed, 6, |dice| {
            let mut dims = INPUT_SHAPE;
            dims[0] = dice.pick_one(&[2, 1, 3, 5]);
            if dice.next_below(3) == 0 {
                dims[dice.pick_one(&[1, 2, 3])] = dice.pick_one(&[1, 4, 7, 0]);
            }
            vec![random_datum(&dims, 3)]
        });
    }
}

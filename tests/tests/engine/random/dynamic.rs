//! Dynamically quantized graphs of one layer: with more, a rounding difference in one layer could change the quantization of the
//! next.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;

use super::SeededRandom;
use crate::dynamic::{DynamicBytes, DynamicSketch};
use crate::sketch::random_datum;

struct RandomDynamicGraph {
    graph: DynamicSketch,
    dice: SeededRandom,
    outputs: Vec<ValueId>,
}

impl RandomDynamicGraph {
    fn maybe_output(&mut self, value: ValueId) {
        if self.dice.next_below(6) == 0 {
            self.outputs.push(value);
        }
    }

    /// Adds an addend along some axes, and an activation.
    fn finish_layer(&mut self, mut made: ValueId, dims: &[i64]) {
        self.maybe_output(made);
        if self.dice.next_below(3) > 0 {
            let kept = self.dice.next_below(3);
            let channel = if dims.len() == 4 { 1 } else { dims.len() - 1 };
            let shape: Vec<i64> = match kept {
                0 => dims.to_vec(),
                1 => dims
                    .iter()
                    .enumerate()
                    .map(|(axis, size)| if axis == channel { *size } else { 1 })
                    .collect(),
                _ => vec![*dims.last().expect("an axis")],
            };
            let addend = self.graph.sketch.add_weights(&shape, 11);
            let operands = if self.dice.next_below(2) == 0 { [made, addend] } else { [addend, made] };
            made = self.graph.sketch.add_op("Add", &operands);
            self.maybe_output(made);
        }
        if self.dice.next_below(2) == 0 {
            let op = self.dice.pick_one(&["Relu", "Sigmoid", "Tanh", "Neg"]);
            made = self.graph.sketch.add_op(op, &[made]);
        }
        self.outputs.push(made);
    }

    fn add_product(&mut self, x: DynamicBytes, dims: &[i64]) {
        let (depth, columns) = (dims[dims.len() - 1], self.dice.pick_one(&[1, 4, 7, 33]));
        let zeros: &[i64] = if self.dice.next_below(2) == 0 { &[] } else { &[columns] };
        let w = self.graph.add_weights(&[depth, columns], zeros);
        let sum = self.graph.add_integer_op("MatMulInteger", x, w, &[]);
        self.maybe_output(sum);
        let scales = [vec![], vec![columns], vec![1], vec![1, columns], vec![dims[dims.len() - 2], 1]];
        let scales = &scales[self.dice.next_below(5)];
        let made = self.graph.dequantize_sum(sum, x, scales);
        let made_dims = [&dims[..dims.len() - 1], &[columns]].concat();
        self.finish_layer(made, &made_dims);
    }

    fn add_convolution(&mut self, x: DynamicBytes, dims: [i64; 4]) {
        let is_deep = self.dice.next_below(3) == 0;
        let (made, each) = if is_deep { (dims[1], 1) } else { (self.dice.pick_one(&[1, 6, 20]), dims[1]) };
        let (size, stride) = (self.dice.pick_one(&[1, 3]), self.dice.pick_one(&[1, 2]));
        let zeros: &[i64] = if self.dice.next_below(2) == 0 { &[] } else { &[made] };
        let w = self.graph.add_weights(&[made, each, size, size], zeros);
        let attributes = [
            ("group", Attribute::Int(if is_deep { dims[1] } else { 1 })),
            ("pads", Attribute::Ints(vec![size / 2; 4])),
            ("strides", Attribute::Ints(vec![stride; 2])),
        ];
        let sum = self.graph.add_integer_op("ConvInteger", x, w, &attributes);
        self.maybe_output(sum);
        let scales = [vec![], vec![1, made, 1, 1], vec![made, 1, 1], vec![1]];
        let scales = &scales[self.dice.next_below(4)];
        let y = self.graph.dequantize_sum(sum, x, scales);
        let shrunk = |size: i64| (size - 1) / stride + 1;
        self.finish_layer(y, &[dims[0], made, shrunk(dims[2]), shrunk(dims[3])]);
    }

    fn grow_layer(&mut self, x: ValueId) {
        let image = [2, 6, 5, 7];
        let (mut x, mut dims) = (x, image.to_vec());
        if self.dice.next_below(2) == 0 {
            let shape = self.dice.pick_one(&[[1, 60, 7], [1, 2, 210], [30, 1, 14]]);
            let list = self.graph.sketch.add_ints(&shape);
            x = self.graph.sketch.add_op("Reshape", &[x, list]);
            dims = shape.to_vec();
        } else if self.dice.next_below(3) == 0 {
            let order = vec![0, 2, 3, 1];
            x = self.graph.sketch.add_op_with("Transpose", &[x], &[("perm", Attribute::Ints(order))]);
            dims = vec![2, 5, 7, 6];
        }
        let bytes = self.graph.quantize_input(x);
        self.maybe_output(bytes.value);
        for _ in 0..1 + self.dice.next_below(2) {
            match <[i64; 4]>::try_from(&dims[..]) {
                Ok(dims) if self.dice.next_below(4) > 0 => self.add_convolution(bytes, dims),
                _ => self.add_product(bytes, &dims),
            }
        }
    }
}

#[test]
fn passes_never_change_what_a_dynamically_quantized_graph_computes() {
    let (seeds, mut joined) = (super::test_seeds(0..120), 0);
    for seed in seeds.clone() {
        let mut dice = SeededRandom(seed * 7919 + 5);
        let dtype = dice.pick_one(&[Dtype::I8, Dtype::U8]);
        let mut growing = RandomDynamicGraph { graph: DynamicSketch::new(dtype), dice, outputs: Vec::new() };
        let x = growing.graph.sketch.add_input("x", Dtype::F32, &[2, 6, 5, 7]);
        for _ in 0..2 {
            growing.grow_layer(x);
        }
        let outputs = growing.outputs;
        let left = super::check_passes(
            seed,
            &growing.graph.sketch.with_outputs(&outputs),
            &[random_datum(&[2, 6, 5, 7], 3)],
        );
        joined += left.iter().filter(|op| op.starts_with("oarlock.Dequantized")).count();
    }
    let graphs = seeds.count();
    assert!(joined > graphs, "{joined} sums of {graphs} graphs become floats at once");
}

//! Dynamically quantised graphs of one layer, since a step of what is quantised next may go either way.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;

use super::Dice;
use crate::dynamic::{Bytes, Dynamic};
use crate::sketch::random;

struct Growing {
    graph: Dynamic,
    dice: Dice,
    outputs: Vec<ValueId>,
}

impl Growing {
    fn maybe(&mut self, value: ValueId) {
        if self.dice.below(6) == 0 {
            self.outputs.push(value);
        }
    }

    /// What follows a layer: an addend along some axes, and an activation.
    fn finished(&mut self, mut made: ValueId, dims: &[i64]) {
        self.maybe(made);
        if self.dice.below(3) > 0 {
            let kept = self.dice.below(3);
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
            let addend = self.graph.sketch.weights(&shape, 11);
            let operands = if self.dice.below(2) == 0 { [made, addend] } else { [addend, made] };
            made = self.graph.sketch.op("Add", &operands);
            self.maybe(made);
        }
        if self.dice.below(2) == 0 {
            let op = self.dice.pick(&["Relu", "Sigmoid", "Tanh", "Neg"]);
            made = self.graph.sketch.op(op, &[made]);
        }
        self.outputs.push(made);
    }

    fn product(&mut self, x: Bytes, dims: &[i64]) {
        let (depth, columns) = (dims[dims.len() - 1], self.dice.pick(&[1, 4, 7, 33]));
        let zeros: &[i64] = if self.dice.below(2) == 0 { &[] } else { &[columns] };
        let w = self.graph.weights(&[depth, columns], zeros);
        let sum = self.graph.integers("MatMulInteger", x, w, &[]);
        self.maybe(sum);
        let scales = [vec![], vec![columns], vec![1], vec![1, columns], vec![dims[dims.len() - 2], 1]];
        let scales = &scales[self.dice.below(5)];
        let made = self.graph.real(sum, x, scales);
        let made_dims = [&dims[..dims.len() - 1], &[columns]].concat();
        self.finished(made, &made_dims);
    }

    fn conv(&mut self, x: Bytes, dims: [i64; 4]) {
        let is_deep = self.dice.below(3) == 0;
        let (made, each) = if is_deep { (dims[1], 1) } else { (self.dice.pick(&[1, 6, 20]), dims[1]) };
        let (size, stride) = (self.dice.pick(&[1, 3]), self.dice.pick(&[1, 2]));
        let zeros: &[i64] = if self.dice.below(2) == 0 { &[] } else { &[made] };
        let w = self.graph.weights(&[made, each, size, size], zeros);
        let attributes = [
            ("group", Attribute::Int(if is_deep { dims[1] } else { 1 })),
            ("pads", Attribute::Ints(vec![size / 2; 4])),
            ("strides", Attribute::Ints(vec![stride; 2])),
        ];
        let sum = self.graph.integers("ConvInteger", x, w, &attributes);
        self.maybe(sum);
        let scales = [vec![], vec![1, made, 1, 1], vec![made, 1, 1], vec![1]];
        let scales = &scales[self.dice.below(4)];
        let y = self.graph.real(sum, x, scales);
        let shrunk = |size: i64| (size - 1) / stride + 1;
        self.finished(y, &[dims[0], made, shrunk(dims[2]), shrunk(dims[3])]);
    }

    fn grow(&mut self, x: ValueId) {
        let image = [2, 6, 5, 7];
        let (mut x, mut dims) = (x, image.to_vec());
        if self.dice.below(2) == 0 {
            let shape = self.dice.pick(&[[1, 60, 7], [1, 2, 210], [30, 1, 14]]);
            let list = self.graph.sketch.ints(&shape);
            x = self.graph.sketch.op("Reshape", &[x, list]);
            dims = shape.to_vec();
        } else if self.dice.below(3) == 0 {
            let order = vec![0, 2, 3, 1];
            x = self.graph.sketch.op_with("Transpose", &[x], &[("perm", Attribute::Ints(order))]);
            dims = vec![2, 5, 7, 6];
        }
        let bytes = self.graph.quantized(x);
        self.maybe(bytes.value);
        for _ in 0..1 + self.dice.below(2) {
            match <[i64; 4]>::try_from(&dims[..]) {
                Ok(dims) if self.dice.below(4) > 0 => self.conv(bytes, dims),
                _ => self.product(bytes, &dims),
            }
        }
    }
}

#[test]
fn passes_never_change_what_a_dynamically_quantised_graph_computes() {
    let (seeds, mut joined) = (super::seeds(0..120), 0);
    for seed in seeds.clone() {
        let mut dice = Dice(seed * 7919 + 5);
        let dtype = dice.pick(&[Dtype::I8, Dtype::U8]);
        let mut growing = Growing { graph: Dynamic::new(dtype), dice, outputs: Vec::new() };
        let x = growing.graph.sketch.input("x", Dtype::F32, &[2, 6, 5, 7]);
        for _ in 0..2 {
            growing.grow(x);
        }
        let outputs = growing.outputs;
        let left = super::check(seed, &growing.graph.sketch.output(&outputs), &[random(&[2, 6, 5, 7], 3)]);
        joined += left.iter().filter(|op| op.starts_with("oarlock.Dequantized")).count();
    }
    let graphs = seeds.count();
    assert!(joined > graphs, "{joined} sums of {graphs} graphs become floats at once");
}

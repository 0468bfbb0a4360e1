//! Attention as exporters write it, in what differs between them, with and without keys and values of the past.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::Datum;
use oarlock_engine::graph::ValueId;

use super::Dice;
use crate::sketch::{Sketch, random, tensor};

/// A graph around one attention, with what it is given.
struct Growing {
    sketch: Sketch,
    inputs: Vec<Datum>,
    outputs: Vec<ValueId>,
    dice: Dice,
    batch: i64,
    heads: i64,
    /// How many heads keys and values have, each of which is for as many of the query.
    fewer: i64,
    size: i64,
    length: i64,
    past: i64,
}

/// Whether the last sizes of inputs are said in the model, which they seldom are.
fn said(dice: &mut Dice, dims: &[i64]) -> Vec<i64> {
    if dice.below(3) == 0 { vec![-1; dims.len()] } else { dims.to_vec() }
}

fn order(order: [i64; 4]) -> [(&'static str, Attribute); 1] {
    [("perm", Attribute::Ints(order.to_vec()))]
}

impl Growing {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let heads = dice.pick(&[1, 2, 4]);
        Self {
            sketch: Sketch::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            batch: dice.pick(&[1, 2]),
            fewer: if dice.below(4) == 0 { 1 } else { heads },
            heads,
            size: dice.pick(&[4, 8]),
            length: dice.pick(&[1, 3, 5]),
            past: dice.pick(&[0, 0, 1, 4]),
            dice,
        }
    }

    fn input(&mut self, name: &str, dims: &[i64]) -> ValueId {
        let said = said(&mut self.dice, dims);
        self.inputs.push(random(dims, self.inputs.len() as u32 + 3));
        self.sketch.input(name, Dtype::F32, &said)
    }

    /// Heads apart from each other: an input, or rows of a projection.
    fn heads(&mut self, name: &str, rows: Option<ValueId>, heads: i64) -> ValueId {
        let Some(rows) = rows else {
            return self.input(name, &[self.batch, heads, self.length, self.size]);
        };
        let (from, to) = (self.heads * self.size, heads * self.size);
        let seed = self.dice.below(1 << 16) as u32;
        let w = self.sketch.weights(&[from, to], seed);
        let mut rows = self.sketch.op("MatMul", &[rows, w]);
        if self.dice.below(2) == 0 {
            let bias = self.sketch.weights(&[to], seed + 1);
            rows = self.sketch.op("Add", &[rows, bias]);
        }
        let shape = self.dice.pick(&[[0, 0, heads, self.size], [self.batch, self.length, heads, -1]]);
        let shape = self.sketch.ints(&shape);
        let apart = self.sketch.op("Reshape", &[rows, shape]);
        self.sketch.op_with("Transpose", &[apart], &order([0, 2, 1, 3]))
    }

    /// Puts the past before the present, and sometimes, which is no past, behind it.
    fn with_past(&mut self, name: &str, present: ValueId) -> ValueId {
        if self.past == 0 {
            return present;
        }
        let past = self.input(name, &[self.batch, self.fewer, self.past, self.size]);
        let both = if self.dice.below(8) == 0 { [present, past] } else { [past, present] };
        let axis = self.dice.pick(&[2, -2]);
        let joined = self.sketch.op_with("Concat", &both, &[("axis", Attribute::Int(axis))]);
        if self.dice.below(3) != 0 {
            self.outputs.push(joined);
        }
        joined
    }

    /// Keys or values for each head of the query.
    fn repeated(&mut self, x: ValueId) -> ValueId {
        if self.fewer == self.heads {
            return x;
        }
        let (all, axis) = (self.past + self.length, self.sketch.ints(&[2]));
        let apart = self.sketch.op("Unsqueeze", &[x, axis]);
        let shape = self.sketch.ints(&[self.batch, self.fewer, self.heads / self.fewer, all, self.size]);
        let wide = self.sketch.op("Expand", &[apart, shape]);
        let shape = self.sketch.ints(&[self.batch, self.heads, all, self.size]);
        self.sketch.op("Reshape", &[wide, shape])
    }

    fn scaled(&mut self, x: ValueId) -> ValueId {
        let scale = self.dice.pick(&[0.5, 2.0, 0.353_553_4]);
        let scale = self.sketch.scalar(scale);
        let op = self.dice.pick(&["Mul", "Div"]);
        self.sketch.op(op, &[x, scale])
    }

    /// Adds a mask to scores, of one of the shapes that broadcast.
    fn masked(&mut self, scores: ValueId) -> ValueId {
        let (length, all) = (self.length, self.past + self.length);
        let shapes = [
            vec![all],
            vec![length, all],
            vec![self.batch, 1, length, all],
            vec![self.batch, 1, 1, all],
            vec![1, self.heads, length, all],
            vec![length, 1],
            vec![1],
        ];
        let dims = &shapes[self.dice.below(shapes.len())];
        let lowest = self.dice.pick(&[-1e4, -1e9, -0.5]);
        let count = dims.iter().product::<i64>();
        // The first key is there for all.
        let elements: Vec<f32> = (0..count)
            .map(|at| if at % all != 0 && self.dice.below(3) == 0 { lowest } else { 0.0 })
            .collect();
        let mask = if self.dice.below(2) == 0 {
            self.sketch.floats(dims, &elements)
        } else {
            self.inputs.push(tensor(dims, &elements));
            let said = said(&mut self.dice, dims);
            self.sketch.input("mask", Dtype::F32, &said)
        };
        let operands = if self.dice.below(4) == 0 { [mask, scores] } else { [scores, mask] };
        self.sketch.op("Add", &operands)
    }

    fn grow(&mut self) {
        if self.dice.below(6) == 0 {
            return self.grow_rows();
        }
        let rows = (self.dice.below(2) == 0)
            .then(|| self.input("x", &[self.batch, self.length, self.heads * self.size]));
        let [query, key, value] = [("q", self.heads), ("k", self.fewer), ("v", self.fewer)]
            .map(|(name, heads)| self.heads(name, rows, heads));
        let (key, value) = (self.with_past("past key", key), self.with_past("past value", value));
        let mut made = match self.dice.below(4) {
            0 => self.attention([query, key, value], &[]),
            _ => self.in_parts(query, key, value),
        };
        if self.dice.below(4) != 0 {
            let back = self.sketch.op_with("Transpose", &[made], &order([0, 2, 1, 3]));
            let shape = self.sketch.ints(&[self.batch, self.length, self.heads * self.size]);
            made = self.sketch.op("Reshape", &[back, shape]);
        }
        self.outputs.push(made);
    }

    /// The op of ONNX on heads in rows, of which a past has other axes.
    fn grow_rows(&mut self) {
        let [query, key, value] =
            [("q", self.heads, 0), ("k", self.fewer, self.past), ("v", self.fewer, self.past)].map(
                |(name, heads, past)| {
                    let present = self.input(name, &[self.batch, self.length, heads * self.size]);
                    if past == 0 {
                        return present;
                    }
                    let past = self.input(&format!("past {name}"), &[self.batch, past, heads * self.size]);
                    let axis = Attribute::Int(self.dice.pick(&[1, -2]));
                    self.sketch.op_with("Concat", &[past, present], &[("axis", axis)])
                },
            );
        let heads = [("q_num_heads", self.heads), ("kv_num_heads", self.fewer)];
        let made =
            self.attention([query, key, value], &heads.map(|(name, count)| (name, Attribute::Int(count))));
        self.outputs.push(made);
    }

    /// The op of ONNX, on keys and values that were put together before.
    fn attention(&mut self, operands: [ValueId; 3], attributes: &[(&str, Attribute)]) -> ValueId {
        let mut attributes = attributes.to_vec();
        attributes.push(("is_causal", Attribute::Int(self.dice.below(2) as i64)));
        attributes.push(("scale", Attribute::Float(self.dice.pick(&[0.5, 0.25]))));
        let made = self.sketch.op_with("Attention", &operands, &attributes);
        self.sketch.graph.nodes.last_mut().expect("a node").opset = 23;
        made
    }

    fn in_parts(&mut self, query: ValueId, key: ValueId, value: ValueId) -> ValueId {
        let (key, value) = (self.repeated(key), self.repeated(value));
        let mut turned = self.sketch.op_with("Transpose", &[key], &order([0, 1, 3, 2]));
        let mut query = query;
        match self.dice.below(5) {
            0 => query = self.scaled(query),
            1 => (query, turned) = (self.scaled(query), self.scaled(turned)),
            _ => {}
        }
        let is_einsum = self.dice.below(4) == 0;
        let mut scores = self.product(is_einsum, "bhid,bhdj->bhij", [query, turned]);
        // In the order that is usual, in the other, or without.
        for (odds, masks) in [(3, false), (2, true), (4, false)] {
            if self.dice.below(odds) == 0 {
                scores = if masks { self.masked(scores) } else { self.scaled(scores) };
            }
        }
        let axis = Attribute::Int(self.dice.pick(&[-1, -1, 3, 2]));
        let weights = self.sketch.op_with("Softmax", &[scores], &[("axis", axis)]);
        if self.dice.below(8) == 0 {
            self.outputs.push(weights);
        }
        self.product(is_einsum, "bhij,bhjd->bhid", [weights, value])
    }

    /// A product of matrices, which may be said by an equation.
    fn product(&mut self, is_einsum: bool, equation: &str, operands: [ValueId; 2]) -> ValueId {
        let equation = ("equation", Attribute::String(equation.to_owned()));
        match is_einsum {
            true => self.sketch.op_with("Einsum", &operands, &[equation]),
            false => self.sketch.op("MatMul", &operands),
        }
    }
}

#[test]
fn passes_never_change_what_attention_computes() {
    let (seeds, [mut joined, mut with_past]) = (super::seeds(0..400), [0; 2]);
    for seed in seeds.clone() {
        let mut growing = Growing::new(seed * 4099 + 5);
        growing.grow();
        let outputs = growing.outputs.clone();
        let left = super::check(seed, &growing.sketch.output(&outputs), &growing.inputs);
        let is_joined = left.contains(&"Attention".to_owned());
        joined += usize::from(is_joined);
        with_past += usize::from(is_joined && growing.past > 0 && !left.contains(&"Concat".to_owned()));
    }
    let graphs = seeds.count();
    let is_enough = joined > graphs / 3 && with_past > graphs / 20;
    assert!(is_enough, "{joined} of {graphs} are one op, {with_past} of them with the past");
}

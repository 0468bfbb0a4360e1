//! Attention in the variants that exporters write, with and without past keys and values.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::RuntimeValue;
use oarlock_engine::graph::ValueId;

use super::SeededRandom;
use crate::sketch::{GraphSketch, float_datum, random_datum};

/// A graph around one attention, with its inputs.
struct RandomAttention {
    sketch: GraphSketch,
    inputs: Vec<RuntimeValue>,
    outputs: Vec<ValueId>,
    dice: SeededRandom,
    batch: i64,
    heads: i64,
    /// Number of key and value heads; each serves several heads of the query.
    fewer: i64,
    size: i64,
    length: i64,
    past: i64,
}

/// One time in three declares every dimension as unknown, otherwise all with their sizes.
fn declared_dims(dice: &mut SeededRandom, dims: &[i64]) -> Vec<i64> {
    if dice.next_below(3) == 0 { vec![-1; dims.len()] } else { dims.to_vec() }
}

fn permutation_attribute(order: [i64; 4]) -> [(&'static str, Attribute); 1] {
    [("perm", Attribute::Ints(order.to_vec()))]
}

impl RandomAttention {
    fn new(seed: u64) -> Self {
        let mut dice = SeededRandom(seed);
        let heads = dice.pick_one(&[1, 2, 4]);
        Self {
            sketch: GraphSketch::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            batch: dice.pick_one(&[1, 2]),
            fewer: if dice.next_below(4) == 0 { 1 } else { heads },
            heads,
            size: dice.pick_one(&[4, 8]),
            length: dice.pick_one(&[1, 3, 5]),
            past: dice.pick_one(&[0, 0, 1, 4]),
            dice,
        }
    }

    fn add_input(&mut self, name: &str, dims: &[i64]) -> ValueId {
        let said = declared_dims(&mut self.dice, dims);
        self.inputs.push(random_datum(dims, self.inputs.len() as u32 + 3));
        self.sketch.add_input(name, Dtype::F32, &said)
    }

    /// Separate heads: an input, or rows of a projection.
    fn add_heads(&mut self, name: &str, rows: Option<ValueId>, heads: i64) -> ValueId {
        let Some(rows) = rows else {
            return self.add_input(name, &[self.batch, heads, self.length, self.size]);
        };
        let (from, to) = (self.heads * self.size, heads * self.size);
        let seed = self.dice.next_below(1 << 16) as u32;
        let w = self.sketch.add_weights(&[from, to], seed);
        let mut rows = self.sketch.add_op("MatMul", &[rows, w]);
        if self.dice.next_below(2) == 0 {
            let bias = self.sketch.add_weights(&[to], seed + 1);
            rows = self.sketch.add_op("Add", &[rows, bias]);
        }
        let shape = self.dice.pick_one(&[[0, 0, heads, self.size], [self.batch, self.length, heads, -1]]);
        let shape = self.sketch.add_ints(&shape);
        let apart = self.sketch.add_op("Reshape", &[rows, shape]);
        self.sketch.add_op_with("Transpose", &[apart], &permutation_attribute([0, 2, 1, 3]))
    }

    /// Concatenates past and present; occasionally in the wrong order, which must not be recognized as a past.
    fn add_past(&mut self, name: &str, present: ValueId) -> ValueId {
        if self.past == 0 {
            return present;
        }
        let past = self.add_input(name, &[self.batch, self.fewer, self.past, self.size]);
        let both = if self.dice.next_below(8) == 0 { [present, past] } else { [past, present] };
        let axis = self.dice.pick_one(&[2, -2]);
        let joined = self.sketch.add_op_with("Concat", &both, &[("axis", Attribute::Int(axis))]);
        if self.dice.next_below(3) != 0 {
            self.outputs.push(joined);
        }
        joined
    }

    /// Repeats keys or values for each head of the query.
    fn repeat_heads(&mut self, x: ValueId) -> ValueId {
        if self.fewer == self.heads {
            return x;
        }
        let (all, axis) = (self.past + self.length, self.sketch.add_ints(&[2]));
        let apart = self.sketch.add_op("Unsqueeze", &[x, axis]);
        let shape = self.sketch.add_ints(&[self.batch, self.fewer, self.heads / self.fewer, all, self.size]);
        let wide = self.sketch.add_op("Expand", &[apart, shape]);
        let shape = self.sketch.add_ints(&[self.batch, self.heads, all, self.size]);
        self.sketch.add_op("Reshape", &[wide, shape])
    }

    fn scale_scores(&mut self, x: ValueId) -> ValueId {
        let scale = self.dice.pick_one(&[0.5, 2.0, 0.353_553_4]);
        let scale = self.sketch.add_scalar(scale);
        let op = self.dice.pick_one(&["Mul", "Div"]);
        self.sketch.add_op(op, &[x, scale])
    }

    /// Adds a mask to the scores, in one of the shapes that broadcast.
    fn mask_scores(&mut self, scores: ValueId) -> ValueId {
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
        let dims = &shapes[self.dice.next_below(shapes.len())];
        let lowest = self.dice.pick_one(&[-1e4, -1e9, -0.5]);
        let count = dims.iter().product::<i64>();
        // No mask hides the first key, so no row is fully masked.
        let elements: Vec<f32> = (0..count)
            .map(|at| if at % all != 0 && self.dice.next_below(3) == 0 { lowest } else { 0.0 })
            .collect();
        let mask = if self.dice.next_below(2) == 0 {
            self.sketch.add_floats(dims, &elements)
        } else {
            self.inputs.push(float_datum(dims, &elements));
            let said = declared_dims(&mut self.dice, dims);
            self.sketch.add_input("mask", Dtype::F32, &said)
        };
        let operands = if self.dice.next_below(4) == 0 { [mask, scores] } else { [scores, mask] };
        self.sketch.add_op("Add", &operands)
    }

    fn grow_graph(&mut self) {
        if self.dice.next_below(6) == 0 {
            return self.grow_row_attention();
        }
        let rows = (self.dice.next_below(2) == 0)
            .then(|| self.add_input("x", &[self.batch, self.length, self.heads * self.size]));
        let [query, key, value] = [("q", self.heads), ("k", self.fewer), ("v", self.fewer)]
            .map(|(name, heads)| self.add_heads(name, rows, heads));
        let (key, value) = (self.add_past("past key", key), self.add_past("past value", value));
        let mut made = match self.dice.next_below(4) {
            0 => self.add_attention_op([query, key, value], &[]),
            _ => self.add_decomposed_attention(query, key, value),
        };
        if self.dice.next_below(4) != 0 {
            let back = self.sketch.add_op_with("Transpose", &[made], &permutation_attribute([0, 2, 1, 3]));
            let shape = self.sketch.add_ints(&[self.batch, self.length, self.heads * self.size]);
            made = self.sketch.add_op("Reshape", &[back, shape]);
        }
        self.outputs.push(made);
    }

    /// ONNX's op on heads in rows, whose past has its axes in another order.
    fn grow_row_attention(&mut self) {
        let [query, key, value] =
            [("q", self.heads, 0), ("k", self.fewer, self.past), ("v", self.fewer, self.past)].map(
                |(name, heads, past)| {
                    let present = self.add_input(name, &[self.batch, self.length, heads * self.size]);
                    if past == 0 {
                        return present;
                    }
                    let past =
                        self.add_input(&format!("past {name}"), &[self.batch, past, heads * self.size]);
                    let axis = Attribute::Int(self.dice.pick_one(&[1, -2]));
                    self.sketch.add_op_with("Concat", &[past, present], &[("axis", axis)])
                },
            );
        let heads = [("q_num_heads", self.heads), ("kv_num_heads", self.fewer)];
        let made = self
            .add_attention_op([query, key, value], &heads.map(|(name, count)| (name, Attribute::Int(count))));
        self.outputs.push(made);
    }

    /// ONNX's op, on keys and values that were concatenated before.
    fn add_attention_op(&mut self, operands: [ValueId; 3], attributes: &[(&str, Attribute)]) -> ValueId {
        let mut attributes = attributes.to_vec();
        attributes.push(("is_causal", Attribute::Int(self.dice.next_below(2) as i64)));
        attributes.push(("scale", Attribute::Float(self.dice.pick_one(&[0.5, 0.25]))));
        let made = self.sketch.add_op_with("Attention", &operands, &attributes);
        self.sketch.graph.nodes.last_mut().expect("a node").opset = 23;
        made
    }

    fn add_decomposed_attention(&mut self, query: ValueId, key: ValueId, value: ValueId) -> ValueId {
        let (key, value) = (self.repeat_heads(key), self.repeat_heads(value));
        let mut turned = self.sketch.add_op_with("Transpose", &[key], &permutation_attribute([0, 1, 3, 2]));
        let mut query = query;
        match self.dice.next_below(5) {
            0 => query = self.scale_scores(query),
            1 => (query, turned) = (self.scale_scores(query), self.scale_scores(turned)),
            _ => {}
        }
        let is_einsum = self.dice.next_below(4) == 0;
        let mut scores = self.add_product(is_einsum, "bhid,bhdj->bhij", [query, turned]);
        // Scale before the mask, as usual, or after it, or leave either out.
        for (odds, masks) in [(3, false), (2, true), (4, false)] {
            if self.dice.next_below(odds) == 0 {
                scores = if masks { self.mask_scores(scores) } else { self.scale_scores(scores) };
            }
        }
        let axis = Attribute::Int(self.dice.pick_one(&[-1, -1, 3, 2]));
        let weights = self.sketch.add_op_with("Softmax", &[scores], &[("axis", axis)]);
        if self.dice.next_below(8) == 0 {
            self.outputs.push(weights);
        }
        self.add_product(is_einsum, "bhij,bhjd->bhid", [weights, value])
    }

    /// A matrix product, or an equivalent `Einsum`.
    fn add_product(&mut self, is_einsum: bool, equation: &str, operands: [ValueId; 2]) -> ValueId {
        let equation = ("equation", Attribute::String(equation.to_owned()));
        match is_einsum {
            true => self.sketch.add_op_with("Einsum", &operands, &[equation]),
            false => self.sketch.add_op("MatMul", &operands),
        }
    }
}

#[test]
fn passes_never_change_what_attention_computes() {
    let (seeds, [mut joined, mut with_past]) = (super::test_seeds(0..400), [0; 2]);
    for seed in seeds.clone() {
        let mut growing = RandomAttention::new(seed * 4099 + 5);
        growing.grow_graph();
        let outputs = growing.outputs.clone();
        let left = super::check_passes(seed, &growing.sketch.with_outputs(&outputs), &growing.inputs);
        let is_joined = left.contains(&"Attention".to_owned());
        joined += usize::from(is_joined);
        with_past += usize::from(is_joined && growing.past > 0 && !left.contains(&"Concat".to_owned()));
    }
    let graphs = seeds.count();
    let is_enough = joined > graphs / 3 && with_past > graphs / 20;
    assert!(is_enough, "{joined} of {graphs} are one op, {with_past} of them with the past");
}

//! `Einsum` as matrix products: the remaining ops, and equal results.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::RuntimeValue;
use oarlock_engine::graph::ValueId;

use crate::random::SeededRandom;
use crate::shape_changes;
use crate::sketch::{GraphSketch, int_datum, random_datum};

fn add_einsum(sketch: &mut GraphSketch, equation: &str, inputs: &[ValueId]) -> ValueId {
    sketch.add_op_with("Einsum", inputs, &[("equation", Attribute::String(equation.to_owned()))])
}

/// The ops that remain of an `Einsum` on random operands. An operand whose shape starts with `!` is a constant.
fn remaining_ops(equation: &str, operands: &[&str]) -> Vec<String> {
    let mut sketch = GraphSketch::new();
    let (mut values, mut inputs) = (Vec::new(), Vec::new());
    for (index, shape) in operands.iter().enumerate() {
        let numbers = shape.trim_start_matches('!').split(' ');
        let dims: Vec<i64> = numbers.filter_map(|dim| dim.parse().ok()).collect();
        let seed = index as u32 + 1;
        values.push(if shape.starts_with('!') {
            sketch.add_weights(&dims, seed)
        } else {
            inputs.push(random_datum(&dims, seed));
            sketch.add_input(&format!("input {index}"), Dtype::F32, &vec![-1; dims.len()])
        });
    }
    let y = add_einsum(&mut sketch, equation, &values);
    sketch.with_outputs(&[y]).check_optimized(&inputs)
}

#[test]
fn sums_of_products_become_products_of_matrices() {
    let product = "oarlock.MatMul";
    assert_eq!(remaining_ops("ij,jk->ik", &["2 3", "3 4"]), [product]);
    assert_eq!(remaining_ops("bij,bjk->bik", &["2 3 4", "2 4 5"]), [product]);
    // The product kernel reads either operand transposed, so no transpose is left.
    assert_eq!(remaining_ops("bij,bkj->bik", &["2 3 4", "2 5 4"]), [product]);
    assert_eq!(remaining_ops("ij,kj->ki", &["2 3", "4 3"]), [product]);
    assert_eq!(remaining_ops("...ij,...jk", &["2 3 4 5", "2 3 5 2"]), [product]);
    assert_eq!(remaining_ops("bij,bij->b", &["2 3 4", "2 3 4"]), ["Reshape", "Reshape", product, "Reshape"]);
    assert_eq!(
        remaining_ops("bihd,bjhd->bhij", &["2 5 3 4", "2 6 3 4"]),
        ["Transpose", "Transpose", product]
    );
    assert_eq!(remaining_ops("ij,jk,kl->il", &["2 3", "3 4", "4 5"]), [product, product]);
}

#[test]
fn constants_are_the_right_side_of_products_in_the_order_in_which_they_are_read() {
    let product = "oarlock.MatMul";
    assert_eq!(remaining_ops("abc,cd->abd", &["2 3 4", "!4 5"]), [product]);
    assert_eq!(remaining_ops("bnd,dhk->bnhk", &["2 3 4", "!4 5 6"]), [product, "Reshape"]);
    assert_eq!(remaining_ops("oi,bi->bo", &["!5 4", "2 4"]), [product]);
    assert_eq!(remaining_ops("bnhk,hkd->bnd", &["2 3 4 5", "!4 5 6"]), ["Reshape", product]);
    assert_eq!(remaining_ops("oi,bit->bot", &["!5 4", "2 4 3"]), [product]);
}

#[test]
fn what_sums_over_nothing_in_common_needs_no_product_of_matrices() {
    assert_eq!(remaining_ops("ij->ji", &["2 3"]), ["Transpose"]);
    assert_eq!(remaining_ops("ij->i", &["2 3"]), ["ReduceSum"]);
    assert_eq!(remaining_ops("...ij->j...", &["2 3 4"]), ["ReduceSum", "Transpose"]);
    assert_eq!(remaining_ops("ij,ij->ij", &["2 3", "2 3"]), ["Mul"]);
    assert_eq!(remaining_ops("ij,j->ij", &["2 3", "3"]), ["Mul"]);
    assert_eq!(remaining_ops("i,j->ij", &["2", "3"]), ["Reshape", "Mul"]);
    assert_eq!(remaining_ops("ij,k->i", &["2 3", "4"]), ["ReduceSum", "ReduceSum", "Mul"]);
}

#[test]
fn diagonals_and_sums_over_broadcast_dimensions_stay_einsum() {
    assert_eq!(remaining_ops("ii->i", &["3 3"]), ["Einsum"]);
    assert_eq!(remaining_ops("ij,jj->i", &["2 3", "3 3"]), ["Einsum"]);
    assert_eq!(remaining_ops("ij,jk->ik", &["2 1", "3 4"]), ["Einsum"]);
    // Dimensions that are not summed over may broadcast.
    assert_eq!(remaining_ops("bij,bjk->bik", &["1 3 4", "2 4 5"]), ["oarlock.MatMul"]);
}

/// The ops that remain of attention with these equations, scaled and masked.
fn attention_ops(equations: [&str; 2], dims: [&[i64]; 3], mask: &[i64]) -> Vec<String> {
    let mut sketch = GraphSketch::new();
    let [query, key, value] = [("query", dims[0]), ("key", dims[1]), ("value", dims[2])]
        .map(|(name, dims)| sketch.add_input(name, Dtype::F32, dims));
    let hidden = sketch.add_input("mask", Dtype::F32, mask);
    let scores = add_einsum(&mut sketch, equations[0], &[query, key]);
    let half = sketch.add_scalar(0.5);
    let scaled = sketch.add_op("Mul", &[scores, half]);
    let masked = sketch.add_op("Add", &[scaled, hidden]);
    let weights = sketch.add_op_with("Softmax", &[masked], &[("axis", Attribute::Int(-1))]);
    let y = add_einsum(&mut sketch, equations[1], &[weights, value]);
    let inputs =
        [random_datum(dims[0], 1), random_datum(dims[1], 2), random_datum(dims[2], 3), random_datum(mask, 4)];
    sketch.with_outputs(&[y]).check_optimized(&inputs)
}

#[test]
fn attention_that_is_written_as_sums_of_products_is_found() {
    let (queries, keys): (&[i64], &[i64]) = (&[2, 3, 4, 8], &[2, 3, 5, 8]);
    let found = attention_ops(["bhid,bhjd->bhij", "bhij,bhjd->bhid"], [queries, keys, keys], &[2, 1, 1, 5]);
    assert_eq!(found, ["Attention"]);
    // Heads after positions, as projections write them.
    let (queries, keys): (&[i64], &[i64]) = (&[2, 4, 3, 8], &[2, 5, 3, 8]);
    let found = attention_ops(["bihd,bjhd->bhij", "bhij,bjhd->bihd"], [queries, keys, keys], &[4, 5]);
    assert_eq!(found, ["Transpose", "Transpose", "Transpose", "Attention", "Transpose"]);
    // Keys before queries.
    let found = attention_ops(["bjhd,bihd->bhij", "bhij,bjhd->bihd"], [keys, queries, keys], &[4, 5]);
    assert!(found.contains(&"Attention".to_owned()), "{found:?}");
}

/// A decoder layer with a past, in which every product is an `Einsum`.
fn decoder_sketch(heads: i64, width: i64) -> GraphSketch {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, -1, heads * width]);
    let past = ["key", "value"].map(|name| sketch.add_input(name, Dtype::F32, &[-1, heads, -1, width]));
    let part = |sketch: &mut GraphSketch, seed: u32| {
        let w = sketch.add_weights(&[heads * width, heads, width], seed);
        add_einsum(sketch, "btd,dhk->bhtk", &[x, w])
    };
    let [query, key, value] = [1, 2, 3].map(|seed| part(&mut sketch, seed));
    let joined = [("axis", Attribute::Int(2))];
    let key = sketch.add_op_with("Concat", &[past[0], key], &joined);
    let value = sketch.add_op_with("Concat", &[past[1], value], &joined);
    let scores = add_einsum(&mut sketch, "bhid,bhjd->bhij", &[query, key]);
    let weights = sketch.add_op_with("Softmax", &[scores], &[("axis", Attribute::Int(-1))]);
    let made = add_einsum(&mut sketch, "bhij,bhjd->bihd", &[weights, value]);
    let w = sketch.add_weights(&[heads, width, heads * width], 4);
    let y = add_einsum(&mut sketch, "bihd,hdo->bio", &[made, w]);
    sketch.with_outputs(&[y, key, value])
}

fn decoder_inputs(batch: i64, length: i64, past: i64) -> Vec<RuntimeValue> {
    let (heads, width) = (2, 4);
    vec![
        random_datum(&[batch, length, heads * width], 5),
        random_datum(&[batch, heads, past, width], 6),
        random_datum(&[batch, heads, past, width], 7),
    ]
}

#[test]
fn a_decoder_of_sums_of_products_is_as_one_of_matrices() {
    let left = decoder_sketch(2, 4).check_optimized(&decoder_inputs(2, 3, 4));
    let product = "oarlock.MatMul";
    assert_eq!(left, [product, product, product, "Attention", product], "{left:?}");
}

#[test]
fn sums_of_products_compute_the_same_for_every_length() {
    shape_changes::check_shapes(&decoder_sketch(2, 4), 7, 24, |dice| {
        decoder_inputs(
            dice.pick_one(&[1, 1, 2]),
            dice.pick_one(&[1, 1, 2, 5]),
            dice.pick_one(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 30]),
        )
    });
}

/// An equation with its operands.
struct EinsumCase {
    equation: String,
    shapes: Vec<Vec<i64>>,
}

fn random_case(dice: &mut SeededRandom) -> EinsumCase {
    let sizes = [1, 2, 3, 4, 5].map(|_| dice.pick_one(&[0, 1, 2, 3, 3, 4, 5, 5]));
    let shuffled = |dice: &mut SeededRandom, mut left: Vec<usize>, most: usize| {
        let count = dice.next_below(most.min(left.len()) + 1);
        (0..count).map(|_| left.remove(dice.next_below(left.len()))).collect::<Vec<usize>>()
    };
    let letters = |labels: &[usize]| labels.iter().map(|at| char::from(b'a' + *at as u8)).collect::<String>();
    let operands = dice.pick_one(&[1, 2, 2, 2, 2, 3]);
    let has_ellipsis = dice.next_below(4) == 0;
    let (mut terms, mut shapes, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..operands {
        let labels = shuffled(dice, (0..sizes.len()).collect(), 4);
        let mut term = letters(&labels);
        let mut dims: Vec<i64> =
            labels.iter().map(|at| if dice.next_below(30) == 0 { 1 } else { sizes[*at] }).collect();
        if has_ellipsis && dice.next_below(4) != 0 {
            let (at, more) = (dice.next_below(labels.len() + 1), [3, 2]);
            let own = &more[dice.next_below(3)..];
            term.insert_str(at, "...");
            dims.splice(at..at, own.iter().copied());
        }
        used.extend(labels);
        terms.push(term);
        shapes.push(dims);
    }
    used.sort_unstable();
    used.dedup();
    let mut equation = terms.join(",");
    if dice.next_below(8) != 0 {
        let labels = shuffled(dice, used, 4);
        let mut output = letters(&labels);
        if equation.contains("...") {
            output.insert_str(dice.next_below(labels.len() + 1), "...");
        }
        equation = format!("{equation}->{output}");
    }
    EinsumCase { equation, shapes }
}

#[test]
fn every_equation_computes_the_same_as_products_of_matrices() {
    let (mut stayed, equations) = (0, 600);
    for seed in 0..equations {
        let mut dice = SeededRandom(seed * 6151 + 3);
        let EinsumCase { equation, shapes } = random_case(&mut dice);
        let is_of_ints = dice.next_below(5) == 0;
        let mut sketch = GraphSketch::new();
        let (mut values, mut inputs) = (Vec::new(), Vec::new());
        for (index, dims) in shapes.iter().enumerate() {
            let (name, said) = (format!("input {index}"), vec![-1; dims.len()]);
            let count = dims.iter().product::<i64>();
            if is_of_ints {
                let elements: Vec<i64> = (0..count).map(|_| dice.next_below(2000) as i64 - 1000).collect();
                inputs.push(int_datum(dims, &elements));
                values.push(sketch.add_input(&name, Dtype::I64, &said));
            } else if index > 0 && dice.next_below(3) == 0 {
                values.push(sketch.add_weights(dims, index as u32 + 9));
            } else {
                inputs.push(random_datum(dims, index as u32 + 1));
                values.push(sketch.add_input(&name, Dtype::F32, &said));
            }
        }
        let y = add_einsum(&mut sketch, &equation, &values);
        let sketch = sketch.with_outputs(&[y]);
        let run = || sketch.check_optimized(&inputs);
        let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        let left = left.unwrap_or_else(|_| panic!("`{equation}` of {shapes:?}, seed {seed}"));
        stayed += usize::from(left.contains(&"Einsum".to_owned()));
    }
    assert!(stayed * 8 < equations as usize, "{stayed} of {equations} stayed as they were");
}

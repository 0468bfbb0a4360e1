//! `Einsum` as products of matrices: what is left of it, and that it computes the same.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::Datum;
use oarlock_engine::graph::ValueId;

use crate::random::Dice;
use crate::shapes;
use crate::sketch::{Sketch, ints, random};

fn einsum(sketch: &mut Sketch, equation: &str, inputs: &[ValueId]) -> ValueId {
    sketch.op_with("Einsum", inputs, &[("equation", Attribute::String(equation.to_owned()))])
}

/// What is left of an `Einsum` of noise. Operands with a `!` before their shape are constants.
fn left(equation: &str, operands: &[&str]) -> Vec<String> {
    let mut sketch = Sketch::new();
    let (mut values, mut inputs) = (Vec::new(), Vec::new());
    for (index, shape) in operands.iter().enumerate() {
        let numbers = shape.trim_start_matches('!').split(' ');
        let dims: Vec<i64> = numbers.filter_map(|dim| dim.parse().ok()).collect();
        let seed = index as u32 + 1;
        values.push(if shape.starts_with('!') {
            sketch.weights(&dims, seed)
        } else {
            inputs.push(random(&dims, seed));
            sketch.input(&format!("input {index}"), Dtype::F32, &vec![-1; dims.len()])
        });
    }
    let y = einsum(&mut sketch, equation, &values);
    sketch.output(&[y]).optimised(&inputs)
}

#[test]
fn sums_of_products_become_products_of_matrices() {
    let product = "oarlock.MatMul";
    assert_eq!(left("ij,jk->ik", &["2 3", "3 4"]), [product]);
    assert_eq!(left("bij,bjk->bik", &["2 3 4", "2 4 5"]), [product]);
    // The product reads matrices either way.
    assert_eq!(left("bij,bkj->bik", &["2 3 4", "2 5 4"]), [product]);
    assert_eq!(left("ij,kj->ki", &["2 3", "4 3"]), [product]);
    assert_eq!(left("...ij,...jk", &["2 3 4 5", "2 3 5 2"]), [product]);
    assert_eq!(left("bij,bij->b", &["2 3 4", "2 3 4"]), ["Reshape", "Reshape", product, "Reshape"]);
    assert_eq!(left("bihd,bjhd->bhij", &["2 5 3 4", "2 6 3 4"]), ["Transpose", "Transpose", product]);
    assert_eq!(left("ij,jk,kl->il", &["2 3", "3 4", "4 5"]), [product, product]);
}

#[test]
fn constants_are_the_right_side_of_products_in_the_order_in_which_they_are_read() {
    let product = "oarlock.MatMul";
    assert_eq!(left("abc,cd->abd", &["2 3 4", "!4 5"]), [product]);
    assert_eq!(left("bnd,dhk->bnhk", &["2 3 4", "!4 5 6"]), [product, "Reshape"]);
    assert_eq!(left("oi,bi->bo", &["!5 4", "2 4"]), [product]);
    assert_eq!(left("bnhk,hkd->bnd", &["2 3 4 5", "!4 5 6"]), ["Reshape", product]);
    assert_eq!(left("oi,bit->bot", &["!5 4", "2 4 3"]), [product]);
}

#[test]
fn what_sums_over_nothing_in_common_needs_no_product_of_matrices() {
    assert_eq!(left("ij->ji", &["2 3"]), ["Transpose"]);
    assert_eq!(left("ij->i", &["2 3"]), ["ReduceSum"]);
    assert_eq!(left("...ij->j...", &["2 3 4"]), ["ReduceSum", "Transpose"]);
    assert_eq!(left("ij,ij->ij", &["2 3", "2 3"]), ["Mul"]);
    assert_eq!(left("ij,j->ij", &["2 3", "3"]), ["Mul"]);
    assert_eq!(left("i,j->ij", &["2", "3"]), ["Reshape", "Mul"]);
    assert_eq!(left("ij,k->i", &["2 3", "4"]), ["ReduceSum", "ReduceSum", "Mul"]);
}

#[test]
fn diagonals_and_sums_over_what_is_repeated_stay() {
    assert_eq!(left("ii->i", &["3 3"]), ["Einsum"]);
    assert_eq!(left("ij,jj->i", &["2 3", "3 3"]), ["Einsum"]);
    assert_eq!(left("ij,jk->ik", &["2 1", "3 4"]), ["Einsum"]);
    // What is not summed over may be repeated.
    assert_eq!(left("bij,bjk->bik", &["1 3 4", "2 4 5"]), ["oarlock.MatMul"]);
}

/// Attention on heads that these equations read and write, scaled and with a mask.
fn attention(equations: [&str; 2], dims: [&[i64]; 3], mask: &[i64]) -> Vec<String> {
    let mut sketch = Sketch::new();
    let [query, key, value] = [("query", dims[0]), ("key", dims[1]), ("value", dims[2])]
        .map(|(name, dims)| sketch.input(name, Dtype::F32, dims));
    let hidden = sketch.input("mask", Dtype::F32, mask);
    let scores = einsum(&mut sketch, equations[0], &[query, key]);
    let half = sketch.scalar(0.5);
    let scaled = sketch.op("Mul", &[scores, half]);
    let masked = sketch.op("Add", &[scaled, hidden]);
    let weights = sketch.op_with("Softmax", &[masked], &[("axis", Attribute::Int(-1))]);
    let y = einsum(&mut sketch, equations[1], &[weights, value]);
    let inputs = [random(dims[0], 1), random(dims[1], 2), random(dims[2], 3), random(mask, 4)];
    sketch.output(&[y]).optimised(&inputs)
}

#[test]
fn attention_that_is_written_as_sums_of_products_is_found() {
    let (queries, keys): (&[i64], &[i64]) = (&[2, 3, 4, 8], &[2, 3, 5, 8]);
    let found = attention(["bhid,bhjd->bhij", "bhij,bhjd->bhid"], [queries, keys, keys], &[2, 1, 1, 5]);
    assert_eq!(found, ["Attention"]);
    // Heads behind positions, as projections write them.
    let (queries, keys): (&[i64], &[i64]) = (&[2, 4, 3, 8], &[2, 5, 3, 8]);
    let found = attention(["bihd,bjhd->bhij", "bhij,bjhd->bihd"], [queries, keys, keys], &[4, 5]);
    assert_eq!(found, ["Transpose", "Transpose", "Transpose", "Attention", "Transpose"]);
    // Keys before queries.
    let found = attention(["bjhd,bihd->bhij", "bhij,bjhd->bihd"], [keys, queries, keys], &[4, 5]);
    assert!(found.contains(&"Attention".to_owned()), "{found:?}");
}

/// A layer of attention in which every product is an `Einsum`, after a past.
fn decoder(heads: i64, width: i64) -> Sketch {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, -1, heads * width]);
    let past = ["key", "value"].map(|name| sketch.input(name, Dtype::F32, &[-1, heads, -1, width]));
    let part = |sketch: &mut Sketch, seed: u32| {
        let w = sketch.weights(&[heads * width, heads, width], seed);
        einsum(sketch, "btd,dhk->bhtk", &[x, w])
    };
    let [query, key, value] = [1, 2, 3].map(|seed| part(&mut sketch, seed));
    let joined = [("axis", Attribute::Int(2))];
    let key = sketch.op_with("Concat", &[past[0], key], &joined);
    let value = sketch.op_with("Concat", &[past[1], value], &joined);
    let scores = einsum(&mut sketch, "bhid,bhjd->bhij", &[query, key]);
    let weights = sketch.op_with("Softmax", &[scores], &[("axis", Attribute::Int(-1))]);
    let made = einsum(&mut sketch, "bhij,bhjd->bihd", &[weights, value]);
    let w = sketch.weights(&[heads, width, heads * width], 4);
    let y = einsum(&mut sketch, "bihd,hdo->bio", &[made, w]);
    sketch.output(&[y, key, value])
}

fn given(batch: i64, length: i64, past: i64) -> Vec<Datum> {
    let (heads, width) = (2, 4);
    vec![
        random(&[batch, length, heads * width], 5),
        random(&[batch, heads, past, width], 6),
        random(&[batch, heads, past, width], 7),
    ]
}

#[test]
fn a_decoder_of_sums_of_products_is_as_one_of_matrices() {
    let left = decoder(2, 4).optimised(&given(2, 3, 4));
    let product = "oarlock.MatMul";
    assert_eq!(left, [product, product, product, "Attention", product], "{left:?}");
}

#[test]
fn sums_of_products_compute_the_same_for_every_length() {
    shapes::check(&decoder(2, 4), 7, 24, |dice| {
        given(dice.pick(&[1, 1, 2]), dice.pick(&[1, 1, 2, 5]), dice.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 30]))
    });
}

/// An equation with what it is given.
struct Written {
    equation: String,
    shapes: Vec<Vec<i64>>,
}

fn written(dice: &mut Dice) -> Written {
    let sizes = [1, 2, 3, 4, 5].map(|_| dice.pick(&[0, 1, 2, 3, 3, 4, 5, 5]));
    let shuffled = |dice: &mut Dice, mut left: Vec<usize>, most: usize| {
        let count = dice.below(most.min(left.len()) + 1);
        (0..count).map(|_| left.remove(dice.below(left.len()))).collect::<Vec<usize>>()
    };
    let letters = |labels: &[usize]| labels.iter().map(|at| char::from(b'a' + *at as u8)).collect::<String>();
    let operands = dice.pick(&[1, 2, 2, 2, 2, 3]);
    let has_ellipsis = dice.below(4) == 0;
    let (mut terms, mut shapes, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..operands {
        let labels = shuffled(dice, (0..sizes.len()).collect(), 4);
        let mut term = letters(&labels);
        let mut dims: Vec<i64> =
            labels.iter().map(|at| if dice.below(30) == 0 { 1 } else { sizes[*at] }).collect();
        if has_ellipsis && dice.below(4) != 0 {
            let (at, more) = (dice.below(labels.len() + 1), [3, 2]);
            let own = &more[dice.below(3)..];
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
    if dice.below(8) != 0 {
        let labels = shuffled(dice, used, 4);
        let mut output = letters(&labels);
        if equation.contains("...") {
            output.insert_str(dice.below(labels.len() + 1), "...");
        }
        equation = format!("{equation}->{output}");
    }
    Written { equation, shapes }
}

#[test]
fn every_equation_computes_the_same_as_products_of_matrices() {
    let (mut stayed, equations) = (0, 600);
    for seed in 0..equations {
        let mut dice = Dice(seed * 6151 + 3);
        let Written { equation, shapes } = written(&mut dice);
        let is_of_ints = dice.below(5) == 0;
        let mut sketch = Sketch::new();
        let (mut values, mut inputs) = (Vec::new(), Vec::new());
        for (index, dims) in shapes.iter().enumerate() {
            let (name, said) = (format!("input {index}"), vec![-1; dims.len()]);
            let count = dims.iter().product::<i64>();
            if is_of_ints {
                let elements: Vec<i64> = (0..count).map(|_| dice.below(2000) as i64 - 1000).collect();
                inputs.push(ints(dims, &elements));
                values.push(sketch.input(&name, Dtype::I64, &said));
            } else if index > 0 && dice.below(3) == 0 {
                values.push(sketch.weights(dims, index as u32 + 9));
            } else {
                inputs.push(random(dims, index as u32 + 1));
                values.push(sketch.input(&name, Dtype::F32, &said));
            }
        }
        let y = einsum(&mut sketch, &equation, &values);
        let sketch = sketch.output(&[y]);
        let run = || sketch.optimised(&inputs);
        let left = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        let left = left.unwrap_or_else(|_| panic!("`{equation}` of {shapes:?}, seed {seed}"));
        stayed += usize::from(left.contains(&"Einsum".to_owned()));
    }
    assert!(stayed * 8 < equations as usize, "{stayed} of {equations} stayed as they were");
}

//! Products in less than f32: only where that was allowed, and only what can be.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;
use oarlock_engine::{Datum, Precision, Rounding, Session, SessionOptions};

use crate::sketch::{RUNTIME, Sketch, bytes, random, run};

fn session(sketch: &Sketch, precision: Precision) -> Session {
    sketch.session(&SessionOptions { precision, ..SessionOptions::default() })
}

fn rounding(session: &Session, inputs: &[Datum]) -> Rounding {
    let plan = session.plan(inputs).unwrap_or_else(|error| panic!("{error}"));
    Rounding::of(&plan, &RUNTIME, &session.devices()[0])
}

fn floats(datum: &Datum) -> Vec<f32> {
    datum.tensor().and_then(|tensor| tensor.to_vec()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a model exactly and in bf16. Either something is rounded, and then results differ, but by little, or there is a
/// reason for each node, and they do not.
fn check(sketch: &Sketch, inputs: &[Datum], nodes: usize) {
    let (exact, rounded) = (session(sketch, Precision::F32), session(sketch, Precision::Bf16));
    assert_eq!(rounding(&exact, inputs).rounded, 0);
    let Rounding { rounded: count, whole } = rounding(&rounded, inputs);
    assert_eq!(count + whole.len(), nodes, "{whole:?}");
    assert!(whole.iter().all(|reason| reason.starts_with("expected")), "{whole:?}");
    let (expected, found) = (run(&exact, inputs), run(&rounded, inputs));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(bytes(expected) != bytes(found), count > 0, "{whole:?}");
        let (expected, found) = (floats(expected), floats(found));
        let largest = expected.iter().fold(0f32, |largest, element| largest.max(element.abs()));
        let apart = expected.iter().zip(&found).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0f32, f32::max) <= 0.02 * largest);
    }
    let again = run(&rounded, inputs);
    assert!(again.iter().zip(&found).all(|(again, found)| bytes(again) == bytes(found)));
}

#[test]
fn products_round_what_they_multiply_where_that_is_allowed() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, 40]);
    let (a, b, bias) = (sketch.weights(&[40, 70], 1), sketch.weights(&[30, 70], 2), sketch.weights(&[70], 3));
    let hidden = sketch.op("MatMul", &[x, a]);
    let hidden = sketch.op("Add", &[hidden, bias]);
    let hidden = sketch.op("Relu", &[hidden]);
    let y = sketch.op_with("Gemm", &[hidden, b], &[("transB", Attribute::Int(1))]);
    // What is no constant is not rounded.
    let turned = sketch.op("Transpose", &[y]);
    let z = sketch.op("MatMul", &[turned, y]);
    let sketch = sketch.output(&[y, z]);
    for rows in [1, 3, 50] {
        check(&sketch, &[random(&[rows, 40], 4)], 3);
    }
}

#[test]
fn convolutions_round_what_they_multiply_where_that_is_allowed() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1, 3, 16, 16]);
    let conv = |sketch: &mut Sketch, x: ValueId, dims: &[i64], group: i64| {
        let (w, b) = (sketch.weights(dims, 1), sketch.weights(&dims[..1], 2));
        let pads = vec![dims[2] / 2; 4];
        let attributes = [("pads", Attribute::Ints(pads)), ("group", Attribute::Int(group))];
        sketch.op_with("Conv", &[x, w, b], &attributes)
    };
    let first = conv(&mut sketch, x, &[20, 3, 5, 5], 1);
    let bounded = sketch.op("Relu", &[first]);
    let depthwise = conv(&mut sketch, bounded, &[20, 1, 3, 3], 20);
    let last = conv(&mut sketch, depthwise, &[33, 20, 1, 1], 1);
    let sketch = sketch.output(&[last]);
    check(&sketch, &[random(&[1, 3, 16, 16], 5)], 3);
}

#[test]
fn what_passes_do_not_touch_stays_exact() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[2, 40]);
    let w = sketch.weights(&[40, 70], 1);
    let y = sketch.op("MatMul", &[x, w]);
    let sketch = sketch.output(&[y]);
    let plain = SessionOptions { is_plain: true, ..SessionOptions::default() };
    let rounded = SessionOptions { precision: Precision::Bf16, ..plain.clone() };
    let inputs = [random(&[2, 40], 2)];
    let made = [plain, rounded].map(|options| bytes(&run(&sketch.session(&options), &inputs)[0]));
    assert_eq!(made[0], made[1]);
}

//! Products in less than `f32`: only if permitted, and only where possible.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;
use oarlock_engine::{PrecisionMode, RoundingReport, RuntimeValue, Session, SessionOptions};

use crate::sketch::{GraphSketch, SHARED_RUNTIME, datum_bytes, random_datum, run_session};

fn session_with_precision(sketch: &GraphSketch, precision: PrecisionMode) -> Session {
    sketch.start_session(&SessionOptions { precision, ..SessionOptions::default() })
}

fn session_rounding(session: &Session, inputs: &[RuntimeValue]) -> RoundingReport {
    let plan = session.plan(inputs).unwrap_or_else(|error| panic!("{error}"));
    RoundingReport::from_plan(&plan, &SHARED_RUNTIME, &session.devices()[0])
}

fn read_floats(datum: &RuntimeValue) -> Vec<f32> {
    datum.as_tensor().and_then(|tensor| tensor.to_vec()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a model in `f32` and in `bf16`. Either some nodes use `bf16`, and results differ, but only by little; or there is a
/// reason for each of the `nodes`, and results are equal.
fn check_precision(sketch: &GraphSketch, inputs: &[RuntimeValue], nodes: usize) {
    let (exact, rounded) = (
        session_with_precision(sketch, PrecisionMode::F32),
        session_with_precision(sketch, PrecisionMode::Bf16),
    );
    assert_eq!(session_rounding(&exact, inputs).rounded, 0);
    let RoundingReport { rounded: count, whole } = session_rounding(&rounded, inputs);
    assert_eq!(count + whole.len(), nodes, "{whole:?}");
    assert!(whole.iter().all(|reason| reason.starts_with("expected")), "{whole:?}");
    let (expected, found) = (run_session(&exact, inputs), run_session(&rounded, inputs));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(datum_bytes(expected) != datum_bytes(found), count > 0, "{whole:?}");
        let (expected, found) = (read_floats(expected), read_floats(found));
        let largest = expected.iter().fold(0f32, |largest, element| largest.max(element.abs()));
        let apart = expected.iter().zip(&found).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0f32, f32::max) <= 0.02 * largest);
    }
    let again = run_session(&rounded, inputs);
    assert!(again.iter().zip(&found).all(|(again, found)| datum_bytes(again) == datum_bytes(found)));
}

#[test]
fn products_round_what_they_multiply_where_that_is_allowed() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, 40]);
    let (a, b, bias) =
        (sketch.add_weights(&[40, 70], 1), sketch.add_weights(&[30, 70], 2), sketch.add_weights(&[70], 3));
    let hidden = sketch.add_op("MatMul", &[x, a]);
    let hidden = sketch.add_op("Add", &[hidden, bias]);
    let hidden = sketch.add_op("Relu", &[hidden]);
    let y = sketch.add_op_with("Gemm", &[hidden, b], &[("transB", Attribute::Int(1))]);
    // A product without a constant operand stays in `f32`.
    let turned = sketch.add_op("Transpose", &[y]);
    let z = sketch.add_op("MatMul", &[turned, y]);
    let sketch = sketch.with_outputs(&[y, z]);
    for rows in [1, 3, 50] {
        check_precision(&sketch, &[random_datum(&[rows, 40], 4)], 3);
    }
}

#[test]
fn convolutions_round_operands_when_reduced_precision_is_allowed() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 3, 16, 16]);
    let conv = |sketch: &mut GraphSketch, x: ValueId, dims: &[i64], group: i64| {
        let (w, b) = (sketch.add_weights(dims, 1), sketch.add_weights(&dims[..1], 2));
        let pads = vec![dims[2] / 2; 4];
        let attributes = [("pads", Attribute::Ints(pads)), ("group", Attribute::Int(group))];
        sketch.add_op_with("Conv", &[x, w, b], &attributes)
    };
    let first = conv(&mut sketch, x, &[20, 3, 5, 5], 1);
    let bounded = sketch.add_op("Relu", &[first]);
    let depthwise = conv(&mut sketch, bounded, &[20, 1, 3, 3], 20);
    let last = conv(&mut sketch, depthwise, &[33, 20, 1, 1], 1);
    let sketch = sketch.with_outputs(&[last]);
    check_precision(&sketch, &[random_datum(&[1, 3, 16, 16], 5)], 3);
}

#[test]
fn what_passes_do_not_touch_stays_exact() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 40]);
    let w = sketch.add_weights(&[40, 70], 1);
    let y = sketch.add_op("MatMul", &[x, w]);
    let sketch = sketch.with_outputs(&[y]);
    let plain = SessionOptions { is_plain: true, ..SessionOptions::default() };
    let rounded = SessionOptions { precision: PrecisionMode::Bf16, ..plain.clone() };
    let inputs = [random_datum(&[2, 40], 2)];
    let made = [plain, rounded]
        .map(|options| datum_bytes(&run_session(&sketch.start_session(&options), &inputs)[0]));
    assert_eq!(made[0], made[1]);
}

/// Output dtypes of the convolutions, in order.
fn convolution_dtypes(session: &Session, inputs: &[RuntimeValue]) -> Vec<Option<Dtype>> {
    let plan = session.plan(inputs).unwrap_or_else(|error| panic!("{error}"));
    let graph = plan.graph();
    let convolutions = graph.nodes.iter().filter(|node| &*node.op == "Conv");
    convolutions.map(|node| graph.value(node.output(0)?).dtype()).collect()
}

/// Adds a convolution, padded so that the image keeps its size.
fn add_convolution(sketch: &mut GraphSketch, x: ValueId, dims: &[i64], group: i64) -> ValueId {
    let (w, b) = (sketch.add_weights(dims, 1), sketch.add_weights(&dims[..1], 2));
    let attributes = [("pads", Attribute::Ints(vec![dims[2] / 2; 4])), ("group", Attribute::Int(group))];
    sketch.add_op_with("Conv", &[x, w, b], &attributes)
}

#[test]
fn images_that_only_convolutions_read_are_kept_rounded() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 3, 12, 12]);
    let first = add_convolution(&mut sketch, x, &[24, 3, 3, 3], 1);
    let wide = add_convolution(&mut sketch, first, &[48, 24, 1, 1], 1);
    let wide = sketch.add_op("Relu", &[wide]);
    let depthwise = add_convolution(&mut sketch, wide, &[48, 1, 3, 3], 48);
    let narrow = add_convolution(&mut sketch, depthwise, &[24, 48, 1, 1], 1);
    // A convolution reads `narrow` only through this sum.
    let sum = sketch.add_op("Add", &[narrow, first]);
    let last = add_convolution(&mut sketch, sum, &[10, 24, 1, 1], 1);
    let sketch = sketch.with_outputs(&[last]);
    let inputs = [random_datum(&[1, 3, 12, 12], 6)];
    check_precision(&sketch, &inputs, 5);
    let exact = convolution_dtypes(&session_with_precision(&sketch, PrecisionMode::F32), &inputs);
    assert_eq!(exact, [Some(Dtype::F32); 5]);
    let session = session_with_precision(&sketch, PrecisionMode::Bf16);
    if session_rounding(&session, &inputs).rounded > 0 {
        let [images @ .., output] = &*convolution_dtypes(&session, &inputs) else { panic!("five") };
        assert_eq!((images, *output), (&[Some(Dtype::BF16); 4][..], Some(Dtype::F32)));
    }
}

#[test]
fn conv_outputs_stay_f32_when_a_reader_needs_full_precision() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 4, 8, 8]);
    // Excluded: outputs read by a pool, graph outputs, odd channel counts, and activations that do more than clamp.
    let pooled = add_convolution(&mut sketch, x, &[8, 4, 3, 3], 1);
    let attributes = [("kernel_shape", Attribute::Ints(vec![2, 2]))];
    let pool = sketch.add_op_with("MaxPool", &[pooled], &attributes);
    let given = add_convolution(&mut sketch, pool, &[8, 8, 1, 1], 1);
    let odd = add_convolution(&mut sketch, given, &[7, 8, 1, 1], 1);
    let curved = add_convolution(&mut sketch, odd, &[6, 7, 1, 1], 1);
    let curved = sketch.add_op("HardSwish", &[curved]);
    let kept = add_convolution(&mut sketch, curved, &[6, 6, 1, 1], 1);
    let last = add_convolution(&mut sketch, kept, &[6, 6, 1, 1], 1);
    let sketch = sketch.with_outputs(&[given, last]);
    let inputs = [random_datum(&[1, 4, 8, 8], 7)];
    let (exact, rounded) = (
        session_with_precision(&sketch, PrecisionMode::F32),
        session_with_precision(&sketch, PrecisionMode::Bf16),
    );
    for (exact, rounded) in run_session(&exact, &inputs).iter().zip(&run_session(&rounded, &inputs)) {
        let (exact, rounded) = (read_floats(exact), read_floats(rounded));
        let largest = exact.iter().fold(0f32, |largest, element| largest.max(element.abs()));
        assert!(exact.iter().zip(&rounded).all(|(a, b)| (a - b).abs() <= 0.02 * largest));
    }
    if session_rounding(&rounded, &inputs).rounded > 0 {
        let whole = Some(Dtype::F32);
        let made = convolution_dtypes(&rounded, &inputs);
        assert_eq!(made, [whole, whole, whole, whole, Some(Dtype::BF16), whole]);
    }
}

#[test]
fn images_of_other_sizes_are_kept_rounded_as_well() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, 4, -1, -1]);
    let first = add_convolution(&mut sketch, x, &[24, 4, 3, 3], 1);
    let depthwise = add_convolution(&mut sketch, first, &[24, 1, 3, 3], 24);
    let last = add_convolution(&mut sketch, depthwise, &[5, 24, 1, 1], 1);
    let sketch = sketch.with_outputs(&[last]);
    let (exact, rounded) = (
        session_with_precision(&sketch, PrecisionMode::F32),
        session_with_precision(&sketch, PrecisionMode::Bf16),
    );
    for dims in [[1, 4, 9, 9], [2, 4, 16, 5], [1, 4, 9, 9], [1, 4, 1, 1]] {
        let inputs = [random_datum(&dims, 8)];
        let (expected, found) =
            (read_floats(&run_session(&exact, &inputs)[0]), read_floats(&run_session(&rounded, &inputs)[0]));
        let largest = expected.iter().fold(0f32, |largest, element| largest.max(element.abs()));
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() <= 0.02 * largest), "{dims:?}");
        if session_rounding(&rounded, &inputs).rounded > 0 {
            let made = convolution_dtypes(&rounded, &inputs);
            assert_eq!(made, [Some(Dtype::BF16), Some(Dtype::BF16), Some(Dtype::F32)], "{dims:?}");
        }
    }
}

//! Complements the operator tests: use of threads, and hostile calls.

use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, Element};

use crate::KERNELS;

/// A network of one feature and one hidden element, with all weights 1, over two steps of two sequences.
fn unit_operands(gates: i64) -> [TestArray; 3] {
    [
        TestArray::from_values(&[2, 2, 1], &[1f32, 2., 3., 4.]),
        TestArray::from_values(&[1, gates, 1], &vec![1f32; gates as usize]),
        TestArray::from_values(&[1, gates, 1], &vec![1f32; gates as usize]),
    ]
}

const OUTPUTS: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[2, 1, 2, 1]))];

fn error_message(
    op: &str,
    gates: i64,
    attributes: &[(&str, TestAttribute<'_>)],
    more: &[Option<&TestArray>],
) -> String {
    let operands = unit_operands(gates);
    let inputs: Vec<_> = operands.iter().map(Some).chain(more.iter().copied()).collect();
    KERNELS.refusal_message(op, 14, attributes, &inputs, &OUTPUTS)
}

#[test]
fn a_state_is_the_sum_of_what_came_before() {
    let [x, w, r] = unit_operands(1);
    let relu = [("activations", TestAttribute::Texts(&["Relu"]))];
    let outputs = [
        TestArray::from_values(&[2, 1, 2, 1], &[1f32, 2., 4., 6.]),
        TestArray::from_values(&[1, 2, 1], &[4f32, 6.]),
    ];
    KERNELS.check_kernel("RNN", 14, &relu, &[Some(&x), Some(&w), Some(&r)], &outputs);
}

#[test]
fn a_sequence_without_steps_keeps_its_first_state() {
    let [x, w, r] = unit_operands(1);
    let (lengths, state) =
        (TestArray::from_values(&[2], &[0i32, 1]), TestArray::from_values(&[1, 2, 1], &[7f32, 0.]));
    let attributes =
        [("activations", TestAttribute::Texts(&["relu"])), ("direction", TestAttribute::Text("reverse"))];
    let inputs = [Some(&x), Some(&w), Some(&r), None, Some(&lengths), Some(&state)];
    let outputs = [
        TestArray::from_values(&[2, 1, 2, 1], &[0f32, 2., 0., 0.]),
        TestArray::from_values(&[1, 2, 1], &[7f32, 2.]),
    ];
    KERNELS.check_kernel("RNN", 14, &attributes, &inputs, &outputs);
}

#[test]
fn states_that_would_be_subnormal_are_zero() {
    // A vector of states and a remainder.
    let hidden = 19;
    let tiny = TestArray::from_values(&[1, 1, hidden], &vec![1e-39f32; hidden as usize]);
    let zeros =
        |dims: &[i64]| TestArray::from_values(dims, &vec![0f32; dims.iter().product::<i64>() as usize]);
    // Gates that keep everything: update of GRU, forget of LSTM. Those of LSTM that let something in are closed.
    for (op, gates) in
        [("RNN", vec![1e-39f32]), ("GRU", vec![100., 0., 0.]), ("LSTM", vec![-100., 0., 100., 0.])]
    {
        let count = gates.len() as i64;
        let mut bias: Vec<f32> = gates.iter().flat_map(|gate| vec![*gate; hidden as usize]).collect();
        bias.resize(2 * bias.len(), 0.0);
        let bias = TestArray::from_values(&[1, 2 * count * hidden], &bias);
        let (x, w) = (zeros(&[1, 1, 1]), zeros(&[1, count * hidden, 1]));
        let r = zeros(&[1, count * hidden, hidden]);
        let mut inputs = vec![Some(&x), Some(&w), Some(&r), Some(&bias), None, Some(&tiny)];
        let mut outputs: Vec<Option<(Dtype, &[i64])>> = vec![Some((Dtype::F32, &[1, 1, 1, 19]))];
        outputs.push(Some((Dtype::F32, &[1, 1, 19])));
        if op == "LSTM" {
            inputs.push(Some(&tiny));
            outputs.push(outputs[1]);
        }
        let size = [("hidden_size", TestAttribute::Int(hidden))];
        for isa in isa_levels() {
            let found = KERNELS.run_with_isa(&isa.to_string(), op, 14, &size, &inputs, &outputs).unwrap();
            // Byte for byte, as a difference of 1e-39 is within any tolerance.
            let is_zero =
                |array: &Option<TestArray>| array.as_ref().unwrap().bytes().iter().all(|byte| *byte == 0);
            assert!(found.iter().all(is_zero), "{op} on {isa}");
        }
    }
}

#[test]
fn recurrent_networks_without_features_or_elements_give_zeros() {
    for (steps, batches, hidden) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 0)] {
        let x = TestArray::from_values::<f32>(&[steps, batches, 0], &[]);
        let w = TestArray::from_values::<f32>(&[1, 4 * hidden, 0], &[]);
        let r = TestArray::from_values(&[1, 4 * hidden, hidden], &vec![1f32; (4 * hidden * hidden) as usize]);
        let all = TestArray::from_values(
            &[steps, 1, batches, hidden],
            &vec![0f32; (steps * batches * hidden) as usize],
        );
        let state = TestArray::from_values(&[1, batches, hidden], &vec![0f32; (batches * hidden) as usize]);
        KERNELS.check_kernel("LSTM", 14, &[], &[Some(&x), Some(&w), Some(&r)], &[all, state.clone(), state]);
    }
}

#[test]
fn many_sequences_are_the_same_as_each_alone() {
    let (steps, batches, features, hidden) = (3, 61, 5, 67);
    let number = |index: i64| ((index * 37 % 101) as f32 - 50.0) / 101.0;
    let make = |dims: &[i64]| {
        let count: i64 = dims.iter().product();
        TestArray::from_values(dims, &(0..count).map(number).collect::<Vec<_>>())
    };
    for (op, gates) in [("LSTM", 4), ("GRU", 3), ("RNN", 1)] {
        let (w, r) = (make(&[1, gates * hidden, features]), make(&[1, gates * hidden, hidden]));
        let dims = [steps, batches, features];
        let x = make(&dims);
        let outputs = [Some((Dtype::F32, &[steps, 1, batches, hidden][..]))];
        let inputs = [Some(&x), Some(&w), Some(&r)];
        let all = crate::KERNELS.run_kernel(op, 14, &[], &inputs, &outputs).unwrap();
        let all = all[0].as_ref().unwrap().values::<f32>();
        let values = x.values::<f32>();
        for batch in [0, 1, 60] {
            let own = |step: i64| {
                let start = ((step * batches + batch) * features) as usize;
                values[start..start + features as usize].to_vec()
            };
            let alone =
                TestArray::from_values(&[steps, 1, features], &(0..steps).flat_map(own).collect::<Vec<_>>());
            let expected = |step: i64| {
                let start = ((step * batches + batch) * hidden) as usize;
                all[start..start + hidden as usize].to_vec()
            };
            let expected = TestArray::from_values(
                &[steps, 1, 1, hidden],
                &(0..steps).flat_map(expected).collect::<Vec<_>>(),
            );
            KERNELS.check_kernel(op, 14, &[], &[Some(&alone), Some(&w), Some(&r)], &[expected]);
        }
    }
}

#[test]
fn constant_weights_match_runtime_weights() {
    let (steps, features) = (3, 19);
    let make = |dims: &[i64]| {
        let count: i64 = dims.iter().product();
        let number = |index: i64| ((index * 37 % 101) as f32 - 50.0) / 101.0;
        TestArray::from_values(dims, &(0..count).map(number).collect::<Vec<_>>())
    };
    // The weights of 190 hidden elements are several groups of panels, which every other step reads backwards.
    for (op, gates, hidden) in
        [("LSTM", 4, 37), ("LSTM", 4, 190), ("GRU", 3, 37), ("GRU", 3, 190), ("RNN", 1, 37)]
    {
        let (w, r) = (make(&[2, gates * hidden, features]), make(&[2, gates * hidden, hidden]));
        let attributes = [("direction", TestAttribute::Text("bidirectional"))];
        for batches in [1, 3, 40] {
            let x = make(&[steps, batches, features]);
            let dims = [steps, 2, batches, hidden];
            let outputs = [Some((Dtype::F32, &dims[..]))];
            let inputs = [Some(&x), Some(&w), Some(&r)];
            let others = crate::KERNELS.run_kernel(op, 14, &attributes, &inputs, &outputs).unwrap();
            let expected = others.into_iter().flatten().collect::<Vec<_>>();
            let constant = [w.clone().into_constant(), r.clone().into_constant()];
            KERNELS.check_kernel(
                op,
                14,
                &attributes,
                &[Some(&x), Some(&constant[0]), Some(&constant[1])],
                &expected,
            );
        }
    }
}

/// Quantization is off by at most half of 1/255 of the range, and gates reduce the error.
#[test]
fn weights_of_eight_bits_give_about_what_floats_give() {
    let (steps, batches, features, hidden) = (4, 3, 19, 37);
    let number = |index: i64| (index * 37 % 101) as f32 / 50.0 - 1.0;
    let make = |dims: &[i64]| {
        TestArray::from_values(dims, &(0..dims.iter().product()).map(number).collect::<Vec<f32>>())
    };
    let x = make(&[steps, batches, features]);
    let bias = make(&[2, 8 * hidden]);
    let lengths = TestArray::from_values(&[batches], &[4i32, 1, 3]);
    let attributes = [("direction", TestAttribute::Text("bidirectional"))];
    let dims: [&[i64]; 2] = [&[steps, 2, batches, hidden], &[2, batches, hidden]];
    let outputs = [dims[0], dims[1], dims[1]].map(|dims| Some((Dtype::F32, dims)));
    // Without zero points, steps have a product of their own.
    for (has_many, first_zero, dtype) in
        [(false, 3, i8::DTYPE), (false, 0, i8::DTYPE), (false, 128, u8::DTYPE), (true, 120, u8::DTYPE)]
    {
        let count = if has_many { 8 * hidden } else { 2 };
        let list: &[i64] = if has_many { &[2, 4 * hidden] } else { &[2] };
        let scales: Vec<f32> = (0..count).map(|at| 0.002 + 0.001 * (at % 3) as f32).collect();
        let zeros: Vec<u8> =
            (0..count).map(|at| first_zero + if has_many { (at % 5) as u8 } else { 0 }).collect();
        // The same weights as bytes and, dequantized, as floats.
        let weights = |depth: i64| {
            let rows = 4 * hidden;
            let bytes: Vec<u8> = (0..2 * depth * rows).map(|at| (at * 71 % 256) as u8).collect();
            let real = |at: i64| {
                let (direction, row, step) = (at / (depth * rows), at / depth % rows, at % depth);
                let of = (if has_many { direction * rows + row } else { direction }) as usize;
                let signed =
                    |byte: u8| if dtype == i8::DTYPE { f32::from(byte.cast_signed()) } else { byte.into() };
                let byte = bytes[((direction * depth + step) * rows + row) as usize];
                (signed(byte) - signed(zeros[of])) * scales[of]
            };
            let floats: Vec<f32> = (0..2 * depth * rows).map(real).collect();
            let bytes = TestArray::from_bytes(dtype, &[2, depth, rows], &bytes).into_constant();
            (bytes, TestArray::from_values(&[2, rows, depth], &floats))
        };
        let ((w, real_w), (r, real_r)) = (weights(features), weights(hidden));
        let (scale, zero) = (
            TestArray::from_values(list, &scales).into_constant(),
            TestArray::from_bytes(dtype, list, &zeros).into_constant(),
        );
        let floats = [Some(&x), Some(&real_w), Some(&real_r), Some(&bias), Some(&lengths)];
        let expected = crate::KERNELS.run_kernel("LSTM", 14, &attributes, &floats, &outputs).unwrap();
        for isa in ["scalar", "sse4.1", "avx2", "avx512"] {
            let mut inputs =
                vec![Some(&x), Some(&w), Some(&r), Some(&bias), Some(&lengths), None, None, None];
            inputs.extend([&scale, &zero, &scale, &zero].map(Some));
            let op = "oarlock:DynamicQuantizedLSTM";
            let found = crate::KERNELS.run_with_isa(isa, op, 1, &attributes, &inputs, &outputs).unwrap();
            for (expected, found) in expected.iter().flatten().zip(found.iter().flatten()) {
                let both = expected.values::<f32>().into_iter().zip(found.values::<f32>());
                let off = both.map(|(expected, found)| (expected - found).abs()).fold(0.0, f32::max);
                assert!(off < 0.03, "off by {off} on {isa}");
            }
        }
    }
}

#[test]
fn unknown_functions_and_directions_are_refused() {
    let message = error_message("RNN", 1, &[("activations", TestAttribute::Texts(&["Swish"]))], &[]);
    assert!(message.contains("`Relu`") && message.contains("found `Swish`"), "{message}");
    let message = error_message("LSTM", 4, &[("activations", TestAttribute::Texts(&["Tanh"]))], &[]);
    assert!(message.contains("expected 3 `activations`"), "{message}");
    let message = error_message("GRU", 3, &[("direction", TestAttribute::Text("sideways"))], &[]);
    assert!(message.contains("found `sideways`"), "{message}");
    let message = error_message("GRU", 3, &[("clip", TestAttribute::Float(-1.0))], &[]);
    assert!(message.contains("`clip` of at least 0"), "{message}");
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    for length in [3, -1, i32::MAX] {
        let lengths = TestArray::from_values(&[2], &[1, length]);
        let message = error_message("LSTM", 4, &[], &[None, Some(&lengths)]);
        assert!(message.contains("`sequence_lens` from 0 to 2"), "{message}");
    }
    let bias = TestArray::from_values(&[1, 4], &[0f32; 4]);
    let message = error_message("LSTM", 4, &[], &[Some(&bias)]);
    assert!(message.contains("`B` of shape [1, 8]"), "{message}");
    let message = error_message("LSTM", 3, &[], &[]);
    assert!(message.contains("`W` of shape [1, 4, 1]"), "{message}");
    let message = error_message("RNN", 1, &[("direction", TestAttribute::Text("bidirectional"))], &[]);
    assert!(message.contains("`W` of shape [2, 1, 1]"), "{message}");
}

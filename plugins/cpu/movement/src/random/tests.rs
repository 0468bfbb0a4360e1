//! Distributions, the places that numbers depend on, and dropout.

use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, f16};

use crate::KERNELS;

const COUNT: i64 = 40_000;

fn run_random(op: &str, attributes: &[(&str, TestAttribute<'_>)], dtype: Dtype, count: i64) -> TestArray {
    let results = KERNELS.run_kernel(op, 22, attributes, &[], &[Some((dtype, &[count]))]).unwrap();
    results.into_iter().next().unwrap().unwrap()
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

#[test]
fn uniform_numbers_fill_their_range_evenly() {
    let attributes = [("low", TestAttribute::Float(2.0)), ("high", TestAttribute::Float(6.0))];
    let values = run_random("RandomUniform", &attributes, Dtype::F64, COUNT).values::<f64>();
    assert!(values.iter().all(|value| (2.0..6.0).contains(value)));
    let (mean, variance) = mean_and_variance(&values);
    assert!((mean - 4.0).abs() < 0.05 && (variance - 16.0 / 12.0).abs() < 0.05, "{mean} {variance}");
}

#[test]
fn normal_numbers_have_their_mean_and_deviation() {
    let attributes = [("mean", TestAttribute::Float(-1.0)), ("scale", TestAttribute::Float(3.0))];
    let values = run_random("RandomNormal", &attributes, Dtype::F32, COUNT).values::<f32>();
    let values: Vec<f64> = values.into_iter().map(f64::from).collect();
    let (mean, variance) = mean_and_variance(&values);
    assert!((mean + 1.0).abs() < 0.06 && (variance - 9.0).abs() < 0.3, "{mean} {variance}");
}

#[test]
fn a_number_depends_on_its_place_and_the_seed_alone() {
    let seed = |seed| [("seed", TestAttribute::Float(seed))];
    let few = run_random("RandomNormal", &seed(5.0), Dtype::F32, 7).values::<f32>();
    let many = run_random("RandomNormal", &seed(5.0), Dtype::F32, COUNT).values::<f32>();
    assert_eq!(few, many[..7]);
    assert_ne!(few, run_random("RandomNormal", &seed(6.0), Dtype::F32, 7).values::<f32>());
    assert_ne!(few, run_random("RandomNormal", &[], Dtype::F32, 7).values::<f32>());
}

#[test]
fn like_takes_the_shape_of_its_input() {
    let input = TestArray::from_values(&[2, 0], &[0i64; 0]);
    let run = |dims: &[i64]| {
        KERNELS.run_kernel("RandomUniformLike", 1, &[], &[Some(&input)], &[Some((Dtype::F16, dims))])
    };
    assert_eq!(run(&[2, 0]).unwrap()[0].as_ref().unwrap().values::<f16>(), []);
    assert!(run(&[2, 1]).unwrap_err().contains("[2, 0], found [2, 1]"));
}

#[test]
fn chance_follows_the_probabilities() {
    let probabilities: Vec<f32> = (0..COUNT).map(|index| [0.0, 0.25, 1.0][index as usize % 3]).collect();
    let input = TestArray::from_values(&[COUNT], &probabilities);
    let results =
        KERNELS.run_kernel("Bernoulli", 15, &[], &[Some(&input)], &[Some((Dtype::BOOL, &[COUNT]))]).unwrap();
    let hits = results[0].as_ref().unwrap().values::<bool>();
    let share = |start: usize| {
        let hits: Vec<bool> = hits.iter().skip(start).step_by(3).copied().collect();
        hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64
    };
    assert_eq!((share(0), share(2)), (0.0, 1.0));
    assert!((share(1) - 0.25).abs() < 0.02, "{}", share(1));
}

#[test]
fn classes_are_drawn_with_their_probabilities() {
    let logarithms = [1f32.ln(), 0f32.ln(), 3f32.ln(), 0.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
    let input = TestArray::from_values(&[2, 3], &logarithms);
    let attributes = [("sample_size", TestAttribute::Int(COUNT))];
    let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::I32, &[2, COUNT]))];
    let results = KERNELS.run_kernel("Multinomial", 7, &attributes, &[Some(&input)], &outputs).unwrap();
    let drawn = results[0].as_ref().unwrap().values::<i32>();
    let (first, second) = drawn.split_at(COUNT as usize);
    assert!(second.iter().all(|class| *class == 0) && first.iter().all(|class| *class != 1));
    let share = first.iter().filter(|class| **class == 2).count() as f64 / COUNT as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
}

#[test]
fn dropped_elements_are_zero_and_the_rest_are_scaled_up() {
    let data = TestArray::from_values(&[COUNT], &vec![3f32; COUNT as usize]);
    let (ratio, training) = (TestArray::from_values(&[], &[0.25f32]), TestArray::from_values(&[], &[true]));
    let outputs: [Option<(Dtype, &[i64])>; 2] = [Some((Dtype::F32, &[COUNT])), Some((Dtype::BOOL, &[COUNT]))];
    let results = KERNELS
        .run_kernel("Dropout", 13, &[], &[Some(&data), Some(&ratio), Some(&training)], &outputs)
        .unwrap();
    let values = results[0].as_ref().unwrap().values::<f32>();
    let mask = results[1].as_ref().unwrap().values::<bool>();
    assert!(values.iter().zip(&mask).all(|(value, stays)| *value == if *stays { 4.0 } else { 0.0 }));
    let dropped = mask.iter().filter(|stays| !**stays).count() as f64 / COUNT as f64;
    assert!((dropped - 0.25).abs() < 0.02, "{dropped}");
}

#[test]
fn without_training_nothing_is_dropped() {
    let data = TestArray::from_values(&[3], &[1f32, f32::NAN, 3.0]);
    for version in [7, 10, 13] {
        let mask = if version == 7 { Dtype::F32 } else { Dtype::BOOL };
        let outputs: [Option<(Dtype, &[i64])>; 2] = [Some((Dtype::F32, &[3])), Some((mask, &[3]))];
        let results = KERNELS.run_kernel("Dropout", version, &[], &[Some(&data)], &outputs).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), data.bytes());
    }
}

#[test]
fn probabilities_beyond_one_are_refused() {
    let input = TestArray::from_values(&[1], &[1.5f32]);
    let message = KERNELS.refusal_message("Bernoulli", 15, &[], &[Some(&input)], &[Some((Dtype::F32, &[1]))]);
    assert!(message.contains("from 0 to 1"), "{message}");
}

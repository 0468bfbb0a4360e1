//! Distributions, the places that numbers depend on, and dropout.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_testing::isa_levels::isa_levels;
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

const STATE: [u64; 2] = [0x0123_4567_89ab_cdef, 1 << 33];

/// Numbers of `RandomSample` with parameters, each of one element or of `count`.
fn sample(isa: Isa, distribution: &str, dtype: Dtype, count: i64, parameters: &[TestArray]) -> TestArray {
    let (like, state) = (
        TestArray::from_values(&[count], &vec![false; count as usize]),
        TestArray::from_values(&[2], &STATE),
    );
    let mut inputs = vec![Some(&like), Some(&state)];
    inputs.extend(parameters.iter().map(Some));
    let attributes = [("distribution", TestAttribute::Text(distribution))];
    let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((dtype, &[count]))];
    let results = KERNELS
        .run_with_isa(&isa.to_string(), "oarlock:RandomSample", 1, &attributes, &inputs, &outputs)
        .unwrap();
    results.into_iter().next().unwrap().unwrap()
}

fn floats(values: &[f64]) -> TestArray {
    TestArray::from_values(&[values.len() as i64], values)
}

/// Each distribution with its parameters, and the mean and variance of its numbers.
fn distributions() -> Vec<(&'static str, Dtype, Vec<TestArray>, f64, f64)> {
    let mut all = Vec::new();
    for dtype in [Dtype::F32, Dtype::F64] {
        all.push(("uniform", dtype, vec![], 0.5, 1.0 / 12.0));
        all.push(("uniform", dtype, vec![floats(&[-1.0]), floats(&[3.0])], 1.0, 16.0 / 12.0));
        all.push(("normal", dtype, vec![], 0.0, 1.0));
        all.push(("normal", dtype, vec![floats(&[5.0]), floats(&[2.0])], 5.0, 4.0));
        all.push(("exponential", dtype, vec![floats(&[0.5])], 0.5, 0.25));
        for shape in [0.1, 0.9, 1.0, 4.5] {
            all.push(("gamma", dtype, vec![floats(&[shape]), floats(&[2.0])], 2.0 * shape, 4.0 * shape));
        }
    }
    let whole = |low: i64, high: i64| [low, high].map(|end| TestArray::from_values(&[1], &[end])).to_vec();
    all.push(("integers", Dtype::I64, whole(-3, 6), 1.5, 99.0 / 12.0));
    for mean in [0.0, 0.3, 9.5, 10.0, 250.0] {
        all.push(("poisson", Dtype::I64, vec![floats(&[mean])], mean, mean));
    }
    for (count, chance) in [(20.0, 0.0), (20.0, 0.1), (20.0, 0.9), (1000.0, 0.3), (1000.0, 0.7), (1e9, 0.5)] {
        let (mean, variance) = (count * chance, count * chance * (1.0 - chance));
        all.push(("binomial", Dtype::I64, vec![floats(&[count]), floats(&[chance])], mean, variance));
    }
    all
}

fn values_of(array: &TestArray, dtype: Dtype) -> Vec<f64> {
    match dtype {
        Dtype::F32 => array.values::<f32>().into_iter().map(f64::from).collect(),
        Dtype::F64 => array.values(),
        _ => array.values::<i64>().into_iter().map(|number| number as f64).collect(),
    }
}

#[test]
fn samples_have_the_mean_and_the_variance_of_their_distribution() {
    for (distribution, dtype, parameters, mean, variance) in distributions() {
        let values = values_of(&sample(Isa::best_level(), distribution, dtype, COUNT, &parameters), dtype);
        let (found_mean, found_variance) = mean_and_variance(&values);
        let told =
            format!("{distribution} {dtype:?}: {found_mean} {found_variance}, expected {mean} {variance}");
        // Four deviations of the mean, and twelve percent of the variance, which skewed distributions need.
        assert!((found_mean - mean).abs() <= 4.0 * (variance / COUNT as f64).sqrt(), "{told}");
        assert!((found_variance - variance).abs() <= 0.12 * variance, "{told}");
    }
}

#[test]
fn samples_are_the_same_bits_on_every_instruction_set_and_wherever_threads_cut() {
    for (distribution, dtype, parameters, ..) in distributions() {
        let expected = sample(Isa::Scalar, distribution, dtype, 3001, &parameters);
        for isa in isa_levels() {
            let found = sample(isa, distribution, dtype, 3001, &parameters);
            assert!(found.has_same_bytes(&expected), "{distribution} {dtype:?} {isa}");
        }
        // The first numbers of many are those of few, for which another number of threads works.
        let few = sample(Isa::Scalar, distribution, dtype, 77, &parameters);
        assert_eq!(values_of(&few, dtype), values_of(&expected, dtype)[..77], "{distribution} {dtype:?}");
    }
}

#[test]
fn each_number_may_have_parameters_of_its_own() {
    let many = |low: f64| floats(&(0..500).map(|at| low + f64::from(at)).collect::<Vec<_>>());
    let values =
        sample(Isa::best_level(), "uniform", Dtype::F64, 500, &[many(0.0), many(1.0)]).values::<f64>();
    assert!(values.iter().enumerate().all(|(at, value)| *value as usize == at));
    let values =
        sample(Isa::best_level(), "normal", Dtype::F32, 500, &[many(0.0), floats(&[0.0])]).values::<f32>();
    assert!(values.iter().enumerate().all(|(at, value)| *value == at as f32));
    let ends = TestArray::from_values(&[500], &(0..500).collect::<Vec<i64>>());
    let values =
        sample(Isa::best_level(), "integers", Dtype::I64, 500, &[ends.clone(), ends]).values::<i64>();
    assert!(values.into_iter().eq(0..500));
}

#[test]
fn permutations_have_each_number_once_and_every_order() {
    for count in [0, 1, 2, 31, 32, 33, 5000] {
        let mut values = sample(Isa::best_level(), "permutation", Dtype::I64, count, &[]).values::<i64>();
        assert!(count < 31 || !values.is_sorted());
        values.sort_unstable();
        assert!(values.into_iter().eq(0..count));
    }
    let first = sample(Isa::Scalar, "permutation", Dtype::I64, 5000, &[]);
    isa_levels().for_each(|isa| {
        assert!(sample(isa, "permutation", Dtype::I64, 5000, &[]).has_same_bytes(&first), "{isa}");
    });
}

#[test]
fn integers_reach_both_ends_of_every_range() {
    let ends = |low: i64, high: i64| [low, high].map(|end| TestArray::from_values(&[1], &[end])).to_vec();
    let values = sample(Isa::best_level(), "integers", Dtype::I64, 500, &ends(-2, 2)).values::<i64>();
    assert_eq!((values.iter().min(), values.iter().max()), (Some(&-2), Some(&2)));
    let values =
        sample(Isa::best_level(), "integers", Dtype::I64, 500, &ends(i64::MIN, i64::MAX)).values::<i64>();
    assert!(
        values.iter().any(|value| *value < i64::MIN / 2) && values.iter().any(|value| *value > i64::MAX / 2)
    );
}

#[test]
fn normal_numbers_are_normal_beyond_their_variance() {
    // The shares within one, two and three deviations.
    for dtype in [Dtype::F32, Dtype::F64] {
        let values = values_of(&sample(Isa::best_level(), "normal", dtype, 400_000, &[]), dtype);
        for (deviations, share) in [(1.0, 0.682_69), (2.0, 0.954_5), (3.0, 0.997_3)] {
            let found =
                values.iter().filter(|value| value.abs() < deviations).count() as f64 / values.len() as f64;
            assert!((found - share).abs() < 0.003, "{dtype:?}: {found} within {deviations}");
        }
    }
}

#[test]
fn what_a_distribution_does_not_have_is_refused() {
    let like = TestArray::from_values(&[2], &[false; 2]);
    let run = |name: &str, state: &[u64], dtype| {
        let state = TestArray::from_values(&[state.len() as i64], state);
        let attributes = [("distribution", TestAttribute::Text(name))];
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((dtype, &[2]))];
        KERNELS
            .run_kernel("oarlock:RandomSample", 1, &attributes, &[Some(&like), Some(&state)], &outputs)
            .unwrap_err()
    };
    assert!(
        run("cauchy", &STATE, Dtype::F32)
            .contains("`binomial`, `permutation` as `distribution`, found `cauchy`")
    );
    assert!(
        run("normal", &[1], Dtype::F32).contains("expected a key and an offset as state, found 1 numbers")
    );
    assert!(
        run("normal", &STATE, Dtype::I64).contains("expected a dtype that the distribution has, found i64")
    );
    assert!(run("bits", &STATE, Dtype::F64).contains("a distribution of floats for an output of floats"));
}

#[test]
fn parameters_for_which_no_number_would_ever_be_accepted_are_refused() {
    let (like, state) = (TestArray::from_values(&[1], &[false]), TestArray::from_values(&[2], &STATE));
    let refused = |distribution: &str, a: f64, b: f64| {
        let (a, b) = (floats(&[a]), floats(&[b]));
        let attributes = [("distribution", TestAttribute::Text(distribution))];
        let dtype = if distribution == "gamma" { Dtype::F64 } else { Dtype::I64 };
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((dtype, &[1]))];
        let inputs = [&like, &state, &a, &b].map(Some);
        KERNELS.run_kernel("oarlock:RandomSample", 1, &attributes, &inputs, &outputs).unwrap_err()
    };
    for a in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        for distribution in ["gamma", "poisson", "binomial"] {
            assert!(refused(distribution, a, 0.5).contains("expected `a` from 0 to "), "{distribution} {a}");
        }
    }
    for distribution in ["poisson", "binomial"] {
        assert!(
            refused(distribution, f64::INFINITY, 0.5).contains("expected `a` from 0 to "),
            "{distribution}"
        );
    }
    for b in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
        assert!(refused("binomial", 1e6, b).contains("expected `b` from 0 to 1"), "{b}");
    }
}

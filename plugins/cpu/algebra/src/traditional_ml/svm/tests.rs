//! Regressions and classifications by support vectors.

use oarlock_sdk::Dtype;

use crate::KERNELS;
use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

const SAMPLE_ROWS: [f32; 6] = [1.0, 0.0, -1.0, 2.0, 0.5, -2.0];
const SAMPLE_VECTORS: [f64; 6] = [1.0, 0.0, -1.0, 1.0, 0.0, -1.0];

fn run_svm(
    op: &str,
    attributes: &[(&str, TestAttribute<'_>)],
    outputs: &[Option<(Dtype, &[i64])>],
) -> Vec<TestArray> {
    let rows = TestArray::from_values(&[3, 2], &SAMPLE_ROWS);
    let made =
        KERNELS.run_kernel(&format!("ai.onnx.ml:{op}"), 1, attributes, &[Some(&rows)], outputs).unwrap();
    made.into_iter().flatten().collect()
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32]) {
    let is_near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 2e-5;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(is_near),
        "{found:?} for {expected:?}"
    );
}

fn run_classifier(attributes: &[(&str, TestAttribute<'_>)], scores: i64) -> (Vec<i64>, Vec<f32>) {
    let made =
        run_svm("SVMClassifier", attributes, &[Some((Dtype::I64, &[3])), Some((Dtype::F32, &[3, scores]))]);
    (made[0].values(), made[1].values())
}

#[test]
fn of_three_classes_each_pair_has_a_score_or_each_class_a_probability() {
    let three = |kind, more: &[(&'static str, TestAttribute<'static>)]| {
        let mut attributes = vec![
            ("kernel_type", TestAttribute::Text(kind)),
            ("kernel_params", TestAttribute::Floats(&[0.5, 1.0, 2.0])),
            ("support_vectors", TestAttribute::Floats(&SAMPLE_VECTORS)),
            ("vectors_per_class", TestAttribute::Ints(&[1, 1, 1])),
            ("coefficients", TestAttribute::Floats(&[1.0, -1.0, 0.5, 0.5, -0.75, -1.0])),
            ("rho", TestAttribute::Floats(&[0.1, -0.2, 0.05])),
            ("classlabels_ints", TestAttribute::Ints(&[4, 5, 6])),
        ];
        attributes.extend_from_slice(more);
        run_classifier(&attributes, 3)
    };
    let (labels, scores) = three("RBF", &[]);
    assert_eq!(labels, [4, 6, 4]);
    assert_near(
        &scores,
        &[1.017915, 0.48394, -0.379443, -0.488215, -0.187473, -0.411636, 0.215826, 0.127347, -0.487966],
    );
    let shares = [
        ("prob_a", TestAttribute::Floats(&[-1.0, -2.0, -1.5])),
        ("prob_b", TestAttribute::Floats(&[0.0, 0.1, -0.1])),
    ];
    let (labels, scores) = three("POLY", &shares);
    assert_eq!(labels, [4, 6, 4]);
    assert_near(
        &scores,
        &[0.867222, 0.065401, 0.067377, 0.200227, 0.08889, 0.710882, 0.897663, 0.082548, 0.019789],
    );
}

#[test]
fn of_two_classes_each_has_a_score() {
    let two = |more: &[(&'static str, TestAttribute<'static>)]| {
        let mut attributes = vec![
            ("kernel_type", TestAttribute::Text("SIGMOID")),
            ("kernel_params", TestAttribute::Floats(&[0.5, 0.1, 0.0])),
            ("support_vectors", TestAttribute::Floats(&SAMPLE_VECTORS[..4])),
            ("vectors_per_class", TestAttribute::Ints(&[1, 1])),
            ("coefficients", TestAttribute::Floats(&[1.0, -1.0])),
            ("rho", TestAttribute::Floats(&[0.1])),
            ("classlabels_ints", TestAttribute::Ints(&[0, 1])),
        ];
        attributes.extend_from_slice(more);
        run_classifier(&attributes, 2)
    };
    let (labels, scores) = two(&[]);
    assert_eq!(labels, [0, 1, 0]);
    assert_near(&scores, &[-1.016999, 1.016999, 1.201617, -1.201617, -1.25413, 1.25413]);
    let (_, scores) = two(&[("post_transform", TestAttribute::Text("LOGISTIC"))]);
    assert_near(&scores, &[0.265612, 0.734388, 0.768812, 0.231188, 0.221986, 0.778014]);
    let (_, scores) =
        two(&[("prob_a", TestAttribute::Floats(&[-1.0])), ("prob_b", TestAttribute::Floats(&[0.2]))]);
    assert_near(&scores, &[0.693599, 0.306401, 0.197522, 0.802478, 0.741567, 0.258433]);
}

#[test]
fn a_regression_weighs_vectors_or_without_any_features() {
    let regress = |attributes: &[(&str, TestAttribute<'_>)]| -> Vec<f32> {
        run_svm("SVMRegressor", attributes, &[Some((Dtype::F32, &[3, 1]))])[0].values()
    };
    let mut vectors = vec![
        ("kernel_type", TestAttribute::Text("RBF")),
        ("kernel_params", TestAttribute::Floats(&[0.5, 0.0, 0.0])),
        ("support_vectors", TestAttribute::Floats(&SAMPLE_VECTORS[..4])),
        ("coefficients", TestAttribute::Floats(&[2.0, -1.0])),
        ("rho", TestAttribute::Floats(&[0.25])),
        ("n_supports", TestAttribute::Int(2)),
    ];
    assert_near(&regress(&vectors), &[2.167915, -0.319899, 0.485259]);
    vectors.push(("one_class", TestAttribute::Int(1)));
    assert_near(&regress(&vectors), &[1.0, -1.0, 1.0]);
    let features =
        [("coefficients", TestAttribute::Floats(&[2.0, -1.0])), ("rho", TestAttribute::Floats(&[0.25]))];
    assert_near(&regress(&features), &[2.25, -3.75, 3.25]);
}

/// The similarity of two rows, one product after another.
fn plain_similarity(kind: &str, one: &[f64], other: &[f64]) -> f64 {
    let product: f64 = one.iter().zip(other).map(|(one, other)| one * other).sum();
    match kind {
        "LINEAR" => product,
        "POLY" => (product * 0.25 + 1.0).powi(3),
        "SIGMOID" => (product * 0.25 + 1.0).tanh(),
        _ => {
            let distance: f64 = one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum();
            (-0.25 * distance).exp()
        }
    }
}

#[test]
fn many_rows_and_vectors_are_weighed_as_few_are() {
    const ROWS: usize = 900;
    const COLUMNS: usize = 5;
    const VECTORS: usize = 150;
    let number = |at: usize| ((at * 37 % 101) as f64 - 50.0) / 64.0;
    let features: Vec<f32> = (0..ROWS * COLUMNS).map(|at| number(at * 3) as f32).collect();
    let vectors: Vec<f64> = (0..VECTORS * COLUMNS).map(|at| number(at + 7)).collect();
    let coefficients: Vec<f64> = (0..VECTORS).map(|at| number(at + 13)).collect();
    let rows = TestArray::from_values(&[ROWS as i64, COLUMNS as i64], &features);
    for kind in ["LINEAR", "POLY", "RBF", "SIGMOID"] {
        let attributes = [
            ("kernel_type", TestAttribute::Text(kind)),
            ("kernel_params", TestAttribute::Floats(&[0.25, 1.0, 3.0])),
            ("support_vectors", TestAttribute::Floats(&vectors)),
            ("coefficients", TestAttribute::Floats(&coefficients)),
            ("rho", TestAttribute::Floats(&[0.5])),
            ("n_supports", TestAttribute::Int(VECTORS as i64)),
        ];
        let expected = features.chunks(COLUMNS).map(|row| {
            let row: Vec<f64> = row.iter().map(|feature| f64::from(*feature)).collect();
            let weighed = vectors.chunks(COLUMNS).zip(&coefficients);
            0.5 + weighed.map(|(vector, weight)| weight * plain_similarity(kind, &row, vector)).sum::<f64>()
        });
        let outputs = [Some((Dtype::F32, &[ROWS as i64, 1][..]))];
        for isa in isa_levels() {
            let made = KERNELS.run_with_isa(
                &isa.to_string(),
                "ai.onnx.ml:SVMRegressor",
                1,
                &attributes,
                &[Some(&rows)],
                &outputs,
            );
            let made: Vec<f32> = made.unwrap().remove(0).unwrap().values();
            for (at, (found, expected)) in made.iter().zip(expected.clone()).enumerate() {
                let gap = (f64::from(*found) - expected).abs();
                assert!(
                    gap <= 1e-6 * expected.abs().max(1.0),
                    "{kind} {isa} row {at}: {found} for {expected}"
                );
            }
        }
    }
}

#[test]
fn a_row_with_an_infinite_feature_resembles_no_vector() {
    let rows = TestArray::from_values(&[2, 2], &[f32::INFINITY, 1.0, f32::NAN, 0.0]);
    let attributes = [
        ("kernel_type", TestAttribute::Text("RBF")),
        ("kernel_params", TestAttribute::Floats(&[0.5, 0.0, 0.0])),
        ("support_vectors", TestAttribute::Floats(&SAMPLE_VECTORS[..4])),
        ("coefficients", TestAttribute::Floats(&[2.0, -1.0])),
        ("rho", TestAttribute::Floats(&[0.25])),
        ("n_supports", TestAttribute::Int(2)),
    ];
    let outputs = [Some((Dtype::F32, &[2, 1][..]))];
    let made = KERNELS.run_kernel("ai.onnx.ml:SVMRegressor", 1, &attributes, &[Some(&rows)], &outputs);
    let made: Vec<f32> = made.unwrap().remove(0).unwrap().values();
    assert!(made[0] == 0.25 && made[1].is_nan(), "{made:?}");
}

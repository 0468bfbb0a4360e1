//! Test suite for a BLAS plugin: its kernels are called through the C tables on awkward operands and compared with plain loops.
//! All numbers are small integers, so every order of summation gives the same bits.

#![expect(unsafe_code, reason = "rows are called through a C table")]

mod kernel_harness;

use std::fmt::Debug;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use oarlock_sdk::{Element, abi};

use self::kernel_harness::{KernelHarness, TestOperand};

/// A check, and the sentence that is true if it passes.
type PluginCheck = (&'static str, fn(&KernelHarness));

/// Runs the checks, with the library in an environment variable or else the one the plugin finds.
pub fn main(query: abi::PluginQuery, variable: &str) -> ExitCode {
    let library = std::env::var(variable).ok();
    let loaded = KernelHarness::new(query, library.as_deref()).map(Arc::new);
    // A library that was asked for and is missing is an error, not a reason to skip the tests.
    if let (Err(message), None) = (&loaded, &library) {
        eprintln!("\nTHESE TESTS ARE NOT RUN: {message}; `{variable}` may name its file\n");
    }
    let may_lack = library.is_none();
    let mut trials: Vec<Trial> = CHECKS
        .iter()
        .map(|(name, check)| {
            let (loaded, is_lacking) = (loaded.clone(), loaded.is_err() && may_lack);
            let run = move || {
                check(&*loaded?);
                Ok(())
            };
            Trial::test(*name, run).with_ignored_flag(is_lacking)
        })
        .collect();
    let is_lacking = loaded.is_err() && may_lack;
    let conforms = move || {
        let report = loaded?.run_suite();
        if report.has_passed() { Ok(()) } else { Err(report.render_text().into()) }
    };
    trials.push(Trial::test("the_kernels_conform", conforms).with_ignored_flag(is_lacking));
    trials.push(Trial::test("a_file_that_is_not_there_is_refused", move || {
        let message = KernelHarness::new(query, Some("/nowhere/libblas.so")).err().ok_or("it was taken")?;
        let end = "in the option `library`, found `/nowhere/libblas.so`";
        if message.ends_with(end) { Ok(()) } else { Err(message.into()) }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

const CHECKS: [PluginCheck; 9] = [
    ("matmul_agrees_with_plain_loops_in_f32", check_matmul::<f32>),
    ("matmul_agrees_with_plain_loops_in_f64", check_matmul::<f64>),
    ("gemm_agrees_with_plain_loops_in_f32", check_gemm::<f32>),
    ("gemm_agrees_with_plain_loops_in_f64", check_gemm::<f64>),
    ("products_that_are_cut_for_several_threads_agree_too", check_partitioned_products),
    ("calls_on_several_threads_do_not_disturb_each_other", check_concurrent_runs),
    ("no_number_that_is_none_gets_lost", check_nan_propagation),
    ("shapes_that_do_not_fit_are_refused_with_what_was_found", check_shape_mismatches),
    ("what_a_library_cannot_count_is_left_to_others", check_oversized_dimensions),
];

trait TestElement: Element + From<f32> + Into<f64> + PartialEq + Debug {}
impl TestElement for f32 {}
impl TestElement for f64 {}

/// Integers from -4 to 4 in scrambled order.
fn sample_numbers<T: TestElement>(dims: &[i64], seed: usize) -> Vec<T> {
    let count = dims.iter().product::<i64>() as usize;
    (0..count).map(|index| T::from(((index * 7 + seed + index / 5) % 9) as f32 - 4.0)).collect()
}

fn test_operand<'a, T>(dims: &'a [i64], elements: &'a [T]) -> Option<TestOperand<'a, T>> {
    Some(TestOperand { dims, elements })
}

/// Shapes of both inputs and of the output.
type MatMulCase<'a> = (&'a [i64], &'a [i64], &'a [i64]);

fn check_matmul<T: TestElement>(loaded: &KernelHarness) {
    let cases: [MatMulCase<'_>; 16] = [
        (&[1, 1], &[1, 1], &[1, 1]),
        (&[3, 5], &[5, 7], &[3, 7]),
        (&[17, 31], &[31, 1], &[17, 1]),
        (&[1, 129], &[129, 33], &[1, 33]),
        (&[5], &[5], &[]),
        (&[5], &[5, 3], &[3]),
        (&[2, 4, 5], &[5], &[2, 4]),
        (&[5], &[2, 5, 3], &[2, 3]),
        (&[2, 3, 4, 5], &[5, 6], &[2, 3, 4, 6]),
        (&[2, 1, 4, 5], &[3, 5, 2], &[2, 3, 4, 2]),
        (&[4, 5], &[3, 2, 5, 2], &[3, 2, 4, 2]),
        (&[1, 4, 5], &[2, 1, 5, 2], &[2, 1, 4, 2]),
        (&[3, 0], &[0, 4], &[3, 4]),
        (&[0, 3], &[3, 4], &[0, 4]),
        (&[2, 0, 3], &[2, 3, 4], &[2, 0, 4]),
        (&[0, 2, 3], &[3, 4], &[0, 2, 4]),
    ];
    for (a, b, y) in cases {
        check_matmul_case::<T>(loaded, (a, b, y));
    }
}

fn check_matmul_case<T: TestElement>(loaded: &KernelHarness, (a, b, y): MatMulCase<'_>) {
    let (left, right) = (sample_numbers::<T>(a, 1), sample_numbers::<T>(b, 5));
    let found = loaded.run_kernel("MatMul", &[], &[test_operand(a, &left), test_operand(b, &right)], y);
    let found = found.unwrap_or_else(|message| panic!("{a:?} × {b:?}: {message}"));
    assert_eq!(found, reference_matmul((a, &left), (b, &right), y), "{a:?} × {b:?}");
}

/// Naive `MatMul`: each output element is computed from its own index.
fn reference_matmul<T: TestElement>(
    (a, left): (&[i64], &[T]),
    (b, right): (&[i64], &[T]),
    y: &[i64],
) -> Vec<T> {
    // A 1-D operand is a row on the left and a column on the right.
    let a_whole = if a.len() == 1 { vec![1, a[0]] } else { a.to_vec() };
    let b_whole = if b.len() == 1 { vec![b[0], 1] } else { b.to_vec() };
    let (rows, depth) = (a_whole[a_whole.len() - 2], a_whole[a_whole.len() - 1]);
    let columns = b_whole[b_whole.len() - 1];
    let batch = &y[..a_whole.len().max(b_whole.len()) - 2];
    let start = |whole: &[i64], product: i64| {
        let own = &whole[..whole.len() - 2];
        let (mut rest, mut at, mut step) = (product, 0, whole[whole.len() - 2] * whole[whole.len() - 1]);
        for (axis, size) in batch.iter().enumerate().rev() {
            let index = rest % size;
            rest /= size;
            if let Some(axis) = (axis + own.len()).checked_sub(batch.len()) {
                at += if own[axis] == 1 { 0 } else { index * step };
                step *= own[axis];
            }
        }
        at
    };
    let number = |index: i64| {
        let (product, row, column) = (index / (rows * columns), index / columns % rows, index % columns);
        let (a_start, b_start) = (start(&a_whole, product), start(&b_whole, product));
        let step = |step: i64| {
            let left: f64 = left[(a_start + row * depth + step) as usize].into();
            let right: f64 = right[(b_start + step * columns + column) as usize].into();
            left * right
        };
        T::from((0..depth).map(step).sum::<f64>() as f32)
    };
    (0..y.iter().product()).map(number).collect()
}

fn check_gemm<T: TestElement>(loaded: &KernelHarness) {
    for (rows, columns, depth) in
        [(1, 1, 1), (3, 5, 7), (64, 33, 65), (1, 40, 9), (40, 1, 9), (5, 4, 0), (0, 3, 2), (3, 0, 2)]
    {
        for (a_transposed, b_transposed) in [(false, false), (false, true), (true, false), (true, true)] {
            let c_shapes: [Option<&[i64]>; 7] = [
                None,
                Some(&[]),
                Some(&[1]),
                Some(&[columns]),
                Some(&[rows, 1]),
                Some(&[1, columns]),
                Some(&[rows, columns]),
            ];
            for c in c_shapes {
                for (alpha, beta) in [(1.0, 1.0), (0.5, 2.0), (-2.0, 0.0)] {
                    check_gemm_case::<T>(
                        loaded,
                        (rows, columns, depth),
                        (a_transposed, b_transposed),
                        c,
                        (alpha, beta),
                    );
                }
            }
        }
    }
}

fn check_gemm_case<T: TestElement>(
    loaded: &KernelHarness,
    (rows, columns, depth): (i64, i64, i64),
    (a_transposed, b_transposed): (bool, bool),
    c: Option<&[i64]>,
    (alpha, beta): (f64, f64),
) {
    let a = if a_transposed { [depth, rows] } else { [rows, depth] };
    let b = if b_transposed { [columns, depth] } else { [depth, columns] };
    let (left, right) = (sample_numbers::<T>(&a, 2), sample_numbers::<T>(&b, 3));
    let addend = c.map(|c| sample_numbers::<T>(c, 4));
    let addend = c.zip(addend.as_deref());
    let attributes =
        [("transA", a_transposed.into()), ("transB", b_transposed.into()), ("alpha", alpha), ("beta", beta)];
    let inputs = [
        test_operand(&a, &left),
        test_operand(&b, &right),
        addend.and_then(|(dims, elements)| test_operand(dims, elements)),
    ];
    let case = format!("{rows} × {columns} × {depth} {attributes:?} with C of {c:?}");
    let found = loaded.run_kernel("Gemm", &attributes, &inputs, &[rows, columns]);
    let found = found.unwrap_or_else(|message| panic!("{case}: {message}"));
    let number = |index: i64| {
        let (row, column) = (index / columns, index % columns);
        let step = |step: i64| {
            let left = left[(if a_transposed { step * rows + row } else { row * depth + step }) as usize];
            let right =
                right[(if b_transposed { column * depth + step } else { step * columns + column }) as usize];
            left.into() * right.into()
        };
        let added = addend.map_or(0.0, |(dims, elements)| {
            let at = match dims {
                [1] | [] => 0,
                [_] => column,
                [c_rows, c_columns] => {
                    (if *c_rows == 1 { 0 } else { row }) * c_columns
                        + (if *c_columns == 1 { 0 } else { column })
                }
                _ => unreachable!("no case has more dimensions"),
            };
            beta * elements[at as usize].into()
        });
        T::from((alpha * (0..depth).map(step).sum::<f64>() + added) as f32)
    };
    assert_eq!(found, (0..rows * columns).map(number).collect::<Vec<T>>(), "{case}");
}

fn check_partitioned_products(loaded: &KernelHarness) {
    check_matmul_case::<f32>(loaded, (&[301, 67], &[67, 259], &[301, 259]));
    check_matmul_case::<f64>(loaded, (&[2, 96, 130], &[2, 130, 131], &[2, 96, 131]));
    for transposed in [(false, false), (true, true), (false, true), (true, false)] {
        check_gemm_case::<f32>(loaded, (17, 1003, 200), transposed, Some(&[17, 1]), (0.5, 2.0));
        check_gemm_case::<f64>(loaded, (1003, 17, 200), transposed, Some(&[17]), (2.0, 0.5));
        check_gemm_case::<f32>(loaded, (1, 2050, 1025), transposed, None, (1.0, 1.0));
    }
}

fn check_concurrent_runs(loaded: &KernelHarness) {
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for size in [1, 40, 130] {
                    check_matmul_case::<f32>(loaded, (&[size, 70], &[70, 150], &[size, 150]));
                    check_matmul_case::<f64>(loaded, (&[size, 30], &[30, 20], &[size, 20]));
                }
            });
        }
    });
}

fn check_nan_propagation(loaded: &KernelHarness) {
    let (a, b, c) = ([f32::NAN, 1.0, 2.0, 0.0], [1.0, 0.0, f32::INFINITY, 1.0], [f32::NAN, 1.0]);
    let square = [2, 2];
    let inputs = || [test_operand(&square, &a), test_operand(&square, &b), test_operand(&[2], &c)];
    let found = loaded.run_kernel("MatMul", &[], &inputs()[..2], &square).expect("a product");
    assert!(found[..3].iter().all(|number| number.is_nan()) && found[3] == 0.0, "{found:?}");
    let finite = [1.0, 1.0, 2.0, 3.0];
    let with_addend =
        [test_operand(&square, &finite), test_operand(&square, &finite), test_operand(&[2], &c)];
    let found = loaded.run_kernel("Gemm", &[("beta", 0.0)], &with_addend, &square).expect("a product");
    assert!(found[0].is_nan() && found[2].is_nan() && [found[1], found[3]] == [4.0, 11.0], "{found:?}");
    let refused = loaded.check_support("Gemm", &[("alpha", 0.0)], &inputs(), &square);
    assert_eq!(refused.expect_err("a refusal"), "expected an `alpha` that does not vanish in f32, found 0");
}

fn check_shape_mismatches(loaded: &KernelHarness) {
    let numbers = [1f32; 12];
    let run = |op, a: &[i64], b: &[i64], c: Option<&[i64]>, y: &[i64]| {
        let inputs =
            [test_operand(a, &numbers), test_operand(b, &numbers), c.and_then(|c| test_operand(c, &numbers))];
        let count = if op == "MatMul" { 2 } else { 3 };
        loaded.run_kernel(op, &[], &inputs[..count], y).expect_err("a refusal")
    };
    for (message, found) in [
        (run("MatMul", &[2, 3], &[2, 3], None, &[2, 3]), "found [2, 3] and [2, 3]"),
        (run("MatMul", &[2, 3], &[3, 2], None, &[2, 3]), "found [2, 3]"),
        (run("MatMul", &[5, 3], &[3, 2], None, &[5, 2]), "found 48 bytes"),
        (run("Gemm", &[2, 3], &[2, 3], None, &[2, 3]), "found 3 and 2 in shapes [2, 3] and [2, 3]"),
        (run("Gemm", &[2, 3], &[3, 2], Some(&[3]), &[2, 2]), "found shape [3]"),
        (run("Gemm", &[2, 3], &[3, 2], None, &[3, 3]), "found [3, 3]"),
    ] {
        assert!(message.starts_with("expected ") && message.ends_with(found), "{message}");
    }
}

fn check_oversized_dimensions(loaded: &KernelHarness) {
    // No memory is behind these shapes: the refusal must come before any element is read.
    let many = 1 << 31;
    let nothing: [f32; 0] = [];
    for op in ["MatMul", "Gemm"] {
        for (a, b) in [([1, many], [many, 1]), ([many, 1], [1, 1]), ([1, 1], [1, many])] {
            let inputs = [test_operand(&a, &nothing), test_operand(&b, &nothing)];
            let refused = loaded.check_support(op, &[], &inputs, &[a[0], b[1]]).expect_err("a refusal");
            assert_eq!(refused, "expected dimensions of at most 2147483647, found 2147483648", "{op}");
        }
    }
}

//! Compares fused products with naive sums.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, bf16};

use crate::KERNELS;

struct FusedMatmulCase {
    a: Vec<i64>,
    b: Vec<i64>,
    transposed: (bool, bool),
    c: Option<Vec<i64>>,
    has_residual: bool,
    alpha: f64,
    activation: &'static str,
    is_constant: bool,
    is_rounded: bool,
}

fn random_numbers(dims: &[i64], seed: u32) -> Vec<f32> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..dims.iter().product()).map(|_: i64| next()).collect()
}

/// The index of an element in broadcast dimensions.
fn broadcast_index(dims: &[i64], place: &[i64]) -> usize {
    let skipped = place.len() - dims.len();
    dims.iter().zip(&place[skipped..]).fold(0, |at, (dim, place)| at * dim + place % dim) as usize
}

impl FusedMatmulCase {
    /// True if a bf16 kernel exists for this product.
    fn has_bf16_kernel(&self, isa: &str) -> bool {
        let isa = oarlock_cpu_testing::isa_levels::best_isa().min(match isa {
            "scalar" => Isa::Scalar,
            "sse4.1" => Isa::Sse41,
            "avx2" => Isa::Avx2,
            "avx-vnni" => Isa::AvxVnni,
            _ => Isa::Avx512,
        });
        let rows: i64 = self.a.iter().rev().skip(1).product();
        isa.prefers_bf16() || isa > Isa::Scalar && rows <= 4
    }

    fn check_case(&self) {
        let turn = |dims: &[i64], transposed: bool| {
            let mut dims = dims.to_vec();
            let rank = dims.len();
            if transposed {
                dims.swap(rank - 2, rank - 1);
            }
            dims
        };
        let (a, b) = (turn(&self.a, self.transposed.0), turn(&self.b, self.transposed.1));
        let stack = |dims: &[i64]| dims[..dims.len() - 2].to_vec();
        let (left, right) = (stack(&a), stack(&b));
        let rank = left.len().max(right.len());
        let dim = |dims: &[i64], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
        let mut dims: Vec<i64> = (0..rank)
            .map(|axis| if dim(&left, axis) == 1 { dim(&right, axis) } else { dim(&left, axis) })
            .collect();
        dims.extend([a[a.len() - 2], b[b.len() - 1]]);
        let factors = |dims: &[i64], seed: u32| {
            let round = |number| if self.is_rounded { bf16::from_f32(number).to_f32() } else { number };
            (
                random_numbers(dims, seed),
                random_numbers(dims, seed).into_iter().map(round).collect::<Vec<_>>(),
            )
        };
        let ((x_given, x), (y_given, y)) = (factors(&self.a, 1), factors(&self.b, 2));
        let (c, z) = (self.c.as_ref().map(|dims| random_numbers(dims, 3)), random_numbers(&dims, 4));
        let depth = a[a.len() - 1];
        let at = |dims: &[i64], values: &[f32], transposed: bool, stack: &[i64], row: i64, column: i64| {
            let place = if transposed { [column, row] } else { [row, column] };
            f64::from(values[broadcast_index(dims, &[stack, &place].concat())])
        };
        let element = |number: i64| {
            let (mut place, mut rest) = (vec![0; dims.len()], number);
            for (place, dim) in place.iter_mut().zip(&dims).rev() {
                (*place, rest) = (rest % dim, rest / dim);
            }
            let (stack, row, column) = (&place[..rank], place[rank], place[rank + 1]);
            let product = |step| {
                at(&self.a, &x, self.transposed.0, stack, row, step)
                    * at(&self.b, &y, self.transposed.1, stack, step, column)
            };
            let mut sum = self.alpha * (0..depth).map(product).sum::<f64>();
            if let (Some(dims), Some(c)) = (&self.c, &c) {
                sum += f64::from(c[broadcast_index(dims, &[row, column])]);
            }
            if self.has_residual {
                sum += f64::from(z[number as usize]);
            }
            match self.activation {
                "Relu" => sum.max(0.0),
                "Tanh" => sum.tanh(),
                _ => sum,
            }
        };
        let expected: Vec<f64> = (0..dims.iter().product()).map(element).collect();
        let array = |dims: &[i64], values: &[f32]| TestArray::from_values(dims, values);
        let right = array(&self.b, &y_given);
        let right = if self.is_constant { right.into_constant() } else { right };
        let (left, residual) = (array(&self.a, &x_given), array(&dims, &z));
        let addend = self.c.as_ref().zip(c.as_ref()).map(|(dims, c)| array(dims, c));
        let attributes = [
            ("transA", TestAttribute::Int(self.transposed.0.into())),
            ("transB", TestAttribute::Int(self.transposed.1.into())),
            ("alpha", TestAttribute::Float(self.alpha)),
            ("activation", TestAttribute::Text(self.activation)),
            ("precision", TestAttribute::Text(if self.is_rounded { "bf16" } else { "" })),
        ];
        let inputs = [Some(&left), Some(&right), addend.as_ref(), self.has_residual.then_some(&residual)];
        for isa in ["scalar", "sse4.1", "avx2", "avx512"] {
            let outputs = [Some((Dtype::F32, dims.as_slice()))];
            let found = KERNELS.run_with_isa(isa, "oarlock:MatMul", 1, &attributes, &inputs, &outputs);
            if self.is_rounded && !self.has_bf16_kernel(isa) {
                let message = found.unwrap_err();
                assert!(message.contains("faster than f32"), "{message}");
                continue;
            }
            let found = found.unwrap();
            let found = found[0].as_ref().unwrap().values::<f32>();
            for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                let is_close = (expected - f64::from(found)).abs() <= 1e-5 * (1.0 + depth as f64).sqrt();
                assert!(
                    is_close,
                    "{:?} × {:?} turned {:?} with {isa}: element {number} is {found} and not {expected}",
                    self.a, self.b, self.transposed
                );
            }
        }
    }
}

fn matmul_case(a: &[i64], b: &[i64]) -> FusedMatmulCase {
    FusedMatmulCase {
        a: a.to_vec(),
        b: b.to_vec(),
        transposed: (false, false),
        c: None,
        has_residual: false,
        alpha: 1.0,
        activation: "",
        is_constant: false,
        is_rounded: false,
    }
}

#[test]
fn products_of_awkward_sizes_are_scaled_added_to_and_bent() {
    let sizes = [1i64, 2, 4, 5, 14, 15, 31, 33, 64, 100];
    for number in 0..20 {
        let size = |factor: usize| sizes[(number * factor + number / 10 * 3) % 10];
        let (rows, columns, depth) = (size(1), size(7), size(3));
        for transposed in [(false, false), (true, false), (false, true), (true, true)] {
            let a = if transposed.0 { [depth, rows] } else { [rows, depth] };
            let b = if transposed.1 { [columns, depth] } else { [depth, columns] };
            FusedMatmulCase {
                transposed,
                c: [None, Some(vec![columns]), Some(vec![rows, 1]), Some(vec![rows, columns])][number % 4]
                    .clone(),
                has_residual: number % 3 == 0,
                alpha: if number % 2 == 0 { 1.0 } else { 0.5 },
                activation: ["", "Relu", "Tanh"][number % 3],
                is_constant: number % 5 < 3,
                ..matmul_case(&a, &b)
            }
            .check_case();
        }
    }
}

#[test]
fn stacks_of_matrices_are_repeated_to_one_another() {
    for transposed in [(false, false), (true, false), (true, true)] {
        for is_constant in [false, true] {
            for (left, right) in [(&[2i64, 3][..], &[][..]), (&[], &[3]), (&[2, 1], &[3]), (&[2, 3], &[2, 3])]
            {
                let a = if transposed.0 { [7, 5] } else { [5, 7] };
                let b = if transposed.1 { [6, 7] } else { [7, 6] };
                let (a, b) = ([left, &a].concat(), [right, &b].concat());
                let c = Some(vec![5, 1]);
                FusedMatmulCase {
                    transposed,
                    c,
                    has_residual: true,
                    activation: "Relu",
                    is_constant,
                    ..matmul_case(&a, &b)
                }
                .check_case();
            }
        }
    }
}

#[test]
fn a_deep_product_of_few_rows_is_computed_where_its_constant_lies() {
    for transposed in [(false, false), (false, true)] {
        for rows in 1..=5 {
            let b = if transposed.1 { [70, 1000] } else { [1000, 70] };
            let c = Some(vec![70]);
            FusedMatmulCase { transposed, c, is_constant: true, ..matmul_case(&[rows, 1000], &b) }
                .check_case();
        }
    }
}

#[test]
fn rounded_products_are_sums_of_products_of_rounded_numbers() {
    let sizes = [1i64, 2, 3, 4, 14, 15, 33, 64, 101];
    for number in 0..18 {
        let size = |factor: usize| sizes[(number * factor + number / 9 * 2) % 9];
        let (rows, columns, depth) = (size(1), size(7), size(5));
        for is_transposed in [false, true] {
            let b = if is_transposed { [columns, depth] } else { [depth, columns] };
            FusedMatmulCase {
                transposed: (false, is_transposed),
                c: [None, Some(vec![columns]), Some(vec![1, columns])][number % 3].clone(),
                has_residual: number % 4 == 0,
                activation: ["", "Relu", "Tanh"][number / 2 % 3],
                is_constant: true,
                is_rounded: true,
                ..matmul_case(&[rows, depth], &b)
            }
            .check_case();
        }
    }
    // The rows of several matrices in one product, and a matrix that is deeper than one block of the depth.
    FusedMatmulCase { is_constant: true, is_rounded: true, ..matmul_case(&[2, 3, 5, 7], &[7, 40]) }
        .check_case();
    FusedMatmulCase { is_constant: true, is_rounded: true, ..matmul_case(&[1, 3000], &[3000, 70]) }
        .check_case();
    FusedMatmulCase {
        is_constant: true,
        is_rounded: true,
        c: Some(vec![3]),
        ..matmul_case(&[2, 0], &[0, 3])
    }
    .check_case();
}

#[test]
fn what_is_not_rounded_once_and_for_all_is_not_rounded() {
    let wanted = [("precision", TestAttribute::Text("bf16"))];
    let (a, c) = (TestArray::from_values(&[2, 2], &[1f32; 4]), TestArray::from_values(&[2, 1], &[1f32; 2]));
    let b = TestArray::from_values(&[2, 2], &[1f32; 4]).into_constant();
    let outputs = [Some((Dtype::F32, &[2i64, 2][..]))];
    let message = |attributes: &[(&str, TestAttribute<'_>)], inputs: &[Option<&TestArray>]| {
        KERNELS.run_with_isa("", "oarlock:MatMul", 1, attributes, inputs, &outputs).unwrap_err()
    };
    assert!(message(&wanted, &[Some(&a), Some(&a)]).contains("one constant B"));
    assert!(message(&wanted, &[Some(&a), Some(&b), Some(&c)]).contains("the same C for all rows"));
    let scaled = [wanted[0], ("alpha", TestAttribute::Float(2.0))];
    assert!(message(&scaled, &[Some(&a), Some(&b)]).contains("no factor"));
    let unknown = [("precision", TestAttribute::Text("f8"))];
    assert!(message(&unknown, &[Some(&a), Some(&b)]).contains("expected `precision` to be empty or `bf16`"));
}

#[test]
fn a_fused_product_with_empty_dimensions_keeps_its_addends() {
    FusedMatmulCase {
        c: Some(vec![3]),
        has_residual: true,
        activation: "Relu",
        ..matmul_case(&[2, 0], &[0, 3])
    }
    .check_case();
    FusedMatmulCase { c: Some(vec![3]), ..matmul_case(&[4, 0, 2], &[2, 3]) }.check_case();
    FusedMatmulCase { is_constant: true, ..matmul_case(&[5, 2], &[2, 0]) }.check_case();
}

#[test]
fn what_is_no_number_or_infinite_spreads_as_in_sums() {
    let a = TestArray::from_values(&[2, 2], &[f32::NAN, 1.0, f32::INFINITY, 1.0]);
    let b = TestArray::from_values(&[2, 1], &[1.0f32, 1.0]);
    let relu = [("activation", TestAttribute::Text("Relu"))];
    let inputs = [Some(&a), Some(&b), None, None];
    let found = KERNELS
        .run_with_isa("", "oarlock:MatMul", 1, &relu, &inputs, &[Some((Dtype::F32, &[2, 1]))])
        .unwrap();
    let found = found[0].as_ref().unwrap().values::<f32>();
    assert!(found[0].is_nan() && found[1] == f32::INFINITY, "{found:?}");
}

#[test]
fn a_residual_of_another_shape_is_refused() {
    let (a, z) = (TestArray::from_values(&[2, 2], &[1f32; 4]), TestArray::from_values(&[1, 2], &[1f32; 2]));
    let inputs = [Some(&a), Some(&a), None, Some(&z)];
    let found = KERNELS.run_with_isa("", "oarlock:MatMul", 1, &[], &inputs, &[Some((Dtype::F32, &[2, 2]))]);
    let message = found.unwrap_err();
    assert!(message.contains("Z of shape [2, 2], found [1, 2]"), "{message}");
}

//! Matrix products.

use oarlock_sdk::Dtype;

use super::super::{PluginMachine, TestData};
use super::reference::{FLOAT_DTYPES, all_indices, broadcast_position};

/// Reference product of two batches of matrices, each broadcast to the batch of the output.
fn reference_product(dims: &[i64], a: &TestData, b: &TestData) -> Vec<f64> {
    let (a_values, b_values) = (a.to_values(), b.to_values());
    let rank = dims.len();
    let depth = a.dims[a.dims.len() - 1];
    let at = |data: &TestData, index: &[i64], row: i64, column: i64| {
        let index = [&index[..rank - 2], &[row, column]].concat();
        broadcast_position(&data.dims, &index[rank - data.dims.len()..])
    };
    let element = |index: &Vec<i64>| {
        let (row, column) = (index[rank - 2], index[rank - 1]);
        (0..depth).map(|k| a_values[at(a, index, row, k)] * b_values[at(b, index, k, column)]).sum()
    };
    all_indices(dims).iter().map(element).collect()
}

pub(super) fn products_of_odd_sizes_are_right(machine: &PluginMachine) {
    // One tile exactly, one element more and less than a tile, and a depth of many slices.
    for (m, k, n) in [(1, 1, 1), (3, 5, 7), (64, 16, 64), (65, 17, 63), (1, 300, 129)] {
        for dtype in FLOAT_DTYPES {
            let (a, b) =
                (TestData::sample_elements(dtype, &[m, k], 1), TestData::sample_elements(dtype, &[k, n], 4));
            let call =
                machine.op_trial("MatMul", 13).with_input(&a).with_input(&b).with_output(dtype, &[m, n]);
            call.expect_output(1e-5, &reference_product(&[m, n], &a, &b));
        }
        for dtype in [Dtype::I32, Dtype::I64, Dtype::U32, Dtype::U64] {
            let (a, b) =
                (TestData::sample_elements(dtype, &[m, k], 2), TestData::sample_elements(dtype, &[k, n], 3));
            let call =
                machine.op_trial("MatMul", 13).with_input(&a).with_input(&b).with_output(dtype, &[m, n]);
            call.expect_output(0.0, &reference_product(&[m, n], &a, &b));
        }
    }
}

pub(super) fn batches_are_repeated(machine: &PluginMachine) {
    for (a_batch, b_batch, batch) in [
        (&[2, 3][..], &[2, 3][..], &[2, 3][..]),
        (&[2, 1], &[3], &[2, 3]),
        (&[], &[2, 3], &[2, 3]),
        (&[4], &[], &[4]),
    ] {
        let (a_dims, b_dims, dims) =
            ([a_batch, &[5, 6]].concat(), [b_batch, &[6, 4]].concat(), [batch, &[5, 4]].concat());
        let (a, b) = (
            TestData::sample_elements(Dtype::F32, &a_dims, 1),
            TestData::sample_elements(Dtype::F32, &b_dims, 4),
        );
        let call =
            machine.op_trial("MatMul", 13).with_input(&a).with_input(&b).with_output(Dtype::F32, &dims);
        call.expect_output(1e-5, &reference_product(&dims, &a, &b));
    }
}

pub(super) fn vectors_are_rows_and_columns(machine: &PluginMachine) {
    let vector = TestData::sample_elements(Dtype::F32, &[70], 1);
    let matrix = TestData::sample_elements(Dtype::F32, &[70, 9], 4);
    let (row, column) =
        (TestData { dims: vec![1, 70], ..vector.clone() }, TestData { dims: vec![70, 1], ..vector.clone() });
    let call = |a: &TestData, b: &TestData, dims: &[i64]| {
        machine.op_trial("MatMul", 13).with_input(a).with_input(b).with_output(Dtype::F32, dims)
    };
    call(&vector, &matrix, &[9]).expect_output(1e-5, &reference_product(&[1, 9], &row, &matrix));
    let turned = TestData::sample_elements(Dtype::F32, &[2, 9, 70], 4);
    call(&turned, &vector, &[2, 9]).expect_output(1e-5, &reference_product(&[2, 9, 1], &turned, &column));
    call(&vector, &vector, &[]).expect_output(1e-5, &reference_product(&[1, 1], &row, &column));
}

pub(super) fn factors_may_be_transposed_and_scaled(machine: &PluginMachine) {
    // No size is a multiple of a tile or a slice.
    let (m, k, n) = (67, 18, 5);
    for dtype in FLOAT_DTYPES {
        for (a_turned, b_turned) in [(false, false), (true, false), (false, true), (true, true)] {
            for c_dims in [None, Some(vec![]), Some(vec![n]), Some(vec![m, 1]), Some(vec![m, n])] {
                let turned = |data: TestData| {
                    let (rows, columns) = (data.dims[0], data.dims[1]);
                    data.with_strides(&[columns, rows], &[1, columns])
                };
                let a = TestData::sample_elements(dtype, &if a_turned { [k, m] } else { [m, k] }, 1);
                let b = TestData::sample_elements(dtype, &if b_turned { [n, k] } else { [k, n] }, 4);
                let (left, right) = (
                    if a_turned { turned(a.clone()) } else { a.clone() },
                    if b_turned { turned(b.clone()) } else { b.clone() },
                );
                let plain = |data: &TestData| TestData::new(data.dtype, &data.dims, &data.to_values());
                let products = reference_product(&[m, n], &plain(&left), &plain(&right));
                let c = c_dims.as_ref().map(|dims| TestData::sample_elements(dtype, dims, 7));
                let c_values = c.as_ref().map(TestData::to_values).unwrap_or_default();
                let added = |index: &[i64]| {
                    c.as_ref()
                        .map_or(0.0, |c| c_values[broadcast_position(&c.dims, &index[2 - c.dims.len()..])])
                };
                let expected: Vec<f64> = all_indices(&[m, n])
                    .iter()
                    .zip(products)
                    .map(|(index, product)| 0.5 * product + 2.0 * added(index))
                    .collect();
                let call = machine
                    .op_trial("Gemm", 13)
                    .with_input(&a)
                    .with_input(&b)
                    .int("transA", a_turned.into())
                    .int("transB", b_turned.into())
                    .float("alpha", 0.5)
                    .float("beta", 2.0)
                    .with_output(dtype, &[m, n]);
                let call = if let Some(c) = &c { call.with_input(c) } else { call };
                call.expect_output(1e-5, &expected);
            }
        }
    }
    // Strided operands take the same path as transposed ones.
    let a = TestData::sample_elements(Dtype::F32, &[k, m], 1).with_strides(&[m, k], &[1, m]);
    let b = TestData::sample_elements(Dtype::F32, &[k, n], 4);
    let plain = TestData::new(Dtype::F32, &[m, k], &a.to_values());
    let call = machine.op_trial("MatMul", 13).with_input(&a).with_input(&b).with_output(Dtype::F32, &[m, n]);
    call.expect_output(1e-5, &reference_product(&[m, n], &plain, &b));
}

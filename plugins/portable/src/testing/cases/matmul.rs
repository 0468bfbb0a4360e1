//! Matrix products.

use oarlock_sdk::Dtype;

use super::super::{Data, Machine};
use super::reference::{FLOATS, indices, place};

/// The product of two batches of matrices, each repeated to the batch of the output.
fn product(dims: &[i64], a: &Data, b: &Data) -> Vec<f64> {
    let (a_values, b_values) = (a.values(), b.values());
    let rank = dims.len();
    let depth = a.dims[a.dims.len() - 1];
    let at = |data: &Data, index: &[i64], row: i64, column: i64| {
        let index = [&index[..rank - 2], &[row, column]].concat();
        place(&data.dims, &index[rank - data.dims.len()..])
    };
    let element = |index: &Vec<i64>| {
        let (row, column) = (index[rank - 2], index[rank - 1]);
        (0..depth).map(|k| a_values[at(a, index, row, k)] * b_values[at(b, index, k, column)]).sum()
    };
    indices(dims).iter().map(element).collect()
}

pub(super) fn products_of_odd_sizes_are_right(machine: &Machine) {
    for (m, k, n) in [(1, 1, 1), (3, 5, 7), (64, 16, 64), (65, 17, 63), (1, 300, 129)] {
        for dtype in FLOATS {
            let (a, b) = (Data::sample(dtype, &[m, k], 1), Data::sample(dtype, &[k, n], 4));
            let call = machine.op("MatMul", 13).input(&a).input(&b).output(dtype, &[m, n]);
            call.gives(1e-5, &product(&[m, n], &a, &b));
        }
        for dtype in [Dtype::I32, Dtype::I64, Dtype::U32, Dtype::U64] {
            let (a, b) = (Data::sample(dtype, &[m, k], 2), Data::sample(dtype, &[k, n], 3));
            let call = machine.op("MatMul", 13).input(&a).input(&b).output(dtype, &[m, n]);
            call.gives(0.0, &product(&[m, n], &a, &b));
        }
    }
}

pub(super) fn batches_are_repeated(machine: &Machine) {
    for (a_batch, b_batch, batch) in [
        (&[2, 3][..], &[2, 3][..], &[2, 3][..]),
        (&[2, 1], &[3], &[2, 3]),
        (&[], &[2, 3], &[2, 3]),
        (&[4], &[], &[4]),
    ] {
        let (a_dims, b_dims, dims) =
            ([a_batch, &[5, 6]].concat(), [b_batch, &[6, 4]].concat(), [batch, &[5, 4]].concat());
        let (a, b) = (Data::sample(Dtype::F32, &a_dims, 1), Data::sample(Dtype::F32, &b_dims, 4));
        let call = machine.op("MatMul", 13).input(&a).input(&b).output(Dtype::F32, &dims);
        call.gives(1e-5, &product(&dims, &a, &b));
    }
}

pub(super) fn vectors_are_rows_and_columns(machine: &Machine) {
    let vector = Data::sample(Dtype::F32, &[70], 1);
    let matrix = Data::sample(Dtype::F32, &[70, 9], 4);
    let (row, column) =
        (Data { dims: vec![1, 70], ..vector.clone() }, Data { dims: vec![70, 1], ..vector.clone() });
    let call = |a: &Data, b: &Data, dims: &[i64]| {
        machine.op("MatMul", 13).input(a).input(b).output(Dtype::F32, dims)
    };
    call(&vector, &matrix, &[9]).gives(1e-5, &product(&[1, 9], &row, &matrix));
    let turned = Data::sample(Dtype::F32, &[2, 9, 70], 4);
    call(&turned, &vector, &[2, 9]).gives(1e-5, &product(&[2, 9, 1], &turned, &column));
    call(&vector, &vector, &[]).gives(1e-5, &product(&[1, 1], &row, &column));
}

pub(super) fn factors_may_be_transposed_and_scaled(machine: &Machine) {
    let (m, k, n) = (67, 18, 5);
    for dtype in FLOATS {
        for (a_turned, b_turned) in [(false, false), (true, false), (false, true), (true, true)] {
            for c_dims in [None, Some(vec![]), Some(vec![n]), Some(vec![m, 1]), Some(vec![m, n])] {
                let turned = |data: Data| {
                    let (rows, columns) = (data.dims[0], data.dims[1]);
                    data.strided(&[columns, rows], &[1, columns])
                };
                let a = Data::sample(dtype, &if a_turned { [k, m] } else { [m, k] }, 1);
                let b = Data::sample(dtype, &if b_turned { [n, k] } else { [k, n] }, 4);
                let (left, right) = (
                    if a_turned { turned(a.clone()) } else { a.clone() },
                    if b_turned { turned(b.clone()) } else { b.clone() },
                );
                let plain = |data: &Data| Data::new(data.dtype, &data.dims, &data.values());
                let products = product(&[m, n], &plain(&left), &plain(&right));
                let c = c_dims.as_ref().map(|dims| Data::sample(dtype, dims, 7));
                let c_values = c.as_ref().map(Data::values).unwrap_or_default();
                let added = |index: &[i64]| {
                    c.as_ref().map_or(0.0, |c| c_values[place(&c.dims, &index[2 - c.dims.len()..])])
                };
                let expected: Vec<f64> = indices(&[m, n])
                    .iter()
                    .zip(products)
                    .map(|(index, product)| 0.5 * product + 2.0 * added(index))
                    .collect();
                let call = machine
                    .op("Gemm", 13)
                    .input(&a)
                    .input(&b)
                    .int("transA", a_turned.into())
                    .int("transB", b_turned.into())
                    .float("alpha", 0.5)
                    .float("beta", 2.0)
                    .output(dtype, &[m, n]);
                let call = if let Some(c) = &c { call.input(c) } else { call };
                call.gives(1e-5, &expected);
            }
        }
    }
    // A factor with strides is no other than one that is transposed.
    let a = Data::sample(Dtype::F32, &[k, m], 1).strided(&[m, k], &[1, m]);
    let b = Data::sample(Dtype::F32, &[k, n], 4);
    let plain = Data::new(Dtype::F32, &[m, k], &a.values());
    let call = machine.op("MatMul", 13).input(&a).input(&b).output(Dtype::F32, &[m, n]);
    call.gives(1e-5, &product(&[m, n], &plain, &b));
}

//! Ops that move elements or make them.

use oarlock_sdk::Dtype;

use super::super::{Data, Machine};
use super::reference::{FLOATS, INTEGERS, indices, place};

fn all() -> impl Iterator<Item = Dtype> {
    FLOATS.into_iter().chain(INTEGERS).chain([Dtype::BOOL])
}

/// The elements of an output, each found by its index in the input.
fn moved(dims: &[i64], data: &Data, find: impl Fn(&[i64]) -> Vec<i64>) -> Vec<f64> {
    let values = data.values();
    indices(dims).iter().map(|index| values[place(&data.dims, &find(index))]).collect()
}

pub(super) fn shapes_change_without_the_elements(machine: &Machine) {
    for dtype in all() {
        let data = Data::sample(dtype, &[2, 1, 3, 5], 1);
        let call = |op, version| machine.op(op, version).input(&data);
        let shape = Data::integers(&[5, 6]);
        call("Reshape", 14).input(&shape).output(dtype, &[5, 6]).gives(0.0, &data.values());
        call("Flatten", 13).output(dtype, &[2, 15]).gives(0.0, &data.values());
        call("Squeeze", 11).ints("axes", &[1][..]).output(dtype, &[2, 3, 5]).gives(0.0, &data.values());
        call("Squeeze", 13).input(&Data::integers(&[1])).output(dtype, &[2, 3, 5]).gives(0.0, &data.values());
        call("Squeeze", 13).output(dtype, &[2, 3, 5]).gives(0.0, &data.values());
        let unsqueezed = call("Unsqueeze", 13).input(&Data::integers(&[0])).output(dtype, &[1, 2, 1, 3, 5]);
        unsqueezed.gives(0.0, &data.values());
    }
    let turned = Data::sample(Dtype::F32, &[4, 3], 1).strided(&[3, 4], &[1, 3]);
    machine
        .op("Reshape", 14)
        .input(&turned)
        .input(&Data::integers(&[12]))
        .output(Dtype::F32, &[12])
        .gives(0.0, &turned.values());
    machine.op("Identity", 16).input(&turned).output(Dtype::F32, &[3, 4]).gives(0.0, &turned.values());
}

pub(super) fn dimensions_change_places(machine: &Machine) {
    for dtype in all() {
        let data = Data::sample(dtype, &[3, 4, 5], 2);
        let expected = moved(&[5, 3, 4], &data, |index| vec![index[1], index[2], index[0]]);
        let call =
            machine.op("Transpose", 13).input(&data).ints("perm", &[2, 0, 1][..]).output(dtype, &[5, 3, 4]);
        call.gives(0.0, &expected);
    }
    let data = Data::sample(Dtype::F32, &[2, 3, 4, 5, 2], 2);
    let expected = moved(&[2, 5, 4, 3, 2], &data, |index| index.iter().rev().copied().collect());
    machine.op("Transpose", 13).input(&data).output(Dtype::F32, &[2, 5, 4, 3, 2]).gives(0.0, &expected);
    machine
        .op("Transpose", 13)
        .input(&Data::sample(Dtype::F32, &[], 0))
        .output(Dtype::F32, &[])
        .gives(0.0, &[-2.75]);
}

pub(super) fn operands_are_joined_and_divided(machine: &Machine) {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::I64, Dtype::U8] {
        for axis in [0, 1, -1] {
            let at = if axis < 0 { 2 } else { axis as usize };
            let sizes = [2, 0, 1, 4];
            let whole_dims: Vec<i64> = (0..3).map(|index| if index == at { 7 } else { 3 }).collect();
            let whole = Data::sample(dtype, &whole_dims, 3);
            let mut first = 0;
            let parts: Vec<Data> = sizes
                .iter()
                .map(|size| {
                    let dims: Vec<i64> = (0..3).map(|index| if index == at { *size } else { 3 }).collect();
                    let begin = first;
                    first += size;
                    let values = moved(&dims, &whole, |index| {
                        (0..3).map(|axis| index[axis] + if axis == at { begin } else { 0 }).collect()
                    });
                    Data::new(dtype, &dims, &values)
                })
                .collect();
            let concat =
                parts.iter().fold(machine.op("Concat", 13).int("axis", axis), super::super::run::Op::input);
            concat.output(dtype, &whole_dims).gives(0.0, &whole.values());
            let values: Vec<Vec<f64>> = parts.iter().map(Data::values).collect();
            let expected: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
            for version in [2, 13] {
                let split = machine.op("Split", version).input(&whole).int("axis", axis);
                let split = if version == 13 { split.input(&Data::integers(&sizes)) } else { split };
                parts.iter().fold(split, |split, part| split.output(dtype, &part.dims)).give(0.0, &expected);
            }
        }
    }
}

pub(super) fn slices_run_in_both_directions(machine: &Machine) {
    let data = Data::sample(Dtype::F32, &[6, 7], 1);
    let slice = |starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64], dims: &[i64]| {
        let [starts, ends, axes, steps] = [starts, ends, axes, steps].map(Data::integers);
        let call =
            machine.op("Slice", 13).input(&data).input(&starts).input(&ends).input(&axes).input(&steps);
        call.output(Dtype::F32, dims)
    };
    slice(&[1, 2], &[5, 7], &[0, 1], &[1, 2], &[4, 3])
        .gives(0.0, &moved(&[4, 3], &data, |index| vec![index[0] + 1, 2 * index[1] + 2]));
    slice(&[-1], &[i64::MIN], &[0], &[-2], &[3, 7])
        .gives(0.0, &moved(&[3, 7], &data, |index| vec![5 - 2 * index[0], index[1]]));
    slice(&[100, 0], &[-100, 100], &[-1, 0], &[-1, i64::MAX], &[1, 7])
        .gives(0.0, &moved(&[1, 7], &data, |index| vec![0, 6 - index[1]]));
    slice(&[3], &[2], &[1], &[1], &[6, 0]).gives(0.0, &[]);
    let old = machine.op("Slice", 1).input(&data).ints("starts", &[1][..]).ints("ends", &[-1][..]);
    old.output(Dtype::F32, &[4, 7]).gives(0.0, &moved(&[4, 7], &data, |index| vec![index[0] + 1, index[1]]));
}

pub(super) fn edges_are_padded_and_cut(machine: &Machine) {
    for dtype in all() {
        let data = Data::sample(dtype, &[3, 4], 1);
        let (values, value) = (data.values(), if dtype == Dtype::BOOL { 1.0 } else { 7.0 });
        let expected: Vec<f64> = indices(&[4, 5])
            .iter()
            .map(|index| {
                let (row, column) = (index[0] - 2, index[1] + 1);
                let inside = (0..3).contains(&row) && (0..4).contains(&column);
                if inside { values[(row * 4 + column) as usize] } else { value }
            })
            .collect();
        // Two rows more before and one fewer behind; one column fewer before and two more behind.
        let pads = Data::integers(&[2, -1, -1, 2]);
        let filling = Data::new(dtype, &[], &[value]);
        let call = machine.op("Pad", 13).input(&data).input(&pads).input(&filling).output(dtype, &[4, 5]);
        call.gives(0.0, &expected);
    }
    let data = Data::sample(Dtype::F32, &[2, 2], 1);
    let values = data.values();
    let expected = [0.0, values[0], values[1], 0.0, values[2], values[3]];
    let named = machine
        .op("Pad", 18)
        .input(&data)
        .input(&Data::integers(&[1, 0]))
        .no_input()
        .input(&Data::integers(&[-1]));
    named.output(Dtype::F32, &[2, 3]).gives(0.0, &expected);
    let old = machine.op("Pad", 2).input(&data).ints("pads", &[0, 1, 0, 0][..]).float("value", 0.0);
    old.output(Dtype::F32, &[2, 3]).gives(0.0, &expected);
}

pub(super) fn what_lies_outside_is_taken_from_inside(machine: &Machine) {
    // As above, so that rows 0 and 1 and columns 1 to 3 are what is inside.
    let pads = Data::integers(&[2, -1, -1, 2]);
    for (mode, rows, columns) in [
        ("edge", [0, 0, 0, 1], [1, 2, 3, 3, 3]),
        ("reflect", [0, 1, 0, 1], [1, 2, 3, 2, 1]),
        ("wrap", [0, 1, 0, 1], [1, 2, 3, 1, 2]),
    ] {
        for dtype in all() {
            let data = Data::sample(dtype, &[3, 4], 1);
            let expected =
                moved(&[4, 5], &data, |index| vec![rows[index[0] as usize], columns[index[1] as usize]]);
            let call = machine.op("Pad", 19).input(&data).input(&pads).string("mode", mode);
            call.output(dtype, &[4, 5]).gives(0.0, &expected);
        }
        let (empty, pads) = (Data::sample(Dtype::F32, &[0], 1), Data::integers(&[1, 0]));
        let call = machine.op("Pad", 19).input(&empty).input(&pads).string("mode", mode);
        call.output(Dtype::F32, &[1]).fails("elements to pad with");
    }
}

pub(super) fn operands_are_repeated_as_tiles(machine: &Machine) {
    for dtype in all() {
        let data = Data::sample(dtype, &[2, 1, 3], 1);
        let expected = moved(&[4, 3, 6], &data, |index| vec![index[0] % 2, 0, index[2] % 3]);
        let call =
            machine.op("Tile", 13).input(&data).input(&Data::integers(&[2, 3, 2])).output(dtype, &[4, 3, 6]);
        call.gives(0.0, &expected);
        let expected = moved(&[4, 2, 5, 3], &data, |index| vec![index[1], 0, index[3]]);
        let call = machine
            .op("Expand", 13)
            .input(&data)
            .input(&Data::integers(&[4, 2, 5, 3]))
            .output(dtype, &[4, 2, 5, 3]);
        call.gives(0.0, &expected);
    }
}

pub(super) fn parts_are_gathered_and_indices_outside_are_told(machine: &Machine) {
    for dtype in all() {
        for axis in [0, 1, 2] {
            let data = Data::sample(dtype, &[4, 5, 6], 1);
            let values = data.values();
            let wanted = [3, -1, 2, 0, -2, -4];
            let indices_data = Data::new(Dtype::I32, &[3, 2], &wanted.map(|index| index as f64));
            let mut dims = data.dims.clone();
            dims.splice(axis..=axis, [3, 2]);
            let expected: Vec<f64> = indices(&dims)
                .iter()
                .map(|index| {
                    let at = wanted[(index[axis] * 2 + index[axis + 1]) as usize];
                    let at = if at < 0 { at + data.dims[axis] } else { at };
                    let mut source = index.clone();
                    source.splice(axis..axis + 2, [at]);
                    values[place(&data.dims, &source)]
                })
                .collect();
            let gather = |wanted: &Data| {
                let call = machine.op("Gather", 13).input(&data).input(wanted).int("axis", axis as i64);
                call.output(dtype, &dims)
            };
            for outside in [data.dims[axis], -data.dims[axis] - 1, i64::from(i32::MIN)] {
                let wanted = [0, 1, 2, 3, outside, 0].map(|index| index as f64);
                gather(&Data::new(Dtype::I32, &[3, 2], &wanted)).fails_at_values("indices that lie inside");
            }
            gather(&indices_data).gives(0.0, &expected);
        }
    }
    let scalar = Data::new(Dtype::I64, &[], &[1.0]);
    let data = Data::sample(Dtype::F32, &[3], 1);
    machine
        .op("Gather", 13)
        .input(&data)
        .input(&scalar)
        .output(Dtype::F32, &[])
        .gives(0.0, &data.values()[1..2]);
}

pub(super) fn depth_becomes_space_and_back(machine: &Machine) {
    let depth = Data::sample(Dtype::F32, &[2, 8, 2, 3], 1);
    let expected = moved(&[2, 2, 4, 6], &depth, |index| {
        vec![index[0], (index[2] % 2 * 2 + index[3] % 2) * 2 + index[1], index[2] / 2, index[3] / 2]
    });
    let call = |op, data: &Data| machine.op(op, 13).input(data).int("blocksize", 2);
    call("DepthToSpace", &depth).output(Dtype::F32, &[2, 2, 4, 6]).gives(0.0, &expected);
    let space = Data::new(Dtype::F32, &[2, 2, 4, 6], &expected);
    call("SpaceToDepth", &space).output(Dtype::F32, &[2, 8, 2, 3]).gives(0.0, &depth.values());
    let columns = moved(&[2, 2, 4, 6], &depth, |index| {
        vec![index[0], index[1] * 4 + index[2] % 2 * 2 + index[3] % 2, index[2] / 2, index[3] / 2]
    });
    call("DepthToSpace", &depth).string("mode", "CRD").output(Dtype::F32, &[2, 2, 4, 6]).gives(0.0, &columns);
}

pub(super) fn constants_and_ranges_come_from_nothing(machine: &Machine) {
    for dtype in all() {
        let value = Data::new(dtype, &[1], &[1.0]);
        let shape = Data::integers(&[3, 5]);
        let call = || machine.op("ConstantOfShape", 9).input(&shape);
        call().tensor("value", value).output(dtype, &[3, 5]).gives(0.0, &[1.0; 15]);
    }
    machine
        .op("ConstantOfShape", 9)
        .input(&Data::integers(&[2]))
        .output(Dtype::F32, &[2])
        .gives(0.0, &[0.0; 2]);
    let far = Data::new(Dtype::I64, &[1], &[-(2f64.powi(62))]);
    let call = machine.op("ConstantOfShape", 9).input(&Data::integers(&[2])).tensor("value", far);
    call.output(Dtype::I64, &[2]).gives(0.0, &[-(2f64.powi(62)); 2]);
    for dtype in [Dtype::I16, Dtype::I32, Dtype::I64, Dtype::F32, Dtype::F64] {
        let [start, limit, delta] = [10.0, 4.0, -2.0].map(|value| Data::new(dtype, &[], &[value]));
        let call = machine.op("Range", 11).input(&start).input(&limit).input(&delta).output(dtype, &[3]);
        call.gives(0.0, &[10.0, 8.0, 6.0]);
    }
}

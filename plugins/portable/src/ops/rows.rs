//! Ops that look at whole rows of elements: `ArgMax`, `ArgMin`, `Softmax`, `LogSoftmax` and `LayerNormalization`.

use oarlock_sdk::{Call, Dtype, Kernel, OperandFlags, Result, dtype_set, ensure};

use super::elementwise::{groups, within_groups};
use super::row::{
    FLOATS, NUMBERS, arithmetic, axis, can_compute, check_shape, input, optional_input, output, plain,
    refused,
};
use crate::arguments::{Arguments, Number};
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::program::launch;
use crate::source::{Indexed, Shaped, Variant, is_wide};
use crate::view::View;
use crate::walk::product;

/// From this many elements on, work-items work together on one row.
const TOGETHER: i64 = 64;

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let extremes = ["ArgMax", "ArgMin"].into_iter().map(|op| {
        arithmetic(op, move |gpus: &Gpus<G>, call| extreme(gpus, call, op == "ArgMax"))
            .inputs([plain(NUMBERS).named("data")])
            .outputs([plain(dtype_set(&[Dtype::I64])).named("reduced")])
    });
    let softmax = ["Softmax", "LogSoftmax"].into_iter().flat_map(|op| {
        let is_log = op == "LogSoftmax";
        let make = move |whole: bool| {
            arithmetic(op, move |gpus: &Gpus<G>, call| softmax(gpus, call, is_log, whole))
                .inputs([plain(FLOATS).group(1).named("input")])
                .outputs([plain(FLOATS).group(1).named("output")])
                .in_place(0, 0)
        };
        [make(true).until(12), make(false).since(13)]
    });
    let float = plain(FLOATS).group(1);
    let statistic = plain(dtype_set(&[Dtype::F32, Dtype::F64])).flags(OperandFlags::OPTIONAL);
    let normalization = arithmetic("LayerNormalization", normalize::<G>)
        .since(17)
        .supports(|gpus, call| {
            refused(length_of_rows(call))?;
            can_compute(gpus, call)
        })
        .inputs([float.named("X"), float.named("Scale"), float.flags(OperandFlags::OPTIONAL).named("B")])
        .outputs([float.named("Y"), statistic.named("Mean"), statistic.named("InvStdDev")]);
    extremes.chain(softmax).chain([normalization]).collect()
}

/// Runs a program that has a row for each of `rows`, of `length` elements.
fn launch_rows<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    source: Indexed,
    operands: &[(&'static str, &View)],
    (rows, length): (i64, i64),
    arguments: impl FnOnce(Arguments) -> Arguments,
) -> Result<()> {
    let is_cooperative = length >= TOGETHER;
    let variant = Variant::Shaped(Shaped {
        source,
        operands: operands.iter().map(|(name, view)| (*name, view.dtype)).collect(),
        is_cooperative,
        is_wide: is_wide(operands.iter().map(|(_, view)| view.last())),
    });
    let arguments = arguments(Arguments::default().operands(operands.iter().map(|(_, view)| *view)));
    let groups = if is_cooperative { within_groups(rows)? } else { groups(rows)? };
    launch(gpus, call, &variant, groups, &arguments)
}

fn extreme<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, is_max: bool) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let axis = axis(call.int("axis")?.unwrap_or(0), x.dims.len())?;
    let mut expected = x.dims.clone();
    if call.int("keepdims")?.unwrap_or(1) != 0 {
        expected[axis] = 1;
    } else {
        expected.remove(axis);
    }
    check_shape(&expected, &y)?;
    let [_, length, inner] = x.around(axis);
    ensure!(length > 0, invalid_argument, "expected a row with an element, found shape {:?}", x.dims);
    if y.count == 0 {
        return Ok(());
    }
    let is_last = call.int("select_last_index")?.unwrap_or(0) != 0;
    let source = Indexed::Extreme { is_max, is_last };
    launch_rows(gpus, call, source, &[("a", &x), ("y", &y)], (y.count, length), |arguments| {
        arguments.integers(&[length, inner, y.count])
    })
}

/// Old versions of the op take everything from the axis on as one row.
fn softmax<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, is_log: bool, whole: bool) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    check_shape(&x.dims, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    let rank = x.dims.len();
    let [_, length, inner] = if whole {
        let named = call.int("axis")?.unwrap_or(1);
        let first = if named == rank as i64 { rank } else { axis(named, rank)? };
        [1, product(&x.dims[first..]), 1]
    } else {
        x.around(axis(call.int("axis")?.unwrap_or(-1), rank)?)
    };
    let rows = x.count / length;
    launch_rows(
        gpus,
        call,
        Indexed::Softmax { is_log },
        &[("a", &x), ("y", &y)],
        (rows, length),
        |arguments| arguments.integers(&[length, inner, rows]),
    )
}

/// How many elements a row has that is normalized, each with a scale of its own.
fn length_of_rows(call: &Call<'_>) -> Result<i64> {
    let (x, scale, bias) = (input(call, 0)?, input(call, 1)?, optional_input(call, 2)?);
    let first = axis(call.int("axis")?.unwrap_or(-1), x.dims.len())?;
    let length = product(&x.dims[first..]);
    for operand in std::iter::once(&scale).chain(&bias) {
        ensure!(
            operand.count == length,
            unimplemented,
            "expected `Scale` and `B` of {length} elements, one for each of {:?}, found {:?}",
            &x.dims[first..],
            operand.dims
        );
    }
    let is_asked = call.optional_output(1)?.is_some() || call.optional_output(2)?.is_some();
    ensure!(
        x.count > 0 || !is_asked,
        unimplemented,
        "expected rows of one element and more, found shape {:?}",
        x.dims
    );
    Ok(length)
}

fn normalize<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, scale, y) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    let bias = optional_input(call, 2)?;
    check_shape(&x.dims, &y)?;
    let length = length_of_rows(call)?;
    if y.count == 0 {
        return Ok(());
    }
    let rows = x.count / length;
    let epsilon = [Number::Float(call.float("epsilon")?.unwrap_or(1e-5))];
    let mut outputs = vec![("y", y)];
    for (index, name) in [(1, "means"), (2, "scales")] {
        if let Some(tensor) = call.optional_output(index)? {
            let statistic = View::new(&tensor)?;
            ensure!(
                statistic.count == rows,
                invalid_argument,
                "expected a statistic for each of {rows} rows, found shape {:?}",
                statistic.dims
            );
            outputs.push((name, statistic));
        }
    }
    for (name, output) in &outputs {
        let mut operands = vec![("a", &x), ("b", &scale)];
        operands.extend(bias.iter().map(|bias| ("c", bias)));
        operands.push((name, output));
        launch_rows(gpus, call, Indexed::LayerNormalization, &operands, (rows, length), |arguments| {
            arguments.integers(&[length, rows]).numbers(x.dtype, &epsilon)
        })?;
    }
    Ok(())
}

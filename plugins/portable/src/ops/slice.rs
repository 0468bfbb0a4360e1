//! `Slice` and `Pad`: a box of one operand becomes a box of another.

use oarlock_sdk::{Call, Error, Kernel, OperandFlags, Result, ensure};

use super::elementwise::{Stepped, Work, groups, map};
use super::movement::copy;
use super::row::{
    ALL, FLOATS, INDICES, arithmetic, axis, can_compute, check_shape, input, on_host, output, plain, row,
    strided,
};
use crate::arguments::{Arguments, Number};
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::host::{integers, numbers, optional_integers};
use crate::program::launch;
use crate::source::{Formula, Indexed, Outside, Shaped, Variant, is_wide};
use crate::view::View;

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let shape = |name| on_host(INDICES).named(name);
    let optional = |name| shape(name).flags(OperandFlags::OPTIONAL);
    let (data, result) = (strided(ALL).group(1), plain(ALL).group(1));
    vec![
        row("Slice", |gpus: &Gpus<G>, call| {
            let starts = call.ints("starts")?.unwrap_or_default();
            slice(gpus, call, starts, call.ints("ends")?.unwrap_or_default(), call.ints("axes")?, None)
        })
        .until(9)
        .inputs([data.named("data")])
        .outputs([result.named("output")]),
        row("Slice", |gpus: &Gpus<G>, call| {
            let (starts, ends) = (integers(&call.input(1)?)?, integers(&call.input(2)?)?);
            let (axes, steps) = (optional_integers(call, 3)?, optional_integers(call, 4)?);
            slice(gpus, call, &starts, &ends, axes.as_deref(), steps.as_deref())
        })
        .since(10)
        .inputs([data.named("data"), shape("starts"), shape("ends"), optional("axes"), optional("steps")])
        .outputs([result.named("output")]),
        arithmetic("Pad", |gpus: &Gpus<G>, call| {
            let value = Number::Float(call.float("value")?.unwrap_or(0.0));
            pad(gpus, call, call.ints("pads")?.unwrap_or_default(), None, value)
        })
        .supports(supports_pad)
        .since(2)
        .until(10)
        .inputs([strided(FLOATS).group(1).named("data")])
        .outputs([plain(FLOATS).group(1).named("output")]),
        arithmetic("Pad", |gpus: &Gpus<G>, call| {
            let value = call.optional_input(2)?.map(|tensor| numbers(&tensor)).transpose()?;
            let value = value.and_then(|value| value.first().copied()).unwrap_or(Number::Int(0));
            pad(gpus, call, &integers(&call.input(1)?)?, optional_integers(call, 3)?.as_deref(), value)
        })
        .supports(supports_pad)
        .since(11)
        .inputs([
            data.named("data"),
            shape("pads"),
            on_host(ALL).group(1).flags(OperandFlags::OPTIONAL).named("constant_value"),
            optional("axes"),
        ])
        .outputs([result.named("output")]),
    ]
}

fn supports_pad<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    outside(call)?;
    can_compute(gpus, call)
}

/// Where a pad takes what lies outside of the operand, unless it is one number everywhere.
fn outside(call: &Call<'_>) -> Result<Option<Outside>> {
    match call.string("mode")?.unwrap_or("constant") {
        "constant" => Ok(None),
        "edge" => Ok(Some(Outside::Edge)),
        "reflect" => Ok(Some(Outside::Reflect)),
        "wrap" => Ok(Some(Outside::Wrap)),
        mode => Err(Error::unimplemented(format!(
            "expected `constant`, `edge`, `reflect` or `wrap` as `mode`, found `{mode}`"
        ))),
    }
}

/// The axes that are named, or the first ones.
fn named_axes(axes: Option<&[i64]>, count: usize, rank: usize) -> Result<Vec<usize>> {
    let axes = match axes {
        Some(axes) => axes.iter().map(|at| axis(*at, rank)).collect::<Result<Vec<usize>>>()?,
        None => (0..count).collect(),
    };
    ensure!(
        axes.len() == count && axes.iter().all(|axis| *axis < rank),
        invalid_argument,
        "expected {count} axes of {rank} dimensions, found {axes:?}"
    );
    Ok(axes)
}

fn slice<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    starts: &[i64],
    ends: &[i64],
    axes: Option<&[i64]>,
    steps: Option<&[i64]>,
) -> Result<()> {
    let (x, y) = (input(call, 0)?.bits(), output(call, 0)?.bits());
    let count = starts.len();
    ensure!(
        ends.len() == count && steps.is_none_or(|steps| steps.len() == count),
        invalid_argument,
        "expected as many `ends` and `steps` as `starts`, found {starts:?}, {ends:?} and {steps:?}"
    );
    let (mut dims, mut strides, mut first) = (x.dims.clone(), x.steps.clone(), 0);
    for (index, axis) in named_axes(axes, count, x.dims.len())?.into_iter().enumerate() {
        let step = steps.map_or(1, |steps| steps[index]);
        ensure!(step != 0, invalid_argument, "expected steps other than 0, found {steps:?}");
        let dim = x.dims[axis];
        let clamp = |at: i64, low, high| if at < 0 { at.saturating_add(dim) } else { at }.clamp(low, high);
        let (start, length) = if step > 0 {
            let start = clamp(starts[index], 0, dim);
            (start, (clamp(ends[index], 0, dim) - start).max(0))
        } else {
            // Backwards, a start before the first element is the first.
            let start = clamp(starts[index], 0, (dim - 1).max(0));
            (start, if dim == 0 { 0 } else { (start - clamp(ends[index], -1, dim - 1)).max(0) })
        };
        dims[axis] = (length as u64).div_ceil(step.unsigned_abs()) as i64;
        if dims[axis] > 0 {
            first += start * x.steps[axis];
            // A step beyond the dimension is never taken.
            strides[axis] = step.clamp(-dim, dim) * x.steps[axis];
        }
    }
    check_shape(&dims, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    copy(gpus, call, &dims, &x.part(first, &dims, strides), &y)
}

/// Negative pads cut, and what of the input is left is copied into the output. Around it is either one number or what the
/// mode takes from inside.
fn pad<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    pads: &[i64],
    axes: Option<&[i64]>,
    value: Number,
) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let rank = x.dims.len();
    ensure!(
        pads.len().is_multiple_of(2),
        invalid_argument,
        "expected a pad for both ends of each axis, found {pads:?}"
    );
    let half = pads.len() / 2;
    let (mut dims, mut kept) = (x.dims.clone(), x.dims.clone());
    let (mut from, mut to) = (0, vec![0; rank]);
    for (index, axis) in named_axes(axes, half, rank)?.into_iter().enumerate() {
        let (before, after) = (pads[index], pads[half + index]);
        let dim = x.dims[axis];
        let sum = before.checked_add(after).and_then(|pads| pads.checked_add(dim)).filter(|sum| *sum >= 0);
        ensure!(
            sum.is_some(),
            out_of_range,
            "expected pads that leave a shape, found {pads:?} for {:?}",
            x.dims
        );
        dims[axis] = sum.unwrap_or(0);
        kept[axis] = (dim + before.min(0) + after.min(0)).max(0);
        from += (-before).max(0).min(dim) * x.steps[axis];
        to[axis] = before.max(0);
    }
    check_shape(&dims, &y)?;
    let inside = x.part(from, &kept, x.steps.clone()).bits();
    if let Some(outside) = outside(call)?.filter(|_| rank > 0) {
        return surround(gpus, call, outside, &inside, &to, &y.bits());
    }
    fill(gpus, call, &y, value)?;
    if inside.count == 0 {
        return Ok(());
    }
    let first = to.iter().zip(&y.steps).map(|(at, step)| at * step).sum();
    let steps = y.steps.clone();
    copy(gpus, call, &kept, &inside, &y.bits().part(first, &kept, steps))
}

/// Copies an operand into the middle of the output, with itself around it.
fn surround<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    outside: Outside,
    inside: &View,
    begins: &[i64],
    y: &View,
) -> Result<()> {
    if y.count == 0 {
        return Ok(());
    }
    ensure!(
        inside.count > 0,
        invalid_argument,
        "expected elements to pad with, found the shape {:?}",
        inside.dims
    );
    let variant = Variant::Shaped(Shaped {
        source: Indexed::Pad { outside, rank: y.dims.len() as u8 },
        operands: vec![("a", inside.dtype), ("y", y.dtype)],
        is_cooperative: false,
        is_wide: is_wide([inside.last(), y.last()]),
    });
    let shape = [&[y.count], &y.dims[..], &inside.dims, begins, &inside.steps].concat();
    let arguments = Arguments::default().operands([inside, y]).integers(&shape);
    launch(gpus, call, &variant, groups(y.count)?, &arguments)
}

/// Writes one number everywhere.
fn fill<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, y: &View, value: Number) -> Result<()> {
    let work = Work { formula: Formula::Plain("p"), compute: y.dtype, parameters: &[value] };
    map(gpus, call, work, &y.dims, &[], Stepped { view: y, steps: &y.steps })
}

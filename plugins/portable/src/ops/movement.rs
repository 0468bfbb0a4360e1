//! Ops that move elements and compute nothing: every one is a copy with the right steps on one side.

use oarlock_sdk::{Call, Kernel, OperandFlags, Result, ensure};

use super::elementwise::{Stepped, Work, map};
use super::row::{ALL, INDICES, axis, check_shape, input, on_host, output, plain, row, strided};
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::source::Formula;
use crate::view::View;
use crate::walk::{contiguous, product};

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let shape = |name| on_host(INDICES).named(name);
    let optional = |name| shape(name).flags(OperandFlags::OPTIONAL);
    let one = |kernel: Kernel<Gpus<G>>| kernel.inputs([strided(ALL).group(1)]).outputs([plain(ALL).group(1)]);
    let blocks =
        |kernel: Kernel<Gpus<G>>| kernel.inputs([plain(ALL).group(1)]).outputs([plain(ALL).group(1)]);
    let two = |kernel: Kernel<Gpus<G>>, second| {
        kernel.inputs([strided(ALL).group(1), second]).outputs([plain(ALL).group(1)])
    };
    vec![
        one(row("Identity", same_elements::<G>)).in_place(0, 0),
        one(row("Flatten", same_elements::<G>)).in_place(0, 0),
        two(row("Reshape", same_elements::<G>).since(5), shape("shape")).in_place(0, 0),
        one(row("Squeeze", same_elements::<G>).until(12)).in_place(0, 0),
        two(row("Squeeze", same_elements::<G>).since(13), optional("axes")).in_place(0, 0),
        one(row("Unsqueeze", same_elements::<G>).until(12)).in_place(0, 0),
        two(row("Unsqueeze", same_elements::<G>).since(13), shape("axes")).in_place(0, 0),
        one(row("Transpose", transpose::<G>)),
        two(row("Expand", expand::<G>).since(8), shape("shape")),
        two(row("Tile", tile::<G>).since(6), shape("repeats")),
        blocks(row("DepthToSpace", depth_to_space::<G>)),
        blocks(row("SpaceToDepth", space_to_depth::<G>)),
        row("Concat", concat::<G>)
            .since(4)
            .inputs([strided(ALL).group(1).flags(OperandFlags::VARIADIC).named("inputs")])
            .outputs([plain(ALL).group(1).named("concat_result")]),
        row("Split", split::<G>)
            .since(2)
            .until(12)
            .inputs([strided(ALL).group(1).named("input")])
            .outputs([plain(ALL).group(1).flags(OperandFlags::VARIADIC).named("outputs")]),
        row("Split", split::<G>)
            .since(13)
            .inputs([strided(ALL).group(1).named("input"), optional("split")])
            .outputs([plain(ALL).group(1).flags(OperandFlags::VARIADIC).named("outputs")]),
    ]
}

/// Copies `dims` elements from where one operand has them to where the other wants them.
pub(super) fn copy<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    dims: &[i64],
    from: &View,
    to: &View,
) -> Result<()> {
    let (source, target) =
        (Stepped { view: from, steps: &from.steps }, Stepped { view: to, steps: &to.steps });
    map(gpus, call, Work::plain(Formula::Plain("a"), to.dtype), dims, &[source], target)
}

fn same_elements<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?.bits(), output(call, 0)?.bits());
    ensure!(
        x.count == y.count,
        invalid_argument,
        "expected an output of {} elements for an input of shape {:?}, found one of shape {:?}",
        x.count,
        x.dims,
        y.dims
    );
    if y.count == 0 {
        return Ok(());
    }
    let y = y.part(0, &x.dims, contiguous(&x.dims));
    copy(gpus, call, &x.dims, &x, &y)
}

fn transpose<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?.bits(), output(call, 0)?.bits());
    let rank = x.dims.len();
    let order: Vec<usize> = match call.ints("perm")? {
        None => (0..rank).rev().collect(),
        Some(order) => order.iter().map(|at| axis(*at, rank)).collect::<Result<_>>()?,
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    ensure!(
        sorted.iter().copied().eq(0..rank),
        invalid_argument,
        "expected a `perm` that names each of {rank} dimensions once, found {order:?}"
    );
    permuted(gpus, call, &x, &order, &y)
}

/// Copies with the dimensions in another order, into an output whose dimensions are those, or several of them in one.
fn permuted<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, x: &View, order: &[usize], y: &View) -> Result<()> {
    let dims: Vec<i64> = order.iter().map(|axis| x.dims[*axis]).collect();
    if dims.len() == y.dims.len() {
        check_shape(&dims, y)?;
    }
    if y.count == 0 {
        return Ok(());
    }
    let x = x.part(0, &dims, order.iter().map(|axis| x.steps[*axis]).collect());
    copy(gpus, call, &dims, &x, &y.part(0, &dims, contiguous(&dims)))
}

fn expand<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?.bits(), output(call, 0)?.bits());
    super::elementwise::repeated(gpus, call, Work::plain(Formula::Plain("a"), y.dtype), &[&x], &y)
}

/// Each dimension becomes two: how often it is repeated, along which the input has no steps, and its own.
fn tile<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?.bits(), output(call, 0)?.bits());
    let fits = x.dims.len() == y.dims.len()
        && x.dims.iter().zip(&y.dims).all(|(own, dim)| *dim == 0 || (*own > 0 && dim % own == 0));
    ensure!(
        fits,
        invalid_argument,
        "expected an output whose dimensions are multiples of {:?}, found {:?}",
        x.dims,
        y.dims
    );
    if y.count == 0 {
        return Ok(());
    }
    let dims: Vec<i64> = x.dims.iter().zip(&y.dims).flat_map(|(own, dim)| [dim / own, *own]).collect();
    let steps = x.steps.iter().flat_map(|step| [0, *step]).collect();
    copy(gpus, call, &dims, &x.part(0, &dims, steps), &y.part(0, &dims, contiguous(&dims)))
}

/// The six dimensions between depth and space, in the order of an input that is contiguous.
fn split_into_blocks<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    dims: impl Fn(&[i64], i64) -> [i64; 6],
    order: &[usize],
) -> Result<()> {
    let (x, y) = (input(call, 0)?.bits(), output(call, 0)?.bits());
    let size = call.int("blocksize")?.unwrap_or(0);
    ensure!(
        x.dims.len() == 4 && size > 0,
        invalid_argument,
        "expected 4 dimensions and a `blocksize`, found {:?} and {size}",
        x.dims
    );
    let dims = dims(&x.dims, size);
    ensure!(
        product(&dims) == x.count && x.count == y.count,
        invalid_argument,
        "expected dimensions that can be divided by the `blocksize` {size}, found {:?} and {:?}",
        x.dims,
        y.dims
    );
    let x = x.part(0, &dims, contiguous(&dims));
    permuted(gpus, call, &x, order, &y)
}

fn depth_to_space<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let is_column_first = call.string("mode")? == Some("CRD");
    if is_column_first {
        let dims = |x: &[i64], size: i64| [x[0], x[1] / (size * size), size, size, x[2], x[3]];
        return split_into_blocks(gpus, call, dims, &[0, 1, 4, 2, 5, 3]);
    }
    let dims = |x: &[i64], size: i64| [x[0], size, size, x[1] / (size * size), x[2], x[3]];
    split_into_blocks(gpus, call, dims, &[0, 3, 4, 1, 5, 2])
}

fn space_to_depth<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let dims = |x: &[i64], size: i64| [x[0], x[1], x[2] / size, size, x[3] / size, size];
    let is_column_first = call.string("mode")? == Some("CRD");
    let order = if is_column_first { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    split_into_blocks(gpus, call, dims, &order)
}

/// Checks that parts have the shape of the whole but for one axis, along which they fill it.
fn check_parts(parts: &[View], whole: &View, axis: usize) -> Result<()> {
    let alike = |part: &View| {
        part.dims.len() == whole.dims.len()
            && part
                .dims
                .iter()
                .zip(&whole.dims)
                .enumerate()
                .all(|(at, (part, whole))| at == axis || part == whole)
    };
    let fills =
        parts.iter().all(alike) && parts.iter().map(|part| part.dims[axis]).sum::<i64>() == whole.dims[axis];
    ensure!(
        fills,
        invalid_argument,
        "expected shapes that fill {:?} along axis {axis}, found {:?}",
        whole.dims,
        parts.iter().map(|part| &part.dims).collect::<Vec<_>>()
    );
    Ok(())
}

fn concat<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let y = output(call, 0)?.bits();
    let axis = axis(call.int("axis")?.unwrap_or(0), y.dims.len())?;
    let parts: Vec<View> =
        (0..call.input_count()).map(|index| Ok(input(call, index)?.bits())).collect::<Result<_>>()?;
    check_parts(&parts, &y, axis)?;
    let mut first = 0;
    for part in &parts {
        let place = y.part(first * y.steps[axis], &part.dims, y.steps.clone());
        copy(gpus, call, &part.dims, part, &place)?;
        first += part.dims[axis];
    }
    Ok(())
}

/// How the input is divided is what the outputs' shapes say.
fn split<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let x = input(call, 0)?.bits();
    let axis = axis(call.int("axis")?.unwrap_or(0), x.dims.len())?;
    let parts: Vec<View> =
        (0..call.output_count()).map(|index| Ok(output(call, index)?.bits())).collect::<Result<_>>()?;
    check_parts(&parts, &x, axis)?;
    let mut first = 0;
    for part in &parts {
        let place = x.part(first * x.steps[axis], &part.dims, x.steps.clone());
        copy(gpus, call, &part.dims, &place, part)?;
        first += part.dims[axis];
    }
    Ok(())
}

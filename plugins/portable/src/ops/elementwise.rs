//! Running element-wise programs.

use oarlock_sdk::{Call, Dtype, Error, Result};

use crate::arguments::{Arguments, Number};
use crate::device::Gpus;
use crate::gpu::{Gpu, WORK_GROUP};
use crate::program::launch;
use crate::source::{Formula, Map, Variant, is_wide};
use crate::view::View;
use crate::walk::{Walk, product};

/// An operand of an element-wise program: what it is, and its steps along the dimensions of the walk.
#[derive(Clone, Copy)]
pub(super) struct Stepped<'a> {
    pub(super) view: &'a View,
    pub(super) steps: &'a [i64],
}

/// What is computed, in which dtype, with which parameters.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) formula: Formula,
    pub(super) compute: Dtype,
    pub(super) parameters: &'a [Number],
}

impl Work<'_> {
    /// A formula without parameters.
    pub(super) fn plain(formula: Formula, compute: Dtype) -> Self {
        Self { formula, compute, parameters: &[] }
    }
}

/// The shape that shapes become together: dimensions of 1 are repeated, missing leading ones are 1.
pub(super) fn broadcast<'a>(shapes: impl IntoIterator<Item = &'a [i64]> + Clone) -> Result<Vec<i64>> {
    let rank = shapes.clone().into_iter().map(<[i64]>::len).max().unwrap_or(0);
    let mut all = vec![1; rank];
    for dims in shapes.clone() {
        let missing = rank - dims.len();
        for (known, dim) in all[missing..].iter_mut().zip(dims) {
            match (*known, *dim) {
                (_, 1) => {}
                (1, dim) => *known = dim,
                (known, dim) if known == dim => {}
                _ => {
                    let found: Vec<&[i64]> = shapes.into_iter().collect();
                    return Err(Error::invalid_argument(format!(
                        "expected shapes that are equal or 1 from the last dimension on, found {found:?}"
                    )));
                }
            }
        }
    }
    Ok(all)
}

/// Computes every element of `output` from the elements of the inputs that belong to it, which are repeated to its shape.
pub(super) fn elementwise<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    work: Work<'_>,
    inputs: &[&View],
    output: &View,
) -> Result<()> {
    super::row::check_shape(&broadcast(inputs.iter().map(|view| view.dims.as_slice()))?, output)?;
    repeated(gpus, call, work, inputs, output)
}

/// The same, for an output that may be larger than what the inputs become together.
pub(super) fn repeated<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    work: Work<'_>,
    inputs: &[&View],
    output: &View,
) -> Result<()> {
    let fit = |view: &&View| {
        view.repeated_to(&output.dims).ok_or_else(|| {
            let (expected, found) = (&output.dims, &view.dims);
            Error::invalid_argument(format!(
                "expected a shape that can be repeated to {expected:?}, found {found:?}"
            ))
        })
    };
    let steps: Vec<Vec<i64>> = inputs.iter().map(fit).collect::<Result<_>>()?;
    let stepped: Vec<Stepped<'_>> =
        inputs.iter().zip(&steps).map(|(view, steps)| Stepped { view, steps }).collect();
    map(gpus, call, work, &output.dims, &stepped, Stepped { view: output, steps: &output.steps })
}

/// Runs a program over all elements of `dims`.
pub(super) fn map<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    work: Work<'_>,
    dims: &[i64],
    inputs: &[Stepped<'_>],
    output: Stepped<'_>,
) -> Result<()> {
    let count = product(dims);
    if count == 0 {
        return Ok(());
    }
    let operands = || inputs.iter().chain(std::iter::once(&output));
    let steps: Vec<&[i64]> = operands().map(|operand| operand.steps).collect();
    let walk = Walk::new(dims, &steps);
    let mut accesses = walk.accesses();
    let output_access = accesses.pop().unwrap_or(crate::walk::Access::Flat);
    let variant = Variant::Map(Map {
        formula: work.formula,
        compute: work.compute,
        inputs: inputs.iter().map(|operand| operand.view.dtype).zip(accesses).collect(),
        output: (output.view.dtype, output_access),
        parameters: work.parameters.len() as u8,
        rank: walk.rank(),
        is_wide: is_wide(operands().map(|operand| operand.view.last()).chain([count])),
    });
    let arguments = Arguments::default()
        .operands(operands().map(|operand| operand.view))
        .walk(&walk)
        .numbers(work.compute, work.parameters)
        .integers(&[count]);
    launch(gpus, call, &variant, groups(count)?, &arguments)
}

/// How many work-groups have a work-item for each of `count`.
pub(super) fn groups(count: i64) -> Result<u32> {
    within_groups((count as u64).div_ceil(WORK_GROUP.into()) as i64)
}

/// A number of work-groups that every device takes.
pub(super) fn within_groups(groups: i64) -> Result<u32> {
    i32::try_from(groups).map(|groups| groups as u32).map_err(|_| {
        Error::out_of_range(format!("expected at most {} work-groups, found {groups}", i32::MAX))
    })
}

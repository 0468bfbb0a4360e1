//! The row of `oarlock.ConvTranspose`: a convolution whose windows lie over the output.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

pub(super) mod channels;
mod job;
mod phase;
pub(super) mod products;

use std::sync::Arc;

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, ensure};

use self::channels::Channels;
use self::products::{Products, Sizes};
use super::conv::{check_finish, with_operands};
use super::finish::Finish;
use super::geometry::axes;
use super::weights::Panels;
use crate::constants::{self, Constants};
use crate::device::Cpu;
use crate::gemm::{Aligned, Scratch};
use crate::isa::Isa;
use crate::kernels::activation::Activation;
use crate::kernels::conv::window::{Axis, MOST, Settings};

/// The largest stride. Outputs are as many products as strides have steps, and no network has more than a few.
const MOST_STRIDE: usize = 64;

pub(super) fn kernel() -> Kernel<Cpu> {
    let number = Operand::new(DtypeSet::F32);
    let image = number.rank(3, 4);
    Kernel::prepared("ConvTranspose", prepare)
        .domain("oarlock")
        .supports(|cpu, call| {
            ensure!(
                call.input(1)?.is_constant(),
                unimplemented,
                "expected weights that are constant, found some that are not"
            );
            convolution(cpu, call).map(drop)
        })
        .workspace(|cpu, call| {
            let (way, _) = convolution(cpu, call)?;
            // Scratch memory begins at the next line.
            Ok((way.scratch_size() * size_of::<f32>() + 64) as u64)
        })
        .in_place(0, 3)
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([
            image.named("X"),
            image.named("W").flags(OperandFlags::UNALIGNED),
            number.named("B").rank(1, 1).flags(OperandFlags::OPTIONAL),
            image.named("Z").flags(OperandFlags::OPTIONAL),
        ])
        .outputs([image.named("Y")])
}

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

/// Packed weights, by instruction set and by what else they depend on.
static PACKED: Constants<(Isa, [usize; 9]), Packed> = Constants::new();

/// How a convolution is computed.
enum Way {
    Products(Products),
    Channels(Channels),
}

/// Weights in the order in which they are read.
enum Packed {
    Panels(Vec<Panels>),
    Channels(Aligned<f32>),
}

impl Way {
    /// How many elements of scratch memory it takes.
    fn scratch_size(&self) -> usize {
        match self {
            Self::Products(products) => products.scratch_size(),
            Self::Channels(_) => 0,
        }
    }

    fn pack(&self, cpu: &Cpu, weights: &[f32]) -> Packed {
        match self {
            Self::Products(products) => Packed::Panels(products.pack(cpu, weights)),
            Self::Channels(channels) => Packed::Channels(channels.pack(weights)),
        }
    }

    fn compute(
        &self,
        cpu: &Cpu,
        (x, weights): (&[f32], &Packed),
        finish: &Finish<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        match (self, weights) {
            (Self::Products(products), Packed::Panels(weights)) => {
                products.compute(cpu, (x, weights), finish, y, scratch);
            }
            (Self::Channels(channels), Packed::Channels(weights)) => {
                channels.compute(cpu, (x, weights), finish, y);
            }
            _ => unreachable!("weights are packed for the way in which they are used"),
        }
    }
}

/// The convolution of a call and what follows it.
fn convolution(cpu: &Cpu, call: &Call<'_>) -> Result<(Way, Activation)> {
    let sizes = sizes(call)?;
    check_finish(call, sizes.outputs)?;
    let way = match Channels::new(&sizes) {
        Some(channels) => Way::Channels(channels),
        None => Way::Products(Products::new(cpu, &sizes)),
    };
    Ok((way, Activation::of(call)?))
}

fn sizes(call: &Call<'_>) -> Result<Sizes> {
    let (x, w, y) = (call.input(0)?.dims(), call.input(1)?.dims(), call.output(0)?.dims());
    let groups = call.int("group")?.unwrap_or(1);
    let unfit = || {
        Error::invalid_argument(format!(
            "expected images [N, …, C], weights [C, M / group, …] and an output [N, …, M] for {groups} groups, found {x:?}, \
             {w:?} and {y:?}"
        ))
    };
    let ([images, input @ .., channels], [w_channels, rows, kernel @ ..], [y_images, output @ .., outputs]) =
        (x, w, y)
    else {
        return Err(unfit());
    };
    let fits = groups > 0
        && (images, channels) == (y_images, w_channels)
        && channels % groups == 0
        && rows.checked_mul(groups) == Some(*outputs)
        && [images, channels, outputs].into_iter().all(|dim| (0..=MOST).contains(dim));
    if !fits {
        return Err(unfit());
    }
    let images = *images as usize;
    let window = Settings::new(call)?.transposed_window(input, kernel, output)?;
    check_output(call, &window.axes)?;
    let (down, along) = axes(images, window.axes)?;
    Ok(Sizes {
        images,
        channels: *channels as usize,
        outputs: *outputs as usize,
        groups: groups as usize,
        down,
        along,
    })
}

/// Checks the size of the output.
fn check_output(call: &Call<'_>, axes: &[Axis]) -> Result<()> {
    let padding = call.ints("output_padding")?;
    let found = padding.unwrap_or(&[]);
    ensure!(
        padding.is_none_or(|list| list.len() == axes.len())
            && found.iter().all(|more| (0..=MOST).contains(more)),
        invalid_argument,
        "expected `output_padding` of {} values between 0 and {MOST}, found {found:?}",
        axes.len()
    );
    for (index, axis) in axes.iter().enumerate() {
        ensure!(
            axis.stride <= MOST_STRIDE,
            unimplemented,
            "expected strides of at most {MOST_STRIDE}, found {}",
            axis.stride
        );
        let more = padding.map_or(0, |list| list[index]);
        let all = axis.stride as i64 * (axis.output as i64 - 1) + axis.extent() as i64 + more;
        let expected = (all - (axis.pad.0 + axis.pad.1) as i64).max(0);
        ensure!(
            expected == axis.input as i64,
            invalid_argument,
            "expected an output of size {expected} for an input of {}, found {}",
            axis.output,
            axis.input
        );
    }
    Ok(())
}

fn prepare(cpu: &Cpu, call: &Call<'_>) -> Result<Arc<Run>> {
    let (way, activation) = convolution(cpu, call)?;
    let sizes = sizes(call)?;
    let w = call.input(1)?;
    ensure!(w.is_constant(), unimplemented, "expected weights that are constant, found some that are not");
    let how = if matches!(way, Way::Channels(_)) { "depthwise" } else { "as ordinary convolutions" };
    call.describe(&format!("transposed, {how}, {}", cpu.isa().without_tiles()));
    // SAFETY: the device's memory is the host's, and the operand is constant.
    let weights = || unsafe { w.constant_elements() };
    let key = (cpu.isa(), sizes.key());
    let packed =
        PACKED.get_or_make_at(constants::place(&w), key, || Ok::<_, Error>(way.pack(cpu, &weights()?)))?;
    let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
    Ok(Arc::new(move |cpu, call| {
        let is_prepared = call.input(0)?.dims() == dims[0] && call.output(0)?.dims() == dims[1];
        super::expect_prepared(is_prepared)?;
        with_operands(call, sizes.outputs, activation, |x, finish, y| {
            let mut scratch = Scratch::of(call);
            let scratch = scratch.elements(way.scratch_size());
            way.compute(cpu, (x, &packed), finish, y, scratch);
        })
    }))
}

//! The kernel `oarlock.ConvTranspose`: a convolution whose windows slide over the output.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

mod phase;
mod phase_conv;
pub(super) mod transposed_conv;
pub(super) mod transposed_depthwise;
mod transposed_job;
pub(super) mod transposed_shape;

use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::constant_cache::{self, ConstantCache};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::subnormals::flush_subnormal_weights;
use oarlock_cpu_base::window::{MAX_SIZE, WindowAttributes, WindowAxis};
use oarlock_cpu_gemm::{AlignedBuffer, ScratchBuffer};
use oarlock_sdk::{
    DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result, ensure,
};

use self::transposed_conv::TransposedConv;
use self::transposed_depthwise::TransposedDepthwise;
use self::transposed_shape::NhwcTransposedShape;
use super::conv::{check_epilogue, with_conv_operands};
use super::epilogue::ConvEpilogue;
use super::geometry::spatial_axes;
use super::weight_panels::WeightPanels;

/// The maximum stride. Work grows with the number of phases, and no known network has more than a few.
const MAX_STRIDE: usize = 64;

pub(super) fn nhwc_conv_transpose_kernel() -> Kernel<Cpu> {
    let number = OperandSpec::new(DtypeSet::F32);
    let image = number.with_rank(3, 4);
    Kernel::new_prepared("ConvTranspose", prepare_conv_transpose)
        .with_domain(OARLOCK_DOMAIN)
        .with_support_check(|cpu, call| {
            ensure!(
                call.input(1)?.is_constant(),
                unimplemented,
                "expected weights that are constant, found some that are not"
            );
            plan_convolution(cpu, call).map(drop)
        })
        .with_workspace(|cpu, call| {
            let (algorithm, _) = plan_convolution(cpu, call)?;
            // Up to 64 bytes are lost to aligning the scratch memory to a cache line.
            Ok((algorithm.scratch_size() * size_of::<f32>() + 64) as u64)
        })
        .with_in_place(0, 3)
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([
            image.with_name("X"),
            image.with_name("W").with_flags(OperandFlags::UNALIGNED.union(OperandFlags::ON_DEMAND)),
            number.with_name("B").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL),
            image.with_name("Z").with_flags(OperandFlags::OPTIONAL),
        ])
        .with_outputs([image.with_name("Y")])
}

type PreparedConvTranspose = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

/// Packed weights, by instruction set and everything else that they depend on.
static PACKED_WEIGHTS: ConstantCache<(Isa, [usize; 9]), PackedTransposedWeights> = ConstantCache::new();

enum TransposedAlgorithm {
    Products(TransposedConv),
    Channels(TransposedDepthwise),
}

enum PackedTransposedWeights {
    Panels(Vec<WeightPanels>),
    Channels(AlignedBuffer<f32>),
}

impl TransposedAlgorithm {
    fn scratch_size(&self) -> usize {
        match self {
            Self::Products(products) => products.scratch_size(),
            Self::Channels(_) => 0,
        }
    }

    fn pack_weights(&self, cpu: &Cpu, weights: &[f32]) -> PackedTransposedWeights {
        match self {
            Self::Products(products) => PackedTransposedWeights::Panels(products.pack_weights(cpu, weights)),
            Self::Channels(channels) => {
                let mut packed = channels.pack_weights(weights);
                flush_subnormal_weights(cpu.isa(), &mut packed);
                PackedTransposedWeights::Channels(packed)
            }
        }
    }

    fn compute(
        &self,
        cpu: &Cpu,
        (x, weights): (&[f32], &PackedTransposedWeights),
        epilogue: &ConvEpilogue<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        match (self, weights) {
            (Self::Products(products), PackedTransposedWeights::Panels(weights)) => {
                products.compute(cpu, (x, weights), epilogue, y, scratch);
            }
            (Self::Channels(channels), PackedTransposedWeights::Channels(weights)) => {
                channels.compute(cpu, (x, weights), epilogue, y);
            }
            _ => unreachable!("weights are packed for the way in which they are used"),
        }
    }
}

fn plan_convolution(cpu: &Cpu, call: &KernelCall<'_>) -> Result<(TransposedAlgorithm, FusedActivation)> {
    let sizes = transposed_shape(call)?;
    check_epilogue(call, sizes.outputs)?;
    // Depthwise, if each output depends on one channel only.
    let algorithm = match TransposedDepthwise::new(&sizes) {
        Some(channels) => TransposedAlgorithm::Channels(channels),
        None => TransposedAlgorithm::Products(TransposedConv::new(cpu, &sizes)),
    };
    Ok((algorithm, FusedActivation::from_attributes(call)?))
}

fn transposed_shape(call: &KernelCall<'_>) -> Result<NhwcTransposedShape> {
    let (x, w, y) = (call.input(0)?.dims(), call.input(1)?.dims(), call.output(0)?.dims());
    let groups = call.int_attribute("group")?.unwrap_or(1);
    let unfit = || {
        PluginError::invalid_argument(format!(
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
        && [images, channels, outputs].into_iter().all(|dim| (0..=MAX_SIZE).contains(dim));
    if !fits {
        return Err(unfit());
    }
    let images = *images as usize;
    let window = WindowAttributes::new(call)?.transposed_window(input, kernel, output)?;
    check_output(call, &window.axes)?;
    let (vertical, horizontal) = spatial_axes(images, window.axes)?;
    Ok(NhwcTransposedShape {
        images,
        channels: *channels as usize,
        outputs: *outputs as usize,
        groups: groups as usize,
        vertical,
        horizontal,
    })
}

fn check_output(call: &KernelCall<'_>, axes: &[WindowAxis]) -> Result<()> {
    let padding = call.ints_attribute("output_padding")?;
    let found = padding.unwrap_or(&[]);
    ensure!(
        padding.is_none_or(|list| list.len() == axes.len())
            && found.iter().all(|more| (0..=MAX_SIZE).contains(more)),
        invalid_argument,
        "expected `output_padding` of {} values between 0 and {MAX_SIZE}, found {found:?}",
        axes.len()
    );
    for (index, axis) in axes.iter().enumerate() {
        ensure!(
            // Each remainder modulo the stride is a separate product, so their number must stay small.
            axis.stride <= MAX_STRIDE,
            unimplemented,
            "expected strides of at most {MAX_STRIDE}, found {}",
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

fn prepare_conv_transpose(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Arc<PreparedConvTranspose>> {
    let (algorithm, activation) = plan_convolution(cpu, call)?;
    let sizes = transposed_shape(call)?;
    let w = call.input(1)?;
    // Weights are packed once, here. The engine uses this kernel only if weights are constant.
    ensure!(w.is_constant(), unimplemented, "expected weights that are constant, found some that are not");
    let how = if matches!(algorithm, TransposedAlgorithm::Channels(_)) {
        "depthwise"
    } else {
        "as ordinary convolutions"
    };
    call.describe_kernel(&format!("transposed, {how}, {}", cpu.isa().without_amx()));
    let weights = || {
        call.read_constant(1, false)?;
        // SAFETY: device memory is host memory, and the operand is a constant that was just read.
        unsafe { w.constant_elements() }
    };
    let key = (cpu.isa(), sizes.weights_key());
    let packed = PACKED_WEIGHTS.get_or_make_at(constant_cache::constant_range(&w), key, || {
        Ok::<_, PluginError>(algorithm.pack_weights(cpu, &weights()?))
    })?;
    let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
    Ok(Arc::new(move |cpu, call| {
        let is_prepared = call.input(0)?.dims() == dims[0] && call.output(0)?.dims() == dims[1];
        // Scratch memory and tasks were planned for these shapes.
        super::expect_prepared(is_prepared)?;
        with_conv_operands(call, sizes.outputs, activation, |x, epilogue, y| {
            let mut scratch = ScratchBuffer::from_call(call);
            let scratch = scratch.allocate_elements(algorithm.scratch_size());
            algorithm.compute(cpu, (x, &packed), epilogue, y, scratch);
        })
    }))
}

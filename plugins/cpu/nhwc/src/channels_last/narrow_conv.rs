//! NCHW convolutions of narrow floats, computed in `f32` and NHWC. Elements are converted and transposed before and after, which
//! costs little: if a window has more than one element, each input is used several times.

#![expect(unsafe_code, reason = "threads write disjoint parts of scratch memory and of the output")]

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::constant_cache;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::GRAIN;
use oarlock_cpu_base::rows::plane_transpose::transpose_planes;
use oarlock_cpu_base::window::WindowAttributes;
use oarlock_cpu_gemm::{DisjointSlice, ScratchBuffer};
use oarlock_sdk::{KernelCall, Result};

use super::algorithm::{NhwcConv, PackedConvWeights};
use super::epilogue::{ConvEpilogue, ResidualSource};
use super::geometry::NhwcGeometry;

pub struct HalfFloatWeights(Arc<PackedConvWeights>);

/// A planned convolution of narrow floats.
pub struct HalfFloatConv {
    convolution: NhwcConv,
    images: usize,
    /// The channels and pixels of an image, of the input and of the output.
    input: [usize; 2],
    output: [usize; 2],
    /// The dimensions of input and output in NCHW.
    dims: [Vec<i64>; 2],
}

impl HalfFloatConv {
    /// None if the weights are not constant or there are more than two spatial dimensions.
    pub fn from_call(
        cpu: &Cpu,
        call: &KernelCall<'_>,
        settings: &WindowAttributes,
        groups: i64,
    ) -> Result<Option<Self>> {
        let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
        let with_channels_last = |dims: &[i64]| match dims {
            [images, channels, rest @ ..] => [&[*images], rest, &[*channels]].concat(),
            _ => Vec::new(),
        };
        let (x_dims, y_dims) = (with_channels_last(x.dims()), with_channels_last(y.dims()));
        let geometry = NhwcGeometry::for_convolution(settings, groups, &x_dims, w.dims(), &y_dims);
        let Some(geometry) = geometry.ok().filter(|_| w.is_constant()) else { return Ok(None) };
        if x.element_count()? == 0 || y.element_count()? == 0 || w.element_count()? == 0 {
            return Ok(None);
        }
        let (vertical, horizontal) = (&geometry.vertical, &geometry.horizontal);
        Ok(Some(Self {
            convolution: NhwcConv::new(cpu, &geometry),
            images: geometry.images,
            input: [geometry.channels, vertical.input * horizontal.input],
            output: [geometry.outputs, vertical.output * horizontal.output],
            dims: [x.dims().to_vec(), y.dims().to_vec()],
        }))
    }

    pub fn scratch_size(&self) -> usize {
        // Up to 64 bytes are lost to aligning the scratch memory to a cache line.
        2 * self.buffer_elements() * size_of::<f32>() + self.convolution.scratch_size() + 64
    }

    /// The number of elements of the input or the output, whichever is larger.
    fn buffer_elements(&self) -> usize {
        let count = |[channels, pixels]: [usize; 2]| self.images * channels * pixels;
        count(self.input).max(count(self.output))
    }

    pub fn output_channels(&self) -> usize {
        self.convolution.output_channels()
    }

    /// True if the images of a call have the sizes of this plan.
    pub fn matches_call(&self, call: &KernelCall<'_>) -> Result<bool> {
        Ok(call.input(0)?.dims() == self.dims[0] && call.output(0)?.dims() == self.dims[1])
    }

    pub fn pack_weights<E: ComputeElement<Float = f32>>(
        &self,
        cpu: &Cpu,
        call: &KernelCall<'_>,
    ) -> Result<HalfFloatWeights> {
        let w = call.input(1)?;
        call.describe_kernel(&self.convolution.description(cpu));
        // SAFETY: device memory is host memory, and the operand is constant.
        let weights = unsafe { w.elements::<E>() }?;
        let widened = || Ok(Cow::Owned(weights.iter().map(|weight| weight.to_float()).collect()));
        self.convolution
            .pack_shared_weights(cpu, constant_cache::constant_range(&w), w.dtype(), widened)
            .map(HalfFloatWeights)
    }

    pub fn compute<E: ComputeElement<Float = f32>>(
        &self,
        cpu: &Cpu,
        (x, bias): (&[E], Option<&[E]>),
        (packed, given): (&HalfFloatWeights, &[E]),
        y: &mut [E],
        scratch: &mut ScratchBuffer<'_>,
    ) {
        let rest = self.convolution.scratch_size().div_ceil(size_of::<f32>());
        let scratch = scratch.allocate_elements::<f32>(2 * self.buffer_elements() + rest);
        // Two buffers that alternate as source and target: widen, transpose, convolve, transpose back.
        let (first, scratch) = scratch.split_at_mut(self.buffer_elements());
        let (second, rest) = scratch.split_at_mut(self.buffer_elements());
        // SAFETY: any bytes are valid numbers, and the bytes stay borrowed.
        let rest = unsafe { slice::from_raw_parts_mut(rest.as_mut_ptr().cast(), size_of_val(rest)) };
        let bias: Option<Vec<f32>> = bias.map(|bias| bias.iter().map(|bias| bias.to_float()).collect());
        let epilogue = ConvEpilogue {
            bias: bias.as_deref(),
            residual: ResidualSource::None,
            activation: FusedActivation::NONE,
        };
        parallel_pieces(cpu, &mut first[..x.len()], |begin, to| {
            cpu.isa().vectorize(MapElements { from: &x[begin..begin + to.len()], to, map: E::to_float });
        });
        // Winograd's algorithm reads the original weights if an input is not finite.
        let given = |first: usize, to: &mut [f32]| {
            for (to, weight) in to.iter_mut().zip(&given[first..]) {
                *to = weight.to_float();
            }
        };
        let [channels, pixels] = self.input;
        transpose_planes(cpu, &first[..x.len()], &mut second[..x.len()], pixels, channels);
        let result = &mut first[..y.len()];
        self.convolution.compute(
            cpu,
            (&second[..x.len()], &packed.0, &given),
            &epilogue,
            result,
            &mut ScratchBuffer::new(rest),
        );
        let [channels, pixels] = self.output;
        let result = &mut second[..y.len()];
        transpose_planes(cpu, &first[..y.len()], result, channels, pixels);
        parallel_pieces(cpu, y, |begin, to| {
            cpu.isa().vectorize(MapElements {
                from: &result[begin..begin + to.len()],
                to,
                map: E::from_float,
            });
        });
    }
}

/// Calls a function for each piece of a slice, with its offset.
fn parallel_pieces<T: Send>(cpu: &Cpu, to: &mut [T], body: impl Fn(usize, &mut [T]) + Sync) {
    let count = to.len();
    let to = DisjointSlice::new(to);
    cpu.parallel_for(count, GRAIN, |begin, end| {
        // SAFETY: the pieces do not overlap.
        body(begin, unsafe { to.range_mut(begin..end) });
    });
}

struct MapElements<'a, A, B, F> {
    from: &'a [A],
    to: &'a mut [B],
    map: F,
}

impl<A: Copy, B, F: Fn(A) -> B> SimdTask for MapElements<'_, A, B, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = (self.map)(*from);
        }
    }
}

//! Which way a convolution of quantised numbers is computed, and what of it is ready before a call.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{Call, Dtype, Result, Tensor, ensure};

use super::dense::{Dense, Results};
use super::depthwise;
use super::finish::{Finish, Requantize, zero_point};
use super::interleaved::{self, Interleaved, Operands, Weights};
use super::packed::{Order, Panels, Source};
use super::tile::Kernels;
use super::vector::TURNED;
use crate::constants::{self, Constants};
use crate::device::Cpu;
use crate::gemm::Scratch;
use crate::kernels::channels_last::expect_prepared;
use crate::kernels::channels_last::geometry::Geometry;

/// The places of the operands of a call, beside the image and the weights.
const SCALE: usize = 2;
const BIAS: usize = 3;
const RESIDUAL: usize = 4;

/// A convolution of known sizes and what follows it.
pub(super) struct Layer {
    geometry: Geometry,
    way: Way,
    order: Order,
    requantize: Requantize,
    is_signed: bool,
    zero: i64,
}

/// How it is computed.
enum Way {
    Dense(Box<Dense>),
    Depthwise,
    Interleaved(Interleaved),
}

/// Images to read.
pub(super) struct Images<'a> {
    pub(super) x: &'a [u8],
    pub(super) is_signed: bool,
    /// The zero point, which is what stands in the padding.
    pub(super) zero: u8,
}

/// Weights in the order in which they are read.
pub(super) enum Packed {
    Panels(Panels),
    Channels(Vec<i8>),
    Interleaved(Weights),
}

/// What packed weights depend on beside the weights: the vectors of the kernels, the order they were given in, and the
/// groups, the channels of a group, the outputs, the taps of a line and of all, and the taps and inputs as they are read.
type Key = (usize, Order, [usize; 7]);

static PACKED: Constants<Key, Packed> = Constants::new();

/// The bytes of an operand of eight-bit integers.
///
/// # Safety
///
/// As for [`Tensor::elements`].
pub(crate) unsafe fn bytes<'a>(tensor: &Tensor<'a>) -> Result<&'a [u8]> {
    // SAFETY: as the caller vouches.
    unsafe {
        if tensor.dtype() == Dtype::I8 { tensor.element_bytes::<i8>() } else { tensor.element_bytes::<u8>() }
    }
}

/// The same, to be written.
///
/// # Safety
///
/// As for [`Tensor::elements_mut`].
pub(super) unsafe fn bytes_mut<'a>(tensor: &Tensor<'a>) -> Result<&'a mut [u8]> {
    // SAFETY: as the caller vouches; a signed byte is an unsigned one of the same bits.
    unsafe {
        if tensor.dtype() == Dtype::I8 {
            let signed = tensor.elements_mut::<i8>()?;
            Ok(std::slice::from_raw_parts_mut(signed.as_mut_ptr().cast(), signed.len()))
        } else {
            tensor.elements_mut::<u8>()
        }
    }
}

impl Layer {
    /// The layer of a call with this geometry; the operands are at the same places for all ops.
    pub(super) fn new(cpu: &Cpu, call: &Call<'_>, geometry: Geometry, order: Order) -> Result<Self> {
        for (name, index) in [("W", 1), ("scale", SCALE), ("B", BIAS)] {
            ensure!(
                call.optional_input(index)?.is_none_or(|operand| operand.is_constant()),
                unimplemented,
                "expected `{name}` to be constant, found that it is not"
            );
        }
        let outputs = geometry.outputs as i64;
        let scale = call.input(SCALE)?;
        let fits = scale.element_count()? == 1 || scale.dims() == [outputs];
        ensure!(
            fits,
            invalid_argument,
            "expected one `scale` or {outputs}, found the shape {:?}",
            scale.dims()
        );
        for (name, index, expected) in [("B", BIAS, &[outputs][..]), ("Z", RESIDUAL, call.output(0)?.dims())]
        {
            if let Some(operand) = call.optional_input(index)? {
                ensure!(
                    operand.dims() == expected,
                    invalid_argument,
                    "expected `{name}` of the shape {expected:?}, found {:?}",
                    operand.dims()
                );
            }
        }
        let dtype = call.input(0)?.dtype();
        let way = if !geometry.is_depthwise() {
            Way::Dense(Box::new(Dense::new(cpu, &geometry)))
        } else if call.optional_input(RESIDUAL)?.is_none()
            && let Some(interleaved) = Interleaved::new(cpu.isa(), &geometry)
        {
            Way::Interleaved(interleaved)
        } else {
            Way::Depthwise
        };
        Ok(Self {
            way,
            geometry,
            order,
            requantize: Requantize::of(call)?,
            is_signed: dtype == Dtype::I8,
            zero: zero_point(call, "x_zero", dtype)?,
        })
    }

    /// How it is computed, for people.
    pub(super) fn description(&self) -> &'static str {
        match &self.way {
            Way::Dense(_) => "indirect GEMM in 8 bits",
            Way::Depthwise => "depthwise in 8 bits",
            Way::Interleaved(_) => "interleaved depthwise in 8 bits",
        }
    }

    /// How many bytes of scratch memory it takes.
    pub(super) fn scratch_size(&self) -> usize {
        match &self.way {
            Way::Dense(dense) if self.geometry.pixels() * self.geometry.outputs > 0 => dense.scratch_size(),
            _ => 0,
        }
    }

    /// Makes everything ready that is constant.
    pub(super) fn ready(self, cpu: &Cpu, call: &Call<'_>) -> Result<Ready> {
        let Geometry { outputs, groups, .. } = self.geometry;
        let (w, scale, bias) = (call.input(1)?, call.input(SCALE)?, call.optional_input(BIAS)?);
        let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
        if self.geometry.pixels() * outputs == 0 {
            // There may be many outputs of no pixels, and nothing is to be made ready for them.
            let packed = Arc::new(Packed::Channels(Vec::new()));
            let (factors, starts, padding) = Default::default();
            return Ok(Ready { layer: self, packed, factors, starts, padding, dims });
        }
        let steps = match &self.way {
            Way::Dense(dense) => dense.taps(),
            Way::Depthwise => (0, 0),
            Way::Interleaved(interleaved) => interleaved.sizes(),
        };
        let (depth, kernel) = (self.geometry.channels_of_group(), self.geometry.along.kernel);
        let sizes = [groups, depth, outputs, kernel, self.geometry.taps(), steps.0, steps.1];
        let lanes = Kernels::of(cpu.isa()).lanes;
        // SAFETY: the device's memory is the host's, and these operands are constant.
        let (factors, bias) = unsafe {
            let bias = bias.as_ref().map(|bias| bias.constant_elements::<i32>()).transpose()?;
            (scale.constant_elements::<f32>()?, bias)
        };
        let packed = PACKED.get_or_make_at(constants::place(&w), (lanes, self.order, sizes), || {
            // SAFETY: as above.
            let weights = unsafe { w.constant_elements::<i8>() }?;
            Ok::<_, oarlock_sdk::Error>(match &self.way {
                Way::Dense(dense) => {
                    // SAFETY: as above.
                    let bytes = unsafe { bytes(&w) }?;
                    Packed::Panels(dense.pack(cpu, Source { bytes, order: self.order, turned: 0 }))
                }
                Way::Depthwise => Packed::Channels(depthwise::pack(&self.geometry, &weights)),
                Way::Interleaved(interleaved) => {
                    Packed::Interleaved(interleaved.pack(&self.geometry, &weights))
                }
            })
        })?;
        let factors = if factors.len() == 1 { vec![factors[0]; outputs] } else { factors.into_owned() };
        let starts = self.starts(bias.as_deref(), &packed, lanes);
        let (factors, padding) = match &*packed {
            Packed::Interleaved(_) => (interleaved::in_order(&factors), vec![self.zero as u8; outputs]),
            _ => (factors, Vec::new()),
        };
        Ok(Ready { layer: self, packed, factors, starts, padding, dims })
    }

    /// Where the sums of each output begin: with the bias, less what the zero point adds to the sum. Those of each group are
    /// whole vectors.
    fn starts(&self, bias: Option<&[i32]>, packed: &Packed, lanes: usize) -> Vec<i32> {
        let of_bias = |output: usize| bias.map_or(0, |bias| bias[output]);
        let zero = self.zero as i32 + if self.is_signed { i32::from(TURNED) } else { 0 };
        let start = |(output, sum): (usize, &i32)| of_bias(output).wrapping_sub(zero.wrapping_mul(*sum));
        let panels = match packed {
            Packed::Panels(panels) => panels,
            Packed::Channels(_) => return (0..self.geometry.outputs).map(of_bias).collect(),
            Packed::Interleaved(weights) => {
                let starts: Vec<i32> = weights.sums.iter().enumerate().map(start).collect();
                return interleaved::in_order(&starts);
            }
        };
        let outputs = self.geometry.outputs_of_group();
        let padded = outputs.next_multiple_of(lanes);
        let mut starts = vec![0; self.geometry.groups * padded];
        for (output, sum) in panels.sums.iter().enumerate() {
            starts[output / outputs * padded + output % outputs] = start((output, sum));
        }
        starts
    }
}

/// A layer with its weights.
pub(super) struct Ready {
    layer: Layer,
    packed: Arc<Packed>,
    factors: Vec<f32>,
    starts: Vec<i32>,
    /// A pixel of zero points, where one is read.
    padding: Vec<u8>,
    dims: [Vec<i64>; 2],
}

impl Ready {
    /// Computes a call like the one that it was made for.
    pub(super) fn run(&self, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
        let (x, z, y) = (call.input(0)?, call.optional_input(RESIDUAL)?, call.output(0)?);
        expect_prepared(x.dims() == self.dims[0] && y.dims() == self.dims[1])?;
        // SAFETY: the device's memory is the host's, and the call vouches for its operands.
        let (x, residual, y) =
            unsafe { (bytes(&x)?, z.as_ref().map(|z| bytes(z)).transpose()?, bytes_mut(&y)?) };
        expect_prepared(residual.is_none_or(|residual| residual.len() == y.len()))?;
        if y.is_empty() {
            return Ok(());
        }
        let Layer { geometry, way, requantize, is_signed, zero, .. } = &self.layer;
        let images = Images { x, is_signed: *is_signed, zero: *zero as u8 };
        let finish = Finish { requantize, factors: &self.factors, residual };
        match (way, &*self.packed) {
            (Way::Dense(dense), Packed::Panels(weights)) => {
                let scratch = &mut Scratch::of(call);
                dense.compute(cpu, &images, (weights, &self.starts), Results::Bytes(&finish, y), scratch);
            }
            (Way::Depthwise, Packed::Channels(weights)) => {
                depthwise::compute(cpu, geometry, &images, (weights, &self.starts), &finish, y);
            }
            (Way::Interleaved(interleaved), Packed::Interleaved(weights)) => {
                let (starts, factors, padding) = (&self.starts, &self.factors, &self.padding);
                let operands = Operands { weights, starts, factors, padding, requantize };
                interleaved.compute(cpu, geometry, &images, &operands, y);
            }
            _ => unreachable!("weights are packed for the way in which they are used"),
        }
        Ok(())
    }
}

//! Chooses the algorithm of a quantized convolution, and prepares its weights and initial sums.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::constant_cache::{self, ConstantCache};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::simd::SIGN_BIT;
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_sdk::{Dtype, KernelCall, Result, ensure};

use super::byte_operands::{QuantizedImages, tensor_bytes, tensor_bytes_mut};
use super::dense::{QuantizedDenseConv, QuantizedOutput};
use super::depthwise;
use super::interleaved::{InterleavedDepthwise, InterleavedOperands, InterleavedWeights};
use super::quantized_panels::{QuantizedPanels, WeightOrder, WeightSource};
use super::requantize::{QuantizedEpilogue, RequantizeParameters, zero_point};
use super::tile::QuantizedMicroKernels;
use super::winograd::{QuantizedWinograd, TransformedWeights};
use crate::channels_last::expect_prepared;
use crate::channels_last::geometry::NhwcGeometry;

/// The indices of the operands other than the image and the weights.
const SCALE: usize = 2;
const BIAS: usize = 3;
const RESIDUAL: usize = 4;

/// A convolution of known geometry with its epilogue.
pub(super) struct QuantizedLayer {
    geometry: NhwcGeometry,
    algorithm: QuantizedAlgorithm,
    /// Replaces the algorithm where the weights permit it, which is known when the layer is prepared.
    winograd: Option<QuantizedWinograd>,
    order: WeightOrder,
    requantize: RequantizeParameters,
    is_signed: bool,
    zero: i64,
}

enum QuantizedAlgorithm {
    Dense(Box<QuantizedDenseConv>),
    Depthwise,
    Interleaved(InterleavedDepthwise),
    Winograd(QuantizedWinograd),
}

pub(super) enum PackedQuantizedWeights {
    Panels(QuantizedPanels),
    Channels(Vec<i8>),
    Interleaved(InterleavedWeights),
    Transformed(TransformedWeights),
}

/// Everything that packed weights depend on besides the weights: the instruction set, the order of the given weights, whether they are
/// transformed, and the numbers of groups, channels per group, outputs, taps per line, taps in all, and taps and inputs as they are read.
type QuantizedWeightsKey = (Isa, WeightOrder, bool, [usize; 7]);

static PACKED_WEIGHTS: ConstantCache<QuantizedWeightsKey, PackedQuantizedWeights> = ConstantCache::new();

impl QuantizedLayer {
    /// The layer of a call. All ops that are computed as a layer have the same operand indices.
    pub(super) fn new(
        cpu: &Cpu,
        call: &KernelCall<'_>,
        geometry: NhwcGeometry,
        order: WeightOrder,
    ) -> Result<Self> {
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
        let winograd = match order {
            WeightOrder::OutputsFirst => QuantizedWinograd::if_profitable(cpu, &geometry),
            WeightOrder::OutputsLast => None,
        };
        let algorithm = if !geometry.is_depthwise() {
            QuantizedAlgorithm::Dense(Box::new(QuantizedDenseConv::new(cpu, &geometry)))
        } else if call.optional_input(RESIDUAL)?.is_none()
            && let Some(interleaved) = InterleavedDepthwise::new(cpu.isa(), &geometry)
        {
            QuantizedAlgorithm::Interleaved(interleaved)
        } else {
            QuantizedAlgorithm::Depthwise
        };
        Ok(Self {
            algorithm,
            winograd,
            geometry,
            order,
            requantize: RequantizeParameters::from_call(call)?,
            is_signed: dtype == Dtype::I8,
            zero: zero_point(call, "x_zero", dtype)?,
        })
    }

    /// The algorithm, as reports show it.
    fn description(&self) -> &'static str {
        match &self.algorithm {
            QuantizedAlgorithm::Dense(_) => "indirect GEMM in 8 bits",
            QuantizedAlgorithm::Depthwise => "depthwise in 8 bits",
            QuantizedAlgorithm::Interleaved(_) => "interleaved depthwise in 8 bits",
            QuantizedAlgorithm::Winograd(_) => "Winograd F(4×4, 3×3) in 8 bits",
        }
    }

    pub(super) fn scratch_size(&self) -> usize {
        if self.geometry.output_pixels() * self.geometry.outputs == 0 {
            return 0;
        }
        let QuantizedAlgorithm::Dense(dense) = &self.algorithm else { return 0 };
        dense.scratch_size().max(self.winograd.as_ref().map_or(0, QuantizedWinograd::scratch_size))
    }

    /// Packs weights and computes initial sums if they are constant.
    pub(super) fn prepare_layer(mut self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<PreparedLayer> {
        let NhwcGeometry { outputs, groups, .. } = self.geometry;
        let (w, scale, bias) = (call.input(1)?, call.input(SCALE)?, call.optional_input(BIAS)?);
        let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
        if self.geometry.output_pixels() * outputs == 0 {
            // Without output pixels, nothing is packed, however many outputs there are.
            let packed = Arc::new(PackedQuantizedWeights::Channels(Vec::new()));
            let (factors, starts, padding) = Default::default();
            return Ok(PreparedLayer { layer: self, packed, factors, starts, padding, dims });
        }
        if let Some(winograd) = self.winograd.take() {
            call.read_constant(1, false)?;
            // SAFETY: device memory is host memory, and the weights are constant and were just read.
            let weights = unsafe { w.constant_elements::<i8>() }?;
            if winograd.is_exact(&weights) {
                self.algorithm = QuantizedAlgorithm::Winograd(winograd);
            }
        }
        let steps = match &self.algorithm {
            QuantizedAlgorithm::Dense(dense) => dense.tap_shape(),
            QuantizedAlgorithm::Depthwise | QuantizedAlgorithm::Winograd(_) => (0, 0),
            QuantizedAlgorithm::Interleaved(interleaved) => interleaved.weights_key(),
        };
        let (depth, kernel) = (self.geometry.channels_per_group(), self.geometry.horizontal.kernel);
        let sizes = [groups, depth, outputs, kernel, self.geometry.tap_count(), steps.0, steps.1];
        let kernels = QuantizedMicroKernels::for_isa(cpu.isa());
        // SAFETY: device memory is host memory, and these operands are constant.
        let (factors, bias) = unsafe {
            let bias = bias.as_ref().map(|bias| bias.constant_elements::<i32>()).transpose()?;
            (scale.constant_elements::<f32>()?, bias)
        };
        let packed = PACKED_WEIGHTS.get_or_make_at(
            constant_cache::constant_range(&w),
            (cpu.isa(), self.order, matches!(self.algorithm, QuantizedAlgorithm::Winograd(_)), sizes),
            || {
                call.read_constant(1, false)?;
                // SAFETY: as above, and the weights were just read.
                let weights = unsafe { w.constant_elements::<i8>() }?;
                Ok::<_, oarlock_sdk::PluginError>(match &self.algorithm {
                    QuantizedAlgorithm::Dense(dense) => {
                        // SAFETY: as above.
                        let bytes = unsafe { tensor_bytes(&w) }?;
                        PackedQuantizedWeights::Panels(
                            dense.pack_weights(cpu, WeightSource { bytes, order: self.order, sign_flip: 0 }),
                        )
                    }
                    QuantizedAlgorithm::Depthwise => PackedQuantizedWeights::Channels(
                        depthwise::pack_quantized_depthwise(&self.geometry, &weights),
                    ),
                    QuantizedAlgorithm::Interleaved(interleaved) => PackedQuantizedWeights::Interleaved(
                        interleaved.pack_weights(&self.geometry, &weights),
                    ),
                    QuantizedAlgorithm::Winograd(winograd) => {
                        PackedQuantizedWeights::Transformed(winograd.pack_weights(cpu, &weights))
                    }
                })
            },
        )?;
        let factors = if factors.len() == 1 { vec![factors[0]; outputs] } else { factors.into_owned() };
        let starts = self.initial_sums(bias.as_deref(), &packed, kernels);
        let (factors, padding) = match &self.algorithm {
            QuantizedAlgorithm::Interleaved(interleaved) => {
                (interleaved.reorder_channels(&factors), vec![self.zero as u8; outputs])
            }
            _ => (factors, Vec::new()),
        };
        Ok(PreparedLayer { layer: self, packed, factors, starts, padding, dims })
    }

    /// The initial sums of all outputs, in whole vectors for each group: the bias minus the contribution of the zero point.
    fn initial_sums(
        &self,
        bias: Option<&[i32]>,
        packed: &PackedQuantizedWeights,
        kernels: &QuantizedMicroKernels,
    ) -> Vec<i32> {
        let of_bias = |output: usize| bias.map_or(0, |bias| bias[output]);
        let start =
            |zero: i32, (output, sum): (usize, &i32)| of_bias(output).wrapping_sub(zero.wrapping_mul(*sum));
        let panels = match (&self.algorithm, packed) {
            (QuantizedAlgorithm::Dense(_), PackedQuantizedWeights::Panels(panels)) => panels,
            (QuantizedAlgorithm::Interleaved(interleaved), PackedQuantizedWeights::Interleaved(weights)) => {
                let zero = interleaved.zero_as_read(self.zero as i32, self.is_signed);
                let starts: Vec<i32> = weights.sums.iter().enumerate().map(|sum| start(zero, sum)).collect();
                return interleaved.reorder_channels(&starts);
            }
            (QuantizedAlgorithm::Winograd(_), PackedQuantizedWeights::Transformed(weights)) => {
                let zero = self.zero as i32 + if self.is_signed { i32::from(SIGN_BIT) } else { 0 };
                return weights.sums.iter().enumerate().map(|sum| start(zero, sum)).collect();
            }
            // This kernel subtracts the zero point from each input, so only the bias is left.
            _ => return (0..self.geometry.outputs).map(of_bias).collect(),
        };
        let outputs = self.geometry.outputs_per_group();
        let zero = kernels.zero_as_read(self.zero as i32, self.is_signed);
        let padded = outputs.next_multiple_of(kernels.panel_format.lanes);
        let mut starts = vec![0; self.geometry.groups * padded];
        for (output, sum) in panels.sums.iter().enumerate() {
            starts[output / outputs * padded + output % outputs] = start(zero, (output, sum));
        }
        starts
    }
}

pub(super) struct PreparedLayer {
    layer: QuantizedLayer,
    packed: Arc<PackedQuantizedWeights>,
    factors: Vec<f32>,
    starts: Vec<i32>,
    /// A pixel that consists of zero points, if the algorithm reads one.
    padding: Vec<u8>,
    dims: [Vec<i64>; 2],
}

impl PreparedLayer {
    /// The algorithm, as reports show it.
    pub(super) fn description(&self) -> &'static str {
        self.layer.description()
    }

    /// Runs a call with the shapes that the layer was prepared for.
    pub(super) fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let (x, z, y) = (call.input(0)?, call.optional_input(RESIDUAL)?, call.output(0)?);
        expect_prepared(x.dims() == self.dims[0] && y.dims() == self.dims[1])?;
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let (x, residual, y) = unsafe {
            (tensor_bytes(&x)?, z.as_ref().map(|z| tensor_bytes(z)).transpose()?, tensor_bytes_mut(&y)?)
        };
        expect_prepared(residual.is_none_or(|residual| residual.len() == y.len()))?;
        if y.is_empty() {
            return Ok(());
        }
        let QuantizedLayer { geometry, algorithm, requantize, is_signed, zero, .. } = &self.layer;
        let images = QuantizedImages { x, is_signed: *is_signed, zero: *zero as u8 };
        let finish = QuantizedEpilogue { requantize, factors: &self.factors, residual };
        match (algorithm, &*self.packed) {
            (QuantizedAlgorithm::Dense(dense), PackedQuantizedWeights::Panels(weights)) => {
                let scratch = &mut ScratchBuffer::from_call(call);
                dense.compute(
                    cpu,
                    &images,
                    (weights, &self.starts),
                    QuantizedOutput::Bytes(&finish, y),
                    scratch,
                );
            }
            (QuantizedAlgorithm::Depthwise, PackedQuantizedWeights::Channels(weights)) => {
                depthwise::compute_quantized_depthwise(
                    cpu,
                    geometry,
                    &images,
                    (weights, &self.starts),
                    &finish,
                    y,
                );
            }
            (QuantizedAlgorithm::Interleaved(interleaved), PackedQuantizedWeights::Interleaved(weights)) => {
                let (starts, factors, padding) = (&self.starts, &self.factors, &self.padding);
                let operands = InterleavedOperands { weights, starts, factors, padding, requantize };
                interleaved.compute(cpu, geometry, &images, &operands, y);
            }
            (QuantizedAlgorithm::Winograd(winograd), PackedQuantizedWeights::Transformed(weights)) => {
                let scratch = &mut ScratchBuffer::from_call(call);
                winograd.compute(cpu, &images, (weights, &self.starts), &finish, y, scratch);
            }
            _ => unreachable!("weights are packed for the way in which they are used"),
        }
        Ok(())
    }
}

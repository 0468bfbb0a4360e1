//! 8-bit weights for `oarlock.DynamicQuantizedLSTM`: the left operand is quantized before each product, with one scale for all
//! rows, as in `DynamicQuantizeLinear`.

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::quantized_operand::{read_integers, read_scales};
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_cpu_nhwc::quantized::dequantized::{DequantizeEpilogue, compute_dequantized, output_factors};
use oarlock_cpu_nhwc::quantized::dynamic_quantize::quantize_by_range;
use oarlock_cpu_nhwc::quantized::few_rows::{FewRowsBuffers, FewRowsWeights};
use oarlock_cpu_nhwc::quantized::integer_sums::{IntegerSumOperands, IntegerSums};
use oarlock_cpu_nhwc::quantized::quantized_panels::QuantizedPanels;
use oarlock_sdk::{Dtype, KernelCall, Result, ensure};

use super::weights::{PackedGateWeights, RoundedWeights};

/// The weights of one direction: for each step of a sum, the weights of all gates.
struct ByteWeights {
    panels: Arc<QuantizedPanels>,
    dtype: Dtype,
    depth: usize,
    rows: usize,
    /// One scale, or one per column of a product.
    scales: Vec<f32>,
    zeros: Vec<i32>,
    /// The same weights for products of one step; `None` if they have zero points.
    of_steps: Option<FewRowsWeights>,
}

impl RoundedWeights<f32> for ByteWeights {
    fn matrix_size(&self) -> (usize, usize) {
        (self.rows, self.depth)
    }

    fn multiply_rows(
        &self,
        cpu: &Cpu,
        left: &[f32],
        output: &mut [f32],
        is_backwards: bool,
        buffers: &mut FewRowsBuffers,
    ) {
        let rows = output.len() / self.rows;
        if let Some(weights) = self.of_steps.as_ref().filter(|weights| weights.is_faster(cpu, rows)) {
            weights.multiply(cpu, left, output, is_backwards, buffers);
            return;
        }
        // Quantized for each product, since the range of the left operand is known only then.
        let mut images = vec![0; left.len()];
        let (scale, zero) = quantize_by_range(cpu, left, &mut images);
        let sizes = [rows, self.depth, self.rows];
        let operands = IntegerSumOperands {
            images: &images,
            image_zeros: &[zero.into()],
            weights: &self.panels,
            weight_zeros: &self.zeros,
            bias: None,
        };
        // The product of both scales converts a 32-bit sum to a real number.
        let factors = output_factors(scale, &self.scales, self.rows);
        let epilogue = DequantizeEpilogue {
            factors: &factors,
            addend: None,
            residual: None,
            activation: FusedActivation::NONE,
        };
        let sums = IntegerSums::for_matmul(cpu, sizes, [Dtype::U8, self.dtype]);
        compute_dequantized(
            cpu,
            &sums,
            &operands,
            &epilogue,
            output,
            &mut ScratchBuffer::without_workspace(),
        );
    }
}

/// Prepares the weights of all directions, with scales and zero points, from three operands.
pub(super) fn prepare_byte_weights(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    [weights, scale, zero]: [usize; 3],
) -> Result<Vec<Arc<PackedGateWeights<f32>>>> {
    let (weights, scale, zero) = (call.input(weights)?, call.input(scale)?, call.input(zero)?);
    let &[directions, depth, rows] = weights.dims() else { return Ok(Vec::new()) };
    let (depth, rows) = (depth as usize, rows as usize);
    let (scales, zeros) = (scale.element_count()?, zero.element_count()?);
    // One per direction, or one per element of each direction.
    let each = [directions as usize, directions as usize * rows];
    ensure!(
        each.contains(&scales) && each.contains(&zeros),
        invalid_argument,
        "expected scales and zero points for {directions} directions or {rows} elements of each, found {scales} and {zeros}"
    );
    let (scales, zeros, dtype) = (read_scales(&scale)?, read_integers(&zero)?, weights.dtype());
    // Packing depends on columns and depth only, so the number of rows does not matter here.
    let sums = IntegerSums::for_matmul(cpu, [1, depth, rows], [Dtype::U8, dtype]);
    let (directions, of) = (directions as usize, |direction: usize, count: usize| {
        let size = count / directions as usize;
        direction * size..(direction + 1) * size
    });
    let of_direction = |direction: usize| -> Result<_> {
        let (scales, zeros) = (&scales[of(direction, scales.len())], &zeros[of(direction, zeros.len())]);
        let panels = sums.pack_part(cpu, &weights, direction..directions)?;
        let (scales, zeros) = (scales.to_vec(), zeros.to_vec());
        // Packing makes unsigned weights signed.
        let middle = if dtype == Dtype::U8 { 128 } else { 0 };
        let has_no_zeros = zeros.iter().all(|zero| *zero == middle);
        let of_steps = (depth > 0 && has_no_zeros)
            .then(|| FewRowsWeights::new(panels.clone(), scales.clone(), [depth, rows]));
        Ok(Arc::new(PackedGateWeights::Rounding(Box::new(ByteWeights {
            panels,
            dtype,
            depth,
            rows,
            scales,
            zeros,
            of_steps,
        }))))
    };
    (0..directions).map(of_direction).collect()
}

//! Assigns scales to elements: one to all, one to each index of an axis, or one to each block along an axis.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{Dtype, KernelCall, Result, TensorView, ensure};

use super::super::iteration_space::OperandShape;
use super::super::prepared_loop::{LoopOperand, PreparedLoop};
use super::block_dequantize::{QuantizedBlocks, SmallIntegerFormat};

/// The zero point of elements that have none.
static ABSENT_ZERO_POINT: f32 = 0.0;

/// A loop over elements, their scales and their zero points.
pub(super) struct ScaledLoop {
    pass: PreparedLoop,
    axis: i64,
    block: i64,
    has_zero: bool,
    /// The format of the input, if it is dequantized to `f32`.
    integers: Option<SmallIntegerFormat>,
}

/// The elements around an axis: those of all outer dimensions, those along the axis, and those of all inner ones.
#[derive(Clone, Copy)]
struct ScaleAxis {
    outer: i64,
    along: i64,
    inner: i64,
}

impl ScaledLoop {
    pub(super) fn new(call: &KernelCall<'_>, pass: PreparedLoop) -> Result<Self> {
        let (axis, block) =
            (call.int_attribute("axis")?.unwrap_or(1), call.int_attribute("block_size")?.unwrap_or(0));
        ensure!(block >= 0, invalid_argument, "expected a `block_size` that is not negative, found {block}");
        let [x, scale, y] = [call.input(0)?, call.input(1)?, call.output(0)?].map(|operand| operand.dtype());
        // The fast path reads scales and writes outputs as `f32` alone.
        let is_read = (scale, y) == (Dtype::F32, Dtype::F32);
        let integers = SmallIntegerFormat::from_dtype(x).filter(|_| is_read);
        Ok(Self { pass, axis, block, has_zero: call.optional_input(2)?.is_some(), integers })
    }

    pub(super) fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.optional_input(2)?);
        let output = call.output(0)?;
        ensure!(
            zero.is_some() == self.has_zero,
            invalid_argument,
            "expected a zero point in all calls or in none, as when the kernel was prepared"
        );
        ensure!(
            output.dims() == x.dims(),
            invalid_argument,
            "expected an output of shape {:?}, found {:?}",
            x.dims(),
            output.dims()
        );
        let zero_dims = zero.map_or(scale.dims(), |zero| zero.dims());
        let is_one = |dims: &[i64]| dims.iter().all(|size| *size == 1);
        // A single zero point may be a scalar while its scale is a list of one, and the other way round.
        ensure!(
            zero_dims == scale.dims() || is_one(zero_dims) && is_one(scale.dims()),
            invalid_argument,
            "expected zero points of the scales' shape {:?}, found {zero_dims:?}",
            scale.dims()
        );
        let [x_conversion, scale_conversion, zero_conversion] = self.pass.input_conversions() else {
            return Ok(());
        };
        let zero = match zero {
            Some(zero) => LoopOperand::from_tensor(&zero, zero_conversion)?,
            None => LoopOperand {
                shape: OperandShape { dims: &[], strides: &[] },
                address: (&raw const ABSENT_ZERO_POINT) as usize,
                size: 4,
            },
        };
        let operands = [
            LoopOperand::from_tensor(&x, x_conversion)?,
            LoopOperand::from_tensor(&scale, scale_conversion)?,
            zero,
            LoopOperand::from_tensor(&output, self.pass.output_conversion())?,
        ];
        let is_contiguous = operands.iter().all(|operand| operand.shape.strides.is_empty());
        ensure!(is_contiguous, invalid_argument, "expected contiguous operands, found strides");
        for operand in &operands {
            operand.shape.element_span()?;
        }
        self.run_along_axis(cpu, &x, scale.dims(), operands)
    }

    /// Finds out how the scales map to elements, and runs the loop.
    fn run_along_axis(
        &self,
        cpu: &Cpu,
        x: &TensorView<'_>,
        scales: &[i64],
        operands: [LoopOperand<'_>; 4],
    ) -> Result<()> {
        let dims = x.dims();
        if dims.contains(&0) {
            return Ok(());
        }
        if scales.iter().product::<i64>() == 1 && (self.block == 0 || dims.is_empty()) {
            let whole = ScaleAxis { outer: 1, along: 1, inner: dims.iter().product() };
            return self.run_blocks(cpu, whole, 1, operands);
        }
        let axis = if self.axis < 0 { self.axis + dims.len() as i64 } else { self.axis };
        // Elements of one dimension have no axis but the first.
        let axis = if dims.len() == 1 { 0 } else { axis };
        let index = usize::try_from(axis).unwrap_or(usize::MAX);
        ensure!(
            index < dims.len(),
            invalid_argument,
            "expected an `axis` of {} dimensions, found {}",
            dims.len(),
            self.axis
        );
        let around = ScaleAxis {
            outer: dims[..index].iter().product(),
            along: dims[index],
            inner: dims[index + 1..].iter().product(),
        };
        if self.block == 0 {
            ensure!(
                scales == [around.along],
                invalid_argument,
                "expected {} scales, one for each index of the axis, found them in shape {scales:?}",
                around.along
            );
            return self.run_blocks(cpu, around, 1, operands);
        }
        let blocks = around.along.div_euclid(self.block) + i64::from(around.along % self.block != 0);
        let fits = scales.len() == dims.len()
            && (0..dims.len()).all(|at| scales[at] == if at == index { blocks } else { dims[at] });
        ensure!(
            fits,
            invalid_argument,
            "expected scales of shape {dims:?} with {blocks} along axis {axis}, found {scales:?}"
        );
        self.run_blocks(cpu, around, self.block, operands)
    }

    /// Runs the loop over all blocks: at once if the axis is a multiple of the block size; otherwise, for each outer index, over
    /// the whole blocks and then over the rest.
    fn run_blocks(
        &self,
        cpu: &Cpu,
        around: ScaleAxis,
        block: i64,
        operands: [LoopOperand<'_>; 4],
    ) -> Result<()> {
        if self.run_rows(cpu, around, &operands)? {
            return Ok(());
        }
        let ScaleAxis { outer, along, inner } = around;
        let (blocks, rest) = (along / block, along % block);
        if rest == 0 {
            // With blocks there are scales for each outer and inner index, otherwise only along the axis.
            let scales = if self.block == 0 { [1, blocks, 1, 1] } else { [outer, blocks, 1, inner] };
            return self.run_part(cpu, [outer, blocks, block, inner], scales, (0, 0), operands);
        }
        for index in 0..outer {
            for (first, count, length) in [(0, blocks, block), (blocks, 1, rest)] {
                let start = (index * along + first * block) * inner;
                let first_scale = (index * (blocks + 1) + first) * inner;
                let (dims, scales) = ([1, count, length, inner], [1, count, 1, inner]);
                self.run_part(cpu, dims, scales, (start, first_scale), operands)?;
            }
        }
        Ok(())
    }

    /// The fast path for blocks along the last dimension. Returns false if it does not apply.
    fn run_rows(&self, cpu: &Cpu, around: ScaleAxis, operands: &[LoopOperand<'_>; 4]) -> Result<bool> {
        let ScaleAxis { outer, along, inner } = around;
        let (Some(integers), 1.., 1) = (self.integers, self.block, inner) else { return Ok(false) };
        let (row, block) = (along as usize, self.block as usize);
        let [x, scale, zero, output] = operands;
        let (count, blocks) = (outer as usize * row, outer as usize * row.div_ceil(block));
        let [x_size, zero_size] =
            [count, blocks].map(|count| self.pass.input_conversions()[0].byte_count(count));
        ensure!(
            x.size == x_size
                && scale.size == blocks * size_of::<f32>()
                && (!self.has_zero || zero.size == zero_size)
                && output.size == count * size_of::<f32>(),
            invalid_argument,
            "expected operands as large as their shapes say, found others"
        );
        // SAFETY: the device's memory is the host's, the call vouches for its operands, whose sizes were checked, and no input
        // overlaps the output, as its elements have another size.
        let (bytes, scales, zeros, output) = unsafe {
            (
                std::slice::from_raw_parts(x.address as *const u8, x.size),
                std::slice::from_raw_parts(scale.address as *const f32, blocks),
                self.has_zero.then(|| std::slice::from_raw_parts(zero.address as *const u8, zero.size)),
                std::slice::from_raw_parts_mut(output.address as *mut f32, count),
            )
        };
        QuantizedBlocks { integers, bytes, scales, zeros, row, block }.dequantize_into(cpu, output);
        Ok(true)
    }

    /// Runs the loop over elements and scales from given offsets on.
    fn run_part(
        &self,
        cpu: &Cpu,
        dims: [i64; 4],
        scales: [i64; 4],
        (start, first_scale): (i64, i64),
        operands: [LoopOperand<'_>; 4],
    ) -> Result<()> {
        let conversions = self.pass.input_conversions().iter().chain([self.pass.output_conversion()]);
        let mut parts = operands;
        for (index, (part, conversion)) in parts.iter_mut().zip(conversions).enumerate() {
            let is_scale = index == 1 || index == 2;
            // A scalar, such as a missing zero point, is broadcast as it is.
            if is_scale && part.shape.dims.is_empty() {
                continue;
            }
            let (dims, start) = if is_scale { (&scales, first_scale) } else { (&dims, start) };
            *part = part.slice_from(dims, start as usize, conversion)?;
        }
        let [x, scale, zero, output] = parts;
        self.pass.run_on_operands(cpu, &[x, scale, zero], output)
    }
}

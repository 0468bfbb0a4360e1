//! The kernels `oarlock.DequantizedConv` and `oarlock.DequantizedMatMul`: integer sums are converted to floats while they are in
//! L1, followed by a fused epilogue.

#![expect(
    unsafe_code,
    reason = "operands are memory that the call vouches for, and floats lie where their sums did"
)]

use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::quantized_operand::{BYTE_DTYPES, read_integers};
use oarlock_cpu_base::window::{MAX_SIZE, WindowAttributes};
use oarlock_cpu_gemm::{OutputBlock, ScratchBuffer};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, TensorView, ensure,
};

use super::byte_operands::tensor_bytes;
use super::integer_sums::{IntegerSumOperands, IntegerSums};
use super::quantized_panels::QuantizedPanels;
use crate::channels_last::expect_prepared;
use crate::channels_last::geometry::NhwcGeometry;

/// Indices of the operands besides images and weights.
const X_SCALE: usize = 2;
const W_SCALE: usize = 3;
const X_ZERO: usize = 4;
const W_ZERO: usize = 5;
const BIAS: usize = 6;
const ADDEND: usize = 7;
const RESIDUAL: usize = 8;

pub fn dequantized_kernels() -> [Kernel<Cpu>; 2] {
    [
        dequantized_kernel("DequantizedConv", "X", (3, 4), |cpu, call| {
            let [x, w, y] = operand_dims(call)?;
            let groups = call.int_attribute("group")?.unwrap_or(1);
            let geometry = NhwcGeometry::for_convolution(&WindowAttributes::new(call)?, groups, x, w, y)?;
            ensure!(
                // With one channel per output, packing in fours would leave three quarters of the products empty.
                !geometry.is_depthwise(),
                unimplemented,
                "expected a convolution that is not depthwise, found a depthwise one"
            );
            Ok(IntegerSums::for_images(cpu, geometry, operand_dtypes(call)?))
        }),
        dequantized_kernel("DequantizedMatMul", "A", (1, u32::MAX), |cpu, call| {
            let [a, w, y] = operand_dims(call)?;
            let ([rows @ .., depth], [first, columns], [y_rows @ .., outputs]) = (a, w, y) else {
                return Err(matmul_shape_error(a, w, y));
            };
            // All dimensions but the last become rows of one product.
            let count = rows.iter().try_fold(1, |count: i64, dim| count.checked_mul(*dim));
            let fits = |size: Option<i64>| size.filter(|size| (0..=MAX_SIZE).contains(size));
            let sizes = [fits(count), fits(Some(*depth)), fits(Some(*columns))];
            match sizes {
                [Some(count), Some(_), Some(_)] if rows == y_rows && depth == first && columns == outputs => {
                    let sizes = [count, *depth, *columns].map(|size| size as usize);
                    Ok(IntegerSums::for_matmul(cpu, sizes, operand_dtypes(call)?))
                }
                _ => Err(matmul_shape_error(a, w, y)),
            }
        }),
    ]
}

fn matmul_shape_error(a: &[i64], w: &[i64], y: &[i64]) -> oarlock_sdk::PluginError {
    oarlock_sdk::PluginError::invalid_argument(format!(
        "expected rows [..., K], weights [K, N] and an output [..., N] of at most {MAX_SIZE} rows, found {a:?}, {w:?} and {y:?}"
    ))
}

fn operand_dims<'a>(call: &KernelCall<'a>) -> Result<[&'a [i64]; 3]> {
    Ok([call.input(0)?.dims(), call.input(1)?.dims(), call.output(0)?.dims()])
}

fn operand_dtypes(call: &KernelCall<'_>) -> Result<[Dtype; 2]> {
    Ok([call.input(0)?.dtype(), call.input(1)?.dtype()])
}

fn dequantized_kernel(
    op: &str,
    name: &'static str,
    (least, most): (u32, u32),
    sums: fn(&Cpu, &KernelCall<'_>) -> Result<IntegerSums>,
) -> Kernel<Cpu> {
    let [x, w] = [
        OperandSpec::new(BYTE_DTYPES).with_dtype_group(1),
        OperandSpec::new(BYTE_DTYPES).with_dtype_group(2),
    ];
    let (float, rank) = (OperandSpec::new(DtypeSet::F32), if least == 3 { (3, 4) } else { (2, 2) });
    let [x_zero, w_zero, integer, float_bias, residual] =
        [x, w, OperandSpec::new(DtypeSet::I32), float, float]
            .map(|operand| operand.with_flags(OperandFlags::OPTIONAL));
    Kernel::new_prepared(op, move |cpu: &Cpu, call| {
        let state = DequantizedState::new(cpu, call, check_operands(sums(cpu, call)?, call)?)?;
        call.describe_kernel(&format!("indirect GEMM in 8 bits, {}", cpu.isa()));
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| state.run(cpu, call)))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_support_check(move |cpu, call| check_operands(sums(cpu, call)?, call).map(drop))
    .with_workspace(move |cpu, call| Ok(sums(cpu, call)?.scratch_size() as u64))
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        x.with_name(name).with_rank(least, most),
        w.with_name("W").with_rank(rank.0, rank.1),
        float.with_name("x_scale"),
        float.with_name("w_scale"),
        x_zero.with_name("x_zero"),
        w_zero.with_name("w_zero"),
        integer.with_name("B"),
        float_bias.with_name("C"),
        residual.with_name("Z"),
    ])
    .with_outputs([float.with_name("Y")])
}

fn check_operands(sums: IntegerSums, call: &KernelCall<'_>) -> Result<IntegerSums> {
    // Packing weights in each run would cost more than integer products save. Without this kernel, the engine keeps the original
    // ops.
    ensure!(call.input(1)?.is_constant(), unimplemented, "expected `W` to be constant, found that it is not");
    let outputs = sums.geometry().outputs;
    let counts: [(usize, &str, &[usize]); 6] = [
        (X_SCALE, "x_scale", &[1]),
        (W_SCALE, "w_scale", &[1, outputs]),
        (X_ZERO, "x_zero", &[1]),
        (W_ZERO, "w_zero", &[1, outputs]),
        (BIAS, "B", &[outputs]),
        (ADDEND, "C", &[outputs]),
    ];
    for (index, name, expected) in counts {
        let Some(operand) = call.optional_input(index)? else { continue };
        let found = operand.element_count()?;
        ensure!(
            expected.contains(&found),
            invalid_argument,
            "expected `{name}` of as many elements as one of {expected:?}, found {found}"
        );
    }
    let (z, y) = (call.optional_input(RESIDUAL)?, call.output(0)?);
    ensure!(
        z.is_none_or(|z| z.dims() == y.dims()),
        invalid_argument,
        "expected `Z` of the shape {:?}, found another",
        y.dims()
    );
    Ok(sums)
}

struct DequantizedState {
    sums: IntegerSums,
    weights: Arc<QuantizedPanels>,
    activation: FusedActivation,
    dims: [Vec<i64>; 3],
}

/// Elements of an optional float operand.
fn optional_floats<'a>(tensor: Option<TensorView<'a>>) -> Result<Option<&'a [f32]>> {
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    tensor.map(|tensor| unsafe { tensor.elements::<f32>() }).transpose()
}

impl DequantizedState {
    fn new(cpu: &Cpu, call: &KernelCall<'_>, sums: IntegerSums) -> Result<Self> {
        let (activation, dims) =
            (FusedActivation::from_attributes(call)?, operand_dims(call)?.map(<[i64]>::to_vec));
        let weights = sums.pack_constant(cpu, &call.input(1)?)?;
        Ok(Self { sums, weights, activation, dims })
    }

    fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        expect_prepared(self.dims == operand_dims(call)?)?;
        let (x, y) = (call.input(0)?, call.output(0)?);
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let (images, scale, w_scales, y) = unsafe {
            let scales = (call.input(X_SCALE)?.elements::<f32>()?, call.input(W_SCALE)?.elements::<f32>()?);
            (tensor_bytes(&x)?, scales.0, scales.1, y.elements_mut::<f32>()?)
        };
        let (addend, residual) = (
            optional_floats(call.optional_input(ADDEND)?)?,
            optional_floats(call.optional_input(RESIDUAL)?)?,
        );
        let zeros = |index| call.optional_input(index)?.map_or(Ok(vec![0]), |zeros| read_integers(&zeros));
        let (image_zeros, weight_zeros) = (zeros(X_ZERO)?, zeros(W_ZERO)?);
        let bias = call.optional_input(BIAS)?.map(|bias| read_integers(&bias)).transpose()?;
        let outputs = self.sums.geometry().outputs;
        let fits = |count: usize| count == 1 || count == outputs;
        let all = addend.is_none_or(|addend| addend.len() == outputs)
            && bias.as_ref().is_none_or(|bias| bias.len() == outputs)
            && residual.is_none_or(|residual| residual.len() == y.len())
            && image_zeros.len() == 1
            && scale.len() == 1;
        expect_prepared(all && fits(w_scales.len()) && fits(weight_zeros.len()))?;
        if y.is_empty() {
            return Ok(());
        }
        let factors = output_factors(scale[0], w_scales, outputs);
        let operands = IntegerSumOperands {
            images,
            image_zeros: &image_zeros,
            weights: &self.weights,
            weight_zeros: &weight_zeros,
            bias: bias.as_deref(),
        };
        let epilogue =
            DequantizeEpilogue { factors: &factors, addend, residual, activation: self.activation };
        compute_dequantized(cpu, &self.sums, &operands, &epilogue, y, &mut ScratchBuffer::from_call(call));
        Ok(())
    }
}

/// The real value of a sum of 1, for each output. Weights have one scale, or one per output.
pub fn output_factors(scale: f32, of_weights: &[f32], outputs: usize) -> Vec<f32> {
    match of_weights {
        // Scales are multiplied once per output instead of once per result.
        [one] => vec![one * scale; outputs],
        each => each.iter().map(|own| own * scale).collect(),
    }
}

#[derive(Clone, Copy)]
pub struct DequantizeEpilogue<'a> {
    /// The real value of one unit of each output's sum.
    pub factors: &'a [f32],
    /// The addends: one per output, and one per result.
    pub addend: Option<&'a [f32]>,
    pub residual: Option<&'a [f32]>,
    pub activation: FusedActivation,
}

/// Computes sums and converts them to floats in place.
pub fn compute_dequantized(
    cpu: &Cpu,
    sums: &IntegerSums,
    operands: &IntegerSumOperands<'_>,
    epilogue: &DequantizeEpilogue<'_>,
    y: &mut [f32],
    scratch: &mut ScratchBuffer<'_>,
) {
    // SAFETY: integers and floats have the same size and alignment, and every bit pattern is valid for both.
    let y = unsafe { std::slice::from_raw_parts_mut(y.as_mut_ptr().cast::<i32>(), y.len()) };
    let (isa, outputs) = (cpu.isa(), sums.geometry().outputs);
    let epilogue = &|part: OutputBlock<'_, i32>| isa.vectorize(DequantizeSums { part, epilogue, outputs });
    sums.compute(cpu, operands, y, Some(epilogue), scratch);
}

/// Converts a sum that is stored in the memory of a float.
#[inline(always)]
fn sum_to_float(number: &f32) -> f32 {
    number.to_bits().cast_signed() as f32
}

struct DequantizeSums<'a> {
    part: OutputBlock<'a, i32>,
    epilogue: &'a DequantizeEpilogue<'a>,
    outputs: usize,
}

impl SimdTask for DequantizeSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { mut part, epilogue, outputs } = self;
        let DequantizeEpilogue { factors, addend, residual, activation } = *epilogue;
        let columns = part.columns.clone();
        let (factors, addend) = (&factors[columns.clone()], addend.map(|addend| &addend[columns.clone()]));
        for (row, sums) in part.rows_mut() {
            // SAFETY: integers and floats have the same size and alignment, and every bit pattern is valid for both.
            let numbers =
                unsafe { std::slice::from_raw_parts_mut(sums.as_mut_ptr().cast::<f32>(), sums.len()) };
            if let Some(addend) = addend {
                for ((number, factor), addend) in numbers.iter_mut().zip(factors).zip(addend) {
                    // Fused: the scaled sum is not rounded before the addition.
                    *number = sum_to_float(number).multiply_add::<T>(*factor, *addend);
                }
            } else {
                for (number, factor) in numbers.iter_mut().zip(factors) {
                    *number = sum_to_float(number) * factor;
                }
            }
            if let Some(residual) = residual {
                let residual = &residual[row * outputs + columns.start..][..numbers.len()];
                for (number, residual) in numbers.iter_mut().zip(residual) {
                    *number += *residual;
                }
            }
            activation.apply_on_target::<T>(numbers);
        }
    }
}

//! `MelWeightMatrix`: triangular filters that gather the bins of a spectrum by their pitch.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{Kernel, MemoryKind, OperandSpec, PluginError, Result, dispatch, ensure};

use super::dft::optional_integer;
use super::window::WINDOW_DTYPES;
use super::{SIGNAL_FLOATS, length_operand};

pub(super) fn mel_kernels() -> Vec<Kernel<Cpu>> {
    let edge =
        OperandSpec::new(SIGNAL_FLOATS).with_dtype_group(2).with_rank(0, 1).in_memory(MemoryKind::HOST);
    let kernel = operand_kernel(
        "MelWeightMatrix",
        |_| Ok(()),
        |_, (), operands| {
            let dtype = operands.call().output(0)?.dtype();
            dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => write_mel_weights::<T>(operands))
        },
    );
    let inputs = [
        length_operand("num_mel_bins"),
        length_operand("dft_length"),
        length_operand("sample_rate"),
        edge.with_name("lower_edge_hertz"),
        edge.with_name("upper_edge_hertz"),
    ];
    vec![
        kernel
            .since_version(17)
            .with_inputs(inputs)
            .with_outputs([OperandSpec::new(WINDOW_DTYPES).with_name("output").with_rank(2, 2)]),
    ]
}

fn write_mel_weights<T: ComputeElement>(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let positive = |index: usize, name: &str| match optional_integer(operands, index)? {
        Some(found) if (1..=i64::from(i32::MAX)).contains(&found) => Ok(found),
        found => {
            Err(PluginError::invalid_argument(format!("expected `{name}` of at least 1, found {found:?}")))
        }
    };
    let (bins, length) = (positive(0, "num_mel_bins")?, positive(1, "dft_length")?);
    let rate = positive(2, "sample_rate")?;
    let (lower, upper) = (read_edge(operands, 3)?, read_edge(operands, 4)?);
    let rows = length / 2 + 1;
    operands.expect_dims(&operands.call().output(0)?, "output", &[rows, bins])?;
    let (low, high) = (hertz_to_mel(lower), hertz_to_mel(upper));
    // ONNX's reference divides by the number of edges, not by that of the gaps, so the last edge is below the upper one.
    let step = (high - low) / (bins as f64 + 2.0);
    let bin_of = |index: usize| {
        // `exp_m1`, as `ln_1p` below, keeps the digits of low frequencies.
        let hertz = 700.0 * ((low + index as f64 * step) / MEL_SCALE * std::f64::consts::LN_10).exp_m1();
        // Rounded down, and with one more than the length, as in ONNX's reference.
        ((length + 1) as f64 * hertz / rate as f64).floor()
    };
    let places: Vec<f64> = (0..bins as usize + 2).map(bin_of).collect();
    // The corners become rows of the output below, so they must lie inside of it.
    ensure!(
        places.iter().all(|place| (0.0..rows as f64).contains(place)) && places.is_sorted(),
        invalid_argument,
        "expected edges that rise from 0 to half the sample rate of {rate}, found {lower} and {upper}"
    );
    let bins = bins as usize;
    let out = operands.write_output::<T>(0)?;
    out.fill(T::from_accumulator(T::Accumulator::ZERO));
    for (column, corners) in places.windows(3).enumerate() {
        let [left, middle, right] = [corners[0], corners[1], corners[2]];
        for row in left as usize..=right as usize {
            let at = row as f64;
            let weight = match () {
                () if at < middle => (at - left) / (middle - left),
                () if at < right => (right - at) / (right - middle),
                // The peak, which no slope defines.
                () if at == middle => 1.0,
                () => continue,
            };
            out[row * bins + column] = T::from_float(T::Float::from_f64(weight));
        }
    }
    Ok(())
}

const MEL_SCALE: f64 = 2595.0;

fn hertz_to_mel(hertz: f64) -> f64 {
    MEL_SCALE * (hertz / 700.0).ln_1p() / std::f64::consts::LN_10
}

fn read_edge(operands: &KernelOperands<'_, '_>, index: usize) -> Result<f64> {
    let dtype = operands.call().input(index)?.dtype();
    let found: Vec<f64> = dispatch!(dtype, floating_and_half + bf16, T => {
        oarlock_sdk::Result::Ok(operands.read_input::<T>(index)?.iter().map(|edge| edge.to_float().to_f64()).collect())
    })?;
    match found[..] {
        [found] => Ok(found),
        _ => Err(PluginError::invalid_argument(format!(
            "expected one number as input {index}, found {}",
            found.len()
        ))),
    }
}

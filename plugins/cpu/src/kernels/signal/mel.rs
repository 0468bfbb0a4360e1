//! `MelWeightMatrix`: triangles that gather the bins of a spectrum by how high they sound.

use oarlock_sdk::{Error, Kernel, MemoryKind, Operand, Result, dispatch, ensure};

use super::transform::integer;
use super::window::NUMBERS;
use super::{FLOATS, length};
use crate::device::Cpu;
use crate::kernels::rows::number::{Exact, Float, Number};
use crate::kernels::rows::operands::{Operands, kernel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let edge = Operand::new(FLOATS).group(2).rank(0, 1).on(MemoryKind::HOST);
    let kernel = kernel(
        "MelWeightMatrix",
        |_| Ok(()),
        |_, (), operands| {
            let dtype = operands.call().output(0)?.dtype();
            dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => write::<T>(operands))
        },
    );
    let inputs = [
        length("num_mel_bins"),
        length("dft_length"),
        length("sample_rate"),
        edge.named("lower_edge_hertz"),
        edge.named("upper_edge_hertz"),
    ];
    vec![kernel.since(17).inputs(inputs).outputs([Operand::new(NUMBERS).named("output").rank(2, 2)])]
}

fn write<T: Number>(operands: &Operands<'_, '_>) -> Result<()> {
    let positive = |index: usize, name: &str| match integer(operands, index)? {
        Some(found) if (1..=i64::from(i32::MAX)).contains(&found) => Ok(found),
        found => Err(Error::invalid_argument(format!("expected `{name}` of at least 1, found {found:?}"))),
    };
    let (bins, length) = (positive(0, "num_mel_bins")?, positive(1, "dft_length")?);
    let rate = positive(2, "sample_rate")?;
    let (lower, upper) = (edge(operands, 3)?, edge(operands, 4)?);
    let rows = length / 2 + 1;
    operands.expect_dims(&operands.call().output(0)?, "output", &[rows, bins])?;
    let (low, high) = (mel_of(lower), mel_of(upper));
    let step = (high - low) / (bins as f64 + 2.0);
    let bin_of = |index: usize| {
        let hertz = 700.0 * ((low + index as f64 * step) / MEL * std::f64::consts::LN_10).exp_m1();
        ((length + 1) as f64 * hertz / rate as f64).floor()
    };
    let places: Vec<f64> = (0..bins as usize + 2).map(bin_of).collect();
    ensure!(
        places.iter().all(|place| (0.0..rows as f64).contains(place)) && places.is_sorted(),
        invalid_argument,
        "expected edges that rise from 0 to half the sample rate of {rate}, found {lower} and {upper}"
    );
    let bins = bins as usize;
    let out = operands.write::<T>(0)?;
    out.fill(T::of_exact(T::Exact::ZERO));
    for (column, corners) in places.windows(3).enumerate() {
        let [left, middle, right] = [corners[0], corners[1], corners[2]];
        for row in left as usize..=(right as usize).max(middle as usize) {
            let at = row as f64;
            let weight = match () {
                () if at < middle => (at - left) / (middle - left),
                () if at < right => (right - at) / (right - middle),
                // The top, where no slope follows that would say so.
                () if at == middle => 1.0,
                () => continue,
            };
            out[row * bins + column] = T::of_float(T::Float::of(weight));
        }
    }
    Ok(())
}

const MEL: f64 = 2595.0;

/// How high a frequency sounds.
fn mel_of(hertz: f64) -> f64 {
    MEL * (hertz / 700.0).ln_1p() / std::f64::consts::LN_10
}

fn edge(operands: &Operands<'_, '_>, index: usize) -> Result<f64> {
    let dtype = operands.call().input(index)?.dtype();
    let found: Vec<f64> = dispatch!(dtype, floating_and_half + bf16, T => {
        oarlock_sdk::Result::Ok(operands.read::<T>(index)?.iter().map(|edge| edge.float().to_f64()).collect())
    })?;
    match found[..] {
        [found] => Ok(found),
        _ => Err(Error::invalid_argument(format!(
            "expected one number as input {index}, found {}",
            found.len()
        ))),
    }
}

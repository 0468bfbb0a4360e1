//! Numbers of a distribution by blocks of counters, in loops over lanes that vectorize.
//!
//! No function here uses fused multiply-add or a mathematical function of the platform, so the numbers are the same bits on every
//! processor.

use oarlock_cpu_base::isa::BaselineTarget;
use oarlock_cpu_base::math::{self, MathFloat};

use super::philox::{LANES, WordBlock, f32_from_word, f64_from_words, word_pair};

/// The most numbers that a block has.
pub(super) const MAX_NUMBERS: usize = 4 * LANES;

/// A float whose numbers are made by blocks.
pub(super) trait SampleFloat: MathFloat {
    /// The numbers of a block.
    const NUMBERS: usize;

    /// Numbers in [0, 1).
    fn uniforms(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]);
    /// Numbers of the normal distribution around 0 with deviation 1: by Box and Muller, a random point gives two.
    fn normals(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]);
    /// Numbers in (0, 1], for logarithms.
    fn positives(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]);
}

/// Numbers of the exponential distribution with mean 1.
#[inline(always)]
pub(super) fn exponentials<F: SampleFloat>(words: &WordBlock, numbers: &mut [F; MAX_NUMBERS]) {
    F::positives(words, numbers);
    for number in &mut numbers[..F::NUMBERS] {
        *number = F::ZERO - math::log::<BaselineTarget, F>(*number);
    }
}

/// The distance from the middle of a point that is normally distributed, from a number in (0, 1].
#[inline(always)]
fn normal_radius<F: MathFloat>(positive: F) -> F {
    ((F::ZERO - F::TWO) * math::log::<BaselineTarget, F>(positive)).square_root()
}

impl SampleFloat for f32 {
    const NUMBERS: usize = 4 * LANES;

    #[inline(always)]
    fn uniforms(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        for (row, numbers) in words.iter().zip(numbers.chunks_exact_mut(LANES)) {
            for (word, number) in row.iter().zip(numbers) {
                *number = f32_from_word(*word);
            }
        }
    }

    #[inline(always)]
    fn normals(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        for (rows, numbers) in words.chunks_exact(2).zip(numbers.chunks_exact_mut(2 * LANES)) {
            let (firsts, seconds) = numbers.split_at_mut(LANES);
            for lane in 0..LANES {
                let radius = normal_radius(positive_f32(rows[0][lane]));
                let [cosine, sine] = circle_point_f32(rows[1][lane]);
                (firsts[lane], seconds[lane]) = (radius * cosine, radius * sine);
            }
        }
    }

    #[inline(always)]
    fn positives(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        for (row, numbers) in words.iter().zip(numbers.chunks_exact_mut(LANES)) {
            for (word, number) in row.iter().zip(numbers) {
                *number = positive_f32(*word);
            }
        }
    }
}

/// A number in (0, 1]. Small ones have more bits than large ones, so that logarithms reach far.
#[inline(always)]
fn positive_f32(word: u32) -> f32 {
    ((word >> 1).cast_signed() as f32 + 0.5) * (1.0 / 2_147_483_648.0)
}

/// Cosine and sine of a random angle: two bits choose the quarter of the circle, the others an angle of up to π/4 around its middle.
#[inline(always)]
fn circle_point_f32(word: u32) -> [f32; 2] {
    let angle = ((word << 2) >> 8).cast_signed() as f32 * (1.0 / 16_777_216.0) - 0.5;
    let angle = angle * std::f32::consts::FRAC_PI_2;
    let square = angle * angle;
    let sine =
        angle + angle * square * (-0.166_666_55 + square * (0.008_332_161 + square * -0.000_195_152_96));
    let curve = 0.041_666_646 + square * (-0.001_388_731_6 + square * 2.443_315_7e-5);
    turn_quarters(1.0 - 0.5 * square + square * square * curve, sine, word >> 30)
}

/// A point turned by quarters of the circle.
#[inline(always)]
fn turn_quarters<F: MathFloat>(cosine: F, sine: F, quarters: u32) -> [F; 2] {
    let (x, y) = if quarters & 1 == 0 { (cosine, sine) } else { (F::ZERO - sine, cosine) };
    if quarters & 2 == 0 { [x, y] } else { [F::ZERO - x, F::ZERO - y] }
}

impl SampleFloat for f64 {
    const NUMBERS: usize = 2 * LANES;

    #[inline(always)]
    fn uniforms(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        for (rows, numbers) in words.chunks_exact(2).zip(numbers.chunks_exact_mut(LANES)) {
            for lane in 0..LANES {
                numbers[lane] = f64_from_words(rows[0][lane], rows[1][lane]);
            }
        }
    }

    #[inline(always)]
    fn normals(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        let (firsts, seconds) = numbers.split_at_mut(LANES);
        for lane in 0..LANES {
            let radius = normal_radius(positive_f64(words[0][lane], words[1][lane]));
            let [cosine, sine] = circle_point_f64(words[2][lane], words[3][lane]);
            (firsts[lane], seconds[lane]) = (radius * cosine, radius * sine);
        }
    }

    #[inline(always)]
    fn positives(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        for (rows, numbers) in words.chunks_exact(2).zip(numbers.chunks_exact_mut(LANES)) {
            for lane in 0..LANES {
                numbers[lane] = positive_f64(rows[0][lane], rows[1][lane]);
            }
        }
    }
}

/// A number in (0, 1].
#[inline(always)]
pub(super) fn positive_f64(low: u32, high: u32) -> f64 {
    let bits = word_pair(low, high) >> 1;
    (bits.cast_signed() as f64 + 0.5) * (1.0 / 9_223_372_036_854_775_808.0)
}

/// A normally distributed number from the words of a counter.
#[inline(always)]
pub(super) fn normal_f64(words: [u32; 4]) -> f64 {
    normal_radius(positive_f64(words[0], words[1])) * circle_point_f64(words[2], words[3])[0]
}

/// Like [`circle_point_f32`].
#[inline(always)]
fn circle_point_f64(low: u32, high: u32) -> [f64; 2] {
    /// The coefficients of the sine behind the first, from the highest power on.
    const SINE: [f64; 6] = [
        1.589_690_995_211_55e-10,
        -2.505_076_025_340_686_3e-8,
        2.755_731_370_707_007e-6,
        -1.984_126_982_985_795e-4,
        8.333_333_333_322_49e-3,
        -1.666_666_666_666_663_2e-1,
    ];
    /// Those of the cosine behind the first two.
    const COSINE: [f64; 6] = [
        -1.135_964_755_778_819_5e-11,
        2.087_572_321_298_175e-9,
        -2.755_731_435_139_066_3e-7,
        2.480_158_728_947_673e-5,
        -1.388_888_888_887_411e-3,
        4.166_666_666_666_66e-2,
    ];
    let bits = ((word_pair(low, high) << 2) >> 11).cast_signed();
    let angle = (bits as f64 * (1.0 / 9_007_199_254_740_992.0) - 0.5) * std::f64::consts::FRAC_PI_2;
    let square = angle * angle;
    let (mut sine, mut cosine) = (0.0, 0.0);
    for power in 0..SINE.len() {
        sine = sine * square + SINE[power];
        cosine = cosine * square + COSINE[power];
    }
    let [sine, cosine] = [angle + angle * square * sine, 1.0 - 0.5 * square + square * square * cosine];
    turn_quarters(cosine, sine, high >> 30)
}

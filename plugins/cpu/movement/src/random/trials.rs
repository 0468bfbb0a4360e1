//! Numbers that are drawn until one is accepted: of the gamma, the Poisson and the binomial distribution. Each number has words of
//! its own, as many as it needs.
//!
//! As in [`super::lanes`], nothing here depends on the processor.

use oarlock_cpu_base::isa::{BaselineTarget, SimdTarget, SimdTask};
use oarlock_cpu_base::math;

use super::lanes::{normal_f64, positive_f64};
use super::philox::{LANES, PhiloxSource, WordBlock, f64_from_words};

/// Above this mean, inverting the distribution takes longer than rejection.
pub(super) const FEW_EVENTS: f64 = 10.0;

/// The words of the first trials of a block, which are made together.
pub(super) struct FirstTrials {
    blocks: [WordBlock; FIRST_TRIALS],
    /// The normally distributed numbers of one trial; those of all others are made one by one.
    normals: [f64; LANES],
    normal_trial: Option<u32>,
}

/// Most numbers need no more trials.
const FIRST_TRIALS: usize = 3;

/// Makes the words of the first trials of a block.
pub(super) struct MakeFirstTrials {
    pub(super) source: PhiloxSource,
    pub(super) block: u64,
    /// The trial whose words become normally distributed numbers.
    pub(super) normal_trial: Option<u32>,
}

impl SimdTask for MakeFirstTrials {
    type Output = FirstTrials;

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) -> FirstTrials {
        let mut blocks = [[[0; LANES]; 4]; FIRST_TRIALS];
        for (trial, words) in (1..).zip(&mut blocks) {
            *words = self.source.block_of_trial(self.block, trial);
        }
        let mut normals = [0.0; LANES];
        if let Some(words) = self.normal_trial.and_then(|trial| blocks.get(trial as usize)) {
            for lane in 0..LANES {
                normals[lane] = normal_f64([words[0][lane], words[1][lane], words[2][lane], words[3][lane]]);
            }
        }
        FirstTrials { blocks, normals, normal_trial: self.normal_trial }
    }
}

/// The words of one number, of which two or four are taken at a time.
pub(super) struct TrialWords<'f> {
    source: PhiloxSource,
    index: u64,
    first: &'f FirstTrials,
    trial: u32,
    /// The words that were not taken.
    left: Option<[u32; 2]>,
}

impl<'f> TrialWords<'f> {
    pub(super) fn new(source: PhiloxSource, index: u64, first: &'f FirstTrials) -> Self {
        Self { source, index, first, trial: 0, left: None }
    }

    fn next_four(&mut self) -> [u32; 4] {
        let words = match self.first.blocks.get(self.trial as usize) {
            Some(block) => block.map(|row| row[self.index as usize % LANES]),
            None => self.source.words_of_trial(self.index, self.trial.wrapping_add(1)),
        };
        self.trial = self.trial.wrapping_add(1);
        words
    }

    /// A normally distributed number, of the next four words.
    fn next_normal(&mut self) -> f64 {
        if self.first.normal_trial == Some(self.trial) {
            self.trial += 1;
            return self.first.normals[self.index as usize % LANES];
        }
        normal_f64(self.next_four())
    }

    fn next_two(&mut self) -> [u32; 2] {
        if let Some(left) = self.left.take() {
            return left;
        }
        let [first, second, third, fourth] = self.next_four();
        self.left = Some([third, fourth]);
        [first, second]
    }

    /// A number in (0, 1].
    fn next_positive(&mut self) -> f64 {
        let [low, high] = self.next_two();
        positive_f64(low, high)
    }

    /// A number in (0, 1], and one in [0, 1).
    fn next_pair(&mut self) -> (f64, f64) {
        let words = self.next_four();
        (positive_f64(words[0], words[1]), f64_from_words(words[2], words[3]))
    }
}

fn ln(x: f64) -> f64 {
    math::log::<BaselineTarget, f64>(x)
}

fn exp(x: f64) -> f64 {
    math::exp::<BaselineTarget, f64>(x)
}

/// A number of the gamma distribution with scale 1, by Marsaglia and Tsang.
pub(super) fn sample_gamma(words: &mut TrialWords<'_>, shape: f64) -> f64 {
    if shape == 0.0 {
        return 0.0;
    }
    if shape < 1.0 {
        // A number of the shape plus 1, times a uniform one to the power of the inverse of the shape.
        let positive = words.next_positive();
        return sample_gamma(words, shape + 1.0) * exp(ln(positive) / shape);
    }
    let middle = shape - 1.0 / 3.0;
    let slope = 1.0 / (9.0 * middle).sqrt();
    loop {
        let normal = words.next_normal();
        let positive = words.next_positive();
        let root = 1.0 + slope * normal;
        if root <= 0.0 {
            continue;
        }
        let cube = root * root * root;
        // Most are accepted by this, which needs no logarithm.
        if positive < 1.0 - 0.0331 * (normal * normal) * (normal * normal) {
            return middle * cube;
        }
        if ln(positive) < 0.5 * normal * normal + middle - middle * cube + middle * ln(cube) {
            return middle * cube;
        }
    }
}

/// The chances of no event, of at most one, of at most two and so on, as long as they grow, for a mean below [`FEW_EVENTS`].
pub(super) fn poisson_chances(mean: f64) -> impl Iterator<Item = f64> {
    let (mut chance, mut sum, mut events) = (exp(-mean), 0.0, 0.0);
    std::iter::from_fn(move || {
        let before = sum;
        sum += chance;
        events += 1.0;
        chance *= mean / events;
        (sum > before).then_some(sum)
    })
}

/// A number of events, by inversion: as many as have chances below a uniform number.
pub(super) fn sample_few_events(words: &mut TrialWords<'_>, chances: impl IntoIterator<Item = f64>) -> f64 {
    let uniform = words.next_positive();
    chances.into_iter().take_while(|chance| *chance < uniform).count() as f64
}

/// A number of events with this mean: by inversion if they are few, else by Hörmann's transformed rejection.
pub(super) fn sample_poisson(words: &mut TrialWords<'_>, mean: f64) -> f64 {
    if mean < FEW_EVENTS {
        return sample_few_events(words, poisson_chances(mean));
    }
    let log_mean = ln(mean);
    let b = 0.931 + 2.53 * mean.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let squeeze = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let (v, u) = words.next_pair();
        let u = u - 0.5;
        let edge = 0.5 - u.abs();
        let events = ((2.0 * a / edge + b) * u + mean + 0.43).floor();
        if edge >= 0.07 && v <= squeeze {
            return events;
        }
        if events < 0.0 || (edge < 0.013 && v > edge) {
            continue;
        }
        let left = ln(v) + ln(inverse_alpha) - ln(a / (edge * edge) + b);
        if left <= events * log_mean - mean - ln_factorial(events) {
            return events;
        }
    }
}

/// How many of `count` trials succeed: by the distances between successes if they are few, else by Hörmann's transformed rejection.
pub(super) fn sample_binomial(words: &mut TrialWords<'_>, count: f64, probability: f64) -> f64 {
    if probability > 0.5 {
        return count - sample_binomial(words, count, 1.0 - probability);
    }
    if count == 0.0 || probability == 0.0 {
        return 0.0;
    }
    if count * probability < FEW_EVENTS {
        let log_failure = math::log_1p::<BaselineTarget, f64>(-probability);
        let (mut reached, mut successes) = (0.0, 0.0);
        loop {
            reached += (ln(words.next_positive()) / log_failure).ceil().max(1.0);
            if reached > count {
                return successes;
            }
            successes += 1.0;
        }
    }
    let failure = 1.0 - probability;
    let deviation = (count * probability * failure).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * probability;
    let c = count * probability + 0.5;
    let squeeze = 0.92 - 4.2 / b;
    let alpha = (2.83 + 5.1 / b) * deviation;
    let odds = probability / failure;
    let mode = ((count + 1.0) * probability).floor();
    loop {
        let (v, u) = words.next_pair();
        let u = u - 0.5;
        let edge = 0.5 - u.abs();
        let found = ((2.0 * a / edge + b) * u + c).floor();
        if edge >= 0.07 && v <= squeeze {
            return found;
        }
        if found < 0.0 || found > count {
            continue;
        }
        let left = ln(v * alpha / (a / (edge * edge) + b));
        let right = (mode + 0.5) * ln((mode + 1.0) / (odds * (count - mode + 1.0)))
            + (count + 1.0) * ln((count - mode + 1.0) / (count - found + 1.0))
            + (found + 0.5) * ln(odds * (count - found + 1.0) / (found + 1.0))
            + stirling_rest(mode)
            + stirling_rest(count - mode)
            - stirling_rest(found)
            - stirling_rest(count - found);
        if left <= right {
            return found;
        }
    }
}

/// The logarithm of n!.
fn ln_factorial(n: f64) -> f64 {
    const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;
    (n + 0.5) * ln(n + 1.0) - (n + 1.0) + HALF_LN_TAU + stirling_rest(n)
}

/// The difference of ln(n!) to Stirling's approximation for n + 1.
fn stirling_rest(n: f64) -> f64 {
    const RESTS: [f64; 10] = [
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_29,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_093,
        0.016_644_691_189_821_193,
        0.013_876_128_823_070_748,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_096,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
    ];
    if let Some(rest) = RESTS.get(n as usize) {
        return *rest;
    }
    let next = n + 1.0;
    let square = next * next;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / next
}

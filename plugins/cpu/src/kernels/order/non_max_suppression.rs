//! `NonMaxSuppression`: the boxes with the best scores of each class that do not overlap a better one too much.

use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, ensure};

use crate::device::Cpu;
use crate::isa::{Target, Vectorized};
use crate::kernels::rows::operands::{Operands, kernel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let float = Operand::new(DtypeSet::F32);
    let optional = |operand: Operand| operand.flags(OperandFlags::OPTIONAL).rank(0, 1);
    let suppression = kernel("NonMaxSuppression", has_centres, run)
        .since(10)
        .flags(KernelFlags::DETERMINISTIC | KernelFlags::ALLOCATES_OUTPUTS)
        .inputs([
            float.named("boxes").rank(3, 3),
            float.named("scores").rank(3, 3),
            optional(Operand::new(DtypeSet::I64).named("max_output_boxes_per_class")),
            optional(float.named("iou_threshold")),
            optional(float.named("score_threshold")),
        ])
        .outputs([Operand::new(DtypeSet::I64).named("selected_indices").rank(2, 2)]);
    vec![suppression]
}

/// Whether boxes are given by centre and size instead of two corners.
fn has_centres(call: &Call<'_>) -> Result<bool> {
    match call.int("center_point_box")?.unwrap_or(0) {
        0 => Ok(false),
        1 => Ok(true),
        found => {
            Err(Error::invalid_argument(format!("expected `center_point_box` to be 0 or 1, found {found}")))
        }
    }
}

fn run(cpu: &Cpu, has_centres: &bool, operands: &Operands<'_, '_>) -> Result<()> {
    let (boxes, scores) = (operands.call().input(0)?, operands.call().input(1)?);
    let (&[images, count, 4], &[score_images, classes, score_count]) = (boxes.dims(), scores.dims()) else {
        return Err(Error::invalid_argument(format!(
            "expected `boxes` of shape [batch, boxes, 4] and `scores` of [batch, classes, boxes], found {:?} and {:?}",
            boxes.dims(),
            scores.dims()
        )));
    };
    ensure!(
        images == score_images && count == score_count,
        invalid_argument,
        "expected scores for {images} images of {count} boxes, found {:?}",
        scores.dims()
    );
    let limits = Limits {
        boxes: usize::try_from(single(operands.read_optional(2)?, 0i64)?).unwrap_or(0),
        overlap: single(operands.read_optional(3)?, 0f32)?,
        score: single(operands.read_optional(4)?, f32::NEG_INFINITY)?,
    };
    ensure!(
        (0.0..=1.0).contains(&limits.overlap),
        invalid_argument,
        "expected `iou_threshold` from 0 to 1, found {}",
        limits.overlap
    );
    let (boxes, scores) = (operands.read::<f32>(0)?, operands.read::<f32>(1)?);
    let mut selected = Vec::new();
    let (classes, count) = (classes as usize, count as usize);
    if !scores.is_empty() && limits.boxes > 0 {
        for (image, scores) in scores.chunks(classes * count).enumerate() {
            let boxes = boxes[image * count * 4..][..count * 4].as_chunks().0;
            let boxes: Vec<_> = boxes.iter().map(|numbers| Region::new(*numbers, *has_centres)).collect();
            for (class, scores) in scores.chunks(count).enumerate() {
                let selection = Selection { boxes: &boxes, scores, limits: &limits };
                let chosen = cpu.isa().vectorize(selection);
                selected
                    .extend(chosen.iter().flat_map(|chosen| [image as i64, class as i64, *chosen as i64]));
            }
        }
    }
    operands.call().allocate_output(0, Dtype::I64, &[(selected.len() / 3) as i64, 3])?;
    operands.write::<i64>(0)?.copy_from_slice(&selected);
    Ok(())
}

/// The one number of an operand that may be left out.
fn single<T: Copy>(found: Option<&[T]>, default: T) -> Result<T> {
    match found {
        None => Ok(default),
        Some([number]) => Ok(*number),
        Some(more) => {
            Err(Error::invalid_argument(format!("expected one number as a limit, found {}", more.len())))
        }
    }
}

struct Limits {
    boxes: usize,
    overlap: f32,
    score: f32,
}

/// Scores that are looked at together: of most classes there are few boxes whose scores are worth more than one look.
const SCORES_AT_ONCE: usize = 64;

/// Candidates that are put in order first. Later ones are not, when enough are chosen before.
const CANDIDATES_AT_ONCE: usize = 128;

/// The choice among the boxes of one class.
struct Selection<'a> {
    boxes: &'a [Region],
    scores: &'a [f32],
    limits: &'a Limits,
}

impl Vectorized for Selection<'_> {
    /// The indices of the chosen boxes, best first; of equal scores the lower index comes first.
    type Output = Vec<usize>;

    #[inline(always)]
    fn run<T: Target>(self) -> Vec<usize> {
        let Self { boxes, scores, limits } = self;
        let mut candidates = Vec::new();
        for (block, scores) in scores.chunks(SCORES_AT_ONCE).enumerate() {
            if scores.iter().fold(false, |any, score| any | (*score > limits.score)) {
                let indices = block * SCORES_AT_ONCE..;
                let indexed = scores.iter().zip(indices).filter(|(score, _)| **score > limits.score);
                candidates.extend(indexed.map(|(score, index)| rank(*score, index)));
            }
        }
        let (mut rest, mut at_once) = (&mut candidates[..], CANDIDATES_AT_ONCE);
        let (mut chosen, mut better) = (Vec::new(), Vec::new());
        while !rest.is_empty() {
            if at_once < rest.len() {
                rest.select_nth_unstable(at_once);
            }
            let (best, further) = rest.split_at_mut(at_once.min(rest.len()));
            best.sort_unstable();
            for rank in best {
                let index = *rank as usize;
                if better.iter().any(|better: &Regions| better.cover(&boxes[index], limits.overlap)) {
                    continue;
                }
                put(&mut better, chosen.len(), &boxes[index]);
                chosen.push(index);
                if chosen.len() == limits.boxes {
                    return chosen;
                }
            }
            (rest, at_once) = (further, at_once.saturating_mul(2));
        }
        chosen
    }
}

/// A number that is lower for a better score, and of equal ones for a lower index, which is its lower half.
#[inline(always)]
fn rank(score: f32, index: usize) -> u128 {
    let bits = score.to_bits();
    let rising = if score.is_sign_negative() { !bits } else { bits | 1 << 31 };
    u128::from(!rising) << 64 | index as u128
}

/// A box by its corners, the lower coordinates first, and its area.
struct Region {
    low: [f32; 2],
    high: [f32; 2],
    area: f32,
}

impl Region {
    fn new([a, b, c, d]: [f32; 4], has_centre: bool) -> Self {
        let (low, high) = if has_centre {
            ([a - c / 2.0, b - d / 2.0], [a + c / 2.0, b + d / 2.0])
        } else {
            ([a.min(c), b.min(d)], [a.max(c), b.max(d)])
        };
        Self { low, high, area: (high[0] - low[0]) * (high[1] - low[1]) }
    }
}

/// The boxes that one is compared with at once.
const LANES: usize = 16;

/// Boxes side by side. Those that are not there yet have no area.
#[derive(Clone, Copy, Default)]
struct Regions {
    low: [[f32; LANES]; 2],
    high: [[f32; LANES]; 2],
    area: [f32; LANES],
}

/// Appends a box to those that are there.
#[inline(always)]
fn put(regions: &mut Vec<Regions>, count: usize, region: &Region) {
    let lane = count % LANES;
    if lane == 0 {
        regions.push(Regions::default());
    }
    let Some(last) = regions.last_mut() else { return };
    for axis in 0..2 {
        (last.low[axis][lane], last.high[axis][lane]) = (region.low[axis], region.high[axis]);
    }
    last.area[lane] = region.area;
}

impl Regions {
    /// Whether one of these shares more with a box than such a part of what they cover together. One without an area shares
    /// nothing.
    #[inline(always)]
    fn cover(&self, other: &Region, limit: f32) -> bool {
        let side = |axis: usize, lane: usize| {
            (self.high[axis][lane].min(other.high[axis]) - self.low[axis][lane].max(other.low[axis])).max(0.0)
        };
        let mut shared = [0.0; LANES];
        for (lane, shared) in shared.iter_mut().enumerate() {
            *shared = side(0, lane) * side(1, lane);
        }
        // Most boxes are apart, which is found without a division.
        if shared.iter().fold(true, |apart, shared| apart & (*shared <= 0.0)) {
            return false;
        }
        let mut covered = false;
        for (shared, area) in shared.into_iter().zip(self.area) {
            let apart = (area <= 0.0) | (other.area <= 0.0) | (shared <= 0.0);
            // What is not a number is not within the limit.
            let is_within = shared / (area + other.area - shared) <= limit;
            covered |= !(apart | is_within);
        }
        covered
    }
}

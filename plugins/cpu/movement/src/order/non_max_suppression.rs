//! `NonMaxSuppression`: the boxes with the best scores of each class that do not overlap a better one too much.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result, ensure,
};

pub(super) fn non_max_suppression_kernels() -> Vec<Kernel<Cpu>> {
    let float = OperandSpec::new(DtypeSet::F32);
    let optional = |operand: OperandSpec| operand.with_flags(OperandFlags::OPTIONAL).with_rank(0, 1);
    let suppression = operand_kernel("NonMaxSuppression", has_centers, suppress_boxes)
        .since_version(10)
        .with_flags(KernelFlags::DETERMINISTIC | KernelFlags::ALLOCATES_OUTPUTS)
        .with_inputs([
            float.with_name("boxes").with_rank(3, 3),
            float.with_name("scores").with_rank(3, 3),
            optional(OperandSpec::new(DtypeSet::I64).with_name("max_output_boxes_per_class")),
            optional(float.with_name("iou_threshold")),
            optional(float.with_name("score_threshold")),
        ])
        .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("selected_indices").with_rank(2, 2)]);
    vec![suppression]
}

/// True if boxes are given by center and size instead of two corners.
fn has_centers(call: &KernelCall<'_>) -> Result<bool> {
    match call.int_attribute("center_point_box")?.unwrap_or(0) {
        0 => Ok(false),
        1 => Ok(true),
        found => Err(PluginError::invalid_argument(format!(
            "expected `center_point_box` to be 0 or 1, found {found}"
        ))),
    }
}

fn suppress_boxes(cpu: &Cpu, has_centres: &bool, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (boxes, scores) = (operands.call().input(0)?, operands.call().input(1)?);
    let (&[images, count, 4], &[score_images, classes, score_count]) = (boxes.dims(), scores.dims()) else {
        return Err(PluginError::invalid_argument(format!(
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
    let limits = SuppressionLimits {
        // By the schema's default of 0 boxes, none is selected.
        boxes: usize::try_from(optional_scalar(operands.read_optional_input(2)?, 0i64)?).unwrap_or(0),
        overlap: optional_scalar(operands.read_optional_input(3)?, 0f32)?,
        score: optional_scalar(operands.read_optional_input(4)?, f32::NEG_INFINITY)?,
    };
    ensure!(
        (0.0..=1.0).contains(&limits.overlap),
        invalid_argument,
        "expected `iou_threshold` from 0 to 1, found {}",
        limits.overlap
    );
    let (boxes, scores) = (operands.read_input::<f32>(0)?, operands.read_input::<f32>(1)?);
    let mut selected = Vec::new();
    let (classes, count) = (classes as usize, count as usize);
    // Without scores, chunks of 0 would panic.
    if !scores.is_empty() && limits.boxes > 0 {
        for (image, scores) in scores.chunks(classes * count).enumerate() {
            let boxes = boxes[image * count * 4..][..count * 4].as_chunks().0;
            let boxes: Vec<_> = boxes.iter().map(|numbers| CornerBox::new(*numbers, *has_centres)).collect();
            for (class, scores) in scores.chunks(count).enumerate() {
                let selection = BoxSelection { boxes: &boxes, scores, limits: &limits };
                let chosen = cpu.isa().vectorize(selection);
                selected
                    .extend(chosen.iter().flat_map(|chosen| [image as i64, class as i64, *chosen as i64]));
            }
        }
    }
    operands.call().allocate_output(0, Dtype::I64, &[(selected.len() / 3) as i64, 3])?;
    operands.write_output::<i64>(0)?.copy_from_slice(&selected);
    Ok(())
}

/// The number in an operand that may be left out.
fn optional_scalar<T: Copy>(found: Option<&[T]>, default: T) -> Result<T> {
    match found {
        None => Ok(default),
        Some([number]) => Ok(*number),
        Some(more) => Err(PluginError::invalid_argument(format!(
            "expected one number as a limit, found {}",
            more.len()
        ))),
    }
}

struct SuppressionLimits {
    boxes: usize,
    overlap: f32,
    score: f32,
}

/// Scores that are tested together: in most classes few boxes pass, so most blocks are skipped after one vector comparison.
const SCORE_BLOCK: usize = 64;

/// Candidates that are sorted first. If enough of them are chosen, the others are never sorted.
const CANDIDATE_BLOCK: usize = 128;

struct BoxSelection<'a> {
    boxes: &'a [CornerBox],
    scores: &'a [f32],
    limits: &'a SuppressionLimits,
}

impl SimdTask for BoxSelection<'_> {
    /// The indices of the chosen boxes, best first; of equal scores the lower index comes first.
    type Output = Vec<usize>;

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) -> Vec<usize> {
        let Self { boxes, scores, limits } = self;
        let mut candidates = Vec::new();
        for (block, scores) in scores.chunks(SCORE_BLOCK).enumerate() {
            if scores.iter().fold(false, |any, score| any | (*score > limits.score)) {
                let indices = block * SCORE_BLOCK..;
                let indexed = scores.iter().zip(indices).filter(|(score, _)| **score > limits.score);
                candidates.extend(indexed.map(|(score, index)| score_rank(*score, index)));
            }
        }
        let (mut rest, mut at_once) = (&mut candidates[..], CANDIDATE_BLOCK);
        let (mut chosen, mut better) = (Vec::new(), Vec::new());
        while !rest.is_empty() {
            // Selection is linear and sorting is not, so only the best candidates are sorted; the number doubles if they do not
            // suffice.
            if at_once < rest.len() {
                rest.select_nth_unstable(at_once);
            }
            let (best, further) = rest.split_at_mut(at_once.min(rest.len()));
            best.sort_unstable();
            for rank in best {
                // The lower half of a rank is the index.
                let index = *rank as usize;
                if better.iter().any(|better: &BoxGroup| better.any_overlaps(&boxes[index], limits.overlap)) {
                    continue;
                }
                push_box(&mut better, chosen.len(), &boxes[index]);
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

/// A sort key: lower for a better score and, among equal ones, for a lower index, which is its lower half.
#[inline(always)]
fn score_rank(score: f32, index: usize) -> u128 {
    // NaN passes no limit, so all scores are ordered by their bits. Adding 0 turns -0, which equals 0, into it.
    let score = score + 0.0;
    let bits = score.to_bits();
    let rising = if score.is_sign_negative() { !bits } else { bits | 1 << 31 };
    u128::from(!rising) << 64 | index as u128
}

/// A box by its lower and its upper corner, and its area.
struct CornerBox {
    low: [f32; 2],
    high: [f32; 2],
    area: f32,
}

impl CornerBox {
    fn new([a, b, c, d]: [f32; 4], has_center: bool) -> Self {
        let (low, high) = if has_center {
            ([a - c / 2.0, b - d / 2.0], [a + c / 2.0, b + d / 2.0])
        } else {
            // The corners may be those of either diagonal, in either order.
            ([a.min(c), b.min(d)], [a.max(c), b.max(d)])
        };
        Self { low, high, area: (high[0] - low[0]) * (high[1] - low[1]) }
    }
}

/// Boxes that are compared with another at once: 16 `f32` are one zmm or two ymm registers.
const BOX_LANES: usize = 16;

/// Boxes as a structure of arrays. Unused lanes have no area, so they overlap nothing.
#[derive(Clone, Copy, Default)]
struct BoxGroup {
    low: [[f32; BOX_LANES]; 2],
    high: [[f32; BOX_LANES]; 2],
    area: [f32; BOX_LANES],
}

#[inline(always)]
fn push_box(regions: &mut Vec<BoxGroup>, count: usize, region: &CornerBox) {
    let lane = count % BOX_LANES;
    if lane == 0 {
        regions.push(BoxGroup::default());
    }
    let Some(last) = regions.last_mut() else { return };
    for axis in 0..2 {
        (last.low[axis][lane], last.high[axis][lane]) = (region.low[axis], region.high[axis]);
    }
    last.area[lane] = region.area;
}

impl BoxGroup {
    /// True if the intersection of a box with one of these is more than this share of their union. A box without an area overlaps
    /// nothing.
    #[inline(always)]
    fn any_overlaps(&self, other: &CornerBox, limit: f32) -> bool {
        let side = |axis: usize, lane: usize| {
            (self.high[axis][lane].min(other.high[axis]) - self.low[axis][lane].max(other.low[axis])).max(0.0)
        };
        let mut shared = [0.0; BOX_LANES];
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
            // A NaN ratio is not within the limit.
            let is_within = shared / (area + other.area - shared) <= limit;
            covered |= !(apart | is_within);
        }
        covered
    }
}

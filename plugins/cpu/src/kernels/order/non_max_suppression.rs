//! `NonMaxSuppression`: the boxes with the best scores of each class that do not overlap a better one too much.

use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, ensure};

use crate::device::Cpu;
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

fn run(_: &Cpu, has_centres: &bool, operands: &Operands<'_, '_>) -> Result<()> {
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
    let count = count as usize;
    if count > 0 && limits.boxes > 0 {
        for (index, scores) in scores.chunks(count).enumerate() {
            let (image, class) = (index / classes as usize, index % classes as usize);
            let boxes: Vec<Region> = boxes[image * count * 4..][..count * 4]
                .as_chunks()
                .0
                .iter()
                .map(|numbers| Region::new(*numbers, *has_centres))
                .collect();
            for chosen in select(&boxes, scores, &limits) {
                selected.extend([image as i64, class as i64, chosen as i64]);
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

/// The chosen boxes of one class, best first; of equal scores the lower index comes first.
fn select(boxes: &[Region], scores: &[f32], limits: &Limits) -> Vec<usize> {
    let mut candidates: Vec<usize> = (0..boxes.len()).filter(|index| scores[*index] > limits.score).collect();
    candidates.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut chosen: Vec<usize> = Vec::new();
    for candidate in candidates {
        if chosen.len() == limits.boxes {
            break;
        }
        if chosen.iter().all(|better| boxes[*better].overlap(&boxes[candidate]) <= limits.overlap) {
            chosen.push(candidate);
        }
    }
    chosen
}

/// A box by its corners, the lower coordinates first.
struct Region {
    low: [f32; 2],
    high: [f32; 2],
}

impl Region {
    fn new([a, b, c, d]: [f32; 4], has_centre: bool) -> Self {
        if has_centre {
            return Self { low: [a - c / 2.0, b - d / 2.0], high: [a + c / 2.0, b + d / 2.0] };
        }
        Self { low: [a.min(c), b.min(d)], high: [a.max(c), b.max(d)] }
    }

    fn area(&self) -> f32 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// The area that two boxes share as a part of what they cover together; 0 where one has no area.
    fn overlap(&self, other: &Self) -> f32 {
        let side = |axis: usize| {
            (self.high[axis].min(other.high[axis]) - self.low[axis].max(other.low[axis])).max(0.0)
        };
        let shared = side(0) * side(1);
        if self.area() <= 0.0 || other.area() <= 0.0 || shared <= 0.0 {
            return 0.0;
        }
        shared / (self.area() + other.area() - shared)
    }
}

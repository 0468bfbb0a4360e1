//! What a graph says about how its numbers are quantised.

use oarlock_core::Dtype;

use super::super::common::Look;
use crate::graph::{Node, ValueId};

/// How real numbers become numbers of eight bits: `zero + number / scale`, rounded, within bounds.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) dtype: Dtype,
    pub(super) scale: f32,
    pub(super) zero: i64,
    pub(super) bounds: [i64; 2],
}

/// A value of eight bits, and what its numbers stand for.
pub(super) struct Stepped {
    pub(super) value: ValueId,
    pub(super) step: Step,
}

impl Step {
    /// A scale and a zero point that are constants of one element; without the latter, it is 0.
    pub(super) fn of(look: &Look<'_>, dtype: Dtype, scale: ValueId, zero: Option<ValueId>) -> Option<Self> {
        let [scale] = <[f32; 1]>::try_from(scales(look, scale)?).ok()?;
        let zero = match zero {
            None => 0,
            Some(zero) => <[i64; 1]>::try_from(zeros(look, zero, dtype)?).ok()?[0],
        };
        let bounds = match dtype {
            Dtype::I8 => [-128, 127],
            Dtype::U8 => [0, 255],
            _ => return None,
        };
        Some(Self { dtype, scale, zero, bounds })
    }

    /// What a value is made of by activations that only cut off, which become bounds. They may be cut off after they are
    /// rounded, since rounding keeps the order of numbers.
    pub(super) fn narrowed(&mut self, look: &Look<'_>, mut value: ValueId) -> ValueId {
        while look.is_read_once(value)
            && let Some((input, [low, high])) =
                look.maker(value).and_then(|node| Some((node.input(0)?, cut_off(look, node)?)))
        {
            let [least, most] = self.bounds;
            let low = self.rounded(low).clamp(least, most);
            self.bounds = [low, self.rounded(high).clamp(low, most)];
            value = input;
        }
        value
    }

    /// The number that a real one becomes, without bounds but those of integers.
    fn rounded(&self, number: f64) -> i64 {
        ((number / f64::from(self.scale)).round_ties_even() as i64).saturating_add(self.zero)
    }
}

/// Where an activation cuts off.
fn cut_off(look: &Look<'_>, node: &Node) -> Option<[f64; 2]> {
    let bound = |index: usize, name: &str, default: f64| match node.input(index) {
        Some(value) => look.scalar(value),
        None => node.attributes.float(name).ok().map(|found| found.unwrap_or(default)),
    };
    if node.is("Relu") {
        return Some([0.0, f64::INFINITY]);
    }
    if !node.is("Clip") {
        return None;
    }
    let bounds = [bound(1, "min", f64::NEG_INFINITY)?, bound(2, "max", f64::INFINITY)?];
    (bounds[0] <= bounds[1]).then_some(bounds)
}

/// The value of eight bits that a value stands for, if it is made so.
pub(super) fn dequantized(look: &Look<'_>, value: ValueId) -> Option<Stepped> {
    let node = look.made_by(value, "DequantizeLinear")?;
    let (value, scale) = node.input(0).zip(node.input(1))?;
    let step = Step::of(look, look.dtype(value)?, scale, node.input(2))?;
    let is_constant = look.graph.value(value).weight.is_some();
    (!is_constant).then_some(Stepped { value, step })
}

/// What a node quantises, and how.
pub(super) fn quantize_step(look: &Look<'_>, node: &Node) -> Option<(ValueId, Step)> {
    if !node.is("QuantizeLinear") {
        return None;
    }
    let (value, scale) = node.input(0).zip(node.input(1))?;
    Some((value, Step::of(look, look.dtype(node.output(0)?)?, scale, node.input(2))?))
}

/// The scales in a constant, all of which are numbers above 0.
pub(super) fn scales(look: &Look<'_>, value: ValueId) -> Option<Vec<f32>> {
    let constant = look.numbers(value)?;
    let list: Vec<f32> = constant.floats().ok()?.into_iter().map(|scale| scale as f32).collect();
    (constant.dtype() == Dtype::F32
        && constant.dims().len() <= 1
        && list.iter().all(|scale| is_scale(*scale)))
    .then_some(list)
}

fn is_scale(scale: f32) -> bool {
    scale.is_finite() && scale > 0.0
}

/// The zero points in a constant.
pub(super) fn zeros(look: &Look<'_>, value: ValueId, dtype: Dtype) -> Option<Vec<i64>> {
    let constant = look.numbers(value)?;
    if constant.dtype() != dtype || constant.dims().len() > 1 {
        return None;
    }
    match dtype {
        Dtype::I8 => Some(constant.bytes().iter().map(|byte| i64::from(byte.cast_signed())).collect()),
        Dtype::U8 => Some(constant.bytes().iter().map(|byte| i64::from(*byte)).collect()),
        _ => constant.ints().ok(),
    }
}

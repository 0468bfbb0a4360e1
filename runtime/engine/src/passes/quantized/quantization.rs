//! Reads scales and zero points from a graph.

use oarlock_core::Dtype;

use super::super::graph_view::GraphView;
use crate::graph::{Node, ValueId};

/// Mapping from real numbers to 8 bits: `zero + number / scale`, rounded, then clamped to bounds.
#[derive(Clone, Debug)]
pub(super) struct QuantizationScheme {
    pub(super) dtype: Dtype,
    pub(super) scale: f32,
    pub(super) zero: i64,
    pub(super) bounds: [i64; 2],
}

/// An 8-bit value and its mapping to real numbers.
pub(super) struct QuantizedValue {
    pub(super) value: ValueId,
    pub(super) step: QuantizationScheme,
}

impl QuantizationScheme {
    /// Scale and zero point from constants of one element; an omitted zero point is 0.
    pub(super) fn from_constants(
        view: &GraphView<'_>,
        dtype: Dtype,
        scale: ValueId,
        zero: Option<ValueId>,
    ) -> Option<Self> {
        let [scale] = <[f32; 1]>::try_from(scale_constants(view, scale)?).ok()?;
        let zero = match zero {
            None => 0,
            Some(zero) => <[i64; 1]>::try_from(zero_point_constants(view, zero, dtype)?).ok()?[0],
        };
        let bounds = match dtype {
            Dtype::I8 => [-128, 127],
            Dtype::U8 => [0, 255],
            _ => return None,
        };
        Some(Self { dtype, scale, zero, bounds })
    }

    /// Absorbs clamping activations before `value` into the bounds and returns their input. Clamping may follow rounding,
    /// because rounding is monotonic.
    pub(super) fn absorb_activations(&mut self, view: &GraphView<'_>, mut value: ValueId) -> ValueId {
        while view.is_read_once(value)
            && let Some((input, [low, high])) =
                view.producer(value).and_then(|node| Some((node.input(0)?, clip_bounds(view, node)?)))
        {
            let [least, most] = self.bounds;
            let low = self.round_unbounded(low).clamp(least, most);
            self.bounds = [low, self.round_unbounded(high).clamp(low, most)];
            value = input;
        }
        value
    }

    /// Quantizes a number, with saturation only at the limits of `i64`.
    fn round_unbounded(&self, number: f64) -> i64 {
        ((number / f64::from(self.scale)).round_ties_even() as i64).saturating_add(self.zero)
    }
}

/// The bounds of a clamping activation.
fn clip_bounds(view: &GraphView<'_>, node: &Node) -> Option<[f64; 2]> {
    let bound = |index: usize, name: &str, default: f64| match node.input(index) {
        Some(value) => view.scalar_constant(value),
        None => node.attributes.get_float(name).ok().map(|found| found.unwrap_or(default)),
    };
    if node.is_op("Relu") {
        return Some([0.0, f64::INFINITY]);
    }
    if !node.is_op("Clip") {
        return None;
    }
    let bounds = [bound(1, "min", f64::NEG_INFINITY)?, bound(2, "max", f64::INFINITY)?];
    (bounds[0] <= bounds[1]).then_some(bounds)
}

/// Matches a dequantized value; constants are weights and do not match.
pub(super) fn match_dequantize(view: &GraphView<'_>, value: ValueId) -> Option<QuantizedValue> {
    let node = view.producer_with_op(value, "DequantizeLinear")?;
    let (value, scale) = node.input(0).zip(node.input(1))?;
    let step = QuantizationScheme::from_constants(view, view.dtype(value)?, scale, node.input(2))?;
    let is_constant = view.graph.value(value).weight.is_some();
    (!is_constant).then_some(QuantizedValue { value, step })
}

/// Matches a quantization; returns its input and mapping.
pub(super) fn match_quantize(view: &GraphView<'_>, node: &Node) -> Option<(ValueId, QuantizationScheme)> {
    if !node.is_op("QuantizeLinear") {
        return None;
    }
    let (value, scale) = node.input(0).zip(node.input(1))?;
    Some((
        value,
        QuantizationScheme::from_constants(view, view.dtype(node.output(0)?)?, scale, node.input(2))?,
    ))
}

/// Scales from a constant; all must be valid (positive and finite).
pub(super) fn scale_constants(view: &GraphView<'_>, value: ValueId) -> Option<Vec<f32>> {
    let constant = view.known_numbers(value)?;
    let list: Vec<f32> = constant.to_floats().ok()?.into_iter().map(|scale| scale as f32).collect();
    (constant.dtype() == Dtype::F32
        && constant.dims().len() <= 1
        && list.iter().all(|scale| is_valid_scale(*scale)))
    .then_some(list)
}

fn is_valid_scale(scale: f32) -> bool {
    scale.is_finite() && scale > 0.0
}

/// Zero points from a constant.
pub(super) fn zero_point_constants(view: &GraphView<'_>, value: ValueId, dtype: Dtype) -> Option<Vec<i64>> {
    let constant = view.known_numbers(value)?;
    if constant.dtype() != dtype || constant.dims().len() > 1 {
        return None;
    }
    match dtype {
        Dtype::I8 => Some(constant.bytes().ok()?.iter().map(|byte| i64::from(byte.cast_signed())).collect()),
        Dtype::U8 => Some(constant.bytes().ok()?.iter().map(|byte| i64::from(*byte)).collect()),
        _ => constant.to_ints().ok(),
    }
}

//! Affine maps with one factor and one summand for each channel: batch normalization, and arithmetic with constants.

use oarlock_core::{Constant, Dtype};

use super::graph_view::GraphView;
use crate::graph::{Node, ValueId};

/// The first opset in which arithmetic broadcasts as NumPy does; in older ones, batch normalization has other attributes.
const ARITHMETIC_OPSET: u32 = 7;

/// A map of each channel x to factor · x + summand.
pub(super) struct ChannelAffine {
    /// One for each channel, or a single one for all of them.
    factors: Vec<f64>,
    /// As many summands.
    summands: Vec<f64>,
    /// The ranks of values that broadcasting with the constants leaves as they are.
    ranks: RankBounds,
}

/// Bounds of a rank.
#[derive(Clone, Copy)]
struct RankBounds {
    least: usize,
    /// The only rank at which a constant with one element for each channel aligns with the channels.
    only: Option<usize>,
}

impl ChannelAffine {
    /// Composes the affine nodes that end in a value, as long as nothing else reads what is between them. Returns the value
    /// before them and the map; `None` if there are none.
    pub(super) fn from_chain(view: &GraphView<'_>, value: ValueId) -> Option<(ValueId, Self)> {
        let mut found = Self::from_node(view, view.producer(value)?)?;
        while view.is_read_once(found.0)
            && let Some((input, inner)) = view.producer(found.0).and_then(|node| Self::from_node(view, node))
            && let Some(both) = found.1.after(&inner)
        {
            found = (input, both);
        }
        Some(found)
    }

    /// The map that a node computes, and its input.
    fn from_node(view: &GraphView<'_>, node: &Node) -> Option<(ValueId, Self)> {
        if node.is_op("BatchNormalization") {
            return Some((node.input(0)?, Self::from_batch_norm(view, node)?));
        }
        let is_arithmetic = ["Mul", "Add", "Div", "Sub"].iter().any(|op| node.is_op(op));
        if !is_arithmetic || node.opset < ARITHMETIC_OPSET {
            return None;
        }
        let (a, b) = node.input(0).zip(node.input(1))?;
        // Until shapes are known, arithmetic may still be found to be part of an activation.
        view.rank(node.output(0)?)?;
        let of_right = || Some((a, channel_elements(view, b)?));
        let of_either = || of_right().or_else(|| Some((b, channel_elements(view, a)?)));
        let commutes = node.is_op("Mul") || node.is_op("Add");
        let (input, (elements, ranks)) = if commutes { of_either() } else { of_right() }?;
        let (ones, zeros) = (vec![1.0; elements.len()], vec![0.0; elements.len()]);
        let (factors, summands) = match &*node.op {
            "Mul" => (elements, zeros),
            "Div" => (elements.iter().map(|divisor| divisor.recip()).collect(), zeros),
            "Sub" => (ones, elements.iter().map(|subtrahend| -subtrahend).collect()),
            _ => (ones, elements),
        };
        Some((input, Self { factors, summands, ranks }))
    }

    /// The map of a batch normalization with constant statistics.
    pub(super) fn from_batch_norm(view: &GraphView<'_>, norm: &Node) -> Option<Self> {
        let is_training = norm.attributes.get_int("training_mode").ok()?.unwrap_or(0) != 0;
        if is_training || norm.opset < ARITHMETIC_OPSET || norm.outputs.iter().skip(1).any(Option::is_some) {
            return None;
        }
        let epsilon = norm.attributes.get_float("epsilon").ok()?.unwrap_or(1e-5);
        let scale = float_elements(view, norm.input(1)?)?;
        let of_channels = |index: usize| {
            float_elements(view, norm.input(index)?).filter(|elements| elements.len() == scale.len())
        };
        let (shift, mean, variance) = (of_channels(2)?, of_channels(3)?, of_channels(4)?);
        let factors: Vec<f64> = scale
            .iter()
            .zip(&variance)
            .map(|(scale, variance)| scale / (variance + epsilon).sqrt())
            .collect();
        let summands = shift
            .iter()
            .zip(&mean)
            .zip(&factors)
            .map(|((shift, mean), factor)| shift - mean * factor)
            .collect();
        Some(Self { factors, summands, ranks: RankBounds { least: 2, only: None } })
    }

    /// This map after another one.
    fn after(&self, inner: &Self) -> Option<Self> {
        let (a, b) = (self.ranks, inner.ranks);
        let channels = self.factors.len().max(inner.factors.len());
        let are_consistent = a.only.zip(b.only).is_none_or(|(a, b)| a == b)
            && [self, inner].iter().all(|map| [1, channels].contains(&map.factors.len()));
        let composed = |channel: usize| {
            let ((factor, summand), (inner_factor, inner_summand)) = (self.at(channel), inner.at(channel));
            (factor * inner_factor, factor * inner_summand + summand)
        };
        are_consistent.then(|| {
            let (factors, summands) = (0..channels).map(composed).unzip();
            let ranks = RankBounds { least: a.least.max(b.least), only: a.only.or(b.only) };
            Self { factors, summands, ranks }
        })
    }

    /// True if this is a map of values with as many channels and this rank.
    pub(super) fn fits(&self, channels: usize, rank: usize) -> bool {
        let RankBounds { least, only } = self.ranks;
        [1, channels].contains(&self.factors.len()) && least <= rank && only.is_none_or(|only| only == rank)
    }

    /// The factor and the summand of a channel.
    pub(super) fn at(&self, channel: usize) -> (f64, f64) {
        let index = if self.factors.len() == 1 { 0 } else { channel };
        (self.factors[index], self.summands[index])
    }

    /// The pairs of factors and summands, a single one if all channels have the same.
    pub(super) fn pairs(&self) -> impl ExactSizeIterator<Item = (f64, f64)> {
        self.factors.iter().copied().zip(self.summands.iter().copied())
    }
}

/// Elements of an f32 constant; `None` for other dtypes.
pub(super) fn float_elements(view: &GraphView<'_>, value: ValueId) -> Option<Vec<f64>> {
    let numbers = view.constant(value)?;
    if numbers.dtype() == Dtype::F32 { numbers.to_floats().ok() } else { None }
}

/// The elements of an f32 constant that broadcasts along all axes but the channels', and the ranks at which it does.
fn channel_elements(view: &GraphView<'_>, value: ValueId) -> Option<(Vec<f64>, RankBounds)> {
    let dims = view.constant(value)?.dims();
    let is_large = |size: &i64| *size != 1;
    // Channels are the second axis, so all axes after the constant's large one are spatial.
    let channel_axis = dims.iter().position(is_large);
    let only = channel_axis.map(|axis| dims.len() - axis + 1);
    if dims.iter().filter(|size| is_large(size)).count() > 1 || only.is_some_and(|only| only < dims.len()) {
        return None;
    }
    let elements = float_elements(view, value).filter(|elements| !elements.is_empty())?;
    Some((elements, RankBounds { least: dims.len(), only }))
}

/// An f32 constant of these elements.
pub(super) fn float_constant(elements: impl Iterator<Item = f64>, dims: &[i64]) -> Option<Constant> {
    let bytes: Vec<u8> = elements.flat_map(|element| (element as f32).to_ne_bytes()).collect();
    Constant::new(Dtype::F32, dims, bytes).ok()
}

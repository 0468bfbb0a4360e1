//! Matches convolutions and products with quantized inputs and constant weights.

use oarlock_core::{Attribute, Attributes, Dtype};

use super::super::channels_last::window_attributes;
use super::super::graph_view::GraphView;
use super::quantization::{
    QuantizationScheme, QuantizedValue, match_dequantize, scale_constants, zero_point_constants,
};
use crate::graph::{Node, ValueId};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IntegerLayerKind {
    Convolution,
    Product,
}

impl IntegerLayerKind {
    /// The integer op that replaces the layer.
    pub(super) fn op_name(self) -> &'static str {
        match self {
            Self::Convolution => "QuantizedConv",
            Self::Product => "QuantizedMatMul",
        }
    }
}

pub(super) struct IntegerLayer {
    pub(super) kind: IntegerLayerKind,
    pub(super) x: QuantizedValue,
    pub(super) w: ValueId,
    /// The weights as floats, if the model reads them so.
    pub(super) real_weights: Option<ValueId>,
    /// The weights minus their zero points (shape and bytes), if those are not 0.
    pub(super) moved_weights: Option<(Vec<i64>, Vec<u8>)>,
    /// One weight scale, or one for each output channel.
    scales: Vec<f32>,
    /// Bias in units of the integer sum.
    pub(super) bias: Option<Vec<i32>>,
    pub(super) attributes: Attributes,
}

/// Operands of a candidate, before their scales and zero points are checked.
struct IntegerLayerOperands {
    x: QuantizedValue,
    w: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
    /// Axis of the weight scales, if given.
    axis: Option<i64>,
}

/// Layout of a layer, from the attributes of its op.
struct LayerAttributes {
    kind: IntegerLayerKind,
    attributes: Attributes,
    /// Axis of the output channels in the weights.
    axis: usize,
}

impl IntegerLayer {
    /// Matches a layer that computes floats from dequantized values and has no other reader.
    pub(super) fn match_float_layer(view: &GraphView<'_>, made: ValueId) -> Option<Self> {
        let node = view.producer(made).filter(|_| view.is_read_once(made))?;
        let shape = layer_attributes(view, node, 1)?;
        if view.dtype(made)? != Dtype::F32 {
            return None;
        }
        let x = match_dequantize(view, node.input(0)?)?;
        let weights = view.producer_with_op(node.input(1)?, "DequantizeLinear")?;
        if weights.attributes.get_int("block_size").ok()?.unwrap_or(0) != 0 {
            return None;
        }
        let operands = IntegerLayerOperands {
            x,
            w: weights.input(0)?,
            scale: weights.input(1)?,
            zero: weights.input(2),
            axis: Some(weights.attributes.get_int("axis").ok()?.unwrap_or(1)),
        };
        let mut layer = Self::new(view, shape, operands)?;
        layer.real_weights = node.input(1);
        if let Some(bias) = node.input(2) {
            layer.bias = Some(layer.quantize_to_sums(&bias_floats(view, bias)?)?);
        }
        Some(layer)
    }

    /// Matches an op that works on quantized tensors itself, such as `QLinearConv`; returns its output quantization too.
    pub(super) fn match_linear_op(view: &GraphView<'_>, node: &Node) -> Option<(Self, QuantizationScheme)> {
        let input = |index| node.input(index);
        let x = input(0)?;
        let x = QuantizedValue {
            value: x,
            step: QuantizationScheme::from_constants(view, view.dtype(x)?, input(1)?, input(2))?,
        };
        let step =
            QuantizationScheme::from_constants(view, view.dtype(node.output(0)?)?, input(6)?, input(7))?;
        let operands = IntegerLayerOperands { x, w: input(3)?, scale: input(4)?, zero: input(5), axis: None };
        let mut layer = Self::new(view, layer_attributes(view, node, 3)?, operands)?;
        if let Some(bias) = input(8) {
            let bias = view.constant(bias)?.to_ints().ok()?;
            layer.bias = Some(bias.into_iter().map(|bias| i32::try_from(bias).ok()).collect::<Option<_>>()?);
        }
        Some((layer, step))
    }

    fn new(view: &GraphView<'_>, shape: LayerAttributes, operands: IntegerLayerOperands) -> Option<Self> {
        let IntegerLayerOperands { x, w, scale, zero, axis } = operands;
        let weights = view.constant(w)?;
        let (dims, dtype) = (weights.dims().to_vec(), weights.dtype());
        let outputs = usize::try_from(*dims.get(shape.axis)?).ok()?;
        let scales = scale_constants(view, scale)?;
        let rank = i64::try_from(dims.len()).ok()?;
        let expected = i64::try_from(shape.axis).ok()?;
        let is_along_outputs = axis.is_none_or(|axis| axis == expected || axis + rank == expected);
        let fits = |count: usize| count == 1 || count == outputs && is_along_outputs;
        let zeros = match zero {
            None => vec![0],
            Some(zero) => zero_point_constants(view, zero, dtype)?,
        };
        if !fits(scales.len()) || !fits(zeros.len()) || !matches!(dtype, Dtype::I8 | Dtype::U8) {
            return None;
        }
        let moved_weights = if dtype == Dtype::I8 && zeros.iter().all(|zero| *zero == 0) {
            None
        } else {
            let inner = dims[shape.axis + 1..].iter().product::<i64>();
            let inner = usize::try_from(inner).ok()?.max(1);
            let zero = |index: usize| zeros[if zeros.len() == 1 { 0 } else { index / inner % outputs }];
            let number =
                |byte: u8| if dtype == Dtype::I8 { byte.cast_signed().into() } else { i64::from(byte) };
            let bytes = weights.bytes().ok()?;
            let moved =
                bytes.iter().enumerate().map(|(index, byte)| i8::try_from(number(*byte) - zero(index)).ok());
            let moved: Vec<u8> = moved.map(|weight| weight.map(i8::cast_unsigned)).collect::<Option<_>>()?;
            Some((dims, moved))
        };
        let LayerAttributes { kind, attributes, .. } = shape;
        Some(Self { kind, x, w, real_weights: None, moved_weights, scales, bias: None, attributes })
    }

    /// Factors from units of the integer sum to units of the output, one for each weight scale.
    pub(super) fn requantize_factors(&self, to: &QuantizationScheme) -> Option<Vec<f32>> {
        let factors: Vec<f32> =
            self.scales.iter().map(|scale| self.x.step.scale * scale / to.scale).collect();
        factors.iter().all(|factor| factor.is_finite()).then_some(factors)
    }

    /// Expresses real numbers, one for each output, in units of the integer sum.
    fn quantize_to_sums(&self, numbers: &[f64]) -> Option<Vec<i32>> {
        let scale = |index: usize| {
            let of_all = if let [scale] = self.scales.as_slice() { Some(scale) } else { None };
            of_all.or_else(|| self.scales.get(index)).copied().map(f64::from)
        };
        let step = |(index, number): (usize, &f64)| {
            let step = (number / (f64::from(self.x.step.scale) * scale(index)?)).round_ties_even();
            (step.abs() <= f64::from(i32::MAX)).then_some(step as i32)
        };
        numbers.iter().enumerate().map(step).collect()
    }
}

/// The attributes of a node that multiplies by weights, which are the input at position `weights`.
fn layer_attributes(view: &GraphView<'_>, node: &Node, weights: usize) -> Option<LayerAttributes> {
    if !node.domain.is_empty() {
        return None;
    }
    let product = |transposed: bool| LayerAttributes {
        kind: IntegerLayerKind::Product,
        attributes: Attributes::new().with_attribute("transB", Attribute::Int(transposed.into())),
        axis: usize::from(!transposed),
    };
    let is_matrix = || view.rank(node.input(weights)?).filter(|rank| *rank == 2);
    let (int, float) =
        (|name| node.attributes.get_int(name).ok(), |name| node.attributes.get_float(name).ok());
    match &*node.op {
        "Conv" | "QLinearConv" => {
            let kernel = view.dims(node.input(weights)?)?;
            let attributes = window_attributes(view, node, kernel.get(2..)?.to_vec(), &["group"])?;
            Some(LayerAttributes { kind: IntegerLayerKind::Convolution, attributes, axis: 0 })
        }
        "MatMul" | "QLinearMatMul" => is_matrix().map(|_| product(false)),
        "Gemm" => {
            let is_plain = int("transA")?.unwrap_or(0) == 0
                && float("alpha")?.unwrap_or(1.0) == 1.0
                && (float("beta")?.unwrap_or(1.0) == 1.0 || node.input(2).is_none());
            is_matrix().filter(|_| is_plain)?;
            Some(product(int("transB")?.unwrap_or(0) != 0))
        }
        _ => None,
    }
}

/// The elements of a bias: a constant vector, or a dequantized one.
fn bias_floats(view: &GraphView<'_>, bias: ValueId) -> Option<Vec<f64>> {
    let list = |value: ValueId| {
        let numbers = view.constant(value)?;
        if numbers.dims().len() == 1 { numbers.to_floats().ok() } else { None }
    };
    if let Some(found) = list(bias) {
        return Some(found);
    }
    let node = view.producer_with_op(bias, "DequantizeLinear")?;
    let (integers, scales) = (list(node.input(0)?)?, scale_constants(view, node.input(1)?)?);
    let has_zeros = node.input(2).is_none_or(|zero| {
        zero_point_constants(view, zero, Dtype::I32).is_some_and(|zeros| zeros.iter().all(|zero| *zero == 0))
    });
    if !has_zeros || scales.len() != 1 && scales.len() != integers.len() {
        return None;
    }
    let scale = |index: usize| f64::from(scales[if scales.len() == 1 { 0 } else { index }]);
    Some(integers.into_iter().enumerate().map(|(index, integer)| integer * scale(index)).collect())
}

//! Convolutions and products with quantised images and constant weights.

use oarlock_core::{Attribute, Attributes, Dtype};

use super::super::channels_last::window_attributes;
use super::super::graph_view::GraphView;
use super::quantization::{
    QuantizationScheme, QuantizedValue, match_dequantize, scale_constants, zero_point_constants,
};
use crate::graph::{Node, ValueId};

/// What kind of sum a layer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IntegerLayerKind {
    Convolution,
    Product,
}

impl IntegerLayerKind {
    /// The op that computes it with integers.
    pub(super) fn op_name(self) -> &'static str {
        match self {
            Self::Convolution => "QuantizedConv",
            Self::Product => "QuantizedMatMul",
        }
    }
}

/// A convolution or product.
pub(super) struct IntegerLayer {
    pub(super) kind: IntegerLayerKind,
    pub(super) x: QuantizedValue,
    pub(super) w: ValueId,
    /// The weights as floats, where they are read so.
    pub(super) real_weights: Option<ValueId>,
    /// The weights less their zero points, where they have some.
    pub(super) moved_weights: Option<(Vec<i64>, Vec<u8>)>,
    /// One scale, or one for each output.
    scales: Vec<f32>,
    /// In steps of the sum.
    pub(super) bias: Option<Vec<i32>>,
    pub(super) attributes: Attributes,
}

/// Operands before it is known whether they fit.
struct IntegerLayerOperands {
    x: QuantizedValue,
    w: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
    /// The dimension along which there are several scales, where it is said.
    axis: Option<i64>,
}

/// What an op says about itself.
struct LayerAttributes {
    kind: IntegerLayerKind,
    attributes: Attributes,
    /// The dimension of the weights that is the outputs.
    axis: usize,
}

impl IntegerLayer {
    /// The layer that makes a value of floats, which nobody else reads.
    pub(super) fn match_float_layer(look: &GraphView<'_>, made: ValueId) -> Option<Self> {
        let node = look.producer(made).filter(|_| look.is_read_once(made))?;
        let shape = layer_attributes(look, node, 1)?;
        if look.dtype(made)? != Dtype::F32 {
            return None;
        }
        let x = match_dequantize(look, node.input(0)?)?;
        let weights = look.producer_with_op(node.input(1)?, "DequantizeLinear")?;
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
        let mut layer = Self::new(look, shape, operands)?;
        layer.real_weights = node.input(1);
        if let Some(bias) = node.input(2) {
            layer.bias = Some(layer.quantize_to_sums(&bias_floats(look, bias)?)?);
        }
        Some(layer)
    }

    /// The layer that is an op on quantised tensors, and what becomes of its sums.
    pub(super) fn match_linear_op(look: &GraphView<'_>, node: &Node) -> Option<(Self, QuantizationScheme)> {
        let input = |index| node.input(index);
        let x = input(0)?;
        let x = QuantizedValue {
            value: x,
            step: QuantizationScheme::from_constants(look, look.dtype(x)?, input(1)?, input(2))?,
        };
        let step =
            QuantizationScheme::from_constants(look, look.dtype(node.output(0)?)?, input(6)?, input(7))?;
        let operands = IntegerLayerOperands { x, w: input(3)?, scale: input(4)?, zero: input(5), axis: None };
        let mut layer = Self::new(look, layer_attributes(look, node, 3)?, operands)?;
        if let Some(bias) = input(8) {
            let bias = look.constant(bias)?.to_ints().ok()?;
            layer.bias = Some(bias.into_iter().map(|bias| i32::try_from(bias).ok()).collect::<Option<_>>()?);
        }
        Some((layer, step))
    }

    fn new(look: &GraphView<'_>, shape: LayerAttributes, operands: IntegerLayerOperands) -> Option<Self> {
        let IntegerLayerOperands { x, w, scale, zero, axis } = operands;
        let weights = look.constant(w)?;
        let (dims, dtype) = (weights.dims().to_vec(), weights.dtype());
        let outputs = usize::try_from(*dims.get(shape.axis)?).ok()?;
        let scales = scale_constants(look, scale)?;
        let rank = i64::try_from(dims.len()).ok()?;
        let expected = i64::try_from(shape.axis).ok()?;
        let is_along_outputs = axis.is_none_or(|axis| axis == expected || axis + rank == expected);
        let fits = |count: usize| count == 1 || count == outputs && is_along_outputs;
        let zeros = match zero {
            None => vec![0],
            Some(zero) => zero_point_constants(look, zero, dtype)?,
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
            let bytes = weights.bytes().iter().enumerate();
            let moved = bytes.map(|(index, byte)| i8::try_from(number(*byte) - zero(index)).ok());
            let moved: Vec<u8> = moved.map(|weight| weight.map(i8::cast_unsigned)).collect::<Option<_>>()?;
            Some((dims, moved))
        };
        let LayerAttributes { kind, attributes, .. } = shape;
        Some(Self { kind, x, w, real_weights: None, moved_weights, scales, bias: None, attributes })
    }

    /// What a step of the sums is in steps of what they become.
    pub(super) fn requantize_factors(&self, to: &QuantizationScheme) -> Option<Vec<f32>> {
        let factors: Vec<f32> =
            self.scales.iter().map(|scale| self.x.step.scale * scale / to.scale).collect();
        factors.iter().all(|factor| factor.is_finite()).then_some(factors)
    }

    /// Numbers, one for each output, in steps of the sums.
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

/// What a node says that computes sums with weights at a place of its inputs.
fn layer_attributes(look: &GraphView<'_>, node: &Node, weights: usize) -> Option<LayerAttributes> {
    if !node.domain.is_empty() {
        return None;
    }
    let product = |turned: bool| LayerAttributes {
        kind: IntegerLayerKind::Product,
        attributes: Attributes::new().with_attribute("transB", Attribute::Int(turned.into())),
        axis: usize::from(!turned),
    };
    let is_matrix = || look.rank(node.input(weights)?).filter(|rank| *rank == 2);
    let (int, float) =
        (|name| node.attributes.get_int(name).ok(), |name| node.attributes.get_float(name).ok());
    match &*node.op {
        "Conv" | "QLinearConv" => {
            let kernel = look.dims(node.input(weights)?)?;
            let attributes = window_attributes(look, node, kernel.get(2..)?.to_vec(), &["group"])?;
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

/// The numbers of a bias, which is a list of constants, or of integers that are scaled.
fn bias_floats(look: &GraphView<'_>, bias: ValueId) -> Option<Vec<f64>> {
    let list = |value: ValueId| {
        let numbers = look.constant(value)?;
        if numbers.dims().len() == 1 { numbers.to_floats().ok() } else { None }
    };
    if let Some(found) = list(bias) {
        return Some(found);
    }
    let node = look.producer_with_op(bias, "DequantizeLinear")?;
    let (integers, scales) = (list(node.input(0)?)?, scale_constants(look, node.input(1)?)?);
    let has_zeros = node.input(2).is_none_or(|zero| {
        zero_point_constants(look, zero, Dtype::I32).is_some_and(|zeros| zeros.iter().all(|zero| *zero == 0))
    });
    if !has_zeros || scales.len() != 1 && scales.len() != integers.len() {
        return None;
    }
    let scale = |index: usize| f64::from(scales[if scales.len() == 1 { 0 } else { index }]);
    Some(integers.into_iter().enumerate().map(|(index, integer)| integer * scale(index)).collect())
}

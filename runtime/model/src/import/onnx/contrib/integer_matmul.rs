//! Integer products and their conversion to floats.

use oarlock_core::{Attributes, Dtype, Result};

use super::contrib_op::ContribOp;
use super::lowering::ContribLowering;
use super::product::multiply_by;
use super::quantized_linear::{dequantize_along, dequantize_input, set_quantized_output};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

pub(super) const INTEGER_MATMUL_OPS: &[ContribOp] = &[
    ContribOp {
        op: "DynamicQuantizeMatMul",
        inputs: "A B b_scale b_zero_point? bias?",
        attributes: "",
        outputs: "Y",
        lower: lower_dynamic_matmul,
    },
    ContribOp {
        op: "MatMulIntegerToFloat",
        inputs: "A B a_scale b_scale a_zero_point? b_zero_point? bias?",
        attributes: "",
        outputs: "Y",
        lower: lower_matmul_to_float,
    },
    ContribOp {
        op: "MatMulInteger16",
        inputs: "A B",
        attributes: "",
        outputs: "Y",
        lower: lower_wide_matmul,
    },
    ContribOp {
        op: "QGemm",
        inputs: "A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point?",
        attributes: "alpha transA transB",
        outputs: "Y",
        lower: lower_quantized_gemm,
    },
];

/// Integer matrices with their zero points and scales.
pub(super) struct IntegerFactors {
    pub(super) values: [ValueId; 2],
    pub(super) zeros: [Option<ValueId>; 2],
    pub(super) scales: [ValueId; 2],
}

/// Adds the product of integer matrices, converted to floats.
pub(super) fn add_integer_product(op: &mut ContribLowering<'_>, factors: &IntegerFactors) -> Result<ValueId> {
    let IntegerFactors { values: [a, b], mut zeros, scales } = *factors;
    zeros[0] = zeros[0].map(|zero| op.reshape_to_scalar(zero));
    let sum = op.add_node("MatMulInteger", &[Some(a), Some(b), zeros[0], zeros[1]], Attributes::new(), 1)[0];
    let sum = op.add_cast(sum, Dtype::F32);
    let [a_scale, b_scale] = scales.map(|scale| op.cast_to_float(scale));
    let a_scale = op.reshape_to_scalar(a_scale);
    let scale = op.add_op("Mul", &[a_scale, b_scale]);
    Ok(op.add_op("Mul", &[sum, scale]))
}

fn set_output_with_bias(op: &mut ContribLowering<'_>, mut made: ValueId, bias: usize) {
    if let Some(bias) = op.optional_input(bias) {
        made = op.add_op("Add", &[made, bias]);
    }
    op.set_output(0, made);
}

fn lower_dynamic_matmul(op: &mut ContribLowering<'_>) -> Result<()> {
    let quantized = op.add_node("DynamicQuantizeLinear", &[Some(op.input(0)?)], Attributes::new(), 3);
    let factors = IntegerFactors {
        values: [quantized[0], op.input(1)?],
        zeros: [Some(quantized[2]), op.optional_input(3)],
        scales: [quantized[1], op.input(2)?],
    };
    let made = add_integer_product(op, &factors)?;
    set_output_with_bias(op, made, 4);
    Ok(())
}

fn lower_matmul_to_float(op: &mut ContribLowering<'_>) -> Result<()> {
    let factors = IntegerFactors {
        values: [op.input(0)?, op.input(1)?],
        zeros: [op.optional_input(4), op.optional_input(5)],
        scales: [op.input(2)?, op.input(3)?],
    };
    let made = add_integer_product(op, &factors)?;
    let made = op.add_cast_like(made, factors.scales[0]);
    set_output_with_bias(op, made, 6);
    Ok(())
}

/// Multiplies 16-bit integers as 32-bit ones.
fn lower_wide_matmul(op: &mut ContribLowering<'_>) -> Result<()> {
    let [a, b] = [op.input(0)?, op.input(1)?].map(|factor| op.add_cast(factor, Dtype::I32));
    let made = op.add_op("MatMul", &[a, b]);
    op.set_output(0, made);
    Ok(())
}

fn lower_quantized_gemm(op: &mut ContribLowering<'_>) -> Result<()> {
    let along = if op.int_attribute("transB", 0)? == 0 { 1 } else { 0 };
    let (alpha, a) = (op.float_attribute("alpha", 1.0)?, dequantize_input(op, 0)?);
    let b = dequantize_along(op, op.input(3)?, op.input(4)?, op.optional_input(5), along)?;
    let mut inputs = vec![Some(a), Some(b)];
    if let Some(bias) = op.optional_input(6) {
        let a_scale = op.reshape_to_scalar(op.input(1)?);
        let scale = op.add_op("Mul", &[a_scale, op.input(4)?]);
        let scale = multiply_by(op, scale, alpha)?;
        // The 32-bit bias may exceed the precision of floats; it is scaled in the way of `DequantizeLinear`.
        let bias = op.add_cast(bias, Dtype::F32);
        inputs.push(Some(op.add_op("Mul", &[bias, scale])));
    }
    let attributes = op.copy_attributes(&["alpha", "transA", "transB"]);
    let made = op.add_node("Gemm", &inputs, attributes, 1)[0];
    match (op.optional_input(7), op.optional_input(8)) {
        (None, None) => op.set_output(0, made),
        (Some(_), Some(zero)) => set_quantized_output(op, made, 7, zero)?,
        _ => return Err(invalid_model("`y_scale` with `y_zero_point`", "one of them")),
    }
    Ok(())
}

impl ContribLowering<'_> {
    fn cast_to_float(&mut self, value: ValueId) -> ValueId {
        if self.dtype(value) == Some(Dtype::F32) { value } else { self.add_cast(value, Dtype::F32) }
    }
}

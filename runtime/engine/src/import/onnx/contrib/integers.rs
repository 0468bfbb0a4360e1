//! Products that are sums of integers, and what becomes of them.

use oarlock_core::{Attributes, Dtype, Result};

use super::linear::{give_quantized, real, real_along};
use super::lowering::Lowering;
use super::product::scaled;
use super::row::Row;
use crate::graph::ValueId;
use crate::import::place::wrong;

pub(super) const OPS: &[Row] = &[
    Row {
        op: "DynamicQuantizeMatMul",
        inputs: "A B b_scale b_zero_point? bias?",
        attributes: "",
        outputs: "Y",
        lower: dynamic,
    },
    Row {
        op: "MatMulIntegerToFloat",
        inputs: "A B a_scale b_scale a_zero_point? b_zero_point? bias?",
        attributes: "",
        outputs: "Y",
        lower: to_float,
    },
    Row { op: "MatMulInteger16", inputs: "A B", attributes: "", outputs: "Y", lower: wide },
    Row {
        op: "QGemm",
        inputs: "A a_scale a_zero_point B b_scale b_zero_point C? y_scale? y_zero_point?",
        attributes: "alpha transA transB",
        outputs: "Y",
        lower: gemm,
    },
];

/// Matrices of integers, each with its zero point.
pub(super) struct Factors {
    pub(super) values: [ValueId; 2],
    pub(super) zeros: [Option<ValueId>; 2],
    pub(super) scales: [ValueId; 2],
}

/// The product of matrices of integers as floats.
pub(super) fn product(op: &mut Lowering<'_>, factors: &Factors) -> Result<ValueId> {
    let Factors { values: [a, b], mut zeros, scales } = *factors;
    zeros[0] = zeros[0].map(|zero| op.scalar(zero));
    let sum = op.of("MatMulInteger", &[Some(a), Some(b), zeros[0], zeros[1]], Attributes::new(), 1)[0];
    let sum = op.cast(sum, Dtype::F32);
    let [a_scale, b_scale] = scales.map(|scale| op.cast_to_float(scale));
    let a_scale = op.scalar(a_scale);
    let scale = op.apply("Mul", &[a_scale, b_scale]);
    Ok(op.apply("Mul", &[sum, scale]))
}

fn give_with_bias(op: &mut Lowering<'_>, mut made: ValueId, bias: usize) {
    if let Some(bias) = op.maybe(bias) {
        made = op.apply("Add", &[made, bias]);
    }
    op.give(0, made);
}

fn dynamic(op: &mut Lowering<'_>) -> Result<()> {
    let quantized = op.of("DynamicQuantizeLinear", &[Some(op.input(0)?)], Attributes::new(), 3);
    let factors = Factors {
        values: [quantized[0], op.input(1)?],
        zeros: [Some(quantized[2]), op.maybe(3)],
        scales: [quantized[1], op.input(2)?],
    };
    let made = product(op, &factors)?;
    give_with_bias(op, made, 4);
    Ok(())
}

fn to_float(op: &mut Lowering<'_>) -> Result<()> {
    let factors = Factors {
        values: [op.input(0)?, op.input(1)?],
        zeros: [op.maybe(4), op.maybe(5)],
        scales: [op.input(2)?, op.input(3)?],
    };
    let made = product(op, &factors)?;
    let made = op.cast_like(made, factors.scales[0]);
    give_with_bias(op, made, 6);
    Ok(())
}

/// Numbers of 16 bits are multiplied as numbers of 32.
fn wide(op: &mut Lowering<'_>) -> Result<()> {
    let [a, b] = [op.input(0)?, op.input(1)?].map(|factor| op.cast(factor, Dtype::I32));
    let made = op.apply("MatMul", &[a, b]);
    op.give(0, made);
    Ok(())
}

fn gemm(op: &mut Lowering<'_>) -> Result<()> {
    let along = if op.int("transB", 0)? == 0 { 1 } else { 0 };
    let (alpha, a) = (op.float("alpha", 1.0)?, real(op, 0)?);
    let b = real_along(op, op.input(3)?, op.input(4)?, op.maybe(5), along)?;
    let mut inputs = vec![Some(a), Some(b)];
    if let Some(bias) = op.maybe(6) {
        let a_scale = op.scalar(op.input(1)?);
        let scale = op.apply("Mul", &[a_scale, op.input(4)?]);
        let scale = scaled(op, scale, alpha)?;
        // Numbers of 32 bits may be more than floats tell apart, so they are scaled as DequantizeLinear does it.
        let bias = op.cast(bias, Dtype::F32);
        inputs.push(Some(op.apply("Mul", &[bias, scale])));
    }
    let attributes = op.copied(&["alpha", "transA", "transB"]);
    let made = op.of("Gemm", &inputs, attributes, 1)[0];
    match (op.maybe(7), op.maybe(8)) {
        (None, None) => op.give(0, made),
        (Some(_), Some(zero)) => give_quantized(op, made, 7, zero)?,
        _ => return Err(wrong("`y_scale` with `y_zero_point`", "one of them")),
    }
    Ok(())
}

impl Lowering<'_> {
    fn cast_to_float(&mut self, value: ValueId) -> ValueId {
        if self.dtype(value) == Some(Dtype::F32) { value } else { self.cast(value, Dtype::F32) }
    }
}

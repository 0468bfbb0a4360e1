//! `RandomUniform`, `RandomNormal`, their `Like` forms and `Bernoulli`: a number for each element, on its own.

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Operand, OperandFlags, Result, dispatch, ensure, family};

use super::philox::Source;
use super::{seed, source};
use crate::device::Cpu;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};

/// Every dtype: of the input only the shape is looked at.
const ANY: DtypeSet = DtypeSet((1 << (Dtype::STRING.0 + 1)) - 2);
const REALS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);
const NUMBERS: DtypeSet = REALS
    .union(family::INTEGRAL)
    .union(DtypeSet::I16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64)
    .union(DtypeSet::BOOL);

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let output = Operand::new(REALS).named("output");
    // Only the shape of the operand matters, so it may be of any dtype and have strides.
    let like = Operand::new(ANY).named("input").flags(OperandFlags::STRIDED);
    let (uniform, normal) =
        (|call: &Call<'_>| Plan::new(call, Shape::UNIFORM), |call: &Call<'_>| Plan::new(call, Shape::NORMAL));
    vec![
        kernel("RandomUniform", uniform, fill).outputs([output]),
        kernel("RandomNormal", normal, fill).outputs([output]),
        kernel("RandomUniformLike", uniform, fill_like).inputs([like]).outputs([output]),
        kernel("RandomNormalLike", normal, fill_like).inputs([like]).outputs([output]),
        kernel("Bernoulli", seed, bernoulli)
            .since(15)
            .inputs([Operand::new(REALS).named("input")])
            .outputs([Operand::new(NUMBERS).named("output")]),
    ]
}

/// A distribution by the names of its two attributes and what they are when left out.
struct Shape {
    is_normal: bool,
    names: [&'static str; 2],
    defaults: [f64; 2],
}

impl Shape {
    const UNIFORM: Self = Self { is_normal: false, names: ["low", "high"], defaults: [0.0, 1.0] };
    const NORMAL: Self = Self { is_normal: true, names: ["mean", "scale"], defaults: [0.0, 1.0] };
}

struct Plan {
    seed: Option<u64>,
    is_normal: bool,
    /// What is added to a number of the unit distribution after it was multiplied.
    start: f64,
    factor: f64,
}

impl Plan {
    fn new(call: &Call<'_>, shape: Shape) -> Result<Self> {
        let start = call.float(shape.names[0])?.unwrap_or(shape.defaults[0]);
        let second = call.float(shape.names[1])?.unwrap_or(shape.defaults[1]);
        let factor = if shape.is_normal { second } else { second - start };
        Ok(Self { seed: seed(call)?, is_normal: shape.is_normal, start, factor })
    }
}

fn fill_like(cpu: &Cpu, plan: &Plan, operands: &Operands<'_, '_>) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", input.dims())?;
    fill(cpu, plan, operands)
}

fn fill(cpu: &Cpu, plan: &Plan, operands: &Operands<'_, '_>) -> Result<()> {
    let output = operands.call().output(0)?;
    let source = source(operands.call(), plan.seed);
    dispatch!(output.dtype(), floating_and_half + bf16, T => {
        let output = operands.write::<T>(0)?;
        let (start, factor) = (<T as Number>::Float::of(plan.start), <T as Number>::Float::of(plan.factor));
        let count = output.len();
        in_parallel(cpu, count, grain(8), Rows::new(output, 1), |begin, part| {
            for (index, element) in part.iter_mut().enumerate() {
                let unit = unit::<T>(source, begin + index, plan.is_normal);
                *element = T::of_float(unit * factor + start);
            }
        });
        Ok(())
    })
}

/// A number of the uniform distribution from 0 to 1, or of the normal one around 0.
fn unit<T: Real>(source: Source, index: usize, is_normal: bool) -> T::Float {
    let uniform = |index| match T::DTYPE {
        Dtype::F64 => source.double(index),
        _ => f64::from(source.single(index)),
    };
    if !is_normal {
        return T::Float::of(uniform(index));
    }
    // A pair of uniform numbers is a random point, of which each coordinate is normal. 1 - u is never 0.
    let (radius, angle) = (1.0 - uniform(index & !1), uniform(index | 1) * std::f64::consts::TAU);
    let radius = (-2.0 * radius.ln()).sqrt();
    T::Float::of(radius * if index.is_multiple_of(2) { angle.cos() } else { angle.sin() })
}

fn bernoulli(cpu: &Cpu, seed: &Option<u64>, operands: &Operands<'_, '_>) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", input.dims())?;
    dispatch!(input.dtype(), floating_and_half + bf16, P => {
        dispatch!(output.dtype(), floating_and_integral + f16 + bf16 + i16 + u16 + u32 + u64 + bool, T => {
            draw::<P, T>(cpu, source(operands.call(), *seed), operands)
        })
    })
}

fn draw<P: Real, T: Number>(cpu: &Cpu, source: Source, operands: &Operands<'_, '_>) -> Result<()> {
    let (probabilities, output) = (operands.read::<P>(0)?, operands.write::<T>(0)?);
    let is_valid = |p: &P| (0.0..=1.0).contains(&p.float().to_f64());
    ensure!(
        probabilities.iter().all(is_valid),
        invalid_argument,
        "expected probabilities from 0 to 1, found others"
    );
    let (zero, one) = (T::of_float(T::Float::of(0.0)), T::of_float(T::Float::of(1.0)));
    let count = output.len();
    in_parallel(cpu, count, grain(8), Rows::new(output, 1), |begin, part| {
        for (index, element) in part.iter_mut().enumerate() {
            let is_hit =
                f64::from(source.single(begin + index)) < probabilities[begin + index].float().to_f64();
            *element = if is_hit { one } else { zero };
        }
    });
    Ok(())
}

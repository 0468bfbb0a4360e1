//! Ops of two and more operands that are repeated to one shape.

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, OperandFlags, Result, dtype_set, ensure};

use super::elementwise::{Work, elementwise, repeated};
use super::row::{
    ALL, FLOATS, INTEGERS, NUMBERS, UNSIGNED, arithmetic, can_compute, check_shape, input, output, plain,
    row, strided,
};
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::source::{Formula, Kind, NAMES, kind};
use crate::view::View;

/// One op: what it computes of `a` and `b`, in floating point and in integers.
struct Binary {
    op: &'static str,
    since: u32,
    dtypes: DtypeSet,
    float: &'static str,
    integer: &'static str,
    /// Whether the result is true or false.
    is_test: bool,
}

const BOOL: DtypeSet = dtype_set(&[Dtype::BOOL]);

macro_rules! binary {
    ($($op:literal $since:literal $dtypes:ident $float:literal $integer:literal $is_test:literal;)*) => {
        &[$(Binary {
            op: $op, since: $since, dtypes: $dtypes, float: $float, integer: $integer, is_test: $is_test,
        }),*]
    };
}

const TABLE: &[Binary] = binary! {
    "Add" 7 NUMBERS "a + b" "WRAP_ADD(a, b)" false;
    "Sub" 7 NUMBERS "a - b" "WRAP_SUB(a, b)" false;
    "Mul" 7 NUMBERS "a * b" "WRAP_MUL(a, b)" false;
    "And" 7 BOOL "" "a && b" true;
    "Or" 7 BOOL "" "a || b" true;
    "Xor" 7 BOOL "" "a != b" true;
    "Equal" 7 ALL "a == b" "a == b" true;
    "Greater" 7 NUMBERS "a > b" "a > b" true;
    "GreaterOrEqual" 12 NUMBERS "a >= b" "a >= b" true;
    "Less" 7 NUMBERS "a < b" "a < b" true;
    "LessOrEqual" 12 NUMBERS "a <= b" "a <= b" true;
    "BitwiseAnd" 18 INTEGERS "" "a & b" false;
    "BitwiseOr" 18 INTEGERS "" "a | b" false;
    "BitwiseXor" 18 INTEGERS "" "a ^ b" false;
};

/// Ops of any number of operands.
const FOLDS: &[(&str, DtypeSet, Formula)] = &[
    ("Max", NUMBERS, Formula::Fold("maximum")),
    ("Min", NUMBERS, Formula::Fold("minimum")),
    ("Sum", FLOATS, Formula::Fold("plus")),
    ("Mean", FLOATS, Formula::Mean),
];

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let table = TABLE.iter().map(|binary| {
        let operand = strided(binary.dtypes).group(1);
        let result = if binary.is_test { plain(BOOL) } else { plain(binary.dtypes).group(1) };
        let kernel = arithmetic(binary.op, |gpus: &Gpus<G>, call| {
            let is_float = kind(input(call, 0)?.dtype) == Kind::Float;
            run(gpus, call, Formula::Plain(if is_float { binary.float } else { binary.integer }))
        })
        .since(binary.since)
        .inputs([operand.named("A"), operand.named("B")])
        .outputs([result.named("C")]);
        if binary.is_test { kernel } else { kernel.in_place(0, 0).in_place(0, 1) }
    });
    let folds = FOLDS.iter().map(|(op, dtypes, formula)| {
        arithmetic(op, |gpus: &Gpus<G>, call| fold(gpus, call, *formula))
            .since(8)
            .supports(|gpus, call| {
                check_count(call)?;
                can_compute(gpus, call)
            })
            .inputs([strided(*dtypes).group(1).flags(OperandFlags::VARIADIC).named("data_0")])
            .outputs([plain(*dtypes).group(1)])
    });
    table.chain(folds).chain(special()).collect()
}

fn special<G: Gpu>() -> [Kernel<Gpus<G>>; 6] {
    let number = |dtypes| strided(dtypes).group(1);
    [
        arithmetic("Div", divide::<G>)
            .since(7)
            .inputs([number(NUMBERS).named("A"), number(NUMBERS).named("B")])
            .outputs([plain(NUMBERS).group(1).named("C")])
            .in_place(0, 0)
            .in_place(0, 1),
        arithmetic("Mod", modulo::<G>)
            .since(10)
            .inputs([number(NUMBERS).named("A"), number(NUMBERS).named("B")])
            .outputs([plain(NUMBERS).group(1).named("C")]),
        arithmetic("Pow", power::<G>)
            .since(7)
            .inputs([number(NUMBERS).named("X"), strided(NUMBERS).named("Y")])
            .outputs([plain(NUMBERS).group(1).named("Z")]),
        arithmetic("BitShift", shift::<G>)
            .since(11)
            .inputs([number(UNSIGNED).named("X"), number(UNSIGNED).named("Y")])
            .outputs([plain(UNSIGNED).group(1).named("Z")]),
        arithmetic("PRelu", prelu::<G>)
            .since(7)
            .inputs([number(NUMBERS).named("X"), number(NUMBERS).named("slope")])
            .outputs([plain(NUMBERS).group(1).named("Y")]),
        // Nothing is computed, so bits are chosen.
        row("Where", choose::<G>)
            .since(9)
            .inputs([strided(BOOL).named("condition"), number(ALL).named("X"), number(ALL).named("Y")])
            .outputs([plain(ALL).group(1).named("output")]),
    ]
}

fn run<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, formula: Formula) -> Result<()> {
    let (a, b, y) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    elementwise(gpus, call, Work::plain(formula, a.dtype), &[&a, &b], &y)
}

/// How many operands there are; a source has names for so many.
fn check_count(call: &Call<'_>) -> Result<usize> {
    let (count, most) = (call.input_count(), NAMES.len());
    ensure!((1..=most).contains(&count), unimplemented, "expected 1 to {most} inputs, found {count}");
    Ok(count)
}

fn fold<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, formula: Formula) -> Result<()> {
    let count = check_count(call)?;
    let inputs: Vec<View> = (0..count).map(|index| input(call, index)).collect::<Result<_>>()?;
    let y = output(call, 0)?;
    elementwise(gpus, call, Work::plain(formula, y.dtype), &inputs.iter().collect::<Vec<_>>(), &y)
}

fn divide<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let is_float = kind(input(call, 0)?.dtype) == Kind::Float;
    run(gpus, call, if is_float { Formula::Plain("a / b") } else { Formula::Division("divide(a, b)") })
}

fn modulo<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let is_float = kind(input(call, 0)?.dtype) == Kind::Float;
    let formula = match (call.int("fmod")?.unwrap_or(0) != 0, is_float) {
        (true, true) => Formula::Plain("fmod(a, b)"),
        (true, false) => Formula::Division("remainder_like_c(a, b)"),
        (false, true) => Formula::Plain("remainder_like_divisor(a, b)"),
        (false, false) => Formula::Division("remainder_like_divisor(a, b)"),
    };
    run(gpus, call, formula)
}

/// The exponent may have a dtype of its own; whole powers of whole numbers are computed exactly.
fn power<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let formula = match (kind(input(call, 0)?.dtype), kind(input(call, 1)?.dtype)) {
        (Kind::Float, _) => "pow(a, (T)b)",
        (_, Kind::Float) => "pow((f32)a, (f32)b)",
        _ => "power(a, (T)b)",
    };
    run(gpus, call, Formula::Plain(formula))
}

fn shift<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let direction = call.string("direction")?;
    let formula = match direction {
        Some("LEFT") => "SHIFT(a, b, <<)",
        Some("RIGHT") => "SHIFT(a, b, >>)",
        _ => {
            let found = direction.unwrap_or("nothing");
            return Err(oarlock_sdk::Error::invalid_argument(format!(
                "expected the `direction` LEFT or RIGHT, found {found}"
            )));
        }
    };
    run(gpus, call, Formula::Plain(formula))
}

/// The slope is repeated to the shape of the input, which the output has.
fn prelu<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, slope, y) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    check_shape(&x.dims, &y)?;
    let formula =
        if kind(x.dtype) == Kind::Float { "a < 0 ? b * a : a" } else { "a < 0 ? WRAP_MUL(a, b) : a" };
    repeated(gpus, call, Work::plain(Formula::Plain(formula), x.dtype), &[&x, &slope], &y)
}

fn choose<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let condition = input(call, 0)?;
    let (x, y, result) = (input(call, 1)?.bits(), input(call, 2)?.bits(), output(call, 0)?.bits());
    let work = Work::plain(Formula::Plain("a ? b : c"), result.dtype);
    elementwise(gpus, call, work, &[&condition, &x, &y], &result)
}

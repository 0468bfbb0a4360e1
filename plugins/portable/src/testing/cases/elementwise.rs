//! Element-wise ops.

use oarlock_sdk::Dtype;

use super::super::operand::is_float;
use super::super::{Data, Machine};
use super::reference::{FLOATS, INTEGERS, zip};

const CLOSE: f64 = 1e-6;
const SHAPE: &[i64] = &[3, 5, 7];

fn numbers() -> impl Iterator<Item = Dtype> {
    FLOATS.into_iter().chain(INTEGERS)
}

fn is_unsigned(dtype: Dtype) -> bool {
    [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64].contains(&dtype)
}

pub(super) fn arithmetic_is_right_for_every_dtype(machine: &Machine) {
    for dtype in numbers() {
        let (a, b) = (Data::sample(dtype, SHAPE, 1), Data::sample(dtype, SHAPE, 4));
        // What is taken away is smaller, so that no dtype wraps around.
        let small = Data::new(dtype, &[], &[1.0]);
        let divided = |a: f64, b: f64| if is_float(dtype) { a / b } else { (a / b).trunc() };
        let both = |function: &dyn Fn(f64, f64) -> f64| {
            zip(SHAPE, (SHAPE, &a.values()), (SHAPE, &b.values()), function)
        };
        let call = |op| machine.op(op, 14).input(&a).input(&b).output(dtype, SHAPE);
        call("Add").gives(CLOSE, &both(&|a, b| a + b));
        call("Div").gives(CLOSE, &both(&divided));
        if dtype != Dtype::I8 {
            call("Mul").gives(CLOSE, &both(&|a, b| a * b));
        }
        let expected: Vec<f64> = a.values().iter().map(|a| a - 1.0).collect();
        machine.op("Sub", 14).input(&a).input(&small).output(dtype, SHAPE).gives(CLOSE, &expected);
    }
}

pub(super) fn operands_are_repeated_and_strided(machine: &Machine) {
    let dims = [4, 3, 5];
    for (a_dims, b_dims) in
        [(&[4, 3, 5][..], &[5][..]), (&[3, 1], &[4, 1, 5]), (&[], &[4, 3, 5]), (&[4, 1, 1], &[1, 3, 5])]
    {
        let (a, b) = (Data::sample(Dtype::F32, a_dims, 0), Data::sample(Dtype::F32, b_dims, 3));
        let expected = zip(&dims, (a_dims, &a.values()), (b_dims, &b.values()), |a, b| a + b);
        machine.op("Add", 14).input(&a).input(&b).output(Dtype::F32, &dims).gives(CLOSE, &expected);
    }
    // A transposed matrix, and every second element of a row.
    let a = Data::sample(Dtype::F32, &[7, 6], 0).strided(&[6, 7], &[1, 6]);
    let b = Data::sample(Dtype::F32, &[14], 2).strided(&[7], &[2]);
    let expected = zip(&[6, 7], (&[6, 7], &a.values()), (&[7], &b.values()), |a, b| a - b);
    machine.op("Sub", 14).input(&a).input(&b).output(Dtype::F32, &[6, 7]).gives(CLOSE, &expected);
    machine
        .op("Neg", 13)
        .input(&a)
        .output(Dtype::F32, &[6, 7])
        .gives(CLOSE, &a.values().iter().map(|a| -a).collect::<Vec<_>>());
}

pub(super) fn comparisons_and_logic_give_truth_values(machine: &Machine) {
    type Test = fn(f64, f64) -> bool;
    let tests: [(&str, Test); 5] = [
        ("Equal", |a, b| a == b),
        ("Greater", |a, b| a > b),
        ("GreaterOrEqual", |a, b| a >= b),
        ("Less", |a, b| a < b),
        ("LessOrEqual", |a, b| a <= b),
    ];
    for dtype in numbers() {
        let (a, b) = (Data::sample(dtype, &[37], 1), Data::sample(dtype, &[37], 24));
        for (op, test) in tests {
            let expected: Vec<f64> =
                a.values().iter().zip(b.values()).map(|(a, b)| test(*a, b).into()).collect();
            machine.op(op, 16).input(&a).input(&b).output(Dtype::BOOL, &[37]).gives(0.0, &expected);
        }
    }
    let (a, b) = (
        Data::new(Dtype::BOOL, &[4], &[0.0, 0.0, 1.0, 1.0]),
        Data::new(Dtype::BOOL, &[4], &[0.0, 1.0, 0.0, 1.0]),
    );
    for (op, expected) in
        [("And", [0.0, 0.0, 0.0, 1.0]), ("Or", [0.0, 1.0, 1.0, 1.0]), ("Xor", [0.0, 1.0, 1.0, 0.0])]
    {
        machine.op(op, 7).input(&a).input(&b).output(Dtype::BOOL, &[4]).gives(0.0, &expected);
    }
    machine.op("Equal", 13).input(&a).input(&b).output(Dtype::BOOL, &[4]).gives(0.0, &[1.0, 0.0, 0.0, 1.0]);
    machine.op("Not", 1).input(&a).output(Dtype::BOOL, &[4]).gives(0.0, &[1.0, 1.0, 0.0, 0.0]);
}

pub(super) fn integers_wrap_around_and_division_by_zero_is_told(machine: &Machine) {
    for (dtype, least, greatest) in [(Dtype::I8, -128.0, 127.0), (Dtype::I32, -2147483648.0, 2147483647.0)] {
        let a = Data::new(dtype, &[4], &[least, greatest, 5.0, -5.0]);
        let b = Data::new(dtype, &[4], &[-1.0, 1.0, 2.0, 2.0]);
        let zeros = Data::new(dtype, &[4], &[1.0, 1.0, 1.0, 0.0]);
        let call = |op, b| machine.op(op, 14).input(&a).input(b).output(dtype, &[4]);
        call("Add", &b).gives(0.0, &[greatest, least, 7.0, -3.0]);
        call("Mod", &b).gives(0.0, &[0.0, 0.0, 1.0, 1.0]);
        call("Div", &zeros).fails_at_values("divisors other than 0");
        call("Mod", &zeros).fails_at_values("divisors other than 0");
        call("Div", &b).gives(0.0, &[least, greatest, 2.0, -2.0]);
        machine.op("Neg", 13).input(&a).output(dtype, &[4]).gives(0.0, &[least, -greatest, -5.0, 5.0]);
        machine.op("Abs", 13).input(&a).output(dtype, &[4]).gives(0.0, &[least, greatest, 5.0, 5.0]);
    }
}

pub(super) fn powers_and_remainders_follow_the_op(machine: &Machine) {
    let a = Data::new(Dtype::I32, &[6], &[7.0, -7.0, 7.0, -7.0, 6.0, 0.0]);
    let b = Data::new(Dtype::I32, &[6], &[3.0, 3.0, -3.0, -3.0, 3.0, 3.0]);
    let whole = || machine.op("Mod", 13).input(&a).input(&b).output(Dtype::I32, &[6]);
    whole().gives(0.0, &[1.0, 2.0, -2.0, -1.0, 0.0, 0.0]);
    whole().int("fmod", 1).gives(0.0, &[1.0, -1.0, 1.0, -1.0, 0.0, 0.0]);
    for dtype in FLOATS {
        let (a, b) = (Data::new(dtype, &[2], &[5.5, -5.5]), Data::new(dtype, &[2], &[2.0, 2.0]));
        let part = || machine.op("Mod", 13).input(&a).input(&b).output(dtype, &[2]);
        part().int("fmod", 1).gives(CLOSE, &[1.5, -1.5]);
        part().gives(CLOSE, &[1.5, 0.5]);
        let base = Data::new(dtype, &[4], &[2.0, 0.5, 3.0, -2.0]);
        let exponent = Data::new(Dtype::I64, &[4], &[3.0, -2.0, 0.0, 3.0]);
        machine
            .op("Pow", 15)
            .input(&base)
            .input(&exponent)
            .output(dtype, &[4])
            .gives(1e-5, &[8.0, 4.0, 1.0, -8.0]);
    }
    let base = Data::new(Dtype::I64, &[5], &[3.0, -1.0, 1.0, 2.0, -1.0]);
    let exponent = Data::new(Dtype::I64, &[5], &[20.0, -3.0, -5.0, -1.0, -4.0]);
    let power = machine.op("Pow", 15).input(&base).input(&exponent).output(Dtype::I64, &[5]);
    power.gives(0.0, &[3486784401.0, -1.0, 1.0, 0.0, 1.0]);
    let exponent = Data::new(Dtype::F32, &[5], &[2.0; 5]);
    let power = machine.op("Pow", 15).input(&base).input(&exponent).output(Dtype::I64, &[5]);
    power.gives(0.0, &[9.0, 1.0, 1.0, 4.0, 1.0]);
}

pub(super) fn bits_are_combined_and_shifted(machine: &Machine) {
    for dtype in INTEGERS {
        let (a, b) = (Data::new(dtype, &[3], &[12.0, 5.0, 127.0]), Data::new(dtype, &[3], &[10.0, 3.0, 1.0]));
        let call = |op| machine.op(op, 18).input(&a).input(&b).output(dtype, &[3]);
        call("BitwiseAnd").gives(0.0, &[8.0, 1.0, 1.0]);
        call("BitwiseOr").gives(0.0, &[14.0, 7.0, 127.0]);
        call("BitwiseXor").gives(0.0, &[6.0, 6.0, 126.0]);
        if is_unsigned(dtype) {
            let far = Data::new(dtype, &[3], &[1.0, 2.0, 200.0]);
            let shift = |way| {
                machine.op("BitShift", 11).input(&a).input(&far).string("direction", way).output(dtype, &[3])
            };
            shift("LEFT").gives(0.0, &[24.0, 20.0, 0.0]);
            shift("RIGHT").gives(0.0, &[6.0, 1.0, 0.0]);
        } else {
            machine.op("BitwiseNot", 18).input(&a).output(dtype, &[3]).gives(0.0, &[-13.0, -6.0, -128.0]);
        }
    }
}

pub(super) fn any_number_of_operands_is_folded(machine: &Machine) {
    for count in [1, 2, 5, 8] {
        for dtype in FLOATS {
            let inputs: Vec<Data> = (0..count).map(|seed| Data::sample(dtype, &[2, 9], seed)).collect();
            let values: Vec<Vec<f64>> = inputs.iter().map(Data::values).collect();
            let fold = |function: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
                (0..18)
                    .map(|at| values.iter().map(|values| values[at]).reduce(function).unwrap_or(0.0))
                    .collect()
            };
            let call = |op| {
                inputs.iter().fold(machine.op(op, 13), super::super::run::Op::input).output(dtype, &[2, 9])
            };
            call("Max").gives(CLOSE, &fold(&f64::max));
            call("Min").gives(CLOSE, &fold(&f64::min));
            let sum = fold(&|a, b| a + b);
            call("Sum").gives(CLOSE, &sum);
            call("Mean").gives(CLOSE, &sum.iter().map(|sum| sum / count as f64).collect::<Vec<_>>());
        }
    }
    for dtype in INTEGERS {
        let (a, b) = (Data::sample(dtype, &[9], 0), Data::sample(dtype, &[9], 3));
        let expected = zip(&[9], (&[9], &a.values()), (&[9], &b.values()), f64::max);
        machine.op("Max", 13).input(&a).input(&b).output(dtype, &[9]).gives(0.0, &expected);
    }
}

pub(super) fn not_a_number_stays_one(machine: &Machine) {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    for dtype in FLOATS {
        let data = Data::new(dtype, &[4], &[nan, infinity, -infinity, 1.0]);
        let one = Data::new(dtype, &[], &[1.0]);
        let test = |op| machine.op(op, 20).input(&data).output(Dtype::BOOL, &[4]);
        test("IsNaN").gives(0.0, &[1.0, 0.0, 0.0, 0.0]);
        test("IsInf").gives(0.0, &[0.0, 1.0, 1.0, 0.0]);
        test("IsInf").int("detect_negative", 0).gives(0.0, &[0.0, 1.0, 0.0, 0.0]);
        test("IsInf").int("detect_positive", 0).gives(0.0, &[0.0, 0.0, 1.0, 0.0]);
        machine.op("Relu", 14).input(&data).output(dtype, &[4]).gives(0.0, &[nan, infinity, 0.0, 1.0]);
        for inputs in [[&data, &one], [&one, &data]] {
            let call = |op| machine.op(op, 13).input(inputs[0]).input(inputs[1]).output(dtype, &[4]);
            call("Max").gives(0.0, &[nan, infinity, 1.0, 1.0]);
            call("Min").gives(0.0, &[nan, 1.0, -infinity, 1.0]);
        }
        machine.op("Sign", 13).input(&data).output(dtype, &[4]).gives(0.0, &[nan, 1.0, -1.0, 1.0]);
        machine
            .op("Identity", 16)
            .input(&data)
            .output(dtype, &[4])
            .gives(0.0, &[nan, infinity, -infinity, 1.0]);
        machine
            .op("Cast", 13)
            .input(&data)
            .output(Dtype::F32, &[4])
            .gives(0.0, &[nan, infinity, -infinity, 1.0]);
    }
}

pub(super) fn casts_cut_to_the_range_of_the_target(machine: &Machine) {
    let all = || numbers().chain([Dtype::BOOL]);
    let is_common = |dtype| [Dtype::F32, Dtype::F16, Dtype::I64].contains(&dtype);
    for from in all() {
        for to in all().filter(|to| is_common(from) || is_common(*to) || from == *to) {
            let data = Data::sample(from, &[31], 5);
            let (least, greatest) = match to {
                to if is_unsigned(to) => (0.0, f64::INFINITY),
                _ => (f64::NEG_INFINITY, f64::INFINITY),
            };
            let cast = |x: f64| match to {
                Dtype::BOOL => f64::from(x != 0.0),
                to if is_float(to) => x,
                _ => x.trunc().clamp(least, greatest),
            };
            if is_unsigned(to) && !is_float(from) && !is_unsigned(from) {
                // Negative integers wrap around, which the casts of the reference do not.
                continue;
            }
            let expected: Vec<f64> = data.values().into_iter().map(cast).collect();
            machine.op("Cast", 19).input(&data).int("to", 1).output(to, &[31]).gives(CLOSE, &expected);
        }
    }
    let wide = Data::new(Dtype::F32, &[4], &[1e20, -1e20, f64::NAN, 300.7]);
    let cast = |to| machine.op("Cast", 13).input(&wide).output(to, &[4]);
    cast(Dtype::I8).gives(0.0, &[127.0, -128.0, 0.0, 127.0]);
    cast(Dtype::U8).gives(0.0, &[255.0, 0.0, 0.0, 255.0]);
    cast(Dtype::I32).gives(0.0, &[2147483647.0, -2147483648.0, 0.0, 300.0]);
    cast(Dtype::I64).gives(0.0, &[i64::MAX as f64, i64::MIN as f64, 0.0, 300.0]);
    cast(Dtype::F16).gives(0.0, &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 300.75]);
    // Halves of the last place go to the even neighbour; the smallest numbers are kept.
    let halves = Data::new(Dtype::F32, &[4], &[1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 6e-8, -6e-8]);
    let expected = [1.0, 1.0 + 2.0 / 1024.0, 2f64.powi(-24), -2f64.powi(-24)];
    machine.op("Cast", 13).input(&halves).output(Dtype::F16, &[4]).gives(0.0, &expected);
    machine
        .op("CastLike", 15)
        .input(&halves)
        .input(&wide)
        .output(Dtype::F32, &[4])
        .gives(CLOSE, &halves.values());
}

pub(super) fn clipping_takes_any_bounds(machine: &Machine) {
    for dtype in numbers() {
        let data = Data::sample(dtype, &[41], 0);
        let (least, greatest) = (Data::new(dtype, &[], &[1.0]), Data::new(dtype, &[], &[2.0]));
        let call = || machine.op("Clip", 13).input(&data);
        let of = |function: &dyn Fn(f64) -> f64| data.values().into_iter().map(function).collect::<Vec<_>>();
        call().input(&least).input(&greatest).output(dtype, &[41]).gives(CLOSE, &of(&|x| x.clamp(1.0, 2.0)));
        call().no_input().input(&greatest).output(dtype, &[41]).gives(CLOSE, &of(&|x| x.min(2.0)));
        call().input(&least).output(dtype, &[41]).gives(CLOSE, &of(&|x| x.max(1.0)));
        call().output(dtype, &[41]).gives(CLOSE, &data.values());
        // Where the bounds contradict each other, the upper one wins.
        call().input(&greatest).input(&least).output(dtype, &[41]).gives(CLOSE, &vec![1.0; 41]);
        if is_float(dtype) {
            let old =
                machine.op("Clip", 6).input(&data).float("min", -1.0).float("max", 0.5).output(dtype, &[41]);
            old.gives(CLOSE, &of(&|x| x.clamp(-1.0, 0.5)));
        }
    }
}

pub(super) fn choosing_keeps_every_bit(machine: &Machine) {
    for dtype in numbers().chain([Dtype::BOOL]) {
        let condition = Data::new(Dtype::BOOL, &[3, 1], &[1.0, 0.0, 1.0]);
        let (x, y) = (Data::sample(dtype, &[4], 2), Data::sample(dtype, &[3, 4], 7));
        let (xs, ys) = (x.values(), y.values());
        let expected: Vec<f64> = (0..12).map(|at| if at / 4 == 1 { ys[at] } else { xs[at % 4] }).collect();
        let call = machine.op("Where", 16).input(&condition).input(&x).input(&y).output(dtype, &[3, 4]);
        call.gives(0.0, &expected);
    }
}

pub(super) fn empty_operands_launch_nothing(machine: &Machine) {
    let (empty, row) = (Data::new(Dtype::F32, &[0, 3], &[]), Data::sample(Dtype::F32, &[3], 0));
    machine.op("Add", 14).input(&empty).input(&row).output(Dtype::F32, &[0, 3]).gives(0.0, &[]);
    machine.op("Exp", 13).input(&empty).output(Dtype::F32, &[0, 3]).gives(0.0, &[]);
    machine.op("Transpose", 13).input(&empty).output(Dtype::F32, &[3, 0]).gives(0.0, &[]);
    machine
        .op("MatMul", 13)
        .input(&empty)
        .input(&Data::sample(Dtype::F32, &[3, 2], 0))
        .output(Dtype::F32, &[0, 2])
        .gives(0.0, &[]);
    // A sum of no products is 0.
    let (left, right) = (Data::new(Dtype::F32, &[2, 0], &[]), Data::new(Dtype::F32, &[0, 2], &[]));
    machine.op("MatMul", 13).input(&left).input(&right).output(Dtype::F32, &[2, 2]).gives(0.0, &[0.0; 4]);
    let nothing = machine.op("Gather", 13).input(&empty).input(&Data::integers(&[0, 1]));
    nothing.output(Dtype::F32, &[2, 3]).fails_at_values("indices that lie inside");
    // Dimensions that no operand with elements could have.
    let vast = Data::new(Dtype::F32, &[0], &[]).strided(&[1 << 40, 0, 1 << 40], &[]);
    machine.op("Neg", 13).input(&vast).output(Dtype::F32, &[0]).fails("expected an output of shape");
    machine.op("ReduceSum", 13).input(&vast).output(Dtype::F32, &[1, 1, 1]).gives(0.0, &[0.0]);
    machine.op("ArgMax", 13).input(&vast).int("axis", 1).output(Dtype::I64, &[0]).fails("expected");
    machine.op("Softmax", 13).input(&empty).output(Dtype::F32, &[0, 3]).gives(0.0, &[]);
}

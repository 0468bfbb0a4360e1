//! Element-wise ops.

use oarlock_sdk::Dtype;

use super::super::test_data::is_float;
use super::super::{PluginMachine, TestData};
use super::reference::{FLOAT_DTYPES, INTEGER_DTYPES, zip_broadcast};

const TOLERANCE: f64 = 1e-6;
const SHAPE: &[i64] = &[3, 5, 7];

fn number_dtypes() -> impl Iterator<Item = Dtype> {
    FLOAT_DTYPES.into_iter().chain(INTEGER_DTYPES)
}

fn is_unsigned(dtype: Dtype) -> bool {
    [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64].contains(&dtype)
}

pub(super) fn arithmetic_is_right_for_every_dtype(machine: &PluginMachine) {
    for dtype in number_dtypes() {
        let (a, b) = (TestData::sample_elements(dtype, SHAPE, 1), TestData::sample_elements(dtype, SHAPE, 4));
        // Subtract less than the minuend, so unsigned dtypes do not wrap around.
        let small = TestData::new(dtype, &[], &[1.0]);
        let divided = |a: f64, b: f64| if is_float(dtype) { a / b } else { (a / b).trunc() };
        let both = |function: &dyn Fn(f64, f64) -> f64| {
            zip_broadcast(SHAPE, (SHAPE, &a.to_values()), (SHAPE, &b.to_values()), function)
        };
        let call = |op| machine.op_trial(op, 14).with_input(&a).with_input(&b).with_output(dtype, SHAPE);
        call("Add").expect_output(TOLERANCE, &both(&|a, b| a + b));
        call("Div").expect_output(TOLERANCE, &both(&divided));
        // Products of the samples exceed `i8`, and the reference does not wrap around.
        if dtype != Dtype::I8 {
            call("Mul").expect_output(TOLERANCE, &both(&|a, b| a * b));
        }
        let expected: Vec<f64> = a.to_values().iter().map(|a| a - 1.0).collect();
        machine
            .op_trial("Sub", 14)
            .with_input(&a)
            .with_input(&small)
            .with_output(dtype, SHAPE)
            .expect_output(TOLERANCE, &expected);
    }
}

pub(super) fn operands_are_repeated_and_strided(machine: &PluginMachine) {
    let dims = [4, 3, 5];
    for (a_dims, b_dims) in
        [(&[4, 3, 5][..], &[5][..]), (&[3, 1], &[4, 1, 5]), (&[], &[4, 3, 5]), (&[4, 1, 1], &[1, 3, 5])]
    {
        let (a, b) = (
            TestData::sample_elements(Dtype::F32, a_dims, 0),
            TestData::sample_elements(Dtype::F32, b_dims, 3),
        );
        let expected = zip_broadcast(&dims, (a_dims, &a.to_values()), (b_dims, &b.to_values()), |a, b| a + b);
        machine
            .op_trial("Add", 14)
            .with_input(&a)
            .with_input(&b)
            .with_output(Dtype::F32, &dims)
            .expect_output(TOLERANCE, &expected);
    }
    // A transposed matrix, and every second element of a row.
    let a = TestData::sample_elements(Dtype::F32, &[7, 6], 0).with_strides(&[6, 7], &[1, 6]);
    let b = TestData::sample_elements(Dtype::F32, &[14], 2).with_strides(&[7], &[2]);
    let expected = zip_broadcast(&[6, 7], (&[6, 7], &a.to_values()), (&[7], &b.to_values()), |a, b| a - b);
    machine
        .op_trial("Sub", 14)
        .with_input(&a)
        .with_input(&b)
        .with_output(Dtype::F32, &[6, 7])
        .expect_output(TOLERANCE, &expected);
    machine
        .op_trial("Neg", 13)
        .with_input(&a)
        .with_output(Dtype::F32, &[6, 7])
        .expect_output(TOLERANCE, &a.to_values().iter().map(|a| -a).collect::<Vec<_>>());
}

pub(super) fn comparisons_and_logic_give_truth_values(machine: &PluginMachine) {
    type Test = fn(f64, f64) -> bool;
    let tests: [(&str, Test); 5] = [
        ("Equal", |a, b| a == b),
        ("Greater", |a, b| a > b),
        ("GreaterOrEqual", |a, b| a >= b),
        ("Less", |a, b| a < b),
        ("LessOrEqual", |a, b| a <= b),
    ];
    for dtype in number_dtypes() {
        let (a, others) =
            (TestData::sample_elements(dtype, &[37], 1), TestData::sample_elements(dtype, &[37], 3));
        // Every third pair is equal; the others are in both orders.
        let pairs = a.to_values().into_iter().zip(others.to_values()).enumerate();
        let values: Vec<f64> =
            pairs.map(|(index, (a, other))| if index % 3 == 0 { a } else { other }).collect();
        let b = TestData::new(dtype, &[37], &values);
        for (op, test) in tests {
            let expected: Vec<f64> =
                a.to_values().iter().zip(b.to_values()).map(|(a, b)| test(*a, b).into()).collect();
            machine
                .op_trial(op, 16)
                .with_input(&a)
                .with_input(&b)
                .with_output(Dtype::BOOL, &[37])
                .expect_output(0.0, &expected);
        }
    }
    let (a, b) = (
        TestData::new(Dtype::BOOL, &[4], &[0.0, 0.0, 1.0, 1.0]),
        TestData::new(Dtype::BOOL, &[4], &[0.0, 1.0, 0.0, 1.0]),
    );
    for (op, expected) in
        [("And", [0.0, 0.0, 0.0, 1.0]), ("Or", [0.0, 1.0, 1.0, 1.0]), ("Xor", [0.0, 1.0, 1.0, 0.0])]
    {
        machine
            .op_trial(op, 7)
            .with_input(&a)
            .with_input(&b)
            .with_output(Dtype::BOOL, &[4])
            .expect_output(0.0, &expected);
    }
    machine
        .op_trial("Equal", 13)
        .with_input(&a)
        .with_input(&b)
        .with_output(Dtype::BOOL, &[4])
        .expect_output(0.0, &[1.0, 0.0, 0.0, 1.0]);
    machine
        .op_trial("Not", 1)
        .with_input(&a)
        .with_output(Dtype::BOOL, &[4])
        .expect_output(0.0, &[1.0, 1.0, 0.0, 0.0]);
}

pub(super) fn integers_wrap_around_and_division_by_zero_is_told(machine: &PluginMachine) {
    for (dtype, least, greatest) in [(Dtype::I8, -128.0, 127.0), (Dtype::I32, -2147483648.0, 2147483647.0)] {
        let a = TestData::new(dtype, &[4], &[least, greatest, 5.0, -5.0]);
        let b = TestData::new(dtype, &[4], &[-1.0, 1.0, 2.0, 2.0]);
        let zeros = TestData::new(dtype, &[4], &[1.0, 1.0, 1.0, 0.0]);
        let call = |op, b| machine.op_trial(op, 14).with_input(&a).with_input(b).with_output(dtype, &[4]);
        call("Add", &b).expect_output(0.0, &[greatest, least, 7.0, -3.0]);
        call("Mod", &b).expect_output(0.0, &[0.0, 0.0, 1.0, 1.0]);
        call("Div", &zeros).expect_value_fault("divisors other than 0");
        call("Mod", &zeros).expect_value_fault("divisors other than 0");
        call("Div", &b).expect_output(0.0, &[least, greatest, 2.0, -2.0]);
        machine
            .op_trial("Neg", 13)
            .with_input(&a)
            .with_output(dtype, &[4])
            .expect_output(0.0, &[least, -greatest, -5.0, 5.0]);
        machine
            .op_trial("Abs", 13)
            .with_input(&a)
            .with_output(dtype, &[4])
            .expect_output(0.0, &[least, greatest, 5.0, 5.0]);
    }
}

pub(super) fn short_integers_wrap_around_in_products(machine: &PluginMachine) {
    // 65535 squared exceeds an `int`, to which C widens these.
    for (dtype, factor, product) in [(Dtype::U16, 65535.0, 1.0), (Dtype::I16, -32767.0, 1.0)] {
        let a = TestData::new(dtype, &[2], &[factor, 3.0]);
        let call = machine.op_trial("Mul", 14).with_input(&a).with_input(&a).with_output(dtype, &[2]);
        call.expect_output(0.0, &[product, 9.0]);
    }
}

pub(super) fn powers_and_remainders_follow_the_op(machine: &PluginMachine) {
    let a = TestData::new(Dtype::I32, &[6], &[7.0, -7.0, 7.0, -7.0, 6.0, 0.0]);
    let b = TestData::new(Dtype::I32, &[6], &[3.0, 3.0, -3.0, -3.0, 3.0, 3.0]);
    let whole = || machine.op_trial("Mod", 13).with_input(&a).with_input(&b).with_output(Dtype::I32, &[6]);
    whole().expect_output(0.0, &[1.0, 2.0, -2.0, -1.0, 0.0, 0.0]);
    whole().int("fmod", 1).expect_output(0.0, &[1.0, -1.0, 1.0, -1.0, 0.0, 0.0]);
    for dtype in FLOAT_DTYPES {
        let (a, b) = (TestData::new(dtype, &[2], &[5.5, -5.5]), TestData::new(dtype, &[2], &[2.0, 2.0]));
        let part = || machine.op_trial("Mod", 13).with_input(&a).with_input(&b).with_output(dtype, &[2]);
        part().int("fmod", 1).expect_output(TOLERANCE, &[1.5, -1.5]);
        part().expect_output(TOLERANCE, &[1.5, 0.5]);
        let base = TestData::new(dtype, &[4], &[2.0, 0.5, 3.0, -2.0]);
        let exponent = TestData::new(Dtype::I64, &[4], &[3.0, -2.0, 0.0, 3.0]);
        machine
            .op_trial("Pow", 15)
            .with_input(&base)
            .with_input(&exponent)
            .with_output(dtype, &[4])
            .expect_output(1e-5, &[8.0, 4.0, 1.0, -8.0]);
    }
    let base = TestData::new(Dtype::I64, &[5], &[3.0, -1.0, 1.0, 2.0, -1.0]);
    let exponent = TestData::new(Dtype::I64, &[5], &[20.0, -3.0, -5.0, -1.0, -4.0]);
    let power =
        machine.op_trial("Pow", 15).with_input(&base).with_input(&exponent).with_output(Dtype::I64, &[5]);
    power.expect_output(0.0, &[3486784401.0, -1.0, 1.0, 0.0, 1.0]);
    let exponent = TestData::new(Dtype::F32, &[5], &[2.0; 5]);
    let power =
        machine.op_trial("Pow", 15).with_input(&base).with_input(&exponent).with_output(Dtype::I64, &[5]);
    power.expect_output(0.0, &[9.0, 1.0, 1.0, 4.0, 1.0]);
}

pub(super) fn bits_are_combined_and_shifted(machine: &PluginMachine) {
    for dtype in INTEGER_DTYPES {
        let (a, b) =
            (TestData::new(dtype, &[3], &[12.0, 5.0, 127.0]), TestData::new(dtype, &[3], &[10.0, 3.0, 1.0]));
        let call = |op| machine.op_trial(op, 18).with_input(&a).with_input(&b).with_output(dtype, &[3]);
        call("BitwiseAnd").expect_output(0.0, &[8.0, 1.0, 1.0]);
        call("BitwiseOr").expect_output(0.0, &[14.0, 7.0, 127.0]);
        call("BitwiseXor").expect_output(0.0, &[6.0, 6.0, 126.0]);
        if is_unsigned(dtype) {
            let far = TestData::new(dtype, &[3], &[1.0, 2.0, 200.0]);
            let shift = |way| {
                machine
                    .op_trial("BitShift", 11)
                    .with_input(&a)
                    .with_input(&far)
                    .string("direction", way)
                    .with_output(dtype, &[3])
            };
            shift("LEFT").expect_output(0.0, &[24.0, 20.0, 0.0]);
            shift("RIGHT").expect_output(0.0, &[6.0, 1.0, 0.0]);
        } else {
            machine
                .op_trial("BitwiseNot", 18)
                .with_input(&a)
                .with_output(dtype, &[3])
                .expect_output(0.0, &[-13.0, -6.0, -128.0]);
        }
    }
}

pub(super) fn any_number_of_operands_is_folded(machine: &PluginMachine) {
    for count in [1, 2, 5, 8] {
        for dtype in FLOAT_DTYPES {
            let inputs: Vec<TestData> =
                (0..count).map(|seed| TestData::sample_elements(dtype, &[2, 9], seed)).collect();
            let values: Vec<Vec<f64>> = inputs.iter().map(TestData::to_values).collect();
            let fold = |function: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
                (0..18)
                    .map(|at| values.iter().map(|values| values[at]).reduce(function).unwrap_or(0.0))
                    .collect()
            };
            let call = |op| {
                inputs
                    .iter()
                    .fold(machine.op_trial(op, 13), super::super::op_trial::OpTrial::with_input)
                    .with_output(dtype, &[2, 9])
            };
            call("Max").expect_output(TOLERANCE, &fold(&f64::max));
            call("Min").expect_output(TOLERANCE, &fold(&f64::min));
            let sum = fold(&|a, b| a + b);
            call("Sum").expect_output(TOLERANCE, &sum);
            call("Mean")
                .expect_output(TOLERANCE, &sum.iter().map(|sum| sum / count as f64).collect::<Vec<_>>());
        }
    }
    for dtype in INTEGER_DTYPES {
        let (a, b) = (TestData::sample_elements(dtype, &[9], 0), TestData::sample_elements(dtype, &[9], 3));
        let expected = zip_broadcast(&[9], (&[9], &a.to_values()), (&[9], &b.to_values()), f64::max);
        machine
            .op_trial("Max", 13)
            .with_input(&a)
            .with_input(&b)
            .with_output(dtype, &[9])
            .expect_output(0.0, &expected);
    }
}

pub(super) fn not_a_number_stays_one(machine: &PluginMachine) {
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    for dtype in FLOAT_DTYPES {
        let data = TestData::new(dtype, &[4], &[nan, infinity, -infinity, 1.0]);
        let one = TestData::new(dtype, &[], &[1.0]);
        let test = |op| machine.op_trial(op, 20).with_input(&data).with_output(Dtype::BOOL, &[4]);
        test("IsNaN").expect_output(0.0, &[1.0, 0.0, 0.0, 0.0]);
        test("IsInf").expect_output(0.0, &[0.0, 1.0, 1.0, 0.0]);
        test("IsInf").int("detect_negative", 0).expect_output(0.0, &[0.0, 1.0, 0.0, 0.0]);
        test("IsInf").int("detect_positive", 0).expect_output(0.0, &[0.0, 0.0, 1.0, 0.0]);
        machine
            .op_trial("Relu", 14)
            .with_input(&data)
            .with_output(dtype, &[4])
            .expect_output(0.0, &[nan, infinity, 0.0, 1.0]);
        // NaN must survive on either side, which `fmax` of C would not ensure.
        for inputs in [[&data, &one], [&one, &data]] {
            let call = |op| {
                machine.op_trial(op, 13).with_input(inputs[0]).with_input(inputs[1]).with_output(dtype, &[4])
            };
            call("Max").expect_output(0.0, &[nan, infinity, 1.0, 1.0]);
            call("Min").expect_output(0.0, &[nan, 1.0, -infinity, 1.0]);
        }
        machine
            .op_trial("Sign", 13)
            .with_input(&data)
            .with_output(dtype, &[4])
            .expect_output(0.0, &[nan, 1.0, -1.0, 1.0]);
        machine
            .op_trial("Identity", 16)
            .with_input(&data)
            .with_output(dtype, &[4])
            .expect_output(0.0, &[nan, infinity, -infinity, 1.0]);
        machine
            .op_trial("Cast", 13)
            .with_input(&data)
            .with_output(Dtype::F32, &[4])
            .expect_output(0.0, &[nan, infinity, -infinity, 1.0]);
    }
}

pub(super) fn casts_cut_to_the_range_of_the_target(machine: &PluginMachine) {
    let all = || number_dtypes().chain([Dtype::BOOL]);
    let is_common = |dtype| [Dtype::F32, Dtype::F16, Dtype::I64].contains(&dtype);
    for from in all() {
        for to in all().filter(|to| is_common(from) || is_common(*to) || from == *to) {
            let data = TestData::sample_elements(from, &[31], 5);
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
                // Negative integers wrap around here, unlike the saturating casts of the reference.
                continue;
            }
            let expected: Vec<f64> = data.to_values().into_iter().map(cast).collect();
            machine
                .op_trial("Cast", 19)
                .with_input(&data)
                .int("to", 1)
                .with_output(to, &[31])
                .expect_output(TOLERANCE, &expected);
        }
    }
    let wide = TestData::new(Dtype::F32, &[4], &[1e20, -1e20, f64::NAN, 300.7]);
    let cast = |to| machine.op_trial("Cast", 13).with_input(&wide).with_output(to, &[4]);
    cast(Dtype::I8).expect_output(0.0, &[127.0, -128.0, 0.0, 127.0]);
    cast(Dtype::U8).expect_output(0.0, &[255.0, 0.0, 0.0, 255.0]);
    cast(Dtype::I32).expect_output(0.0, &[2147483647.0, -2147483648.0, 0.0, 300.0]);
    cast(Dtype::I64).expect_output(0.0, &[i64::MAX as f64, i64::MIN as f64, 0.0, 300.0]);
    cast(Dtype::F16).expect_output(0.0, &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 300.75]);
    // Ties in the last place round to even; subnormals survive.
    let halves = TestData::new(Dtype::F32, &[4], &[1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 6e-8, -6e-8]);
    let expected = [1.0, 1.0 + 2.0 / 1024.0, 2f64.powi(-24), -2f64.powi(-24)];
    machine
        .op_trial("Cast", 13)
        .with_input(&halves)
        .with_output(Dtype::F16, &[4])
        .expect_output(0.0, &expected);
    machine
        .op_trial("CastLike", 15)
        .with_input(&halves)
        .with_input(&wide)
        .with_output(Dtype::F32, &[4])
        .expect_output(TOLERANCE, &halves.to_values());
}

pub(super) fn clipping_takes_any_bounds(machine: &PluginMachine) {
    for dtype in number_dtypes() {
        let data = TestData::sample_elements(dtype, &[41], 0);
        let (least, greatest) = (TestData::new(dtype, &[], &[1.0]), TestData::new(dtype, &[], &[2.0]));
        let call = || machine.op_trial("Clip", 13).with_input(&data);
        let of =
            |function: &dyn Fn(f64) -> f64| data.to_values().into_iter().map(function).collect::<Vec<_>>();
        call()
            .with_input(&least)
            .with_input(&greatest)
            .with_output(dtype, &[41])
            .expect_output(TOLERANCE, &of(&|x| x.clamp(1.0, 2.0)));
        call()
            .without_input()
            .with_input(&greatest)
            .with_output(dtype, &[41])
            .expect_output(TOLERANCE, &of(&|x| x.min(2.0)));
        call().with_input(&least).with_output(dtype, &[41]).expect_output(TOLERANCE, &of(&|x| x.max(1.0)));
        call().with_output(dtype, &[41]).expect_output(TOLERANCE, &data.to_values());
        // With contradictory bounds the upper one wins.
        call()
            .with_input(&greatest)
            .with_input(&least)
            .with_output(dtype, &[41])
            .expect_output(TOLERANCE, &vec![1.0; 41]);
        if is_float(dtype) {
            let old = machine
                .op_trial("Clip", 6)
                .with_input(&data)
                .float("min", -1.0)
                .float("max", 0.5)
                .with_output(dtype, &[41]);
            old.expect_output(TOLERANCE, &of(&|x| x.clamp(-1.0, 0.5)));
        }
    }
}

pub(super) fn choosing_keeps_every_bit(machine: &PluginMachine) {
    for dtype in number_dtypes().chain([Dtype::BOOL]) {
        let condition = TestData::new(Dtype::BOOL, &[3, 1], &[1.0, 0.0, 1.0]);
        let (x, y) =
            (TestData::sample_elements(dtype, &[4], 2), TestData::sample_elements(dtype, &[3, 4], 7));
        let (xs, ys) = (x.to_values(), y.to_values());
        let expected: Vec<f64> = (0..12).map(|at| if at / 4 == 1 { ys[at] } else { xs[at % 4] }).collect();
        let call = machine
            .op_trial("Where", 16)
            .with_input(&condition)
            .with_input(&x)
            .with_input(&y)
            .with_output(dtype, &[3, 4]);
        call.expect_output(0.0, &expected);
    }
}

pub(super) fn empty_operands_launch_nothing(machine: &PluginMachine) {
    let (empty, row) =
        (TestData::new(Dtype::F32, &[0, 3], &[]), TestData::sample_elements(Dtype::F32, &[3], 0));
    machine
        .op_trial("Add", 14)
        .with_input(&empty)
        .with_input(&row)
        .with_output(Dtype::F32, &[0, 3])
        .expect_output(0.0, &[]);
    machine.op_trial("Exp", 13).with_input(&empty).with_output(Dtype::F32, &[0, 3]).expect_output(0.0, &[]);
    machine
        .op_trial("Transpose", 13)
        .with_input(&empty)
        .with_output(Dtype::F32, &[3, 0])
        .expect_output(0.0, &[]);
    machine
        .op_trial("MatMul", 13)
        .with_input(&empty)
        .with_input(&TestData::sample_elements(Dtype::F32, &[3, 2], 0))
        .with_output(Dtype::F32, &[0, 2])
        .expect_output(0.0, &[]);
    // An empty sum is 0.
    let (left, right) = (TestData::new(Dtype::F32, &[2, 0], &[]), TestData::new(Dtype::F32, &[0, 2], &[]));
    machine
        .op_trial("MatMul", 13)
        .with_input(&left)
        .with_input(&right)
        .with_output(Dtype::F32, &[2, 2])
        .expect_output(0.0, &[0.0; 4]);
    let nothing =
        machine.op_trial("Gather", 13).with_input(&empty).with_input(&TestData::from_integers(&[0, 1]));
    nothing.with_output(Dtype::F32, &[2, 3]).expect_value_fault("indices that lie inside");
    // Dimensions whose product overflows, which only an empty operand can have.
    let vast = TestData::new(Dtype::F32, &[0], &[]).with_strides(&[1 << 40, 0, 1 << 40], &[]);
    machine
        .op_trial("Neg", 13)
        .with_input(&vast)
        .with_output(Dtype::F32, &[0])
        .expect_failure("expected an output of shape");
    machine
        .op_trial("ReduceSum", 13)
        .with_input(&vast)
        .with_output(Dtype::F32, &[1, 1, 1])
        .expect_output(0.0, &[0.0]);
    machine
        .op_trial("ArgMax", 13)
        .with_input(&vast)
        .int("axis", 1)
        .with_output(Dtype::I64, &[0])
        .expect_failure("expected");
    machine
        .op_trial("Softmax", 13)
        .with_input(&empty)
        .with_output(Dtype::F32, &[0, 3])
        .expect_output(0.0, &[]);
}

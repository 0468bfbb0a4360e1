//! Unary functions.

use oarlock_sdk::Dtype;

use super::super::{PluginMachine, TestData};
use super::reference::{FLOAT_DTYPES, erf, zip_broadcast};

const TOLERANCE: f64 = 1e-6;

pub(super) fn functions_of_one_operand_are_right(machine: &PluginMachine) {
    type Function = fn(f64) -> f64;
    let functions: [(&str, u32, Function); 28] = [
        ("Abs", 13, f64::abs),
        ("Acos", 22, f64::acos),
        ("Acosh", 22, f64::acosh),
        ("Asin", 22, f64::asin),
        ("Asinh", 22, f64::asinh),
        ("Atan", 22, f64::atan),
        ("Atanh", 22, f64::atanh),
        ("Ceil", 13, f64::ceil),
        ("Cos", 22, f64::cos),
        ("Cosh", 22, f64::cosh),
        ("Erf", 13, erf),
        ("Exp", 13, f64::exp),
        ("Floor", 13, f64::floor),
        ("HardSwish", 22, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        ("Log", 13, f64::ln),
        ("Mish", 22, |x| x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh()),
        ("Neg", 13, |x| -x),
        ("Reciprocal", 13, f64::recip),
        ("Relu", 14, |x| x.max(0.0)),
        ("Round", 22, f64::round_ties_even),
        ("Sigmoid", 13, |x| 1.0 / (1.0 + (-x).exp())),
        ("Sign", 13, f64::signum),
        ("Sin", 22, f64::sin),
        ("Sinh", 22, f64::sinh),
        ("Softplus", 22, |x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
        ("Softsign", 22, |x| x / (1.0 + x.abs())),
        ("Tan", 22, f64::tan),
        ("Tanh", 13, f64::tanh),
    ];
    for dtype in FLOAT_DTYPES {
        // Loads and stores are the same for every function, so every third is enough for the narrow floats.
        let step = if [Dtype::F16, Dtype::BF16].contains(&dtype) { 3 } else { 1 };
        for (op, version, function) in functions.into_iter().step_by(step) {
            // Keep operands inside each function's domain.
            let adapt: Function = match op {
                "Acos" | "Asin" | "Atanh" => |x| x / 4.0,
                "Acosh" => |x| x.abs() + 1.0,
                "Log" => f64::abs,
                _ => |x| x,
            };
            let plain = TestData::sample_elements(dtype, &[61], 2);
            let adapted: Vec<f64> = plain.to_values().into_iter().map(adapt).collect();
            let data = TestData::new(dtype, &[61], &adapted);
            let expected: Vec<f64> = data.to_values().into_iter().map(function).collect();
            // Devices round transcendental functions differently in the last digits, so `f32` needs room.
            let tolerance = if dtype == Dtype::F64 { 1e-12 } else { 2e-6 };
            machine
                .op_trial(op, version)
                .with_input(&data)
                .with_output(dtype, &[61])
                .expect_output(tolerance, &expected);
        }
        let squares = TestData::new(dtype, &[4], &[0.0, 0.25, 4.0, 9.0]);
        machine
            .op_trial("Sqrt", 13)
            .with_input(&squares)
            .with_output(dtype, &[4])
            .expect_output(TOLERANCE, &[0.0, 0.5, 2.0, 3.0]);
    }
    for dtype in [Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64] {
        let data = TestData::sample_elements(dtype, &[29], 1);
        let call = |op, version| machine.op_trial(op, version).with_input(&data).with_output(dtype, &[29]);
        let of = |function: Function| data.to_values().into_iter().map(function).collect::<Vec<f64>>();
        call("Sign", 13).expect_output(0.0, &of(f64::signum));
        call("Relu", 14).expect_output(0.0, &of(|x| x.max(0.0)));
        call("Abs", 13).expect_output(0.0, &of(f64::abs));
    }
}

pub(super) fn functions_with_attributes_are_right(machine: &PluginMachine) {
    for dtype in FLOAT_DTYPES {
        let data = TestData::sample_elements(dtype, &[47], 3);
        let tolerance = if dtype == Dtype::F64 { 1e-7 } else { 2e-6 };
        let check = |op, version, attributes: &[(&'static str, f64)], function: &dyn Fn(f64) -> f64| {
            let call = machine.op_trial(op, version).with_input(&data).with_output(dtype, &[47]);
            let call = attributes.iter().fold(call, |call, (name, value)| call.float(name, *value));
            call.expect_output(tolerance, &data.to_values().into_iter().map(function).collect::<Vec<_>>());
        };
        check("LeakyRelu", 16, &[], &|x| if x < 0.0 { 0.01 * x } else { x });
        check("LeakyRelu", 16, &[("alpha", 0.25)], &|x| if x < 0.0 { 0.25 * x } else { x });
        check("Elu", 22, &[("alpha", 2.0)], &|x| if x < 0.0 { 2.0 * x.exp_m1() } else { x });
        check("Celu", 12, &[("alpha", 2.0)], &|x| if x < 0.0 { 2.0 * (x / 2.0).exp_m1() } else { x });
        check("Selu", 22, &[], &|x| {
            1.050_700_987_355_480_5 * if x < 0.0 { 1.673_263_242_354_377_2 * x.exp_m1() } else { x }
        });
        check("HardSigmoid", 22, &[("alpha", 0.5)], &|x| (0.5 * x + 0.5).clamp(0.0, 1.0));
        check("ThresholdedRelu", 22, &[("alpha", 0.5)], &|x| if x > 0.5 { x } else { 0.0 });
        check("Shrink", 9, &[("lambd", 1.5), ("bias", 1.0)], &|x| {
            if x < -1.5 {
                x + 1.0
            } else if x > 1.5 {
                x - 1.0
            } else {
                0.0
            }
        });
        check("Swish", 24, &[("alpha", 0.5)], &|x| x / (1.0 + (-0.5 * x).exp()));
        check("Gelu", 20, &[], &|x| 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)));
        let expected: Vec<f64> = data
            .to_values()
            .into_iter()
            .map(|x| {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
            })
            .collect();
        let tanh = machine
            .op_trial("Gelu", 20)
            .with_input(&data)
            .string("approximate", "tanh")
            .with_output(dtype, &[47]);
        tanh.expect_output(tolerance, &expected);
        // A slope per channel: it repeats along the dimension behind it.
        let slope = TestData::sample_elements(dtype, &[5, 1], 9);
        let image = TestData::sample_elements(dtype, &[2, 5, 3], 0);
        let expected = zip_broadcast(
            &[2, 5, 3],
            (&[2, 5, 3], &image.to_values()),
            (&[5, 1], &slope.to_values()),
            |x, slope| {
                if x < 0.0 { slope * x } else { x }
            },
        );
        machine
            .op_trial("PRelu", 16)
            .with_input(&image)
            .with_input(&slope)
            .with_output(dtype, &[2, 5, 3])
            .expect_output(TOLERANCE, &expected);
    }
}

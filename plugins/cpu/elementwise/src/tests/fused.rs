//! The fused op has the bits of the ops that it consists of.

use super::*;

/// A step: what the fused op calls it, the op of ONNX with its version, and the attributes that are scalars behind its operands.
struct StepCase {
    step: &'static str,
    op: &'static str,
    version: u32,
    operands: usize,
    attributes: &'static [(&'static str, f64)],
}

const fn step_case(name: &'static str, version: u32, operands: usize) -> StepCase {
    StepCase { step: name, op: name, version, operands, attributes: &[] }
}

const fn step_with(name: &'static str, version: u32, attributes: &'static [(&'static str, f64)]) -> StepCase {
    StepCase { step: name, op: name, version, operands: 1, attributes }
}

const ARITHMETIC: &[StepCase] = &[
    step_case("Add", 14, 2),
    step_case("Sub", 14, 2),
    step_case("Mul", 14, 2),
    step_case("Div", 14, 2),
    step_case("Max", 13, 2),
    step_case("Min", 13, 2),
    step_case("Neg", 13, 1),
    step_case("Abs", 13, 1),
    step_case("Relu", 14, 1),
    step_case("Reciprocal", 13, 1),
    step_with("Clip", 6, &[("min", -0.5), ("max", 2.0)]),
];

const FUNCTIONS: &[StepCase] = &[
    step_case("Ceil", 13, 1),
    step_case("Floor", 13, 1),
    step_case("Round", 11, 1),
    step_case("Sqrt", 13, 1),
    step_case("Exp", 13, 1),
    step_case("Log", 13, 1),
    step_case("Asin", 7, 1),
    step_case("Acos", 7, 1),
    step_case("Atan", 7, 1),
    step_case("Sinh", 9, 1),
    step_case("Cosh", 9, 1),
    step_case("Tanh", 13, 1),
    step_case("Asinh", 9, 1),
    step_case("Acosh", 9, 1),
    step_case("Atanh", 9, 1),
    step_case("Erf", 13, 1),
    step_case("Sign", 13, 1),
    step_case("PRelu", 16, 2),
    step_case("Sigmoid", 13, 1),
    step_case("Softplus", 1, 1),
    step_case("Softsign", 1, 1),
    step_case("Gelu", 20, 1),
    step_case("HardSwish", 14, 1),
    step_case("Mish", 18, 1),
    step_with("HardSigmoid", 6, &[("alpha", 0.25), ("beta", 0.5)]),
    step_with("LeakyRelu", 16, &[("alpha", 0.125)]),
    step_with("Elu", 6, &[("alpha", 0.75)]),
    step_with("Celu", 12, &[("alpha", 1.5)]),
    step_with("Selu", 6, &[("alpha", 1.5), ("gamma", 1.25)]),
    step_with("Swish", 24, &[("alpha", 0.5)]),
    step_with("ThresholdedRelu", 10, &[("alpha", 0.25)]),
];

/// Functions whose huge arguments are computed apart, together with their neighbors.
const ANGLES: &[StepCase] = &[step_case("Sin", 7, 1), step_case("Cos", 7, 1), step_case("Tan", 7, 1)];

const MASKS: &[StepCase] = &[
    step_case("Equal", 19, 2),
    step_case("Greater", 13, 2),
    step_case("GreaterOrEqual", 16, 2),
    step_case("Less", 13, 2),
    step_case("LessOrEqual", 16, 2),
    step_case("IsNaN", 20, 1),
];

const SCALARS: [f64; 8] = [0.0, -0.0, 1.5, -2.0, 0.5, 3.0, f64::INFINITY, f64::NAN];

/// Small numbers that follow from each other.
struct RandomCase(u64);

impl RandomCase {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % count
    }

    /// A number of one of many sizes, or a special one.
    fn number(&mut self) -> f64 {
        const SPECIAL: [f64; 10] =
            [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, -3e-39, 1e-45, 3e38, 1e9];
        match self.below(8) {
            0 => SPECIAL[self.below(SPECIAL.len())],
            1 => (self.below(2001) as f64 - 1000.0) * 0.37,
            _ => (self.below(20001) as f64 - 10000.0) * 3e-4,
        }
    }
}

/// Floats of one width.
trait TestFloat: Element + std::fmt::Debug {
    fn rounded(value: f64) -> Self;
    fn same_bits(self, other: Self) -> bool;
}

macro_rules! test_floats {
    ($($float:ident)*) => {
        $(impl TestFloat for $float {
            fn rounded(value: f64) -> Self {
                value as $float
            }

            fn same_bits(self, other: Self) -> bool {
                self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
            }
        })*
    };
}

test_floats!(f32 f64);

/// A fused op, and what its steps make on their own.
struct FusedCase<F> {
    isa: &'static str,
    inputs: Vec<TestArray>,
    values: Vec<TestArray>,
    steps: Vec<&'static str>,
    operands: Vec<i64>,
    scalars: Vec<f64>,
    float: std::marker::PhantomData<F>,
}

impl<F: TestFloat> FusedCase<F> {
    fn new(isa: &'static str, inputs: Vec<TestArray>) -> Self {
        let (values, scalars) = (inputs.clone(), Vec::new());
        let (steps, operands) = (Vec::new(), Vec::new());
        Self { isa, inputs, values, steps, operands, scalars, float: std::marker::PhantomData }
    }

    /// Adds a step on values and scalars, and returns the number of its result.
    #[track_caller]
    fn add_step(&mut self, case: &StepCase, operands: &[Result<usize, f64>], is_mask: bool) -> usize {
        let arrays: Vec<TestArray> = operands
            .iter()
            .map(|operand| match operand {
                Ok(value) => self.values[*value].clone(),
                Err(scalar) => TestArray::from_values(&[], &[F::rounded(*scalar)]),
            })
            .collect();
        self.operands.push((operands.len() + case.attributes.len()) as i64);
        let attributes = case.attributes.iter().map(|(_, value)| Err(*value));
        for operand in operands.iter().copied().chain(attributes) {
            self.operands.push(match operand {
                Ok(value) => value as i64,
                Err(scalar) => {
                    self.scalars.push(scalar);
                    -(self.scalars.len() as i64)
                }
            });
        }
        self.steps.push(case.step);
        let dims = broadcast_dims(arrays.iter().map(|array| &array.dims[..]));
        let output = (if is_mask { Dtype::BOOL } else { F::DTYPE }, &dims[..]);
        let attributes: Vec<_> =
            case.attributes.iter().map(|(name, value)| (*name, TestAttribute::Float(*value))).collect();
        let arrays: Vec<_> = arrays.iter().collect();
        let made = compute_with_isa(self.isa, case.op, case.version, &attributes, &arrays, output);
        self.values.push(made.unwrap_or_else(|error| panic!("{}: {error}", case.op)));
        self.values.len() - 1
    }

    fn run_fused(&self) -> Result<TestArray, String> {
        let steps = self.steps.join(",");
        let attributes = [
            ("steps", TestAttribute::Text(&steps)),
            ("operands", TestAttribute::Ints(&self.operands)),
            ("scalars", TestAttribute::Floats(&self.scalars)),
        ];
        let inputs: Vec<_> = self.inputs.iter().collect();
        let dims = broadcast_dims(self.inputs.iter().map(|input| &input.dims[..]));
        compute_with_isa(self.isa, "oarlock:FusedElementwise", 1, &attributes, &inputs, (F::DTYPE, &dims))
    }

    #[track_caller]
    fn check(&self) {
        let found = self.run_fused().unwrap();
        let expected = self.values.last().expect("a step");
        let about = || format!("{} of {:?} with {:?}", self.steps.join(" "), self.operands, self.scalars);
        assert_eq!(found.dims, expected.dims, "{}", about());
        let pairs = found.values::<F>().into_iter().zip(expected.values::<F>());
        for (at, (found, expected)) in pairs.enumerate() {
            assert!(
                found.same_bits(expected),
                "{} {}: expected {expected:?} at {at}, found {found:?}",
                self.isa,
                about()
            );
        }
    }
}

fn broadcast_dims<'a>(shapes: impl Iterator<Item = &'a [i64]>) -> Vec<i64> {
    shapes.fold(Vec::new(), |all, dims| {
        let rank = all.len().max(dims.len());
        let size = |dims: &[i64], back: usize| dims.len().checked_sub(back).map_or(1, |at| dims[at]);
        (1..=rank)
            .rev()
            .map(|back| match size(&all, back) {
                1 => size(dims, back),
                size => size,
            })
            .collect()
    })
}

fn random_input<F: TestFloat>(dice: &mut RandomCase, dims: &[i64]) -> TestArray {
    let values: Vec<F> = (0..dims.iter().product::<i64>()).map(|_| F::rounded(dice.number())).collect();
    TestArray::from_values(dims, &values)
}

/// Runs random steps on inputs of these shapes; the first of them is that of the output.
fn check_random_steps<F: TestFloat>(seed: u64, shapes: &[&[i64]], cases: &[&[StepCase]]) {
    let isa = ISAS[seed as usize % ISAS.len()];
    let mut dice = RandomCase(seed);
    let inputs = shapes.iter().map(|dims| random_input::<F>(&mut dice, dims)).collect();
    let mut fused = FusedCase::<F>::new(isa, inputs);
    let mut last = 0;
    for _ in 0..1 + dice.below(9) {
        let cases = cases[dice.below(cases.len())];
        let case = &cases[dice.below(cases.len())];
        let mut operands: Vec<Result<usize, f64>> = (0..case.operands).map(|_| Ok(last)).collect();
        // The result of the step before is one operand; the other is a scalar, any value, or the same.
        if case.operands == 2 {
            let other = match dice.below(5) {
                0 | 1 => Err(SCALARS[dice.below(SCALARS.len())]),
                2 | 3 => Ok(dice.below(fused.values.len())),
                _ => Ok(last),
            };
            let place = if case.op == "PRelu" { 1 } else { dice.below(2) };
            operands[place] = other;
        }
        let is_masked = |operand: &Result<usize, f64>| {
            operand.is_ok_and(|value| fused.values[value].dtype == Dtype::BOOL)
        };
        if operands.iter().any(is_masked)
            || case.op == "PRelu" && !broadcasts_to_first(&fused.values, &operands)
        {
            continue;
        }
        if MASKS.iter().any(|mask| mask.op == case.op) {
            let mask = fused.add_step(case, &operands, true);
            last = fused.add_step(&step_case("Where", 16, 3), &[Ok(mask), Ok(last), Ok(0)], false);
        } else {
            last = fused.add_step(case, &operands, false);
        }
    }
    // The output has the shape of all inputs, whatever the steps read. A sum hides signs of zeros, so there is none without need.
    let whole = broadcast_dims(shapes.iter().copied());
    for input in 0..shapes.len() {
        if fused.steps.is_empty() || fused.values[last].dims != whole {
            last = fused.add_step(&step_case("Add", 14, 2), &[Ok(last), Ok(input)], false);
        }
    }
    fused.check();
}

fn broadcasts_to_first(values: &[TestArray], operands: &[Result<usize, f64>]) -> bool {
    let dims = |operand: &Result<usize, f64>| operand.map_or(vec![], |value| values[value].dims.clone());
    let (first, second) = (dims(&operands[0]), dims(&operands[1]));
    broadcast_dims([&first[..], &second[..]].into_iter()) == first
}

#[test]
fn random_steps_have_the_bits_of_single_ops() {
    let all = [ARITHMETIC, FUNCTIONS, ANGLES, MASKS];
    for seed in 0..60 {
        let size = [1, 2, 15, 16, 17, 127, 128, 129, 1000, 1025, 2049, 5003][seed as usize % 12];
        let shape = &[size][..];
        check_random_steps::<f32>(seed, &[shape], &all);
        check_random_steps::<f32>(seed + 100, &[shape, shape, shape], &[ARITHMETIC]);
        check_random_steps::<f64>(seed + 200, &[shape, shape], &all);
    }
}

#[test]
fn arithmetic_with_scalars_has_the_bits_of_single_ops() {
    let x: Vec<f32> =
        (0..150).map(|index| SCALARS[index % SCALARS.len()] as f32 * (1 + index / 8) as f32).collect();
    for isa in ISAS {
        for case in ARITHMETIC.iter().filter(|case| case.operands == 2) {
            for scalar in SCALARS {
                for operands in [[Ok(0), Err(scalar)], [Err(scalar), Ok(0)], [Ok(0), Ok(0)]] {
                    let mut fused = FusedCase::<f32>::new(isa, vec![TestArray::from_values(&[150], &x)]);
                    fused.add_step(case, &operands, false);
                    fused.check();
                }
            }
        }
    }
}

#[test]
fn inputs_that_broadcast_have_the_bits_of_single_ops() {
    let others = [ARITHMETIC, FUNCTIONS, MASKS];
    let shapes: [&[&[i64]]; 5] = [
        &[&[6, 700], &[700]],
        &[&[6, 700], &[6, 1], &[1]],
        &[&[3, 5, 129], &[5, 1], &[129], &[3, 1, 129]],
        &[&[2, 2100], &[2, 1], &[1, 2100]],
        &[&[4, 1], &[1, 300], &[]],
    ];
    for (seed, shapes) in (300..).zip(shapes.into_iter().cycle().take(40)) {
        check_random_steps::<f32>(seed, shapes, &others);
        check_random_steps::<f64>(seed + 100, shapes, &others);
    }
}

#[test]
fn nothing_is_computed_of_no_elements() {
    let mut fused = FusedCase::<f32>::new("", vec![TestArray::from_values::<f32>(&[3, 0], &[])]);
    let next = fused.add_step(&ARITHMETIC[0], &[Ok(0), Err(1.0)], false);
    fused.add_step(&FUNCTIONS[4], &[Ok(next)], false);
    fused.check();
}

#[test]
fn powers_of_a_scalar_have_the_bits_of_single_ops() {
    for isa in ISAS {
        for exponent in [2.0, 3.0, 0.5, -0.5, -1.0, 1.7] {
            let mut fused =
                FusedCase::<f32>::new(isa, vec![random_input::<f32>(&mut RandomCase(7), &[1500])]);
            let power = fused.add_step(&step_case("Pow", 15, 2), &[Ok(0), Err(exponent)], false);
            fused.add_step(&ARITHMETIC[0], &[Ok(power), Ok(0)], false);
            fused.check();
        }
    }
}

#[test]
fn masks_are_combined() {
    let mut fused = FusedCase::<f32>::new("", vec![random_input::<f32>(&mut RandomCase(3), &[1500])]);
    let low = fused.add_step(&step_case("Greater", 13, 2), &[Ok(0), Err(-1.0)], true);
    let high = fused.add_step(&step_case("Less", 13, 2), &[Ok(0), Err(1.0)], true);
    let both = fused.add_step(&step_case("And", 7, 2), &[Ok(low), Ok(high)], true);
    let none = fused.add_step(&step_case("Not", 1, 1), &[Ok(both)], true);
    let either = fused.add_step(&step_case("Or", 7, 2), &[Ok(both), Ok(none)], true);
    let mask = fused.add_step(&step_case("Xor", 7, 2), &[Ok(either), Ok(both)], true);
    fused.add_step(&step_case("Where", 16, 3), &[Ok(mask), Ok(0), Err(7.0)], false);
    fused.check();
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let input = TestArray::from_values(&[3], &[1f32, 2.0, 3.0]);
    let refusal = |steps: &str, operands: &[i64]| {
        let attributes = [
            ("steps", TestAttribute::Text(steps)),
            ("operands", TestAttribute::Ints(operands)),
            ("scalars", TestAttribute::Floats(&[1.0])),
        ];
        compute_with_isa("", "oarlock:FusedElementwise", 1, &attributes, &[&input], (Dtype::F32, &[3]))
            .unwrap_err()
    };
    for (steps, operands, expected) in [
        ("", &[][..], "at least one step"),
        ("Add", &[2, 0], "found too few"),
        ("Add", &[2, 0, -1, 0], "found more"),
        ("Add", &[2, 0, 1], "found 1"),
        ("Add", &[2, 0, -2], "found -2"),
        ("Conv", &[2, 0, 0], "found `Conv` of 2 operands"),
        ("Exp", &[2, 0, 0], "found `Exp` of 2 operands"),
        ("Greater", &[2, 0, 0], "found a mask"),
        ("Not", &[1, 0], "expected a mask as an operand, found a float"),
        ("Greater,Add", &[2, 0, 0, 2, 1, 0], "expected a float as an operand, found a mask"),
    ] {
        let found = refusal(steps, operands);
        assert!(found.contains(expected), "{steps}: expected {expected:?}, found {found:?}");
    }
}

//! The activation functions of gates and states.

use oarlock_cpu_base::attributes::string_list;
use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::math::{self, MathFloat};
use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

/// A function and its two parameters, which most functions ignore.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RecurrentActivation {
    function: ActivationFunction,
    alpha: f64,
    beta: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActivationFunction {
    Relu,
    Tanh,
    Sigmoid,
    Softsign,
    Softplus,
    Affine,
    ScaledTanh,
    HardSigmoid,
    LeakyRelu,
    ThresholdedRelu,
    Elu,
}

/// The functions by name, with the number of their parameters and the defaults.
const FUNCTIONS: [(&str, ActivationFunction, usize, f64, f64); 11] = [
    ("Relu", ActivationFunction::Relu, 0, 0.0, 0.0),
    ("Tanh", ActivationFunction::Tanh, 0, 0.0, 0.0),
    ("Sigmoid", ActivationFunction::Sigmoid, 0, 0.0, 0.0),
    ("Softsign", ActivationFunction::Softsign, 0, 0.0, 0.0),
    ("Softplus", ActivationFunction::Softplus, 0, 0.0, 0.0),
    ("Affine", ActivationFunction::Affine, 2, 1.0, 0.0),
    ("ScaledTanh", ActivationFunction::ScaledTanh, 2, 1.0, 1.0),
    ("HardSigmoid", ActivationFunction::HardSigmoid, 2, 0.2, 0.5),
    ("LeakyRelu", ActivationFunction::LeakyRelu, 1, 0.01, 0.0),
    ("ThresholdedRelu", ActivationFunction::ThresholdedRelu, 1, 1.0, 0.0),
    ("Elu", ActivationFunction::Elu, 1, 1.0, 0.0),
];

impl RecurrentActivation {
    /// The functions of all directions, one direction after the other. Functions that have parameters consume the parameter lists
    /// in order.
    pub(super) fn all_directions(
        call: &KernelCall<'_>,
        defaults: &[&str],
        directions: usize,
    ) -> Result<Vec<Self>> {
        let names = string_list(call, "activations")?;
        let expected = defaults.len() * directions;
        // In the schema of `RNN`, the default has two functions, even for one direction.
        let names =
            names.map(|names| if names == ["Tanh"; 2] { names[..expected.min(2)].to_vec() } else { names });
        let names = names.unwrap_or_else(|| defaults.repeat(directions));
        ensure!(
            names.len() == expected,
            invalid_argument,
            "expected {expected} `activations` for {directions} directions, found {}",
            names.len()
        );
        let mut alphas = call.floats_attribute("activation_alpha")?.unwrap_or_default().iter();
        let mut betas = call.floats_attribute("activation_beta")?.unwrap_or_default().iter();
        let find = |name: &&str| {
            let known =
                // In ONNX, case does not matter.
                FUNCTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
                    let all = FUNCTIONS.map(|(known, ..)| known).join("`, `");
                    PluginError::invalid_argument(format!(
                        "expected `activations` out of `{all}`, found `{name}`"
                    ))
                })?;
            let (_, function, count, alpha, beta) = *known;
            let mut next = |index: usize, default: f64| match index {
                // A function without parameters must not consume any, or later functions would get the wrong ones.
                _ if index >= count => default,
                0 => alphas.next().copied().unwrap_or(default),
                _ => betas.next().copied().unwrap_or(default),
            };
            Ok(Self { function, alpha: next(0, alpha), beta: next(1, beta) })
        };
        names.iter().map(find).collect()
    }

    pub(super) fn is_sigmoid(self) -> bool {
        self.function == ActivationFunction::Sigmoid
    }

    pub(super) fn is_tanh(self) -> bool {
        self.function == ActivationFunction::Tanh
    }

    /// Applies the function to values.
    pub(super) fn apply_to<F: MathFloat>(self, isa: Isa, values: &mut [F]) {
        isa.vectorize(RecurrentActivationTask { activation: self, values });
    }
}

struct RecurrentActivationTask<'a, F> {
    activation: RecurrentActivation,
    values: &'a mut [F],
}

impl<F: MathFloat> SimdTask for RecurrentActivationTask<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        // The function is chosen outside the loop, so that each loop vectorizes.
        let (alpha, beta) = (F::from_f64(self.activation.alpha), F::from_f64(self.activation.beta));
        let (zero, one) = (F::ZERO, F::ONE);
        match self.activation.function {
            // With this comparison, NaN stays NaN.
            ActivationFunction::Relu => map_values(self.values, |x| if x < zero { zero } else { x }),
            ActivationFunction::Tanh => map_values(self.values, |x| math::tanh::<T, F>(x)),
            ActivationFunction::Sigmoid => map_values(self.values, |x| math::sigmoid::<T, F>(x)),
            ActivationFunction::Softsign => map_values(self.values, |x| x / (one + x.magnitude())),
            ActivationFunction::Softplus => map_values(self.values, |x| math::softplus::<T, F>(x)),
            ActivationFunction::Affine => map_values(self.values, |x| alpha.multiply_add::<T>(x, beta)),
            ActivationFunction::ScaledTanh => {
                map_values(self.values, |x| alpha * math::tanh::<T, F>(beta * x));
            }
            ActivationFunction::HardSigmoid => {
                map_values(self.values, |x| {
                    math::clamp_keeping_nan(alpha.multiply_add::<T>(x, beta), zero, one)
                });
            }
            ActivationFunction::LeakyRelu => {
                map_values(self.values, |x| if x < zero { alpha * x } else { x });
            }
            ActivationFunction::ThresholdedRelu => {
                map_values(self.values, |x| if x < alpha { zero } else { x });
            }
            ActivationFunction::Elu => {
                map_values(self.values, |x| if x < zero { alpha * math::exp_m1::<T, F>(x) } else { x });
            }
        }
    }
}

#[inline(always)]
fn map_values<F: MathFloat>(values: &mut [F], function: impl Fn(F) -> F) {
    values.iter_mut().for_each(|value| *value = function(*value));
}

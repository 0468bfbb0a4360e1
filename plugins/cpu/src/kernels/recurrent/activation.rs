//! The functions that gates and states pass through.

use oarlock_sdk::{Call, Error, Result, ensure};

use crate::isa::{Isa, Target, Vectorized};
use crate::kernels::attributes::texts;
use crate::kernels::elementwise::math::{self, Float};

/// A function with its two numbers, of which most functions have none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Activation {
    function: Function,
    alpha: f64,
    beta: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
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

/// The names of the functions, how many numbers each takes, and what these are where nobody says.
const FUNCTIONS: [(&str, Function, usize, f64, f64); 11] = [
    ("Relu", Function::Relu, 0, 0.0, 0.0),
    ("Tanh", Function::Tanh, 0, 0.0, 0.0),
    ("Sigmoid", Function::Sigmoid, 0, 0.0, 0.0),
    ("Softsign", Function::Softsign, 0, 0.0, 0.0),
    ("Softplus", Function::Softplus, 0, 0.0, 0.0),
    ("Affine", Function::Affine, 2, 1.0, 0.0),
    ("ScaledTanh", Function::ScaledTanh, 2, 1.0, 1.0),
    ("HardSigmoid", Function::HardSigmoid, 2, 0.2, 0.5),
    ("LeakyRelu", Function::LeakyRelu, 1, 0.01, 0.0),
    ("ThresholdedRelu", Function::ThresholdedRelu, 1, 1.0, 0.0),
    ("Elu", Function::Elu, 1, 1.0, 0.0),
];

impl Activation {
    /// The functions of all directions, one direction after the other. The lists of numbers go to the functions that take
    /// any, in order.
    pub(super) fn all(call: &Call<'_>, defaults: &[&str], directions: usize) -> Result<Vec<Self>> {
        let names = texts(call, "activations")?;
        let expected = defaults.len() * directions;
        // The schema of `RNN` states two functions as the default, even for one direction.
        let names =
            names.map(|names| if names == ["Tanh"; 2] { names[..expected.min(2)].to_vec() } else { names });
        let names = names.unwrap_or_else(|| defaults.repeat(directions));
        ensure!(
            names.len() == expected,
            invalid_argument,
            "expected {expected} `activations` for {directions} directions, found {}",
            names.len()
        );
        let mut alphas = call.floats("activation_alpha")?.unwrap_or_default().iter();
        let mut betas = call.floats("activation_beta")?.unwrap_or_default().iter();
        let find = |name: &&str| {
            let known =
                FUNCTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
                    let all = FUNCTIONS.map(|(known, ..)| known).join("`, `");
                    Error::invalid_argument(format!("expected `activations` out of `{all}`, found `{name}`"))
                })?;
            let (_, function, count, alpha, beta) = *known;
            let mut next = |index: usize, default: f64| match index {
                _ if index >= count => default,
                0 => alphas.next().copied().unwrap_or(default),
                _ => betas.next().copied().unwrap_or(default),
            };
            Ok(Self { function, alpha: next(0, alpha), beta: next(1, beta) })
        };
        names.iter().map(find).collect()
    }

    /// Puts values through the function.
    pub(super) fn apply<F: Float>(self, isa: Isa, values: &mut [F]) {
        isa.vectorize(Work { activation: self, values });
    }
}

struct Work<'a, F> {
    activation: Activation,
    values: &'a mut [F],
}

impl<F: Float> Vectorized for Work<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let (alpha, beta) = (F::of(self.activation.alpha), F::of(self.activation.beta));
        let (zero, one) = (F::ZERO, F::ONE);
        match self.activation.function {
            Function::Relu => each(self.values, |x| if x < zero { zero } else { x }),
            Function::Tanh => each(self.values, |x| math::tanh::<T, F>(x)),
            Function::Sigmoid => each(self.values, |x| math::sigmoid::<T, F>(x)),
            Function::Softsign => each(self.values, |x| x / (one + x.magnitude())),
            Function::Softplus => each(self.values, |x| math::softplus::<T, F>(x)),
            Function::Affine => each(self.values, |x| alpha.times_plus::<T>(x, beta)),
            Function::ScaledTanh => each(self.values, |x| alpha * math::tanh::<T, F>(beta * x)),
            Function::HardSigmoid => {
                each(self.values, |x| math::bounded(alpha.times_plus::<T>(x, beta), zero, one));
            }
            Function::LeakyRelu => each(self.values, |x| if x < zero { alpha * x } else { x }),
            Function::ThresholdedRelu => each(self.values, |x| if x < alpha { zero } else { x }),
            Function::Elu => {
                each(self.values, |x| if x < zero { alpha * math::exp_m1::<T, F>(x) } else { x });
            }
        }
    }
}

#[inline(always)]
fn each<F: Float>(values: &mut [F], function: impl Fn(F) -> F) {
    values.iter_mut().for_each(|value| *value = function(*value));
}

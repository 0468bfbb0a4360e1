//! Activations that kernels apply to results that are still in registers or in cache. The attributes `activation` and
//! `activation_parameters` of ops of the domain `oarlock` select them.

use oarlock_sdk::{KernelCall, PluginError, Result};

use crate::isa::{Isa, SimdTarget, SimdTask};
use crate::math;

/// An activation fused into another kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FusedActivation {
    /// Clamps to a lower and an upper bound, which may be infinite: no activation, `Relu` and `Clip`.
    Bounds([f32; 2]),
    /// x, or `alpha` · x if x is negative, but at least `low`.
    LeakyRelu {
        alpha: f32,
        low: f32,
    },
    /// clamp(alpha · x + beta, 0, 1).
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    /// x · clamp(x / 6 + 1/2, 0, 1).
    HardSwish,
    Sigmoid,
    /// x times the logistic function.
    Silu,
    Tanh,
    /// x · Φ(x), where Φ is the distribution function of the normal distribution.
    Gelu,
    /// The tanh approximation of GELU.
    GeluTanh,
}

impl FusedActivation {
    /// No activation: infinite bounds leave elements unchanged.
    pub const NONE: Self = Self::Bounds([f32::NEG_INFINITY, f32::INFINITY]);

    pub fn from_attributes(call: &KernelCall<'_>) -> Result<Self> {
        let name = call.string_attribute("activation")?.unwrap_or("");
        Self::new(name, call.floats_attribute("activation_parameters")?.unwrap_or(&[]))
    }

    fn new(name: &str, parameters: &[f64]) -> Result<Self> {
        let (activation, wanted) = match (name, parameters) {
            ("Clip", [low, high]) => (Self::Bounds([*low as f32, *high as f32]), 2),
            ("LeakyRelu", [alpha]) => (Self::LeakyRelu { alpha: *alpha as f32, low: f32::NEG_INFINITY }, 1),
            ("LeakyRelu", [alpha, low]) => (Self::LeakyRelu { alpha: *alpha as f32, low: *low as f32 }, 2),
            ("HardSigmoid", [alpha, beta]) => {
                (Self::HardSigmoid { alpha: *alpha as f32, beta: *beta as f32 }, 2)
            }
            // The number of parameters is wrong: the error below states the right one, and the activation here is not used.
            ("Clip" | "HardSigmoid", _) => (Self::NONE, 2),
            ("LeakyRelu", _) => (Self::NONE, 1),
            ("", _) => (Self::NONE, 0),
            ("Relu", _) => (Self::Bounds([0.0, f32::INFINITY]), 0),
            ("HardSwish", _) => (Self::HardSwish, 0),
            ("Sigmoid", _) => (Self::Sigmoid, 0),
            ("Silu", _) => (Self::Silu, 0),
            ("Tanh", _) => (Self::Tanh, 0),
            ("Gelu", _) => (Self::Gelu, 0),
            ("GeluTanh", _) => (Self::GeluTanh, 0),
            _ => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `activation` to be empty, `Relu`, `Clip`, `LeakyRelu`, `HardSigmoid`, `HardSwish`, \
                     `Sigmoid`, `Silu`, `Tanh`, `Gelu` or `GeluTanh`, found `{name}`"
                )));
            }
        };
        oarlock_sdk::ensure!(
            parameters.len() == wanted,
            invalid_argument,
            "expected {wanted} numbers in `activation_parameters` for the activation `{name}`, found {}",
            parameters.len()
        );
        Ok(activation)
    }

    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// The bounds, if the activation only clamps: lower bound first, then the upper one. NaN stays NaN.
    pub fn clip_bounds(&self) -> Option<[f32; 2]> {
        if let Self::Bounds(bounds) = self { Some(*bounds) } else { None }
    }

    /// Applies the activation in place to contiguous elements.
    pub fn apply_with_isa(&self, isa: Isa, elements: &mut [f32]) {
        isa.vectorize(ActivationTask { activation: *self, elements });
    }

    /// Like [`Self::apply_with_isa`], for code that is already compiled for an instruction set.
    #[inline(always)]
    pub fn apply_on_target<T: SimdTarget>(&self, elements: &mut [f32]) {
        match *self {
            Self::Bounds([low, high]) => {
                if !self.is_none() {
                    map_in_place(elements, |x| math::clamp_keeping_nan(x, low, high));
                }
            }
            Self::LeakyRelu { alpha, low } => map_in_place(elements, |x| {
                let y = if x < 0.0 { alpha * x } else { x };
                // NaN stays NaN.
                if y < low { low } else { y }
            }),
            Self::HardSigmoid { alpha, beta } => {
                map_in_place(elements, |x| {
                    math::clamp_keeping_nan(math::MathFloat::multiply_add::<T>(alpha, x, beta), 0.0, 1.0)
                });
            }
            Self::HardSwish => {
                // Not divided by 6: a division takes as long as all the rest, several times over.
                map_in_place(elements, |x| {
                    let gate = math::MathFloat::multiply_add::<T>(x, 1.0 / 6.0, 0.5);
                    x * math::clamp_keeping_nan(gate, 0.0, 1.0)
                });
            }
            Self::Sigmoid => map_in_place(elements, math::sigmoid::<T, f32>),
            Self::Silu => map_in_place(elements, |x| x * math::sigmoid::<T, f32>(x)),
            Self::Tanh => map_in_place(elements, math::tanh::<T, f32>),
            Self::Gelu => map_in_place(elements, fast_gelu::<T>),
            Self::GeluTanh => map_in_place(elements, math::gelu_tanh::<T, f32>),
        }
    }
}

struct ActivationTask<'a> {
    activation: FusedActivation,
    elements: &'a mut [f32],
}

impl SimdTask for ActivationTask<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        self.activation.apply_on_target::<T>(self.elements);
    }
}

/// x · Φ(x), to the error of `erf`. Unlike [`math::gelu`], it computes the lower tail as a difference, as graphs do that have the
/// formula as nodes, and takes half the instructions.
#[inline(always)]
fn fast_gelu<T: SimdTarget>(x: f32) -> f32 {
    let erf = math::erf::<T, f32>(x * std::f32::consts::FRAC_1_SQRT_2);
    x * math::MathFloat::multiply_add::<T>(erf, 0.5, 0.5)
}

#[inline(always)]
fn map_in_place(elements: &mut [f32], function: impl Fn(f32) -> f32) {
    for element in elements {
        *element = function(*element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply_activation(activation: FusedActivation, isa: Isa) -> Vec<f32> {
        let mut elements: Vec<f32> = (-40..=40).map(|index| index as f32 * 0.25).collect();
        activation.apply_with_isa(isa, &mut elements);
        elements
    }

    #[test]
    fn each_activation_is_its_function_on_every_instruction_set() {
        type ReferenceFunction = fn(f64) -> f64;
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let normal: ReferenceFunction = |x| {
            // Integrates the density in steps far smaller than the tolerance needs.
            let steps = 4000;
            let width = (x + 12.0) / f64::from(steps);
            let density = |t: f64| (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt();
            (0..steps).map(|step| density((f64::from(step) + 0.5) * width - 12.0) * width).sum()
        };
        type ActivationCase<'a> = (&'a str, &'a [f64], &'a dyn Fn(f64) -> f64);
        let cases: [ActivationCase<'_>; 12] = [
            ("", &[], &|x| x),
            ("Relu", &[], &|x| x.max(0.0)),
            ("Clip", &[-1.5, 6.0], &|x| x.clamp(-1.5, 6.0)),
            ("LeakyRelu", &[0.125], &|x| if x < 0.0 { 0.125 * x } else { x }),
            ("LeakyRelu", &[0.5, -0.25], &|x| (if x < 0.0 { 0.5 * x } else { x }).max(-0.25)),
            ("HardSigmoid", &[0.25, 0.5], &|x| (0.25 * x + 0.5).clamp(0.0, 1.0)),
            ("HardSwish", &[], &|x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
            ("Sigmoid", &[], &sigmoid),
            ("Silu", &[], &|x| x * sigmoid(x)),
            ("Tanh", &[], &f64::tanh),
            ("Gelu", &[], &|x| x * normal(x)),
            ("GeluTanh", &[], &|x| {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
            }),
        ];
        for (name, parameters, function) in cases {
            let activation = FusedActivation::new(name, parameters).unwrap();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                for (index, found) in apply_activation(activation, isa).into_iter().enumerate() {
                    let expected = function((index as f64 - 40.0) * 0.25);
                    let is_close = (f64::from(found) - expected).abs() <= 3e-6 * (1.0 + expected.abs());
                    assert!(is_close, "{name} with {isa}: expected {expected}, found {found}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_stays_so() {
        for (name, parameters) in [("Relu", &[][..]), ("Clip", &[0.0, 6.0]), ("Gelu", &[]), ("Silu", &[])] {
            let mut elements = [f32::NAN; 3];
            FusedActivation::new(name, parameters).unwrap().apply_with_isa(Isa::best_level(), &mut elements);
            assert!(elements.iter().all(|element| element.is_nan()), "{name}");
        }
    }

    #[test]
    fn only_what_cuts_off_has_bounds() {
        let bounds = |name, parameters: &[f64]| FusedActivation::new(name, parameters).unwrap().clip_bounds();
        assert_eq!(bounds("", &[]), Some([f32::NEG_INFINITY, f32::INFINITY]));
        assert_eq!(bounds("Relu", &[]), Some([0.0, f32::INFINITY]));
        assert_eq!(bounds("Clip", &[0.0, 6.0]), Some([0.0, 6.0]));
        assert_eq!(bounds("Gelu", &[]), None);
    }

    #[test]
    fn unknown_names_and_missing_parameters_are_refused() {
        let message =
            |name, parameters: &[f64]| format!("{:?}", FusedActivation::new(name, parameters).unwrap_err());
        assert!(message("Rleu", &[]).contains("found `Rleu`"));
        assert!(message("Clip", &[1.0]).contains("expected 2 numbers in `activation_parameters`"));
        assert!(message("Relu", &[1.0]).contains("expected 0 numbers"));
    }
}

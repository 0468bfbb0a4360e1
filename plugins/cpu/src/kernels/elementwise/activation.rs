//! The functions between the layers of networks.

use std::marker::PhantomData;

use oarlock_sdk::{Call, Error, Kernel, Result};

use super::inner::{Loop, Map};
use super::math::{self, Trigonometry};
use super::number::with_number;
use super::pass::Pass;
use super::port::Port;
use super::row::{FLOATS, NUMBERS, input, output, row};
use super::unary::{Function as _, float_row, function, function_row, functions};
use crate::device::Cpu;
use crate::isa::Target;

functions! {
    Sigmoid(x) => math::sigmoid::<T, F>(x);
    Softplus(x) => math::softplus::<T, F>(x);
    Softsign(x) => x / (F::ONE + x.magnitude());
    Gelu(x) => math::gelu::<T, F>(x);
    GeluTanh(x) => math::gelu_tanh::<T, F>(x);
    HardSwish(x) => x * math::bounded(x / F::of(6.0) + F::HALF, F::ZERO, F::ONE);
    HardSigmoid { alpha, beta } (x) => math::bounded(alpha.times_plus::<T>(x, beta), F::ZERO, F::ONE);
    LeakyRelu { alpha } (x) => if x < F::ZERO { alpha * x } else { x };
    Elu { alpha } (x) => if x < F::ZERO { alpha * math::exp_m1::<T, F>(x) } else { x };
    Celu { alpha } (x) => {
        let (ratio, zero) = (x / alpha, F::ZERO);
        let bent = alpha * math::exp_m1::<T, F>(ratio);
        (if x < zero { zero } else { x }) + if bent > zero { zero } else { bent }
    };
    Selu { alpha, gamma } (x) => gamma * if x > F::ZERO { x } else { alpha * math::exp_m1::<T, F>(x) };
    Swish { alpha } (x) => x * math::sigmoid::<T, F>(alpha * x);
    ThresholdedRelu { alpha } (x) => if x <= alpha { F::ZERO } else { x };
    Clip { low, high } (x) => math::bounded(x, low, high);
    Shrink { lambda, bias } (x) => {
        let small = if x < -lambda { x + bias } else { F::ZERO };
        if x > lambda { x - bias } else { small }
    };
    Mish(x) => {
        // The hyperbolic tangent of softplus as a fraction of powers. From 20 on it is 1.
        let power = math::exp::<T, F>(if x > F::of(20.0) { F::of(20.0) } else { x });
        let product = power * (power + F::TWO);
        x * (product / (product + F::TWO))
    };
}

/// The product of a value and the `Swish` of a gate.
#[derive(Clone, Copy)]
struct Gated<F> {
    alpha: f64,
    float: PhantomData<F>,
}

impl<F: Trigonometry> Map for Gated<F> {
    type Input = (F, F);
    type Output = F;

    #[inline(always)]
    fn apply<T: Target>(self, (gate, value): (F, F)) -> F {
        Swish { alpha: self.alpha }.apply::<T, F>(gate) * value
    }
}

fn gated() -> Kernel<Cpu> {
    let inputs = [input("A", FLOATS).group(1), input("B", FLOATS).group(1)];
    row("SwiGLU", 28, inputs, output("Y", FLOATS).group(1), |call| {
        let (dtype, alpha) = (call.input(0)?.dtype(), number(call, "alpha", 1.0)?);
        with_number!(dtype, floats, N => {
            let (input, output) = (Port::input(dtype, N::DTYPE)?, Port::output(dtype, N::DTYPE)?);
            Ok(Pass::new(Loop(Gated::<N> { alpha, float: PhantomData }), [input; 2], output))
        })
    })
    .in_place(0, 0)
    .in_place(0, 1)
}

/// A number of an attribute. Schemas have their defaults as `f32`.
fn number(call: &Call<'_>, name: &str, default: f32) -> Result<f64> {
    Ok(call.float(name)?.unwrap_or(f64::from(default)))
}

fn gelu() -> Kernel<Cpu> {
    row("Gelu", 20, [input("X", FLOATS).group(1)], output("Y", FLOATS).group(1), |call| {
        let dtype = call.input(0)?.dtype();
        match call.string("approximate")?.unwrap_or("none") {
            "none" => function(dtype, Gelu {}),
            "tanh" => function(dtype, GeluTanh {}),
            other => Err(Error::invalid_argument(format!(
                "expected `approximate` to be `none` or `tanh`, found `{other}`"
            ))),
        }
    })
    .in_place(0, 0)
}

/// The rows of all activations.
pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![
        float_row("Sigmoid", 1, |_| Ok(Sigmoid {})),
        float_row("Softplus", 1, |_| Ok(Softplus {})),
        float_row("Softsign", 1, |_| Ok(Softsign {})),
        float_row("HardSwish", 14, |_| Ok(HardSwish {})),
        float_row("Mish", 18, |_| Ok(Mish {})),
        float_row("HardSigmoid", 1, |call| {
            Ok(HardSigmoid { alpha: number(call, "alpha", 0.2)?, beta: number(call, "beta", 0.5)? })
        }),
        float_row("LeakyRelu", 1, |call| Ok(LeakyRelu { alpha: number(call, "alpha", 0.01)? })),
        float_row("Elu", 1, |call| Ok(Elu { alpha: number(call, "alpha", 1.0)? })),
        float_row("Celu", 12, |call| Ok(Celu { alpha: number(call, "alpha", 1.0)? })),
        float_row("Selu", 1, |call| {
            Ok(Selu { alpha: number(call, "alpha", 1.6732)?, gamma: number(call, "gamma", 1.0507)? })
        })
        .until(5),
        float_row("Selu", 6, |call| {
            Ok(Selu { alpha: number(call, "alpha", 1.673_263_2)?, gamma: number(call, "gamma", 1.050_701)? })
        }),
        float_row("Swish", 24, |call| Ok(Swish { alpha: number(call, "alpha", 1.0)? })),
        float_row("ThresholdedRelu", 10, |call| Ok(ThresholdedRelu { alpha: number(call, "alpha", 1.0)? })),
        float_row("Clip", 1, |call| {
            Ok(Clip { low: number(call, "min", f32::MIN)?, high: number(call, "max", f32::MAX)? })
        })
        .until(10),
        function_row("Shrink", 9, NUMBERS, |call| {
            Ok(Shrink { lambda: number(call, "lambd", 0.5)?, bias: number(call, "bias", 0.0)? })
        }),
        gelu(),
        gated(),
    ]
}

//! Activation functions.

use std::marker::PhantomData;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_cpu_base::math::{self, TrigonometricFloat};
use oarlock_sdk::{Kernel, KernelCall, PluginError, Result};

use super::dtype_dispatch::with_number;
use super::element_loop::{ElementMap, MapLoop};
use super::operand_conversion::OperandConversion;
use super::prepared_loop::PreparedLoop;
use super::registration::{FLOATS, NUMBERS, elementwise_kernel, input_operand, output_operand};
use super::unary::{UnaryFunction as _, float_kernel, function_kernel, function_loop, functions};

functions! {
    Sigmoid(x) => math::sigmoid::<T, F>(x);
    Softplus(x) => math::softplus::<T, F>(x);
    Softsign(x) => x / (F::ONE + x.magnitude());
    Gelu(x) => math::gelu::<T, F>(x);
    GeluTanh(x) => math::gelu_tanh::<T, F>(x);
    HardSwish(x) => x * math::clamp_keeping_nan(x.multiply_add::<T>(F::from_f64(1.0 / 6.0), F::HALF), F::ZERO, F::ONE);
    HardSigmoid { alpha, beta } (x) => math::clamp_keeping_nan(alpha.multiply_add::<T>(x, beta), F::ZERO, F::ONE);
    // NaN makes these comparisons false, and the other branch keeps it.
    LeakyRelu { alpha } (x) => if x < F::ZERO { alpha * x } else { x };
    // `exp_m1`, because the exponential minus 1 cancels near 0.
    Elu { alpha } (x) => if x < F::ZERO { alpha * math::exp_m1::<T, F>(x) } else { x };
    Celu { alpha } (x) => {
        let (ratio, zero) = (x / alpha, F::ZERO);
        let bent = alpha * math::exp_m1::<T, F>(ratio);
        (if x < zero { zero } else { x }) + if bent > zero { zero } else { bent }
    };
    Selu { alpha, gamma } (x) => gamma * if x > F::ZERO { x } else { alpha * math::exp_m1::<T, F>(x) };
    Swish { alpha } (x) => x * math::sigmoid::<T, F>(alpha * x);
    ThresholdedRelu { alpha } (x) => if x <= alpha { F::ZERO } else { x };
    Clip { low, high } (x) => math::clamp_keeping_nan(x, low, high);
    // NaN is in neither range and becomes 0, as by the formula of the schema.
    Shrink { lambda, bias } (x) => {
        let small = if x < -lambda { x + bias } else { F::ZERO };
        if x > lambda { x - bias } else { small }
    };
    Mish(x) => {
        // tanh(softplus(x)) as a fraction of exponentials. From 20 on it is 1.
        let power = math::exp::<T, F>(if x > F::from_f64(20.0) { F::from_f64(20.0) } else { x });
        let product = power * (power + F::TWO);
        x * (product / (product + F::TWO))
    };
}

/// A value times the `Swish` of a gate.
#[derive(Clone, Copy)]
struct GatedSwish<F> {
    alpha: f64,
    float: PhantomData<F>,
}

impl<F: TrigonometricFloat> ElementMap for GatedSwish<F> {
    type Input = (F, F);
    type Output = F;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (gate, value): (F, F)) -> F {
        Swish { alpha: self.alpha }.apply::<T, F>(gate) * value
    }
}

fn gated_swish_kernel() -> Kernel<Cpu> {
    let inputs =
        [input_operand("A", FLOATS).with_dtype_group(1), input_operand("B", FLOATS).with_dtype_group(1)];
    elementwise_kernel("SwiGLU", 28, inputs, output_operand("Y", FLOATS).with_dtype_group(1), |call| {
        let (dtype, alpha) = (call.input(0)?.dtype(), number_attribute(call, "alpha", 1.0)?);
        with_number!(dtype, floats, N => {
            let (input, output) = (OperandConversion::for_input(dtype, N::DTYPE)?, OperandConversion::for_output(dtype, N::DTYPE)?);
            Ok(PreparedLoop::new(MapLoop(GatedSwish::<N> { alpha, float: PhantomData }), [input; 2], output))
        })
    })
    .with_in_place(0, 0)
    .with_in_place(0, 1)
}

/// A float attribute. Schemas have their defaults as `f32`.
fn number_attribute(call: &KernelCall<'_>, name: &str, default: f32) -> Result<f64> {
    Ok(call.float_attribute(name)?.unwrap_or(f64::from(default)))
}

fn gelu_kernel() -> Kernel<Cpu> {
    elementwise_kernel(
        "Gelu",
        20,
        [input_operand("X", FLOATS).with_dtype_group(1)],
        output_operand("Y", FLOATS).with_dtype_group(1),
        |call| {
            let dtype = call.input(0)?.dtype();
            match call.string_attribute("approximate")?.unwrap_or("none") {
                "none" => function_loop(dtype, Gelu {}),
                "tanh" => function_loop(dtype, GeluTanh {}),
                other => Err(PluginError::invalid_argument(format!(
                    "expected `approximate` to be `none` or `tanh`, found `{other}`"
                ))),
            }
        },
    )
    .with_in_place(0, 0)
}

pub(super) fn activation_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        float_kernel("Sigmoid", 1, |_| Ok(Sigmoid {})),
        float_kernel("Softplus", 1, |_| Ok(Softplus {})),
        float_kernel("Softsign", 1, |_| Ok(Softsign {})),
        float_kernel("HardSwish", 14, |_| Ok(HardSwish {})),
        float_kernel("Mish", 18, |_| Ok(Mish {})),
        float_kernel("HardSigmoid", 1, |call| {
            Ok(HardSigmoid {
                alpha: number_attribute(call, "alpha", 0.2)?,
                beta: number_attribute(call, "beta", 0.5)?,
            })
        }),
        float_kernel("LeakyRelu", 1, |call| Ok(LeakyRelu { alpha: number_attribute(call, "alpha", 0.01)? })),
        float_kernel("Elu", 1, |call| Ok(Elu { alpha: number_attribute(call, "alpha", 1.0)? })),
        float_kernel("Celu", 12, |call| Ok(Celu { alpha: number_attribute(call, "alpha", 1.0)? })),
        // The first version states its constants with fewer digits.
        float_kernel("Selu", 1, |call| {
            Ok(Selu {
                alpha: number_attribute(call, "alpha", 1.6732)?,
                gamma: number_attribute(call, "gamma", 1.0507)?,
            })
        })
        .until_version(5),
        float_kernel("Selu", 6, |call| {
            Ok(Selu {
                alpha: number_attribute(call, "alpha", 1.673_263_2)?,
                gamma: number_attribute(call, "gamma", 1.050_701)?,
            })
        }),
        float_kernel("Swish", 24, |call| Ok(Swish { alpha: number_attribute(call, "alpha", 1.0)? })),
        float_kernel("ThresholdedRelu", 10, |call| {
            Ok(ThresholdedRelu { alpha: number_attribute(call, "alpha", 1.0)? })
        }),
        float_kernel("Clip", 1, |call| {
            Ok(Clip {
                // Without bounds the schema still clamps infinities to the largest `f32`.
                low: number_attribute(call, "min", f32::MIN)?,
                high: number_attribute(call, "max", f32::MAX)?,
            })
        })
        .until_version(10),
        function_kernel("Shrink", 9, NUMBERS, |call| {
            Ok(Shrink {
                lambda: number_attribute(call, "lambd", 0.5)?,
                bias: number_attribute(call, "bias", 0.0)?,
            })
        }),
        gelu_kernel(),
        gated_swish_kernel(),
    ]
}

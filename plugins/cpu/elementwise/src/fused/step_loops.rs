//! The loop of each step that is not arithmetic in registers: the same loops that the ops run on their own.

use std::marker::PhantomData;

use oarlock_cpu_base::math::TrigonometricFloat;

use super::super::activation::{
    Celu, Clip, Elu, Gelu, GeluTanh, HardSigmoid, HardSwish, LeakyRelu, Mish, Selu, Shrink, Sigmoid,
    Softplus, Softsign, Swish, ThresholdedRelu,
};
use super::super::binary::{
    Equal, Greater, GreaterOrEqual, Larger, Less, LessOrEqual, Minus, Over, Plus, Slope, Smaller, Times,
};
use super::super::bitwise::{Any, BoolNot, Both, One};
use super::super::element_loop::{ElementLoop, ElementMap, MapLoop};
use super::super::power::{FloatPowerLoop, PowerMap};
use super::super::select::WhereMap;
use super::super::unary::of_float::*;
use super::super::unary::{Abs, Cos, FunctionMap, IsNan, Neg, Relu, Sign, Sin, Tan};

/// How a step runs on its own.
pub(super) struct StepLoop {
    pub(super) inner: Box<dyn ElementLoop>,
    /// True for each operand, the result last, that is a byte of a mask instead of a float.
    pub(super) masks: &'static [bool],
}

/// The loop of a function with these scalars behind its only operand.
pub(super) fn function_step<N: TrigonometricFloat>(op: &str, parameters: &[f64]) -> Option<StepLoop> {
    macro_rules! function_loops {
        ($($name:literal $parameters:pat => $function:expr;)*) => {
            match (op, parameters) {
                $(($name, $parameters) => {
                    let map = FunctionMap($function, PhantomData::<N>);
                    Some(StepLoop { inner: Box::new(MapLoop(map)), masks: &[false, false] })
                })*
                _ => None,
            }
        };
    }
    function_loops! {
        "Ceil" [] => Ceil {};
        "Floor" [] => Floor {};
        "Round" [] => Round {};
        "Reciprocal" [] => Reciprocal {};
        "Sqrt" [] => Sqrt {};
        "Exp" [] => Exp {};
        "Log" [] => Log {};
        "Sin" [] => Sin;
        "Cos" [] => Cos;
        "Tan" [] => Tan;
        "Asin" [] => Asin {};
        "Acos" [] => Acos {};
        "Atan" [] => Atan {};
        "Sinh" [] => Sinh {};
        "Cosh" [] => Cosh {};
        "Tanh" [] => Tanh {};
        "Asinh" [] => Asinh {};
        "Acosh" [] => Acosh {};
        "Atanh" [] => Atanh {};
        "Erf" [] => Erf {};
        "Sigmoid" [] => Sigmoid {};
        "Softplus" [] => Softplus {};
        "Softsign" [] => Softsign {};
        "Gelu" [] => Gelu {};
        "GeluTanh" [] => GeluTanh {};
        "HardSwish" [] => HardSwish {};
        "Mish" [] => Mish {};
        "HardSigmoid" [alpha, beta] => HardSigmoid { alpha: *alpha, beta: *beta };
        "LeakyRelu" [alpha] => LeakyRelu { alpha: *alpha };
        "Elu" [alpha] => Elu { alpha: *alpha };
        "Celu" [alpha] => Celu { alpha: *alpha };
        "Selu" [alpha, gamma] => Selu { alpha: *alpha, gamma: *gamma };
        "Swish" [alpha] => Swish { alpha: *alpha };
        "ThresholdedRelu" [alpha] => ThresholdedRelu { alpha: *alpha };
        "Shrink" [lambda, bias] => Shrink { lambda: *lambda, bias: *bias };
        "Clip" [low, high] => Clip { low: *low, high: *high };
    }
}

/// The loop of an op whose operands are all elements.
pub(super) fn map_step<N: TrigonometricFloat + From<f32>>(op: &str, operands: usize) -> Option<StepLoop>
where
    PowerMap<N>: ElementMap,
{
    macro_rules! map_loops {
        ($($name:literal $inner:expr, $masks:expr;)*) => {
            match op {
                $($name => Some(StepLoop { inner: Box::new($inner), masks: const { &$masks } }),)*
                _ => None,
            }
        };
    }
    let number = PhantomData::<N>;
    let bytes = PhantomData::<u8>;
    let found = map_loops! {
        "Abs" MapLoop(Abs(number)), [false, false];
        "Neg" MapLoop(Neg(number)), [false, false];
        "Relu" MapLoop(Relu(number)), [false, false];
        "Sign" MapLoop(Sign(number)), [false, false];
        "Add" MapLoop(Plus(number)), [false, false, false];
        "Sub" MapLoop(Minus(number)), [false, false, false];
        "Mul" MapLoop(Times(number)), [false, false, false];
        "Div" MapLoop(Over(number)), [false, false, false];
        "Max" MapLoop(Larger(number)), [false, false, false];
        "Min" MapLoop(Smaller(number)), [false, false, false];
        "PRelu" MapLoop(Slope(number)), [false, false, false];
        "Pow" FloatPowerLoop(number), [false, false, false];
        "IsNaN" MapLoop(IsNan(number)), [false, true];
        "Equal" MapLoop(Equal(number)), [false, false, true];
        "Greater" MapLoop(Greater(number)), [false, false, true];
        "GreaterOrEqual" MapLoop(GreaterOrEqual(number)), [false, false, true];
        "Less" MapLoop(Less(number)), [false, false, true];
        "LessOrEqual" MapLoop(LessOrEqual(number)), [false, false, true];
        "And" MapLoop(Both(bytes)), [true, true, true];
        "Or" MapLoop(Any(bytes)), [true, true, true];
        "Xor" MapLoop(One(bytes)), [true, true, true];
        "Not" MapLoop(BoolNot), [true, true];
        "Where" MapLoop(WhereMap(number)), [true, false, false, false];
    };
    found.filter(|found| found.masks.len() == operands + 1)
}

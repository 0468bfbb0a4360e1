//! Elementwise functions.

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::cast_tensor;
use crate::error::{OrRaise as _, rename_op};
use crate::op_call::StaticOp;
use crate::operand::{ArrayOperand, AsOperand, array_argument, promote_operands};
use crate::promote::{DtypeKind, default_dtype, dtype_kind, is_signed, is_unsigned, wide_dtype};
use crate::python_number::PythonNumber;
use crate::tensor::PyTensor;
use crate::trace::is_traced;
use crate::ufunc_keywords::UfuncKeywords;

/// Defines Python functions of one array that map to one op each.
macro_rules! of_one {
    ($($(#[$doc:meta])* $name:ident = $from:ident $op:literal for $domain:ident;)*) => {
        $(
            #[inline]
            pub(crate) fn $name(py: Python<'_>, x: &PyTensor) -> PyResult<PyTensor> {
                static OP: StaticOp = StaticOp::$from($op);
                let made = match OperandDomain::$domain.admit_operand(py, x.tensor()) {
                    Ok(AdmittedOperand::Same(same)) => Ok(same),
                    Ok(AdmittedOperand::Ready(x)) => OP.call(py, &[&x]),
                    Err(error) => Err(error),
                };
                name_result(py, stringify!($name), made)
            }
        )*

        mod unary {
            use super::*;
            $(
                $(#[$doc])*
                #[pyfunction]
                #[pyo3(signature = (x, /, out=None, **keywords))]
                pub(super) fn $name<'py>(
                    x: &Bound<'py, PyAny>,
                    out: Option<&Bound<'py, PyAny>>,
                    keywords: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyTensor>> {
                    UfuncKeywords { out, named: keywords }.apply(stringify!($name), [x], |py| {
                        super::$name(py, array_argument(x, stringify!($name), "x")?.get())
                    })
                }
            )*
        }

        fn add_unary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!(unary::$name, module)?)?;)*
            Ok(())
        }
    };
}

/// Defines Python functions of two arrays.
macro_rules! of_two {
    ($($(#[$doc:meta])* $name:ident = $function:expr;)*) => {
        $(
            #[inline]
            pub(crate) fn $name(py: Python<'_>, x1: &impl AsOperand, x2: &impl AsOperand) -> PyResult<PyTensor> {
                let [x1, x2] = promote_operands(py, x1, x2)?;
                let function: fn(Python<'_>, Tensor, Tensor) -> PyResult<Tensor> = $function;
                name_result(py, stringify!($name), function(py, x1, x2))
            }
        )*

        mod binary {
            use super::*;
            $(
                $(#[$doc])*
                #[pyfunction]
                #[pyo3(signature = (x1, x2, /, out=None, **keywords))]
                pub(super) fn $name<'py>(
                    x1: &Bound<'py, PyAny>,
                    x2: &Bound<'py, PyAny>,
                    out: Option<&Bound<'py, PyAny>>,
                    keywords: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyTensor>> {
                    UfuncKeywords { out, named: keywords }.apply(stringify!($name), [x1, x2], |py| {
                        super::$name(py, &x1.extract::<ArrayOperand>()?, &x2.extract::<ArrayOperand>()?)
                    })
                }
            )*
        }

        fn add_binary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!(binary::$name, module)?)?;)*
            Ok(())
        }
    };
}

/// Wraps a result; errors name the Python function, whichever ops it calls.
#[inline]
fn name_result(py: Python<'_>, function: &str, made: PyResult<Tensor>) -> PyResult<PyTensor> {
    match made {
        Ok(tensor) => Ok(PyTensor::new(tensor)),
        Err(error) => Err(rename_op(py, function, error)),
    }
}

/// A binary op as a closure.
macro_rules! op {
    ($from:ident $op:literal) => {
        |py, x1, x2| {
            static OP: StaticOp = StaticOp::$from($op);
            OP.call(py, &[&x1, &x2])
        }
    };
    // Converts integers to floats first.
    ($from:ident $op:literal of floats) => {
        |py, x1, x2| {
            static OP: StaticOp = StaticOp::$from($op);
            OP.call(py, &[&to_floats(py, &x1)?, &to_floats(py, &x2)?])
        }
    };
}

/// The dtypes that a unary function accepts.
#[derive(Clone, Copy)]
enum OperandDomain {
    /// All that the op accepts.
    Any,
    /// Truth values are returned unchanged.
    Numbers,
    /// Numbers become truth values.
    Truths,
    /// Integers become floats.
    Floats,
    /// Integers are returned unchanged.
    Rounding,
}

enum AdmittedOperand {
    Ready(Tensor),
    Same(Tensor),
}

impl OperandDomain {
    #[inline]
    fn admit_operand(self, py: Python<'_>, x: Tensor) -> PyResult<AdmittedOperand> {
        let is_whole = matches!(dtype_kind(x.dtype()), Some(DtypeKind::Bool | DtypeKind::Integer));
        Ok(match self {
            Self::Floats if is_whole => {
                AdmittedOperand::Ready(cast_tensor(py, &x, default_dtype(DtypeKind::Float))?)
            }
            Self::Rounding if is_whole => AdmittedOperand::Same(x),
            Self::Numbers if x.dtype() == Dtype::Bool => AdmittedOperand::Same(x),
            Self::Truths => AdmittedOperand::Ready(to_truths(py, &x)?),
            _ => AdmittedOperand::Ready(x),
        })
    }
}

of_one! {
    /// The absolute value.
    abs = complex_aware "Abs" for Numbers;
    /// The inverse cosine.
    acos = complex_aware "Acos" for Floats;
    /// The inverse of the hyperbolic cosine.
    acosh = complex_aware "Acosh" for Floats;
    /// The inverse sine.
    asin = complex_aware "Asin" for Floats;
    /// The inverse of the hyperbolic sine.
    asinh = complex_aware "Asinh" for Floats;
    /// The inverse tangent.
    atan = complex_aware "Atan" for Floats;
    /// The inverse of the hyperbolic tangent.
    atanh = complex_aware "Atanh" for Floats;
    /// Rounds up.
    ceil = new "Ceil" for Rounding;
    /// The cosine.
    cos = complex_aware "Cos" for Floats;
    /// The hyperbolic cosine.
    cosh = complex_aware "Cosh" for Floats;
    /// e to the power of each element.
    exp = complex_aware "Exp" for Floats;
    /// Rounds down.
    floor = new "Floor" for Rounding;
    /// e to the power of each element, minus 1; exact near 0.
    expm1 = oarlock_op "Expm1" for Floats;
    /// The natural logarithm.
    log = complex_aware "Log" for Floats;
    /// The natural logarithm of 1 + x; exact near 0.
    log1p = oarlock_op "Log1p" for Floats;
    /// The logarithm to base 2.
    log2 = oarlock_op "Log2" for Floats;
    /// The logarithm to base 10.
    log10 = oarlock_op "Log10" for Floats;
    /// Negates truth values.
    logical_not = new "Not" for Truths;
    /// The reciprocal.
    reciprocal = complex_aware "Reciprocal" for Floats;
    /// Rounds to the nearest integer, ties to even.
    round = new "Round" for Rounding;
    /// The sign: -1, 0 or 1.
    sign = complex_aware "Sign" for Any;
    /// Whether the sign bit is set.
    signbit = oarlock_op "SignBit" for Any;
    /// The sine.
    sin = complex_aware "Sin" for Floats;
    /// The hyperbolic sine.
    sinh = complex_aware "Sinh" for Floats;
    /// The square root.
    sqrt = complex_aware "Sqrt" for Floats;
    /// The tangent.
    tan = complex_aware "Tan" for Floats;
    /// The hyperbolic tangent.
    tanh = complex_aware "Tanh" for Floats;
    /// Rounds towards 0.
    trunc = oarlock_op "Trunc" for Rounding;
}

of_two! {
    /// The sum; of truth values, whether either is true.
    add = |py, x1, x2| {
        static OP: StaticOp = StaticOp::complex_aware("Add");
        apply_to_truths(py, [x1, x2], &EITHER, &OP)
    };
    /// The angle of the point (x2, x1).
    atan2 = op!(oarlock_op "Atan2" of floats);
    /// Shifts bits to the left.
    bitwise_left_shift = op!(oarlock_op "ShiftLeft");
    /// Shifts bits to the right.
    bitwise_right_shift = op!(oarlock_op "ShiftRight");
    /// Bitwise and.
    bitwise_and = |py, x1, x2| {
        static TRUTHS: StaticOp = StaticOp::new("And");
        static BITS: StaticOp = StaticOp::new("BitwiseAnd");
        apply_bitwise(py, [x1, x2], &TRUTHS, &BITS)
    };
    /// Bitwise or.
    bitwise_or = |py, x1, x2| {
        static TRUTHS: StaticOp = StaticOp::new("Or");
        static BITS: StaticOp = StaticOp::new("BitwiseOr");
        apply_bitwise(py, [x1, x2], &TRUTHS, &BITS)
    };
    /// Bitwise exclusive or.
    bitwise_xor = |py, x1, x2| {
        static TRUTHS: StaticOp = StaticOp::new("Xor");
        static BITS: StaticOp = StaticOp::new("BitwiseXor");
        apply_bitwise(py, [x1, x2], &TRUTHS, &BITS)
    };
    /// The first with the sign of the second.
    copysign = op!(oarlock_op "CopySign" of floats);
    /// The quotient; of integers, as a float.
    divide = op!(complex_aware "Div" of floats);
    /// Whether the two are equal.
    equal = op!(complex_aware "Equal");
    /// The quotient, rounded down.
    floor_divide = op!(oarlock_op "FloorDivide");
    /// Whether the first is greater than the second.
    greater = op!(new "Greater");
    /// Whether the first is greater than or equal to the second.
    greater_equal = op!(new "GreaterOrEqual");
    /// The hypotenuse: the length of the vector (x1, x2).
    hypot = op!(oarlock_op "Hypot" of floats);
    /// Whether the first is less than the second.
    less = op!(new "Less");
    /// Whether the first is less than or equal to the second.
    less_equal = op!(new "LessOrEqual");
    /// The logarithm of the sum of the exponentials.
    logaddexp = op!(oarlock_op "LogAddExp" of floats);
    /// Logical and.
    logical_and = |py, x1, x2| apply_logical(py, [x1, x2], &BOTH);
    /// Logical or.
    logical_or = |py, x1, x2| apply_logical(py, [x1, x2], &EITHER);
    /// Logical exclusive or.
    logical_xor = |py, x1, x2| {
        static ONE: StaticOp = StaticOp::new("Xor");
        apply_logical(py, [x1, x2], &ONE)
    };
    /// The larger of the two; NaN if either is NaN.
    maximum = |py, x1, x2| {
        static OP: StaticOp = StaticOp::new("Max");
        apply_to_truths(py, [x1, x2], &EITHER, &OP)
    };
    /// The smaller of the two; NaN if either is NaN.
    minimum = |py, x1, x2| {
        static OP: StaticOp = StaticOp::new("Min");
        apply_to_truths(py, [x1, x2], &BOTH, &OP)
    };
    /// The product; of truth values, whether both are true.
    multiply = |py, x1, x2| {
        static OP: StaticOp = StaticOp::complex_aware("Mul");
        apply_to_truths(py, [x1, x2], &BOTH, &OP)
    };
    /// The next representable number from the first towards the second.
    nextafter = op!(oarlock_op "NextAfter" of floats);
    /// Whether the two are unequal.
    not_equal = |py, x1, x2| {
        static EQUAL: StaticOp = StaticOp::complex_aware("Equal");
        static NOT: StaticOp = StaticOp::new("Not");
        let equal = EQUAL.call(py, &[&x1, &x2])?;
        NOT.call(py, &[&equal])
    };
    /// The first to the power of the second.
    pow = |py, x1, x2| {
        static OP: StaticOp = StaticOp::complex_aware("Pow");
        let dtype = x1.dtype();
        if is_signed(dtype) && has_negative(py, &x2)? {
            return Err(PyValueError::new_err(
                "expected integers to the power of 0 or more, found a power below 0\nhint: convert the base to floats with `astype`",
            ));
        }
        // ONNX's op lacks kernels for narrow integers. Wide powers wrap to the same narrow result.
        if dtype_kind(dtype) != Some(DtypeKind::Integer) || matches!(dtype, Dtype::I32 | Dtype::I64) {
            return OP.call(py, &[&x1, &x2]);
        }
        let [wide, by] = [cast_tensor(py, &x1, Dtype::I64)?, cast_tensor(py, &x2, Dtype::I64)?];
        cast_tensor(py, &OP.call(py, &[&wide, &by])?, dtype)
    };
    /// The remainder of the floored quotient, with the sign of the divisor.
    remainder = op!(oarlock_op "Remainder");
    /// The difference.
    subtract = op!(complex_aware "Sub");
}

/// Defines predicates that are an op for floats and a constant for integers.
macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident = $from:ident $op:literal, $of_whole:literal;)*) => {
        mod tests {
            use super::*;
            $(
                $(#[$doc])*
                #[pyfunction]
                #[pyo3(signature = (x, /, out=None, **keywords))]
                pub(super) fn $name<'py>(
                    x: &Bound<'py, PyAny>,
                    out: Option<&Bound<'py, PyAny>>,
                    keywords: Option<&Bound<'py, PyDict>>,
                ) -> PyResult<Bound<'py, PyTensor>> {
                    static OP: StaticOp = StaticOp::$from($op);
                    UfuncKeywords { out, named: keywords }.apply(stringify!($name), [x], |py| {
                        let x = array_argument(x, stringify!($name), "x")?.get().tensor();
                        if !matches!(dtype_kind(x.dtype()), Some(DtypeKind::Float | DtypeKind::Complex)) {
                            return bool_like(py, &x, $of_whole).map(PyTensor::new);
                        }
                        name_result(py, stringify!($name), OP.call(py, &[&x]))
                    })
                }
            )*
        }

        fn add_tests(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!(tests::$name, module)?)?;)*
            Ok(())
        }
    };
}

tests! {
    /// Whether each element is finite.
    isfinite = oarlock_op "IsFinite", true;
    /// Whether each element is infinite.
    isinf = complex_aware "IsInf", false;
    /// Whether each element is NaN.
    isnan = complex_aware "IsNaN", false;
}

/// A boolean array of the same shape, filled with one value.
pub(crate) fn bool_like(py: Python<'_>, x: &Tensor, truth: bool) -> PyResult<Tensor> {
    static EXPAND: StaticOp = StaticOp::new("Expand");
    let one = PythonNumber::Bool(truth).to_tensor(x.device(), Dtype::Bool)?;
    let count = i64::try_from(x.dims().len())?;
    let dims = Tensor::from_slice(&crate::startup::host_memory_device(py)?, &[count], x.dims()).or_raise()?;
    EXPAND.call(py, &[&one, &dims])
}

pub(crate) fn register_functions(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add_unary(module)?;
    add_binary(module)?;
    add_tests(module)?;
    module.add_function(wrap_pyfunction!(py::bitwise_invert, module)?)?;
    module.add_function(wrap_pyfunction!(py::negative, module)?)?;
    module.add_function(wrap_pyfunction!(py::real, module)?)?;
    module.add_function(wrap_pyfunction!(py::imag, module)?)?;
    module.add_function(wrap_pyfunction!(py::conj, module)?)?;
    module.add_function(wrap_pyfunction!(py::matmul, module)?)
}

/// Functions of more than one op.
mod py {
    use super::*;

    /// Inverts every bit, or a truth value.
    #[pyfunction]
    #[pyo3(signature = (x, /, out=None, **keywords))]
    pub(super) fn bitwise_invert<'py>(
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        UfuncKeywords { out, named: keywords }.apply("bitwise_invert", [x], |py| {
            super::bitwise_invert(py, array_argument(x, "bitwise_invert", "x")?.get())
        })
    }

    /// The negative.
    #[pyfunction]
    #[pyo3(signature = (x, /, out=None, **keywords))]
    pub(super) fn negative<'py>(
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        UfuncKeywords { out, named: keywords }
            .apply("negative", [x], |py| super::negative(py, array_argument(x, "negative", "x")?.get()))
    }

    /// The real part; real numbers stay as they are.
    #[pyfunction]
    #[pyo3(signature = (x, /))]
    pub(super) fn real(x: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        static OP: StaticOp = StaticOp::oarlock_op("Real");
        complex_part(&array_argument(x, "real", "x")?, &OP, |x| Ok(x.clone()))
    }

    /// The imaginary part; 0 for real numbers.
    #[pyfunction]
    #[pyo3(signature = (x, /))]
    pub(super) fn imag(x: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        static OP: StaticOp = StaticOp::oarlock_op("Imag");
        complex_part(&array_argument(x, "imag", "x")?, &OP, |real| {
            cast_tensor(x.py(), &bool_like(x.py(), real, false)?, real.dtype())
        })
    }

    /// The complex conjugate.
    #[pyfunction]
    #[pyo3(signature = (x, /, out=None, **keywords))]
    pub(super) fn conj<'py>(
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        static OP: StaticOp = StaticOp::oarlock_op("Conj");
        UfuncKeywords { out, named: keywords }
            .apply("conj", [x], |_| complex_part(&array_argument(x, "conj", "x")?, &OP, |x| Ok(x.clone())))
    }

    /// Runs `op` for complex arrays and `of_real` for all others.
    fn complex_part(
        x: &Bound<'_, PyTensor>,
        op: &'static StaticOp,
        of_real: impl FnOnce(&Tensor) -> PyResult<Tensor>,
    ) -> PyResult<PyTensor> {
        let tensor = x.get().tensor();
        let is_complex = dtype_kind(tensor.dtype()) == Some(DtypeKind::Complex);
        let made = if is_complex { op.call(x.py(), &[&tensor]) } else { of_real(&tensor) };
        made.map(PyTensor::new)
    }

    /// The product of matrices, or of stacks of them.
    #[pyfunction]
    #[pyo3(signature = (x1, x2, /, out=None, **keywords))]
    pub(super) fn matmul<'py>(
        x1: &Bound<'py, PyAny>,
        x2: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        UfuncKeywords { out, named: keywords }.apply("matmul", [x1, x2], |py| {
            super::matmul(py, &x1.extract::<ArrayOperand>()?, &x2.extract::<ArrayOperand>()?)
        })
    }
}

pub(crate) fn bitwise_invert(py: Python<'_>, x: &PyTensor) -> PyResult<PyTensor> {
    static TRUTHS: StaticOp = StaticOp::new("Not");
    static BITS: StaticOp = StaticOp::new("BitwiseNot");
    let x = x.tensor();
    let op = if x.dtype() == Dtype::Bool { &TRUTHS } else { &BITS };
    name_result(py, "bitwise_invert", op.call(py, &[&x]))
}

pub(crate) fn negative(py: Python<'_>, x: &PyTensor) -> PyResult<PyTensor> {
    static NEG: StaticOp = StaticOp::complex_aware("Neg");
    static SUB: StaticOp = StaticOp::new("Sub");
    let x = x.tensor();
    if !is_unsigned(x.dtype()) {
        return name_result(py, "negative", NEG.call(py, &[&x]));
    }
    let zero = PythonNumber::Bool(false).to_tensor(x.device(), x.dtype())?;
    name_result(py, "negative", SUB.call(py, &[&zero, &x]))
}

pub(crate) fn matmul(py: Python<'_>, x1: &impl AsOperand, x2: &impl AsOperand) -> PyResult<PyTensor> {
    let [x1, x2] = promote_operands(py, x1, x2)?;
    name_result(py, "matmul", multiply_matrices(py, &x1, &x2))
}

fn multiply_matrices(py: Python<'_>, x1: &Tensor, x2: &Tensor) -> PyResult<Tensor> {
    static OP: StaticOp = StaticOp::new("MatMul");
    if x1.dims().is_empty() || x2.dims().is_empty() {
        return Err(PyTypeError::new_err("expected matrices or vectors for `matmul`, found a number"));
    }
    if dtype_kind(x1.dtype()) == Some(DtypeKind::Complex) {
        return multiply_complex_matrices(py, x1, x2);
    }
    // ONNX's op lacks kernels for narrow integers. Wide sums wrap to the same narrow result.
    let is_bool = x1.dtype() == Dtype::Bool;
    let wide = if is_bool { Dtype::I32 } else { wide_dtype(x1.dtype()) };
    let made = OP.call(py, &[&cast_tensor(py, x1, wide)?, &cast_tensor(py, x2, wide)?])?;
    cast_tensor(py, &made, x1.dtype())
}

/// Multiplies real and imaginary parts, because ONNX's op lacks complex numbers.
fn multiply_complex_matrices(py: Python<'_>, x1: &Tensor, x2: &Tensor) -> PyResult<Tensor> {
    static REAL: StaticOp = StaticOp::oarlock_op("Real");
    static IMAG: StaticOp = StaticOp::oarlock_op("Imag");
    static PRODUCT: StaticOp = StaticOp::new("MatMul");
    static ADD: StaticOp = StaticOp::new("Add");
    static SUB: StaticOp = StaticOp::new("Sub");
    static COMPLEX: StaticOp = StaticOp::oarlock_op("Complex");
    let [a, b] = [REAL.call(py, &[x1])?, IMAG.call(py, &[x1])?];
    let [c, d] = [REAL.call(py, &[x2])?, IMAG.call(py, &[x2])?];
    let product = |left: &Tensor, right: &Tensor| PRODUCT.call(py, &[left, right]);
    let real = SUB.call(py, &[&product(&a, &c)?, &product(&b, &d)?])?;
    let imaginary = ADD.call(py, &[&product(&a, &d)?, &product(&b, &c)?])?;
    COMPLEX.call(py, &[&real, &imaginary])
}

static BOTH: StaticOp = StaticOp::new("And");
static EITHER: StaticOp = StaticOp::new("Or");

/// Applies an op of numbers, or another one if they are truth values.
#[inline]
fn apply_to_truths(
    py: Python<'_>,
    [x1, x2]: [Tensor; 2],
    of_truths: &'static StaticOp,
    of_numbers: &'static StaticOp,
) -> PyResult<Tensor> {
    let op = if x1.dtype() == Dtype::Bool { of_truths } else { of_numbers };
    op.call(py, &[&x1, &x2])
}

/// Applies an op of truth values to whether numbers are other than 0.
fn apply_logical(py: Python<'_>, [x1, x2]: [Tensor; 2], op: &'static StaticOp) -> PyResult<Tensor> {
    op.call(py, &[&to_truths(py, &x1)?, &to_truths(py, &x2)?])
}

/// Whether each number is other than 0. Text stays what it is, for the op to refuse.
fn to_truths(py: Python<'_>, x: &Tensor) -> PyResult<Tensor> {
    if x.dtype() == Dtype::String { Ok(x.clone()) } else { cast_tensor(py, x, Dtype::Bool) }
}

fn apply_bitwise(
    py: Python<'_>,
    [x1, x2]: [Tensor; 2],
    truths: &'static StaticOp,
    bits: &'static StaticOp,
) -> PyResult<Tensor> {
    if x1.dtype() == Dtype::Bool { truths.call(py, &[&x1, &x2]) } else { bits.call(py, &[&x1, &x2]) }
}

/// True if any of these integers is below 0.
fn has_negative(py: Python<'_>, x: &Tensor) -> PyResult<bool> {
    static MIN: StaticOp = StaticOp::with_attributes("ReduceMin", &[("keepdims", 0)]);
    if x.element_count() == 0 || is_traced(x) {
        return Ok(false);
    }
    let least = MIN.call(py, &[&cast_tensor(py, x, Dtype::I64)?])?;
    Ok(least.to_constant().and_then(|least| least.to_ints()).or_raise()?[0] < 0)
}

fn to_floats(py: Python<'_>, x: &Tensor) -> PyResult<Tensor> {
    match dtype_kind(x.dtype()) {
        Some(DtypeKind::Bool | DtypeKind::Integer) => cast_tensor(py, x, default_dtype(DtypeKind::Float)),
        _ => Ok(x.clone()),
    }
}

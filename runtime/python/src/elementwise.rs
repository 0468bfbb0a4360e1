//! Functions that compute each element of their result from the elements in its place.

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::array::operand::{AsOperand, Number, array_given, together};
use crate::array::{Array, Operand, cast};
use crate::call::Fixed;
use crate::error::{OrRaise as _, in_name_of};
use crate::promote::{Kind, default_of, is_unsigned, kind, wide};

/// Functions of one array that are an op, and as such functions of Python.
macro_rules! of_one {
    ($($(#[$doc:meta])* $name:ident = $from:ident $op:literal for $domain:ident;)*) => {
        $(
            #[inline]
            pub(crate) fn $name(py: Python<'_>, x: &Array) -> PyResult<Array> {
                static OP: Fixed = Fixed::$from($op);
                let made = match Domain::$domain.admit(py, x.tensor()) {
                    Ok(Admitted::Same(same)) => Ok(same),
                    Ok(Admitted::Ready(x)) => OP.call(py, &[&x]),
                    Err(error) => Err(error),
                };
                array_of(py, stringify!($name), made)
            }
        )*

        mod unary {
            use super::*;
            $(
                $(#[$doc])*
                #[pyfunction]
                #[pyo3(signature = (x, /))]
                pub(super) fn $name(x: &Bound<'_, PyAny>) -> PyResult<Array> {
                    super::$name(x.py(), array_given(x, stringify!($name), "x")?.get())
                }
            )*
        }

        fn add_unary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!(unary::$name, module)?)?;)*
            Ok(())
        }
    };
}

/// The same of two.
macro_rules! of_two {
    ($($(#[$doc:meta])* $name:ident = $way:expr;)*) => {
        $(
            #[inline]
            pub(crate) fn $name(py: Python<'_>, x1: &impl AsOperand, x2: &impl AsOperand) -> PyResult<Array> {
                let [x1, x2] = together(py, x1, x2)?;
                let way: fn(Python<'_>, Tensor, Tensor) -> PyResult<Tensor> = $way;
                array_of(py, stringify!($name), way(py, x1, x2))
            }
        )*

        mod binary {
            use super::*;
            $(
                $(#[$doc])*
                #[pyfunction]
                #[pyo3(signature = (x1, x2, /))]
                pub(super) fn $name(py: Python<'_>, x1: Operand, x2: Operand) -> PyResult<Array> {
                    super::$name(py, &x1, &x2)
                }
            )*
        }

        fn add_binary(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_function(wrap_pyfunction!(binary::$name, module)?)?;)*
            Ok(())
        }
    };
}

/// What a function made; its errors speak of it, whatever ops it is made of.
#[inline]
fn array_of(py: Python<'_>, function: &str, made: PyResult<Tensor>) -> PyResult<Array> {
    match made {
        Ok(tensor) => Ok(Array::new(tensor)),
        Err(error) => Err(in_name_of(py, function, error)),
    }
}

/// An op of two operands as a way to compute.
macro_rules! op {
    ($from:ident $op:literal) => {
        |py, x1, x2| {
            static OP: Fixed = Fixed::$from($op);
            OP.call(py, &[&x1, &x2])
        }
    };
    // Whole numbers as floats.
    ($from:ident $op:literal of floats) => {
        |py, x1, x2| {
            static OP: Fixed = Fixed::$from($op);
            OP.call(py, &[&floats(py, &x1)?, &floats(py, &x2)?])
        }
    };
}

/// What a function of one array takes.
#[derive(Clone, Copy)]
enum Domain {
    /// Whatever the op takes.
    Any,
    /// Integers become floats.
    Floats,
    /// Whole numbers are what they are made.
    Rounding,
}

enum Admitted {
    Ready(Tensor),
    Same(Tensor),
}

impl Domain {
    #[inline]
    fn admit(self, py: Python<'_>, x: Tensor) -> PyResult<Admitted> {
        let is_whole = matches!(kind(x.dtype()), Some(Kind::Bool | Kind::Integer));
        Ok(match self {
            Self::Floats if is_whole => Admitted::Ready(cast(py, &x, default_of(Kind::Float))?),
            Self::Rounding if is_whole => Admitted::Same(x),
            _ => Admitted::Ready(x),
        })
    }
}

of_one! {
    /// The absolute value.
    abs = both "Abs" for Any;
    /// The angle whose cosine it is.
    acos = both "Acos" for Floats;
    /// The inverse of the hyperbolic cosine.
    acosh = both "Acosh" for Floats;
    /// The angle whose sine it is.
    asin = both "Asin" for Floats;
    /// The inverse of the hyperbolic sine.
    asinh = both "Asinh" for Floats;
    /// The angle whose tangent it is.
    atan = both "Atan" for Floats;
    /// The inverse of the hyperbolic tangent.
    atanh = both "Atanh" for Floats;
    /// The nearest whole number that is not less.
    ceil = new "Ceil" for Rounding;
    /// The cosine.
    cos = both "Cos" for Floats;
    /// The hyperbolic cosine.
    cosh = both "Cosh" for Floats;
    /// The power of e.
    exp = both "Exp" for Floats;
    /// The nearest whole number that is not greater.
    floor = new "Floor" for Rounding;
    /// The power of e less 1, exact near 0.
    expm1 = own "Expm1" for Floats;
    /// The natural logarithm.
    log = both "Log" for Floats;
    /// The natural logarithm of what is greater by 1, exact near 0.
    log1p = own "Log1p" for Floats;
    /// The logarithm to base 2.
    log2 = own "Log2" for Floats;
    /// The logarithm to base 10.
    log10 = own "Log10" for Floats;
    /// Whether it is false.
    logical_not = new "Not" for Any;
    /// One divided by it.
    reciprocal = both "Reciprocal" for Floats;
    /// The nearest whole number, and of two the even one.
    round = new "Round" for Rounding;
    /// -1, 0 or 1, as it is less than 0, 0 or greater.
    sign = both "Sign" for Any;
    /// Whether it has the sign of a negative number.
    signbit = own "SignBit" for Any;
    /// The sine.
    sin = both "Sin" for Floats;
    /// The hyperbolic sine.
    sinh = both "Sinh" for Floats;
    /// The square root.
    sqrt = both "Sqrt" for Floats;
    /// The tangent.
    tan = both "Tan" for Floats;
    /// The hyperbolic tangent.
    tanh = both "Tanh" for Floats;
    /// Without what is behind the point.
    trunc = own "Trunc" for Rounding;
}

of_two! {
    /// The sum.
    add = op!(both "Add");
    /// The angle of a point, whose second coordinate is the first operand.
    atan2 = op!(own "Atan2" of floats);
    /// Bits moved to the left, by as many places as the second operand says.
    bitwise_left_shift = op!(own "ShiftLeft");
    /// Bits moved to the right, by as many places as the second operand says.
    bitwise_right_shift = op!(own "ShiftRight");
    /// Both bits, or both truths.
    bitwise_and = |py, x1, x2| {
        static TRUTHS: Fixed = Fixed::new("And");
        static BITS: Fixed = Fixed::new("BitwiseAnd");
        of_bits(py, [x1, x2], &TRUTHS, &BITS)
    };
    /// Either bit, or either truth.
    bitwise_or = |py, x1, x2| {
        static TRUTHS: Fixed = Fixed::new("Or");
        static BITS: Fixed = Fixed::new("BitwiseOr");
        of_bits(py, [x1, x2], &TRUTHS, &BITS)
    };
    /// One of two bits, or one of two truths.
    bitwise_xor = |py, x1, x2| {
        static TRUTHS: Fixed = Fixed::new("Xor");
        static BITS: Fixed = Fixed::new("BitwiseXor");
        of_bits(py, [x1, x2], &TRUTHS, &BITS)
    };
    /// The first with the sign of the second.
    copysign = op!(own "CopySign" of floats);
    /// The quotient, of whole numbers as floats.
    divide = op!(both "Div" of floats);
    /// Whether the two are equal.
    equal = op!(both "Equal");
    /// The quotient, rounded down.
    floor_divide = op!(own "FloorDivide");
    /// Whether the first is greater.
    greater = op!(new "Greater");
    /// Whether the first is greater or equal.
    greater_equal = op!(new "GreaterOrEqual");
    /// The length of the vector of both.
    hypot = op!(own "Hypot" of floats);
    /// Whether the first is less.
    less = op!(new "Less");
    /// Whether the first is less or equal.
    less_equal = op!(new "LessOrEqual");
    /// The logarithm of the sum of two powers of e.
    logaddexp = op!(own "LogAddExp" of floats);
    /// Whether both are true.
    logical_and = op!(new "And");
    /// Whether one or both are true.
    logical_or = op!(new "Or");
    /// Whether one is true and the other is not.
    logical_xor = op!(new "Xor");
    /// The greater of the two.
    maximum = op!(new "Max");
    /// The less of the two.
    minimum = op!(new "Min");
    /// The product.
    multiply = op!(both "Mul");
    /// The number beside the first on the way to the second.
    nextafter = op!(own "NextAfter" of floats);
    /// Whether the two differ.
    not_equal = |py, x1, x2| {
        static EQUAL: Fixed = Fixed::both("Equal");
        static NOT: Fixed = Fixed::new("Not");
        let equal = EQUAL.call(py, &[&x1, &x2])?;
        NOT.call(py, &[&equal])
    };
    /// The first to the power of the second.
    pow = |py, x1, x2| {
        static OP: Fixed = Fixed::both("Pow");
        let dtype = x1.dtype();
        // The op of ONNX has no kernels for narrow integers, of which powers are taken as wide ones wrap.
        if kind(dtype) != Some(Kind::Integer) || matches!(dtype, Dtype::I32 | Dtype::I64) {
            return OP.call(py, &[&x1, &x2]);
        }
        let [wide, by] = [cast(py, &x1, Dtype::I64)?, cast(py, &x2, Dtype::I64)?];
        cast(py, &OP.call(py, &[&wide, &by])?, dtype)
    };
    /// What the quotient, rounded down, leaves.
    remainder = op!(own "Remainder");
    /// The difference.
    subtract = op!(both "Sub");
}

/// Questions that floats have an op for, and whole numbers one answer to.
macro_rules! tests {
    ($($(#[$doc:meta])* $name:ident = $from:ident $op:literal, $of_whole:literal;)*) => {
        mod tests {
            use super::*;
            $(
                $(#[$doc])*
                #[pyfunction]
                #[pyo3(signature = (x, /))]
                pub(super) fn $name(x: &Bound<'_, PyAny>) -> PyResult<Array> {
                    static OP: Fixed = Fixed::$from($op);
                    let (py, x) = (x.py(), array_given(x, stringify!($name), "x")?.get().tensor());
                    if !matches!(kind(x.dtype()), Some(Kind::Float | Kind::Complex)) {
                        return filled_like(py, &x, $of_whole).map(Array::new);
                    }
                    array_of(py, stringify!($name), OP.call(py, &[&x]))
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
    /// Whether it is a number, and not infinite.
    isfinite = own "IsFinite", true;
    /// Whether it is infinite.
    isinf = both "IsInf", false;
    /// Whether it is no number.
    isnan = both "IsNaN", false;
}

/// One truth in the shape of an array.
fn filled_like(py: Python<'_>, x: &Tensor, truth: bool) -> PyResult<Tensor> {
    static EXPAND: Fixed = Fixed::new("Expand");
    let one = Number::Bool(truth).tensor(x.device(), Dtype::Bool)?;
    let count = i64::try_from(x.dims().len())?;
    let dims = Tensor::from_slice(&crate::array::host(py)?, &[count], x.dims()).or_raise()?;
    EXPAND.call(py, &[&one, &dims])
}

/// Registers the functions of this module.
pub(crate) fn add_all(module: &Bound<'_, PyModule>) -> PyResult<()> {
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

/// Those that are more than one op, as functions of Python.
mod py {
    use super::*;

    /// Every bit turned around, or the truth.
    #[pyfunction]
    #[pyo3(signature = (x, /))]
    pub(super) fn bitwise_invert(x: &Bound<'_, PyAny>) -> PyResult<Array> {
        super::bitwise_invert(x.py(), array_given(x, "bitwise_invert", "x")?.get())
    }

    /// The number with its sign turned around.
    #[pyfunction]
    #[pyo3(signature = (x, /))]
    pub(super) fn negative(x: &Bound<'_, PyAny>) -> PyResult<Array> {
        super::negative(x.py(), array_given(x, "negative", "x")?.get())
    }

    /// The real part, which is all there is of a real number.
    #[pyfunction]
    #[pyo3(signature = (x, /))]
    pub(super) fn real(x: &Bound<'_, PyAny>) -> PyResult<Array> {
        static OP: Fixed = Fixed::own("Real");
        part(array_given(x, "real", "x")?, &OP, |x| Ok(x.clone()))
    }

    /// The imaginary part, which is 0 of a real number.
    #[pyfunction]
    #[pyo3(signature = (x, /))]
    pub(super) fn imag(x: &Bound<'_, PyAny>) -> PyResult<Array> {
        static OP: Fixed = Fixed::own("Imag");
        part(array_given(x, "imag", "x")?, &OP, |real| {
            cast(x.py(), &filled_like(x.py(), real, false)?, real.dtype())
        })
    }

    /// The number with the sign of its imaginary part turned around.
    #[pyfunction]
    #[pyo3(signature = (x, /))]
    pub(super) fn conj(x: &Bound<'_, PyAny>) -> PyResult<Array> {
        static OP: Fixed = Fixed::own("Conj");
        part(array_given(x, "conj", "x")?, &OP, |x| Ok(x.clone()))
    }

    /// What an op says of complex numbers, and a function of others.
    fn part(
        x: &Bound<'_, Array>,
        op: &'static Fixed,
        of_real: impl FnOnce(&Tensor) -> PyResult<Tensor>,
    ) -> PyResult<Array> {
        let tensor = x.get().tensor();
        let is_complex = kind(tensor.dtype()) == Some(Kind::Complex);
        let made = if is_complex { op.call(x.py(), &[&tensor]) } else { of_real(&tensor) };
        made.map(Array::new)
    }

    /// The product of matrices, of which there may be many.
    #[pyfunction]
    #[pyo3(signature = (x1, x2, /))]
    pub(super) fn matmul(x1: &Bound<'_, PyAny>, x2: &Bound<'_, PyAny>) -> PyResult<Array> {
        let [left, right] = [array_given(x1, "matmul", "x1")?, array_given(x2, "matmul", "x2")?];
        super::matmul(x1.py(), left.get(), right.get())
    }
}

pub(crate) fn bitwise_invert(py: Python<'_>, x: &Array) -> PyResult<Array> {
    static TRUTHS: Fixed = Fixed::new("Not");
    static BITS: Fixed = Fixed::new("BitwiseNot");
    let x = x.tensor();
    let op = if x.dtype() == Dtype::Bool { &TRUTHS } else { &BITS };
    array_of(py, "bitwise_invert", op.call(py, &[&x]))
}

pub(crate) fn negative(py: Python<'_>, x: &Array) -> PyResult<Array> {
    static NEG: Fixed = Fixed::both("Neg");
    static SUB: Fixed = Fixed::new("Sub");
    let x = x.tensor();
    if !is_unsigned(x.dtype()) {
        return array_of(py, "negative", NEG.call(py, &[&x]));
    }
    let zero = Number::Bool(false).tensor(x.device(), x.dtype())?;
    array_of(py, "negative", SUB.call(py, &[&zero, &x]))
}

pub(crate) fn matmul(py: Python<'_>, x1: &impl AsOperand, x2: &impl AsOperand) -> PyResult<Array> {
    let [x1, x2] = together(py, x1, x2)?;
    array_of(py, "matmul", product(py, &x1, &x2))
}

fn product(py: Python<'_>, x1: &Tensor, x2: &Tensor) -> PyResult<Tensor> {
    static OP: Fixed = Fixed::new("MatMul");
    if x1.dims().is_empty() || x2.dims().is_empty() {
        return Err(PyTypeError::new_err("expected matrices or vectors for `matmul`, found a number"));
    }
    if kind(x1.dtype()) == Some(Kind::Complex) {
        return complex_product(py, x1, x2);
    }
    // The op of ONNX has no kernels for narrow integers, of which sums are taken as wide ones wrap.
    let wide = wide(x1.dtype());
    let made = OP.call(py, &[&cast(py, x1, wide)?, &cast(py, x2, wide)?])?;
    cast(py, &made, x1.dtype())
}

/// Products of the parts: that of ONNX knows no complex numbers.
fn complex_product(py: Python<'_>, x1: &Tensor, x2: &Tensor) -> PyResult<Tensor> {
    static REAL: Fixed = Fixed::own("Real");
    static IMAG: Fixed = Fixed::own("Imag");
    static PRODUCT: Fixed = Fixed::new("MatMul");
    static ADD: Fixed = Fixed::new("Add");
    static SUB: Fixed = Fixed::new("Sub");
    static COMPLEX: Fixed = Fixed::own("Complex");
    let [a, b] = [REAL.call(py, &[x1])?, IMAG.call(py, &[x1])?];
    let [c, d] = [REAL.call(py, &[x2])?, IMAG.call(py, &[x2])?];
    let product = |left: &Tensor, right: &Tensor| PRODUCT.call(py, &[left, right]);
    let real = SUB.call(py, &[&product(&a, &c)?, &product(&b, &d)?])?;
    let imaginary = ADD.call(py, &[&product(&a, &d)?, &product(&b, &c)?])?;
    COMPLEX.call(py, &[&real, &imaginary])
}

fn of_bits(
    py: Python<'_>,
    [x1, x2]: [Tensor; 2],
    truths: &'static Fixed,
    bits: &'static Fixed,
) -> PyResult<Tensor> {
    if x1.dtype() == Dtype::Bool { truths.call(py, &[&x1, &x2]) } else { bits.call(py, &[&x1, &x2]) }
}

fn floats(py: Python<'_>, x: &Tensor) -> PyResult<Tensor> {
    match kind(x.dtype()) {
        Some(Kind::Bool | Kind::Integer) => cast(py, x, default_of(Kind::Float)),
        _ => Ok(x.clone()),
    }
}

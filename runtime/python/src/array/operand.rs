//! The other operand of an expression: an array or a Python number.

use half::{bf16, f16};
use num_complex::Complex;
use oarlock_core::{Device, Dtype, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple,
};

use super::{PyTensor, cast_tensor, scalar_cache};
use crate::error::{OrRaise as _, type_name};
use crate::promote::{self, DtypeKind};

pub(crate) enum ArrayOperand {
    Array(Tensor),
    Number(PythonNumber),
    Text(String),
    /// An array of another library, by its type's name. It is refused here, because that library would raise an unhelpful
    /// error, or return `False` for `==`.
    Foreign(String),
    /// A Python object that is no operand, with the message to raise. It knows nothing of arrays, and Python itself would
    /// only say that the two types do not go together.
    Refused(String),
}

#[derive(Clone, Copy)]
pub(crate) enum PythonNumber {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Complex(f64, f64),
}

impl PythonNumber {
    /// `None` if the object is no number.
    pub(crate) fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Ok(match promote::number_kind(object) {
            None => None,
            Some(DtypeKind::Bool) => Some(Self::Bool(object.extract()?)),
            // Integers of more than 128 bits are out of range for every dtype. Most fit 64 bits, and reading wider ones takes
            // as long as a small op.
            Some(DtypeKind::Integer) => Some(Self::Integer(
                object.extract::<i64>().map_or_else(|_| object.extract().unwrap_or(i128::MAX), i128::from),
            )),
            Some(DtypeKind::Float) => Some(Self::Float(object.extract()?)),
            Some(DtypeKind::Complex) => {
                let (real, imaginary) =
                    (object.getattr("real")?.extract()?, object.getattr("imag")?.extract()?);
                Some(Self::Complex(real, imaginary))
            }
        })
    }

    pub(crate) fn dtype_kind(self) -> DtypeKind {
        match self {
            Self::Bool(_) => DtypeKind::Bool,
            Self::Integer(_) => DtypeKind::Integer,
            Self::Float(_) => DtypeKind::Float,
            Self::Complex(..) => DtypeKind::Complex,
        }
    }

    /// Appends the number as one element; an error if the dtype cannot hold it.
    pub(crate) fn write_element(self, dtype: Dtype, bytes: &mut Vec<u8>) -> PyResult<()> {
        let float = || self.to_float(dtype);
        macro_rules! integer {
            ($ty:ty) => {{
                let whole = self.to_integer(dtype)?;
                let value = <$ty>::try_from(whole).map_err(|_| out_of_range_error(whole, dtype))?;
                bytes.extend(value.to_ne_bytes());
            }};
        }
        match dtype {
            Dtype::Bool => bytes.push(u8::from(match self {
                Self::Complex(real, imaginary) => real != 0.0 || imaginary != 0.0,
                _ => float()? != 0.0,
            })),
            Dtype::I8 => integer!(i8),
            Dtype::U8 => integer!(u8),
            Dtype::I16 => integer!(i16),
            Dtype::U16 => integer!(u16),
            Dtype::I32 => integer!(i32),
            Dtype::U32 => integer!(u32),
            Dtype::I64 => integer!(i64),
            Dtype::U64 => integer!(u64),
            Dtype::F16 => bytes.extend(f16::from_f64(float()?).to_ne_bytes()),
            Dtype::BF16 => bytes.extend(bf16::from_f64(float()?).to_ne_bytes()),
            Dtype::F32 => bytes.extend((float()? as f32).to_ne_bytes()),
            Dtype::F64 => bytes.extend(float()?.to_ne_bytes()),
            Dtype::C64 | Dtype::C128 => {
                let value = match self {
                    Self::Complex(real, imaginary) => Complex::new(real, imaginary),
                    _ => Complex::new(float()?, 0.0),
                };
                if dtype == Dtype::C64 {
                    bytes.extend((value.re as f32).to_ne_bytes());
                    bytes.extend((value.im as f32).to_ne_bytes());
                } else {
                    bytes.extend(value.re.to_ne_bytes());
                    bytes.extend(value.im.to_ne_bytes());
                }
            }
            Dtype::String => {
                return Err(PyTypeError::new_err(
                    "expected a dtype that Python's numbers become, found str\nhint: give text in place of numbers, as in \
                     `oarlock.full(shape, \"\")`",
                ));
            }
            other => {
                let found = other.numpy_name();
                return Err(PyTypeError::new_err(format!(
                    "expected a dtype that Python's numbers become, found {found}\nhint: make an array of another dtype and \
                     convert it with `astype`"
                )));
            }
        }
        Ok(())
    }

    fn to_float(self, dtype: Dtype) -> PyResult<f64> {
        match self {
            Self::Bool(value) => Ok(f64::from(u8::from(value))),
            Self::Integer(value) => Ok(value as f64),
            Self::Float(value) => Ok(value),
            Self::Complex(..) => Err(not_real_error(dtype)),
        }
    }

    fn to_integer(self, dtype: Dtype) -> PyResult<i128> {
        match self {
            Self::Bool(value) => Ok(i128::from(value)),
            Self::Integer(value) => Ok(value),
            Self::Float(value) if value.is_finite() => Ok(value as i128),
            Self::Float(value) => Err(PyOverflowError::new_err(format!(
                "expected a number that {} has, found {value}",
                dtype.numpy_name()
            ))),
            Self::Complex(..) => Err(not_real_error(dtype)),
        }
    }

    /// As a scalar tensor.
    pub(crate) fn to_tensor(self, device: &Device, dtype: Dtype) -> PyResult<Tensor> {
        let mut bytes = Vec::with_capacity(16);
        self.write_element(dtype, &mut bytes)?;
        Tensor::from_bytes(device, dtype, &[], &bytes).or_raise()
    }
}

#[cold]
fn not_real_error(dtype: Dtype) -> PyErr {
    PyTypeError::new_err(format!(
        "expected a real number for {}, found a complex one\nhint: take its `real` part first",
        dtype.numpy_name()
    ))
}

#[cold]
fn out_of_range_error(found: i128, dtype: Dtype) -> PyErr {
    let found = if found == i128::MAX { "one of more bits".to_owned() } else { found.to_string() };
    PyOverflowError::new_err(format!("expected a number that {} has, found {found}", dtype.numpy_name()))
}

impl FromPyObject<'_, '_> for ArrayOperand {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyTensor>() {
            return Ok(Self::Array(array.get().tensor()));
        }
        match PythonNumber::from_object(&object)?
            .map_or_else(|| numpy_scalar(&object), |number| Ok(Some(number)))?
        {
            Some(number) => Ok(Self::Number(number)),
            None if object.is_instance_of::<PyString>() => Ok(Self::Text(object.extract()?)),
            None if object.hasattr("__dlpack__")? => {
                Ok(Self::Foreign(object.get_type().fully_qualified_name()?.to_string()))
            }
            None if is_builtin_object(&object) => Ok(Self::Refused(describe_non_operand(&object))),
            None => Err(PyTypeError::new_err(describe_non_operand(&object))),
        }
    }
}

/// True for Python's built-in types, which have no operators with arrays.
#[cold]
fn is_builtin_object(object: &Bound<'_, PyAny>) -> bool {
    object.is_none()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
        || object.is_exact_instance_of::<PyBytes>()
        || object.is_exact_instance_of::<PyDict>()
        || object.is_exact_instance_of::<PySet>()
        || object.is_exact_instance_of::<PyFrozenSet>()
}

/// The message for an object that is no operand.
#[cold]
fn describe_non_operand(object: &Bound<'_, PyAny>) -> String {
    let hint = if object.is_none() {
        "look where it comes from: a function without `return` gives it"
    } else if object.is_instance_of::<PyDict>() {
        "make an array of its values with `oarlock.asarray(list(….values()))`"
    } else if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
        "make an array of its elements with `oarlock.asarray(list(…))`"
    } else {
        "make it an array with `oarlock.asarray`"
    };
    format!("expected an array or a number, found {}\nhint: {hint}", type_name(object))
}

/// The array argument of a function; errors name it.
#[inline]
pub(crate) fn array_argument<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    function: &str,
    name: &str,
) -> PyResult<&'a Bound<'py, PyTensor>> {
    object.cast::<PyTensor>().map_err(|_| {
        let found = type_name(object);
        PyTypeError::new_err(format!(
            "`{function}` expected an array as `{name}`, found {found}\nhint: make it an array with `oarlock.asarray`"
        ))
    })
}

/// The number, unless the object is a NumPy scalar, which has a dtype of its own.
pub(super) fn python_number(object: &Bound<'_, PyAny>) -> PyResult<Option<PythonNumber>> {
    let Some(number) = PythonNumber::from_object(object)? else { return Ok(None) };
    let is_exact = object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyComplex>();
    // NumPy scalars may be subclasses of Python's numbers.
    Ok(if is_exact || !object.hasattr("dtype")? { Some(number) } else { None })
}

/// The value of a NumPy scalar such as `numpy.float32(2)`; `None` for arrays, which stay arrays.
#[cold]
pub(super) fn numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<PythonNumber>> {
    let is_scalar = object.hasattr("dtype")? && object.hasattr("item")? && !object.hasattr("__dlpack__")?;
    if !is_scalar {
        return Ok(None);
    }
    let item = object.call_method0("item")?;
    if item.hasattr("dtype")? {
        // Neither Python nor any dtype here has the precision of `longdouble`.
        let found = object.get_type().fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!(
            "expected a scalar of a dtype that is known, found `{found}`\nhint: convert it with `float(…)` or `complex(…)`"
        )));
    }
    PythonNumber::from_object(&item)
}

/// Arguments that binary functions accept.
pub(crate) trait AsOperand {
    fn as_operand(&self) -> ArrayOperand;
}

impl AsOperand for PyTensor {
    #[inline]
    fn as_operand(&self) -> ArrayOperand {
        ArrayOperand::Array(self.tensor())
    }
}

impl AsOperand for ArrayOperand {
    #[inline]
    fn as_operand(&self) -> ArrayOperand {
        match self {
            Self::Array(tensor) => Self::Array(tensor.clone()),
            Self::Number(number) => Self::Number(*number),
            Self::Text(text) => Self::Text(text.clone()),
            Self::Foreign(name) => Self::Foreign(name.clone()),
            Self::Refused(told) => Self::Refused(told.clone()),
        }
    }
}

/// Converts two operands to their common dtype.
#[inline]
pub(crate) fn promote_operands(
    py: Python<'_>,
    left: &impl AsOperand,
    right: &impl AsOperand,
) -> PyResult<[Tensor; 2]> {
    match (left.as_operand(), right.as_operand()) {
        (ArrayOperand::Array(left), ArrayOperand::Array(right)) => {
            if left.dtype() == right.dtype() {
                return Ok([left, right]);
            }
            if !left.device().is_same_device(right.device()) {
                return Err(device_mismatch_error(&left, &right));
            }
            let dtype = promote::promote_dtypes(left.dtype(), right.dtype())?;
            Ok([cast_tensor(py, &left, dtype)?, cast_tensor(py, &right, dtype)?])
        }
        (ArrayOperand::Array(array), ArrayOperand::Number(number)) => {
            let (array, number) = promote_number(py, &array, number)?;
            Ok([array, number])
        }
        (ArrayOperand::Number(number), ArrayOperand::Array(array)) => {
            let (array, number) = promote_number(py, &array, number)?;
            Ok([number, array])
        }
        (ArrayOperand::Array(array), ArrayOperand::Text(text)) => {
            let text = text_operand(&array, text)?;
            Ok([array, text])
        }
        (ArrayOperand::Text(text), ArrayOperand::Array(array)) => Ok([text_operand(&array, text)?, array]),
        (ArrayOperand::Refused(told), _) | (_, ArrayOperand::Refused(told)) => {
            Err(PyTypeError::new_err(told))
        }
        (left @ ArrayOperand::Foreign(_), right) | (left, right @ ArrayOperand::Foreign(_)) => {
            let told = |operand| match operand {
                ArrayOperand::Array(_) => "`oarlock.Tensor`".to_owned(),
                ArrayOperand::Number(_) => "a number".to_owned(),
                ArrayOperand::Text(_) => "text".to_owned(),
                ArrayOperand::Foreign(name) => format!("`{name}`"),
                ArrayOperand::Refused(told) => told,
            };
            Err(foreign_operand_error(&format!("{} and {}", told(left), told(right))))
        }
        (
            ArrayOperand::Number(_) | ArrayOperand::Text(_),
            ArrayOperand::Number(_) | ArrayOperand::Text(_),
        ) => Err(PyTypeError::new_err("expected an array among the operands, found none")),
    }
}

#[cold]
pub(super) fn foreign_operand_error(found: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "expected arrays of Oarlock and numbers, found {found}\nhint: make arrays of other libraries into ones with \
         `oarlock.asarray(…)`, which shares their memory where it can"
    ))
}

/// The error for an in-place operator that would change dtype or shape.
#[cold]
pub(super) fn in_place_error(operator: &str, own: &Tensor, made: &Tensor) -> PyErr {
    let told = |tensor: &Tensor| format!("{}{:?}", tensor.dtype().numpy_name(), tensor.dims());
    let message = format!(
        "expected what has the dtype and shape of the array for `{operator}`, {}, found {}\nhint: write `a = a {} b`, which makes a \
         new array",
        told(own),
        told(made),
        operator.trim_end_matches('=')
    );
    let is_shape = own.dtype() == made.dtype();
    if is_shape { PyValueError::new_err(message) } else { PyTypeError::new_err(message) }
}

#[cold]
fn device_mismatch_error(left: &Tensor, right: &Tensor) -> PyErr {
    let (left, right) = (left.device(), right.device());
    PyValueError::new_err(format!(
        "expected arrays on one device, found one on `{left}` and one on `{right}`\nhint: copy one of them with `to_device`"
    ))
}

/// A Python string as a scalar, to use with an array.
pub(super) fn text_operand(array: &Tensor, text: String) -> PyResult<Tensor> {
    if array.dtype() != Dtype::String {
        return Err(PyTypeError::new_err(format!(
            "expected a number or an array beside an array of {}, found text\nhint: convert text with `float(…)` or `int(…)` first",
            array.dtype().numpy_name()
        )));
    }
    Tensor::from_strings(array.device(), &[], vec![text]).or_raise()
}

/// Converts an array and a number to their common dtype.
fn promote_number(py: Python<'_>, array: &Tensor, number: PythonNumber) -> PyResult<(Tensor, Tensor)> {
    let dtype = promote::promote_with_number(array.dtype(), number.dtype_kind())?;
    Ok((cast_tensor(py, array, dtype)?, scalar_cache::scalar_tensor(number, array.device(), dtype)?))
}

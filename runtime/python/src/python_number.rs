//! Numbers of Python, and scalars of NumPy, as operands.

use std::cmp::Ordering;

use half::{bf16, f16};
use num_complex::Complex;
use oarlock_core::{Device, Dtype, Tensor};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};

use crate::error::OrRaise as _;
use crate::promote::{self, DtypeKind};

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
            Some(DtypeKind::Integer) => Some(Self::Integer(match object.extract::<i64>() {
                Ok(number) => number.into(),
                Err(_) => match object.extract() {
                    Ok(number) => number,
                    Err(_) if object.lt(0)? => i128::MIN,
                    Err(_) => i128::MAX,
                },
            })),
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
            Self::Integer(i128::MIN | i128::MAX) => Err(PyOverflowError::new_err(format!(
                "expected a number that {} has, found one of more than 127 bits\nhint: give a float, `float(…)`",
                dtype.numpy_name()
            ))),
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

/// On which side of all integers of a dtype a number is; `None` if the dtype has it, or has no range.
pub(crate) fn number_beyond(number: i128, dtype: Dtype) -> Option<Ordering> {
    let bits = dtype.bits();
    let (least, most) = match promote::dtype_kind(dtype)? {
        DtypeKind::Integer if promote::is_unsigned(dtype) => (0, (1i128 << bits) - 1),
        DtypeKind::Integer => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        _ => return None,
    };
    if number < least { Some(Ordering::Less) } else { (number > most).then_some(Ordering::Greater) }
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
    let found = if matches!(found, i128::MIN | i128::MAX) {
        "one of more bits".to_owned()
    } else {
        found.to_string()
    };
    PyOverflowError::new_err(format!("expected a number that {} has, found {found}", dtype.numpy_name()))
}

/// The number, unless the object is a NumPy scalar, which has a dtype of its own.
pub(crate) fn python_number(object: &Bound<'_, PyAny>) -> PyResult<Option<PythonNumber>> {
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
pub(crate) fn numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<PythonNumber>> {
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

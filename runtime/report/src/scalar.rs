//! Formats single elements and whole tensors for people and for JSON.

use std::borrow::Cow;
use std::fmt;

use half::{bf16, f16};
use oarlock_core::{Dtype, Tensor};
use serde::{Serialize, Serializer};

/// Larger tensors are abbreviated.
const MAX_SHOWN_ELEMENTS: usize = 1000;
/// Indices shown at either end of each dimension of an abbreviated tensor.
const EDGE_ELEMENTS: usize = 3;

/// An element.
#[derive(Clone, Debug, PartialEq)]
pub enum ScalarValue {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// Also holds narrower floats.
    Single(f32),
    /// A float of 64 bits.
    Double(f64),
    /// Real and imaginary part.
    SingleComplex(f32, f32),
    /// Real and imaginary part.
    DoubleComplex(f64, f64),
    /// A string.
    Text(String),
}

/// The elements of a tensor.
pub enum TensorScalars<'a> {
    /// The dtype, the bytes and the number of elements. Borrows the tensor's memory if the host can read it.
    Bytes(Dtype, Cow<'a, [u8]>, usize),
    /// Strings.
    Texts(Vec<String>),
}

impl<'a> TensorScalars<'a> {
    /// Waits for the tensor, then reads or copies its elements.
    pub fn from_tensor(tensor: &'a Tensor) -> Result<Self, oarlock_core::Error> {
        if tensor.dtype() == Dtype::String {
            return Ok(Self::Texts(tensor.to_strings()?));
        }
        let count = usize::try_from(tensor.element_count()).unwrap_or(usize::MAX);
        let bytes = match tensor.host_bytes()? {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(tensor.to_bytes()?),
        };
        Ok(Self::Bytes(tensor.dtype(), bytes, count))
    }

    /// Copies borrowed elements, so that the tensor can be dropped.
    pub fn into_owned(self) -> TensorScalars<'static> {
        match self {
            Self::Bytes(dtype, bytes, count) => TensorScalars::Bytes(dtype, bytes.into_owned().into(), count),
            Self::Texts(texts) => TensorScalars::Texts(texts),
        }
    }

    /// The element at an index.
    pub fn scalar_at(&self, index: usize) -> ScalarValue {
        match self {
            Self::Bytes(dtype, bytes, _) => decode_scalar(*dtype, bytes, index),
            Self::Texts(texts) => ScalarValue::Text(texts[index].clone()),
        }
    }
}

impl Serialize for TensorScalars<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = match self {
            Self::Bytes(_, _, count) => *count,
            Self::Texts(texts) => texts.len(),
        };
        serializer.collect_seq((0..count).map(|index| self.scalar_at(index)))
    }
}

fn decode_scalar(dtype: Dtype, bytes: &[u8], index: usize) -> ScalarValue {
    macro_rules! number {
        ($ty:ty, $at:expr) => {{
            let mut own = [0; size_of::<$ty>()];
            own.copy_from_slice(&bytes[$at * size_of::<$ty>()..][..size_of::<$ty>()]);
            <$ty>::from_ne_bytes(own)
        }};
    }
    let nibble = |index: usize| bytes[index / 2] >> (4 * (index % 2)) & 0xF;
    let quarter = |index: usize| bytes[index / 4] >> (2 * (index % 4)) & 3;
    match dtype {
        Dtype::Bool => ScalarValue::Bool(bytes[index] != 0),
        // Shifting the field to the top of a byte and back sign-extends it.
        Dtype::I2 => ScalarValue::Int(i64::from((quarter(index) << 6).cast_signed() >> 6)),
        Dtype::U2 => ScalarValue::Unsigned(quarter(index).into()),
        Dtype::I4 => ScalarValue::Int(i64::from((nibble(index) << 4).cast_signed() >> 4)),
        Dtype::U4 => ScalarValue::Unsigned(nibble(index).into()),
        Dtype::I8 => ScalarValue::Int(number!(i8, index).into()),
        Dtype::U8 => ScalarValue::Unsigned(bytes[index].into()),
        Dtype::I16 => ScalarValue::Int(number!(i16, index).into()),
        Dtype::U16 => ScalarValue::Unsigned(number!(u16, index).into()),
        Dtype::I32 => ScalarValue::Int(number!(i32, index).into()),
        Dtype::U32 => ScalarValue::Unsigned(number!(u32, index).into()),
        Dtype::I64 => ScalarValue::Int(number!(i64, index)),
        Dtype::U64 => ScalarValue::Unsigned(number!(u64, index)),
        Dtype::F4E2M1 => ScalarValue::Single(decode_small_float(nibble(index), 2, 1, 1)),
        Dtype::F8E4M3 if bytes[index] & 0x7F == 0x7F => ScalarValue::Single(f32::NAN),
        Dtype::F8E4M3 => ScalarValue::Single(decode_small_float(bytes[index], 4, 3, 7)),
        Dtype::F8E4M3Fnuz | Dtype::F8E5M2Fnuz if bytes[index] == 0x80 => ScalarValue::Single(f32::NAN),
        Dtype::F8E4M3Fnuz => ScalarValue::Single(decode_small_float(bytes[index], 4, 3, 8)),
        Dtype::F8E5M2Fnuz => ScalarValue::Single(decode_small_float(bytes[index], 5, 2, 16)),
        Dtype::F8E8M0 if bytes[index] == 0xFF => ScalarValue::Single(f32::NAN),
        Dtype::F8E8M0 => ScalarValue::Single(f32::powi(2.0, i32::from(bytes[index]) - 127)),
        // An E5M2 float is the upper half of an `f16`.
        Dtype::F8E5M2 => ScalarValue::Single(f16::from_bits(u16::from(bytes[index]) << 8).to_f32()),
        Dtype::F16 => ScalarValue::Single(number!(f16, index).to_f32()),
        Dtype::BF16 => ScalarValue::Single(number!(bf16, index).to_f32()),
        Dtype::F32 => ScalarValue::Single(number!(f32, index)),
        Dtype::F64 => ScalarValue::Double(number!(f64, index)),
        Dtype::C64 => ScalarValue::SingleComplex(number!(f32, 2 * index), number!(f32, 2 * index + 1)),
        Dtype::C128 => ScalarValue::DoubleComplex(number!(f64, 2 * index), number!(f64, 2 * index + 1)),
        // Unreachable in practice: strings are read as text.
        Dtype::String => ScalarValue::Text(String::new()),
    }
}

/// Decodes a float of at most 8 bits: sign, exponent biased by `bias`, mantissa.
fn decode_small_float(bits: u8, exponent_bits: u32, mantissa_bits: u32, bias: i32) -> f32 {
    let exponent = i32::from(bits >> mantissa_bits & ((1 << exponent_bits) - 1));
    let fraction = f32::from(bits & ((1 << mantissa_bits) - 1)) / f32::from(1u8 << mantissa_bits);
    let size = match exponent {
        0 => fraction * f32::powi(2.0, 1 - bias),
        _ => (1.0 + fraction) * f32::powi(2.0, exponent - bias),
    };
    if bits >> (exponent_bits + mantissa_bits) == 1 { -size } else { size }
}

impl fmt::Display for ScalarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Single(value) => f.write_str(&shortest_number(value)),
            Self::Double(value) => f.write_str(&shortest_number(value)),
            Self::SingleComplex(real, imaginary) => {
                f.write_str(&format_complex(&shortest_number(real), &shortest_number(imaginary)))
            }
            Self::DoubleComplex(real, imaginary) => {
                f.write_str(&format_complex(&shortest_number(real), &shortest_number(imaginary)))
            }
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// The shortest text that parses back to the same value.
fn shortest_number(value: &impl fmt::Debug) -> String {
    format!("{value:?}").replace("NaN", "nan")
}

fn format_complex(real: &str, imaginary: &str) -> String {
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    format!("{real}{sign}{imaginary}j")
}

impl Serialize for ScalarValue {
    /// Writes infinities and NaN as text, since JSON has no numbers for them.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => value.serialize(serializer),
            Self::Int(value) => value.serialize(serializer),
            Self::Unsigned(value) => value.serialize(serializer),
            Self::Single(value) if value.is_finite() => value.serialize(serializer),
            Self::Double(value) if value.is_finite() => value.serialize(serializer),
            Self::Single(_) | Self::Double(_) => serializer.collect_str(self),
            Self::SingleComplex(real, imaginary) => {
                [Self::Single(*real), Self::Single(*imaginary)].serialize(serializer)
            }
            Self::DoubleComplex(real, imaginary) => {
                [Self::Double(*real), Self::Double(*imaginary)].serialize(serializer)
            }
            Self::Text(text) => text.serialize(serializer),
        }
    }
}

/// Formats elements in nested brackets, as NumPy does. Large tensors are abbreviated.
pub fn format_tensor(scalars: &TensorScalars<'_>, dims: &[i64]) -> String {
    format_tensor_limited(scalars, dims, MAX_SHOWN_ELEMENTS)
}

/// As [`format_tensor`], abbreviating tensors of more than `most` elements.
pub fn format_tensor_limited(scalars: &TensorScalars<'_>, dims: &[i64], most: usize) -> String {
    let dims: Vec<usize> = dims.iter().map(|dim| usize::try_from(*dim).unwrap_or(0)).collect();
    let count: usize = dims.iter().product();
    if count == 0 {
        return "[]".to_owned();
    }
    let picture = TensorFormatter { scalars, dims: &dims, is_cut: count > most };
    let width = picture.widest_element(0, 0);
    let mut text = String::new();
    picture.write_dimension(0, 0, width, &mut text);
    text
}

struct TensorFormatter<'a> {
    scalars: &'a TensorScalars<'a>,
    dims: &'a [usize],
    is_cut: bool,
}

impl TensorFormatter<'_> {
    /// The indices to show of a dimension; `None` stands for the ellipsis.
    fn shown_indices(&self, dim: usize) -> impl Iterator<Item = Option<usize>> {
        let edge = if self.is_cut && dim > 2 * EDGE_ELEMENTS { EDGE_ELEMENTS } else { dim };
        let gap = (edge < dim).then_some(None);
        let behind = if gap.is_some() { dim - edge..dim } else { dim..dim };
        (0..edge).map(Some).chain(gap).chain(behind.map(Some))
    }

    /// Width of the longest shown element, for alignment. `first` is the flat index of this part's first element.
    fn widest_element(&self, depth: usize, first: usize) -> usize {
        let Some(dim) = self.dims.get(depth) else {
            return self.scalars.scalar_at(first).to_string().chars().count();
        };
        let within = |index: usize| self.widest_element(depth + 1, first + index * self.index_stride(depth));
        self.shown_indices(*dim).flatten().map(within).max().unwrap_or(0)
    }

    fn write_dimension(&self, depth: usize, first: usize, width: usize, text: &mut String) {
        let Some(dim) = self.dims.get(depth) else {
            *text += &format!("{:>width$}", self.scalars.scalar_at(first).to_string());
            return;
        };
        let is_innermost = depth + 1 == self.dims.len();
        text.push('[');
        for (place, index) in self.shown_indices(*dim).enumerate() {
            if place > 0 && is_innermost {
                *text += ", ";
            } else if place > 0 {
                *text += &format!(",\n{}", " ".repeat(depth + 1));
            }
            match index {
                Some(index) => {
                    self.write_dimension(depth + 1, first + index * self.index_stride(depth), width, text);
                }
                None => text.push('…'),
            }
        }
        text.push(']');
    }

    /// The number of elements below one index of this dimension.
    fn index_stride(&self, depth: usize) -> usize {
        self.dims[depth + 1..].iter().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_sample(numbers: &[f32], dims: &[i64]) -> String {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        format_tensor(&TensorScalars::Bytes(Dtype::F32, bytes.into(), numbers.len()), dims)
    }

    #[test]
    fn numbers_stand_below_each_other() {
        assert_eq!(format_sample(&[1.0, -2.5, f32::NAN, 1e30], &[2, 2]), "[[ 1.0, -2.5],\n [ nan, 1e30]]");
        assert_eq!(format_sample(&[0.1], &[]), "0.1");
        assert_eq!(format_sample(&[], &[1_000_000_000, 0]), "[]");
    }

    #[test]
    fn a_large_tensor_is_shown_at_its_edges() {
        let numbers: Vec<f32> = (0..2000u16).map(f32::from).collect();
        assert_eq!(format_sample(&numbers, &[2000]), "[   0.0,    1.0,    2.0, …, 1997.0, 1998.0, 1999.0]");
        let matrix = format_sample(&numbers, &[1000, 2]);
        assert!(
            matrix.starts_with("[[   0.0,    1.0],\n") && matrix.contains("],\n …,\n [1994.0"),
            "{matrix}"
        );
    }

    #[test]
    fn elements_of_few_bits_are_decoded() {
        let at = |dtype, bytes: &[u8], index| decode_scalar(dtype, bytes, index).to_string();
        assert_eq!(
            (at(Dtype::I4, &[0x8F], 0), at(Dtype::I4, &[0x8F], 1)),
            ("-1".to_owned(), "-8".to_owned())
        );
        assert_eq!((at(Dtype::U4, &[0x8F], 0), at(Dtype::U4, &[0x8F], 1)), ("15".to_owned(), "8".to_owned()));
        let f8 = [0x00, 0x01, 0x38, 0xB8, 0x7E, 0x7F].map(|bits| at(Dtype::F8E4M3, &[bits], 0));
        assert_eq!(f8, ["0.0", "0.001953125", "1.0", "-1.0", "448.0", "nan"]);
        let f8 = [0x3C, 0x7C, 0xFB].map(|bits| at(Dtype::F8E5M2, &[bits], 0));
        assert_eq!(f8, ["1.0", "inf", "-57344.0"]);
    }

    #[test]
    fn json_writes_nan_and_infinity_as_strings() {
        let scalars = [
            ScalarValue::Single(0.1),
            ScalarValue::Double(f64::NEG_INFINITY),
            ScalarValue::SingleComplex(1.0, f32::NAN),
        ];
        assert_eq!(serde_json::to_string(&scalars).unwrap(), r#"[0.1,"-inf",[1.0,"nan"]]"#);
    }
}

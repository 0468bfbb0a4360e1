//! Single elements of tensors, and whole tensors, as people and programs read them.

use std::borrow::Cow;
use std::fmt;

use half::{bf16, f16};
use oarlock_core::{Dtype, Tensor};
use serde::{Serialize, Serializer};

use crate::problem::Problem;

/// Tensors of more elements are cut short.
const MOST_SHOWN: usize = 1000;
/// How many indices of each dimension are then shown at either end.
const EDGE: usize = 3;

/// One element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    /// Also what has fewer bits.
    Single(f32),
    Double(f64),
    SingleComplex(f32, f32),
    DoubleComplex(f64, f64),
    Text(String),
}

/// The elements of a tensor, on the host.
pub(crate) enum Scalars<'a> {
    /// So many of a dtype; where the host can read them they lie where the tensor has them.
    Bytes(Dtype, Cow<'a, [u8]>, usize),
    Texts(Vec<String>),
}

impl<'a> Scalars<'a> {
    /// Waits for a tensor and fetches its elements.
    pub(crate) fn of(tensor: &'a Tensor) -> Result<Self, Problem> {
        if tensor.dtype() == Dtype::String {
            return Ok(Self::Texts(tensor.to_texts()?));
        }
        let count = usize::try_from(tensor.element_count()).unwrap_or(usize::MAX);
        let bytes = match tensor.host_bytes()? {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(tensor.to_bytes()?),
        };
        Ok(Self::Bytes(tensor.dtype(), bytes, count))
    }

    /// The same without the tensor.
    pub(crate) fn into_owned(self) -> Scalars<'static> {
        match self {
            Self::Bytes(dtype, bytes, count) => Scalars::Bytes(dtype, bytes.into_owned().into(), count),
            Self::Texts(texts) => Scalars::Texts(texts),
        }
    }

    /// One of them.
    pub(crate) fn at(&self, index: usize) -> Scalar {
        match self {
            Self::Bytes(dtype, bytes, _) => scalar(*dtype, bytes, index),
            Self::Texts(texts) => Scalar::Text(texts[index].clone()),
        }
    }
}

impl Serialize for Scalars<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = match self {
            Self::Bytes(_, _, count) => *count,
            Self::Texts(texts) => texts.len(),
        };
        serializer.collect_seq((0..count).map(|index| self.at(index)))
    }
}

/// One element of the bytes of a tensor.
fn scalar(dtype: Dtype, bytes: &[u8], index: usize) -> Scalar {
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
        Dtype::Bool => Scalar::Bool(bytes[index] != 0),
        // The sign is the upper bit of the two or four.
        Dtype::I2 => Scalar::Int(i64::from((quarter(index) << 6).cast_signed() >> 6)),
        Dtype::U2 => Scalar::Unsigned(quarter(index).into()),
        Dtype::I4 => Scalar::Int(i64::from((nibble(index) << 4).cast_signed() >> 4)),
        Dtype::U4 => Scalar::Unsigned(nibble(index).into()),
        Dtype::I8 => Scalar::Int(number!(i8, index).into()),
        Dtype::U8 => Scalar::Unsigned(bytes[index].into()),
        Dtype::I16 => Scalar::Int(number!(i16, index).into()),
        Dtype::U16 => Scalar::Unsigned(number!(u16, index).into()),
        Dtype::I32 => Scalar::Int(number!(i32, index).into()),
        Dtype::U32 => Scalar::Unsigned(number!(u32, index).into()),
        Dtype::I64 => Scalar::Int(number!(i64, index)),
        Dtype::U64 => Scalar::Unsigned(number!(u64, index)),
        Dtype::F4E2M1 => Scalar::Single(small(nibble(index), 2, 1, 1)),
        Dtype::F8E4M3 if bytes[index] & 0x7F == 0x7F => Scalar::Single(f32::NAN),
        Dtype::F8E4M3 => Scalar::Single(small(bytes[index], 4, 3, 7)),
        Dtype::F8E4M3Fnuz | Dtype::F8E5M2Fnuz if bytes[index] == 0x80 => Scalar::Single(f32::NAN),
        Dtype::F8E4M3Fnuz => Scalar::Single(small(bytes[index], 4, 3, 8)),
        Dtype::F8E5M2Fnuz => Scalar::Single(small(bytes[index], 5, 2, 16)),
        Dtype::F8E8M0 if bytes[index] == 0xFF => Scalar::Single(f32::NAN),
        Dtype::F8E8M0 => Scalar::Single(f32::powi(2.0, i32::from(bytes[index]) - 127)),
        // It is the upper half of an `f16`.
        Dtype::F8E5M2 => Scalar::Single(f16::from_bits(u16::from(bytes[index]) << 8).to_f32()),
        Dtype::F16 => Scalar::Single(number!(f16, index).to_f32()),
        Dtype::BF16 => Scalar::Single(number!(bf16, index).to_f32()),
        Dtype::F32 => Scalar::Single(number!(f32, index)),
        Dtype::F64 => Scalar::Double(number!(f64, index)),
        Dtype::C64 => Scalar::SingleComplex(number!(f32, 2 * index), number!(f32, 2 * index + 1)),
        Dtype::C128 => Scalar::DoubleComplex(number!(f64, 2 * index), number!(f64, 2 * index + 1)),
        // Strings are fetched as text.
        Dtype::String => Scalar::Text(String::new()),
    }
}

/// A float with a sign, an exponent, which is that much larger than it means, and a mantissa.
fn small(bits: u8, exponent_bits: u32, mantissa_bits: u32, bias: i32) -> f32 {
    let exponent = i32::from(bits >> mantissa_bits & ((1 << exponent_bits) - 1));
    let fraction = f32::from(bits & ((1 << mantissa_bits) - 1)) / f32::from(1u8 << mantissa_bits);
    let size = match exponent {
        0 => fraction * f32::powi(2.0, 1 - bias),
        _ => (1.0 + fraction) * f32::powi(2.0, exponent - bias),
    };
    if bits >> (exponent_bits + mantissa_bits) == 1 { -size } else { size }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
            Self::Single(value) => f.write_str(&number(value)),
            Self::Double(value) => f.write_str(&number(value)),
            Self::SingleComplex(real, imaginary) => f.write_str(&complex(&number(real), &number(imaginary))),
            Self::DoubleComplex(real, imaginary) => f.write_str(&complex(&number(real), &number(imaginary))),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// The shortest text that means just this number.
fn number(value: &impl fmt::Debug) -> String {
    format!("{value:?}").replace("NaN", "nan")
}

fn complex(real: &str, imaginary: &str) -> String {
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    format!("{real}{sign}{imaginary}j")
}

impl Serialize for Scalar {
    /// What JSON has no numbers for, infinities and NaN, becomes text.
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

/// The elements in brackets, as NumPy shows them: those of a large tensor in part.
pub(crate) fn show(scalars: &Scalars<'_>, dims: &[i64]) -> String {
    show_most(scalars, dims, MOST_SHOWN)
}

/// The same, of tensors of more than so many elements only a part.
pub(crate) fn show_most(scalars: &Scalars<'_>, dims: &[i64], most: usize) -> String {
    let dims: Vec<usize> = dims.iter().map(|dim| usize::try_from(*dim).unwrap_or(0)).collect();
    let count: usize = dims.iter().product();
    if count == 0 {
        return "[]".to_owned();
    }
    let picture = Picture { scalars, dims: &dims, is_cut: count > most };
    let width = picture.widest(0, 0);
    let mut text = String::new();
    picture.draw(0, 0, width, &mut text);
    text
}

/// A tensor on its way to text.
struct Picture<'a> {
    scalars: &'a Scalars<'a>,
    dims: &'a [usize],
    is_cut: bool,
}

impl Picture<'_> {
    /// The indices of a dimension that are shown; nothing stands for those that are not.
    fn shown(&self, dim: usize) -> impl Iterator<Item = Option<usize>> {
        let edge = if self.is_cut && dim > 2 * EDGE { EDGE } else { dim };
        let gap = (edge < dim).then_some(None);
        let behind = if gap.is_some() { dim - edge..dim } else { dim..dim };
        (0..edge).map(Some).chain(gap).chain(behind.map(Some))
    }

    /// The longest text of an element that is shown. `first` is the index of the part's first element among all.
    fn widest(&self, depth: usize, first: usize) -> usize {
        let Some(dim) = self.dims.get(depth) else {
            return self.scalars.at(first).to_string().chars().count();
        };
        let within = |index: usize| self.widest(depth + 1, first + index * self.stride(depth));
        self.shown(*dim).flatten().map(within).max().unwrap_or(0)
    }

    fn draw(&self, depth: usize, first: usize, width: usize, text: &mut String) {
        let Some(dim) = self.dims.get(depth) else {
            *text += &format!("{:>width$}", self.scalars.at(first).to_string());
            return;
        };
        let is_innermost = depth + 1 == self.dims.len();
        text.push('[');
        for (place, index) in self.shown(*dim).enumerate() {
            if place > 0 && is_innermost {
                *text += ", ";
            } else if place > 0 {
                *text += &format!(",\n{}", " ".repeat(depth + 1));
            }
            match index {
                Some(index) => self.draw(depth + 1, first + index * self.stride(depth), width, text),
                None => text.push('…'),
            }
        }
        text.push(']');
    }

    /// How many elements one index of a dimension has.
    fn stride(&self, depth: usize) -> usize {
        self.dims[depth + 1..].iter().product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(numbers: &[f32], dims: &[i64]) -> String {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        show(&Scalars::Bytes(Dtype::F32, bytes.into(), numbers.len()), dims)
    }

    #[test]
    fn numbers_stand_below_each_other() {
        assert_eq!(shown(&[1.0, -2.5, f32::NAN, 1e30], &[2, 2]), "[[ 1.0, -2.5],\n [ nan, 1e30]]");
        assert_eq!(shown(&[0.1], &[]), "0.1");
        assert_eq!(shown(&[], &[1_000_000_000, 0]), "[]");
    }

    #[test]
    fn a_large_tensor_is_shown_at_its_edges() {
        let numbers: Vec<f32> = (0..2000u16).map(f32::from).collect();
        assert_eq!(shown(&numbers, &[2000]), "[   0.0,    1.0,    2.0, …, 1997.0, 1998.0, 1999.0]");
        let matrix = shown(&numbers, &[1000, 2]);
        assert!(
            matrix.starts_with("[[   0.0,    1.0],\n") && matrix.contains("],\n …,\n [1994.0"),
            "{matrix}"
        );
    }

    #[test]
    fn elements_of_few_bits_are_decoded() {
        let at = |dtype, bytes: &[u8], index| scalar(dtype, bytes, index).to_string();
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
    fn json_has_text_for_what_is_no_number_in_it() {
        let scalars =
            [Scalar::Single(0.1), Scalar::Double(f64::NEG_INFINITY), Scalar::SingleComplex(1.0, f32::NAN)];
        assert_eq!(serde_json::to_string(&scalars).unwrap(), r#"[0.1,"-inf",[1.0,"nan"]]"#);
    }
}

//! Ops that create text. A kernel can pass text on but cannot allocate any, so the engine runs these ops on the host.

mod label_encoder;

use half::{bf16, f16};
use oarlock_core::{Attribute, Device, Dtype, Error, Op, Result, Runtime, Tensor, schema, shape};

use super::required_input;
use crate::graph::Node;
use crate::runtime_value::RuntimeValue;

use label_encoder::TextLabelEncoder;

/// True for an op that creates text. If no kernel runs it, use [`run_text_op`].
pub fn creates_text(op: &Op) -> bool {
    matches!(TextOp::from_node(&standalone_node(op)), Ok(Some(_)))
}

/// Calls an op that creates text on the host, as a node of a model would.
pub fn run_text_op(runtime: &Runtime, op: &Op, inputs: &[Option<&Tensor>]) -> Result<Tensor> {
    let kind = TextOp::from_node(&standalone_node(op))?;
    let kind =
        kind.ok_or_else(|| Error::invalid_argument("expected an op that makes new text, found another"))?;
    let inputs: Vec<Option<RuntimeValue>> =
        inputs.iter().map(|input| input.map(|tensor| tensor.clone().into())).collect();
    kind.run(&runtime.device("cpu")?, &inputs)?.as_tensor().cloned()
}

/// A node for an op outside of any graph.
fn standalone_node(op: &Op) -> Node {
    let mut node = Node::new(schema::normalize_domain(op.domain()), op.name(), op.version(), [], []);
    node.attributes = op.attributes().clone();
    node
}

pub(crate) enum TextOp {
    /// `Cast` from numbers to text.
    Cast,
    Concat,
    Labels(TextLabelEncoder),
    Normalize(StringNormalizer),
}

pub(crate) struct StringNormalizer {
    change: CaseChange,
    is_case_sensitive: bool,
    stopwords: Vec<String>,
}

enum CaseChange {
    None,
    Lower,
    Upper,
}

impl TextOp {
    /// Returns `None` for a node that kernels run.
    pub(super) fn from_node(node: &Node) -> Result<Option<Self>> {
        if !node.domain.is_empty() {
            return Ok(TextLabelEncoder::from_node(node)?.map(Self::Labels));
        }
        Ok(match &*node.op {
            "Cast" if node.attributes.get_int("to")? == Some(Dtype::String.onnx_number()) => Some(Self::Cast),
            "StringConcat" => Some(Self::Concat),
            "StringNormalizer" => {
                let change = match node.attributes.get_string("case_change_action")? {
                    None | Some("NONE") => CaseChange::None,
                    Some("LOWER") => CaseChange::Lower,
                    Some("UPPER") => CaseChange::Upper,
                    Some(other) => {
                        return Err(Error::invalid_argument(format!(
                            "expected `NONE`, `LOWER` or `UPPER`, found `{other}`"
                        ))
                        .with_operand("attribute `case_change_action`"));
                    }
                };
                let stopwords = match node.attributes.get("stopwords") {
                    Some(Attribute::Strings(words)) => words.clone(),
                    _ => Vec::new(),
                };
                let is_case_sensitive = node.attributes.get_int("is_case_sensitive")?.unwrap_or(0) != 0;
                Some(Self::Normalize(StringNormalizer { change, is_case_sensitive, stopwords }))
            }
            _ => None,
        })
    }

    pub(super) fn run(&self, host: &Device, inputs: &[Option<RuntimeValue>]) -> Result<RuntimeValue> {
        let first = required_input(inputs, 0)?.as_tensor()?;
        let result = match self {
            Self::Cast => cast_to_text(host, first)?,
            Self::Concat => concatenate_texts(host, first, required_input(inputs, 1)?.as_tensor()?)?,
            Self::Labels(labels) => labels.encode(host, first)?,
            Self::Normalize(normalize) => normalize.normalize(host, first)?,
        };
        Ok(RuntimeValue::Tensor(result))
    }
}

/// Limit on new text from one op. No pool accounts for it, and text that is repeatedly appended to itself would soon take all
/// memory.
const MAX_TEXT_BYTES: u64 = 1 << 30;

/// Formats numbers as NumPy does.
fn cast_to_text(host: &Device, tensor: &Tensor) -> Result<Tensor> {
    fn format_elements<T: oarlock_core::Element>(
        tensor: &Tensor,
        write: impl Fn(T) -> String,
    ) -> Result<Vec<String>> {
        Ok(tensor.to_vec::<T>()?.into_iter().map(write).collect())
    }
    // A lower bound: every number has at least one character. The exact size is known only after formatting.
    check_text_size(tensor.element_count().saturating_mul(size_of::<String>() as u64 + 1))?;
    let texts = match tensor.dtype() {
        Dtype::String => tensor.to_strings(),
        Dtype::Bool => {
            format_elements::<bool>(tensor, |truth| if truth { "True" } else { "False" }.to_owned())
        }
        Dtype::I8 => format_elements::<i8>(tensor, |number| number.to_string()),
        Dtype::U8 => format_elements::<u8>(tensor, |number| number.to_string()),
        Dtype::I16 => format_elements::<i16>(tensor, |number| number.to_string()),
        Dtype::U16 => format_elements::<u16>(tensor, |number| number.to_string()),
        Dtype::I32 => format_elements::<i32>(tensor, |number| number.to_string()),
        Dtype::U32 => format_elements::<u32>(tensor, |number| number.to_string()),
        Dtype::I64 => format_elements::<i64>(tensor, |number| number.to_string()),
        Dtype::U64 => format_elements::<u64>(tensor, |number| number.to_string()),
        Dtype::F32 => format_elements::<f32>(tensor, |number| {
            format_float(number.into(), [format!("{number}"), format!("{number:e}")])
        }),
        Dtype::F64 => format_elements::<f64>(tensor, |number| {
            format_float(number, [format!("{number}"), format!("{number:e}")])
        }),
        Dtype::F16 => format_elements::<f16>(tensor, |number| {
            format_narrow_float(number.into(), |other| f16::from_f32(other).into())
        }),
        Dtype::BF16 => format_elements::<bf16>(tensor, |number| {
            format_narrow_float(number.into(), |other| bf16::from_f32(other).into())
        }),
        other => Err(Error::unimplemented(format!(
            "expected floats of at least 16 bits, integers of whole bytes or bool to be written as text, found {other}"
        ))),
    }?;
    Tensor::from_strings(host, tensor.dims(), texts)
}

/// Formats a number of a narrow dtype with just enough digits to identify it within that dtype.
fn format_narrow_float(number: f32, rounded: impl Fn(f32) -> f32) -> String {
    let written = (0..9).map(|digits| format!("{number:.digits$e}"));
    let is_enough = |text: &String| text.parse().is_ok_and(|other| rounded(other) == number);
    let shortest = written.into_iter().find(is_enough).and_then(|text| text.parse().ok());
    let shortest: f64 = shortest.unwrap_or(number.into());
    format_float(shortest, [format!("{shortest}"), format!("{shortest:e}")])
}

/// Chooses between plain and scientific notation, as NumPy does.
fn format_float(number: f64, [digits, scientific]: [String; 2]) -> String {
    let size = number.abs();
    if number.is_nan() || number.is_infinite() {
        return digits.to_lowercase();
    }
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        return if digits.contains('.') { digits } else { digits + ".0" };
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// Returns an error if one op would create more text than the limit.
pub(super) fn check_text_size(size: u64) -> Result<()> {
    if size <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(Error::resource_exhausted(format!(
        "expected at most {MAX_TEXT_BYTES} bytes of new text, found {size}"
    )))
}

/// Concatenates the texts of two tensors element by element, with broadcasting.
fn concatenate_texts(host: &Device, left: &Tensor, right: &Tensor) -> Result<Tensor> {
    let dims = shape::broadcast_dims(left.dims(), right.dims())?;
    let count = shape::element_count(&dims)?;
    let mut size = count.saturating_mul(size_of::<String>() as u64);
    for tensor in [left, right] {
        let own: usize = tensor.to_strings()?.iter().map(String::len).sum();
        let repeats = count / shape::element_count(tensor.dims())?.max(1);
        size = size.saturating_add(repeats.saturating_mul(own as u64));
    }
    check_text_size(size)?;
    let texts = |tensor: &Tensor| tensor.expand(&dims)?.to_strings();
    let pairs = texts(left)?.into_iter().zip(texts(right)?);
    Tensor::from_strings(host, &dims, pairs.map(|(left, right)| left + &right).collect())
}

impl StringNormalizer {
    /// Removes stop words and changes the case of the rest, in a vector or a matrix of one row.
    fn normalize(&self, host: &Device, tensor: &Tensor) -> Result<Tensor> {
        let lower = |text: &str| if self.is_case_sensitive { text.to_owned() } else { text.to_lowercase() };
        let stopwords: Vec<String> = self.stopwords.iter().map(|word| lower(word)).collect();
        let kept = tensor.to_strings()?.into_iter().filter(|text| !stopwords.contains(&lower(text)));
        let mut texts: Vec<String> = kept
            .map(|text| match self.change {
                CaseChange::None => text,
                CaseChange::Lower => text.to_lowercase(),
                CaseChange::Upper => text.to_uppercase(),
            })
            .collect();
        // The standard represents an empty result by one empty string.
        if texts.is_empty() {
            texts.push(String::new());
        }
        let count = i64::try_from(texts.len()).unwrap_or(i64::MAX);
        let dims = match tensor.dims() {
            [_] => vec![count],
            [1, _] => vec![1, count],
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected a list of texts or one row of them, found the shape {other:?}"
                )));
            }
        };
        Tensor::from_strings(host, &dims, texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_numpy_writes_them() {
        let write = |number: f64| format_float(number, [format!("{number}"), format!("{number:e}")]);
        let numbers = [0.0, -1.0, 0.1, 1e15, 1e16, -2.5e-7, 1e-4, 1e300, f64::NAN, f64::NEG_INFINITY];
        let texts = [
            "0.0",
            "-1.0",
            "0.1",
            "1000000000000000.0",
            "1e+16",
            "-2.5e-07",
            "0.0001",
            "1e+300",
            "nan",
            "-inf",
        ];
        assert_eq!(numbers.map(write), texts);
        let halves = [0.1, 1.5, -1e-5, 65504.0, f32::NAN].map(f16::from_f32);
        let write = |number: f16| format_narrow_float(number.into(), |other| f16::from_f32(other).into());
        assert_eq!(halves.map(write), ["0.1", "1.5", "-1e-05", "65500.0", "nan"]);
    }
}

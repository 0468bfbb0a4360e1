//! Ops that make new text. A kernel can hand on text but has nowhere to put new one, so the engine makes it on the host.

use oarlock_core::{Attribute, Error, Result, Tensor};

use super::control::given;
use crate::datum::Datum;
use crate::environment::Environment;
use crate::graph::Node;

/// An op that makes text.
pub(super) enum TextOp {
    Concat,
    Normalize(Normalize),
}

/// What `StringNormalizer` does.
pub(super) struct Normalize {
    change: Change,
    is_case_sensitive: bool,
    stopwords: Vec<String>,
}

enum Change {
    None,
    Lower,
    Upper,
}

impl TextOp {
    /// The op of a node; nothing for one that kernels run.
    pub(super) fn of(node: &Node) -> Result<Option<Self>> {
        Ok(match &*node.op {
            "StringConcat" => Some(Self::Concat),
            "StringNormalizer" => {
                let change = match node.attributes.string("case_change_action")? {
                    None | Some("NONE") => Change::None,
                    Some("LOWER") => Change::Lower,
                    Some("UPPER") => Change::Upper,
                    Some(other) => {
                        return Err(Error::invalid_argument(format!(
                            "expected `NONE`, `LOWER` or `UPPER`, found `{other}`"
                        ))
                        .of_operand("attribute `case_change_action`"));
                    }
                };
                let stopwords = match node.attributes.get("stopwords") {
                    Some(Attribute::Strings(words)) => words.clone(),
                    _ => Vec::new(),
                };
                let is_case_sensitive = node.attributes.int("is_case_sensitive")?.unwrap_or(0) != 0;
                Some(Self::Normalize(Normalize { change, is_case_sensitive, stopwords }))
            }
            _ => None,
        })
    }

    pub(super) fn run(&self, environment: &Environment, inputs: &[Option<Datum>]) -> Result<Datum> {
        let first = given(inputs, 0)?.tensor()?;
        let made = match self {
            Self::Concat => concat(environment, first, given(inputs, 1)?.tensor()?)?,
            Self::Normalize(normalize) => normalize.run(environment, first)?,
        };
        Ok(Datum::Tensor(made))
    }
}

/// Puts the texts of two tensors, which repeat to one shape, one behind the other.
fn concat(environment: &Environment, left: &Tensor, right: &Tensor) -> Result<Tensor> {
    let dims = repeated(left.dims(), right.dims())?;
    let texts = |tensor: &Tensor| tensor.expand(&dims)?.to_texts();
    let pairs = texts(left)?.into_iter().zip(texts(right)?);
    Tensor::from_texts(&environment.host, &dims, pairs.map(|(left, right)| left + &right).collect())
}

/// The shape that two shapes repeat to.
fn repeated(left: &[i64], right: &[i64]) -> Result<Vec<i64>> {
    let rank = left.len().max(right.len());
    let dim = |dims: &[i64], at: usize| (at + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    let joined = |at: usize| match (dim(left, at), dim(right, at)) {
        (1, other) | (other, 1) => Ok(other),
        (a, b) if a == b => Ok(a),
        _ => Err(Error::invalid_argument(format!(
            "expected shapes that repeat to one, found {left:?} and {right:?}"
        ))),
    };
    (0..rank).map(joined).collect()
}

impl Normalize {
    /// Leaves the stop words out and changes the case of what is left: of a list, or of one row.
    fn run(&self, environment: &Environment, tensor: &Tensor) -> Result<Tensor> {
        let lower = |text: &str| if self.is_case_sensitive { text.to_owned() } else { text.to_lowercase() };
        let stopwords: Vec<String> = self.stopwords.iter().map(|word| lower(word)).collect();
        let kept = tensor.to_texts()?.into_iter().filter(|text| !stopwords.contains(&lower(text)));
        let mut texts: Vec<String> = kept
            .map(|text| match self.change {
                Change::None => text,
                Change::Lower => text.to_lowercase(),
                Change::Upper => text.to_uppercase(),
            })
            .collect();
        // The standard has one empty text stand for none.
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
        Tensor::from_texts(&environment.host, &dims, texts)
    }
}

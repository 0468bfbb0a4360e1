//! What each op is: its operands, their types and its attributes, as ONNX defines them in every version.
//!
//! An op is a domain, a name and the opset since which it is as it is. A model says which opset of a domain it was made
//! for; [`find`] gives the newest schema that is not newer than that. The schemas are data in `schemas`, written by
//! `scripts/generate-schemas` from what ONNX publishes, beside those of the ops that only Oarlock has.

mod attribute;
mod bind;
mod index;
mod operand;
mod parse;
#[cfg(test)]
mod tests;
mod types;

pub use attribute::{AttributeKind, AttributeSchema};
pub use bind::Bound;
pub use operand::{Arity, Formal};
pub use types::{TypeConstraint, TypeSet};

use crate::Result;
use index::index;

/// The domain of ONNX's own ops, for which the empty name stands too.
pub const ONNX: &str = "ai.onnx";

/// An op as it is since a version.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The domain, such as `ai.onnx`.
    pub domain: &'static str,
    /// The name, such as `Add`.
    pub name: &'static str,
    /// The first opset of the domain in which the op is like this.
    pub since_version: u32,
    /// Whether the op is not to be used any more from this version on.
    pub is_deprecated: bool,
    /// The inputs.
    pub inputs: Vec<Formal>,
    /// The outputs.
    pub outputs: Vec<Formal>,
    /// The types that inputs and outputs refer to.
    pub types: Vec<TypeConstraint>,
    /// The attributes, by name.
    pub attributes: Vec<AttributeSchema>,
}

/// The schema of an op as of an opset of its domain.
pub fn find(domain: &str, name: &str, opset: u32) -> Result<&'static Schema> {
    let index = index()?;
    index.find(index.domain(domain)?, name, opset)
}

/// The schema of an op as of the newest opset of its domain.
pub fn latest(domain: &str, name: &str) -> Result<&'static Schema> {
    let index = index()?;
    let domain = index.domain(domain)?;
    index.find(domain, name, domain.newest_opset)
}

/// The schemas of all ops in all versions, by domain, name and version. Each is read when the iterator comes to it.
pub fn all() -> Result<impl Iterator<Item = Result<&'static Schema>>> {
    let index = index()?;
    Ok(index.records.iter().map(|record| record.schema(index)))
}

/// The names of all domains.
pub(crate) fn domains() -> Result<impl Iterator<Item = &'static str>> {
    Ok(index()?.domains.iter().map(|domain| domain.name))
}

/// The newest opset of a domain.
pub fn newest_opset(domain: &str) -> Result<u32> {
    Ok(index()?.domain(domain)?.newest_opset)
}

impl Schema {
    /// The formal input that an input stands for.
    pub fn formal_input(&self, index: usize) -> Option<&Formal> {
        operand::formal_at(&self.inputs, index)
    }

    /// The formal output that an output stands for.
    pub fn formal_output(&self, index: usize) -> Option<&Formal> {
        operand::formal_at(&self.outputs, index)
    }

    /// What messages call an input, such as `input 1 (B)`.
    pub fn operand_name(&self, index: usize) -> String {
        let name = self.formal_input(index).map_or_else(String::new, |formal| format!(" ({})", formal.name));
        format!("input {index}{name}")
    }

    /// The dtypes that a formal operand may have.
    pub fn dtypes(&self, formal: &Formal) -> crate::DtypeSet {
        self.types[formal.type_index].allowed.dtypes()
    }

    /// How many inputs there must be at least, those in between that may be left out included.
    pub fn min_inputs(&self) -> usize {
        operand::fewest(&self.inputs)
    }

    /// How many inputs there may be; `None` for any number.
    pub fn max_inputs(&self) -> Option<usize> {
        operand::most(&self.inputs)
    }

    /// How many outputs there must be at least, those in between that may be left out included.
    pub fn min_outputs(&self) -> usize {
        operand::fewest(&self.outputs)
    }

    /// How many outputs there may be; `None` for any number.
    pub fn max_outputs(&self) -> Option<usize> {
        operand::most(&self.outputs)
    }
}

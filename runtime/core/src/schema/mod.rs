//! What each op is: its operands, their types and its attributes, as ONNX defines them in every version.
//!
//! An op is a domain, a name and the opset since which it is as it is. A model says which opset of a domain it was made
//! for; [`find_schema`] gives the newest schema that is not newer than that. The schemas are data in `schemas`, written by
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
pub use bind::SchemaBinding;
pub use operand::{FormalParameter, OperandArity};
pub use types::{TypeConstraint, TypeSet};

use crate::Result;
use index::schema_index;

/// The domain of ONNX's own ops, for which the empty name stands too.
pub const ONNX_DOMAIN: &str = "ai.onnx";

/// An op as it is since a version.
#[derive(Clone, Debug, PartialEq)]
pub struct OpSchema {
    /// The domain, such as `ai.onnx`.
    pub domain: &'static str,
    /// The name, such as `Add`.
    pub name: &'static str,
    /// The first opset of the domain in which the op is like this.
    pub since_version: u32,
    /// Whether the op is not to be used any more from this version on.
    pub is_deprecated: bool,
    /// The inputs.
    pub inputs: Vec<FormalParameter>,
    /// The outputs.
    pub outputs: Vec<FormalParameter>,
    /// The types that inputs and outputs refer to.
    pub types: Vec<TypeConstraint>,
    /// The attributes, by name.
    pub attributes: Vec<AttributeSchema>,
}

/// The schema of an op as of an opset of its domain.
pub fn find_schema(domain: &str, name: &str, opset: u32) -> Result<&'static OpSchema> {
    let index = schema_index()?;
    index.find_schema(index.find_domain(domain)?, name, opset)
}

/// The schema of an op as of the newest opset of its domain.
pub fn latest_schema(domain: &str, name: &str) -> Result<&'static OpSchema> {
    let index = schema_index()?;
    let domain = index.find_domain(domain)?;
    index.find_schema(domain, name, domain.newest_opset)
}

/// The schemas of all ops in all versions, by domain, name and version. Each is read when the iterator comes to it.
pub fn all_schemas() -> Result<impl Iterator<Item = Result<&'static OpSchema>>> {
    let index = schema_index()?;
    Ok(index.records.iter().map(|record| record.read_schema(index)))
}

/// The names of all domains.
pub(crate) fn domain_names() -> Result<impl Iterator<Item = &'static str>> {
    Ok(schema_index()?.domains.iter().map(|domain| domain.name))
}

/// The newest opset of a domain.
pub fn latest_opset(domain: &str) -> Result<u32> {
    Ok(schema_index()?.find_domain(domain)?.newest_opset)
}

impl OpSchema {
    /// The formal input that an input stands for.
    pub fn formal_input(&self, index: usize) -> Option<&FormalParameter> {
        operand::formal_at(&self.inputs, index)
    }

    /// The formal output that an output stands for.
    pub fn formal_output(&self, index: usize) -> Option<&FormalParameter> {
        operand::formal_at(&self.outputs, index)
    }

    /// What messages call an input, such as `input 1 (B)`.
    pub fn operand_name(&self, index: usize) -> String {
        let name = self.formal_input(index).map_or_else(String::new, |formal| format!(" ({})", formal.name));
        format!("input {index}{name}")
    }

    /// The dtypes that a formal operand may have.
    pub fn allowed_dtypes(&self, formal: &FormalParameter) -> crate::DtypeSet {
        self.types[formal.type_index].allowed.dtypes()
    }

    /// How many inputs there must be at least, those in between that may be left out included.
    pub fn min_inputs(&self) -> usize {
        operand::min_operands(&self.inputs)
    }

    /// How many inputs there may be; `None` for any number.
    pub fn max_inputs(&self) -> Option<usize> {
        operand::max_operands(&self.inputs)
    }

    /// How many outputs there must be at least, those in between that may be left out included.
    pub fn min_outputs(&self) -> usize {
        operand::min_operands(&self.outputs)
    }

    /// How many outputs there may be; `None` for any number.
    pub fn max_outputs(&self) -> Option<usize> {
        operand::max_operands(&self.outputs)
    }
}

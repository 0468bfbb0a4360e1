//! Schemas: the operands, types and attributes of each op, as ONNX defines them in every version.
//!
//! An op is identified by its domain, its name, and its since-version, the opset that introduced its definition. A model
//! states the opset of each domain; [`find_schema`] returns the newest schema up to that opset. The schemas are data in
//! `schemas`: `scripts/generate-schemas` generates ONNX's from its published definitions; the schemas of Oarlock's own
//! ops are written by hand.

mod attribute;
mod call_check;
mod domain;
mod facts;
mod index;
mod operand;
mod parse;
#[cfg(test)]
mod tests;
mod types;

pub use attribute::{ACCURACY_LEVEL, AttributeKind, AttributeSchema};
pub use call_check::CheckedCall;
pub use domain::{
    OARLOCK_DOMAIN, ONNX_DOMAIN, ONNX_ML_DOMAIN, ONNXRUNTIME_DOMAIN, displayed_domain, normalize_domain,
};
pub use facts::OpFact;
pub use index::has_fact;
pub use operand::{FormalParameter, OperandArity};
pub use types::{TypeConstraint, TypeSet};

use crate::Result;
use index::schema_index;

/// The definition of an op since some version.
#[derive(Clone, Debug, PartialEq)]
pub struct OpSchema {
    /// The domain, such as `ai.onnx`.
    pub domain: &'static str,
    /// The name, such as `Add`.
    pub name: &'static str,
    /// The first opset of the domain with this definition.
    pub since_version: u32,
    /// True if the op is deprecated from this version on.
    pub is_deprecated: bool,
    /// The formal inputs; the last one may be variadic.
    pub inputs: Vec<FormalParameter>,
    /// The formal outputs; the last one may be variadic.
    pub outputs: Vec<FormalParameter>,
    /// The types that inputs and outputs refer to by index.
    pub types: Vec<TypeConstraint>,
    /// The attributes, sorted by name.
    pub attributes: Vec<AttributeSchema>,
}

/// Finds the schema of an op in an opset of its domain.
pub fn find_schema(domain: &str, name: &str, opset: u32) -> Result<&'static OpSchema> {
    let index = schema_index()?;
    index.find_schema(index.find_domain(domain)?, name, opset)
}

/// Finds the schema of an op in the newest opset of its domain.
pub fn latest_schema(domain: &str, name: &str) -> Result<&'static OpSchema> {
    let index = schema_index()?;
    let domain = index.find_domain(domain)?;
    index.find_schema(domain, name, domain.newest_opset)
}

/// All schemas in all versions, sorted by domain, name and version. The iterator parses each one when it reaches it.
pub fn all_schemas() -> Result<impl Iterator<Item = Result<&'static OpSchema>>> {
    let index = schema_index()?;
    Ok(index.records.iter().map(|record| record.read_schema(index)))
}

pub(crate) fn domain_names() -> Result<impl Iterator<Item = &'static str>> {
    Ok(schema_index()?.domains.iter().map(|domain| domain.name))
}

/// The newest opset of a domain.
pub fn latest_opset(domain: &str) -> Result<u32> {
    Ok(schema_index()?.find_domain(domain)?.newest_opset)
}

impl OpSchema {
    /// The formal parameter of an actual input.
    pub fn formal_input(&self, index: usize) -> Option<&FormalParameter> {
        operand::formal_at(&self.inputs, index)
    }

    /// The formal parameter of an actual output.
    pub fn formal_output(&self, index: usize) -> Option<&FormalParameter> {
        operand::formal_at(&self.outputs, index)
    }

    /// The name of an input in messages, such as `input 1 (B)`.
    pub fn operand_name(&self, index: usize) -> String {
        let name = self.formal_input(index).map_or_else(String::new, |formal| format!(" ({})", formal.name));
        format!("input {index}{name}")
    }

    /// The dtypes that a formal parameter permits.
    pub fn allowed_dtypes(&self, formal: &FormalParameter) -> crate::DtypeSet {
        self.types[formal.type_index].allowed.dtypes()
    }

    /// The minimum number of inputs, counting optional ones before a required one.
    pub fn min_inputs(&self) -> usize {
        operand::min_operands(&self.inputs)
    }

    /// The maximum number of inputs; `None` if there is no limit.
    pub fn max_inputs(&self) -> Option<usize> {
        operand::max_operands(&self.inputs)
    }

    /// The minimum number of outputs, counting optional ones before a required one.
    pub fn min_outputs(&self) -> usize {
        operand::min_operands(&self.outputs)
    }

    /// The maximum number of outputs; `None` if there is no limit.
    pub fn max_outputs(&self) -> Option<usize> {
        operand::max_operands(&self.outputs)
    }
}

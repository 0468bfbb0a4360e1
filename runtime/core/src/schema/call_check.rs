//! Validates a call against its schema, before dispatch looks for a kernel.

use crate::schema::attribute;
use crate::schema::operand::OperandArity;
use crate::schema::{FormalParameter, OpSchema};
use crate::{Attributes, Dtype, Error, Result};

/// The result of validating a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedCall {
    /// The dtype of each formal output, if schema and inputs determine it. Otherwise the attributes do, or the output
    /// is not a tensor.
    pub outputs: Vec<Option<Dtype>>,
    /// The attributes, converted to the kinds of the schema, with defaults added.
    pub attributes: Attributes,
}

impl OpSchema {
    /// Validates attributes and input dtypes of a call. `None` stands for an input that is left out.
    pub fn check_call(&self, attributes: &Attributes, inputs: &[Option<Dtype>]) -> Result<CheckedCall> {
        self.check_call_without_op(attributes, inputs).map_err(|error| error.with_op(self.name))
    }

    fn check_call_without_op(
        &self,
        attributes: &Attributes,
        inputs: &[Option<Dtype>],
    ) -> Result<CheckedCall> {
        let outputs = self.output_dtypes(inputs)?;
        Ok(CheckedCall { outputs, attributes: self.add_defaults(attributes)? })
    }

    /// Validates only the inputs, and returns the dtypes of the outputs.
    pub(crate) fn output_dtypes(&self, inputs: &[Option<Dtype>]) -> Result<Vec<Option<Dtype>>> {
        self.check_count(inputs)?;
        let variables = self.bound_type_variables(inputs)?;
        let dtype_of = |formal: &FormalParameter| {
            let bound = variables[formal.type_index].map(|(dtype, _)| dtype);
            bound.or_else(|| self.types[formal.type_index].allowed.only_dtype())
        };
        Ok(self.outputs.iter().map(dtype_of).collect())
    }

    /// Validates only the attributes, which do not depend on the inputs.
    pub(crate) fn add_defaults(&self, attributes: &Attributes) -> Result<Attributes> {
        attribute::add_defaults(self, attributes)
    }

    /// The dtype bound to each type variable, and the input that bound it.
    fn bound_type_variables(&self, inputs: &[Option<Dtype>]) -> Result<Vec<Option<(Dtype, usize)>>> {
        let mut variables = vec![None; self.types.len()];
        for (index, dtype) in inputs.iter().enumerate() {
            let (Some(formal), Some(dtype)) = (self.formal_input(index), *dtype) else { continue };
            let blame = |error: Error| error.with_operand(self.operand_name(index));
            self.types[formal.type_index].allowed.check_dtype(dtype).map_err(blame)?;
            if matches!(formal.arity, OperandArity::Variadic { is_mixed: true, .. }) {
                continue;
            }
            let (expected, source) = *variables[formal.type_index].get_or_insert((dtype, index));
            if dtype != expected {
                let source = self.operand_name(source);
                let message = format!("expected {expected} like {source}, found {dtype}");
                return Err(blame(Error::invalid_argument(message).mark_dtype_mismatch()));
            }
        }
        Ok(variables)
    }

    /// Checks that all required inputs are there, and none in excess.
    fn check_count(&self, inputs: &[Option<Dtype>]) -> Result<()> {
        let missing = (0..inputs.len().max(self.inputs.len())).find(|index| {
            let is_given = inputs.get(*index).copied().flatten().is_some();
            !is_given
                && self.formal_input(*index).is_some_and(|formal| match formal.arity {
                    OperandArity::Required => true,
                    OperandArity::Optional => false,
                    // A gap between variadic inputs is an error even if none are required.
                    OperandArity::Variadic { at_least, .. } => *index < inputs.len() || at_least > 0,
                })
        });
        if let Some(index) = missing {
            let error = Error::invalid_argument("expected a tensor, found none");
            return Err(error.with_operand(self.operand_name(index)));
        }
        let (fewest, most, found) = (self.min_inputs(), self.max_inputs(), inputs.len());
        if found >= fewest && most.is_none_or(|most| found <= most) {
            return Ok(());
        }
        let expected = match most {
            None => format!("at least {fewest}"),
            Some(most) if most == fewest => fewest.to_string(),
            Some(most) => format!("{fewest} to {most}"),
        };
        Err(Error::invalid_argument(format!("expected {expected} inputs, found {found}")))
    }
}

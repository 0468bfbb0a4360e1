//! Holds a call to the schema of its op, before anything looks for a kernel.

use crate::schema::attribute;
use crate::schema::operand::OperandArity;
use crate::schema::{FormalParameter, OpSchema};
use crate::{Attributes, Dtype, Error, Result};

/// A call that the schema allows.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaBinding {
    /// The dtype of each formal output, where the schema and the inputs decide it. Where they do not, the attributes
    /// do, or the output is no tensor.
    pub outputs: Vec<Option<Dtype>>,
    /// The attributes, each of the kind the schema has for it, with the defaults of those that were not given.
    pub attributes: Attributes,
}

impl OpSchema {
    /// Checks the attributes and the dtypes of the inputs of a call. An input that is left out is `None`.
    pub fn bind_call(&self, attributes: &Attributes, inputs: &[Option<Dtype>]) -> Result<SchemaBinding> {
        self.bind_without_op(attributes, inputs).map_err(|error| error.with_op(self.name))
    }

    fn bind_without_op(&self, attributes: &Attributes, inputs: &[Option<Dtype>]) -> Result<SchemaBinding> {
        let outputs = self.bind_operands(inputs)?;
        Ok(SchemaBinding { outputs, attributes: self.bind_attributes(attributes)? })
    }

    /// Checks the inputs alone, for the dtypes of the outputs.
    pub(crate) fn bind_operands(&self, inputs: &[Option<Dtype>]) -> Result<Vec<Option<Dtype>>> {
        self.check_count(inputs)?;
        let variables = self.bind_inputs(inputs)?;
        let dtype_of = |formal: &FormalParameter| {
            let bound = variables[formal.type_index].map(|(dtype, _)| dtype);
            bound.or_else(|| self.types[formal.type_index].allowed.only_dtype())
        };
        Ok(self.outputs.iter().map(dtype_of).collect())
    }

    /// Checks the attributes alone. What they are does not depend on the inputs.
    pub(crate) fn bind_attributes(&self, attributes: &Attributes) -> Result<Attributes> {
        attribute::bind_attributes(self, attributes)
    }

    /// What each type variable stands for, and which input says so.
    fn bind_inputs(&self, inputs: &[Option<Dtype>]) -> Result<Vec<Option<(Dtype, usize)>>> {
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

    /// Checks that every input that must be there is, and that there is none too many.
    fn check_count(&self, inputs: &[Option<Dtype>]) -> Result<()> {
        let missing = (0..inputs.len().max(self.inputs.len())).find(|index| {
            let is_given = inputs.get(*index).copied().flatten().is_some();
            !is_given
                && self.formal_input(*index).is_some_and(|formal| match formal.arity {
                    OperandArity::Required => true,
                    OperandArity::Optional => false,
                    // One that is left out between others is missing however many there must be.
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

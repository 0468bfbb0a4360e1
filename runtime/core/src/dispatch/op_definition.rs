//! The definition of an op as a call site has it: name, version, schema and attributes.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::descriptors::AbiAttributes;
use super::fallback::CpuFallback;
use crate::flags::FallbackScope;
use crate::infer::{self, InferenceRequest, TensorFact};
use crate::runtime::Runtime;
use crate::schema::OpSchema;
use crate::{Attributes, Dtype, Error, Result};

/// The limit on outputs for an op without a schema.
pub(super) const MAX_OUTPUTS: usize = 1 << 16;

/// What is the same for all calls of an op.
pub(crate) struct OpDefinition {
    pub(crate) domain: String,
    pub(crate) name: &'static str,
    /// The since-version of its schema; the opset itself for an op without a schema.
    pub(crate) version: u32,
    /// `None` for ops that only a plugin knows.
    pub(crate) schema: Option<&'static OpSchema>,
    pub(crate) attributes: Attributes,
    /// The shape inference rule of this version, if there is one.
    pub(crate) rule: Option<&'static infer::InferenceRule>,
    /// The attributes with the schema's defaults, computed on first use.
    pub(crate) complete_attributes: OnceLock<Result<Arc<AbiAttributes>>>,
    /// Overrides the flag `kernel_fallback`.
    pub(crate) cpu_fallback: Option<CpuFallback>,
}

impl OpDefinition {
    /// The name of an input in messages.
    pub(crate) fn input_name(&self, index: usize) -> String {
        match self.schema {
            Some(schema) => schema.operand_name(index),
            None => format!("input {index}"),
        }
    }

    /// The op's own setting, or the flag's if there is none.
    pub(crate) fn cpu_fallback(&self, runtime: &Runtime) -> CpuFallback {
        let by_flag = || match runtime.flags().kernel_fallback() {
            FallbackScope::Cpu => CpuFallback::WithWarning,
            FallbackScope::Error | FallbackScope::Models => CpuFallback::Never,
        };
        self.cpu_fallback.unwrap_or_else(by_flag)
    }

    /// Infers the outputs of a call; `None` for an op whose shapes only kernels know.
    pub(crate) fn infer_outputs(
        &self,
        inputs: &[Option<TensorFact>],
        outputs: usize,
    ) -> Result<Option<Vec<TensorFact>>> {
        let Some(schema) = self.schema else { return Ok(None) };
        let most = schema.max_outputs().unwrap_or(MAX_OUTPUTS);
        if outputs > most {
            return Err(too_many_outputs(outputs, most));
        }
        let dtypes: SmallVec<[Option<Dtype>; 8]> =
            inputs.iter().map(|input| input.as_ref().map(|fact| fact.dtype)).collect();
        let dtypes = schema.output_dtypes(&dtypes).map_err(|error| error.with_op(self.name))?;
        let complete = self.complete_attributes()?;
        // A variadic output stands for all that are requested.
        let last = dtypes.last().copied().flatten();
        let outputs: SmallVec<[Option<Dtype>; 4]> =
            (0..outputs).map(|index| dtypes.get(index).copied().unwrap_or(last)).collect();
        let inference = InferenceRequest {
            domain: &self.domain,
            op: self.name,
            version: self.version,
            attributes: complete.attributes(),
            inputs,
            outputs: &outputs,
        };
        match self.rule {
            Some(rule) => {
                infer::infer_with_rule(rule, &inference).map(Some).map_err(|error| error.with_op(self.name))
            }
            // Only other versions have rules, which is an error.
            None if infer::has_rule(&self.domain, self.name) => infer::infer_facts(&inference).map(Some),
            None => Ok(None),
        }
    }

    /// The attributes with the schema's defaults.
    pub(crate) fn complete_attributes(&self) -> Result<Arc<AbiAttributes>> {
        let complete = || {
            let attributes = match self.schema {
                Some(schema) => schema.add_defaults(&self.attributes),
                None => Ok(self.attributes.clone()),
            };
            let attributes = attributes.map_err(|error| error.with_op(self.name))?;
            Ok(Arc::new(AbiAttributes::new(attributes)))
        };
        self.complete_attributes.get_or_init(complete).clone()
    }
}

#[cold]
pub(super) fn too_many_outputs(found: usize, most: usize) -> Error {
    Error::invalid_argument(format!("expected at most {most} outputs, found {found}"))
}

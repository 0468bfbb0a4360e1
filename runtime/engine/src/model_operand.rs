//! Inputs and outputs of a model, and whether values are what the model declares.

use std::fmt;
use std::sync::Arc;

use oarlock_core::infer::PartialDim;
use oarlock_core::{Dtype, Error, Result};

use crate::graph::{DeclaredDimension, Graph, GraphValue, ValueId, ValueType};
use crate::passes::value_fact;
use crate::runtime_value::RuntimeValue;

/// An input or output of a model, as the model declares it.
#[derive(Clone, Debug)]
pub struct ModelOperand {
    /// Name in the model; `run_named` takes those of inputs.
    pub name: Arc<str>,
    /// Declared type; dimensions may be symbols or unknown.
    pub declared: ValueType,
}

impl fmt::Display for ModelOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.declared)
    }
}

/// The operands of a model that are these values of its graph.
pub(crate) fn model_operands(graph: &Graph, ids: &[ValueId]) -> Vec<ModelOperand> {
    let slot =
        |value: &GraphValue| ModelOperand { name: value.name.clone(), declared: value.declared.clone() };
    ids.iter().map(|id| slot(graph.value(*id))).collect()
}

/// The outputs that `model` declares. Where it omits a dtype or a shape, or declares a wrong shape, the inferred one is used; `graph` is
/// the same model after the passes.
///
/// # Errors
///
/// If the model declares a dtype that contradicts the inferred one.
pub fn model_outputs(model: &Graph, graph: &Graph) -> Result<Vec<ModelOperand>> {
    let mut outputs = model_operands(model, &model.outputs);
    for (slot, id) in outputs.iter_mut().zip(&graph.outputs) {
        let Some(fact) = value_fact(graph.value(*id)) else { continue };
        if slot.declared == ValueType::Unknown {
            slot.declared = ValueType::Tensor { dtype: None, dims: None };
        }
        let ValueType::Tensor { dtype, dims } = &mut slot.declared else { continue };
        if let Some(declared) = dtype.filter(|declared| *declared != fact.dtype) {
            let message =
                format!("expected {declared}, as the model says, found that its nodes make {}", fact.dtype);
            return Err(Error::invalid_argument(message).with_operand(format!("output `{}`", slot.name)));
        }
        *dtype = Some(fact.dtype);
        let Some(known) = fact.dims else { continue };
        let is_right = |(declared, known): (&DeclaredDimension, &PartialDim)| match (declared, known) {
            (DeclaredDimension::Known(declared), PartialDim::Known(known)) => declared == known,
            _ => true,
        };
        let fits = |dims: &Vec<DeclaredDimension>| {
            dims.len() == known.len() && dims.iter().zip(known.iter()).all(is_right)
        };
        if !dims.as_ref().is_some_and(fits) {
            let truth = known
                .iter()
                .map(|dim| dim.known_size().map_or(DeclaredDimension::Unknown, DeclaredDimension::Known));
            *dims = Some(truth.collect());
        }
    }
    Ok(outputs)
}

impl ModelOperand {
    /// Checks the dtype and shape of a tensor against the declaration. Always succeeds if this is not a tensor or the model
    /// declares nothing about it.
    pub fn check_tensor(&self, dtype: Dtype, dims: &[i64]) -> Result<()> {
        if self.accepts(dtype, dims) {
            Ok(())
        } else {
            Err(mismatched_input(self, describe_tensor(dtype, dims), Some(dtype)))
        }
    }

    #[inline]
    fn accepts(&self, found: Dtype, sizes: &[i64]) -> bool {
        let ValueType::Tensor { dtype, dims } = &self.declared else { return true };
        dtype.is_none_or(|dtype| dtype == found) && dims.as_ref().is_none_or(|dims| matches_dims(dims, sizes))
    }
}

/// Checks an input of a run against its declaration.
#[inline]
pub(crate) fn check_input(slot: &ModelOperand, input: &RuntimeValue) -> Result<()> {
    let is_right = match (&slot.declared, input) {
        (ValueType::Unknown | ValueType::Optional(_), _)
        | (ValueType::Sequence(_), RuntimeValue::Sequence(_)) => true,
        (ValueType::Tensor { .. }, RuntimeValue::Tensor(tensor)) => {
            slot.accepts(tensor.dtype(), tensor.dims())
        }
        _ => false,
    };
    if is_right {
        return Ok(());
    }
    Err(match input {
        RuntimeValue::Tensor(tensor) => {
            mismatched_input(slot, describe_tensor(tensor.dtype(), tensor.dims()), Some(tensor.dtype()))
        }
        other => mismatched_input(slot, other.kind_name().to_owned(), None),
    })
}

fn matches_dims(dims: &[DeclaredDimension], sizes: &[i64]) -> bool {
    let fits = |(dim, size): (&DeclaredDimension, &i64)| {
        if let DeclaredDimension::Known(known) = dim { known == size } else { true }
    };
    dims.len() == sizes.len() && dims.iter().zip(sizes).all(fits)
}

#[cold]
fn mismatched_input(slot: &ModelOperand, found: String, found_dtype: Option<Dtype>) -> Error {
    let error = Error::invalid_argument(format!("expected {}, found {found}", slot.declared))
        .with_operand(format!("input `{}`", slot.name));
    match (&slot.declared, found_dtype) {
        (ValueType::Tensor { dtype: Some(dtype), .. }, Some(found)) if *dtype != found => {
            error.with_advice(format!("convert it to {dtype} first"))
        }
        _ => error,
    }
}

fn describe_tensor(dtype: Dtype, dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("{dtype}[{}]", dims.join(", "))
}

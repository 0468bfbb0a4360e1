//! The functions of a model, and the calls of them that are being inlined.

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::Result;

use super::messages::{AttributeProto, FunctionProto, NodeProto};
use super::opsets::{self, OpsetImports};
use super::{displayed_domain, normalize_domain};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};

/// Functions of a model, by domain, name and overload.
pub(super) struct FunctionTable<'m>(HashMap<(&'m str, &'m str, &'m str), OnnxFunction<'m>>);

/// A function with the opsets that it imports.
#[derive(Clone)]
pub(super) struct OnnxFunction<'m> {
    pub(super) proto: &'m FunctionProto,
    pub(super) opsets: Arc<OpsetImports<'m>>,
}

/// A function call that is being inlined.
pub(super) struct FunctionCall<'m> {
    /// Prefix for names inside the function.
    pub(super) title: String,
    /// Values of the function's attributes in this call.
    pub(super) attributes: HashMap<&'m str, &'m AttributeProto>,
    /// Opsets that the function imports.
    pub(super) opsets: Arc<OpsetImports<'m>>,
    pub(super) function: &'m FunctionProto,
}

impl<'m> FunctionTable<'m> {
    pub(super) fn from_protos(protos: &'m [FunctionProto]) -> Result<Self> {
        let mut functions = HashMap::with_capacity(protos.len());
        for proto in protos {
            let opsets = opsets::read_opset_imports(&proto.opset_import)
                .with_location(|| function_title(proto))?
                .into();
            let key = (normalize_domain(proto.domain()), proto.name(), proto.overload());
            if functions.insert(key, OnnxFunction { proto, opsets }).is_some() {
                return Err(invalid_model("every function once", format!("{} twice", function_title(proto))));
            }
        }
        Ok(Self(functions))
    }

    /// The function that a node calls, if any.
    pub(super) fn find_function(&self, node: &NodeProto) -> Option<OnnxFunction<'m>> {
        let key = (normalize_domain(node.domain()), node.op_type(), node.overload());
        self.0.get(&key).cloned()
    }
}

/// The function as messages name it.
pub(super) fn function_title(function: &FunctionProto) -> String {
    format!(
        "the function {}",
        quote_name(&format!("{}.{}", displayed_domain(normalize_domain(function.domain())), function.name()))
    )
}

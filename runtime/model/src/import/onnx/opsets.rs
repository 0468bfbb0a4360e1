//! Reads the opsets that a model imports.

use std::collections::BTreeMap;

use oarlock_core::{Error, Result, schema};

use super::messages::OperatorSetIdProto;
use super::{displayed_domain, normalize_domain};
use crate::import::error_location::{invalid_model, quote_name};

/// The opset of each domain; ONNX's own is the empty string.
pub(super) type OpsetImports<'m> = BTreeMap<&'m str, u32>;

/// Reads the opset imports of a model or function. Unknown domains may have any version.
pub(super) fn read_opset_imports(imports: &[OperatorSetIdProto]) -> Result<OpsetImports<'_>> {
    let mut opsets = OpsetImports::new();
    for import in imports {
        let domain = normalize_domain(import.domain());
        let newest = schema::latest_opset(domain).unwrap_or(u32::MAX);
        let found = import.version();
        let opset =
            u32::try_from(found).ok().filter(|opset| (1..=newest).contains(opset)).ok_or_else(|| {
                let domain = quote_name(displayed_domain(domain));
                let hint = "a newer Oarlock may know it; or export the model for an older opset";
                Error::unimplemented(format!(
                    "expected an opset of {domain} from 1 to {newest}, found {found}"
                ))
                .with_advice(hint)
            })?;
        if opsets.insert(domain, opset).is_some_and(|other| other != opset) {
            return Err(invalid_model(
                format!("one opset of {}", quote_name(displayed_domain(domain))),
                "two that differ",
            ));
        }
    }
    Ok(opsets)
}

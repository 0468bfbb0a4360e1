//! Which version of which ops a model means.

use std::collections::BTreeMap;

use oarlock_core::{Error, Result, schema};

use super::messages::OperatorSetIdProto;
use super::{domain_of, shown};
use crate::import::place::{quoted, wrong};

/// The opset of each domain; ONNX's own is empty.
pub(super) type Opsets<'m> = BTreeMap<&'m str, u32>;

/// Reads what a model, or a function of one, says about its opsets. Domains that nobody knows may have any.
pub(super) fn read(imports: &[OperatorSetIdProto]) -> Result<Opsets<'_>> {
    let mut opsets = Opsets::new();
    for import in imports {
        let domain = domain_of(import.domain());
        let newest = schema::newest_opset(domain).unwrap_or(u32::MAX);
        let found = import.version();
        let opset =
            u32::try_from(found).ok().filter(|opset| (1..=newest).contains(opset)).ok_or_else(|| {
                let domain = quoted(shown(domain));
                let hint = "a newer Oarlock may know it; or export the model for an older opset";
                Error::unimplemented(format!(
                    "expected an opset of {domain} from 1 to {newest}, found {found}"
                ))
                .hint(hint)
            })?;
        if opsets.insert(domain, opset).is_some_and(|other| other != opset) {
            return Err(wrong(format!("one opset of {}", quoted(shown(domain))), "two that differ"));
        }
    }
    Ok(opsets)
}

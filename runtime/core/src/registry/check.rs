//! Validates kernel entries against the schemas: the op, its versions, the device and the operands must exist.

use oarlock_host::did_you_mean;

use super::{KernelEntry, KernelRegistry};
use crate::dtype::{Dtype, DtypeSet};
use crate::registry::matching::dtype_names;
use crate::schema::{self, FormalParameter, OpSchema, OperandArity, normalize_domain};
use crate::{Error, Result};

/// A kernel entry that is never used, and why.
#[derive(Clone, Debug)]
pub struct KernelProblem {
    /// The entry.
    pub entry: KernelEntry,
    /// The problem: what was expected, and what was found.
    pub error: Error,
}

impl KernelRegistry {
    /// Lists all invalid entries. This parses the schemas of all ops with kernels, which takes a while.
    pub fn find_problems(&self) -> Vec<KernelProblem> {
        let problem = |entry: &KernelEntry| {
            let error = self.check_entry(entry).err()?;
            Some(KernelProblem { entry: entry.clone(), error: error.with_op(&entry.info().op) })
        };
        self.entries.iter().filter_map(problem).collect()
    }

    /// The valid entries of one op.
    pub(crate) fn usable_entries(&self, domain: &str, op: &str) -> impl Iterator<Item = &KernelEntry> {
        self.entries_for_op(domain, op).filter(|entry| self.check_entry(entry).is_ok())
    }

    /// Validates an entry. The result is cached.
    pub(crate) fn check_entry(&self, entry: &KernelEntry) -> Result<()> {
        let error = self.errors[entry.order].get_or_init(|| self.find_entry_error(entry).err());
        error.clone().map_or(Ok(()), Err)
    }

    fn find_entry_error(&self, entry: &KernelEntry) -> Result<()> {
        let info = entry.info();
        let domain = normalize_domain(&info.domain);
        if !self.device_types.contains(&info.device_type) {
            let known =
                self.device_types.iter().map(|known| format!("`{known}`")).collect::<Vec<_>>().join(", ");
            let nearest = did_you_mean(&info.device_type, self.device_types.iter().map(String::as_str));
            return Err(Error::not_found(format!(
                "expected a type of devices that a plugin provides ({known}), found a kernel for `{}`{nearest}",
                info.device_type
            )));
        }
        let Ok(newest) = schema::latest_opset(domain) else {
            // The domain has no schemas, so only the kernels can infer the shapes of their outputs.
            return if entry.kernel_handle().infers_shapes() || info.allocates_outputs {
                Ok(())
            } else {
                let nearest = did_you_mean(domain, schema::domain_names()?);
                Err(Error::precondition_not_met(format!(
                    "expected `infer` of a kernel for an op of the domain `{domain}`, which has no schemas, found none\
                     {nearest}"
                )))
            };
        };
        let schema = schema::find_schema(domain, &info.op, info.version_max.unwrap_or(newest).min(newest))?;
        if info.version_max.is_some_and(|max| max < info.version_min) {
            let (min, max) = (info.version_min, info.version_max.unwrap_or_default());
            return Err(Error::invalid_argument(format!(
                "expected versions in rising order, found {min} to {max}"
            )));
        }
        if schema.since_version < info.version_min {
            let expected = info.version_max.map_or_else(
                || format!("from {} on", info.version_min),
                |max| format!("between {} and {max}", info.version_min),
            );
            return Err(Error::not_found(format!(
                "expected a version of the op {expected}, found {} as the newest",
                schema.since_version
            )));
        }
        check_operands("input", &info.inputs, &schema.inputs, schema)?;
        check_operands("output", &info.outputs, &schema.outputs, schema)
    }
}

fn check_operands(
    side: &str,
    demands: &[oarlock_host::OperandInfo],
    formals: &[FormalParameter],
    schema: &OpSchema,
) -> Result<()> {
    let is_variadic = formals.last().is_some_and(|last| last.arity.is_variadic());
    if demands.len() > formals.len() && !is_variadic {
        let (expected, found) = (formals.len(), demands.len());
        return Err(Error::invalid_argument(format!("expected at most {expected} {side}s, found {found}")));
    }
    let fewest = formals.iter().take_while(|formal| formal.arity == OperandArity::Required).count();
    let is_open = demands.last().is_some_and(|last| last.variadic);
    if demands.len() < fewest && !is_open {
        let found = demands.len();
        return Err(Error::invalid_argument(format!("expected at least {fewest} {side}s, found {found}")));
    }
    for (index, (demand, formal)) in demands.iter().zip(formals).enumerate() {
        let name = || format!("{side} {index} ({})", formal.name);
        if !demand.name.is_empty() && demand.name != formal.name {
            let (expected, found) = (formal.name, &demand.name);
            return Err(Error::invalid_argument(format!("expected the name `{expected}`, found `{found}`"))
                .with_operand(name()));
        }
        let allowed = schema.allowed_dtypes(formal);
        if !Dtype::ALL.iter().any(|dtype| dtype.is_in(DtypeSet(demand.dtypes)) && dtype.is_in(allowed)) {
            let (expected, found) = (dtype_names(allowed.0), dtype_names(demand.dtypes));
            return Err(Error::invalid_argument(format!("expected one of {expected}, found {found}"))
                .with_operand(name()));
        }
    }
    Ok(())
}

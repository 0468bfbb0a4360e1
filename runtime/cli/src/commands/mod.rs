//! The commands, one module each.

pub(crate) mod conformance;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod flags;
pub(crate) mod kernels;
pub(crate) mod model;
pub(crate) mod op;
pub(crate) mod paddle_variables;
pub(crate) mod plugin_check;
pub(crate) mod plugin_index;
pub(crate) mod plugin_manifest;
pub(crate) mod plugin_new;
pub(crate) mod plugin_pack;
pub(crate) mod plugins;
pub(crate) mod replay;
pub(crate) mod shell;
pub(crate) mod suite_report;
pub(crate) mod trust;

use serde::Serialize;

use crate::output::CommandOutput;
use crate::problem::CommandError;

pub(crate) fn print_json(output: &mut CommandOutput, value: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(value).map_err(CommandError::new)?;
    output.write_line(&text);
    Ok(())
}

//! `oarlock plugin index`: a page that lists the plugins in a directory, without running any of them.

use oarlock_plugin_package::PluginIndex;

use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, IndexArguments};
use crate::output::{self, CommandOutput};
use crate::output_file;
use crate::problem::CommandError;
use crate::render::print_labeled;

/// Lists the plugins. A package that cannot be read is a problem of that package, and is named.
pub(crate) fn index_plugins(
    global: &GlobalOptions,
    wish: &IndexArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    output_file::check_output_files(wish.output.as_deref())?;
    let index = PluginIndex::read_directory(&wish.directory).map_err(CommandError::new)?;
    if let Some(page) = &wish.output {
        output_file::write_text_file(page, &index.render_html())?;
    }
    for problem in &index.problems {
        output::print_message(global.color, "error", problem, None);
    }
    if global.json {
        super::print_json(output, &index)?;
    } else {
        for file in &index.files {
            let manifest = &file.manifest;
            let signed = if file.signed { "signed" } else { "not signed" };
            let level = file.support_level.as_deref().unwrap_or("unspecified");
            let text = format!(
                "{} {}, contract {}, {level}, {signed}",
                manifest.name, manifest.version, manifest.contract
            );
            print_labeled(output, &format!("{}: ", file.file), 2, &text);
        }
    }
    Ok(index.problems.is_empty())
}

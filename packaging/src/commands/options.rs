//! `oarlock-pack options`.

use std::error::Error;

use oarlock_matrix::options::{ResolvedOption, ResolvedOptions, resolve_options};
use oarlock_matrix::select::local_capabilities;

use super::MatrixChoice;
use super::say::{self, say};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct OptionsArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// An option such as `WITH_GPU=OFF`; may be given several times
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    options: Vec<String>,
}

pub(crate) fn run(call: &OptionsArguments, json: bool) -> Result<(), Box<dyn Error>> {
    let resolved = resolve_options(&call.choice.read_matrix()?, &call.options, &local_capabilities)?;
    if json {
        say!("{:#}", serde_json::to_value(&resolved)?);
    } else {
        say::print(format_args!("{}", render_options(&resolved)));
    }
    Ok(())
}

/// Lists the meaning of each option, and the resulting wheels.
pub(super) fn render_options(resolved: &ResolvedOptions) -> String {
    let width =
        |of: fn(&ResolvedOption) -> &str| resolved.options.iter().map(|it| of(it).len()).max().unwrap_or(0);
    let (name, value) = (width(|it| it.name), width(|it| &it.value));
    let mut text = String::new();
    for option in &resolved.options {
        let given = if option.is_given { "given" } else { "default" };
        let instead = if option.has_meaning { "" } else { "means nothing here: " };
        text += &format!(
            "{:name$}  {:value$}  {given:7}  {instead}{}\n",
            option.name, option.value, option.means
        );
    }
    text += "\nwheels\n";
    resolved.wheels.iter().fold(text, |text, wheel| format!("{text}  {wheel}\n"))
}

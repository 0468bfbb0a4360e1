//! `oarlock flags --paddle`: lists PaddlePaddle's variables, the flags they set, and replacements for those without effect.

use oarlock_core::flags::{Flags, PaddleEffect, paddle_variables};
use serde::Serialize;

use crate::CommandVerdict;
use crate::arguments::GlobalOptions;
use crate::output::{CommandOutput, NAME_STYLE, NOTABLE_STYLE, QUIET_STYLE};
use crate::problem::CommandError;
use crate::render::print_labeled;

/// Column where facts begin.
const FACT_INDENT: usize = 15;

/// Lists all variables, or one given with or without `FLAGS_`. `flags` suggests a name if there is no such variable.
pub(crate) fn list_paddle_variables(
    global: &GlobalOptions,
    flags: &Flags,
    name: Option<&str>,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let mut rows: Vec<PaddleVariableReport> =
        paddle_variables().into_iter().map(PaddleVariableReport::new).collect();
    if let Some(name) = name {
        rows.retain(|row| row.name == name || row.name.strip_prefix("FLAGS_") == Some(name));
        if rows.is_empty() {
            flags.get(name)?;
            return Err(CommandError::new(format!(
                "expected a variable of PaddlePaddle, found `{name}`, which is a flag of Oarlock alone"
            ))
            .with_hint(format!("`oarlock flags {name}` says what it is")));
        }
    }
    if global.json {
        super::print_json(output, &rows)?;
        return Ok(true);
    }
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            output.write_line("");
        }
        row.print_variable(output);
    }
    Ok(true)
}

#[derive(Serialize)]
struct PaddleVariableReport {
    name: &'static str,
    meaning: &'static str,
    /// The flag for which this is an alias.
    sets: Option<&'static str>,
    /// A replacement, if the variable has no effect.
    instead: Option<&'static str>,
    /// Its value in the environment.
    value: Option<String>,
}

impl PaddleVariableReport {
    fn new((name, effect): (&'static str, PaddleEffect)) -> Self {
        let (meaning, sets, instead) = match effect {
            PaddleEffect::Sets(flag) => (flag.meaning, Some(flag.name), None),
            PaddleEffect::Nothing(variable) => (variable.meaning, None, Some(variable.instead)),
        };
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        Self { name, meaning, sets, instead, value: value.map(|value| value.to_string_lossy().into_owned()) }
    }

    fn print_variable(&self, output: &mut CommandOutput) {
        let name =
            output.paint_text(if self.value.is_some() { NOTABLE_STYLE } else { NAME_STYLE }, self.name);
        output.write_line(&name);
        let facts = [
            ("meaning", Some(self.meaning)),
            ("sets", self.sets),
            ("instead", self.instead),
            ("set to", self.value.as_deref()),
        ];
        for (what, fact) in facts.iter().filter_map(|(what, fact)| Some((what, (*fact)?))) {
            let what = output.paint_text(QUIET_STYLE, &format!("{what:<9}"));
            print_labeled(output, &format!("    {what}  "), FACT_INDENT, fact);
        }
    }
}

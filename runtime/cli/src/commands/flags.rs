//! `oarlock flags`: lists each flag with its values and where the current one comes from.

use oarlock_core::flags::{FlagDefinition, FlagSource, FlagValue};
use serde::Serialize;

use crate::CommandVerdict;
use crate::arguments::GlobalOptions;
use crate::environment_flags;
use crate::output::{CommandOutput, NAME_STYLE, NOTABLE_STYLE, PLAIN_STYLE, QUIET_STYLE};
use crate::render::print_labeled;

/// Column where facts begin.
const FACT_INDENT: usize = 19;

pub(crate) fn list_flags(
    global: &GlobalOptions,
    name: Option<&str>,
    is_paddle: bool,
    output: &mut CommandOutput,
) -> CommandVerdict {
    environment_flags::warn_about_ignored(global.color);
    let flags = environment_flags::flags_from_environment()?;
    if is_paddle {
        return super::paddle_variables::list_paddle_variables(global, &flags, name, output);
    }
    let mut reports: Vec<FlagReport> = flags.list_flags().into_iter().map(FlagReport::new).collect();
    if let Some(name) = name {
        reports.retain(|report| report.matches_name(name));
        if reports.is_empty() {
            // The error of `get` suggests the nearest name.
            flags.get(name)?;
        }
    }
    if global.json {
        super::print_json(output, &reports)?;
        return Ok(true);
    }
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            output.write_line("");
        }
        report.print_flag(output);
    }
    Ok(true)
}

#[derive(Serialize)]
struct FlagReport {
    name: &'static str,
    value: serde_json::Value,
    /// `default`, `program`, or an environment variable.
    source: String,
    default: &'static str,
    meaning: &'static str,
    expected: String,
    variable: String,
    aliases: &'static [&'static str],
    #[serde(skip)]
    text: String,
}

impl FlagReport {
    fn new((flag, value, source): (&'static FlagDefinition, FlagValue, FlagSource)) -> Self {
        Self {
            name: flag.name,
            text: value.to_string(),
            value: match value {
                FlagValue::Bool(value) => value.into(),
                FlagValue::Count(value) => value.into(),
                FlagValue::Fraction(value) => value.into(),
                FlagValue::Choice(value) => value.into(),
                FlagValue::Word(value) => value.into(),
                FlagValue::List(value) => value.into(),
            },
            source: match source {
                FlagSource::Default => "default".to_owned(),
                FlagSource::Environment(variable) => variable,
                FlagSource::Program => "program".to_owned(),
            },
            default: flag.default,
            meaning: flag.meaning,
            expected: flag.kind.to_string(),
            variable: flag.variable_name(),
            aliases: flag.aliases,
        }
    }

    /// True for the flag's name, its variable, or an alias with or without `FLAGS_`.
    fn matches_name(&self, name: &str) -> bool {
        let is_alias = |alias: &&str| *alias == name || alias.strip_prefix("FLAGS_") == Some(name);
        self.name == name || self.variable == name || self.aliases.iter().any(is_alias)
    }

    fn print_flag(&self, output: &mut CommandOutput) {
        let is_default = self.source == "default";
        let value =
            output.paint_text(if is_default { PLAIN_STYLE } else { NOTABLE_STYLE }, or_nothing(&self.text));
        let name = output.paint_text(NAME_STYLE, self.name);
        output.write_line(&format!("{name} = {value}"));
        let facts = [
            ("meaning", self.meaning.to_owned()),
            ("expected", self.expected.clone()),
            ("set by", if is_default { "nobody".to_owned() } else { self.source.clone() }),
            ("default", or_nothing(self.default).to_owned()),
            ("environment", self.variable.clone()),
            ("aliases", self.aliases.join(", ")),
        ];
        for (what, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
            let what = output.paint_text(QUIET_STYLE, &format!("{what:<13}"));
            print_labeled(output, &format!("    {what}  "), FACT_INDENT, fact);
        }
    }
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "(nothing)" } else { text }
}

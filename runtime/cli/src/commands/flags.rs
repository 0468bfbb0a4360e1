//! `oarlock flags`: what can be set, to what it is set, and by whom.

use oarlock_core::flags::{Flag, Source, Value};
use serde::Serialize;

use crate::Verdict;
use crate::arguments::Global;
use crate::output::{NAME, NOTABLE, Output, PLAIN, QUIET};
use crate::render::labelled;
use crate::variables;

/// How far facts stand from the left.
const INDENT: usize = 19;

pub(crate) fn run(global: &Global, name: Option<&str>, is_paddle: bool, output: &mut Output) -> Verdict {
    variables::mention_ignored(global.color);
    let flags = variables::flags()?;
    if is_paddle {
        return super::paddle_variables::run(global, &flags, name, output);
    }
    let mut reports: Vec<Report> = flags.all().into_iter().map(Report::new).collect();
    if let Some(name) = name {
        reports.retain(|report| report.answers_to(name));
        if reports.is_empty() {
            // It knows which name is the nearest.
            flags.get(name)?;
        }
    }
    if global.json {
        super::print_json(output, &reports)?;
        return Ok(true);
    }
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            output.line("");
        }
        report.print(output);
    }
    Ok(true)
}

/// All there is to say about one flag.
#[derive(Serialize)]
struct Report {
    name: &'static str,
    value: serde_json::Value,
    /// `default`, `program`, or the variable of the environment.
    source: String,
    default: &'static str,
    meaning: &'static str,
    expected: String,
    variable: String,
    aliases: &'static [&'static str],
    #[serde(skip)]
    text: String,
}

impl Report {
    fn new((flag, value, source): (&'static Flag, Value, Source)) -> Self {
        Self {
            name: flag.name,
            text: value.to_string(),
            value: match value {
                Value::Bool(value) => value.into(),
                Value::Count(value) => value.into(),
                Value::Fraction(value) => value.into(),
                Value::Choice(value) => value.into(),
                Value::Word(value) => value.into(),
                Value::List(value) => value.into(),
            },
            source: match source {
                Source::Default => "default".to_owned(),
                Source::Environment(variable) => variable,
                Source::Program => "program".to_owned(),
            },
            default: flag.default,
            meaning: flag.meaning,
            expected: flag.kind.to_string(),
            variable: flag.variable(),
            aliases: flag.aliases,
        }
    }

    /// Whether a user means this flag by a name.
    fn answers_to(&self, name: &str) -> bool {
        let is_alias = |alias: &&str| *alias == name || alias.strip_prefix("FLAGS_") == Some(name);
        self.name == name || self.variable == name || self.aliases.iter().any(is_alias)
    }

    fn print(&self, output: &mut Output) {
        let is_default = self.source == "default";
        let value = output.paint(if is_default { PLAIN } else { NOTABLE }, or_nothing(&self.text));
        let name = output.paint(NAME, self.name);
        output.line(&format!("{name} = {value}"));
        let facts = [
            ("meaning", self.meaning.to_owned()),
            ("expected", self.expected.clone()),
            ("set by", if is_default { "nobody".to_owned() } else { self.source.clone() }),
            ("default", or_nothing(self.default).to_owned()),
            ("environment", self.variable.clone()),
            ("aliases", self.aliases.join(", ")),
        ];
        for (what, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
            let what = output.paint(QUIET, &format!("{what:<13}"));
            labelled(output, &format!("    {what}  "), INDENT, fact);
        }
    }
}

fn or_nothing(text: &str) -> &str {
    if text.is_empty() { "(nothing)" } else { text }
}

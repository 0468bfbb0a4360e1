//! `oarlock flags --paddle`: what the variables of PaddlePaddle do here, and what to use instead of those that do nothing.

use oarlock_core::flags::{Flags, PaddleEffect, paddle_variables};
use serde::Serialize;

use crate::Verdict;
use crate::arguments::Global;
use crate::output::{NAME, NOTABLE, Output, QUIET};
use crate::problem::Problem;
use crate::render::labelled;

/// How far facts stand from the left.
const INDENT: usize = 15;

/// Lists all, or the one of this name, with `FLAGS_` or without. `flags` knows what to say where there is none.
pub(crate) fn run(global: &Global, flags: &Flags, name: Option<&str>, output: &mut Output) -> Verdict {
    let mut rows: Vec<Row> = paddle_variables().into_iter().map(Row::new).collect();
    if let Some(name) = name {
        rows.retain(|row| row.name == name || row.name.strip_prefix("FLAGS_") == Some(name));
        if rows.is_empty() {
            flags.get(name)?;
            return Err(Problem::new(format!(
                "expected a variable of PaddlePaddle, found `{name}`, which is a flag of Oarlock alone"
            ))
            .hint(format!("`oarlock flags {name}` says what it is")));
        }
    }
    if global.json {
        super::print_json(output, &rows)?;
        return Ok(true);
    }
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            output.line("");
        }
        row.print(output);
    }
    Ok(true)
}

/// All there is to say about one variable.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    meaning: &'static str,
    /// The flag that it is an alias of.
    sets: Option<&'static str>,
    /// What to use instead, where it has no effect.
    instead: Option<&'static str>,
    /// What it is set to in the environment.
    value: Option<String>,
}

impl Row {
    fn new((name, effect): (&'static str, PaddleEffect)) -> Self {
        let (meaning, sets, instead) = match effect {
            PaddleEffect::Sets(flag) => (flag.meaning, Some(flag.name), None),
            PaddleEffect::Nothing(variable) => (variable.meaning, None, Some(variable.instead)),
        };
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        Self { name, meaning, sets, instead, value: value.map(|value| value.to_string_lossy().into_owned()) }
    }

    fn print(&self, output: &mut Output) {
        let name = output.paint(if self.value.is_some() { NOTABLE } else { NAME }, self.name);
        output.line(&name);
        let facts = [
            ("meaning", Some(self.meaning)),
            ("sets", self.sets),
            ("instead", self.instead),
            ("set to", self.value.as_deref()),
        ];
        for (what, fact) in facts.iter().filter_map(|(what, fact)| Some((what, (*fact)?))) {
            let what = output.paint(QUIET, &format!("{what:<9}"));
            labelled(output, &format!("    {what}  "), INDENT, fact);
        }
    }
}

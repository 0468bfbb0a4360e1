//! `oarlock doctor --bisect`: finds the plugins without which the doctor finds nothing wrong.
//!
//! Each trial is a doctor in a process of its own, which leaves some plugins out. The search halves the plugins, and puts halves
//! together again where it takes several plugins to fail (the algorithm `ddmin` of Zeller and Hildebrandt).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::CommandVerdict;
use crate::arguments::GlobalOptions;
use crate::output::{BAD_STYLE, CommandOutput, GOOD_STYLE};
use crate::problem::CommandError;
use crate::progress::ProgressLine;
use crate::render::print_sentence;
use crate::session::THIS_PROGRAM;
use oarlock_report::text::format_count;

/// A plugin that may be to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SuspectPlugin {
    file: PathBuf,
    /// Its name, if it could be asked.
    name: Option<String>,
}

pub(super) fn bisect_plugins(global: &GlobalOptions, output: &mut CommandOutput) -> CommandVerdict {
    let suspects = list_suspects(global)?;
    let mut bench = TrialBench { global, suspects: &suspects, trials: 0, progress: ProgressLine::default() };
    let finding = bench.search()?;
    bench.progress.clear_line();
    let trials = bench.trials;
    if global.json {
        let (state, culprits) = match &finding {
            BisectionFinding::AllWell => ("well", &[][..]),
            BisectionFinding::FailsWithout => ("fails-without-plugins", &[][..]),
            BisectionFinding::Culprits(culprits) => ("found", &culprits[..]),
        };
        let culprit = |plugin: &SuspectPlugin| json!({ "file": plugin.file.display().to_string(), "name": plugin.name });
        let culprits: Vec<Value> = culprits.iter().map(culprit).collect();
        crate::commands::print_json(
            output,
            &json!({ "finding": state, "culprits": culprits, "plugins": suspects.len(), "trials": trials }),
        )?;
    } else {
        print_finding(&finding, suspects.len(), trials, output);
    }
    Ok(matches!(finding, BisectionFinding::AllWell))
}

enum BisectionFinding {
    /// With all plugins, nothing fails.
    AllWell,
    /// Even without plugins something fails.
    FailsWithout,
    /// These fail, and fewer of them do not.
    Culprits(Vec<SuspectPlugin>),
}

fn print_finding(finding: &BisectionFinding, suspects: usize, trials: u32, output: &mut CommandOutput) {
    let plugins = format_count(suspects, "plugin", "plugins");
    let trials = format_count(trials as usize, "trial", "trials");
    let (style, verdict, hint) = match finding {
        BisectionFinding::AllWell => (
            GOOD_STYLE,
            format!("Nothing fails with {plugins} (1 trial)"),
            "what fails now and then may take several calls of this command".to_owned(),
        ),
        BisectionFinding::FailsWithout => (
            BAD_STYLE,
            format!("No plugin is to blame: something fails without any of {plugins} too ({trials})"),
            "`oarlock doctor` says what".to_owned(),
        ),
        BisectionFinding::Culprits(culprits) => {
            let named = culprits.iter().map(|culprit| match &culprit.name {
                Some(name) => format!("`{name}` (`{}`)", culprit.file.display()),
                None => format!("`{}`", culprit.file.display()),
            });
            let named: Vec<String> = named.collect();
            let only: Vec<String> =
                culprits.iter().map(|culprit| format!("--only {}", culprit.file.display())).collect();
            let verdict = match &named[..] {
                [one] => format!("{one} fails, and nothing fails without it ({trials})"),
                all => format!("Only together these fail: {} ({trials})", all.join(", ")),
            };
            (BAD_STYLE, verdict, format!("`oarlock doctor {}` says how", only.join(" ")))
        }
    };
    let verdict = output.paint_text(style, &verdict);
    output.write_line(&verdict);
    print_sentence(output, 0, &format!("hint: {hint}"));
}

/// The plugins besides those of the program that are used, or would be if they did not fail at the start.
fn list_suspects(global: &GlobalOptions) -> Result<Vec<SuspectPlugin>, CommandError> {
    let report = call_json(global, "plugins", &[])?;
    let report =
        report.ok_or_else(|| CommandError::new("expected a list of the plugins, found no answer"))?;
    let suspect = |row: &Value| {
        let is_used = row["outcome"] == "loaded" || failed_at_start(row);
        let file = row["file"].as_str().filter(|_| is_used && !row["origin"].is_null())?;
        Some(SuspectPlugin { file: file.into(), name: row["name"].as_str().map(str::to_owned) })
    };
    Ok(rows(&report["plugins"]).filter_map(suspect).collect())
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn failed_at_start(row: &Value) -> bool {
    matches!(row["reason"].as_str(), Some("crashed-at-start" | "hung-at-start"))
}

/// Calls this program; `None` if it printed no JSON. It may fail, as the JSON says how.
fn call_json(
    global: &GlobalOptions,
    command: &str,
    without: &[&Path],
) -> Result<Option<Value>, CommandError> {
    let mut child = Command::new(THIS_PROGRAM);
    child.arg(command).arg("--json").args(global.plugin_arguments());
    for file in without {
        child.arg("--without").arg(file);
    }
    let answer = child.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let answer =
        answer.map_err(|error| CommandError::new(format!("a trial could not be started: {error}")))?;
    Ok(serde_json::from_slice(&answer.stdout).ok())
}

struct TrialBench<'a> {
    global: &'a GlobalOptions,
    suspects: &'a [SuspectPlugin],
    trials: u32,
    progress: ProgressLine,
}

impl TrialBench<'_> {
    fn search(&mut self) -> Result<BisectionFinding, CommandError> {
        if !self.fails_with(self.suspects)? {
            return Ok(BisectionFinding::AllWell);
        }
        if self.fails_with(&[])? {
            return Ok(BisectionFinding::FailsWithout);
        }
        minimal_failing(self.suspects, |some| self.fails_with(some)).map(BisectionFinding::Culprits)
    }

    /// True if the doctor finds that something fails with these plugins alone.
    fn fails_with(&mut self, some: &[SuspectPlugin]) -> Result<bool, CommandError> {
        self.trials += 1;
        let (all, some_count) = (self.suspects.len(), some.len());
        self.progress.show_text(&format!("trial {}: {some_count} of {all} plugins …", self.trials));
        let without = self.suspects.iter().filter(|suspect| !some.contains(suspect));
        let without: Vec<&Path> = without.map(|suspect| suspect.file.as_path()).collect();
        let Some(report) = call_json(self.global, "doctor", &without)? else { return Ok(true) };
        let tried = rows(&report["devices"]).chain(rows(&report["together"]));
        let fails = tried.into_iter().any(|device| device["works"] == false);
        Ok(fails || rows(&report["plugins"]).any(failed_at_start))
    }
}

/// A part of `all` that fails, while no part of it with one less does. All of it fails, and nothing at all does not.
fn minimal_failing<T: Clone, E>(
    all: &[T],
    mut fails: impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<Vec<T>, E> {
    let mut failing = all.to_vec();
    let mut pieces = 2;
    'narrow: while failing.len() > 1 {
        let size = failing.len().div_ceil(pieces);
        // With two pieces, what one of them leaves is the other.
        let is_halved = pieces == 2;
        for at in (0..failing.len()).step_by(size) {
            let end = (at + size).min(failing.len());
            if fails(&failing[at..end])? {
                failing = failing[at..end].to_vec();
                pieces = 2;
                continue 'narrow;
            }
        }
        for at in (0..failing.len()).step_by(size).filter(|_| !is_halved) {
            let end = (at + size).min(failing.len());
            let rest = [&failing[..at], &failing[end..]].concat();
            if fails(&rest)? {
                failing = rest;
                pieces = (pieces - 1).max(2);
                continue 'narrow;
            }
        }
        if size == 1 {
            break;
        }
        pieces = (pieces * 2).min(failing.len());
    }
    Ok(failing)
}

impl GlobalOptions {
    /// The arguments that choose plugins, for another call of this program.
    fn plugin_arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let mut add = |option: &str, values: &mut dyn Iterator<Item = OsString>| {
            values.for_each(|value| arguments.extend([option.into(), value]));
        };
        add("--plugin", &mut self.plugins.iter().map(|path| path.clone().into_os_string()));
        add("--layer", &mut self.layers.iter().map(Into::into));
        add("--only", &mut self.only.iter().map(Into::into));
        add("--without", &mut self.without.iter().map(Into::into));
        add("--config", &mut self.config.iter().map(|path| path.clone().into_os_string()));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found among the numbers below `count` if all of `culprits` have to be there to fail, and the number of trials.
    fn find(count: u32, culprits: &[u32]) -> (Vec<u32>, u32) {
        let mut trials = 0;
        let all: Vec<u32> = (0..count).collect();
        let found = minimal_failing(&all, |some| {
            trials += 1;
            Ok::<bool, ()>(culprits.iter().all(|culprit| some.contains(culprit)))
        });
        (found.expect("no trial breaks"), trials)
    }

    #[test]
    fn one_plugin_is_found_by_halving() {
        for count in [1, 2, 7, 64] {
            for culprit in 0..count {
                let (found, trials) = find(count, &[culprit]);
                assert_eq!(found, [culprit]);
                assert!(trials <= 2 * count.next_power_of_two().ilog2() + 1, "{trials} for {count}");
            }
        }
    }

    #[test]
    fn a_pair_and_a_triple_are_found_wherever_they_are() {
        for first in 0..9 {
            for second in first + 1..9 {
                assert_eq!(find(9, &[first, second]).0, [first, second]);
            }
        }
        assert_eq!(find(20, &[0, 9, 19]).0, [0, 9, 19]);
    }
}

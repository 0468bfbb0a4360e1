//! Prints the profile of a run, step by step.

use oarlock_report::step_profile::{ProfileRow, StepProfile};

use crate::output::{CommandOutput, NAME_STYLE, QUIET_STYLE};
use crate::render::{TableCell, TextTable, print_sentence};

/// Steps printed one by one.
const MAX_SHOWN_STEPS: usize = 10;

pub(super) fn print_profile(profile: &StepProfile, output: &mut CommandOutput) {
    let several = profile
        .steps
        .iter()
        .any(|step| profile.steps.first().is_some_and(|first| first.device != step.device));
    let mut table = TextTable::new(0);
    let titles = ["op", "count", "time", "share", "GFLOP/s", "GB/s"];
    table.add_row(titles.map(|title| TableCell::with_style(title, QUIET_STYLE)));
    for row in &profile.ops {
        let op = if several { format!("{} on {}", row.op, row.device) } else { row.op.clone() };
        table.add_row(table_cells(row, op, &row.count.to_string()));
    }
    table.print_table(output);
    let slowest = profile.slowest_steps();
    if slowest.len() > 1 {
        output.write_line("");
        let mut table = TextTable::new(0);
        let all = slowest.len();
        let title = if all > MAX_SHOWN_STEPS { format!("slowest of {all} steps") } else { "step".to_owned() };
        let titles = [title.as_str(), "op", "time", "share", "GFLOP/s", "GB/s", "how"];
        table.add_row(titles.map(|title| TableCell::with_style(title, QUIET_STYLE)));
        for row in slowest.into_iter().take(MAX_SHOWN_STEPS) {
            let how = TableCell::new(row.how.as_deref().unwrap_or_default());
            table.add_row(
                table_cells(row, row.step_label(), &row.op).into_iter().chain([how]).collect::<Vec<_>>(),
            );
        }
        table.print_table(output);
    }
    if let Some(note) = profile.omission_note() {
        print_sentence(output, 0, &note);
    }
}

fn table_cells(row: &ProfileRow, name: impl AsRef<str>, next: &str) -> Vec<TableCell> {
    let rates = row.rate_texts().map(TableCell::new);
    [TableCell::with_style(name, NAME_STYLE), TableCell::new(next)].into_iter().chain(rates).collect()
}

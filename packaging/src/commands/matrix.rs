//! `oarlock-pack matrix`.

use std::error::Error;

use oarlock_matrix::matrix_table::{self, COLUMN_TITLES, TableRow};

use super::say;
use super::{MatrixChoice, count_label};
use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct MatrixArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// Only wheels of this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    #[command(flatten)]
    form: MatrixFormat,
}

/// The output format; a table by default.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct MatrixFormat {
    /// Print one path per line, relative to the host
    #[arg(long)]
    paths: bool,
    /// Print a Markdown table
    #[arg(long)]
    markdown: bool,
    /// Print an HTML page
    #[arg(long)]
    html: bool,
    /// Print the jobs for a CI system, as the `matrix` of a workflow
    #[arg(long)]
    ci: bool,
}

pub(crate) fn run(call: &MatrixArguments, json: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read_matrix()?;
    if let Some(unknown) = call.channel.as_ref().filter(|name| !matrix.channels.contains(name)) {
        return Err(
            format!("expected a channel, one of {}; found `{unknown}`", matrix.channels.join(", ")).into()
        );
    }
    let rows = matrix_table::table_rows(&matrix, call.channel.as_deref());
    let text = match &call.form {
        MatrixFormat { paths: true, .. } => {
            rows.iter().flat_map(|row| &row.paths).fold(String::new(), |text, path| text + path + "\n")
        }
        MatrixFormat { markdown: true, .. } => matrix_table::render_markdown(&rows),
        MatrixFormat { html: true, .. } => matrix_table::render_html("Wheels", &rows),
        MatrixFormat { ci: true, .. } => format!("{:#}\n", matrix_table::ci_jobs(&rows)),
        _ if json => format!("{:#}\n", serde_json::json!({ "host": matrix.host, "wheels": rows })),
        _ => render_table(&rows),
    };
    say::print(format_args!("{text}"));
    Ok(())
}

/// Renders the rows in aligned columns, without empty columns.
fn render_table(rows: &[TableRow<'_>]) -> String {
    let lines: Vec<[String; COLUMN_TITLES.len()]> = std::iter::once(COLUMN_TITLES.map(str::to_owned))
        .chain(rows.iter().map(TableRow::to_cells))
        .collect();
    let says_something =
        |column: &usize| lines[1..].iter().any(|line| !matches!(line[*column].as_str(), "" | "–"));
    let columns: Vec<usize> = (0..COLUMN_TITLES.len()).filter(says_something).collect();
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for line in &lines {
        let cells = columns.iter().map(|column| format!("{:width$}", line[*column], width = width(*column)));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    let wheels: usize = rows.iter().map(|row| row.paths.len()).sum();
    format!("{text}\n{} in {}\n", count_label(wheels, "wheel"), count_label(rows.len(), "row"))
}

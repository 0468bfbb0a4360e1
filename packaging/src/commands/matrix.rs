//! `oarlock-pack matrix`.

use std::error::Error;

use clap::Args;
use oarlock_pack::show::{self, HEAD, Row};

use super::say;
use super::{MatrixChoice, counted};

#[derive(Args, Debug)]
pub(crate) struct Call {
    #[command(flatten)]
    choice: MatrixChoice,
    /// Only what is published in this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    #[command(flatten)]
    form: Form,
}

/// As what the matrix is printed; a table without any of them.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct Form {
    /// Print one path a line, below the host
    #[arg(long)]
    paths: bool,
    /// Print a table of Markdown
    #[arg(long)]
    markdown: bool,
    /// Print a page
    #[arg(long)]
    html: bool,
    /// Print the jobs of a CI system, as the `matrix` of a workflow
    #[arg(long)]
    ci: bool,
}

pub(crate) fn run(call: &Call, json: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read()?;
    if let Some(unknown) = call.channel.as_ref().filter(|name| !matrix.channels.contains(name)) {
        return Err(
            format!("expected a channel, one of {}; found `{unknown}`", matrix.channels.join(", ")).into()
        );
    }
    let rows = show::rows(&matrix, call.channel.as_deref());
    let text = match &call.form {
        Form { paths: true, .. } => {
            rows.iter().flat_map(|row| &row.paths).fold(String::new(), |text, path| text + path + "\n")
        }
        Form { markdown: true, .. } => show::markdown(&rows),
        Form { html: true, .. } => show::html("Wheels", &rows),
        Form { ci: true, .. } => format!("{:#}\n", show::jobs(&rows)),
        _ if json => format!("{:#}\n", serde_json::json!({ "host": matrix.host, "wheels": rows })),
        _ => table(&rows),
    };
    say::print(format_args!("{text}"));
    Ok(())
}

/// The rows with columns of one width, without those that say nothing.
fn table(rows: &[Row<'_>]) -> String {
    let lines: Vec<[String; HEAD.len()]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(Row::cells)).collect();
    let says_something =
        |column: &usize| lines[1..].iter().any(|line| !matches!(line[*column].as_str(), "" | "–"));
    let columns: Vec<usize> = (0..HEAD.len()).filter(says_something).collect();
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for line in &lines {
        let cells = columns.iter().map(|column| format!("{:width$}", line[*column], width = width(*column)));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    let wheels: usize = rows.iter().map(|row| row.paths.len()).sum();
    format!("{text}\n{} in {}\n", counted(wheels, "wheel"), counted(rows.len(), "row"))
}

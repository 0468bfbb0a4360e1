//! Renders a matrix as a table, as Markdown, as HTML, and as CI jobs.

use crate::html::{escape_html, render_page};
use crate::{MatrixAxis, MatrixRow, WheelMatrix};
use serde::Serialize;

/// A row of the table: wheels that only differ in Python.
#[derive(Debug, Serialize)]
pub struct TableRow<'a> {
    /// The channel that publishes them.
    pub channel: &'a str,
    /// The name of the row.
    pub label: &'a str,
    /// The platform that they are for.
    pub platform: Option<&'a str>,
    /// The device that they have kernels for.
    pub device: Option<&'a str>,
    /// The version of the device's software stack.
    pub accelerator: Option<&'a str>,
    /// The library for matrix products.
    pub blas: Option<&'a str>,
    /// The instruction set of the CPU.
    pub isa: Option<&'a str>,
    /// Interpreter and ABI of each wheel.
    pub python: Vec<&'a str>,
    /// The name for pip.
    pub distribution: &'a str,
    /// Their version; without it, pip may choose another row.
    pub version: String,
    /// The names of their parts.
    pub parts: &'a [String],
    /// The obstacle to building them.
    pub planned: Option<&'a str>,
    /// A remark for users.
    pub note: Option<&'a str>,
    /// The path of each wheel below the host.
    pub paths: Vec<String>,
}

/// The rows of one channel or of all channels, in the order of the matrix.
#[must_use]
pub fn table_rows<'a>(matrix: &'a WheelMatrix, channel: Option<&str>) -> Vec<TableRow<'a>> {
    let mut rows: Vec<TableRow<'a>> = Vec::new();
    for wheel in matrix.wheels.iter().filter(|wheel| channel.is_none_or(|it| it == wheel.channel)) {
        let python = wheel.name.python.as_str();
        match rows.last_mut().filter(|row| row.channel == wheel.channel && row.label == wheel.label) {
            Some(row) => {
                row.python.push(python);
                row.paths.push(wheel.file_path());
            }
            None => rows.push(table_row(wheel, python)),
        }
    }
    rows
}

fn table_row<'a>(wheel: &'a MatrixRow, python: &'a str) -> TableRow<'a> {
    let on = |axis: MatrixAxis| wheel.combination.get(&axis).map(String::as_str);
    TableRow {
        channel: &wheel.channel,
        label: &wheel.label,
        platform: on(MatrixAxis::Platform),
        device: on(MatrixAxis::Device),
        accelerator: on(MatrixAxis::Accelerator),
        blas: on(MatrixAxis::Blas),
        isa: on(MatrixAxis::Isa),
        python: vec![python],
        distribution: &wheel.name.distribution,
        version: wheel.name.version.to_string(),
        parts: &wheel.parts,
        planned: wheel.planned.as_deref(),
        note: wheel.note.as_deref(),
        paths: vec![wheel.file_path()],
    }
}

/// The titles of the columns.
pub const COLUMN_TITLES: [&str; 10] =
    ["channel", "wheel", "platform", "device", "accelerator", "BLAS", "CPU", "Python", "install as", "note"];

impl TableRow<'_> {
    /// The cells of the columns.
    #[must_use]
    pub fn to_cells(&self) -> [String; 10] {
        let or_dash = |value: Option<&str>| value.unwrap_or("–").to_owned();
        [
            self.channel.to_owned(),
            self.label.to_owned(),
            or_dash(self.platform),
            or_dash(self.device),
            or_dash(self.accelerator),
            or_dash(self.blas),
            or_dash(self.isa),
            self.python.join(" "),
            format!("{}=={}", self.distribution, self.version),
            match self.planned {
                Some(why) => format!("planned: {why}"),
                None => self.note.unwrap_or_default().to_owned(),
            },
        ]
    }
}

/// Renders the rows as a Markdown table.
#[must_use]
pub fn render_markdown(rows: &[TableRow<'_>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&COLUMN_TITLES.map(str::to_owned)) + &line(&COLUMN_TITLES.map(|_| "---".to_owned()));
    for row in rows {
        text += &line(&row.to_cells().map(|cell| cell.replace('|', "\\|")));
    }
    text
}

/// Renders the rows as an HTML page.
#[must_use]
pub fn render_html(title: &str, rows: &[TableRow<'_>]) -> String {
    let line = |tag: &str, cells: &[String]| {
        cells
            .iter()
            .fold("<tr>".to_owned(), |text, cell| format!("{text}<{tag}>{}</{tag}>", escape_html(cell)))
            + "</tr>\n"
    };
    let head = line("th", &COLUMN_TITLES.map(str::to_owned));
    let rows: String = rows.iter().map(|row| line("td", &row.to_cells())).collect();
    render_page(
        title,
        PAGE_STYLE,
        &format!("<table>\n<thead>{head}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n"),
    )
}

const PAGE_STYLE: &str = "\
:root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 80rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: left; vertical-align: top }
th { position: sticky; top: 0; background: Canvas }
";

/// The `matrix` of a CI workflow, with a job for each row that can be built.
#[must_use]
pub fn ci_jobs(rows: &[TableRow<'_>]) -> serde_json::Value {
    let built: Vec<&TableRow<'_>> = rows.iter().filter(|row| row.planned.is_none()).collect();
    serde_json::json!({ "include": built })
}

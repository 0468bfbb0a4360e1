//! The report as text and as an HTML page.

use std::fmt::Write as _;

use crate::plugin_report::PluginLoadRow;

/// The table as text, with a sum.
pub(crate) fn text_table(rows: &[PluginLoadRow], host: &str) -> String {
    let mut text = format!("{host}\n\n");
    let width =
        |of: fn(&PluginLoadRow) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let (packages, identities) = (width(|row| &row.package), width(|row| &row.identity));
    for row in rows {
        let PluginLoadRow { package, identity, contract, refusal, .. } = row;
        let state = if row.loads { "loads " } else { "FAILS " };
        let rest = refusal.as_ref().unwrap_or(contract);
        _ = writeln!(text, "{state} {package:<packages$}  {identity:<identities$}  {rest}");
    }
    _ = writeln!(text, "\n{}", sum_of(rows));
    text
}

/// The same as a page.
pub(crate) fn html_page(rows: &[PluginLoadRow], host: &str) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Plugins that load</title>\n\
         <style>body {{ font-family: sans-serif }} td, th {{ padding: 0.2em 0.8em; text-align: left; vertical-align: top }} \
         .fails {{ background: #fdd }}</style></head>\n<body><h1>Plugins that load</h1>\n<p>{}. {}.</p>\n<table>\n\
         <tr><th>package<th>file<th>plugin<th>contract<th>result\n",
        escape_html(host),
        sum_of(rows)
    );
    for row in rows {
        let class = if row.loads { "" } else { " class=\"fails\"" };
        let result = row.refusal.as_deref().unwrap_or("loads");
        let cells = [&row.package, &row.file, &row.identity, &row.contract, result].map(escape_html);
        _ = writeln!(page, "<tr{class}><td>{}", cells.join("<td>"));
    }
    page.push_str("</table></body></html>\n");
    page
}

fn sum_of(rows: &[PluginLoadRow]) -> String {
    let loaded = rows.iter().filter(|row| row.loads).count();
    format!("{loaded} of {} plugins load", rows.len())
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

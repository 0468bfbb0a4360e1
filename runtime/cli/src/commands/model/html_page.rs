//! Self-contained HTML pages: nothing is fetched, and no script runs.

use std::fmt::{self, Write as _};

use oarlock_host::sanitize_text;

/// Style sheet for light and dark mode.
const PAGE_STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1c2430;--quiet:#66707d;--paper:#fff;--line:#d8dde3;--one:#2b6cb0;--two:#d9822b;--fill:#eef2f7}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ee;--quiet:#98a2af;--paper:#14181f;--line:#333b46;--one:#6aa9e9;--two:#f0a75b;--fill:#1f2630}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;max-width:72rem;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}
table{border-collapse:collapse;margin:.5rem 0}th,td{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}th{color:var(--quiet);font-weight:600}
.wide{overflow-x:auto}.quiet{color:var(--quiet)}svg{max-width:none}svg text{fill:var(--ink);font:12px system-ui,sans-serif}
svg .quiet{fill:var(--quiet)}svg .axis{stroke:var(--line)}svg .one{fill:var(--one)}svg .two{fill:var(--two)}code{font-size:.92em}
summary{cursor:pointer;padding:.15rem 0}svg a:hover rect{stroke-width:2}";

pub(super) fn render_page(title: &str, body: &str) -> String {
    let title = escape_html(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{PAGE_STYLE}\n</style>\n<h1>{title}</h1>\n{body}</html>\n"
    )
}

pub(super) fn escape_html(text: &str) -> String {
    let mut escaped = String::new();
    for sign in sanitize_text(text).chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            sign => escaped.push(sign),
        }
    }
    escaped
}

pub(super) fn push_formatted(page: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    _ = page.write_fmt(text);
}

/// Adds a table; columns marked as numbers are aligned to the right.
pub(super) fn push_table(page: &mut String, titles: &[(&str, ColumnAlignment)], rows: &[Vec<String>]) {
    page.push_str("<div class=\"wide\"><table>\n");
    if titles.iter().any(|(title, _)| !title.is_empty()) {
        page.push_str("<tr>");
        titles.iter().for_each(|(title, align)| {
            push_formatted(page, format_args!("<th{}>{}</th>", align.css_class(), escape_html(title)));
        });
        page.push_str("</tr>\n");
    }
    for row in rows {
        page.push_str("<tr>");
        for (cell, (_, align)) in row.iter().zip(titles) {
            push_formatted(page, format_args!("<td{}>{}</td>", align.css_class(), escape_html(cell)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnAlignment {
    Left,
    Right,
}

impl ColumnAlignment {
    fn css_class(self) -> &'static str {
        if self == Self::Right { " class=\"number\"" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_a_model_is_shown_and_never_obeyed() {
        assert_eq!(escape_html("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
        let mut body = String::new();
        push_table(&mut body, &[("a", ColumnAlignment::Left)], &[vec!["<b>".to_owned()]]);
        assert!(body.contains("<td>&lt;b&gt;</td>"), "{body}");
    }
}

//! Text in HTML.

/// A text that stands in a page or in the value of an attribute.
pub(crate) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A part of an address. Of what names of wheels have, `+` alone may not stand in one: some servers take it for a space.
pub(crate) fn encode_path(path: &str) -> String {
    path.replace('+', "%2B")
}

/// A page of this title, with a stylesheet that may be empty.
pub(crate) fn render_page(title: &str, style: &str, body: &str) -> String {
    let title = escape_html(title);
    let style = if style.is_empty() { String::new() } else { format!("<style>\n{style}</style>\n") };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"pypi:repository-version\" content=\"1.1\">\n<title>{title}</title>\n{style}</head>\n\
         <body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    )
}

//! HTML output.

/// Escapes text for element content and attribute values.
pub fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Encodes a part of a URL. Of the characters in wheel names only `+` needs it: some servers decode it as a space.
pub fn encode_path(path: &str) -> String {
    path.replace('+', "%2B")
}

/// A page with a title and an optional stylesheet.
pub fn render_page(title: &str, style: &str, body: &str) -> String {
    let title = escape_html(title);
    let style = if style.is_empty() { String::new() } else { format!("<style>\n{style}</style>\n") };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"pypi:repository-version\" content=\"1.1\">\n<title>{title}</title>\n{style}</head>\n\
         <body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    )
}

//! Text in pages and files that have markup.

use std::fmt::{self, Write as _};

/// Displays text with the special characters of HTML and XML escaped.
pub(crate) struct EscapedMarkup<'a>(pub(crate) &'a str);

impl fmt::Display for EscapedMarkup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

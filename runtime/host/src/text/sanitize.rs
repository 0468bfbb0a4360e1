//! Makes untrusted text safe to print: it cannot control a terminal or reorder the text next to it.

use std::fmt::Write as _;

/// Escapes all non-printing characters: control characters, line and paragraph separators, and format characters, such as those
/// that change the writing direction.
pub fn sanitize_text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            // Writing to a string cannot fail.
            _ = write!(clean, "{}", character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// True for separators of lines or paragraphs, and for the format characters of Unicode.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_something_is_escaped_and_what_shows_something_stays() {
        assert_eq!(sanitize_text("Größe 8 µm, 東京 `x` \"y\""), "Größe 8 µm, 東京 `x` \"y\"");
        assert_eq!(sanitize_text("a\u{1b}[31m\r\n\tb\u{9b}"), r"a\u{1b}[31m\r\n\tb\u{9b}");
        for foreign in
            ["\u{202e}", "\u{2066}", "\u{2069}", "\u{200e}", "\u{2028}", "\u{2029}", "\u{feff}", "\u{e0041}"]
        {
            let clean = sanitize_text(foreign);
            assert!(clean.is_ascii() && clean.starts_with(r"\u{"), "{clean}");
        }
    }
}

//! Names of plugins, libraries and packages.

/// Limit on the length of names.
const MAX_NAME_LENGTH: usize = 64;

/// Accepts up to 64 letters, digits, `_`, `-`, `.` and the characters of `more`.
pub(crate) fn check_name(text: &str, more: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c) || more.contains(c);
    if !text.is_empty() && text.len() <= MAX_NAME_LENGTH && text.chars().all(allowed) {
        return Ok(());
    }
    let found = text.chars().take(MAX_NAME_LENGTH).collect::<String>();
    let more: String = more.chars().map(|c| format!(", `{c}`")).collect();
    let rule = format!("expected 1 to {MAX_NAME_LENGTH} letters, digits, `_`, `-`, `.`{more}");
    Err(format!("{rule}, found `{}`", found.escape_debug()))
}

//! Checks names and other texts of a plugin, and copies them.

#![expect(unsafe_code, reason = "texts lie behind pointers that a plugin gave")]

use oarlock_abi as abi;

use crate::foreign_struct::RuleBreach;
use crate::sanitize_text;

/// Limit on names (rule E-4).
const MAX_NAME_LENGTH: u64 = 64;

/// Checks and copies a name (rule E-4).
///
/// # Safety
///
/// The text is readable.
pub(crate) unsafe fn checked_name(text: abi::Str, what: &str) -> Result<String, RuleBreach> {
    let expected = format!("a name of {what} with 1 to {MAX_NAME_LENGTH} letters, digits, `-`, `_` and `.`");
    if text.size == 0 || text.size > MAX_NAME_LENGTH {
        return Err(RuleBreach::new("E-4", expected, format!("{} bytes", text.size)));
    }
    // SAFETY: the caller vouches for the text.
    let Some(bytes) = (unsafe { text.bytes() }) else {
        return Err(RuleBreach::new("S-5", expected, "a null pointer"));
    };
    match std::str::from_utf8(bytes) {
        Ok(name) if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) => {
            Ok(name.to_owned())
        }
        Ok(name) => Err(RuleBreach::new("E-4", expected, format!("`{}`", name.escape_debug()))),
        Err(_) => Err(RuleBreach::new(
            "S-5",
            expected,
            format!("bytes that are not UTF-8, `{}`", bytes.escape_ascii()),
        )),
    }
}

/// Checks any other text (rule S-5) and makes it safe to print.
///
/// # Safety
///
/// The text is readable.
pub(crate) unsafe fn checked_text(text: abi::Str, what: &str, longest: u64) -> Result<String, RuleBreach> {
    let expected = format!("a {what} of at most {longest} bytes of UTF-8");
    if text.size > longest {
        return Err(RuleBreach::new("S-5", expected, format!("{} bytes", text.size)));
    }
    // SAFETY: the caller vouches for the text.
    match unsafe { text.text() } {
        Some(text) => Ok(sanitize_text(text)),
        None if text.data.is_null() => Err(RuleBreach::new("S-5", expected, "a null pointer")),
        None => Err(RuleBreach::new("S-5", expected, "bytes that are not UTF-8")),
    }
}

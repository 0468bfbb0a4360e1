//! Parses TOML files that people write, and reports errors in one line.

use serde::de::DeserializeOwned;

use crate::text::suggestion::did_you_mean;

/// Parses `bytes` as TOML; the error is one line that names the line of the file.
pub(crate) fn parse_toml<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        format!("line {}: bytes that are not UTF-8", line_number(&bytes[..error.valid_up_to()]))
    })?;
    toml::from_str(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let hint =
            split_unknown_key(&message).map_or_else(String::new, |(key, known)| did_you_mean(key, known));
        match error.span() {
            Some(span) => {
                format!("line {}: {message}{hint}", line_number(&bytes[..span.start.min(bytes.len())]))
            }
            None => format!("{message}{hint}"),
        }
    })
}

fn line_number(before: &[u8]) -> usize {
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// Splits serde's message, since it is the only source of the unknown key and the known ones. They are between backticks.
fn split_unknown_key(message: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let quoted =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"))?;
    let (key, known) = quoted.split_once('`')?;
    Some((key, known.split('`').skip(1).step_by(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SampleTable {
        #[expect(dead_code, reason = "only its name matters")]
        package: Option<String>,
    }

    #[test]
    fn an_error_names_its_line_and_the_key_that_was_meant() {
        let error = parse_toml::<SampleTable>(b"# a\n\npackge = 'x'").unwrap_err();
        assert_eq!(error, "line 3: unknown field `packge`, expected `package`; did you mean `package`");
        assert!(parse_toml::<SampleTable>(b"package = 'x").unwrap_err().starts_with("line 1: "));
        assert_eq!(parse_toml::<SampleTable>(b"\n\xff").unwrap_err(), "line 2: bytes that are not UTF-8");
    }
}

//! The error type of this crate.

use std::fmt;

/// An error message that states what was expected, what was found and in which file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    file: Option<String>,
    message: String,
}

impl Error {
    /// An error without a file.
    pub fn new(message: impl Into<String>) -> Self {
        Self { file: None, message: message.into() }
    }

    /// Attributes the error to a file.
    pub fn in_file(self, file: impl fmt::Display) -> Self {
        Self { file: Some(file.to_string()), ..self }
    }

    /// Attributes the error to a part of a file; the file itself is added later.
    pub fn in_part(self, part: impl fmt::Display) -> Self {
        Self::new(format!("`{part}`: {self}"))
    }

    /// An error of the TOML parser, with its line.
    pub fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let line = error
            .span()
            .and_then(|span| text.get(..span.start))
            .map(|before| before.matches('\n').count() + 1);
        let place = line.map_or_else(String::new, |line| format!("line {line}: "));
        Self::new(format!("{place}{}", error.message())).in_file(file)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "`{file}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

/// I/O errors keep the system's message.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// The names most similar to a wrong one, in backticks. Each candidate comes with the form to compare.
pub fn nearest_names<'n>(wrong: &str, names: impl Iterator<Item = (String, &'n str)>) -> Vec<String> {
    let mut near: Vec<(usize, &str)> =
        names.map(|(form, name)| (strsim::levenshtein(wrong, &form), name)).collect();
    near.sort_unstable();
    near.dedup();
    let near = near.into_iter().take_while(|(distance, _)| *distance <= wrong.len() / 3).take(3);
    near.map(|(_, name)| format!("`{name}`")).collect()
}

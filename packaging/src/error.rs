//! Why something could not be made.

use std::fmt;

/// A sentence that says what was expected and what was found, with the file it was found in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    file: Option<String>,
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { file: None, message: message.into() }
    }

    /// The same, said of a file.
    pub(crate) fn in_file(self, file: impl fmt::Display) -> Self {
        Self { file: Some(file.to_string()), ..self }
    }

    /// The same, said of a part of a file that is named later.
    pub(crate) fn in_part(self, part: impl fmt::Display) -> Self {
        Self::new(format!("`{part}`: {self}"))
    }

    /// Of a text that cannot be read.
    pub(crate) fn from_toml(file: &str, text: &str, error: &toml::de::Error) -> Self {
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

/// Of what the machine says about a file.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// Of names, each with the form in which it is compared, those that look most like one that there is not, in backticks.
pub(crate) fn nearest_names<'n>(wrong: &str, names: impl Iterator<Item = (String, &'n str)>) -> Vec<String> {
    let mut near: Vec<(usize, &str)> =
        names.map(|(form, name)| (strsim::levenshtein(wrong, &form), name)).collect();
    near.sort_unstable();
    near.dedup();
    let near = near.into_iter().take_while(|(distance, _)| *distance <= wrong.len() / 3).take(3);
    near.map(|(_, name)| format!("`{name}`")).collect()
}

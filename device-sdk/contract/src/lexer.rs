//! Splits the text of a contract into tokens.

use crate::ContractError;

/// A token and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A line of a `///` comment.
    Doc(String),
    /// A name, a number, or the number of a rule such as `M-2`.
    Word(String),
    /// Quoted text.
    Text(String),
    /// Punctuation; `->` becomes `>`.
    Mark(char),
    /// The end of the file.
    End,
}

impl std::fmt::Display for TokenKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Doc(_) => f.write_str("a comment"),
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Mark(mark) => write!(f, "`{mark}`"),
            Self::End => f.write_str("the end of the file"),
        }
    }
}

pub(crate) fn tokenize(source: &str) -> Result<Vec<Token>, ContractError> {
    let mut tokens = Vec::new();
    for (index, text) in source.lines().enumerate() {
        let line = index + 1;
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let (kind, length) = if let Some(doc) = rest.strip_prefix("///") {
                (TokenKind::Doc(doc.trim().to_owned()), rest.len())
            } else if rest.starts_with("//") {
                break;
            } else if rest.starts_with("->") {
                (TokenKind::Mark('>'), 2)
            } else if let Some(quoted) = rest.strip_prefix('"') {
                let end = quoted
                    .find('"')
                    .ok_or_else(|| ContractError::new(line, "a closing `\"`", "the end of the line"))?;
                (TokenKind::Text(quoted[..end].to_owned()), end + 2)
            } else if first.is_ascii_alphanumeric() || first == '_' {
                let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (TokenKind::Word(rest[..end].to_owned()), end)
            } else if "{}():,=*|".contains(first) {
                (TokenKind::Mark(first), 1)
            } else {
                return Err(ContractError::new(line, "a word, text or punctuation", format!("`{first}`")));
            };
            tokens.push(Token { kind, line });
            rest = rest[length..].trim_start();
        }
    }
    tokens.push(Token { kind: TokenKind::End, line: source.lines().count() });
    Ok(tokens)
}

//! The values of flags, and their text form.

use std::fmt;

/// The values that a flag accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlagKind {
    /// `true` or `false`, or one of the usual synonyms.
    Bool,
    /// A whole number of at least 0.
    Count,
    /// A whole number from 0 to this one.
    BoundedCount(u64),
    /// A number of bytes, with an optional unit such as `MiB`.
    Bytes,
    /// A number from 0 to 1.
    Fraction,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One word, or none.
    Word,
    /// Words separated by commas.
    List,
    /// Pairs of an op and one of its outputs, such as `Div:C`, separated by commas.
    Pairs,
}

/// The value of a flag.
#[derive(Clone, Debug, PartialEq)]
pub enum FlagValue {
    /// Of a [`FlagKind::Bool`].
    Bool(bool),
    /// Of a [`FlagKind::Count`], a [`FlagKind::BoundedCount`] or a [`FlagKind::Bytes`].
    Count(u64),
    /// Of a [`FlagKind::Fraction`].
    Fraction(f64),
    /// Of a [`FlagKind::Choice`].
    Choice(&'static str),
    /// Of a [`FlagKind::Word`].
    Word(String),
    /// Of a [`FlagKind::List`] or a [`FlagKind::Pairs`].
    List(Vec<String>),
}

impl FlagKind {
    /// Parses a value. The error states what was expected.
    pub(super) fn parse_value(self, text: &str) -> Result<FlagValue, String> {
        let text = text.trim();
        let value = match self {
            Self::Bool => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "on" | "yes" => Some(FlagValue::Bool(true)),
                "0" | "false" | "off" | "no" => Some(FlagValue::Bool(false)),
                _ => None,
            },
            Self::Count => text.parse().ok().map(FlagValue::Count),
            Self::BoundedCount(most) => {
                text.parse().ok().filter(|count| *count <= most).map(FlagValue::Count)
            }
            Self::Bytes => parse_bytes(text).map(FlagValue::Count),
            Self::Fraction => {
                text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction)).map(FlagValue::Fraction)
            }
            Self::Choice(choices) => {
                choices.iter().find(|choice| **choice == text).map(|choice| FlagValue::Choice(choice))
            }
            Self::Word => Some(text)
                .filter(|text| !text.contains([' ', ',']))
                .map(|text| FlagValue::Word(text.to_owned())),
            Self::List => Some(FlagValue::List(split_words(text).map(str::to_owned).collect())),
            Self::Pairs => {
                split_words(text).map(parse_pair).collect::<Option<Vec<String>>>().map(FlagValue::List)
            }
        };
        value.ok_or_else(|| self.to_string())
    }
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Parses a pair such as `Div:C`, and strips spaces around its parts.
fn parse_pair(text: &str) -> Option<String> {
    let (op, output) = text.split_once(':').map(|(op, output)| (op.trim(), output.trim()))?;
    (!op.is_empty() && !output.is_empty()).then(|| format!("{op}:{output}"))
}

/// Parses a number of bytes such as `512`, `512MiB` or `2 GiB`.
fn parse_bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

impl fmt::Display for FlagKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("`true` or `false`"),
            Self::Count => f.write_str("a whole number of at least 0"),
            Self::BoundedCount(most) => write!(f, "a whole number from 0 to {most}"),
            Self::Bytes => f.write_str("a number of bytes such as `512MiB`"),
            Self::Fraction => f.write_str("a number from 0 to 1"),
            Self::Word => f.write_str("one word, or none"),
            Self::List => f.write_str("words with commas between them"),
            Self::Pairs => f.write_str("pairs such as `Div:C` with commas between them"),
            Self::Choice(choices) => match choices {
                [all @ .., last] if !all.is_empty() => {
                    let all: Vec<String> = all.iter().map(|choice| format!("`{choice}`")).collect();
                    write!(f, "{} or `{last}`", all.join(", "))
                }
                choices => write!(f, "`{}`", choices.concat()),
            },
        }
    }
}

impl fmt::Display for FlagValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Count(value) => value.fmt(f),
            Self::Fraction(value) => value.fmt(f),
            Self::Choice(value) => f.write_str(value),
            Self::Word(word) => f.write_str(word),
            Self::List(words) => f.write_str(&words.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_may_have_a_unit() {
        let parse = |text| FlagKind::Bytes.parse_value(text);
        assert_eq!(parse("512"), Ok(FlagValue::Count(512)));
        assert_eq!(parse("2 GiB"), Ok(FlagValue::Count(2 << 30)));
        assert_eq!(parse("500mib"), Ok(FlagValue::Count(500 << 20)));
        assert!(parse("12 parsecs").is_err() && parse("-1").is_err() && parse("99999999999 TiB").is_err());
    }

    #[test]
    fn a_bounded_count_is_refused_above_its_bound() {
        let kind = FlagKind::BoundedCount(1024);
        assert_eq!(kind.parse_value("1024"), Ok(FlagValue::Count(1024)));
        assert_eq!(kind.parse_value("1025"), Err("a whole number from 0 to 1024".to_owned()));
    }

    #[test]
    fn a_pair_has_two_parts() {
        let parse = |text| FlagKind::Pairs.parse_value(text);
        assert_eq!(
            parse(" Div : C,TopK:Values "),
            Ok(FlagValue::List(vec!["Div:C".into(), "TopK:Values".into()]))
        );
        assert_eq!(parse(""), Ok(FlagValue::List(Vec::new())));
        assert!(parse("Div").is_err() && parse("Div:").is_err() && parse(":C").is_err());
    }

    #[test]
    fn a_fraction_lies_between_nothing_and_all() {
        assert_eq!(FlagKind::Fraction.parse_value("0.92"), Ok(FlagValue::Fraction(0.92)));
        assert!(
            FlagKind::Fraction.parse_value("1.5").is_err() && FlagKind::Fraction.parse_value("nan").is_err()
        );
    }
}

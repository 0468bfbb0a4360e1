//! Control files of Debian packages and repositories: paragraphs of fields, each with a name and a value.
//!
//! A value may span several lines; all but the first begin with a space. An empty line within a value is written as a dot.

use std::fmt;

use crate::error::Error;

/// A paragraph: fields in their order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ControlParagraph {
    fields: Vec<(String, String)>,
}

impl ControlParagraph {
    /// The value of a field. Names are case-insensitive.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(there, _)| there.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    /// The value of a required field.
    ///
    /// # Errors
    ///
    /// When the field is missing or empty.
    pub fn require_field(&self, name: &str) -> Result<&str, Error> {
        let value = self.get(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| Error::new(format!("expected a field `{name}`, found none")))
    }

    /// Sets the value of a field, replacing the old value or adding the field at the end. Line breaks in the value are kept.
    pub fn set(&mut self, name: &str, value: &str) {
        let lines: Vec<&str> = value.trim_end().lines().map(str::trim_end).collect();
        let value = lines.join("\n");
        match self.fields.iter_mut().find(|(there, _)| there.eq_ignore_ascii_case(name)) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name.to_owned(), value)),
        }
    }

    /// Like [`set`](Self::set), but inserts a new field right after the field `before`.
    pub fn set_after(&mut self, before: &str, name: &str, value: &str) {
        let is_new = self.get(name).is_none();
        self.set(name, value);
        let place = self.fields.iter().position(|(there, _)| there.eq_ignore_ascii_case(before));
        if let Some(place) = place.filter(|_| is_new) {
            self.fields[place + 1..].rotate_right(1);
        }
    }

    /// Removes a field, if it is there.
    pub fn remove(&mut self, name: &str) {
        self.fields.retain(|(there, _)| !there.eq_ignore_ascii_case(name));
    }

    /// All fields with their values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Parses paragraphs, which are separated by empty lines. Lines that begin with `#` are comments.
    ///
    /// # Errors
    ///
    /// When a line neither starts nor continues a field, or a field is repeated; the error has the line number.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Error> {
        let mut paragraphs = Vec::new();
        let mut paragraph = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() {
                paragraphs.extend((!paragraph.fields.is_empty()).then(|| std::mem::take(&mut paragraph)));
            } else if !line.starts_with('#') {
                let read = paragraph.parse_line(line);
                read.map_err(|error| Error::new(format!("line {}: {error}", number + 1)))?;
            }
        }
        paragraphs.extend((!paragraph.fields.is_empty()).then_some(paragraph));
        Ok(paragraphs)
    }

    /// Parses a text of exactly one paragraph.
    ///
    /// # Errors
    ///
    /// As [`ControlParagraph::parse_all`], and when the number of paragraphs is not one.
    pub fn parse_single(text: &str) -> Result<Self, Error> {
        let paragraphs = Self::parse_all(text)?;
        let count = paragraphs.len();
        let [one] = <[Self; 1]>::try_from(paragraphs)
            .map_err(|_| Error::new(format!("expected one paragraph of fields, found {count}")))?;
        Ok(one)
    }

    fn parse_line(&mut self, line: &str) -> Result<(), Error> {
        if let Some(more) = line.strip_prefix([' ', '\t']) {
            let (_, value) = self
                .fields
                .last_mut()
                .ok_or_else(|| Error::new("expected a field before what goes on with one, found none"))?;
            value.push('\n');
            value.push_str(if more == "." { "" } else { more });
            return Ok(());
        }
        let is_name = |name: &str| {
            !name.is_empty() && !name.starts_with('-') && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let field = line.split_once(':').filter(|(name, _)| is_name(name));
        let (name, value) = field.ok_or_else(|| {
            Error::new(format!("expected a field such as `Package: name`, found `{}`", line.escape_debug()))
        })?;
        if self.get(name).is_some() {
            return Err(Error::new(format!("expected `{name}` once, found it again")));
        }
        self.fields.push((name.to_owned(), value.trim_start().to_owned()));
        Ok(())
    }
}

impl fmt::Display for ControlParagraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.fields() {
            let (first, more) =
                value.split_once('\n').map_or((value, None), |(first, more)| (first, Some(more)));
            let space = if first.is_empty() { "" } else { " " };
            writeln!(f, "{name}:{space}{first}")?;
            for line in more.into_iter().flat_map(|more| more.split('\n')) {
                writeln!(f, " {}", if line.is_empty() { "." } else { line })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE_TEXT: &str = "\
Package: example
Version: 1:2.0~rc1-3
Depends: libc6 (>= 2.36),
 libgcc-s1
Description: does a thing
 At length.
 .
  verbatim
SHA256:
 abc 3 main/x
";

    #[test]
    fn what_is_read_is_written_as_it_was() {
        let paragraph = ControlParagraph::parse_single(EXAMPLE_TEXT).expect("a paragraph");
        assert_eq!(paragraph.to_string(), EXAMPLE_TEXT);
        assert_eq!(paragraph.get("description"), Some("does a thing\nAt length.\n\n verbatim"));
        assert_eq!(paragraph.get("SHA256"), Some("\nabc 3 main/x"));
        assert_eq!(paragraph.fields().map(|(name, _)| name).last(), Some("SHA256"));
    }

    #[test]
    fn no_value_begins_a_field_or_a_paragraph() {
        let mut paragraph = ControlParagraph::default();
        paragraph.set("Description", "short\n\nEssential: yes\r\n");
        paragraph.set("Package", "x");
        assert_eq!(paragraph.to_string(), "Description: short\n .\n Essential: yes\nPackage: x\n");
        assert_eq!(ControlParagraph::parse_single(&paragraph.to_string()), Ok(paragraph));
    }

    #[test]
    fn fields_are_replaced_where_they_are_and_new_ones_come_last_or_where_they_should() {
        let mut paragraph = ControlParagraph::parse_single("A: 1\nB: 2\nC: 3\n").expect("a paragraph");
        paragraph.set("b", "4");
        paragraph.set_after("A", "D", "5");
        paragraph.set_after("A", "C", "6");
        paragraph.set_after("nothing", "E", "7");
        paragraph.remove("a");
        assert_eq!(paragraph.to_string(), "D: 5\nB: 4\nC: 6\nE: 7\n");
        assert!(paragraph.require_field("E").is_ok());
        assert_eq!(
            paragraph.require_field("F").expect_err("no field").to_string(),
            "expected a field `F`, found none"
        );
    }

    #[test]
    fn empty_lines_keep_paragraphs_apart_and_comments_are_passed_over() {
        let paragraphs = ControlParagraph::parse_all("\n# about it\nA: 1\n\n\nA: 2\n# more\n of it\n \n")
            .expect("paragraphs");
        let texts: Vec<String> = paragraphs.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["A: 1\n", "A: 2\n of it\n"]);
        assert!(
            ControlParagraph::parse_single("A: 1\n\nA: 2\n").is_err()
                && ControlParagraph::parse_single("").is_err()
        );
    }

    #[test]
    fn what_is_no_field_is_refused_with_its_line() {
        let refused = |text: &str| ControlParagraph::parse_all(text).expect_err(text).to_string();
        assert_eq!(refused("A: 1\nb\n"), "line 2: expected a field such as `Package: name`, found `b`");
        assert_eq!(refused("A: 1\na: 2\n"), "line 2: expected `a` once, found it again");
        assert!(refused(" more\n").starts_with("line 1: expected a field before"));
        for wrong in [": x", "-A: 1", "A b: 1", "Ä: 1"] {
            assert!(refused(wrong).starts_with("line 1: expected a field such as"), "{wrong}");
        }
    }
}

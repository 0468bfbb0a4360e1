//! The header of a NumPy file: a Python dict literal, parsed just far enough for arrays of numbers and text.

use oarlock_core::Dtype;

use super::NpyError;

/// The dtypes that NumPy has, with their type strings.
const DTYPE_NAMES: [(&str, Dtype); 14] = [
    ("|b1", Dtype::Bool),
    ("|i1", Dtype::I8),
    ("|u1", Dtype::U8),
    ("<i2", Dtype::I16),
    ("<u2", Dtype::U16),
    ("<i4", Dtype::I32),
    ("<u4", Dtype::U32),
    ("<i8", Dtype::I64),
    ("<u8", Dtype::U64),
    ("<f2", Dtype::F16),
    ("<f4", Dtype::F32),
    ("<f8", Dtype::F64),
    ("<c8", Dtype::C64),
    ("<c16", Dtype::C128),
];
/// Maximum rank; NumPy has the same limit.
const MAX_DIMENSIONS: usize = 64;

#[derive(Debug, PartialEq)]
pub(super) struct NpyHeader {
    pub(super) dtype: Dtype,
    /// Characters of room in each text, for arrays of text.
    pub(super) letters: u64,
    pub(super) is_fortran: bool,
    pub(super) dims: Vec<i64>,
}

/// NumPy's type string; `None` if NumPy lacks the dtype.
pub(super) fn dtype_descr(dtype: Dtype) -> Option<&'static str> {
    DTYPE_NAMES.iter().find(|(_, known)| *known == dtype).map(|(name, _)| *name)
}

impl NpyHeader {
    pub(super) fn parse_header(text: &str) -> Result<Self, NpyError> {
        let mut reader = HeaderReader { rest: text };
        let (mut kind, mut is_fortran, mut dims) = (None, None, None);
        reader.expect_token("{")?;
        while !reader.skip_token("}") {
            let key = reader.read_quoted()?;
            reader.expect_token(":")?;
            match key {
                "descr" => kind = Some(read_dtype(&mut reader)?),
                "fortran_order" => is_fortran = Some(reader.read_bool()?),
                "shape" => dims = Some(reader.read_tuple()?),
                other => {
                    return Err(NpyError::new(
                        "a header of `descr`, `fortran_order` and `shape`",
                        format!("`{other}`"),
                    ));
                }
            }
            if !reader.skip_token(",") {
                reader.expect_token("}")?;
                break;
            }
        }
        if !reader.rest.trim().is_empty() {
            return Err(reader.unexpected_token("the end of the header"));
        }
        match (kind, is_fortran, dims) {
            (Some((dtype, letters)), Some(is_fortran), Some(dims)) => {
                Ok(Self { dtype, letters, is_fortran, dims })
            }
            _ => Err(NpyError::new(
                "a header with `descr`, `fortran_order` and `shape`",
                "one that lacks some of these",
            )),
        }
    }
}

/// Returns the dtype and the characters per text.
fn read_dtype(reader: &mut HeaderReader<'_>) -> Result<(Dtype, u64), NpyError> {
    const EXPECTED_DTYPES: &str = "numbers, truth values, complex numbers or texts, the lowest byte first";
    if reader.rest.trim_start().starts_with('[') {
        let hint = Some("save its fields one by one, such as `array['name']`");
        return Err(NpyError { hint, ..NpyError::new(EXPECTED_DTYPES, "records of several fields") });
    }
    let name = reader.read_quoted()?;
    // Byte order is irrelevant for single bytes.
    let is_same =
        |known: &str| known == name || known.starts_with('|') && name.len() == 3 && known[1..] == name[1..];
    if let Some((_, dtype)) = DTYPE_NAMES.iter().find(|(known, _)| name.is_ascii() && is_same(known)) {
        return Ok((*dtype, 0));
    }
    if let Some(Ok(letters)) = name.strip_prefix("<U").map(str::parse) {
        return Ok((Dtype::String, letters));
    }
    let mut wrong = NpyError::new(EXPECTED_DTYPES, format!("the dtype `{name}`"));
    (wrong.found, wrong.hint) = match name.trim_start_matches(['|', '<', '>', '=']).chars().next() {
        Some('O') => (
            format!("objects of Python (`{name}`)"),
            Some(
                "convert the array with `astype` before saving it; objects are never read, since they may hold any code",
            ),
        ),
        Some('U' | 'S') => (format!("bytes of text (`{name}`)"), Some("save `array.astype(str)`")),
        _ if name.starts_with('>') => (
            format!("the highest byte first (`{name}`)"),
            Some("save `array.astype(array.dtype.newbyteorder('<'))`"),
        ),
        _ => (wrong.found, Some("convert the array with `astype` before saving it")),
    };
    Err(wrong)
}

/// A parser over the rest of a header.
struct HeaderReader<'a> {
    rest: &'a str,
}

impl<'a> HeaderReader<'a> {
    /// Skips `sign`; false if something else comes next.
    fn skip_token(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect_token(&mut self, sign: &str) -> Result<(), NpyError> {
        if self.skip_token(sign) {
            Ok(())
        } else {
            Err(self.unexpected_token(&format!("`{sign}` in the header")))
        }
    }

    fn unexpected_token(&self, expected: &str) -> NpyError {
        /// More of a broken header would not help the user.
        const SHOWN_LETTERS: usize = 20;
        let rest: String = self.rest.trim().chars().take(SHOWN_LETTERS).collect();
        NpyError::new(expected, if rest.is_empty() { "its end".to_owned() } else { format!("`{rest}`") })
    }

    /// Reads a quoted string. None of the expected ones contains an escape.
    fn read_quoted(&mut self) -> Result<&'a str, NpyError> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|quote| ['\'', '"'].contains(quote));
        let inner = quote.and_then(|quote| rest[1..].split_once(quote));
        let Some((text, rest)) = inner else {
            return Err(self.unexpected_token("a text in quotes in the header"));
        };
        self.rest = rest;
        Ok(text)
    }

    fn read_bool(&mut self) -> Result<bool, NpyError> {
        if self.skip_token("True") {
            Ok(true)
        } else if self.skip_token("False") {
            Ok(false)
        } else {
            Err(self.unexpected_token("`True` or `False` in the header"))
        }
    }

    /// Reads a tuple of integers.
    fn read_tuple(&mut self) -> Result<Vec<i64>, NpyError> {
        let mut numbers = Vec::new();
        self.expect_token("(")?;
        while !self.skip_token(")") {
            let rest = self.rest.trim_start();
            let end = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
            let number = rest[..end].parse().ok().filter(|_| numbers.len() < MAX_DIMENSIONS);
            numbers.push(
                number.ok_or_else(|| self.unexpected_token("up to 64 sizes below 2^63 in the header"))?,
            );
            // Python 2 writes long integers with a trailing `L`.
            let rest = &rest[end..];
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.skip_token(",") {
                self.expect_token(")")?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_sample(descr: &str, shape: &str) -> Result<NpyHeader, NpyError> {
        NpyHeader::parse_header(&format!(
            "{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}   \n"
        ))
    }

    #[test]
    fn dtypes_and_shapes_parse_in_every_npy_notation() {
        for (name, dtype) in DTYPE_NAMES {
            assert_eq!(parse_sample(&format!("'{name}'"), "()").unwrap().dtype, dtype);
        }
        assert_eq!(
            parse_sample("\"<u1\"", "(3,)").unwrap(),
            NpyHeader { dtype: Dtype::U8, letters: 0, is_fortran: false, dims: vec![3] }
        );
        assert_eq!(parse_sample("'<f4'", "(2L, 3L)").unwrap().dims, [2, 3]);
        let other_order = "{\"shape\":(0,1),\"fortran_order\":True,\"descr\":\"<f2\"}";
        let expected = NpyHeader { dtype: Dtype::F16, letters: 0, is_fortran: true, dims: vec![0, 1] };
        assert_eq!(NpyHeader::parse_header(other_order).unwrap(), expected);
        let texts = parse_sample("'<U12'", "(2,)").unwrap();
        assert_eq!((texts.dtype, texts.letters), (Dtype::String, 12));
    }

    #[test]
    fn other_dtypes_are_refused_with_what_they_are() {
        let cases = [
            ("'|O'", "objects of Python (`|O`)"),
            ("'|S5'", "bytes of text (`|S5`)"),
            ("'>f4'", "the highest byte first (`>f4`)"),
            ("[('a', '<f4')]", "records of several fields"),
            ("'<M8[ns]'", "the dtype `<M8[ns]`"),
            ("'ü1'", "the dtype `ü1`"),
        ];
        for (descr, found) in cases {
            assert_eq!(parse_sample(descr, "()").unwrap_err().found, found);
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let sizes = format!("({})", "1,".repeat(65));
        for shape in ["(-1,)", "3", "(1 2)", "(99999999999999999999,)", "(", sizes.as_str()] {
            assert!(parse_sample("'<f4'", shape).is_err(), "{shape}");
        }
        for text in
            ["", "{", "{}", "{'descr'}", "{'descr': '<f4'}", "{'x': 1}", "{'descr': '<f4", "{'a': 'b'} x"]
        {
            assert!(NpyHeader::parse_header(text).is_err(), "{text}");
        }
    }
}

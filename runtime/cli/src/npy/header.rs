//! The header of a NumPy file: a dictionary as Python writes it, of which only what an array of numbers needs is read.

use oarlock_core::Dtype;

use super::Wrong;

/// Each dtype that NumPy has, as a header names it.
const NAMES: [(&str, Dtype); 14] = [
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
/// How many dimensions an array may have; NumPy itself allows 64.
const MOST_DIMENSIONS: usize = 64;

/// What a header says.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) dtype: Dtype,
    /// How many letters each text has room for, where elements are texts.
    pub(super) letters: u64,
    pub(super) is_fortran: bool,
    pub(super) dims: Vec<i64>,
}

/// How a header names a dtype; nothing if NumPy does not have it.
pub(super) fn descr_of(dtype: Dtype) -> Option<&'static str> {
    NAMES.iter().find(|(_, known)| *known == dtype).map(|(name, _)| *name)
}

impl Header {
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let mut reader = Reader { rest: text };
        let (mut kind, mut is_fortran, mut dims) = (None, None, None);
        reader.expect("{")?;
        while !reader.take("}") {
            let key = reader.text()?;
            reader.expect(":")?;
            match key {
                "descr" => kind = Some(dtype_of(&mut reader)?),
                "fortran_order" => is_fortran = Some(reader.truth()?),
                "shape" => dims = Some(reader.tuple()?),
                other => {
                    return Err(Wrong::new(
                        "a header of `descr`, `fortran_order` and `shape`",
                        format!("`{other}`"),
                    ));
                }
            }
            if !reader.take(",") {
                reader.expect("}")?;
                break;
            }
        }
        if !reader.rest.trim().is_empty() {
            return Err(reader.unexpected("the end of the header"));
        }
        match (kind, is_fortran, dims) {
            (Some((dtype, letters)), Some(is_fortran), Some(dims)) => {
                Ok(Self { dtype, letters, is_fortran, dims })
            }
            _ => Err(Wrong::new(
                "a header with `descr`, `fortran_order` and `shape`",
                "one that lacks some of these",
            )),
        }
    }
}

/// The dtype, and how many letters a text has room for.
fn dtype_of(reader: &mut Reader<'_>) -> Result<(Dtype, u64), Wrong> {
    const NUMBERS: &str = "numbers, truth values, complex numbers or texts, the lowest byte first";
    if reader.rest.trim_start().starts_with('[') {
        let hint = Some("save its fields one by one, such as `array['name']`");
        return Err(Wrong { hint, ..Wrong::new(NUMBERS, "records of several fields") });
    }
    let name = reader.text()?;
    // Of a single byte the order means nothing.
    let is_same =
        |known: &str| known == name || known.starts_with('|') && name.len() == 3 && known[1..] == name[1..];
    if let Some((_, dtype)) = NAMES.iter().find(|(known, _)| name.is_ascii() && is_same(known)) {
        return Ok((*dtype, 0));
    }
    if let Some(Ok(letters)) = name.strip_prefix("<U").map(str::parse) {
        return Ok((Dtype::String, letters));
    }
    let mut wrong = Wrong::new(NUMBERS, format!("the dtype `{name}`"));
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

/// Reads from the front of a header.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Steps over a sign, if it is next.
    fn take(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, sign: &str) -> Result<(), Wrong> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}` in the header"))) }
    }

    fn unexpected(&self, expected: &str) -> Wrong {
        /// More of a broken header helps nobody.
        const SHOWN: usize = 20;
        let rest: String = self.rest.trim().chars().take(SHOWN).collect();
        Wrong::new(expected, if rest.is_empty() { "its end".to_owned() } else { format!("`{rest}`") })
    }

    /// A text in quotes. What is looked for has nothing in it that needs escapes.
    fn text(&mut self) -> Result<&'a str, Wrong> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|quote| ['\'', '"'].contains(quote));
        let inner = quote.and_then(|quote| rest[1..].split_once(quote));
        let Some((text, rest)) = inner else { return Err(self.unexpected("a text in quotes in the header")) };
        self.rest = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool, Wrong> {
        if self.take("True") {
            Ok(true)
        } else if self.take("False") {
            Ok(false)
        } else {
            Err(self.unexpected("`True` or `False` in the header"))
        }
    }

    /// Whole numbers in parentheses.
    fn tuple(&mut self) -> Result<Vec<i64>, Wrong> {
        let mut numbers = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            let rest = self.rest.trim_start();
            let end = rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len());
            let number = rest[..end].parse().ok().filter(|_| numbers.len() < MOST_DIMENSIONS);
            numbers.push(number.ok_or_else(|| self.unexpected("up to 64 sizes below 2^63 in the header"))?);
            // Python 2 marks long numbers.
            let rest = &rest[end..];
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(descr: &str, shape: &str) -> Result<Header, Wrong> {
        Header::parse(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}   \n"))
    }

    #[test]
    fn dtypes_and_shapes_are_read_in_every_way_they_are_written() {
        for (name, dtype) in NAMES {
            assert_eq!(header(&format!("'{name}'"), "()").unwrap().dtype, dtype);
        }
        assert_eq!(
            header("\"<u1\"", "(3,)").unwrap(),
            Header { dtype: Dtype::U8, letters: 0, is_fortran: false, dims: vec![3] }
        );
        assert_eq!(header("'<f4'", "(2L, 3L)").unwrap().dims, [2, 3]);
        let other_order = "{\"shape\":(0,1),\"fortran_order\":True,\"descr\":\"<f2\"}";
        let expected = Header { dtype: Dtype::F16, letters: 0, is_fortran: true, dims: vec![0, 1] };
        assert_eq!(Header::parse(other_order).unwrap(), expected);
        let texts = header("'<U12'", "(2,)").unwrap();
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
            assert_eq!(header(descr, "()").unwrap_err().found, found);
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let sizes = format!("({})", "1,".repeat(65));
        for shape in ["(-1,)", "3", "(1 2)", "(99999999999999999999,)", "(", sizes.as_str()] {
            assert!(header("'<f4'", shape).is_err(), "{shape}");
        }
        for text in
            ["", "{", "{}", "{'descr'}", "{'descr': '<f4'}", "{'x': 1}", "{'descr': '<f4", "{'a': 'b'} x"]
        {
            assert!(Header::parse(text).is_err(), "{text}");
        }
    }
}

//! Arrays typed by a user: a dtype, a colon, and a value or nested lists of values, such as `f32:[[1,2],[3,4]]`.

use std::str::FromStr;

use half::{bf16, f16};
use oarlock_core::Dtype;

use crate::problem::CommandError;
use oarlock_report::array::{ArrayElements, HostArray};

/// Maximum nesting of lists.
const MAX_DIMENSIONS: usize = 32;

/// `None` if the text does not begin with a dtype and a colon.
pub(crate) fn parse_literal(text: &str) -> Option<Result<HostArray, CommandError>> {
    let (dtype, values) = text.split_once(':')?;
    let dtype: Dtype = dtype.parse().ok()?;
    Some(parse_array(dtype, values).map_err(|found| {
        let message = format!("`{text}`: expected {dtype} or lists of {dtype}, found {found}");
        CommandError::new(message).with_hint("write values such as `f32:[[1,2],[3,4]]` or `i64:5`")
    }))
}

fn parse_array(dtype: Dtype, text: &str) -> Result<HostArray, String> {
    let elements = if dtype == Dtype::String {
        ArrayElements::Texts(Vec::new())
    } else {
        ArrayElements::Bytes(Vec::new())
    };
    let mut reader =
        LiteralReader { rest: text.trim(), dims: Vec::new(), is_leaf_seen: false, dtype, elements };
    reader.read_value(0)?;
    if !reader.rest.is_empty() {
        return Err(format!("`{}` after the end", reader.rest));
    }
    let dims = reader.dims.iter().map(|dim| i64::try_from(*dim).unwrap_or(i64::MAX)).collect();
    Ok(HostArray { dtype, dims, is_fortran: false, elements: reader.elements })
}

/// A parser over the rest of the text. Its errors say what was found.
struct LiteralReader<'a> {
    rest: &'a str,
    /// The size of each dimension, taken from the first list at that depth.
    dims: Vec<usize>,
    /// True once the rank is known.
    is_leaf_seen: bool,
    dtype: Dtype,
    elements: ArrayElements,
}

impl<'a> LiteralReader<'a> {
    /// Reads a value or a list, inside `depth` lists.
    fn read_value(&mut self, depth: usize) -> Result<(), String> {
        if self.skip_token("[") {
            return self.read_list(depth);
        }
        if self.is_leaf_seen && depth != self.dims.len() {
            return Err("lists and values side by side".to_owned());
        }
        self.is_leaf_seen = true;
        self.read_element()
    }

    /// Reads a list after its `[`.
    fn read_list(&mut self, depth: usize) -> Result<(), String> {
        if depth == MAX_DIMENSIONS {
            return Err(format!("lists in more than {MAX_DIMENSIONS} others"));
        }
        let is_first = depth == self.dims.len();
        if is_first && self.is_leaf_seen {
            return Err("lists and values side by side".to_owned());
        }
        if is_first {
            self.dims.push(0);
        }
        let mut size = 0;
        if !self.skip_token("]") {
            loop {
                self.read_value(depth + 1)?;
                size += 1;
                if self.skip_token("]") {
                    break;
                }
                if !self.skip_token(",") {
                    return Err(if self.rest.is_empty() {
                        "a list without `]`".to_owned()
                    } else {
                        format!("`{}`", self.rest)
                    });
                }
            }
        }
        if size == 0 {
            // An empty list has no values to tell the rank.
            self.is_leaf_seen = true;
        }
        if is_first {
            self.dims[depth] = size;
        } else if self.dims[depth] != size {
            return Err(format!("lists of {} and of {size} side by side", self.dims[depth]));
        }
        Ok(())
    }

    /// Skips `sign` and the spaces around it; false if something else comes next.
    fn skip_token(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    fn read_element(&mut self) -> Result<(), String> {
        if let ArrayElements::Texts(texts) = &mut self.elements {
            let mut strings = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            let text = strings
                .next()
                .and_then(Result::ok)
                .ok_or_else(|| format!("`{}`, which is not in quotes", self.rest))?;
            self.rest = &self.rest[strings.byte_offset()..];
            texts.push(text);
            return Ok(());
        }
        let end = self.rest.find([',', ']', '[']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let word = word.trim();
        let bytes = encode_number(self.dtype, word)?
            .ok_or_else(|| if word.is_empty() { "no value".to_owned() } else { format!("`{word}`") })?;
        if let ArrayElements::Bytes(all) = &mut self.elements {
            all.extend(bytes);
        }
        Ok(())
    }
}

/// `Ok(None)` if the word is no number of this dtype.
fn encode_number(dtype: Dtype, word: &str) -> Result<Option<Vec<u8>>, String> {
    macro_rules! number {
        ($ty:ty) => {
            parse_number::<$ty>(word).map(|value| value.to_ne_bytes().to_vec())
        };
    }
    Ok(match dtype {
        Dtype::Bool => match word {
            "true" | "True" | "1" => Some(vec![1]),
            "false" | "False" | "0" => Some(vec![0]),
            _ => None,
        },
        Dtype::I8 => number!(i8),
        Dtype::U8 => number!(u8),
        Dtype::I16 => number!(i16),
        Dtype::U16 => number!(u16),
        Dtype::I32 => number!(i32),
        Dtype::U32 => number!(u32),
        Dtype::I64 => number!(i64),
        Dtype::U64 => number!(u64),
        Dtype::F16 => parse_number::<f64>(word).map(|value| f16::from_f64(value).to_ne_bytes().to_vec()),
        Dtype::BF16 => parse_number::<f64>(word).map(|value| bf16::from_f64(value).to_ne_bytes().to_vec()),
        Dtype::F32 => number!(f32),
        Dtype::F64 => number!(f64),
        Dtype::C64 => {
            parse_complex::<f32>(word).map(|parts| parts.iter().flat_map(|part| part.to_ne_bytes()).collect())
        }
        Dtype::C128 => {
            parse_complex::<f64>(word).map(|parts| parts.iter().flat_map(|part| part.to_ne_bytes()).collect())
        }
        Dtype::I2
        | Dtype::U2
        | Dtype::I4
        | Dtype::U4
        | Dtype::F4E2M1
        | Dtype::F8E4M3
        | Dtype::F8E4M3Fnuz
        | Dtype::F8E5M2
        | Dtype::F8E5M2Fnuz
        | Dtype::F8E8M0
        | Dtype::String => {
            return Err(format!("values of {dtype}, which cannot be typed; make them with `Cast`"));
        }
    })
}

fn parse_number<T: FromStr>(word: &str) -> Option<T> {
    word.parse().ok()
}

/// The parts of a complex number such as `1`, `2j` or `1-2.5e3j`.
fn parse_complex<T: FromStr + Default>(word: &str) -> Option<[T; 2]> {
    let Some(word) = word.strip_suffix('j') else { return Some([parse_number(word)?, T::default()]) };
    // The sign between the parts is the last one that is neither leading nor part of an exponent.
    let is_between =
        |at: usize, sign: char| at > 0 && ['+', '-'].contains(&sign) && !word[..at].ends_with(['e', 'E']);
    let between = word.char_indices().rfind(|(at, sign)| is_between(*at, *sign));
    let (real, imaginary) = word.split_at(between.map_or(0, |(at, _)| at));
    Some([if real.is_empty() { T::default() } else { parse_number(real)? }, parse_number(imaginary)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_valid(text: &str) -> HostArray {
        parse_literal(text).unwrap().unwrap()
    }

    fn parse_problem(text: &str) -> String {
        parse_literal(text).unwrap().unwrap_err().message.split_once("found ").unwrap().1.to_owned()
    }

    fn element_bytes<const SIZE: usize>(numbers: &[[u8; SIZE]]) -> ArrayElements {
        ArrayElements::Bytes(numbers.concat())
    }

    #[test]
    fn a_value_has_no_dimensions_and_lists_have_as_many_as_they_are_deep() {
        let scalar = parse_valid("i64:-5");
        assert_eq!(
            (scalar.dims.as_slice(), scalar.elements),
            (&[][..], element_bytes(&[(-5i64).to_ne_bytes()]))
        );
        let matrix = parse_valid("f32: [[1, 2.5] , [nan,-inf]]");
        assert_eq!(matrix.dims, [2, 2]);
        assert_eq!(
            matrix.elements,
            element_bytes(&[1.0, 2.5, f32::NAN, f32::NEG_INFINITY].map(f32::to_ne_bytes))
        );
    }

    #[test]
    fn lists_may_be_empty() {
        assert_eq!((parse_valid("u8:[]").dims, parse_valid("u8:[[],[]]").dims), (vec![0], vec![2, 0]));
    }

    #[test]
    fn complex_numbers_and_text_are_values_too() {
        assert_eq!(parse_valid("c64:1-2e-1j").elements, element_bytes(&[1f32, -0.2].map(f32::to_ne_bytes)));
        assert_eq!(parse_valid("c128:-3j").elements, element_bytes(&[0f64, -3.0].map(f64::to_ne_bytes)));
        let texts = ["a,]b", "ü\""].map(str::to_owned).to_vec();
        assert_eq!(parse_valid(r#"string:["a,]b", "ü\""]"#).elements, ArrayElements::Texts(texts));
    }

    #[test]
    fn what_is_no_array_is_refused_with_what_was_found() {
        let cases = [
            ("i8:300", "`300`"),
            ("i8:", "no value"),
            ("i8:[1,]", "no value"),
            ("i8:[1", "a list without `]`"),
            ("i8:[[1],2]", "lists and values side by side"),
            ("i8:[1,[2]]", "lists and values side by side"),
            ("i8:[[],[1]]", "lists of 0 and of 1 side by side"),
            ("i8:[[],[[1]]]", "lists and values side by side"),
            ("i8:[[1],[2,3]]", "lists of 1 and of 2 side by side"),
            ("i8:[1]]", "`]` after the end"),
            ("string:[a]", "`a]`, which is not in quotes"),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_problem(text), expected, "{text}");
        }
        assert!(parse_problem(&format!("i8:{}", "[".repeat(100_000))).contains("more than 32"));
    }

    #[test]
    fn a_file_is_no_array() {
        assert!(
            parse_literal("a.npy").is_none()
                && parse_literal("./f32:x").is_none()
                && parse_literal("C:x").is_none()
        );
    }
}

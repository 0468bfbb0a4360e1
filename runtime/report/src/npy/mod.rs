//! NumPy files, one array each: a magic word, a version, a header that is a Python dict, and the elements.
//!
//! Files may be untrusted: memory is allocated for what is there, never for what a header promises.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::Path;

use oarlock_core::{Dtype, Error, Tensor, shape};

use crate::array::{ArrayElements, HostArray};
use crate::file::replace_file;
use header::NpyHeader;

mod header;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Headers of plain numeric arrays are never longer.
const MAX_HEADER_BYTES: u32 = 1 << 16;
/// NumPy stores text as UTF-32.
const BYTES_PER_LETTER: usize = 4;

/// Decides from dtype and shape whether the elements should be read.
pub type ArrayCheck<'a, E> = &'a dyn Fn(Dtype, &[i64]) -> Result<(), E>;

/// Reads a file with one array.
pub fn read_npy<E: From<Error>>(file: &Path, check: ArrayCheck<'_, E>) -> Result<HostArray, E> {
    let place = file.display().to_string();
    let unreadable = |error| NpyError {
        hint: Some("name a file that is there, or give values such as `f32:[1,2]`"),
        ..NpyError::new("a file that can be read", error)
    };
    if file.is_dir() {
        let hint = Some("name a file in it, such as one that `numpy.save` wrote");
        return Err(NpyError { hint, ..NpyError::new("a file", "a directory") }.into_error(&place).into());
    }
    let stream = File::open(file).map_err(|error: io::Error| unreadable(error).into_error(&place))?;
    read_npy_stream(io::BufReader::new(stream), None, &place, check)
}

/// Reads an array from a stream of `size` bytes, if that is known. Messages call it `place`.
pub fn read_npy_stream<E: From<Error>>(
    mut stream: impl Read,
    size: Option<u64>,
    place: &str,
    check: ArrayCheck<'_, E>,
) -> Result<HostArray, E> {
    let start = NpyPreamble::read_preamble(&mut stream).map_err(|wrong| wrong.into_error(place))?;
    check(start.header.dtype, &start.header.dims)?;
    if let Some(size) = size {
        // Check the declared size now: later, a compressed array would have to be decompressed first.
        start
            .check_element_bytes(size.saturating_sub(start.length))
            .map_err(|wrong| wrong.into_error(place))?;
    }
    Ok(start.read_elements(stream).map_err(|wrong| wrong.into_error(place))?)
}

#[derive(Debug, PartialEq)]
struct NpyError {
    expected: String,
    found: String,
    hint: Option<&'static str>,
}

impl NpyError {
    fn new(expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self { expected: expected.into(), found: found.to_string(), hint: None }
    }

    fn into_error(self, place: &str) -> Error {
        let Self { expected, found, hint } = self;
        let error = Error::invalid_argument(format!("`{place}`: expected {expected}, found {found}"));
        error.with_advice(hint.unwrap_or("write it with `numpy.save`, or give values such as `f32:[1,2]`"))
    }
}

/// Everything before the elements, and the size they must have.
struct NpyPreamble {
    header: NpyHeader,
    /// Bytes read so far.
    length: u64,
    expected: u64,
}

impl NpyPreamble {
    fn read_preamble(stream: &mut impl Read) -> Result<Self, NpyError> {
        let mut start = [0; 8];
        let is_start = stream.read_exact(&mut start).is_ok() && start.starts_with(MAGIC);
        if !is_start {
            return Err(NpyError::new("a file that NumPy wrote, as `.npy`", "something else"));
        }
        let size = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => return Err(NpyError::new("version 1, 2 or 3 of the format", version)),
        };
        let header = read_header_bytes(stream, size)?;
        let length = (start.len() + size + header.len()) as u64;
        let header = NpyHeader::parse_header(&String::from_utf8_lossy(&header))?;
        let NpyHeader { dtype, letters, dims, .. } = &header;
        let expected = match dtype {
            Dtype::String => shape::element_count(dims)
                .ok()
                .and_then(|count| count.checked_mul(*letters)?.checked_mul(BYTES_PER_LETTER as u64)),
            _ => shape::size_in_bytes(*dtype, dims).ok(),
        };
        let wrong = || NpyError::new("a shape of fewer than 2^64 bytes", format!("{dims:?} of {dtype}"));
        let expected = expected.ok_or_else(wrong)?;
        Ok(Self { header, length, expected })
    }

    /// Checks the number of element bytes against the shape.
    fn check_element_bytes(&self, found: u64) -> Result<(), NpyError> {
        let Self { header: NpyHeader { dtype, dims, .. }, expected, .. } = self;
        if found == *expected {
            return Ok(());
        }
        let elements = format!("{expected} bytes of {dtype} in the shape {dims:?}");
        let found = if found < *expected { format!("only {found}") } else { "more".to_owned() };
        Err(NpyError::new(elements, found))
    }

    fn read_elements(self, stream: impl Read) -> Result<HostArray, NpyError> {
        let mut bytes = Vec::new();
        // Read one byte more than expected, to detect trailing data.
        let read = stream.take(self.expected.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| NpyError::new("a file that can be read", error))?;
        self.check_element_bytes(bytes.len() as u64)?;
        let NpyHeader { dtype, letters, is_fortran, dims } = self.header;
        if dtype == Dtype::Bool
            && let Some(at) = bytes.iter().position(|byte| *byte > 1)
        {
            let found = format!("{} as the byte of element {at}", bytes[at]);
            let hint = Some("save `array.astype(bool)`");
            return Err(NpyError { hint, ..NpyError::new("0 or 1 for each bool", found) });
        }
        let elements = if dtype == Dtype::String {
            decode_texts(&bytes, letters, &dims)?
        } else {
            ArrayElements::Bytes(bytes)
        };
        Ok(HostArray { dtype, dims, is_fortran, elements })
    }
}

/// Decodes texts padded with zeros.
fn decode_texts(bytes: &[u8], letters: u64, dims: &[i64]) -> Result<ArrayElements, NpyError> {
    let count = shape::element_count(dims).unwrap_or(0);
    if letters == 0 {
        // Texts of zero characters take no bytes, so a tiny file could promise any number of them.
        let most = count <= u64::from(MAX_HEADER_BYTES);
        let count = usize::try_from(count).ok().filter(|_| most);
        let count =
            count.ok_or_else(|| NpyError::new("texts that have letters", format!("{dims:?} without")))?;
        return Ok(ArrayElements::Texts(vec![String::new(); count]));
    }
    let text = |bytes: &[u8]| -> Result<String, NpyError> {
        let letters = bytes.as_chunks::<BYTES_PER_LETTER>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let text: Option<String> = letters.map(char::from_u32).collect();
        let text = text.ok_or_else(|| NpyError::new("letters of Unicode", "a number that is none"))?;
        Ok(text.trim_end_matches('\0').to_owned())
    };
    let size = usize::try_from(letters).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_LETTER);
    Ok(ArrayElements::Texts(bytes.chunks(size).map(text).collect::<Result<_, _>>()?))
}

/// Reads the header, after its length in `size` little-endian bytes.
fn read_header_bytes(stream: &mut impl Read, size: usize) -> Result<Vec<u8>, NpyError> {
    let mut length = [0; 4];
    let is_there = stream.read_exact(&mut length[..size]).is_ok();
    let length = u32::from_le_bytes(length);
    if !is_there || length > MAX_HEADER_BYTES {
        let found = if is_there { format!("{length}") } else { "the end of the file".to_owned() };
        return Err(NpyError::new(format!("the length of a header, up to {MAX_HEADER_BYTES}"), found));
    }
    let mut header = vec![0; length as usize];
    let read = stream.read_exact(&mut header);
    read.map_err(|_| NpyError::new(format!("a header of {length} bytes"), "fewer"))?;
    Ok(header)
}

/// Writes the elements in C order, atomically.
/// Writes a tensor to a file.
pub fn write_npy(file: &Path, tensor: &Tensor) -> Result<(), Error> {
    let Some(descr) = header::dtype_descr(tensor.dtype()) else {
        let message =
            format!("`{}`: expected a dtype that NumPy has, found {}", file.display(), tensor.dtype());
        return Err(Error::invalid_argument(message)
            .with_advice("convert it with the op `Cast` first, or leave `-o` out"));
    };
    let bytes = match tensor.host_bytes()? {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(tensor.to_bytes()?),
    };
    write_parts(file, &[encode_preamble(descr, tensor.dims()).into(), bytes])
}

/// The two pieces of a file: everything before the elements, and the elements.
pub type NpyParts<'a> = [Cow<'a, [u8]>; 2];

/// `None` if NumPy lacks the dtype.
pub fn parts_from_bytes<'a>(dtype: Dtype, dims: &[i64], bytes: Cow<'a, [u8]>) -> Option<NpyParts<'a>> {
    Some([encode_preamble(header::dtype_descr(dtype)?, dims).into(), bytes])
}

/// Pads all texts to the longest.
pub fn parts_from_texts(dims: &[i64], texts: &[String]) -> NpyParts<'static> {
    let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
    let padded = |text: &String| {
        let letters: Vec<u32> = text.chars().map(u32::from).collect();
        let padding = vec![0; longest - letters.len()];
        [letters, padding].concat()
    };
    let bytes: Vec<u8> = texts.iter().flat_map(padded).flat_map(u32::to_le_bytes).collect();
    [encode_preamble(&format!("<U{longest}"), dims).into(), bytes.into()]
}

/// Writes atomically: a reader sees the old file or the complete new one.
pub fn write_parts(file: &Path, parts: &NpyParts<'_>) -> Result<(), Error> {
    let written = replace_file(file, |stream| parts.iter().try_for_each(|part| stream.write_all(part)));
    written.map_err(|error| {
        Error::invalid_argument(format!("`{}`: expected to write the output, found: {error}", file.display()))
            .with_advice("name a file in a directory that you can write to")
    })
}

/// Encodes everything before the elements.
fn encode_preamble(descr: &str, dims: &[i64]) -> Vec<u8> {
    /// Elements start at a multiple of this.
    const ALIGNMENT: usize = 64;
    /// Bytes of the magic word, the version and the header's length.
    const PREFIX_BYTES: usize = 10;
    let sizes: String = dims.iter().map(|dim| format!("{dim}, ")).collect();
    // A tuple of one needs its trailing comma; longer ones do not.
    let shape = if dims.len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (PREFIX_BYTES + header.len() + 1).next_multiple_of(ALIGNMENT) - PREFIX_BYTES;
    header += &" ".repeat(length - 1 - header.len());
    header.push('\n');
    let (version, length) = match u16::try_from(length) {
        Ok(length) => ([1, 0], length.to_le_bytes().to_vec()),
        Err(_) => ([2, 0], u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes().to_vec()),
    };
    [MAGIC, &version, &length, header.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
        let length = header.len() as u32;
        let length = length.to_le_bytes();
        let length = if version == 1 { &length[..2] } else { &length[..] };
        [MAGIC, &[version, 0], length, header.as_bytes(), elements].concat()
    }

    fn read_bytes(mut bytes: &[u8]) -> Result<HostArray, NpyError> {
        NpyPreamble::read_preamble(&mut bytes)?.read_elements(bytes)
    }

    #[test]
    fn what_is_written_is_read_again() {
        for dims in [&[][..], &[3], &[2, 3], &[0, 7], &[1; 12]] {
            let count: i64 = dims.iter().product();
            let bytes: Vec<u8> = (0..count as u8 * 4).collect();
            let written = [encode_preamble("<f4", dims), bytes.clone()].concat();
            assert_eq!((written.len() - bytes.len()) % 64, 0);
            let elements = ArrayElements::Bytes(bytes);
            let expected = HostArray { dtype: Dtype::F32, dims: dims.to_vec(), is_fortran: false, elements };
            assert_eq!(read_bytes(&written), Ok(expected));
        }
    }

    #[test]
    fn a_header_is_what_numpy_writes() {
        let start = encode_preamble("<i8", &[2, 3]);
        let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }";
        assert_eq!(&start[..10], b"\x93NUMPY\x01\x00\x76\x00");
        assert_eq!(std::str::from_utf8(&start[10..]).unwrap().trim_end_matches(' ').trim_end(), header);
        assert!(String::from_utf8(encode_preamble("|b1", &[5])).is_err());
    }

    #[test]
    fn all_versions_are_read() {
        let header = "{'descr': '|b1', 'fortran_order': True, 'shape': (2, 1)}\n";
        for version in 1..=3 {
            let array = read_bytes(&build_file(version, header, &[1, 0])).unwrap();
            assert_eq!((array.dtype, array.is_fortran, array.dims), (Dtype::Bool, true, vec![2, 1]));
        }
        assert_eq!(read_bytes(&build_file(4, header, &[1, 0])).unwrap_err().found, "4");
    }

    #[test]
    fn a_file_that_ends_early_or_late_is_refused_wherever_it_is_cut() {
        let whole = build_file(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", &[0; 16]);
        assert!(read_bytes(&whole).is_ok());
        for end in 0..whole.len() {
            assert!(read_bytes(&whole[..end]).is_err(), "{end}");
        }
        assert_eq!(read_bytes(&[&whole[..], &[0]].concat()).unwrap_err().found, "more");
    }

    #[test]
    fn a_header_that_promises_too_much_takes_no_memory() {
        for shape in ["(1000000000000,)", "(4294967296, 4294967296)", "(9223372036854775807, 2)"] {
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
            assert!(read_bytes(&build_file(1, &header, &[0; 4])).is_err(), "{shape}");
        }
        let long = [MAGIC, &[2, 0, 0xFF, 0xFF, 0xFF, 0xFF]].concat();
        assert_eq!(read_bytes(&long).unwrap_err().found, "4294967295");
    }

    #[test]
    fn texts_are_read_as_they_are_written() {
        let all = ["a", "", "größe"].map(str::to_owned).to_vec();
        let written = parts_from_texts(&[3], &all).concat();
        let expected = HostArray {
            dtype: Dtype::String,
            dims: vec![3],
            is_fortran: false,
            elements: ArrayElements::Texts(all),
        };
        assert_eq!(read_bytes(&written), Ok(expected));
        let header = |shape: &str, letters: &str| {
            format!("{{'descr': '<U{letters}', 'fortran_order': False, 'shape': {shape}, }}")
        };
        let none = read_bytes(&build_file(1, &header("(2,)", "0"), &[])).unwrap();
        assert_eq!(none.elements, ArrayElements::Texts(vec![String::new(); 2]));
        for (shape, letters) in [("(99999999999,)", "0"), ("(4294967296, 4294967296)", "9"), ("()", "1")] {
            assert!(read_bytes(&build_file(1, &header(shape, letters), &[0xFF; 4])).is_err(), "{shape}");
        }
    }

    #[test]
    fn no_byte_that_is_changed_does_harm() {
        let whole =
            build_file(2, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 1), }", &[1, 2, 3, 4]);
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut changed = whole.clone();
                changed[at] = byte;
                if let Ok(HostArray { elements: ArrayElements::Bytes(bytes), dims, dtype, .. }) =
                    read_bytes(&changed)
                {
                    assert_eq!(shape::size_in_bytes(dtype, &dims).unwrap(), bytes.len() as u64);
                }
            }
        }
    }
}

//! Archives of NumPy: a ZIP file with a `.npy` file for each array, stored as it is or deflated.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::array::Array;
use crate::npy;
use crate::problem::Problem;

/// No archive for a model has more arrays.
const MOST_ARRAYS: usize = 1 << 16;

/// Whether a file is an archive by its name.
pub(crate) fn is_named_so(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"))
}

/// Reads all arrays, each with its name.
pub(crate) fn read(file: &Path) -> Result<Vec<(String, Array)>, Problem> {
    let wrong = |expected: &str, found: &dyn fmt::Display| {
        Problem::new(format!("`{}`: expected {expected}, found {found}", file.display()))
            .hint("write it with `numpy.savez`, each array by the name of its input")
    };
    let stream = File::open(file).map_err(|error| wrong("a file that can be read", &error))?;
    let mut archive = ZipArchive::new(BufReader::new(stream))
        .map_err(|error| wrong("an archive that NumPy wrote, as `.npz`", &error))?;
    if archive.len() > MOST_ARRAYS {
        return Err(wrong(&format!("at most {MOST_ARRAYS} arrays"), &archive.len()));
    }
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let unreadable = |error: zip::result::ZipError| wrong("arrays that can be read", &error);
        let entry = archive.by_index(index).map_err(unreadable)?;
        let name = entry.name().map_err(unreadable)?.into_owned();
        let array = npy::read_stream(BufReader::new(entry), &format!("{name}` in `{}", file.display()))?;
        arrays.push((name.strip_suffix(".npy").unwrap_or(&name).to_owned(), array));
    }
    Ok(arrays)
}

/// Writes arrays, each under its name. Nobody ever sees half of a file.
pub(crate) fn write(file: &Path, arrays: &[(String, npy::Parts)]) -> Result<(), Problem> {
    let written = npy::replace_with(file, |stream| {
        let mut archive = ZipWriter::new(BufWriter::new(stream));
        for (name, parts) in arrays {
            let size: usize = parts.iter().map(Vec::len).sum();
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .large_file(u32::try_from(size).is_err());
            archive.start_file(format!("{name}.npy"), options).map_err(io::Error::other)?;
            parts.iter().try_for_each(|part| archive.write_all(part))?;
        }
        archive.finish().map_err(io::Error::other)?.flush()
    });
    written.map_err(|error| {
        Problem::new(format!("`{}`: expected to write the outputs, found: {error}", file.display()))
            .hint("name a file in a directory that you can write to")
    })
}

#[cfg(test)]
mod tests {
    use oarlock_core::Dtype;

    use super::*;
    use crate::array::Elements;

    #[test]
    fn what_is_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("all.npz");
        let parts = |bytes: &[u8]| npy::of_bytes(Dtype::U8, &[bytes.len() as i64], bytes.to_vec()).unwrap();
        write(&file, &[("a/b".to_owned(), parts(&[1, 2])), ("c".to_owned(), parts(&[]))]).unwrap();
        let read = read(&file).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a/b", "c"]);
        assert_eq!((&read[0].1.dims, &read[0].1.elements), (&vec![2], &Elements::Bytes(vec![1, 2])));
    }

    #[test]
    fn an_archive_that_is_cut_or_changed_does_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("all.npz");
        let parts = npy::of_bytes(Dtype::U8, &[3], vec![1, 2, 3]).unwrap();
        write(&file, &[("a".to_owned(), parts)]).unwrap();
        let whole = std::fs::read(&file).unwrap();
        let tried = directory.path().join("tried.npz");
        for end in 0..whole.len() {
            std::fs::write(&tried, &whole[..end]).unwrap();
            assert!(read(&tried).is_err(), "{end}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xFF;
            std::fs::write(&tried, &changed).unwrap();
            // Some bytes are times or comments; whatever is read has the elements that its shape says.
            for (_, array) in read(&tried).unwrap_or_default() {
                let size = oarlock_core::shape::size_in_bytes(array.dtype, &array.dims).unwrap();
                assert!(matches!(&array.elements, Elements::Bytes(bytes) if bytes.len() as u64 == size));
            }
        }
    }
}

//! NumPy archives: a ZIP file with one `.npy` file per array, stored or deflated.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use oarlock_core::{Dtype, Error};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::array::HostArray;
use crate::file::replace_file;
use crate::npy;

/// No archive for a model holds more arrays than this.
const MAX_ARRAYS: usize = 1 << 16;

/// True for the name of an archive.
pub fn has_npz_name(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"))
}

/// Decides from name, dtype and shape whether the elements of an array should be read.
pub type ArchiveCheck<'a, E> = &'a dyn Fn(&str, Dtype, &[i64]) -> Result<(), E>;

/// Reads all arrays with their names. Elements of a rejected array are never decompressed, because a small archive can expand
/// to any size.
pub fn read_npz<E: From<Error>>(
    file: &Path,
    check: ArchiveCheck<'_, E>,
) -> Result<Vec<(String, HostArray)>, E> {
    let wrong = |expected: &str, found: &dyn fmt::Display| {
        Error::invalid_argument(format!("`{}`: expected {expected}, found {found}", file.display()))
            .with_advice("write it with `numpy.savez`, each array by the name of its input")
    };
    let stream = File::open(file).map_err(|error| wrong("a file that can be read", &error))?;
    let mut archive = ZipArchive::new(BufReader::new(stream))
        .map_err(|error| wrong("an archive that NumPy wrote, as `.npz`", &error))?;
    if archive.len() > MAX_ARRAYS {
        return Err(wrong(&format!("at most {MAX_ARRAYS} arrays"), &archive.len()).into());
    }
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let unreadable = |error: zip::result::ZipError| wrong("arrays that can be read", &error);
        let entry = archive.by_index(index).map_err(unreadable)?;
        let name = entry.name().map_err(unreadable)?.into_owned();
        let own = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        let (size, place) = (entry.size(), format!("{name}` in `{}", file.display()));
        let check = |dtype: Dtype, dims: &[i64]| check(&own, dtype, dims);
        let array = npy::read_npy_stream(BufReader::new(entry), Some(size), &place, &check)?;
        arrays.push((own, array));
    }
    Ok(arrays)
}

/// Writes atomically: a reader sees the old file or the complete new one.
pub fn write_npz(file: &Path, arrays: &[(String, npy::NpyParts<'_>)]) -> Result<(), Error> {
    let written = replace_file(file, |stream| {
        let mut archive = ZipWriter::new(DeferredErrorWriter::new(BufWriter::new(stream)));
        for (name, parts) in arrays {
            let size: usize = parts.iter().map(|part| part.len()).sum();
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .large_file(u32::try_from(size).is_err());
            archive.start_file(format!("{name}.npy"), options).map_err(io::Error::other)?;
            parts.iter().try_for_each(|part| archive.write_all(part))?;
        }
        archive.finish().map_err(io::Error::other)?.finish_stream()
    });
    written.map_err(|error| {
        Error::invalid_argument(format!(
            "`{}`: expected to write the outputs, found: {error}",
            file.display()
        ))
        .with_advice("name a file in a directory that you can write to")
    })
}

/// A writer that stores its first error and accepts everything after it. Without it, an archive that fails would try to
/// finish itself on drop and print that it could not.
struct DeferredErrorWriter<W> {
    stream: W,
    position: u64,
    end: u64,
    failure: Option<io::Error>,
}

impl<W: Write + Seek> DeferredErrorWriter<W> {
    fn new(stream: W) -> Self {
        Self { stream, position: 0, end: 0, failure: None }
    }

    /// Returns the first error, if any.
    fn finish_stream(mut self) -> io::Result<()> {
        self.flush()?;
        self.failure.map_or(Ok(()), Err)
    }
}

impl<W: Write + Seek> Write for DeferredErrorWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_none() {
            self.failure = self.stream.write_all(bytes).err();
        }
        self.position += bytes.len() as u64;
        self.end = self.end.max(self.position);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failure.is_none() {
            self.failure = self.stream.flush().err();
        }
        Ok(())
    }
}

impl<W: Write + Seek> Seek for DeferredErrorWriter<W> {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let to = match place {
            SeekFrom::Start(to) => Some(to),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        self.position = to.ok_or(io::ErrorKind::InvalidInput)?;
        if self.failure.is_none() {
            self.failure = self.stream.seek(SeekFrom::Start(self.position)).err();
        }
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ArrayElements;

    #[test]
    fn what_is_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("all.npz");
        let parts = |bytes: &[u8]| {
            npy::parts_from_bytes(Dtype::U8, &[bytes.len() as i64], bytes.to_vec().into()).unwrap()
        };
        write_npz(&file, &[("a/b".to_owned(), parts(&[1, 2])), ("c".to_owned(), parts(&[]))]).unwrap();
        let read = read_npz::<Error>(&file, &|_, _, _| Ok(())).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a/b", "c"]);
        assert_eq!((&read[0].1.dims, &read[0].1.elements), (&vec![2], &ArrayElements::Bytes(vec![1, 2])));
    }

    #[test]
    fn a_failed_write_is_reported_once() {
        struct FullDisk;
        impl Write for FullDisk {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Seek for FullDisk {
            fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
                Ok(0)
            }
        }
        let mut stream = DeferredErrorWriter::new(FullDisk);
        stream.write_all(b"abc").unwrap();
        assert_eq!(stream.seek(SeekFrom::End(-1)).unwrap(), 2);
        assert_eq!(stream.finish_stream().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn an_array_that_is_not_wanted_is_not_unpacked() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("all.npz");
        // The elements are missing; decompressing them would fail with an error about that.
        let [start, _] = npy::parts_from_bytes(Dtype::F32, &[500_000_000, 3], Vec::new().into()).unwrap();
        write_npz(&file, &[("x".to_owned(), [start, Vec::new().into()])]).unwrap();
        let check = |name: &str, dtype: Dtype, dims: &[i64]| {
            Err(Error::invalid_argument(format!("{name} {dtype} {dims:?}")))
        };
        assert_eq!(read_npz(&file, &check).unwrap_err().message(), "x f32 [500000000, 3]");
        let lacking = read_npz::<Error>(&file, &|_, _, _| Ok(())).unwrap_err();
        assert!(lacking.message().contains("expected 6000000000 bytes"), "{lacking}");
    }

    #[test]
    fn an_archive_that_is_cut_or_changed_does_no_harm() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("all.npz");
        let parts = npy::parts_from_bytes(Dtype::U8, &[3], vec![1, 2, 3].into()).unwrap();
        let read = |file: &Path| read_npz::<Error>(file, &|_, _, _| Ok(()));
        write_npz(&file, &[("a".to_owned(), parts)]).unwrap();
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
            // Some bytes are timestamps or comments, so a corrupted file may still parse. If it does, shape and elements must
            // agree.
            for (_, array) in read(&tried).unwrap_or_default() {
                let size = oarlock_core::shape::size_in_bytes(array.dtype, &array.dims).unwrap();
                assert!(matches!(&array.elements, ArrayElements::Bytes(bytes) if bytes.len() as u64 == size));
            }
        }
    }
}

//! Reads files of models. Whatever is made of a file has memory of its own: the file may be changed, cut off or deleted afterwards.
//! Only weights that were let go are read again, from a file that is as it was.

use std::fs::{File, Metadata};
use std::io;
use std::num::NonZero;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use bytes::{Buf, Bytes};
use oarlock_core::{Error, Result};
use prost::{DecodeError, Message};

use super::error_location::quote_name;
use super::file_format::RECOGNIZED_BYTES;
use super::file_part::{FILE_PART_BYTES, RereadFile, read_file_part};
use super::read_progress;

/// Parts from this size on are read from the file straight into memory of their own; smaller ones are copied from the window.
const LARGE_PART_BYTES: usize = 4 << 10;
/// The part of a file that is held while it is decoded.
const WINDOW_BYTES: usize = 16 << 10;
/// Weights begin at cache lines: vectors that cross them halve the speed of a product.
const CACHE_LINE_BYTES: usize = 64;
/// What a thread reads at a time.
const PIECE_BYTES: usize = 4 << 20;
/// More threads would read no faster.
const MAX_READERS: usize = 4;

/// An open file of a model or its weights.
#[derive(Debug)]
pub(super) struct ModelFile {
    file: File,
    path: PathBuf,
    opened: FileVersion,
}

/// What changes when a file is written to: size, and the times of the last change of its content and of anything.
#[derive(Debug, PartialEq, Eq)]
struct FileVersion {
    size: u64,
    times: [i64; 4],
}

impl FileVersion {
    fn new(metadata: &Metadata) -> Self {
        let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        Self { size: metadata.len(), times }
    }
}

impl ModelFile {
    pub(super) fn open(path: &Path) -> Result<Arc<Self>> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Error::not_found(format!(
                "{}: expected a file, found none",
                quote_path(path)
            ))
            .with_advice(
                "name a file that is there; paths that do not begin with `/` begin in the current directory",
            ),
            _ => read_error(path, &error),
        };
        // Checked before opening, because opening a pipe blocks until someone writes to it.
        let metadata = path.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let found = if metadata.is_dir() { "a directory" } else { "a pipe or a device" };
            return Err(Error::invalid_argument(format!(
                "{}: expected a file, found {found}",
                quote_path(path)
            )));
        }
        let file = File::open(path).map_err(failed)?;
        let opened = FileVersion::new(&file.metadata().map_err(failed)?);
        read_progress::add_file(opened.size);
        Ok(Arc::new(Self { file, path: path.to_owned(), opened }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn size(&self) -> u64 {
        self.opened.size
    }

    /// Reads a part of the file, which begins at a cache line of memory.
    pub(super) fn read_part(self: &Arc<Self>, offset: u64, size: usize) -> Result<Bytes> {
        let no_memory = || {
            let shown = quote_path(&self.path);
            Error::resource_exhausted(format!(
                "{shown}: expected memory for a part of {size} bytes, found none"
            ))
        };
        if size >= FILE_PART_BYTES {
            let bytes = read_file_part(self.clone(), offset, size)?.ok_or_else(no_memory)?;
            read_progress::add_read(size as u64);
            return Ok(bytes);
        }
        let mut bytes = Vec::<u8>::new();
        bytes.try_reserve_exact(size + CACHE_LINE_BYTES).map_err(|_| no_memory())?;
        let begin = bytes.as_ptr().align_offset(CACHE_LINE_BYTES).min(CACHE_LINE_BYTES);
        bytes.resize(begin + size, 0);
        self.read_at(offset, &mut bytes[begin..])?;
        read_progress::add_read(size as u64);
        Ok(Bytes::from(bytes).slice(begin..))
    }

    /// Reads a large part. Most of the time goes into the pages of the memory, so several threads are faster than one.
    fn read_in_threads(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        if bytes.len() <= PIECE_BYTES / 2 {
            return self.read_at(offset, bytes);
        }
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_READERS);
        let pieces = Mutex::new((offset..).step_by(PIECE_BYTES).zip(bytes.chunks_mut(PIECE_BYTES)));
        let next_piece = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
        let read_pieces = || {
            while let Some((offset, piece)) = next_piece() {
                self.read_at(offset, piece)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            // Where no thread can be started, the others do its work.
            let start = |_| thread::Builder::new().spawn_scoped(scope, read_pieces).ok();
            let others: Vec<_> = (1..threads).filter_map(start).collect();
            let own = read_pieces();
            let join =
                |other: ScopedJoinHandle<'_, _>| other.join().unwrap_or_else(|panic| resume_unwind(panic));
            others.into_iter().map(join).fold(own, Result::and)
        })
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(|error| self.read_error(&error))
    }

    /// Reads all of a file that is small.
    pub(super) fn read_whole(self: &Arc<Self>) -> Result<Bytes> {
        let bytes = self.read_part(0, usize::try_from(self.size()).unwrap_or(usize::MAX))?;
        self.expect_unchanged().map(|()| bytes)
    }

    /// Reads the file as a message of protobuf.
    pub(super) fn decode<M: Message + Default>(
        self: &Arc<Self>,
    ) -> Result<std::result::Result<M, DecodeError>> {
        let mut reader = FileReader::new(self);
        let decoded = M::decode(&mut reader);
        self.expect_unchanged()?;
        reader.failure.map_or(Ok(decoded), Err)
    }

    /// Both ends of the file, by which its format is recognized; empty if they cannot be read.
    pub(super) fn read_ends(self: &Arc<Self>) -> Vec<u8> {
        let end = |offset, size| self.read_part(offset, size as usize).unwrap_or_default();
        let first = self.size().min(RECOGNIZED_BYTES as u64);
        let last = (self.size() - first).min(RECOGNIZED_BYTES as u64);
        [end(0, first), end(self.size() - last, last)].concat()
    }

    /// Fails if the file was written to since it was opened: what was read may be partly old and partly new.
    pub(super) fn expect_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|error| read_error(&self.path, &error))?;
        if FileVersion::new(&now) == self.opened {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "{}: expected a file that stays as it is while it is read, found that it changed",
            quote_path(&self.path)
        ))
        .with_advice("read it again once it is written; to replace a file, write another one and rename it"))
    }

    fn read_error(&self, error: &io::Error) -> Error {
        match error.kind() {
            // The size was known, so someone cut the file off.
            io::ErrorKind::UnexpectedEof => {
                self.expect_unchanged().err().unwrap_or_else(|| read_error(&self.path, error))
            }
            _ => read_error(&self.path, error),
        }
    }
}

impl RereadFile for ModelFile {
    fn read_again(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.read_in_threads(offset, bytes)
    }

    // The name of the file may have changed: to another file, or to none.
    fn expect_same_content(&self) -> Result<()> {
        let now = self.file.metadata().map_err(|error| read_error(&self.path, &error))?;
        let version = FileVersion::new(&now);
        let content = |version: &FileVersion| (version.size, version.times[0], version.times[1]);
        // A rename or a removal changes the time of the last change of anything, and so does a program that writes and then puts the
        // time of the content back. After the latter, the name still leads to this file.
        let is_there =
            || self.path.metadata().is_ok_and(|named| named.ino() == now.ino() && named.dev() == now.dev());
        if version == self.opened || content(&version) == content(&self.opened) && !is_there() {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "{}: expected the content that was loaded, to read weights again, found that it changed",
            quote_path(&self.path)
        ))
        .with_advice("load the model again; to replace a file, write another one and rename it"))
    }

    fn describe_file(&self) -> String {
        self.path.display().to_string()
    }
}

fn read_error(path: &Path, error: &io::Error) -> Error {
    Error::unavailable(format!("{}: expected to read it, found: {error}", quote_path(path)))
}

fn quote_path(path: &Path) -> String {
    quote_name(&path.display().to_string())
}

/// Reads a file from its begin to its end, as a decoder of protobuf wants it.
struct FileReader<'f> {
    file: &'f Arc<ModelFile>,
    /// The place in the file behind the window.
    next: u64,
    window: Vec<u8>,
    /// The bytes of the window that were taken.
    taken: usize,
    /// The first failure; from then on nothing remains.
    failure: Option<Error>,
}

impl<'f> FileReader<'f> {
    fn new(file: &'f Arc<ModelFile>) -> Self {
        let mut reader = Self { file, next: 0, window: Vec::new(), taken: 0, failure: None };
        reader.fill_window();
        reader
    }

    /// Reads the next part of the file into the window, which is used up.
    fn fill_window(&mut self) {
        let size = (self.file.size() - self.next).min(WINDOW_BYTES as u64) as usize;
        self.window.resize(size, 0);
        self.taken = 0;
        match self.file.read_at(self.next, &mut self.window) {
            Ok(()) => {
                self.next += size as u64;
                read_progress::add_read(size as u64);
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.window.clear();
        (self.taken, self.next) = (0, self.file.size());
    }
}

impl Buf for FileReader<'_> {
    fn remaining(&self) -> usize {
        let unread = usize::try_from(self.file.size() - self.next).unwrap_or(usize::MAX);
        unread.saturating_add(self.window.len() - self.taken)
    }

    fn chunk(&self) -> &[u8] {
        &self.window[self.taken..]
    }

    fn advance(&mut self, count: usize) {
        let held = self.window.len() - self.taken;
        if count < held {
            self.taken += count;
            return;
        }
        self.next += (count - held) as u64;
        self.fill_window();
    }

    fn copy_to_bytes(&mut self, size: usize) -> Bytes {
        if size < LARGE_PART_BYTES {
            let mut bytes = vec![0; size];
            self.copy_to_slice(&mut bytes);
            return bytes.into();
        }
        let place = self.next - (self.window.len() - self.taken) as u64;
        match self.file.read_part(place, size) {
            Ok(bytes) => {
                self.advance(size);
                bytes
            }
            Err(error) => {
                self.fail(error);
                Bytes::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use oarlock_core::ErrorKind;
    use prost::bytes::BufMut as _;

    use super::*;

    /// A file with this content, opened.
    fn opened(content: &[u8]) -> (tempfile::TempDir, PathBuf, Arc<ModelFile>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        fs::write(&path, content).unwrap();
        let file = ModelFile::open(&path).unwrap();
        (directory, path, file)
    }

    fn counted(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at % 253) as u8).collect()
    }

    #[test]
    fn parts_of_any_size_are_what_the_file_holds() {
        let content = counted((9 << 20) + 17);
        let (_directory, _, file) = opened(&content);
        for (offset, size) in [(0, 0), (5, 1), (3, 5_000), (1, FILE_PART_BYTES), (11, content.len() - 11)] {
            let part = file.read_part(offset as u64, size).unwrap();
            assert!(part == content[offset..offset + size], "{size} bytes from {offset} on");
        }
        assert!(file.expect_unchanged().is_ok());
    }

    #[test]
    fn a_reader_gives_the_file_in_pieces_of_any_size() {
        let content = counted(5 * WINDOW_BYTES + 3);
        let (_directory, _, file) = opened(&content);
        let pieces = [1, LARGE_PART_BYTES - 1, 3, LARGE_PART_BYTES, WINDOW_BYTES - 9, 2 * WINDOW_BYTES, 0, 7];
        let (mut reader, mut all) = (FileReader::new(&file), Vec::new());
        for size in pieces {
            all.put(reader.copy_to_bytes(size));
            assert_eq!(reader.remaining(), content.len() - all.len());
        }
        reader.advance(2);
        all.put_slice(&content[all.len()..all.len() + 2]);
        all.put(reader);
        assert!(all == content);
    }

    #[test]
    fn a_file_that_is_cut_off_while_it_is_read_is_an_error() {
        let (_directory, path, file) = opened(&counted(200_000));
        File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        let error = file.read_part(50, 5_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("found that it changed"), "{error}");
        let mut reader = FileReader::new(&file);
        assert_eq!((reader.remaining(), reader.chunk()), (0, &[][..]));
        assert!(reader.failure.take().is_some());
    }

    #[test]
    fn a_file_that_is_written_to_while_it_is_read_is_an_error() {
        let (_directory, path, file) = opened(&counted(200));
        fs::write(&path, counted(201)).unwrap();
        let error = file.read_whole().unwrap_err().to_string();
        assert!(error.contains("expected a file that stays as it is"), "{error}");
    }
}

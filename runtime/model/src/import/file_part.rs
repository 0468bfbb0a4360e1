//! Large parts of a file that need not stay in memory, because they can be read again.

#![expect(unsafe_code, reason = "pages are filled and given back while nobody reads them")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use memmap2::{Advice, MmapMut, MmapRaw, UncheckedAdvice};
use oarlock_core::{Constant, ConstantSource, Result};

/// Parts from this size on are read again rather than held. Smaller ones would need too many mappings.
pub(super) const FILE_PART_BYTES: usize = 128 << 10;
/// Parts from this size on are put into huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A file that can be read again.
pub(super) trait RereadFile: Send + Sync {
    /// Reads from an offset on until the bytes are full.
    fn read_again(&self, offset: u64, bytes: &mut [u8]) -> Result<()>;

    /// Fails if the content is no longer what it was when the file was opened.
    fn expect_same_content(&self) -> Result<()>;

    /// Names the file for developers.
    fn describe_file(&self) -> String;
}

/// A part of a file, and pages for it, which hold its bytes while somebody reads them.
struct FilePart {
    file: Arc<dyn RereadFile>,
    offset: u64,
    pages: MmapRaw,
    state: Mutex<FilePartState>,
}

#[derive(Default)]
struct FilePartState {
    readers: Weak<FilePartBytes>,
    /// How often the pages were filled.
    fills: u64,
}

/// All parts, by the address of their pages: a decoder passes on nothing but bytes.
static FILE_PARTS: Mutex<BTreeMap<usize, Weak<FilePart>>> = Mutex::new(BTreeMap::new());

/// Reads a part, and remembers where it came from. `None` if there is no memory for it.
pub(super) fn read_file_part(file: Arc<dyn RereadFile>, offset: u64, size: usize) -> Result<Option<Bytes>> {
    let Ok(pages) = MmapMut::map_anon(size) else { return Ok(None) };
    if size >= HUGE_PAGE_BYTES {
        // Fewer faults and misses; without huge pages, smaller ones will do.
        _ = pages.advise(Advice::HugePage);
    }
    let (pages, state) = (MmapRaw::from(pages), Mutex::default());
    let part = Arc::new(FilePart { file, offset, pages, state });
    let bytes = part.read_bytes()?;
    let mut parts = FILE_PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    parts.insert(bytes.as_ptr().addr(), Arc::downgrade(&part));
    Ok(Some(bytes))
}

/// A constant of these bytes. If they are a whole part of a file, the constant reads them again when they are needed again.
pub(super) fn constant_of_file(constant: Constant, bytes: &Bytes) -> Constant {
    let parts = FILE_PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let part = parts.get(&bytes.as_ptr().addr()).and_then(Weak::upgrade);
    drop(parts);
    match part.filter(|part| part.pages.len() == bytes.len()) {
        Some(part) => {
            let first_stay = Mutex::new(Some(bytes.clone()));
            constant.with_source(Arc::new(FilePartSource { part, first_stay }))
        }
        None => constant,
    }
}

impl FilePart {
    /// The bytes, which stay in the pages while the result or a clone of it lives.
    fn read_bytes(self: &Arc<Self>) -> Result<Bytes> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(readers) = state.readers.upgrade() {
            return Ok(Bytes::from_owner(SharedFilePart(readers)));
        }
        if state.fills > 0 {
            self.file.expect_same_content()?;
        }
        // SAFETY: the pages are mapped as long as the part lives. Nobody reads them: readers hold a `FilePartBytes`, there is
        // none, and the lock keeps others from making one.
        let pages = unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr(), self.pages.len()) };
        self.file.read_again(self.offset, pages)?;
        if state.fills > 0 {
            self.file.expect_same_content()?;
        }
        state.fills += 1;
        let readers = Arc::new(FilePartBytes { part: self.clone(), fill: state.fills });
        state.readers = Arc::downgrade(&readers);
        Ok(Bytes::from_owner(SharedFilePart(readers)))
    }
}

impl Drop for FilePart {
    fn drop(&mut self) {
        let mut parts = FILE_PARTS.lock().unwrap_or_else(PoisonError::into_inner);
        let address = self.pages.as_ptr().addr();
        // The pages are still mapped, so no other part has this address.
        parts.remove(&address);
    }
}

/// What all readers of a part hold. The last one gives the pages back.
struct FilePartBytes {
    part: Arc<FilePart>,
    fill: u64,
}

impl Drop for FilePartBytes {
    fn drop(&mut self) {
        let state = self.part.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Another reader may have filled the pages again since this one was the last.
        if state.fills == self.fill {
            // SAFETY: nobody reads the pages: this was the last reader, and the lock keeps others from becoming one. They are
            // anonymous memory, which reads as zeros afterwards.
            _ = unsafe { self.part.pages.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }
}

struct SharedFilePart(Arc<FilePartBytes>);

impl AsRef<[u8]> for SharedFilePart {
    fn as_ref(&self) -> &[u8] {
        let pages = &self.0.part.pages;
        // SAFETY: the pages are mapped as long as the part lives, and nobody writes to them while this reader lives.
        unsafe { std::slice::from_raw_parts(pages.as_ptr(), pages.len()) }
    }
}

/// Reads the bytes of a constant again.
struct FilePartSource {
    part: Arc<FilePart>,
    /// The bytes, from loading until the constant is let go.
    first_stay: Mutex<Option<Bytes>>,
}

impl fmt::Debug for FilePartSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FilePart { file, offset, pages, .. } = &*self.part;
        write!(f, "{} bytes at {offset} of {}", pages.len(), file.describe_file())
    }
}

impl ConstantSource for FilePartSource {
    fn address_range(&self) -> (usize, usize) {
        (self.part.pages.as_ptr().addr(), self.part.pages.len())
    }

    fn read_bytes(&self) -> Result<Bytes> {
        let first_stay = self.first_stay.lock().unwrap_or_else(PoisonError::into_inner).clone();
        first_stay.map_or_else(|| self.part.read_bytes(), Ok)
    }

    fn let_go(&self) {
        let first_stay = self.first_stay.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(first_stay);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use oarlock_core::{Dtype, ErrorKind};

    use super::super::model_file::ModelFile;
    use super::*;

    const SIZE: usize = FILE_PART_BYTES + 40;

    /// A file, and a constant that holds all of it but the first 10 bytes.
    fn constant_in_file() -> (tempfile::TempDir, Vec<u8>, Constant) {
        let directory = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..SIZE + 10).map(|at| (at % 251) as u8).collect();
        let path = directory.path().join("model");
        fs::write(&path, &content).unwrap();
        let file = ModelFile::open(&path).unwrap();
        let bytes = file.read_part(10, SIZE).unwrap();
        let constant = Constant::new(Dtype::U8, &[SIZE as i64], bytes.clone()).unwrap();
        (directory, content, constant_of_file(constant, &bytes))
    }

    /// The bytes that are now in the pages, without reading them again.
    fn bytes_in_memory(constant: &Constant) -> &[u8] {
        // SAFETY: the pages are mapped as long as the constant lives, and no test reads or fills them meanwhile.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(constant.address()), SIZE) }
    }

    #[test]
    fn bytes_are_in_memory_until_they_are_let_go_and_again_while_they_are_read() {
        let (directory, content, constant) = constant_in_file();
        fs::remove_file(directory.path().join("model")).unwrap();
        assert!(bytes_in_memory(&constant) == &content[10..]);
        let first = constant.bytes().unwrap();
        constant.let_go();
        assert!(first == content[10..]);
        drop(first);
        assert!(bytes_in_memory(&constant).iter().all(|byte| *byte == 0));
        let (again, other) = (constant.bytes().unwrap(), constant.bytes().unwrap());
        assert!(again == content[10..] && again.as_ptr() == other.as_ptr());
        assert_eq!(again.as_ptr().addr(), constant.address());
        drop(again);
        assert!(other == content[10..]);
        drop(other);
        assert!(bytes_in_memory(&constant).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_file_that_changed_is_not_read_again() {
        let (directory, mut content, constant) = constant_in_file();
        let path = directory.path().join("model");
        content[500] ^= 1;
        fs::write(&path, &content).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
        assert_ne!(constant.bytes().unwrap()[490], content[500]);
        constant.let_go();
        let error = constant.bytes().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("found that it changed"), "{error}");
    }

    #[test]
    fn a_file_that_was_replaced_by_another_is_still_read() {
        let (directory, content, constant) = constant_in_file();
        constant.let_go();
        let other = directory.path().join("other");
        fs::write(&other, "other").unwrap();
        fs::rename(&other, directory.path().join("model")).unwrap();
        assert!(constant.bytes().unwrap() == content[10..]);
    }

    #[test]
    fn threads_that_read_and_drop_at_once_see_the_bytes() {
        let (_directory, content, constant) = constant_in_file();
        constant.let_go();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| assert!(constant.bytes().unwrap() == content[10..])));
            }
        });
    }

    #[test]
    fn a_part_of_a_part_and_a_copy_are_held() {
        let (_directory, _content, constant) = constant_in_file();
        let bytes = constant.bytes().unwrap();
        for other in [bytes.slice(..SIZE - 1), Bytes::copy_from_slice(&bytes)] {
            let held = Constant::new(Dtype::U8, &[other.len() as i64], other.clone()).unwrap();
            assert!(!constant_of_file(held, &other).is_on_demand());
        }
        assert!(constant.with_shape(&[1, SIZE as i64]).unwrap().is_on_demand());
    }
}

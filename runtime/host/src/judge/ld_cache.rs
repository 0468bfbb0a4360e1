//! Reads `/etc/ld.so.cache`, the dynamic linker's list of installed libraries.
//!
//! The format is glibc's `glibc-ld.so.cache1.1`: a header of 48 bytes, records of 24 bytes that point at two strings each, and
//! the strings. Older systems prepend a list in an older format. If the cache is truncated or has offsets outside of it, the affected
//! entries are skipped.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0\0";
const HEADER: usize = 48;
const RECORD: usize = 24;
const OLD_HEADER: usize = 16;
const OLD_RECORD: usize = 12;

/// The bytes of the cache, starting at the header of the current format.
#[derive(Clone, Debug, Default)]
pub(crate) struct LdCache(Vec<u8>);

impl LdCache {
    /// Wraps the bytes of the file; a file in another format has no entries.
    pub(crate) fn new(mut bytes: Vec<u8>) -> Self {
        if bytes.starts_with(OLD_MAGIC) {
            let old_end = read_u32(&bytes, OLD_MAGIC.len()).and_then(|count| count.checked_mul(OLD_RECORD));
            let start = old_end.and_then(|end| end.checked_add(OLD_HEADER)?.checked_next_multiple_of(8));
            bytes = start.and_then(|start| bytes.get(start..)).unwrap_or_default().to_vec();
        }
        Self(if bytes.starts_with(MAGIC) { bytes } else { Vec::new() })
    }

    /// The files listed under `soname`, including those for other processors.
    pub(crate) fn files_for_soname<'a>(&'a self, soname: &'a str) -> impl Iterator<Item = &'a Path> {
        let count = read_u32(&self.0, MAGIC.len()).unwrap_or(0);
        let records = self.0.get(HEADER..).unwrap_or_default().chunks_exact(RECORD).take(count);
        let named = records.filter(move |record| {
            let name = read_u32(record, 4).and_then(|offset| self.0.get(offset..));
            name.and_then(|name| name.strip_prefix(soname.as_bytes()))
                .is_some_and(|rest| rest.first() == Some(&0))
        });
        named
            .filter_map(|record| self.string_at(read_u32(record, 8)?))
            .map(|path| Path::new(OsStr::from_bytes(path)))
    }

    fn string_at(&self, offset: usize) -> Option<&[u8]> {
        let tail = self.0.get(offset..)?;
        tail.iter().position(|byte| *byte == 0).map(|end| &tail[..end])
    }
}

fn read_u32(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_ne_bytes(word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a cache in the current format, with the strings after the records.
    fn build_cache(entries: &[(&str, &str)]) -> Vec<u8> {
        let count = u32::try_from(entries.len()).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(count.to_ne_bytes());
        bytes.resize(HEADER, 0);
        let mut strings = Vec::new();
        for (name, path) in entries {
            let start = HEADER + entries.len() * RECORD + strings.len();
            let offsets = [start, start + name.len() + 1].map(|offset| u32::try_from(offset).unwrap());
            bytes.extend(0x303_u32.to_ne_bytes());
            bytes.extend(offsets.iter().flat_map(|offset| offset.to_ne_bytes()));
            bytes.resize(bytes.len() + 12, 0);
            strings.extend(format!("{name}\0{path}\0").bytes());
        }
        bytes.extend(strings);
        bytes
    }

    const ENTRIES: [(&str, &str); 3] =
        [("liba.so.1", "/x/liba.so.1"), ("libb.so", "/b"), ("liba.so.1", "/y/liba.so.1")];

    fn files_for_a(bytes: Vec<u8>) -> Vec<String> {
        let cache = LdCache::new(bytes);
        cache.files_for_soname("liba.so.1").map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn every_file_of_a_name_is_listed_and_no_other() {
        assert_eq!(files_for_a(build_cache(&ENTRIES)), ["/x/liba.so.1", "/y/liba.so.1"]);
        assert_eq!(LdCache::new(build_cache(&ENTRIES)).files_for_soname("liba.so").count(), 0);
    }

    #[test]
    fn a_list_in_the_older_format_before_it_is_skipped() {
        let mut bytes = OLD_MAGIC.to_vec();
        bytes.extend(3_u32.to_ne_bytes());
        bytes.resize((OLD_HEADER + 3 * OLD_RECORD).next_multiple_of(8), 7);
        bytes.extend(build_cache(&ENTRIES));
        assert_eq!(files_for_a(bytes).len(), 2);
    }

    #[test]
    fn a_broken_cache_lists_less_and_never_panics() {
        let whole = build_cache(&ENTRIES);
        for length in 0..whole.len() {
            assert!(files_for_a(whole[..length].to_vec()).len() <= 2);
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] = 0xff;
            files_for_a(bytes);
        }
        let mut huge = OLD_MAGIC.to_vec();
        huge.extend([0xff; 8]);
        assert!(files_for_a(huge).is_empty());
    }

    #[test]
    fn the_cache_of_this_machine_lists_its_c_library() {
        match std::fs::read("/etc/ld.so.cache") {
            Ok(bytes) => assert!(LdCache::new(bytes).files_for_soname("libc.so.6").count() > 0),
            Err(error) => eprintln!("skipped: no linker cache on this machine ({error})"),
        }
    }
}

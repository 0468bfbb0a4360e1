//! Reads untrusted files: only regular ones, since opening or reading a pipe or a device can block forever, and never more than
//! requested.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file without blocking; returns its length too.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // The type is checked on the open file, so that the path cannot be replaced in between.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata.len()))
    } else {
        Err(io::Error::other("a directory, pipe, socket or device"))
    }
}

/// The first `most` bytes of a regular file, plus one more byte if the file is longer.
pub(crate) fn read_start(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.0.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_an_error_and_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert!(read_start(&pipe, 10).is_err());
        assert!(read_start(directory.path(), 10).is_err());
    }

    #[test]
    fn no_more_than_one_byte_too_many_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert_eq!(read_start(file.path(), 5).unwrap(), b"12345");
        assert_eq!(read_start(file.path(), 3).unwrap(), b"1234");
    }
}

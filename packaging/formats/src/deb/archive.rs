//! The `ar` container of a `.deb`: files one after the other, each behind a header with its name and size.

use crate::error::Error;

const AR_MAGIC: &[u8] = b"!<arch>\n";

/// Length of the header before each file.
const HEADER_LENGTH: usize = 60;

const HEADER_END: &[u8] = b"`\n";

/// The fields of a header that are read. Between them are a time, an owner and a mode, which do not matter here.
const NAME_FIELD: std::ops::Range<usize> = 0..16;
const SIZE_FIELD: std::ops::Range<usize> = 48..58;

/// The files of a container with their names, in order.
pub(super) fn read_ar(bytes: &[u8]) -> Result<Vec<(&str, &[u8])>, Error> {
    let expected =
        || Error::new("expected a Debian package, which begins with `!<arch>`; found something else");
    let mut rest = bytes.strip_prefix(AR_MAGIC).ok_or_else(expected)?;
    let mut files = Vec::new();
    while !rest.is_empty() {
        let place = bytes.len() - rest.len();
        let head = rest.get(..HEADER_LENGTH).filter(|head| head.ends_with(HEADER_END)).ok_or_else(|| {
            Error::new(format!("expected the name and the size of a file at byte {place}, found neither"))
        })?;
        let text = |part: std::ops::Range<usize>| std::str::from_utf8(&head[part]).map(str::trim_end);
        let unreadable =
            |what: &str| Error::new(format!("expected {what} of a file at byte {place}, found none"));
        let name = text(NAME_FIELD).map_err(|_| unreadable("the name"))?;
        // GNU `ar` ends names with a slash.
        let name = name.strip_suffix('/').unwrap_or(name);
        let size = text(SIZE_FIELD).ok().and_then(|size| size.parse::<usize>().ok());
        let size = size.ok_or_else(|| unreadable("the size"))?;
        rest = &rest[HEADER_LENGTH..];
        let file = rest.get(..size).ok_or_else(|| {
            let found = rest.len();
            Error::new(format!("expected {size} bytes of `{name}`, found {found}: the package is cut short"))
        })?;
        files.push((name, file));
        // Files are aligned to even offsets.
        rest = rest.get(size + size % 2..).unwrap_or_default();
    }
    Ok(files)
}

/// Builds a container of these files, all with the same time.
pub(super) fn write_ar(files: &[(&str, &[u8])], seconds: u64) -> Vec<u8> {
    let mut bytes = AR_MAGIC.to_vec();
    for (name, file) in files {
        let (owner, mode, size) = (0, "100644", file.len());
        bytes.extend(format!("{name:<16}{seconds:<12}{owner:<6}{owner:<6}{mode:<8}{size:<10}").into_bytes());
        bytes.extend_from_slice(HEADER_END);
        bytes.extend_from_slice(file);
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let files: [(&str, &[u8]); 4] =
            [("debian-binary", b"2.0\n"), ("odd", b"123"), ("none", b""), ("x", b"4")];
        let bytes = write_ar(&files, 1_700_000_000);
        assert_eq!(read_ar(&bytes).expect("a container"), files);
        assert!(
            bytes[AR_MAGIC.len()..]
                .starts_with(b"debian-binary   1700000000  0     0     100644  4         `\n2.0\n")
        );
        assert_eq!(bytes.len() % 2, 0);
    }

    #[test]
    fn names_may_end_with_a_slash_and_the_last_file_at_an_odd_place() {
        let mut bytes = write_ar(&[("debian-binary/", b"2.0")], 0);
        bytes.pop();
        assert_eq!(read_ar(&bytes).expect("a container"), [("debian-binary", b"2.0".as_slice())]);
    }

    #[test]
    fn a_broken_container_is_refused_at_every_place() {
        let whole = write_ar(&[("name", b"text")], 0);
        let refused = |bytes: &[u8]| read_ar(bytes).expect_err("a broken container").to_string();
        assert!(refused(b"PK").starts_with("expected a Debian package, which begins with `!<arch>`"));
        for length in AR_MAGIC.len() + 1..whole.len() {
            refused(&whole[..length]);
        }
        assert!(refused(&whole[..whole.len() - 1]).contains("expected 4 bytes of `name`, found 3"));
        assert!(refused(&whole[..30]).contains("at byte 8"));
        for (place, byte, what) in
            [(AR_MAGIC.len(), 0xff, "the name"), (AR_MAGIC.len() + SIZE_FIELD.start, b'-', "the size")]
        {
            let mut wrong = whole.clone();
            wrong[place] = byte;
            assert!(refused(&wrong).contains(what), "{what}");
        }
        // The largest size that its field can state.
        let mut wrong = whole;
        wrong[AR_MAGIC.len() + SIZE_FIELD.start..AR_MAGIC.len() + SIZE_FIELD.end]
            .copy_from_slice(b"9999999999");
        assert!(refused(&wrong).contains("cut short"));
    }
}

//! Wheel archives: a reader that makes all of pip's checks and more, and a reproducible writer: the same contents always give
//! the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Read as _};
use std::path::Path;

use crate::error::Error;
use crate::file_packer::FilePacker;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::{ZipArchive, ZipWriter};

/// The files of a wheel by path, without `RECORD`, which is generated when the wheel is written.
#[derive(Debug, Default)]
pub struct Wheel {
    files: BTreeMap<String, WheelFile>,
    /// The metadata directory, such as `oarlock-0.1.0.dist-info`.
    information: String,
}

#[derive(Clone, Debug)]
struct WheelFile {
    bytes: Vec<u8>,
    is_executable: bool,
}

/// Limit for unpacking, larger than any of our wheels.
const MAX_WHEEL_BYTES: u64 = 4 << 30;

impl Wheel {
    /// Creates an empty wheel; `named` is the start of its file name, with distribution and version.
    #[must_use]
    pub fn new(named: &str) -> Self {
        Self { files: BTreeMap::new(), information: format!("{named}.dist-info") }
    }

    /// Adds a file, replacing one with the same path.
    pub fn add_file(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), WheelFile { bytes, is_executable: false });
    }

    /// Adds a file with execute permission, such as a library.
    pub fn add_executable(&mut self, path: &str, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), WheelFile { bytes, is_executable: true });
    }

    /// The same files in a wheel of another name.
    pub fn with_name(&self, named: &str) -> Self {
        let mut wheel = Self::new(named);
        for (path, file) in &self.files {
            let path = match path.strip_prefix(&self.information) {
                Some(rest) => format!("{}{rest}", wheel.information),
                None => path.clone(),
            };
            wheel.files.insert(path, file.clone());
        }
        wheel
    }

    /// Adds a file to the metadata directory, such as `METADATA`.
    pub fn add_metadata(&mut self, name: &str, bytes: Vec<u8>) {
        self.add_file(&self.metadata_path(name), bytes);
    }

    /// Reads a wheel and checks that it contains exactly the files in its `RECORD`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a complete wheel.
    pub fn read_file(file: &Path) -> Result<Self, Error> {
        Self::from_bytes(
            &std::fs::read(file).map_err(Error::from).map_err(|error| error.in_file(file.display()))?,
        )
        .map_err(|error| error.in_file(file.display()))
    }

    /// Reads a wheel from memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let broken = |error: zip::result::ZipError| {
            Error::new(format!("expected a wheel, which is a ZIP archive: {error}"))
        };
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
        let mut files = BTreeMap::new();
        let mut left = MAX_WHEEL_BYTES;
        for place in 0..archive.len() {
            let mut entry = archive.by_index(place).map_err(broken)?;
            let name = entry.name().map_err(broken)?.into_owned();
            if entry.is_dir() {
                continue;
            }
            check_path(&name)?;
            let mut bytes = Vec::new();
            let read = (&mut entry).take(left + 1).read_to_end(&mut bytes);
            read.map_err(|error| Error::new(format!("`{name}`: {error}")))?;
            left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
                Error::new(format!("expected at most {MAX_WHEEL_BYTES} bytes of files, found more"))
            })?;
            let is_executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
            files.insert(name, WheelFile { bytes, is_executable });
        }
        let mut wheel = Self { information: find_metadata_directory(files.keys())?, files };
        wheel.check_record()?;
        Ok(wheel)
    }

    /// A file in the metadata directory, such as `METADATA`.
    pub fn metadata_file(&self, name: &str) -> Result<&[u8], Error> {
        self.file_bytes(&self.metadata_path(name))
    }

    /// The path of a file in the metadata directory.
    pub fn metadata_path(&self, name: &str) -> String {
        format!("{}/{name}", self.information)
    }

    /// The files to install, with their bytes.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.bytes.as_slice()))
    }

    /// The total size of its files once installed.
    pub fn installed_size(&self) -> u64 {
        self.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// The metadata directory, such as `oarlock-0.1.0.dist-info`.
    pub fn metadata_directory(&self) -> &str {
        &self.information
    }

    /// The paths of all files in the wheel.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The bytes of a file; it is an error if there is none.
    pub fn file_bytes(&self, path: &str) -> Result<&[u8], Error> {
        let file = self.files.get(path);
        file.map(|it| &*it.bytes).ok_or_else(|| Error::new(format!("expected `{path}`, found none")))
    }

    /// Verifies `RECORD` and removes it, since it is generated again when the wheel is written.
    fn check_record(&mut self) -> Result<(), Error> {
        let place = format!("{}/RECORD", self.information);
        let record =
            self.files.remove(&place).ok_or_else(|| Error::new(format!("expected `{place}`, found none")))?;
        let record = String::from_utf8(record.bytes)
            .map_err(|_| Error::new(format!("expected UTF-8 in `{place}`")))?;
        let mut listed = BTreeMap::new();
        for line in record.lines().filter(|line| !line.is_empty()) {
            let mut fields = line.rsplitn(3, ',');
            let (_, hash, path) = (fields.next(), fields.next(), fields.next());
            let (Some(hash), Some(path)) = (hash, path) else {
                return Err(Error::new(format!(
                    "expected path, hash and size in each line of `{place}`, found `{line}`"
                )));
            };
            listed.insert(path.trim_matches('"').to_owned(), hash.to_owned());
        }
        listed.remove(&place);
        for (path, file) in &self.files {
            match listed.remove(path) {
                Some(hash) if hash == record_hash(&file.bytes) => {}
                Some(hash) => {
                    let found = record_hash(&file.bytes);
                    return Err(Error::new(format!(
                        "`{path}`: expected the hash {hash} of `{place}`, found {found}"
                    )));
                }
                None => {
                    return Err(Error::new(format!(
                        "expected every file in `{place}`, found no line for `{path}`"
                    )));
                }
            }
        }
        match listed.keys().next() {
            Some(missing) => {
                Err(Error::new(format!("expected `{missing}`, which `{place}` lists; found no such file")))
            }
            None => Ok(()),
        }
    }

    /// Writes the wheel. The bytes only depend on the contents and the effort of the packer.
    ///
    /// # Errors
    ///
    /// When memory runs out during compression.
    pub fn to_bytes(&self, packer: &FilePacker) -> Result<Vec<u8>, Error> {
        let failed = |error: zip::result::ZipError| Error::new(format!("packing failed: {error}"));
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let last = |path: &str| path.starts_with(&self.information);
        // The metadata comes last, where readers find it without reading the whole file.
        let (after, before): (Vec<_>, Vec<_>) = self.files.iter().partition(|(path, _)| last(path));
        let record = WheelFile { bytes: self.record_text().into_bytes(), is_executable: false };
        let place = format!("{}/RECORD", self.information);
        for (path, file) in before.into_iter().chain(after).chain([(&place, &record)]) {
            let packed = packer.pack_file(&file.bytes, file.is_executable)?;
            let mut archive = ZipArchive::new(Cursor::new(packed)).map_err(failed)?;
            writer.raw_copy_file_rename(archive.by_index_raw(0).map_err(failed)?, path).map_err(failed)?;
        }
        Ok(writer.finish().map_err(failed)?.into_inner())
    }

    /// The text of `RECORD`.
    fn record_text(&self) -> String {
        let mut text = String::new();
        for (path, file) in &self.files {
            // Writing to a `String` cannot fail.
            _ = writeln!(text, "{},{},{}", quote_field(path), record_hash(&file.bytes), file.bytes.len());
        }
        text + &format!("{}/RECORD,,\n", self.information)
    }
}

/// Checks that a path stays within the directory that the wheel is unpacked to.
fn check_path(path: &str) -> Result<(), Error> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if path.split('/').all(is_plain) && !path.contains(['\\', '\0', '\n']) {
        return Ok(());
    }
    Err(Error::new(format!("expected paths that stay in the wheel, found `{}`", path.escape_debug())))
}

/// The single metadata directory of a wheel.
fn find_metadata_directory<'a>(paths: impl Iterator<Item = &'a String>) -> Result<String, Error> {
    let mut found: Vec<&str> = paths
        .filter_map(|path| path.split_once('/').map(|(first, _)| first))
        .filter(|first| first.ends_with(".dist-info"))
        .collect();
    found.sort_unstable();
    found.dedup();
    match found[..] {
        [one] => Ok(one.to_owned()),
        [] => Err(Error::new("expected a directory `*.dist-info` in the wheel, found none")),
        [..] => Err(Error::new(format!("expected one directory `*.dist-info`, found {}", found.join(", ")))),
    }
}

fn record_hash(bytes: &[u8]) -> String {
    format!("sha256={}", URL_SAFE_NO_PAD.encode(Sha256::digest(bytes)))
}

/// Quotes a path as a CSV field.
fn quote_field(path: &str) -> String {
    if path.contains([',', '"']) { format!("\"{}\"", path.replace('"', "\"\"")) } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::file_packer::CompressionEffort;

    /// A wheel of these files, with its metadata.
    fn example_wheel(files: &[(&str, &[u8])]) -> Wheel {
        let mut wheel = Wheel::new("example-1.0");
        files.iter().for_each(|(path, bytes)| wheel.add_file(path, bytes.to_vec()));
        wheel.add_metadata("METADATA", b"Name: example\n".to_vec());
        wheel
    }

    /// A ZIP archive of exactly these files.
    fn zip_of_files(files: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, text) in files {
            writer.start_file(*path, SimpleFileOptions::default()).expect("a file in memory");
            writer.write_all(text.as_bytes()).expect("a file in memory");
        }
        writer.finish().expect("an archive in memory").into_inner()
    }

    fn refusal_of(files: &[(&str, &str)]) -> String {
        Wheel::from_bytes(&zip_of_files(files)).expect_err("a wheel that is not whole").to_string()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = "many words ".repeat(1000);
        for effort in [CompressionEffort::Usual, CompressionEffort::Most] {
            let bytes = example_wheel(&[("example/words.txt", text.as_bytes()), ("empty", b"")])
                .to_bytes(&effort.into())
                .expect("a wheel");
            let again = Wheel::from_bytes(&bytes).expect("what was written");
            assert_eq!(again.files["example/words.txt"].bytes, text.as_bytes());
            assert_eq!(again.to_bytes(&effort.into()).expect("a wheel"), bytes);
        }
    }

    #[test]
    fn more_effort_makes_smaller_files() {
        let text: String = (0..5000).map(|number| format!("{} ", number * number % 977)).collect();
        let size = |effort: CompressionEffort| {
            example_wheel(&[("numbers", text.as_bytes())]).to_bytes(&effort.into()).expect("a wheel").len()
        };
        assert!(size(CompressionEffort::Most) < size(CompressionEffort::Usual));
    }

    #[test]
    fn what_is_said_about_a_wheel_comes_last() {
        let bytes =
            example_wheel(&[("zebra.py", b"1")]).to_bytes(&CompressionEffort::Usual.into()).expect("a wheel");
        let archive = ZipArchive::new(Cursor::new(bytes)).expect("an archive");
        let names: Vec<String> =
            archive.file_names().map(|name| name.expect("a name in UTF-8").into_owned()).collect();
        assert_eq!(names, ["zebra.py", "example-1.0.dist-info/METADATA", "example-1.0.dist-info/RECORD"]);
    }

    #[test]
    fn a_wheel_that_differs_from_its_record_is_refused() {
        let record = |text: &'static str| ("example-1.0.dist-info/RECORD", text);
        assert!(refusal_of(&[("a.py", "1")]).contains("expected a directory `*.dist-info`"));
        assert!(
            refusal_of(&[("example-1.0.dist-info/METADATA", "")])
                .contains("expected `example-1.0.dist-info/RECORD`")
        );
        assert!(refusal_of(&[record(""), ("a.py", "1")]).contains("found no line for `a.py`"));
        assert!(
            refusal_of(&[record("a.py,sha256=x,1\n"), ("a.py", "1")]).contains("expected the hash sha256=x")
        );
        assert!(refusal_of(&[record("a.py,sha256=x,1\n")]).contains("found no such file"));
        assert!(refusal_of(&[record("a.py\n")]).contains("found `a.py`"));
        assert!(
            refusal_of(&[record(""), ("other-2.dist-info/RECORD", "")])
                .contains("found example-1.0.dist-info, other-2")
        );
    }

    #[test]
    fn paths_that_leave_the_wheel_are_refused() {
        for path in ["../a", "/a", "a/../../b", "a//b", "a\\b"] {
            assert!(refusal_of(&[(path, "")]).contains("paths that stay in the wheel"), "{path}");
        }
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let error = Wheel::from_bytes(b"PK").expect_err("two letters");
        assert!(error.to_string().starts_with("expected a wheel, which is a ZIP archive: "));
        let whole = example_wheel(&[]).to_bytes(&CompressionEffort::Usual.into()).expect("a wheel");
        assert!(Wheel::from_bytes(&whole[..whole.len() / 2]).is_err());
    }

    #[test]
    fn a_file_whose_bytes_changed_is_named() {
        let mut bytes = zip_of_files(&[("example/a.py", "1"), ("example/b.py", "22222222")]);
        // The last file before the directory of the archive; it is so short that its data is stored uncompressed.
        let name = b"example/b.py";
        let place = bytes.windows(name.len()).position(|window| window == name).expect("its name");
        bytes[place + name.len() + 1] ^= 1;
        let error = Wheel::from_bytes(&bytes).expect_err("a changed file").to_string();
        assert!(error.starts_with("`example/b.py`: "), "{error}");
    }
}

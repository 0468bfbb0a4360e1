//! Build contexts: packs a directory into the archive that is sent to the engine.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use oarlock_formats::error::Error;
use oarlock_image::dockerfile;

use super::ignore_rules::IgnoreRules;
use tar::{Builder, EntryType, Header};

const DOCKERIGNORE_FILE: &str = ".dockerignore";

/// Packs a directory without ignored files into an anonymous temporary file. The Dockerfile and `.dockerignore` are always
/// sent: an engine reads both, and excludes them from the build itself if they are ignored.
pub(super) fn pack_context(directory: &Path) -> Result<File, Error> {
    let at = |error: io::Error| Error::from(error).in_file(directory.display());
    let ignored = match fs::read_to_string(directory.join(DOCKERIGNORE_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => IgnoreRules::default(),
        text => {
            IgnoreRules::parse_rules(&text.map_err(|error| Error::from(error).in_file(DOCKERIGNORE_FILE))?)
        }
    };
    let mut archive = Builder::new(tempfile::tempfile().map_err(at)?);
    let mut left = vec![String::new()];
    while let Some(below) = left.pop() {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory.join(&below)).map_err(at)? {
            let entry = entry.map_err(at)?.file_name();
            let Some(name) = entry.to_str() else {
                let name = entry.display();
                return Err(at(io::Error::other(format!("expected names in UTF-8, found `{name}`"))));
            };
            names.push(if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") });
        }
        // A stable order makes the archive reproducible, so the engine's build cache can match it.
        names.sort_unstable();
        for path in names {
            let file = directory.join(&path);
            let about = fs::symlink_metadata(&file).map_err(at)?;
            let is_out = ignored.is_ignored(&path)
                && ![dockerfile::DOCKERFILE_NAME, DOCKERIGNORE_FILE].contains(&&*path);
            if about.is_dir() && (!is_out || ignored.has_exceptions()) {
                left.push(path.clone());
            }
            if !is_out {
                append_file(&mut archive, &path, &file, &about)
                    .map_err(|error| Error::from(error).in_file(file.display()))?;
            }
        }
    }
    let mut file = archive.into_inner().map_err(at)?;
    file.seek(SeekFrom::Start(0)).map_err(at)?;
    Ok(file)
}

fn append_file(archive: &mut Builder<File>, path: &str, file: &Path, about: &fs::Metadata) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(about.mode() & 0o7777);
    header.set_mtime(u64::try_from(about.mtime()).unwrap_or_default());
    // Local user ids have no meaning in the image.
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    if about.is_dir() {
        header.set_entry_type(EntryType::Directory);
        return archive.append_data(&mut header, format!("{path}/"), io::empty());
    }
    if about.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        return archive.append_link(&mut header, path, fs::read_link(file)?);
    }
    // An image cannot hold sockets and other special files.
    if !about.is_file() {
        return Ok(());
    }
    header.set_entry_type(EntryType::Regular);
    header.set_size(about.len());
    let mut bytes = File::open(file)?.take(about.len());
    archive.append_data(&mut header, path, &mut bytes)?;
    if bytes.limit() > 0 {
        return Err(io::Error::other("expected a file that does not change, found it shorter than before"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_sent_without_what_is_kept_out() {
        let place = tempfile::tempdir().expect("a directory");
        for (path, text) in [
            (".dockerignore", "*.log\nbig\nDockerfile\n.dockerignore\n!big/kept\n"),
            ("Dockerfile", "FROM a"),
            ("a.py", "a"),
            ("a.log", "a"),
            ("big/kept", "kept"),
            ("big/other", "other"),
        ] {
            let file = place.path().join(path);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, text).expect("a file");
        }
        std::os::unix::fs::symlink("a.py", place.path().join("link")).expect("a link");
        let mut archive = tar::Archive::new(pack_context(place.path()).expect("an archive"));
        let mut found = Vec::new();
        for entry in archive.entries().expect("an archive") {
            let mut entry = entry.expect("an entry");
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("a text");
            let link =
                entry.link_name().expect("a name").map_or(String::new(), |it| it.display().to_string());
            found.push((entry.path().expect("a path").display().to_string(), text + &link));
        }
        let found: Vec<(&str, &str)> =
            found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let rules = "*.log\nbig\nDockerfile\n.dockerignore\n!big/kept\n";
        assert_eq!(
            found,
            [
                (".dockerignore", rules),
                ("Dockerfile", "FROM a"),
                ("a.py", "a"),
                ("link", "a.py"),
                ("big/kept", "kept")
            ]
        );
    }
}

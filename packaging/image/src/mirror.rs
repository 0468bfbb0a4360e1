//! Access to a Debian mirror.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use oarlock_formats::date;
use oarlock_formats::deb::compression::decompress_by_name;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;

use ureq::Agent;

/// The addresses of a mirror for the main archive and for security updates.
pub struct DebianMirror {
    agent: Agent,
    main: String,
    security: String,
}

/// The index of a suite, with a verified signature.
pub struct SuiteIndex {
    /// A paragraph for each package.
    pub packages: Vec<ControlParagraph>,
    /// The date of the index, in seconds since 1970.
    pub date: u64,
}

/// The directory of apt's source lists.
const APT_SOURCES_DIRECTORY: &str = "/etc/apt";

/// Debian's signing keys, present on every Debian system.
const DEBIAN_KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Enough time for a package on a slow connection.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(300);

/// Limit for a download, larger than any package or index of Debian.
const MAX_DOWNLOAD_BYTES: u64 = 2 << 30;

impl DebianMirror {
    /// A mirror at an address, such as `http://mirror.example.org/debian`; the security archive is beside it, with `-security`
    /// appended to the name.
    ///
    /// # Errors
    ///
    /// When the address is not valid.
    pub fn at_address(address: &str) -> Result<Self, Error> {
        let address = address.trim_end_matches('/');
        Self::with_addresses(address, &format!("{address}-security"))
    }

    fn with_addresses(main: &str, security: &str) -> Result<Self, Error> {
        for address in [main, security] {
            if !address.starts_with("http://") {
                return Err(Error::new(format!(
                    "expected the address of a mirror of Debian that begins with `http://`, found `{address}`; what comes \
                     from there is checked by signatures and hashes"
                )));
            }
        }
        let config = Agent::config_builder()
            .timeout_global(Some(DOWNLOAD_TIMEOUT))
            .http_status_as_error(false)
            .build();
        Ok(Self { agent: config.into(), main: main.to_owned(), security: security.to_owned() })
    }

    /// The mirror that this machine's apt uses.
    ///
    /// # Errors
    ///
    /// When apt uses no mirror.
    pub fn of_machine() -> Result<Self, Error> {
        let addresses = source_addresses(Path::new(APT_SOURCES_DIRECTORY))?;
        let ending = |end: &str| addresses.iter().find(|it| it.starts_with("http://") && it.ends_with(end));
        let main = ending("/debian").ok_or_else(|| {
            Error::new(
                "expected a mirror of Debian, an address such as `http://mirror.example.org/debian`, found none; name one with \
                 `--mirror`, or a directory that holds the packages with `--pool`",
            )
            .in_file(APT_SOURCES_DIRECTORY)
        })?;
        let security = ending("/debian-security").cloned().unwrap_or_else(|| format!("{main}-security"));
        Self::with_addresses(main, &security)
    }

    /// Downloads a path from the mirror that has a suite; `None` if it does not exist.
    pub(crate) fn fetch_file(&self, suite: &str, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let mirror = if split_suite(suite).0.ends_with("-security") { &self.security } else { &self.main };
        let address = format!("{mirror}/{path}");
        let failed = |error: ureq::Error| Error::new(error.to_string()).in_file(&address);
        let mut response = self.agent.get(&address).call().map_err(failed)?;
        match response.status().as_u16() {
            200 => {
                let bytes = response.body_mut().with_config().limit(MAX_DOWNLOAD_BYTES).read_to_vec();
                bytes.map(Some).map_err(failed)
            }
            404 | 410 => Ok(None),
            status => {
                Err(Error::new(format!("expected the file, found the status {status}")).in_file(&address))
            }
        }
    }

    /// Downloads the index of a suite for an architecture.
    ///
    /// # Errors
    ///
    /// When there is none, Debian's signature is invalid, or the hash is wrong.
    pub fn fetch_index(&self, suite: &str, architecture: &str) -> Result<SuiteIndex, Error> {
        let (suite, part) = split_suite(suite);
        let need = |path: &str| {
            let path = format!("dists/{suite}/{path}");
            let bytes = self.fetch_file(suite, &path)?;
            bytes.ok_or_else(|| Error::new(format!("expected `{path}` on the mirror, found none")))
        };
        let release = ControlParagraph::parse_single(&verify_signature(&need("InRelease")?)?)
            .map_err(|error| error.in_part(suite))?;
        let path = format!("{part}/binary-{architecture}/Packages.xz");
        let wanted = listed_sha256(&release, &path)
            .ok_or_else(|| Error::new(format!("`{suite}`: expected the hash of `{path}`, found none")))?;
        let packed = need(&path)?;
        if sha256_hex(&packed) != wanted {
            return Err(Error::new(format!(
                "`{suite}`: expected `{path}` with the SHA-256 {wanted}, found {}; the mirror may be about to change, try again",
                sha256_hex(&packed)
            )));
        }
        // The function selects the format by file name.
        let text = decompress_by_name("Packages.tar.xz", &packed, MAX_DOWNLOAD_BYTES)?;
        let text = String::from_utf8(text).map_err(|_| Error::new(format!("`{suite}`: expected UTF-8")))?;
        Ok(SuiteIndex {
            packages: ControlParagraph::parse_all(&text)?,
            date: date::parse_rfc2822(release.require_field("Date")?)?,
        })
    }
}

/// Splits a suite such as `trixie/non-free` into suite and component; the default component is `main`.
fn split_suite(suite: &str) -> (&str, &str) {
    suite.split_once('/').unwrap_or((suite, "main"))
}

/// Verifies Debian's signature of a text and returns the signed content.
fn verify_signature(bytes: &[u8]) -> Result<String, Error> {
    let place = tempfile::tempdir()?;
    let (file, checked) = (place.path().join("InRelease"), place.path().join("checked"));
    std::fs::write(&file, bytes)?;
    let mut gpgv = Command::new("gpgv");
    gpgv.args(["--keyring", DEBIAN_KEYRING, "--output"]).args([&checked, &file]);
    let output = gpgv.output().map_err(|error| {
        Error::new(format!("`gpgv`, which verifies Debian's signatures: {error}; install it"))
    })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!(
            "expected a valid signature by a Debian key, found otherwise: {}",
            stderr.trim()
        )));
    }
    Ok(std::fs::read_to_string(checked)?)
}

/// The SHA-256 in a suite's index for a file.
fn listed_sha256<'r>(release: &'r ControlParagraph, path: &str) -> Option<&'r str> {
    let mut lines = release.get("SHA256")?.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.find_map(|words| match words[..] {
        [hash, _, name] if name == path => Some(hash),
        _ => None,
    })
}

/// All mirror addresses in apt's source lists, in either format.
fn source_addresses(directory: &Path) -> Result<Vec<String>, Error> {
    let mut files = vec![directory.join("sources.list")];
    if let Ok(entries) = std::fs::read_dir(directory.join("sources.list.d")) {
        let mut more: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        more.sort();
        files.extend(more);
    }
    let mut addresses = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let of_file = |error: Error| error.in_file(file.display());
        let is_address = |word: &&str| word.contains("://");
        let found: Vec<&str> = match file.extension().and_then(|it| it.to_str()) {
            Some("list") => {
                let lines = text.lines().filter(|line| line.starts_with("deb "));
                lines.filter_map(|line| line.split_whitespace().find(is_address)).collect()
            }
            Some("sources") => {
                let paragraphs = ControlParagraph::parse_all(&text).map_err(of_file)?;
                let values = paragraphs.iter().filter_map(|paragraph| paragraph.get("URIs"));
                addresses.extend(values.flat_map(str::split_whitespace).map(str::to_owned));
                continue;
            }
            _ => continue,
        };
        addresses.extend(found.into_iter().map(str::to_owned));
    }
    addresses.iter_mut().for_each(|address| address.truncate(address.trim_end_matches('/').len()));
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_lists_are_read() {
        let place = tempfile::tempdir().expect("a directory");
        let more = place.path().join("sources.list.d");
        std::fs::create_dir(&more).expect("a directory");
        let put = |file: &Path, text: &str| std::fs::write(file, text).expect("a file");
        put(
            &place.path().join("sources.list"),
            "# deb http://no/debian x main\ndeb [signed-by=/key] http://one/debian/ x main\n",
        );
        put(
            &more.join("a.sources"),
            "Types: deb\nURIs: http://two/debian http://three/debian-security\nSuites: x\n",
        );
        put(&more.join("b.save"), "deb http://no/debian x main\n");
        let found = source_addresses(place.path()).expect("addresses");
        assert_eq!(found, ["http://one/debian", "http://two/debian", "http://three/debian-security"]);
    }

    #[test]
    fn a_suite_may_be_written_with_a_part_of_it() {
        assert_eq!(split_suite("trixie-security"), ("trixie-security", "main"));
        assert_eq!(split_suite("trixie-security/non-free"), ("trixie-security", "non-free"));
    }

    #[test]
    fn a_mirror_address_other_than_http_is_refused() {
        let error = DebianMirror::at_address("https://mirror.example.org/debian")
            .err()
            .expect("a refusal")
            .to_string();
        assert!(error.contains("begins with `http://`, found `https://mirror"), "{error}");
    }

    #[test]
    fn what_nobody_signed_is_refused() {
        assert!(verify_signature(b"Suite: stable\n").is_err());
    }
}

//! Image names: a repository and a tag.

use std::fmt;

use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

/// A name such as `oarlock:1.0` or `registry.example.org:5000/team/oarlock:1.0-slim`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ImageName {
    repository: String,
    tag: String,
}

/// Longest repository and longest tag.
const MAX_REPOSITORY_LENGTH: usize = 255;
const MAX_TAG_LENGTH: usize = 128;

/// The registry of names without a host.
const DEFAULT_REGISTRY: &str = "docker.io";

impl ImageName {
    /// Validates a repository and a tag against the rules of all engines.
    ///
    /// # Errors
    ///
    /// When some engine would reject the name.
    pub fn new(repository: &str, tag: &str) -> Result<Self, Error> {
        let wrong = |expected: &str, found: &str| {
            let message = format!("expected {expected}, found `{}`", found.escape_debug());
            Err(Error::new(message))
        };
        let mut parts: Vec<&str> = repository.split('/').collect();
        if parts.len() > 1 && is_registry(parts[0]) {
            parts.remove(0);
        }
        if repository.len() > MAX_REPOSITORY_LENGTH || !parts.iter().all(|part| is_name_component(part)) {
            return wrong(
                "the name of an image of lower-case letters and digits, with `.`, `_` or `-` between them, such as `team/oarlock`",
                repository,
            );
        }
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_tag = tag.bytes().next().is_some_and(is_word)
            && tag.bytes().all(|byte| is_word(byte) || b".-".contains(&byte));
        if !is_tag || tag.len() > MAX_TAG_LENGTH {
            return wrong("a tag of at most 128 letters, digits, `_`, `.` and `-`, such as `1.0-slim`", tag);
        }
        Ok(Self { repository: repository.to_owned(), tag: tag.to_owned() })
    }

    /// Parses a name; the default tag is `latest`.
    ///
    /// # Errors
    ///
    /// When some engine would reject the name.
    pub fn parse_name(text: &str) -> Result<Self, Error> {
        // A colon before the last slash separates a port.
        match text.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
            Some((repository, tag)) => Self::new(repository, tag),
            None => Self::new(text, "latest"),
        }
    }

    /// The part before the tag.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The name with an explicit registry, as some engines require.
    #[must_use]
    pub fn with_registry(&self) -> String {
        match self.repository.split_once('/') {
            Some((host, _)) if is_registry(host) => self.to_string(),
            Some(_) => format!("{DEFAULT_REGISTRY}/{self}"),
            None => format!("{DEFAULT_REGISTRY}/library/{self}"),
        }
    }

    /// The file name for an archive of the image for an architecture.
    #[must_use]
    pub fn archive_file_name(&self, architecture: CpuArchitecture) -> String {
        format!("{}-{}.tar", self.file_stem(), architecture.debian_name())
    }

    /// The file name for an archive of the image for several architectures.
    #[must_use]
    pub fn index_file_name(&self) -> String {
        format!("{}.tar", self.file_stem())
    }

    fn file_stem(&self) -> String {
        format!("{}-{}", self.repository.rsplit('/').next().unwrap_or_default(), self.tag)
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.repository, self.tag)
    }
}

/// True if the first component of a name is a registry host.
fn is_registry(part: &str) -> bool {
    let (host, port) = part.split_once(':').map_or((part, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let says_so = port.is_some() || host.contains('.') || host == "localhost";
    says_so && host.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// True if a component of a name is valid.
fn is_name_component(part: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let between = |run: &[u8]| {
        matches!(run, b"." | b"_" | b"__") || (!run.is_empty() && run.iter().all(|byte| *byte == b'-'))
    };
    let bytes = part.as_bytes();
    bytes.first().is_some_and(is_word)
        && bytes.last().is_some_and(is_word)
        && bytes
            .chunk_by(|one, other| is_word(one) == is_word(other))
            .all(|run| is_word(&run[0]) || between(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_every_engine_takes_are_taken() {
        for (repository, full) in [
            ("oarlock", "docker.io/library/oarlock:1.0-slim"),
            ("team/oarlock", "docker.io/team/oarlock:1.0-slim"),
            ("localhost/oarlock", "localhost/oarlock:1.0-slim"),
            ("registry.example.org:5000/a/b__c-----d.e", "registry.example.org:5000/a/b__c-----d.e:1.0-slim"),
        ] {
            let name = ImageName::new(repository, "1.0-slim").expect(repository);
            assert_eq!(name.with_registry(), full);
            assert_eq!(name.to_string(), format!("{repository}:1.0-slim"));
        }
        let name = ImageName::new("a.b/c/d", "1").expect("a name");
        assert_eq!(name.archive_file_name(CpuArchitecture::Aarch64), "d-1-arm64.tar");
        assert_eq!(name.index_file_name(), "d-1.tar");
    }

    #[test]
    fn names_that_some_engine_refuses_are_refused() {
        let long = "a".repeat(256);
        for repository in [
            "",
            "Oarlock",
            "a//b",
            "/a",
            "a/",
            "-a",
            "a-",
            "a..b",
            "a___b",
            "a b",
            "ä",
            "..",
            "host:99999/a",
            &long,
        ] {
            let error = ImageName::new(repository, "1").expect_err(repository).to_string();
            assert!(error.starts_with("expected the name of an image"), "{error}");
        }
        for tag in ["", ".1", "-1", "1+2", "1/2", "1:2", &long] {
            let error = ImageName::new("oarlock", tag).expect_err(tag).to_string();
            assert!(error.starts_with("expected a tag"), "{error}");
        }
    }
}

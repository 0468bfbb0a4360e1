//! The processor architectures that files are built for, and their names in each format.

use crate::error::Error;

/// A processor architecture.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TargetArchitecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl TargetArchitecture {
    /// All architectures, the most common one first.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The kernel's name, which also ends platform tags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Debian's name, which images use too.
    #[must_use]
    pub fn debian_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The compiler's name of it with Linux and glibc.
    pub fn rust_target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The directory of libraries on Debian.
    pub fn library_directory(self) -> String {
        format!("usr/lib/{}-linux-gnu", self.name())
    }

    /// The architecture of this program.
    ///
    /// # Errors
    ///
    /// When it is not one that files are built for.
    pub fn of_host() -> Result<Self, Error> {
        Self::parse_name(std::env::consts::ARCH, Self::name)
    }

    /// The architecture with a name of Debian's.
    ///
    /// # Errors
    ///
    /// When nothing is built for it.
    pub fn of_debian_name(found: &str) -> Result<Self, Error> {
        Self::parse_name(found, Self::debian_name)
    }

    /// The architecture of a platform tag such as `manylinux_2_28_x86_64`, and the tag without it.
    pub fn split_platform(tag: &str) -> Option<(&str, Self)> {
        Self::ALL.into_iter().find_map(|it| Some((tag.strip_suffix(it.name())?.strip_suffix('_')?, it)))
    }

    fn parse_name(found: &str, name: fn(Self) -> &'static str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|it| name(*it) == found).ok_or_else(|| {
            let known = Self::ALL.map(|it| format!("`{}`", name(it))).join(" or ");
            Error::new(format!("expected the architecture {known}, found `{found}`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_has_a_name_in_each_format() {
        for it in TargetArchitecture::ALL {
            let tag = format!("manylinux_2_28_{}", it.name());
            assert_eq!(TargetArchitecture::split_platform(&tag), Some(("manylinux_2_28", it)));
            assert_eq!(TargetArchitecture::of_debian_name(it.debian_name()), Ok(it));
        }
        assert_eq!(TargetArchitecture::split_platform("manylinux_2_28_armv7l"), None);
        let error = TargetArchitecture::of_debian_name("armhf").expect_err("no such packages").to_string();
        assert_eq!(error, "expected the architecture `amd64` or `arm64`, found `armhf`");
    }
}

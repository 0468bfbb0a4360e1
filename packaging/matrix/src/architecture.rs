//! The processor architectures that wheels and packages are built for.

use std::str::FromStr;

use oarlock_formats::error::Error;

use serde::{Deserialize, Serialize};

/// A processor architecture. Files name it as Debian does.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub enum CpuArchitecture {
    /// x86-64.
    #[default]
    #[serde(rename = "amd64")]
    X86_64,
    /// 64-bit ARM.
    #[serde(rename = "arm64")]
    Aarch64,
}

impl CpuArchitecture {
    /// All architectures.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The kernel's name, with which platform tags end.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The architecture of this machine; `None` if nothing is built for it.
    #[must_use]
    pub fn of_machine() -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == std::env::consts::ARCH)
    }

    /// Debian's name, which is also the name in container images.
    #[must_use]
    pub fn debian_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// The name of Debian's directory for its libraries.
    #[must_use]
    pub fn multiarch_name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
        }
    }

    /// The target triple of the compiler.
    #[must_use]
    pub fn target_triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The architecture of a platform tag such as `manylinux_2_28_x86_64`; `None` if nothing is built for it.
    #[must_use]
    pub fn from_platform_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| tag.strip_suffix(it.name()).is_some_and(|rest| rest.ends_with('_')))
    }
}

/// Parses Debian's name.
impl FromStr for CpuArchitecture {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let names = || Self::ALL.map(Self::debian_name).join(", ");
        let found = Self::ALL.into_iter().find(|it| it.debian_name() == name);
        found.ok_or_else(|| {
            Error::new(format!("expected an architecture, one of {}; found `{name}`", names()))
        })
    }
}

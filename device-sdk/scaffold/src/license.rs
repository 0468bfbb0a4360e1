//! The license of a new plugin.

const APACHE_2: &str = include_str!("../../../LICENSE");
const MIT: &str = include_str!("../../templates/project/licenses/MIT.txt");
const BSD_3_CLAUSE: &str = include_str!("../../templates/project/licenses/BSD-3-Clause.txt");
const ALL_RIGHTS_RESERVED: &str = include_str!("../../templates/project/licenses/proprietary.txt");

/// A license whose text is written into a new plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectLicense {
    /// The Apache License 2.0, which Oarlock has too.
    Apache2,
    /// The MIT license.
    Mit,
    /// The BSD license with three clauses.
    Bsd3,
    /// No license to others.
    Proprietary,
}

impl ProjectLicense {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Apache2, Self::Mit, Self::Bsd3, Self::Proprietary];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Apache2 => "Apache-2.0",
            Self::Mit => "MIT",
            Self::Bsd3 => "BSD-3-Clause",
            Self::Proprietary => "proprietary",
        }
    }

    /// The SPDX expression, as packages state it.
    #[must_use]
    pub fn expression(self) -> &'static str {
        match self {
            Self::Proprietary => "LicenseRef-Proprietary",
            _ => self.name(),
        }
    }

    /// The text, with the sample's vendor as the holder where it names one.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Apache2 => APACHE_2,
            Self::Mit => MIT,
            Self::Bsd3 => BSD_3_CLAUSE,
            Self::Proprietary => ALL_RIGHTS_RESERVED,
        }
    }
}

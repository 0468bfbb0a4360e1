//! Compatibility of contract versions (rule V-1).

use core::fmt;

use crate::{CONTRACT_MAJOR, CONTRACT_MINOR};

/// The versions of the contract that one side supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The major version. Different major versions are incompatible.
    pub major: u32,
    /// The newest minor version that this side knows.
    pub newest_minor: u32,
    /// The oldest minor version of the other side that this side accepts.
    pub oldest_minor: u32,
}

impl Versions {
    /// The versions that this build supports.
    pub const OURS: Self = Self { major: CONTRACT_MAJOR, newest_minor: CONTRACT_MINOR, oldest_minor: 0 };

    /// True if the two sides are compatible.
    pub fn meet(self, other: Self) -> bool {
        self.major == other.major
            && self.newest_minor >= other.oldest_minor
            && other.newest_minor >= self.oldest_minor
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, newest_minor, oldest_minor } = self;
        if newest_minor == oldest_minor {
            write!(f, "{major}.{newest_minor}")
        } else {
            write!(f, "{major}.{oldest_minor} to {major}.{newest_minor}")
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::Versions;

    fn versions(major: u32, oldest_minor: u32, newest_minor: u32) -> Versions {
        Versions { major, newest_minor, oldest_minor }
    }

    #[test]
    fn sides_meet_when_each_knows_what_the_other_needs() {
        assert!(versions(1, 0, 3).meet(versions(1, 0, 0)));
        assert!(versions(1, 2, 3).meet(versions(1, 0, 2)));
    }

    #[test]
    fn sides_do_not_meet_across_majors_or_past_the_oldest_minor() {
        assert!(!versions(1, 0, 0).meet(versions(2, 0, 0)));
        assert!(!versions(1, 0, 1).meet(versions(1, 2, 4)));
        assert!(!versions(1, 2, 4).meet(versions(1, 0, 1)));
    }

    #[test]
    fn a_range_is_written_with_both_ends() {
        assert_eq!(versions(1, 0, 3).to_string(), "1.0 to 1.3");
        assert_eq!(versions(1, 2, 2).to_string(), "1.2");
    }
}

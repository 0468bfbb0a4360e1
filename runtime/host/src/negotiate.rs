//! Decides whether a plugin and the host are compatible, in both directions (rule V-1).

use oarlock_abi as abi;

use crate::ContractRange;

/// The oldest minor version of a plugin that this host still supports.
pub const OLDEST_MINOR: u32 = 0;

/// The versions of the contract that this host understands.
pub const HOST_CONTRACT: ContractRange =
    ContractRange { major: abi::CONTRACT_MAJOR, min_minor: OLDEST_MINOR, max_minor: abi::CONTRACT_MINOR };

/// The side that is behind, and so has to be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutdatedSide {
    Host,
    Plugin,
}

/// Agrees on the smaller of the two newest minor versions. The error is the side that is behind.
pub(crate) fn negotiate_minor(host: ContractRange, plugin: ContractRange) -> Result<u32, OutdatedSide> {
    match host.major.cmp(&plugin.major) {
        std::cmp::Ordering::Less => return Err(OutdatedSide::Host),
        std::cmp::Ordering::Greater => return Err(OutdatedSide::Plugin),
        std::cmp::Ordering::Equal => {}
    }
    if plugin.max_minor < host.min_minor {
        Err(OutdatedSide::Plugin)
    } else if host.max_minor < plugin.min_minor {
        Err(OutdatedSide::Host)
    } else {
        Ok(host.max_minor.min(plugin.max_minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract_range(major: u32, min_minor: u32, max_minor: u32) -> ContractRange {
        ContractRange { major, min_minor, max_minor }
    }

    #[test]
    fn ranges_that_meet_agree_on_the_smaller_newest() {
        assert_eq!(negotiate_minor(contract_range(1, 0, 4), contract_range(1, 0, 2)), Ok(2));
        assert_eq!(negotiate_minor(contract_range(1, 0, 2), contract_range(1, 2, 9)), Ok(2));
        assert_eq!(negotiate_minor(contract_range(1, 3, 3), contract_range(1, 3, 3)), Ok(3));
    }

    #[test]
    fn the_side_that_is_behind_is_named_in_both_directions() {
        assert_eq!(
            negotiate_minor(contract_range(1, 2, 4), contract_range(1, 0, 1)),
            Err(OutdatedSide::Plugin)
        );
        assert_eq!(
            negotiate_minor(contract_range(1, 0, 1), contract_range(1, 2, 4)),
            Err(OutdatedSide::Host)
        );
        assert_eq!(
            negotiate_minor(contract_range(1, 0, 1), contract_range(2, 0, 0)),
            Err(OutdatedSide::Host)
        );
        assert_eq!(
            negotiate_minor(contract_range(2, 0, 1), contract_range(1, 0, 9)),
            Err(OutdatedSide::Plugin)
        );
        assert_eq!(
            negotiate_minor(contract_range(1, 0, 0), contract_range(u32::MAX, u32::MAX, u32::MAX)),
            Err(OutdatedSide::Host)
        );
    }
}

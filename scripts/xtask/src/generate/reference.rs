use oarlock_contract::Contract;
pub(super) fn page(_: &Contract) -> String { String::new() }

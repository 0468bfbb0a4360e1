use oarlock_contract::Contract;
pub(super) fn layer(_: &Contract) -> String { String::new() }

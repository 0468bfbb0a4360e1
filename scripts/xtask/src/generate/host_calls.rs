use oarlock_contract::Contract;
pub(super) fn calls(_: &Contract) -> String { String::new() }

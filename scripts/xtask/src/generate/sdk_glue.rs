use oarlock_contract::Contract;
pub(super) fn glue(_: &Contract) -> String { String::new() }

//! The text of a contract.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(contract) = oarlock_contract::read_contract(text) {
        oarlock_contract::lock::lock_text(&contract);
    }
});

//! A shared object from an untrusted source.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use oarlock_host::{SharedObject, check_symbols};

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("/fuzzed.so");
    if let Ok(elf) = SharedObject::parse_bytes(path, bytes) {
        let _ = check_symbols(path, &elf);
    }
});

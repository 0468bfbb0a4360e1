//! Debian packages: archives in archives, compressed or not, and their metadata. A package that parses must survive being written
//! and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oarlock_formats::deb::DebPackage;

fuzz_target!(|bytes: &[u8]| {
    let Ok(package) = DebPackage::from_bytes(bytes) else { return };
    let Ok(written) = package.to_bytes(1_700_000_000) else { return };
    let again = DebPackage::from_bytes(&written).expect("what was written is a package");
    assert_eq!((&again.scripts, &again.contents), (&package.scripts, &package.contents));
    // Writing a package sets its size, so the old field does not count.
    for field in ["Package", "Version", "Architecture", "Depends", "Description"] {
        assert_eq!(again.control.get(field), package.control.get(field));
    }
});

//! Packages of Debian: archives in archives, packed or not, and what is said of them. What is read is written so that it is
//! read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oarlock_pack::deb::DebPackage;

fuzz_target!(|bytes: &[u8]| {
    let Ok(package) = DebPackage::from_bytes(bytes) else { return };
    let Ok(written) = package.to_bytes(1_700_000_000) else { return };
    let again = DebPackage::from_bytes(&written).expect("what was written is a package");
    assert_eq!((&again.scripts, &again.contents), (&package.scripts, &package.contents));
    // It says how large it is, whatever it said before.
    for field in ["Package", "Version", "Architecture", "Depends", "Description"] {
        assert_eq!(again.control.get(field), package.control.get(field));
    }
});

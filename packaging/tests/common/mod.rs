//! Tiny wheels and other fixtures.

mod directory;

use std::path::Path;

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;

pub(crate) use self::directory::file_names;

/// Writes a wheel into a directory.
pub(crate) fn put_wheel(directory: &Path, distribution: &str, version: &str) {
    let metadata = format!(
        "Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\nRequires-Python: >=3.9\n\nText\n"
    );
    let mut wheel = Wheel::new(&format!("{distribution}-{version}"));
    wheel.add_metadata("METADATA", metadata.into_bytes());
    wheel.add_metadata("WHEEL", b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_vec());
    wheel.add_file(&format!("{distribution}.py"), format!("version = '{version}'\n").into_bytes());
    let file = directory.join(format!("{distribution}-{version}-py3-none-any.whl"));
    std::fs::write(file, wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel")).expect("a file");
}

//! What compiling gives, in a few bytes.

use oarlock_pack::assemble::{Built, Core, Plugin};
use oarlock_pack::wheel::Wheel;

fn built(part: &str, package: &str, opens: &[&str]) -> Built {
    Built {
        part: part.to_owned(),
        package: package.to_owned(),
        opens: opens.iter().map(ToString::to_string).collect(),
        bill: "{}\n".to_owned(),
        licences: "of others".to_owned(),
        licence: "ours".to_owned(),
    }
}

/// A part of the matrix that is a plugin; that of CUDA is the same for any version.
pub(crate) fn plugin(part: &str) -> Plugin {
    let name = part.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Plugin {
        built: built(part, &format!("oarlock-plugin-{name}"), &["libfar.so.1"]),
        library: vec![0x7f, b'E', b'L', b'F'],
        manifest: Some("name = \"x\"\npackage = \"y\"\n".to_owned()),
    }
}

/// The core, of a wheel that has its files.
pub(crate) fn core(wheel: Wheel) -> Core {
    Core { built: built("core", "oarlock-python", &[]), wheel }
}

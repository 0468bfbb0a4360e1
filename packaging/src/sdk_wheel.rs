//! The wheel `oarlock-sdk`: what a plugin is compiled against, for machines that have Python and no checkout.

use std::fs;
use std::path::Path;

use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_scaffold::{CONTRACT_HEADERS, sdk_files};

use crate::assemble::{LICENSE_FILE, REQUIRES_PYTHON};
use crate::packages;

/// The Python package in the wheel.
const PYTHON_PACKAGE: &str = "oarlock_sdk";

const CMAKE_TEMPLATE: &str = include_str!("../../device-sdk/install/OarlockSdkConfig.cmake.in");

/// Prints where the parts of the package are.
const PYTHON_MODULE: &str = include_str!("sdk_module.py");

/// The name and the contents of the wheel. `root` is the source tree, which has the templates.
///
/// # Errors
///
/// When a file of the source tree cannot be read.
pub fn assemble_sdk_wheel(root: &Path) -> Result<(String, Wheel), Error> {
    let version = env!("CARGO_PKG_VERSION");
    let stem = format!("{PYTHON_PACKAGE}-{version}");
    let mut wheel = Wheel::new(&stem);
    let mut add = |path: &str, text: &str| {
        wheel.add_file(&format!("{PYTHON_PACKAGE}/{path}"), text.as_bytes().to_vec());
    };
    add(
        "__init__.py",
        "\"\"\"What plugins for Oarlock are compiled against. `python -m oarlock_sdk --help` says where it is.\"\"\"\n",
    );
    add("__main__.py", PYTHON_MODULE);
    for (name, text) in CONTRACT_HEADERS {
        add(&format!("include/oarlock/{name}"), text);
    }
    for (path, text) in sdk_files() {
        add(&format!("rust/{path}"), text);
    }
    let config =
        CMAKE_TEMPLATE.replace("@PREFIX@", "${CMAKE_CURRENT_LIST_DIR}/..").replace("@VERSION@", version);
    add("cmake/OarlockSdkConfig.cmake", &config);
    add_templates(&mut wheel, &root.join("device-sdk/templates"), &format!("{PYTHON_PACKAGE}/templates"))?;
    let license = root.join(LICENSE_FILE);
    let license = fs::read(&license).map_err(|error| Error::from(error).in_file(license.display()))?;
    wheel.add_metadata(&format!("licenses/{LICENSE_FILE}"), license);
    let metadata = format!(
        "Metadata-Version: 2.4\nName: oarlock-sdk\nVersion: {version}\n\
         Summary: What plugins for Oarlock are compiled against: C headers, the Rust SDK, a CMake configuration, templates\n\
         Author: The Oarlock developers\nLicense-Expression: Apache-2.0\nLicense-File: {LICENSE_FILE}\n\
         Requires-Python: {REQUIRES_PYTHON}\nProject-URL: Homepage, {}\nDescription-Content-Type: text/markdown\n\n\
         `python -m oarlock_sdk --include` prints the directory of the headers, `--cmake` that of the configuration for CMake, \
         `--rust` that of the crate `oarlock-sdk`, and `--templates` that of plugins to start from.\n",
        packages::homepage()?
    );
    wheel.add_metadata("METADATA", metadata.into_bytes());
    let about = format!(
        "Wheel-Version: 1.0\nGenerator: oarlock-pack ({version})\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    );
    wheel.add_metadata("WHEEL", about.into_bytes());
    Ok((format!("{stem}-py3-none-any.whl"), wheel))
}

/// Adds the files of a directory.
fn add_templates(wheel: &mut Wheel, directory: &Path, at: &str) -> Result<(), Error> {
    let of_file = |error: std::io::Error| Error::from(error).in_file(directory.display());
    for entry in fs::read_dir(directory).map_err(of_file)? {
        let path = entry?.path();
        let at = format!("{at}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        match path.is_dir() {
            true => add_templates(wheel, &path, &at)?,
            false => wheel.add_file(&at, fs::read(&path).map_err(of_file)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_has_all_that_a_plugin_is_compiled_against() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the source tree");
        let (name, wheel) = assemble_sdk_wheel(root).expect("a wheel");
        assert_eq!(name, format!("oarlock_sdk-{}-py3-none-any.whl", env!("CARGO_PKG_VERSION")));
        for path in [
            "include/oarlock/contract.h",
            "rust/sdk/Cargo.toml",
            "rust/abi/src/generated.rs",
            "cmake/OarlockSdkConfig.cmake",
            "templates/cpp/device/plugin.cpp",
            "__main__.py",
        ] {
            assert!(wheel.file_bytes(&format!("{PYTHON_PACKAGE}/{path}")).is_ok(), "{path}");
        }
        let config = wheel.file_bytes("oarlock_sdk/cmake/OarlockSdkConfig.cmake").expect("a file");
        assert!(!String::from_utf8_lossy(config).contains("@PREFIX@"));
    }
}

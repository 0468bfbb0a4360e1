//! Yanked wheels.

use crate::served_index::{ServedIndex, VERSION, buildable_rows};
use crate::tools::{PythonEnvironment, PythonInstaller, pip_versions};

pub(crate) fn what_is_yanked_comes_only_to_who_asks_for_just_this() {
    let name = &buildable_rows()[0].name;
    let served = ServedIndex::with_two_releases(&format!("\"{name}\" = \"loses files\"\n"));
    let (index, pin) = (served.simple_address(), format!("oarlock=={VERSION}"));
    let files = served.simple_file_address();
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        for index in [&index, &files] {
            let about = |version: &str| format!("oarlock-{version}.dist-info/METADATA");
            let environment = PythonEnvironment::new();
            environment.install_requirements(installer, &["--index-url", index, "oarlock"]);
            assert!(environment.installed_files().contains(&about("0.0.9")), "{installer:?}");
            let message = environment.install_requirements(installer, &["--index-url", index, &pin]);
            assert!(environment.installed_files().contains(&about(VERSION)), "{installer:?}");
            assert!(message.contains("loses files"), "{installer:?}: {message}");
        }
    }
}

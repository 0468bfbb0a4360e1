//! Wheels that should not be installed any more.

use crate::serving::{Served, VERSION, rows};
use crate::tools::{Environment, Installer, pips};

pub(crate) fn what_is_yanked_comes_only_to_who_asks_for_just_this() {
    let name = &rows()[0].name;
    let served = Served::two_releases(&format!("\"{name}\" = \"loses files\"\n"));
    let (index, pin) = (served.simple(), format!("oarlock=={VERSION}"));
    let files = served.simple_as_files();
    for installer in pips().iter().chain([&Installer::Uv]) {
        for index in [&index, &files] {
            let about = |version: &str| format!("oarlock-{version}.dist-info/METADATA");
            let environment = Environment::new();
            environment.installs(installer, &["--index-url", index, "oarlock"]);
            assert!(environment.installed().contains(&about("0.0.9")), "{installer:?}");
            let said = environment.installs(installer, &["--index-url", index, &pin]);
            assert!(environment.installed().contains(&about(VERSION)), "{installer:?}");
            assert!(said.contains("loses files"), "{installer:?}: {said}");
        }
    }
}

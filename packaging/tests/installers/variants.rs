//! Variants of the plain version, for who knows what those are.

use crate::serving::{Served, VERSION, rows};
use crate::tools::{Environment, Installer, contents, pips};

pub(crate) fn who_knows_no_variants_passes_over_them() {
    let served = Served::with_variants();
    let plain = contents(&served.made(&rows()[0].name.to_string()));
    for installer in pips().iter().chain([&Installer::Uv]) {
        for index in [served.simple(), served.simple_as_files()] {
            let environment = Environment::new();
            environment.installs(installer, &["--index-url", &index, "oarlock"]);
            assert_eq!(environment.installed(), plain, "{installer:?} {index}");
        }
    }
}

pub(crate) fn who_knows_variants_reads_what_is_said_of_them() {
    let served = Served::with_variants();
    let preview = ["pip", "install", "--preview-features", "wheel-variants", "--index-url"];
    let environment = Environment::new();
    // Which of them fits a machine is not settled, so uv takes none by itself.
    environment.succeeds(&Installer::Uv, &[&preview[..], &[&served.simple(), "oarlock"]].concat());
    let about = format!("GET /files/oarlock-{VERSION}-variants.json 200");
    assert!(served.log().contains(&about), "{}", served.log());
    assert!(environment.installed().contains("oarlock/__init__.py"));

    let row = rows().into_iter().find(|row| row.label == "cpu, mkl").expect("a row of the matrix");
    let name = format!("oarlock-{VERSION}-{}-{}-cpu.mkl.whl", row.name.python, row.name.platform);
    let file = format!("{}/files/{name}", served.address);
    let said = environment.fails(&Installer::Uv, &[&preview[..], &[&served.simple(), &file]].concat());
    assert!(said.contains("has only unsupported wheel variants"), "{said}");
}

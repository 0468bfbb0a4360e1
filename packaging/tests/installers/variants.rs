//! Variants of the plain version, for installers that support them.

use crate::served_index::{ServedIndex, VERSION, buildable_rows};
use crate::tools::{PythonEnvironment, PythonInstaller, pip_versions, wheel_file_names};

pub(crate) fn who_knows_no_variants_passes_over_them() {
    let served = ServedIndex::with_variants();
    let plain = wheel_file_names(&served.built_wheel_path(&buildable_rows()[0].name.to_string()));
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        for index in [served.simple_address(), served.simple_file_address()] {
            let environment = PythonEnvironment::new();
            environment.install_requirements(installer, &["--index-url", &index, "oarlock"]);
            assert_eq!(environment.installed_files(), plain, "{installer:?} {index}");
        }
    }
}

pub(crate) fn who_knows_variants_reads_what_is_said_of_them() {
    let served = ServedIndex::with_variants();
    let preview = ["pip", "install", "--preview-features", "wheel-variants", "--index-url"];
    let environment = PythonEnvironment::new();
    // The draft does not settle how installers detect fitting variants, so uv takes none by default.
    environment.run_successfully(
        &PythonInstaller::Uv,
        &[&preview[..], &[&served.simple_address(), "oarlock"]].concat(),
    );
    let about = format!("GET /files/oarlock-{VERSION}-variants.json 200");
    assert!(served.request_log().contains(&about), "{}", served.request_log());
    assert!(environment.installed_files().contains("oarlock/__init__.py"));

    let row = buildable_rows().into_iter().find(|row| row.label == "cpu, mkl").expect("a row of the matrix");
    let name = format!("oarlock-{VERSION}-{}-{}-cpu.mkl.whl", row.name.python, row.name.platform);
    let file = format!("{}/files/{name}", served.address);
    let message = environment
        .run_to_failure(&PythonInstaller::Uv, &[&preview[..], &[&served.simple_address(), &file]].concat());
    assert!(message.contains("has only unsupported wheel variants"), "{message}");
}

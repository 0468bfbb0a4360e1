//! Installs one flavor of the core after another into the same environment.

use crate::served_index::{ServedIndex, VERSION, buildable_rows};
use crate::tools::{PythonEnvironment, PythonInstaller, pip_versions, wheel_file_names};

pub(crate) fn a_flavor_takes_the_place_of_another_and_leaves_nothing() {
    let served = ServedIndex::own_matrix();
    let index = served.simple_address();
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        let environment = PythonEnvironment::new();
        for label in
            ["core", "cpu, mkl", "core, without AVX", "cuda12, openblas, noavx", "cpu, openblas", "core"]
        {
            let row =
                buildable_rows().into_iter().find(|row| row.label == label).expect("a row of the matrix");
            let page = served.page_address(&row.directory);
            let requirement = format!("oarlock=={}", row.name.version);
            let from = match row.directory.as_str() {
                // pip considers `1.0+mkl` to satisfy `1.0` and keeps it, so users need this option.
                "" => vec!["--force-reinstall", "--index-url", &index],
                _ => vec!["--index-url", &index, "--find-links", &page],
            };
            environment.install_requirements(installer, &[&from[..], &[&requirement]].concat());
            let wheel = wheel_file_names(&served.built_wheel_path(&row.name.to_string()));
            assert_eq!(environment.installed_files(), wheel, "{installer:?}: {label}");
        }
        environment.uninstall_packages(installer, &["oarlock"]);
        assert_eq!(environment.added_files(), Vec::<String>::new(), "{installer:?}");
    }
}

pub(crate) fn plugins_stand_beside_the_core_and_go_without_a_trace() {
    let served = ServedIndex::own_matrix();
    let index = served.simple_address();
    let names = ["oarlock", "oarlock-cuda12", "oarlock-mkl", "oarlock-opencl"];
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        let environment = PythonEnvironment::new();
        environment.install_requirements(installer, &[&["--index-url", index.as_str()], &names[..]].concat());
        let all = environment.installed_files();
        let made = |name: &str| {
            buildable_rows().into_iter().find(|row| row.name.distribution == name).expect("a row")
        };
        let wheels = names
            .iter()
            .flat_map(|name| wheel_file_names(&served.built_wheel_path(&made(name).name.to_string())));
        assert_eq!(all, wheels.collect());
        environment.uninstall_packages(installer, &names[1..]);
        let core = format!("oarlock-{VERSION}.dist-info/");
        assert!(
            environment
                .installed_files()
                .iter()
                .all(|path| path.starts_with("oarlock/") || path.starts_with(&core))
        );
        environment.uninstall_packages(installer, &names[..1]);
        assert_eq!(environment.added_files(), Vec::<String>::new(), "{installer:?}");
    }
}

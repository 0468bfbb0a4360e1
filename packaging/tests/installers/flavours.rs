//! One flavour of the core after another in the same environment.

use crate::serving::{Served, VERSION, rows};
use crate::tools::{Environment, Installer, contents, pips};

pub(crate) fn a_flavour_takes_the_place_of_another_and_leaves_nothing() {
    let served = Served::matrix();
    let index = served.simple();
    for installer in pips().iter().chain([&Installer::Uv]) {
        let environment = Environment::new();
        for label in
            ["core", "cpu, mkl", "core, without AVX", "cuda12, openblas, noavx", "cpu, openblas", "core"]
        {
            let row = rows().into_iter().find(|row| row.label == label).expect("a row of the matrix");
            let page = served.page(&row.directory);
            let requirement = format!("oarlock=={}", row.name.version);
            let from = match row.directory.as_str() {
                // pip keeps `1.0+mkl` where `1.0` is asked for, which it fits; so do users have to be told.
                "" => vec!["--force-reinstall", "--index-url", &index],
                _ => vec!["--index-url", &index, "--find-links", &page],
            };
            environment.installs(installer, &[&from[..], &[&requirement]].concat());
            let wheel = contents(&served.made(&row.name.to_string()));
            assert_eq!(environment.installed(), wheel, "{installer:?}: {label}");
        }
        environment.removes(installer, &["oarlock"]);
        assert_eq!(environment.added(), Vec::<String>::new(), "{installer:?}");
    }
}

pub(crate) fn plugins_stand_beside_the_core_and_go_without_a_trace() {
    let served = Served::matrix();
    let index = served.simple();
    let names = ["oarlock", "oarlock-cuda12", "oarlock-mkl", "oarlock-opencl"];
    for installer in pips().iter().chain([&Installer::Uv]) {
        let environment = Environment::new();
        environment.installs(installer, &[&["--index-url", index.as_str()], &names[..]].concat());
        let all = environment.installed();
        let made = |name: &str| rows().into_iter().find(|row| row.name.distribution == name).expect("a row");
        let wheels = names.iter().flat_map(|name| contents(&served.made(&made(name).name.to_string())));
        assert_eq!(all, wheels.collect());
        environment.removes(installer, &names[1..]);
        let core = format!("oarlock-{VERSION}.dist-info/");
        assert!(
            environment
                .installed()
                .iter()
                .all(|path| path.starts_with("oarlock/") || path.starts_with(&core))
        );
        environment.removes(installer, &names[..1]);
        assert_eq!(environment.added(), Vec::<String>::new(), "{installer:?}");
    }
}

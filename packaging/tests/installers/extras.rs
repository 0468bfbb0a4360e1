//! Extras, whose libraries lie in another index than ours.

use crate::serving::{Served, VERSION};
use crate::tools::{Environment, Installer, pips};

pub(crate) fn an_extra_brings_the_libraries_of_a_vendor_from_another_index() {
    let (ours, public) = (Served::matrix(), Served::public());
    let (ours, noavx, public) = (ours.simple(), ours.page("/noavx"), public.simple());
    let plain = format!("oarlock[cuda12]=={VERSION}");
    let without_avx = format!("{plain}+noavx");
    for installer in pips().iter().chain([&Installer::Uv]) {
        // As `scripts/install.sh` has it; the public one stands for the index that pip and uv always look at.
        let indexes = match installer {
            Installer::Pip(_) => ["--index-url", &public, "--extra-index-url", &ours],
            Installer::Uv => ["--index", &ours, "--default-index", &public],
        };
        for more in [&[plain.as_str()][..], &[&without_avx, "--find-links", &noavx]] {
            let environment = Environment::new();
            environment.installs(installer, &[&indexes, more].concat());
            let found = environment.installed();
            for file in ["oarlock/__init__.py", "oarlock_cuda12/__init__.py", "nvrtc.py", "cublas.py"] {
                assert!(found.contains(file), "{installer:?}: {file} in {found:?}");
            }
        }
    }
}

pub(crate) fn the_libraries_stay_away_where_they_are_local() {
    let ours = Served::matrix();
    for installer in pips().iter().chain([&Installer::Uv]) {
        let environment = Environment::new();
        let wanted = format!("oarlock[cuda12-local,mkl-local]=={VERSION}");
        environment.installs(installer, &["--index-url", &ours.simple(), &wanted]);
        let found = environment.installed();
        assert!(found.contains("oarlock_cuda12/__init__.py") && found.contains("oarlock_mkl/__init__.py"));
    }
}

pub(crate) fn uv_takes_from_our_index_alone_what_a_stranger_has_too() {
    let (ours, public) = (Served::matrix(), Served::public_with_a_stranger());
    let environment = Environment::new();
    let wanted = format!("oarlock[cuda12]=={VERSION}");
    let indexes = ["--index", &ours.simple(), "--default-index", &public.simple()];
    environment.installs(&Installer::Uv, &[&indexes[..], &[&wanted]].concat());
    let found = environment.installed();
    assert!(found.contains("oarlock_cuda12/__init__.py") && !found.contains("stranger.py"), "{found:?}");
}

pub(crate) fn one_file_has_no_extras_and_installers_say_so() {
    let ours = Served::matrix();
    let wanted = format!("oarlock[mkl]=={VERSION}+cpu.mkl");
    for installer in pips().iter().chain([&Installer::Uv]) {
        let environment = Environment::new();
        let from = ["--index-url", &ours.simple(), "--find-links", &ours.page("/cpu-mkl")];
        let told = environment.installs(installer, &[&from[..], &[&wanted]].concat());
        let words = match installer {
            Installer::Pip(_) => format!("oarlock {VERSION}+cpu.mkl does not provide the extra 'mkl'"),
            Installer::Uv => "does not have an extra named `mkl`".to_owned(),
        };
        assert!(told.contains(&words), "{installer:?}: {told}");
        assert!(!environment.installed().iter().any(|path| path.starts_with("oarlock_mkl")));
    }
}

//! Extras, whose libraries come from another index than ours.

use crate::served_index::{ServedIndex, VERSION};
use crate::tools::{PythonEnvironment, PythonInstaller, pip_versions};

pub(crate) fn an_extra_brings_the_libraries_of_a_vendor_from_another_index() {
    let (ours, public) = (ServedIndex::own_matrix(), ServedIndex::public_index());
    let (ours, noavx, public) = (ours.simple_address(), ours.page_address("/noavx"), public.simple_address());
    let plain = format!("oarlock[cuda12]=={VERSION}");
    let without_avx = format!("{plain}+noavx");
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        // As in `scripts/install.sh`; the public index stands for the default index of pip and uv.
        let indexes = match installer {
            PythonInstaller::Pip(_) => ["--index-url", &public, "--extra-index-url", &ours],
            PythonInstaller::Uv => ["--index", &ours, "--default-index", &public],
        };
        for more in [&[plain.as_str()][..], &[&without_avx, "--find-links", &noavx]] {
            let environment = PythonEnvironment::new();
            environment.install_requirements(installer, &[&indexes, more].concat());
            let found = environment.installed_files();
            for file in ["oarlock/__init__.py", "oarlock_cuda12/__init__.py", "nvrtc.py", "cublas.py"] {
                assert!(found.contains(file), "{installer:?}: {file} in {found:?}");
            }
        }
    }
}

pub(crate) fn the_libraries_stay_away_where_they_are_local() {
    let ours = ServedIndex::own_matrix();
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        let environment = PythonEnvironment::new();
        let wanted = format!("oarlock[cuda12-local,mkl-local]=={VERSION}");
        environment.install_requirements(installer, &["--index-url", &ours.simple_address(), &wanted]);
        let found = environment.installed_files();
        assert!(found.contains("oarlock_cuda12/__init__.py") && found.contains("oarlock_mkl/__init__.py"));
    }
}

pub(crate) fn uv_takes_from_our_index_alone_what_a_stranger_has_too() {
    let (ours, public) = (ServedIndex::own_matrix(), ServedIndex::public_index_with_stranger());
    let environment = PythonEnvironment::new();
    let wanted = format!("oarlock[cuda12]=={VERSION}");
    let indexes = ["--index", &ours.simple_address(), "--default-index", &public.simple_address()];
    environment.install_requirements(&PythonInstaller::Uv, &[&indexes[..], &[&wanted]].concat());
    let found = environment.installed_files();
    assert!(found.contains("oarlock_cuda12/__init__.py") && !found.contains("stranger.py"), "{found:?}");
}

pub(crate) fn one_file_has_no_extras_and_installers_say_so() {
    let ours = ServedIndex::own_matrix();
    let wanted = format!("oarlock[mkl]=={VERSION}+cpu.mkl");
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        let environment = PythonEnvironment::new();
        let from = ["--index-url", &ours.simple_address(), "--find-links", &ours.page_address("/cpu-mkl")];
        let expected = environment.install_requirements(installer, &[&from[..], &[&wanted]].concat());
        let words = match installer {
            PythonInstaller::Pip(_) => format!("oarlock {VERSION}+cpu.mkl does not provide the extra 'mkl'"),
            PythonInstaller::Uv => "does not have an extra named `mkl`".to_owned(),
        };
        assert!(expected.contains(&words), "{installer:?}: {expected}");
        assert!(!environment.installed_files().iter().any(|path| path.starts_with("oarlock_mkl")));
    }
}

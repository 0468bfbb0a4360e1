//! Historical options select rows of the matrix.

use oarlock_matrix::options::{ResolvedOptions, resolve_options};
use oarlock_matrix::{OWN_MATRIX, WheelMatrix};

fn resolve_without_gpus(options: &[&str]) -> Result<ResolvedOptions, String> {
    resolve_on_gpus(&[], options)
}

/// Resolves options on a machine with GPUs of these compute capabilities.
fn resolve_on_gpus(gpus: &[&str], options: &[&str]) -> Result<ResolvedOptions, String> {
    let here = || gpus.iter().map(|gpu| gpu.parse().expect("a number")).collect();
    let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
    let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    resolve_options(&matrix, &options, &here).map_err(|error| error.to_string())
}

#[test]
fn options_choose_rows() {
    for (options, rows) in [
        (&[][..], &["cuda12, mkl", "cuda13, mkl"][..]),
        (&["WITH_GPU=OFF"], &["cpu, mkl"]),
        (&["WITH_GPU=OFF", "WITH_MKL=OFF"], &["cpu, openblas"]),
        (&["WITH_GPU=OFF", "WITH_AVX=OFF"], &["cpu, mkl, noavx"]),
        (&["WITH_MKL=OFF", "WITH_AVX=OFF"], &["cuda12, openblas, noavx", "cuda13, openblas, noavx"]),
        (&["WITH_GPU:BOOL=off", "WITH_MKL=0", "PY_VERSION=3.12"], &["cpu, openblas"]),
        // The last value counts.
        (&["WITH_GPU=ON", "WITH_GPU=OFF"], &["cpu, mkl"]),
        // An option without meaning selects nothing.
        (
            &["WITH_GPU=OFF", "WITH_TESTING=ON", "CUDA_ARCH_NAME=ampere", "CUDNN_ROOT=/opt/cudnn"],
            &["cpu, mkl"],
        ),
    ] {
        assert_eq!(resolve_without_gpus(options).expect("rows").rows, rows, "{options:?}");
    }
}

#[test]
fn defaults_are_those_of_the_tables() {
    let all = resolve_without_gpus(&[]).expect("rows").options;
    let shown: Vec<String> = all.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
    let expected = "WITH_GPU=ON WITH_ROCM=OFF WITH_AVX=ON WITH_MKL=ON WITH_DSO=ON WITH_PYTHON=ON WITH_TESTING=OFF \
        WITH_SYSTEM_BLAS=OFF WITH_DISTRIBUTE=OFF WITH_BRPC_RDMA=OFF ON_INFER=OFF CUDA_ARCH_NAME=All TENSORRT_ROOT=/usr";
    assert_eq!(shown.join(" "), expected);
    assert!(all.iter().all(|it| !it.is_given && !it.means.is_empty()));
}

#[test]
fn what_was_given_is_shown_with_what_holds_instead() {
    let found = resolve_without_gpus(&["WITH_GPU=OFF"]).expect("rows").options;
    assert!(found[0].is_given && found[0].value == "OFF" && found[0].means == "without cuda");
    let found = resolve_without_gpus(&["WITH_NCCL=OFF"]).expect("rows").options;
    let option = found.iter().find(|it| it.name == "WITH_NCCL").expect("what was given");
    assert!(option.is_given && !option.has_meaning && option.means.contains("one process"));
}

#[test]
fn what_cannot_be_is_refused_with_what_could() {
    for (option, words) in [
        ("WITH_GPU=maybe", "expected ON or OFF for `WITH_GPU`, found `maybe`"),
        ("WITH_GPU=", "expected ON or OFF"),
        ("WITH_GPU", "expected an option such as `WITH_GPU=ON`, found `WITH_GPU`"),
        ("WITH_GPUS=ON", "found `WITH_GPUS`; did you mean `WITH_GPU`"),
        ("with_mkl=ON", "did you mean `WITH_MKL`"),
        ("FROBNICATE=ON", "without options the command lists them"),
        ("CUDA_ARCH_NAME=Abacus", "expected one of All, Auto, Manual, Kepler,"),
        (
            "CUDA_ARCH_NAME=Kepler",
            "(CUDA 12 from 5.0 to 12.1, CUDA 13 from 7.5 on) for `CUDA_ARCH_NAME`, found those of Kepler, of compute capability 3.0, 3.5, 3.7",
        ),
        (
            "CUDA_ARCH_NAME=Manual",
            "such as `CUDA_ARCH_BIN=\"7.0 8.6\"` for `CUDA_ARCH_NAME=Manual`, found none",
        ),
        (
            "CUDA_ARCH_BIN=8.0",
            "expected `CUDA_ARCH_NAME=Manual` beside `CUDA_ARCH_BIN=8.0`, found `CUDA_ARCH_NAME=All`",
        ),
        ("TENSORRT_ROOT=", "expected a value"),
        ("PY_VERSION=three", "expected a version such as `3.12`"),
        ("PY_VERSION=3.7", "expected a Python for cp311-abi3, found CPython 3.7"),
        ("PY_VERSION=3.14t", "without a lock around the interpreter"),
        ("WITH_ROCM=ON", "found `rocm`, which is planned: the plugin is not in the tree yet"),
        ("WITH_XPU=ON", "found `xpu`, which is planned"),
    ] {
        let error = resolve_without_gpus(&[option]).expect_err(option);
        assert!(error.contains(words), "{option}: {error}");
    }
    let error = resolve_without_gpus(&["WITH_GPU=ON", "WITH_ROCM=ON"]).expect_err("two devices");
    assert_eq!(error, "expected one device, found `WITH_GPU=ON` and `WITH_ROCM=ON`");
}

#[test]
fn the_same_options_choose_rows_of_an_era() {
    let matrix = WheelMatrix::historical("2.2.1").expect("an era");
    let rows = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|&it| it.to_owned()).collect();
        resolve_options(&matrix, &options, &Vec::new).expect("rows").rows
    };
    assert!(
        rows(&["WITH_GPU=OFF", "WITH_AVX=OFF", "WITH_MKL=OFF"]).contains(&"cpu-openblas-noavx".to_owned())
    );
    assert!(rows(&["WITH_AVX=OFF"]).contains(&"cuda10.2-cudnn7-mkl-gcc8.2-noavx".to_owned()));
}

/// The selected CUDA versions, and the reason.
fn chosen_cuda(gpus: &[&str], options: &[&str]) -> Result<(String, String), String> {
    let found = resolve_on_gpus(gpus, options)?;
    let versions: Vec<&str> =
        found.rows.iter().map(|row| row.strip_suffix(", mkl").expect("a row with MKL")).collect();
    let option = found.options.iter().find(|it| it.name == "CUDA_ARCH_NAME").expect("the option");
    assert!(option.has_meaning);
    Ok((versions.join(" "), option.means.clone()))
}

#[test]
fn gpus_choose_the_versions_of_cuda_that_serve_them() {
    for (gpus, name, versions, reason) in [
        (&[][..], "All", "cuda12 cuda13", "every GPU that a wheel serves"),
        (
            &[],
            "maxwell",
            "cuda12",
            "compute capability 5.0, 5.2, of Maxwell: CUDA 12; CUDA 13 does not serve all",
        ),
        (&[], "Pascal", "cuda12", "of Pascal: CUDA 12"),
        (&[], "Volta", "cuda12", "compute capability 7.0, of Volta: CUDA 12; CUDA 13 does not serve it"),
        (&[], "Turing", "cuda12 cuda13", "compute capability 7.5, of Turing: CUDA 12 and 13"),
        (&[], "Ampere", "cuda12 cuda13", "8.0, 8.6, of Ampere: CUDA 12 and 13"),
        (&[], "Blackwell", "cuda12 cuda13", "10.0, 12.0, of Blackwell"),
        (&[], "Auto", "cuda12 cuda13", "no NVIDIA GPU is found here, so every GPU"),
        (
            &["7.0"],
            "Auto",
            "cuda12",
            "compute capability 7.0, of this machine: CUDA 12; CUDA 13 does not serve it",
        ),
        (&["9.0", "9.0"], "AUTO", "cuda12 cuda13", "of this machine: CUDA 12 and 13"),
        (&["7.0", "9.0"], "Auto", "cuda12", "CUDA 13 does not serve all"),
        (&["12.2"], "Auto", "cuda13", "CUDA 12 does not serve it"),
        (&["3.7", "7.0"], "Auto", "cuda12", "that serves 1 of 2, and none serves more"),
        // With a named generation, the local GPUs do not matter.
        (&["9.0"], "Volta", "cuda12", "of Volta"),
    ] {
        let found = chosen_cuda(gpus, &[&format!("CUDA_ARCH_NAME={name}")]).expect(name);
        assert_eq!(found.0, versions, "{name} on {gpus:?}");
        assert!(found.1.contains(reason), "{name} on {gpus:?}: {}", found.1);
    }
    for (numbers, versions) in
        [("7.0 8.6", "cuda12"), ("86", "cuda12 cuda13"), ("8.0,12.2", "cuda13"), ("120", "cuda12 cuda13")]
    {
        let options = ["CUDA_ARCH_NAME=Manual", &format!("CUDA_ARCH_BIN={numbers}")];
        assert_eq!(chosen_cuda(&[], &options).expect(numbers).0, versions, "{numbers}");
    }
}

#[test]
fn unsupported_gpus_are_refused_and_ignored_without_cuda() {
    let refused = |gpus: &[&str], options: &[&str]| chosen_cuda(gpus, options).expect_err("no wheel");
    let error = refused(&["3.7"], &["CUDA_ARCH_NAME=Auto"]);
    assert!(error.ends_with("found those of this machine, of compute capability 3.7"), "{error}");
    for numbers in ["7.0 12.2", "x", "7.x", "7", ","] {
        let error = refused(&[], &["CUDA_ARCH_NAME=Manual", &format!("CUDA_ARCH_BIN={numbers}")]);
        assert!(error.starts_with("expected "), "{numbers}: {error}");
    }
    let found = resolve_without_gpus(&["WITH_GPU=OFF", "CUDA_ARCH_NAME=Kepler"]).expect("rows");
    let option = found.options.iter().find(|it| it.name == "CUDA_ARCH_NAME").expect("the option");
    assert!(!option.has_meaning && option.means == "wheels with cpu are for no NVIDIA GPU", "{option:?}");
}

#[test]
fn options_of_other_machines_and_of_devices_to_come_are_no_wheels_for_others() {
    for options in [&["WITH_ASCEND=ON"][..], &["WITH_ASCEND=ON", "WITH_ASCEND_CL=ON"]] {
        let error = resolve_without_gpus(options).expect_err("a device that is planned");
        assert!(error.contains("found `npu`, which is planned"), "{error}");
    }
    for name in ["WITH_ARM", "WITH_AARCH64", "WITH_SW"] {
        let error = resolve_without_gpus(&[&format!("{name}=ON")]).expect_err("another machine");
        let wanted =
            format!("expected a machine that options select wheels for (linux-x86_64), found `{name}=ON`");
        assert!(error.starts_with(&wanted), "{error}");
        assert_eq!(
            resolve_without_gpus(&[&format!("{name}=OFF"), "WITH_GPU=OFF"]).expect("rows").rows,
            ["cpu, mkl"]
        );
    }
}

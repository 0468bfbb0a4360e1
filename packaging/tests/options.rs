//! Options by the names that they had choose rows of the matrix.

use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::options::{Resolved, resolve};

fn resolved(options: &[&str]) -> Result<Resolved, String> {
    let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
    let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    resolve(&matrix, &options).map_err(|error| error.to_string())
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
        // The last counts.
        (&["WITH_GPU=ON", "WITH_GPU=OFF"], &["cpu, mkl"]),
        // What means nothing any more chooses nothing.
        (
            &["WITH_GPU=OFF", "WITH_TESTING=ON", "CUDA_ARCH_NAME=ampere", "CUDNN_ROOT=/opt/cudnn"],
            &["cpu, mkl"],
        ),
    ] {
        assert_eq!(resolved(options).expect("rows").rows, rows, "{options:?}");
    }
}

#[test]
fn defaults_are_those_of_the_tables() {
    let all = resolved(&[]).expect("rows").options;
    let shown: Vec<String> = all.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
    let expected = "WITH_GPU=ON WITH_ROCM=OFF WITH_AVX=ON WITH_MKL=ON WITH_DSO=ON WITH_PYTHON=ON WITH_TESTING=OFF \
        WITH_SYSTEM_BLAS=OFF WITH_DISTRIBUTE=OFF WITH_BRPC_RDMA=OFF ON_INFER=OFF CUDA_ARCH_NAME=All TENSORRT_ROOT=/usr";
    assert_eq!(shown.join(" "), expected);
    assert!(all.iter().all(|it| !it.is_given && !it.means.is_empty()));
}

#[test]
fn what_was_given_is_shown_with_what_holds_instead() {
    let found = resolved(&["WITH_GPU=OFF"]).expect("rows").options;
    assert!(found[0].is_given && found[0].value == "OFF" && found[0].means == "without cuda");
    let found = resolved(&["WITH_NCCL=OFF"]).expect("rows").options;
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
        ("CUDA_ARCH_NAME=Abacus", "expected one of All, Auto,"),
        ("TENSORRT_ROOT=", "expected a value"),
        ("PY_VERSION=three", "expected a version such as `3.12`"),
        ("PY_VERSION=3.7", "expected a Python for cp311-abi3, found CPython 3.7"),
        ("PY_VERSION=3.14t", "without a lock around the interpreter"),
        ("WITH_ROCM=ON", "found `rocm`, which is planned: the plugin is not in the tree yet"),
        ("WITH_XPU=ON", "found `xpu`, which is planned"),
    ] {
        let error = resolved(&[option]).expect_err(option);
        assert!(error.contains(words), "{option}: {error}");
    }
    let error = resolved(&["WITH_GPU=ON", "WITH_ROCM=ON"]).expect_err("two devices");
    assert_eq!(error, "expected one device, found `WITH_GPU=ON` and `WITH_ROCM=ON`");
}

#[test]
fn the_same_options_choose_rows_of_an_era() {
    let matrix = Matrix::of_era("2.2.1").expect("an era");
    let rows = |options: &[&str]| {
        let options: Vec<String> = options.iter().map(|&it| it.to_owned()).collect();
        resolve(&matrix, &options).expect("rows").rows
    };
    assert!(
        rows(&["WITH_GPU=OFF", "WITH_AVX=OFF", "WITH_MKL=OFF"]).contains(&"cpu-openblas-noavx".to_owned())
    );
    assert!(rows(&["WITH_AVX=OFF"]).contains(&"cuda10.2-cudnn7-mkl-gcc8.2-noavx".to_owned()));
}

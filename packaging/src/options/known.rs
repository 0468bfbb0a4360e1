//! The options that there were, with the values that held where none was given.

use super::gpus;

/// An option.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) default: &'static str,
    pub(super) means: Means,
}

/// What an option stands for now.
pub(super) enum Means {
    /// Where it is on: the device that the wheels bring.
    Device(&'static str),
    /// Where it is on: a machine that there are no wheels for.
    Machine,
    /// Whether AVX may lie in them.
    Avx,
    /// The GPUs of NVIDIA that the wheels are for, which chooses among the versions of CUDA.
    Gpus,
    /// Those GPUs by number, where `CUDA_ARCH_NAME` is `Manual`.
    Capabilities,
    /// Whether MKL multiplies matrices, or OpenBLAS.
    Mkl,
    /// The Python that they are for.
    Python,
    /// Nothing that a wheel could differ in: what holds, or is to be done, instead.
    Nothing(&'static str),
}

use Means::{Avx, Capabilities, Device, Gpus, Machine, Mkl, Nothing, Python};

const fn option(name: &'static str, default: &'static str, means: Means) -> Known {
    Known { name, default, means }
}

const LOADED: &str =
    "libraries of devices and of BLAS are opened when a program runs, and none is needed to build";
const ALONE: &str = "Oarlock computes in one process, and nothing of it is distributed";
const FASTER: &str = "every model is made faster when it is loaded; `oarlock optimise` writes it down";
const STABLE: &str =
    "the wheels are for the stable ABI of Python; no file of a Python is needed to build them";
const OWN_PLUGIN: &str = "a device is a plugin, which is built from its own sources with what those need";

/// Those that are always shown: the ones that had a table of their own.
pub(super) const LISTED: &[Known] = &[
    option("WITH_GPU", "ON", Device("cuda")),
    option("WITH_ROCM", "OFF", Device("rocm")),
    option("WITH_AVX", "ON", Avx),
    option("WITH_MKL", "ON", Mkl),
    option("WITH_DSO", "ON", Nothing(LOADED)),
    option(
        "WITH_PYTHON",
        "ON",
        Nothing("`scripts/install-capi` builds what programs in C and C++ need, without Python"),
    ),
    option("WITH_TESTING", "OFF", Nothing("`scripts/test` builds the tests and runs them")),
    option("WITH_SYSTEM_BLAS", "OFF", Nothing(LOADED)),
    option("WITH_DISTRIBUTE", "OFF", Nothing(ALONE)),
    option("WITH_BRPC_RDMA", "OFF", Nothing(ALONE)),
    option("ON_INFER", "OFF", Nothing(FASTER)),
    option("CUDA_ARCH_NAME", gpus::ALL, Gpus),
    option("TENSORRT_ROOT", "/usr", Nothing(LOADED)),
];

/// Those that commands had beside them.
pub(super) const OTHERS: &[Known] = &[
    option("PY_VERSION", "any", Python),
    option("CUDA_ARCH_BIN", "none", Capabilities),
    option("WITH_XPU", "OFF", Device("xpu")),
    option("WITH_ASCEND_CL", "OFF", Device("npu")),
    option("WITH_IPU", "OFF", Device("ipu")),
    option("WITH_ASCEND", "OFF", Device("npu")),
    option("WITH_ASCEND_INT64", "OFF", Nothing(OWN_PLUGIN)),
    option("WITH_XPU_BKCL", "OFF", Nothing(ALONE)),
    option("WITH_NCCL", "ON", Nothing(ALONE)),
    option("WITH_LITE", "OFF", Nothing(OWN_PLUGIN)),
    option("LITE_GIT_TAG", "none", Nothing(OWN_PLUGIN)),
    option("XPU_SDK_ROOT", "none", Nothing(OWN_PLUGIN)),
    option("POPLAR_DIR", "none", Nothing(OWN_PLUGIN)),
    option("POPART_DIR", "none", Nothing(OWN_PLUGIN)),
    option("ON_INFERENCE", "OFF", Nothing(FASTER)),
    option("WITH_MKLDNN", "ON", Nothing("the CPU device has kernels of its own for what oneDNN does")),
    option(
        "WITH_XBYAK",
        "ON",
        Nothing("the kernels of the CPU device are compiled with it, and chosen when it starts"),
    ),
    option("WITH_CRYPTO", "ON", Nothing("models are not encrypted; plugins can be signed")),
    option("WITH_PROFILER", "OFF", Nothing("`oarlock bench` and `oarlock.profiler` are always there")),
    option("WITH_STATIC_LIB", "OFF", Nothing("`scripts/install-capi` builds the library for C and C++")),
    option("WITH_ARM", "OFF", Machine),
    option("WITH_AARCH64", "OFF", Machine),
    option("WITH_SW", "OFF", Machine),
    option("USE_TENSORRT", "OFF", Nothing("GPUs of NVIDIA run kernels of the plugin itself, and cuBLASLt")),
    option("CUDNN_ROOT", "none", Nothing(LOADED)),
    option("CUDA_TOOLKIT_ROOT_DIR", "none", Nothing(LOADED)),
    option("REFERENCE_CBLAS_ROOT", "none", Nothing(LOADED)),
    option("PYTHON_EXECUTABLE", "none", Nothing(STABLE)),
    option("PYTHON_INCLUDE_DIR", "none", Nothing(STABLE)),
    option("PYTHON_LIBRARY", "none", Nothing(STABLE)),
    option("CMAKE_BUILD_TYPE", "Release", Nothing("wheels are always built with optimisation")),
    option(
        "CMAKE_EXPORT_COMPILE_COMMANDS",
        "OFF",
        Nothing("cargo builds, which tools for Rust ask themselves"),
    ),
];

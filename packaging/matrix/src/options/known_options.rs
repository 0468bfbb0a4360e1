//! The historical build options with their defaults.

use super::gpus;

pub(super) struct KnownOption {
    pub name: &'static str,
    pub default: &'static str,
    pub means: OptionMeaning,
}

/// The present meaning of an option.
pub(super) enum OptionMeaning {
    /// If on: the device of the wheels.
    Device(&'static str),
    /// If on: a platform without wheels.
    Machine,
    /// Selects wheels with or without AVX.
    Avx,
    /// The NVIDIA GPUs to support, which select a CUDA version.
    Gpus,
    /// The GPUs by number, for `CUDA_ARCH_NAME=Manual`.
    Capabilities,
    /// Selects MKL or OpenBLAS for matrix products.
    Mkl,
    /// The Python version.
    Python,
    /// No effect on wheels; the text explains what applies instead.
    Nothing(&'static str),
}

use OptionMeaning::{Avx, Capabilities, Device, Gpus, Machine, Mkl, Nothing, Python};

const fn known_option(name: &'static str, default: &'static str, means: OptionMeaning) -> KnownOption {
    KnownOption { name, default, means }
}

const LOADED_WHEN_ASKED: &str =
    "libraries of devices and of BLAS are opened when a program runs, and none is needed to build";
const ONE_PROCESS: &str = "Oarlock computes in one process, and nothing of it is distributed";
const ALWAYS_OPTIMIZED: &str =
    "every model is made faster when it is loaded; `oarlock optimize` writes it down";
const STABLE_INTERFACE: &str =
    "the wheels use the stable ABI of Python; building them needs no files of a Python installation";
const SEPARATE_PLUGIN: &str = "a device is a plugin, which is built separately from its own sources";

/// Options that are always shown: those of the historical table.
pub(super) const LISTED_OPTIONS: &[KnownOption] = &[
    known_option("WITH_GPU", "ON", Device("cuda")),
    known_option("WITH_ROCM", "OFF", Device("rocm")),
    known_option("WITH_AVX", "ON", Avx),
    known_option("WITH_MKL", "ON", Mkl),
    known_option("WITH_DSO", "ON", Nothing(LOADED_WHEN_ASKED)),
    known_option(
        "WITH_PYTHON",
        "ON",
        Nothing("`scripts/install-capi` installs the C and C++ API, without Python"),
    ),
    known_option("WITH_TESTING", "OFF", Nothing("`scripts/test` builds the tests and runs them")),
    known_option("WITH_SYSTEM_BLAS", "OFF", Nothing(LOADED_WHEN_ASKED)),
    known_option("WITH_DISTRIBUTE", "OFF", Nothing(ONE_PROCESS)),
    known_option("WITH_BRPC_RDMA", "OFF", Nothing(ONE_PROCESS)),
    known_option("ON_INFER", "OFF", Nothing(ALWAYS_OPTIMIZED)),
    known_option("CUDA_ARCH_NAME", gpus::ALL_GPUS, Gpus),
    known_option("TENSORRT_ROOT", "/usr", Nothing(LOADED_WHEN_ASKED)),
];

/// Options beyond the historical table that commands also used.
pub(super) const OTHER_OPTIONS: &[KnownOption] = &[
    known_option("PY_VERSION", "any", Python),
    known_option("CUDA_ARCH_BIN", "none", Capabilities),
    known_option("WITH_XPU", "OFF", Device("xpu")),
    known_option("WITH_ASCEND_CL", "OFF", Device("npu")),
    known_option("WITH_IPU", "OFF", Device("ipu")),
    known_option("WITH_ASCEND", "OFF", Device("npu")),
    known_option("WITH_ASCEND_INT64", "OFF", Nothing(SEPARATE_PLUGIN)),
    known_option("WITH_XPU_BKCL", "OFF", Nothing(ONE_PROCESS)),
    known_option("WITH_NCCL", "ON", Nothing(ONE_PROCESS)),
    known_option("WITH_LITE", "OFF", Nothing(SEPARATE_PLUGIN)),
    known_option("LITE_GIT_TAG", "none", Nothing(SEPARATE_PLUGIN)),
    known_option("XPU_SDK_ROOT", "none", Nothing(SEPARATE_PLUGIN)),
    known_option("POPLAR_DIR", "none", Nothing(SEPARATE_PLUGIN)),
    known_option("POPART_DIR", "none", Nothing(SEPARATE_PLUGIN)),
    known_option("ON_INFERENCE", "OFF", Nothing(ALWAYS_OPTIMIZED)),
    known_option("WITH_MKLDNN", "ON", Nothing("the CPU device has its own kernels instead of oneDNN")),
    known_option(
        "WITH_XBYAK",
        "ON",
        Nothing("the kernels of the CPU device are compiled with it, and chosen when it starts"),
    ),
    known_option("WITH_CRYPTO", "ON", Nothing("models are not encrypted; plugins can be signed")),
    known_option("WITH_PROFILER", "OFF", Nothing("`oarlock bench` and `oarlock.profiler` are always there")),
    known_option(
        "WITH_STATIC_LIB",
        "OFF",
        Nothing("`scripts/install-capi` builds the library for C and C++"),
    ),
    known_option("WITH_ARM", "OFF", Machine),
    known_option("WITH_AARCH64", "OFF", Machine),
    known_option("WITH_SW", "OFF", Machine),
    known_option(
        "USE_TENSORRT",
        "OFF",
        Nothing("NVIDIA GPUs run kernels of the plugin itself, and cuBLASLt"),
    ),
    known_option("CUDNN_ROOT", "none", Nothing(LOADED_WHEN_ASKED)),
    known_option("CUDA_TOOLKIT_ROOT_DIR", "none", Nothing(LOADED_WHEN_ASKED)),
    known_option("REFERENCE_CBLAS_ROOT", "none", Nothing(LOADED_WHEN_ASKED)),
    known_option("PYTHON_EXECUTABLE", "none", Nothing(STABLE_INTERFACE)),
    known_option("PYTHON_INCLUDE_DIR", "none", Nothing(STABLE_INTERFACE)),
    known_option("PYTHON_LIBRARY", "none", Nothing(STABLE_INTERFACE)),
    known_option("CMAKE_BUILD_TYPE", "Release", Nothing("wheels are always built with optimization")),
    known_option(
        "CMAKE_EXPORT_COMPILE_COMMANDS",
        "OFF",
        Nothing("cargo builds, and tools for Rust query it themselves"),
    ),
];

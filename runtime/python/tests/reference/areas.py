"""The pages of the reference, and which names are on each."""

from typing import NamedTuple

from oarlock import _names as lazy


class Area(NamedTuple):
    """A page: its file, its title, what comes first, and where its names come from."""

    file: str
    title: str
    introduction: str
    modules: tuple[str, ...] = ()
    """Modules of functions that are loaded on first use."""
    names: str = ""
    """Other names of the package."""
    part: str = ""
    """A public module, all of whose names are on the page."""
    results: str = ""
    """Classes that are not public but that methods return, with their modules."""

    def own(self):
        """The names of the package on the page."""
        return [name for module in self.modules for name in lazy.MODULES[module].split()] + self.names.split()


AREAS = (
    Area(
        "arrays",
        "Arrays, dtypes and creation",
        "How arrays are made and printed, the types that their elements have, and constants.",
        ("_creation", "_sequences", "_grids", "_windows", "_information", "_printing"),
        """
        DType Tensor __array_api_version__ __version__ asarray bfloat16 bool complex128 complex64 e float16 float32 float64
        from_dlpack inf int16 int32 int64 int8 nan newaxis ones pi result_type to_tensor uint16 uint32 uint64 uint8 zeros
        """,
    ),
    Area(
        "elementwise",
        "Functions of each element",
        "Arithmetic, comparisons, logic, and mathematical functions. Operands are broadcast to a common shape.",
        ("_elementwise", "_mathematics", "_comparison"),
        """
        abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
        bitwise_right_shift bitwise_xor ceil conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
        greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not
        logical_or logical_xor maximum minimum multiply negative nextafter not_equal pow real reciprocal remainder sign signbit
        sin sinh sqrt subtract tan tanh trunc
        """,
    ),
    Area(
        "reductions",
        "Reductions, statistics and calculus",
        "Sums, means and other numbers for whole arrays or along axes; histograms, slopes, integrals and polynomials.",
        ("_statistics", "_nan_statistics", "_order_statistics", "_weighted", "_histogram", "_calculus", "_polynomials"),
    ),
    Area(
        "shapes",
        "Shapes, joining and splitting",
        "Other shapes for the same elements, and arrays made of several.",
        ("_shapes", "_manipulation", "_joining", "_splitting", "_padding", "_editing"),
        "permute_dims",
    ),
    Area(
        "indexing",
        "Indexing, searching, sorting and sets",
        "Elements by their places, and places by what the elements are.",
        ("_indexing", "_search", "_sets", "_writing"),
    ),
    Area(
        "linalg",
        "Linear algebra",
        "Products of arrays, diagonals, and the module `oarlock.linalg`.",
        ("_linear", "_products", "_einsum", "_diagonal"),
        "matmul",
        "linalg",
    ),
    Area("fft", "Fourier transforms", "", part="fft"),
    Area("random", "Random numbers", "", part="random"),
    Area("nn", "Functions for neural networks", "", part="nn.functional"),
    Area("files", "Arrays in files", "Arrays in files of NumPy's formats, and as text. `oarlock.load` reads them too.", ("_npy", "_text_files")),
    Area(
        "models",
        "Models and single ops",
        "Loading and running models, and calling one op by its name.",
        modules=("_load",),
        names="FallbackWarning Session Slot op",
        results="_explain.Explanation _profile.Profile",
    ),
    Area(
        "jit",
        "Functions as graphs",
        "Functions of arrays that are traced once and then run as a graph, with the branches and loops that a graph can have.",
        ("_jit", "_control_flow"),
    ),
    Area(
        "devices",
        "Devices, streams, flags and errors",
        "Where arrays are and where ops run.",
        names="Device Error Event Stream devices get_device get_flags run_check set_device set_flags",
        part="device",
    ),
    Area("profiler", "The profiler", "", part="profiler"),
    Area("extension", "Ops of your own", "", part="extension"),
    Area("onnxruntime", "The adapter for programs of onnxruntime", "", part="onnxruntime"),
    Area("openvino", "The adapter for programs of OpenVINO", "", part="openvino"),
    Area("paddle_inference", "The adapter for programs of Paddle Inference", "", part="paddle_inference"),
    Area("tflite", "The adapter for programs of LiteRT", "", part="tflite"),
    Area("onnx_backend", "The backend for the package onnx", "", part="onnx_backend"),
)


"""What a predictor is made of: the files of a model, and how it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .. import _warning
from .._absent import name_of_peer
from .._oarlock import Device, bfloat16, float32
from .._peers import InvalidValue, MissingFile, choose_threads, open_model
from ._enumerations import PrecisionType

if TYPE_CHECKING:
    from .._model import Session
    from .._oarlock import DType

NO_EFFECT = frozenset("""
    delete_pass disable_glog_info disable_mkldnn disable_mkldnn_fc_passes disable_onednn disable_onednn_fc_passes
    disable_onnxruntime enable_cinn enable_memory_optim enable_mkldnn enable_mkldnn_int8 enable_new_executor enable_new_ir
    enable_onednn enable_onednn_int8 enable_onnxruntime enable_openvino_engine enable_ort_optimization enable_profile
    enable_tensorrt_dla enable_tensorrt_engine enable_tensorrt_explicit_quantization enable_tensorrt_inspector
    enable_tensorrt_memory_optim enable_tensorrt_varseqlen enable_tuned_tensorrt_dynamic_shape exp_disable_mixed_precision_ops
    exp_disable_tensorrt_dynamic_shape_ops exp_disable_tensorrt_ops exp_disable_tensorrt_subgraph exp_enable_mixed_precision_ops
    exp_enable_use_cutlass exp_sparse_conv_using_buffer exp_specify_tensorrt_subgraph_precision set_bfloat16_op
    set_mkldnn_cache_capacity set_mkldnn_op set_onednn_cache_capacity set_onednn_op set_optim_cache_dir set_optimization_level
    set_tensorrt_optimization_level set_trt_dynamic_shape_info switch_ir_debug switch_ir_optim
    switch_specify_input_names switch_use_feed_fetch_ops use_optimized_model
""".split())
"""Switches about what Paddle does inside, which change no results."""

_LIBRARIES = """
    mkldnn mkldnn_int8 new_ir onednn onednn_int8 onnxruntime openvino_engine tensorrt_dla tensorrt_dynamic_shape tensorrt_engine
    tensorrt_explicit_quantization tensorrt_inspector tensorrt_varseqlen use_feed_fetch_ops
""".split()
ANSWERS = dict.fromkeys([f"{name}_enabled" for name in _LIBRARIES], False) | dict.fromkeys(
    ("glog_info_disabled", "ir_optim", "specify_input_name"), True
)
"""Questions about these: passes always run, nothing is logged, and the libraries that Paddle may use are not used."""

_DEVICES = "name the device with `enable_use_gpu`, `enable_xpu` or `enable_custom_device`"
_MEMORY = "the flags `device_memory_initial` and `device_memory_limit` say how much memory a device takes"
_SHAPES = "leave it out: a plan is made for each set of shapes"
_TENSORRT = "leave it out: TensorRT is not used"
INSTEAD = {
    "collect_shape_range_info": _SHAPES,
    "enable_custom_passes": "write an op of your own with `oarlock.extension`",
    "enable_ipu": _DEVICES,
    "enable_low_precision_io": "convert inputs and outputs with NumPy's `astype`",
    "enable_save_optim_model": "`oarlock.load(…).save(…)` writes the optimized model",
    "fraction_of_gpu_memory_for_pool": _MEMORY,
    "load_ipu_config": _DEVICES,
    "mark_trt_engine_outputs": _TENSORRT,
    "memory_pool_init_size_mb": _MEMORY,
    "pass_builder": "`oarlock.load(…).explain()` says which passes changed what",
    "set_ipu_config": _DEVICES,
    "set_ipu_custom_info": _DEVICES,
    "set_xpu_config": _DEVICES,
    "set_xpu_device_id": _DEVICES,
    "shape_range_info_collected": _SHAPES,
    "shape_range_info_path": _SHAPES,
    "tensorrt_optimization_level": _TENSORRT,
    "tensorrt_precision_mode": _TENSORRT,
    "to_native_config": "use the `Config` itself",
    "trt_allow_build_at_runtime": _TENSORRT,
    "tuned_tensorrt_dynamic_shape": _TENSORRT,
    "use_xpu": "`summary` names the device",
    "xpu_config": _DEVICES,
    "xpu_device_id": "`summary` names the device",
}
"""Names that are not supported, and what to do instead."""


class Config:
    """The files of a model, and how it runs: a program with its parameters, a directory with both, or a directory and the name
    that both files begin with. An ONNX file is a program without parameters.

    `enable_use_gpu`, `enable_xpu` and `enable_custom_device` choose the device; `set_cpu_math_library_num_threads` the number of
    threads, before the first model; `enable_mkldnn_bfloat16` and the precision `Bfloat16` permit products of matrices in bfloat16.
    Switches about Paddle's internals have no effect.

    >>> config = ol.paddle_inference.Config("docs/src/models/digits.onnx")
    >>> config.switch_ir_optim(True)
    >>> config.prog_file()
    'docs/src/models/digits.onnx'
    """

    Precision = PrecisionType

    def __init__(self, model: str | os.PathLike[str] | None = None, params: str | os.PathLike[str] | None = None) -> None:
        self._directory = self._program = self._parameters = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._threads = 0
        self._precision = PrecisionType.Float32
        self._device = "cpu"
        if model is not None:
            self.set_model(model, params)

    def set_model(self, model: str | os.PathLike[str], params: str | os.PathLike[str] | None = None) -> None:
        """Names the files, as the constructor does."""
        path, parameters = os.fspath(model), os.fspath(params) if params is not None else ""
        is_directory = os.path.isdir(path)
        self._buffers = None
        self._directory = path if is_directory else ""
        self._program, self._parameters = ("", "") if is_directory else (path, parameters)
        if is_directory and parameters:
            prefix = os.path.join(path, parameters)
            is_new = os.path.exists(f"{prefix}.json")
            self._program, self._parameters = f"{prefix}.{'json' if is_new else 'pdmodel'}", f"{prefix}.pdiparams"

    def set_prog_file(self, file: str | os.PathLike[str]) -> None:
        """Names the file of the program."""
        self._program = os.fspath(file)

    def set_params_file(self, file: str | os.PathLike[str]) -> None:
        """Names the file of the parameters."""
        self._parameters = os.fspath(file)

    def set_model_buffer(self, model: bytes, model_size: int, params: bytes, params_size: int) -> None:
        """Gives the bytes of the program and of the parameters."""
        self._buffers = model[:model_size], params[:params_size]

    def model_dir(self) -> str:
        """The directory of the model."""
        return self._directory

    def prog_file(self) -> str:
        """The file of the program."""
        return self._program

    def params_file(self) -> str:
        """The file of the parameters."""
        return self._parameters

    def model_from_memory(self) -> bool:
        """Whether the model was given as bytes."""
        return self._buffers is not None

    def enable_use_gpu(
        self, memory_pool_init_size_mb: int = 100, device_id: int = 0, precision: PrecisionType = PrecisionType.Float32
    ) -> None:
        """Runs the model on a GPU. Without one, a warning says that it runs on the CPU."""
        self._precision = precision
        self._choose("gpu", device_id, "enable_use_gpu")

    def enable_xpu(self, *_sizes: int, **_named: Any) -> None:
        """Runs the model on an XPU."""
        self._choose("xpu", 0, "enable_xpu")

    def enable_custom_device(
        self, device_type: str, device_id: int = 0, precision: PrecisionType = PrecisionType.Float32
    ) -> None:
        """Runs the model on the device of a plugin."""
        self._precision = precision
        self._choose(device_type, device_id, "enable_custom_device")

    def disable_gpu(self) -> None:
        """Runs the model on the CPU."""
        self._device = "cpu"

    def use_gpu(self) -> bool:
        """Whether the model runs on a GPU."""
        return self._device.startswith("gpu:")

    def gpu_device_id(self) -> int:
        """The number of the GPU, or 0."""
        return int(self._device.partition(":")[2] or 0) if self.use_gpu() else 0

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        """Chooses the number of threads, which all models share."""
        if count < 1:
            raise InvalidValue(f"expected at least 1 thread, found {count}")
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        """The chosen number of threads; 0 if none was chosen, which means all."""
        return self._threads

    def enable_mkldnn_bfloat16(self) -> None:
        """Permits products of matrices and convolutions to round their factors to bfloat16 where that is faster."""
        self._precision = PrecisionType.Bfloat16

    def enable_onednn_bfloat16(self) -> None:
        """The newer name of `enable_mkldnn_bfloat16`."""
        self.enable_mkldnn_bfloat16()

    def summary(self) -> str:
        """What takes effect, as a table."""
        rows = {
            "model_dir": self._directory,
            "model_file": self._program,
            "params_file": self._parameters,
            "device": self._device,
            "cpu_math_thread": self._threads or "all",
            "precision": self._precision.name,
        }
        width = max(map(len, rows))
        return "".join(f"{name:{width}}  {value}\n" for name, value in rows.items() if value != "")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A switch without effect, or the answer about one; for unsupported names, says what to do instead."""
        if name in NO_EFFECT:
            return _do_nothing
        if name in ANSWERS:
            return lambda: ANSWERS[name]
        raise name_of_peer(self, name, "Config", INSTEAD)

    def __dir__(self) -> list[str]:
        return sorted({name for name in object.__dir__(self) if name.startswith("__") or name[0] != "_"} | NO_EFFECT | set(ANSWERS))

    def _choose(self, device_type: str, device_id: int, caller: str) -> None:
        """Chooses a device that is there."""
        name = f"{device_type}:{device_id}"
        try:
            Device(name)
        except ValueError as error:
            if device_type != "gpu":
                raise InvalidValue(str(error)) from error
            said = str(error).partition("\n")[0]
            _warning.warn(f"`{caller}`: {said}; the model runs on the CPU", _warning.FallbackWarning)
            name = "cpu"
        self._device = name

    def _open(self) -> Session:
        """Loads the model."""
        if self._threads:
            choose_threads(self._threads, "`set_cpu_math_library_num_threads`")
        precision = bfloat16 if self._precision == PrecisionType.Bfloat16 else float32
        if self._buffers is not None:
            return self._open_apart(*self._buffers, precision)
        if not self._program and not self._directory:
            raise InvalidValue("expected the files of a model, found none\nhint: name them, as in `Config(program, parameters)`")
        for file in filter(None, (self._program, self._parameters)):
            if not os.path.exists(file):
                raise MissingFile(f"`{file}`: expected a file of the model, found none\nhint: name a file that is there")
        if self._program and self._parameters and not _is_found_beside(self._program, self._parameters):
            return self._open_apart(self._program, self._parameters, precision)
        return open_model(self._program or self._directory, self._device, precision)

    def _open_apart(self, program: bytes | str, parameters: bytes | str, precision: DType) -> Session:
        """Loads a model whose files have other names than the loader expects, or are in memory."""
        with TemporaryDirectory(prefix="oarlock-") as directory:
            file = Path(directory, "model.json" if _start(program) == b"{" else "model.pdmodel")
            _put(program, file)
            _put(parameters, file.with_suffix(".pdiparams"))
            try:
                return open_model(file, self._device, precision)
            except InvalidValue as error:
                shown = "the program in memory" if isinstance(program, bytes) else f"`{program}`"
                raise InvalidValue(str(error).replace(f"`{file}`", shown)) from error


def _do_nothing(*_arguments: Any, **_named: Any) -> None:
    """A switch without effect."""


def _is_found_beside(program: str, parameters: str) -> bool:
    """Whether the loader finds these parameters by itself."""
    beside = os.path.join(os.path.dirname(program), "__params__")
    if os.path.basename(program) != "__model__":
        beside = f"{os.path.splitext(program)[0]}.pdiparams"
    return os.path.abspath(beside) == os.path.abspath(parameters)


def _start(program: bytes | str) -> bytes:
    """The first byte of a program, which tells text from a message of protobuf."""
    if isinstance(program, bytes):
        return program[:1]
    with open(program, "rb") as stream:
        return stream.read(1)


def _put(content: bytes | str, file: Path) -> None:
    """Makes a file of bytes, or another name for one that is there."""
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.symlink_to(os.path.abspath(content))

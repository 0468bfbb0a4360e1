"""The names of properties that say what a model is for."""

from enum import Enum

from ._property import Property


class PerformanceMode(Enum):
    """What a model is for; it has no effect."""

    LATENCY = 1
    THROUGHPUT = 2
    CUMULATIVE_THROUGHPUT = 3


class ExecutionMode(Enum):
    """What a model is for; it has no effect."""

    PERFORMANCE = 1
    ACCURACY = 2


allow_auto_batching = Property("ALLOW_AUTO_BATCHING")
enable_cpu_pinning = Property("ENABLE_CPU_PINNING")
enable_hyper_threading = Property("ENABLE_HYPER_THREADING")
execution_mode = Property("EXECUTION_MODE_HINT")
inference_precision = Property("INFERENCE_PRECISION_HINT")
model_priority = Property("MODEL_PRIORITY")
num_requests = Property("PERFORMANCE_HINT_NUM_REQUESTS")
performance_mode = Property("PERFORMANCE_HINT")
scheduling_core_type = Property("SCHEDULING_CORE_TYPE")

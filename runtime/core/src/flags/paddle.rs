//! PaddlePaddle's environment variables: some set a flag here; the others have no effect, and each has a replacement.
//!
//! The table has only variables that PaddlePaddle itself reads. Variables of drivers and of vendors' libraries, such as
//! `CUDA_VISIBLE_DEVICES` or `HCCL_CONNECT_TIMEOUT`, are up to the plugin and its driver.

use super::{FLAG_TABLE, FlagDefinition};

/// A variable of PaddlePaddle that has no effect here.
#[derive(Debug)]
pub struct PaddleVariable {
    /// Its name, including the prefix.
    pub name: &'static str,
    /// Its meaning in PaddlePaddle, in a few words.
    pub meaning: &'static str,
    /// What to use instead, or why there is nothing to set. Continues the sentence "it has no effect here; ".
    pub instead: &'static str,
}

/// The effect of a PaddlePaddle variable here.
#[derive(Clone, Copy, Debug)]
pub enum PaddleEffect {
    /// It is an alias of this flag.
    Sets(&'static FlagDefinition),
    /// It has no effect.
    Nothing(&'static PaddleVariable),
}

/// All known PaddlePaddle variables with their effect, by name.
pub fn paddle_variables() -> Vec<(&'static str, PaddleEffect)> {
    let of_flag = |flag: &'static FlagDefinition| {
        flag.aliases.iter().map(move |name| (*name, PaddleEffect::Sets(flag)))
    };
    let without_effect =
        INEFFECTIVE_VARIABLES.iter().map(|variable| (variable.name, PaddleEffect::Nothing(variable)));
    let mut all: Vec<_> = FLAG_TABLE.iter().flat_map(of_flag).chain(without_effect).collect();
    all.sort_by_key(|(name, _)| *name);
    all
}

const fn ineffective_variable(
    name: &'static str,
    meaning: &'static str,
    instead: &'static str,
) -> PaddleVariable {
    PaddleVariable { name, meaning, instead }
}

const NO_CUDNN: &str = "no device here uses cuDNN";
const NO_EXECUTORS: &str = "there is one way to run a model, which `explain` shows";
const NO_GROUPS: &str = "Oarlock runs in one process, which talks to no others; a program that is started several times divides its work itself";
const NO_RPC: &str = "Oarlock has no parameter servers and no RPC";
const NO_TRAINING: &str = "Oarlock does not train, and has no gradients to send";
const KERNEL_ORDER: &str = "which plugin's kernels come first is said by `kernel_preference`";
const PROFILES: &str =
    "the commands `bench` and `trace` measure a model, and `oarlock.profiler` a program in Python";
const REUSED_AT_ONCE: &str = "memory is used again as soon as nothing needs what lies in it";
const CPU_SIZES: &str = "the CPU takes memory as the flags `allocator_strategy`, `device_memory_initial` and `device_memory_limit` say, like every device";

pub(super) static INEFFECTIVE_VARIABLES: &[PaddleVariable] = &[
    // Devices.
    ineffective_variable(
        "FLAGS_selected_gpus",
        "The GPUs that train and predict",
        "choose devices with `-d cuda:0`, `set_device(\"cuda:0\")` or `CUDA_VISIBLE_DEVICES`",
    ),
    ineffective_variable(
        "FLAGS_selected_npus",
        "The NPUs of Ascend that train and predict",
        "there is no plugin for NPUs of Ascend yet; `-d` and `set_device` choose among the devices that `oarlock devices` lists",
    ),
    ineffective_variable(
        "FLAGS_selected_xpus",
        "The XPUs of Kunlun that train and predict",
        "there is no plugin for XPUs of Kunlun yet; `-d` and `set_device` choose among the devices that `oarlock devices` lists",
    ),
    // Kernels and libraries.
    ineffective_variable("FLAGS_allow_cinn_ops", "The ops that the compiler CINN replaces", KERNEL_ORDER),
    ineffective_variable(
        "FLAGS_conv_workspace_size_limit",
        "The most MiB that cuDNN may take for a faster convolution",
        "no device here uses cuDNN; `device_memory_limit` is the most memory that is taken of a device",
    ),
    ineffective_variable(
        "FLAGS_cudnn_batchnorm_spatial_persistent",
        "Whether cuDNN normalizes batches faster, at the risk of an overflow",
        NO_CUDNN,
    ),
    ineffective_variable(
        "FLAGS_cudnn_exhaustive_search",
        "Whether cuDNN tries all algorithms for a convolution",
        NO_CUDNN,
    ),
    ineffective_variable("FLAGS_deny_cinn_ops", "The ops that the compiler CINN leaves alone", KERNEL_ORDER),
    ineffective_variable(
        "FLAGS_enable_cublas_tensor_op_math",
        "Whether matrix products may be less exact on Tensor Cores",
        "`cuda` multiplies f32 as f32, never as TF32; for f16 and bf16 cuBLASLt chooses",
    ),
    ineffective_variable(
        "FLAGS_embedding_deterministic",
        "Whether gradients of embeddings are the same in every run",
        "Oarlock does not train; the flag `deterministic` is about what it computes",
    ),
    ineffective_variable(
        "FLAGS_npu_precision_mode",
        "How precisely NPUs of Ascend compute",
        "there is no plugin for NPUs of Ascend yet; `--precision bf16` allows products of a model to be less exact",
    ),
    ineffective_variable(
        "FLAGS_run_kp_kernel",
        "Whether XPUs run kernels that are written with Kernel Primitives",
        KERNEL_ORDER,
    ),
    ineffective_variable(
        "FLAGS_use_cinn",
        "Whether the compiler CINN takes over parts of a program",
        KERNEL_ORDER,
    ),
    ineffective_variable(
        "FLAGS_use_mkldnn",
        "Whether the CPU runs oneDNN",
        "the CPU always uses its best instructions; where the plugin `mkl` is installed, `kernel_preference=mkl` has MKL multiply matrices",
    ),
    ineffective_variable(
        "FLAGS_use_ngraph",
        "Whether the CPU runs nGraph",
        "the CPU always uses its best instructions, without nGraph",
    ),
    // Memory.
    ineffective_variable(
        "FLAGS_use_cuda_managed_memory",
        "Whether GPUs use memory that the host shares",
        "memory of a GPU is its own",
    ),
    ineffective_variable(
        "FLAGS_log_memory_stats",
        "Whether memory is logged as it is taken",
        "the command `bench` says how much memory a model takes",
    ),
    ineffective_variable("FLAGS_eager_delete_scope", "Whether a scope is freed at once", REUSED_AT_ONCE),
    ineffective_variable(
        "FLAGS_eager_delete_tensor_gb",
        "How much garbage there is before it is freed",
        REUSED_AT_ONCE,
    ),
    ineffective_variable(
        "FLAGS_fast_eager_deletion_mode",
        "Whether memory is freed before the kernel that uses it has ended",
        REUSED_AT_ONCE,
    ),
    ineffective_variable(
        "FLAGS_fraction_of_cpu_memory_to_use",
        "The part of the machine's memory that is taken at first",
        CPU_SIZES,
    ),
    ineffective_variable(
        "FLAGS_fraction_of_cuda_pinned_memory_to_use",
        "The part of the machine's memory that is pinned for copies at first",
        "pinned memory is taken when a copy to or from a device needs it",
    ),
    ineffective_variable(
        "FLAGS_initial_cpu_memory_in_mb",
        "The MiB of the machine's memory that are taken at first",
        CPU_SIZES,
    ),
    ineffective_variable(
        "FLAGS_memory_fraction_of_eager_deletion",
        "The part of the variables that are freed at once",
        REUSED_AT_ONCE,
    ),
    ineffective_variable(
        "FLAGS_use_pinned_memory",
        "Whether all memory of the CPU is locked",
        "memory of the CPU is never locked, and copies to devices go through pinned memory where the device has it",
    ),
    // Runs of models.
    ineffective_variable(
        "FLAGS_USE_STANDALONE_EXECUTOR",
        "Whether the newer executor runs a static graph",
        NO_EXECUTORS,
    ),
    ineffective_variable(
        "FLAGS_apply_pass_to_program",
        "Whether passes change a program of Fleet",
        "passes change every model that is loaded; `--plain` leaves out those that only make it faster",
    ),
    ineffective_variable(
        "FLAGS_call_stack_level",
        "How much of the stack of C++ an error shows",
        "errors name the op, the device and what to do, and have no stack",
    ),
    ineffective_variable(
        "FLAGS_enable_eager_mode",
        "Whether the newer engine runs a dynamic graph",
        NO_EXECUTORS,
    ),
    ineffective_variable(
        "FLAGS_enable_parallel_graph",
        "Whether `ParallelExecutor` runs graphs at once",
        "one model may be run by many threads at once",
    ),
    // Profiling and debugging.
    ineffective_variable(
        "FLAGS_multiple_of_cupti_buffer_size",
        "How large the buffers of CUPTI are",
        PROFILES,
    ),
    ineffective_variable("FLAGS_pe_profile_fname", "Where `ParallelExecutor` writes a profile", PROFILES),
    ineffective_variable(
        "FLAGS_print_sub_graph_dir",
        "Where parts of a graph are printed that nothing connects",
        "`explain` lists the nodes of a model, and draws them with `--svg`",
    ),
    ineffective_variable(
        "FLAGS_tracer_profile_fname",
        "Where the tracer of dynamic graphs writes a profile",
        PROFILES,
    ),
    ineffective_variable(
        "PADDLE_INF_NAN_SKIP_ROLE",
        "The kinds of ops whose outputs are not looked through, such as `backward`",
        "all ops here are of the kind `forward`; `check_nan_inf_skip_ops` names ops",
    ),
    // Training.
    ineffective_variable(
        "FLAGS_communicator_fake_rpc",
        "Whether the communicator only pretends to send",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_communicator_independent_recv_thread",
        "Whether parameters are received on a thread of their own",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_communicator_max_merge_var_num",
        "How many gradients are merged before they are sent",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_communicator_merge_sparse_grad",
        "Whether sparse gradients are merged before they are sent",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_communicator_min_send_grad_num_before_recv",
        "How many gradients are sent before parameters are received",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_communicator_send_queue_size",
        "How many gradients may wait to be sent",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_communicator_send_wait_times",
        "How often sending waits for more gradients",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_communicator_thread_pool_size",
        "How many threads send gradients and receive parameters",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_fuse_parameter_groups_size",
        "How many gradients are sent together",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_fuse_parameter_memory_size",
        "How many MiB of gradients are sent together",
        NO_TRAINING,
    ),
    ineffective_variable(
        "FLAGS_reader_queue_speed_test_mode",
        "Whether the reader of training data repeats what it has read",
        "Oarlock does not train, and has no readers of data",
    ),
    // Several processes.
    ineffective_variable(
        "FLAGS_allreduce_record_one_event",
        "Whether reductions over all devices wait for one event",
        NO_GROUPS,
    ),
    ineffective_variable(
        "FLAGS_dist_threadpool_size",
        "How many threads the distributed module has",
        NO_GROUPS,
    ),
    ineffective_variable("FLAGS_enable_rpc_profiler", "Whether calls over the network are profiled", NO_RPC),
    ineffective_variable("FLAGS_max_body_size", "The most bytes of a message of BRPC", NO_RPC),
    ineffective_variable("FLAGS_rpc_deadline", "How long a call over the network may take", NO_RPC),
    ineffective_variable("FLAGS_rpc_disable_reuse_port", "Whether gRPC shares its port", NO_RPC),
    ineffective_variable("FLAGS_rpc_get_thread_num", "How many threads fetch parameters", NO_RPC),
    ineffective_variable("FLAGS_rpc_send_thread_num", "How many threads send over the network", NO_RPC),
    ineffective_variable(
        "FLAGS_rpc_server_profile_path",
        "Where a parameter server writes a profile",
        NO_RPC,
    ),
    ineffective_variable(
        "FLAGS_sync_nccl_allreduce",
        "Whether reductions of NCCL over all devices are waited for",
        NO_GROUPS,
    ),
    ineffective_variable("PADDLE_CURRENT_ENDPOINT", "The address of this process of a training", NO_GROUPS),
    ineffective_variable(
        "PADDLE_GLOO_FS_PATH",
        "The directory in which processes of a training meet",
        NO_GROUPS,
    ),
    ineffective_variable(
        "PADDLE_GLOO_HTTP_ENDPOINT",
        "The address at which processes of a training meet",
        NO_GROUPS,
    ),
    ineffective_variable("PADDLE_GLOO_RENDEZVOUS", "How processes of a training meet", NO_GROUPS),
    ineffective_variable(
        "PADDLE_HETER_TRAINER_IP_PORT_LIST",
        "The addresses of the processes of a training that have other devices",
        NO_GROUPS,
    ),
    ineffective_variable("PADDLE_PORT", "The port of this parameter server", NO_RPC),
    ineffective_variable("PADDLE_PSERVERS_IP_PORT_LIST", "The addresses of all parameter servers", NO_RPC),
    ineffective_variable("PADDLE_TRAINERS_NUM", "How many processes train", NO_GROUPS),
    ineffective_variable("PADDLE_TRAINER_ENDPOINTS", "The addresses of all processes that train", NO_GROUPS),
    ineffective_variable("PADDLE_TRAINER_ID", "The number of this process of a training", NO_GROUPS),
    ineffective_variable("PADDLE_WITH_GLOO", "Whether processes of a training meet by Gloo", NO_GROUPS),
];

//! PaddlePaddle's variables: all that its documentation lists are known, and the book has a row for each.

use std::fs;
use std::path::Path;

use oarlock_core::flags::{PaddleEffect, paddle_variables};

/// The flags of the chapter "环境变量 FLAGS" (environment variables FLAGS, 2.10) of PaddlePaddle's documentation of
/// version 2.3, in its order.
const DOCUMENTED_FLAGS: [&str; 54] = [
    // cudnn
    "conv_workspace_size_limit",
    "cudnn_batchnorm_spatial_persistent",
    "cudnn_deterministic",
    "cudnn_exhaustive_search",
    // 数值计算: numbers
    "enable_cublas_tensor_op_math",
    "use_mkldnn",
    // 调试: debugging
    "check_nan_inf",
    "cpu_deterministic",
    "enable_rpc_profiler",
    "multiple_of_cupti_buffer_size",
    "reader_queue_speed_test_mode",
    // 设备管理: devices
    "paddle_num_threads",
    "selected_gpus",
    // 分布式: distributed
    "communicator_fake_rpc",
    "communicator_independent_recv_thread",
    "communicator_max_merge_var_num",
    "communicator_merge_sparse_grad",
    "communicator_min_send_grad_num_before_recv",
    "communicator_send_queue_size",
    "communicator_send_wait_times",
    "communicator_thread_pool_size",
    "dist_threadpool_size",
    "rpc_deadline",
    "rpc_disable_reuse_port",
    "rpc_get_thread_num",
    "rpc_send_thread_num",
    "rpc_server_profile_path",
    "apply_pass_to_program",
    "allreduce_record_one_event",
    // 执行器: executors
    "enable_parallel_graph",
    "pe_profile_fname",
    "print_sub_graph_dir",
    "use_ngraph",
    // 存储管理: memory
    "allocator_strategy",
    "eager_delete_scope",
    "eager_delete_tensor_gb",
    "fast_eager_deletion_mode",
    "fraction_of_cpu_memory_to_use",
    "fraction_of_cuda_pinned_memory_to_use",
    "fraction_of_gpu_memory_to_use",
    "fuse_parameter_groups_size",
    "fuse_parameter_memory_size",
    "init_allocated_mem",
    "initial_cpu_memory_in_mb",
    "initial_gpu_memory_in_mb",
    "memory_fraction_of_eager_deletion",
    "reallocate_gpu_memory_in_mb",
    "use_pinned_memory",
    // 昇腾: Ascend
    "npu_precision_mode",
    // 其他: others
    "benchmark",
    "inner_op_parallelism",
    "max_body_size",
    "sync_nccl_allreduce",
    "tracer_profile_fname",
];

/// Variables that other chapters of the same documentation name.
const OTHER_VARIABLES: [&str; 22] = [
    "FLAGS_USE_STANDALONE_EXECUTOR",
    "FLAGS_allow_cinn_ops",
    "FLAGS_call_stack_level",
    "FLAGS_deny_cinn_ops",
    "FLAGS_enable_eager_mode",
    "FLAGS_run_kp_kernel",
    "FLAGS_selected_npus",
    "FLAGS_selected_xpus",
    "PADDLE_CURRENT_ENDPOINT",
    "PADDLE_GLOO_FS_PATH",
    "PADDLE_GLOO_HTTP_ENDPOINT",
    "PADDLE_GLOO_RENDEZVOUS",
    "PADDLE_HETER_TRAINER_IP_PORT_LIST",
    "PADDLE_INF_NAN_SKIP_OP",
    "PADDLE_INF_NAN_SKIP_ROLE",
    "PADDLE_INF_NAN_SKIP_VAR",
    "PADDLE_PORT",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_TRAINER_ID",
    "PADDLE_WITH_GLOO",
];

/// The expected page of the book.
fn expected_page() -> String {
    let mut page = String::from(
        "# Variables of PaddlePaddle\n\n\
         <!-- Made of the tables in `runtime/core/src/flags`; write it anew with `OARLOCK_WRITE=1 cargo test -p oarlock-core \
         --test paddle_variables`. -->\n\n\
         Some variables that programs for PaddlePaddle set are aliases of [flags](environment.md). The others have no effect:\n\
         when a runtime starts and one is set, a warning says so once, with what to use instead. A name that is spelt much like\n\
         one of these gets the nearest one as a suggestion. Nothing is said of other names that begin with `FLAGS_` or\n\
         `PADDLE_`, which may be those of other programs; `oarlock doctor` lists them. The same holds for `set_flags` and\n\
         `get_flags` of Python, where a flag without effect is an error that says what to use.\n\n\
         `oarlock flags --paddle` and `python -m oarlock flags --paddle` print this table.\n\n\
         | variable | what it says | here |\n|---|---|---|\n",
    );
    for (name, effect) in paddle_variables() {
        page += &match effect {
            PaddleEffect::Sets(flag) => {
                format!("| `{name}` | {} | the flag `{}` |\n", flag.meaning, flag.name)
            }
            PaddleEffect::Nothing(variable) => {
                format!("| `{name}` | {} | no effect; {} |\n", variable.meaning, variable.instead)
            }
        };
    }
    page
}

#[test]
fn no_variable_of_its_documentation_is_passed_over() {
    let known = paddle_variables();
    let flags = DOCUMENTED_FLAGS.iter().map(|flag| format!("FLAGS_{flag}"));
    let missing: Vec<String> = flags
        .chain(OTHER_VARIABLES.iter().map(|name| (*name).to_owned()))
        .filter(|name| !known.iter().any(|(known, _)| known == name))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_paddle_variable_is_listed_once_with_its_meaning() {
    let known = paddle_variables();
    assert!(known.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted, and each name once: {known:?}");
    for (name, effect) in known {
        let PaddleEffect::Nothing(variable) = effect else { continue };
        for text in [variable.meaning, variable.instead] {
            assert!(!text.is_empty() && !text.ends_with('.') && !text.contains('|'), "{name}: {text}");
        }
        assert!(variable.meaning.starts_with(char::is_uppercase), "{name}: {}", variable.meaning);
    }
}

#[test]
fn the_page_of_the_book_lists_them_all() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/paddle.md");
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        fs::write(&file, expected_page()).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == expected_page(),
        "`docs/src/reference/paddle.md` is stale; write it anew with `OARLOCK_WRITE=1 cargo test -p oarlock-core --test \
         paddle_variables`"
    );
}

//! The table of functions that a custom device fills, in each release of PaddlePaddle, as data.
//!
//! The table begins with its own size; a list of addresses follows. Releases inserted functions in the middle and gave the
//! interface the same version, so the size is all that tells them apart. Functions that the adapter never calls are in the lists
//! too, because the offsets of the others depend on them.

use PartOfTable::{Functions, Reserved};

/// The bytes of an address, and of each number in the table.
pub(crate) const WORD_BYTES: usize = size_of::<usize>();

/// A run of words in the table.
#[derive(Clone, Copy, Debug)]
enum PartOfTable {
    /// One address for each function.
    Functions(&'static [&'static str]),
    /// Words without a meaning.
    Reserved(usize),
}

/// The table of some releases.
#[derive(Debug)]
pub(crate) struct TableLayout {
    /// The releases that have it.
    pub(crate) releases: &'static str,
    /// The size of the struct that leads to the table.
    pub(crate) params_size: usize,
    /// True if the functions for the compute capability and the versions take a device.
    pub(crate) versions_take_device: bool,
    parts: &'static [PartOfTable],
}

impl TableLayout {
    /// The size of the table in bytes.
    pub(crate) fn table_size(&self) -> usize {
        let words = self.parts.iter().map(|part| match part {
            Functions(names) => names.len(),
            Reserved(count) => *count,
        });
        (1 + words.sum::<usize>()) * WORD_BYTES
    }

    /// The position of a function, in words from the start of the table.
    pub(crate) fn word_of(&self, function: &str) -> Option<usize> {
        let mut word = 1;
        for part in self.parts {
            match part {
                Functions(names) => match names.iter().position(|name| *name == function) {
                    Some(at) => return Some(word + at),
                    None => word += names.len(),
                },
                Reserved(count) => word += count,
            }
        }
        None
    }
}

const DEVICE: PartOfTable = Functions(&[
    "initialize",
    "finalize",
    "init_device",
    "set_device",
    "get_device",
    "deinit_device",
    "create_stream",
    "destroy_stream",
    "query_stream",
    "stream_add_callback",
    "create_event",
    "record_event",
    "destroy_event",
    "query_event",
    "synchronize_device",
    "synchronize_stream",
    "synchronize_event",
    "stream_wait_event",
]);
const MEMORY: PartOfTable = Functions(&[
    "device_memory_allocate",
    "device_memory_deallocate",
    "device_memory_set",
    "host_memory_allocate",
    "host_memory_deallocate",
    "unified_memory_allocate",
    "unified_memory_deallocate",
    "memory_copy_h2d",
    "memory_copy_d2h",
    "memory_copy_d2d",
    "memory_copy_p2p",
    "async_memory_copy_h2d",
    "async_memory_copy_d2h",
    "async_memory_copy_d2d",
    "async_memory_copy_p2p",
]);
const PROPERTIES: PartOfTable = Functions(&[
    "get_device_count",
    "get_device_list",
    "device_memory_stats",
    "device_min_chunk_size",
    "device_max_chunk_size",
    "device_max_alloc_size",
    "device_extra_padding_size",
    "device_init_alloc_size",
    "device_realloc_size",
    "get_compute_capability",
]);
const MORE_PROPERTIES: PartOfTable = Functions(&["get_device_properties"]);
const VERSIONS: PartOfTable = Functions(&["get_runtime_version", "get_driver_version"]);
const LIMITS: PartOfTable = Functions(&[
    "get_multi_process",
    "get_max_threads_per_mp",
    "get_max_threads_per_block",
    "get_max_grid_dim_size",
]);
const NARROW_FLOATS: PartOfTable = Functions(&["is_float16_supported", "is_bfloat16_supported"]);
const NEURAL_NETWORKS: PartOfTable = Functions(&["is_dnn_supported"]);
const EIGEN: PartOfTable = Functions(&["init_eigen_device", "destroy_eigen_device"]);
const GROUP_NAMES: PartOfTable = Functions(&["xccl_get_comm_name"]);
const COLLECTIVES: PartOfTable = Functions(&[
    "xccl_get_unique_id_size",
    "xccl_get_unique_id",
    "xccl_comm_init_rank",
    "xccl_destroy_comm",
    "xccl_all_reduce",
    "xccl_broadcast",
    "xccl_reduce",
    "xccl_all_gather",
    "xccl_reduce_scatter",
    "xccl_group_start",
    "xccl_group_end",
    "xccl_send",
    "xccl_recv",
    "xccl_all_to_all",
]);
const PROFILER: PartOfTable = Functions(&[
    "profiler_initialize",
    "profiler_finalize",
    "profiler_prepare_tracing",
    "profiler_start_tracing",
    "profiler_stop_tracing",
    "profiler_collect_trace_data",
]);
const BLAS_HANDLES: PartOfTable = Functions(&[
    "init_blas_handle",
    "blas_set_math_mode",
    "init_blaslt_handle",
    "destroy_blas_handle",
    "destroy_blaslt_handle",
]);
const CUDA_GRAPHS: PartOfTable = Functions(&[
    "cuda_stream_begin_capture",
    "cuda_stream_end_captrue",
    "cuda_graph_launch",
    "cuda_graph_destroy",
    "cuda_graph_exec_destroy",
    "cuda_graph_instantiate",
    "cuda_graph_get_nodes",
    "cuda_stream_capture_info",
    "get_parameter_setter_for_exec_graph",
    "cuda_graph_debug_dot_print",
    "cuda_thread_exchange_stream_capthure_mode",
]);
const OTHER: PartOfTable = Functions(&["blas_axpby"]);

/// Every known table, the smallest first.
pub(crate) const LAYOUTS: &[TableLayout] = &[
    TableLayout {
        releases: "2.4 to 2.6",
        params_size: 88,
        versions_take_device: false,
        parts: &[
            DEVICE,
            Reserved(8),
            MEMORY,
            Reserved(8),
            PROPERTIES,
            VERSIONS,
            Reserved(8),
            COLLECTIVES,
            Reserved(8),
            PROFILER,
            Reserved(8),
            OTHER,
            Reserved(7),
        ],
    },
    TableLayout {
        releases: "3.0",
        params_size: 96,
        versions_take_device: false,
        parts: &[
            DEVICE,
            Reserved(8),
            MEMORY,
            Reserved(8),
            PROPERTIES,
            VERSIONS,
            Reserved(8),
            GROUP_NAMES,
            COLLECTIVES,
            Reserved(8),
            PROFILER,
            Reserved(8),
            OTHER,
            Reserved(7),
        ],
    },
    TableLayout {
        releases: "3.1",
        params_size: 96,
        versions_take_device: true,
        parts: &[
            DEVICE,
            Reserved(8),
            MEMORY,
            Reserved(8),
            PROPERTIES,
            MORE_PROPERTIES,
            VERSIONS,
            LIMITS,
            EIGEN,
            Reserved(8),
            GROUP_NAMES,
            COLLECTIVES,
            Reserved(8),
            PROFILER,
            Reserved(8),
            OTHER,
            Reserved(7),
        ],
    },
    TableLayout {
        releases: "3.2",
        params_size: 96,
        versions_take_device: true,
        parts: &[
            DEVICE,
            Reserved(8),
            MEMORY,
            Reserved(8),
            PROPERTIES,
            MORE_PROPERTIES,
            VERSIONS,
            LIMITS,
            NARROW_FLOATS,
            EIGEN,
            Reserved(8),
            GROUP_NAMES,
            COLLECTIVES,
            Reserved(8),
            PROFILER,
            Reserved(8),
            BLAS_HANDLES,
            OTHER,
            Reserved(7),
        ],
    },
    TableLayout {
        releases: "3.3",
        params_size: 96,
        versions_take_device: true,
        parts: &[
            DEVICE,
            Reserved(8),
            MEMORY,
            Reserved(8),
            PROPERTIES,
            MORE_PROPERTIES,
            VERSIONS,
            LIMITS,
            NARROW_FLOATS,
            NEURAL_NETWORKS,
            EIGEN,
            Reserved(8),
            GROUP_NAMES,
            COLLECTIVES,
            Reserved(8),
            PROFILER,
            Reserved(8),
            BLAS_HANDLES,
            CUDA_GRAPHS,
            OTHER,
            Reserved(7),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Measured by a C++ compiler on `device_ext.h` of the packages `paddlepaddle` 2.6.2, 3.0.0, 3.1.1, 3.2.2 and 3.3.1.
    #[test]
    fn sizes_and_offsets_are_those_of_the_published_headers() {
        let functions = [
            "get_compute_capability",
            "get_runtime_version",
            "xccl_get_unique_id_size",
            "profiler_initialize",
            "blas_axpby",
        ];
        let measured = [
            (912, 88, [59, 60, 70, 92, 106]),
            (920, 96, [59, 60, 71, 93, 107]),
            (976, 96, [59, 61, 78, 100, 114]),
            (1032, 96, [59, 61, 80, 102, 121]),
            (1128, 96, [59, 61, 81, 103, 133]),
        ];
        let described = LAYOUTS.iter().map(|layout| {
            let words = functions.map(|name| layout.word_of(name).expect(name));
            (layout.table_size(), layout.params_size, words)
        });
        assert_eq!(described.collect::<Vec<_>>(), measured);
    }

    #[test]
    fn a_function_that_a_release_lacks_has_no_place() {
        assert_eq!(LAYOUTS[0].word_of("get_device_properties"), None);
        assert_eq!(LAYOUTS[4].word_of("get_device_properties"), Some(60));
    }
}

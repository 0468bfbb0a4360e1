//! The table of flags, and typed access to their values.

use super::{FlagDefinition, FlagKind, FlagValue, Flags};
use crate::{Error, Result};

/// How a pool allocates memory from its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorStrategy {
    /// Grow on demand.
    AutoGrowth,
    /// Allocate a large part of the memory at once and split it.
    BestFit,
}

/// The work that the CPU takes over if a device has no kernel for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackScope {
    /// None: calls of ops and models with such nodes fail.
    Error,
    /// Nodes of models, with a warning. Calls of single ops fail.
    Models,
    /// Both. The runtime counts the copies that calls cost.
    Cpu,
}

impl FallbackScope {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Error, "error"), (Self::Models, "models"), (Self::Cpu, "cpu")];

    /// Parses the value of the flag `kernel_fallback`.
    pub fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|(_, known)| *known == name);
        found.map(|(fallback, _)| fallback).ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected the fallback to be `error`, `models` or `cpu`, found `{name}`"
            ))
        })
    }

    /// True if the CPU takes over nodes of models that a device has no kernel for.
    pub fn covers_models(self) -> bool {
        self != Self::Error
    }
}

const fn define_flag(
    name: &'static str,
    kind: FlagKind,
    default: &'static str,
    meaning: &'static str,
    aliases: &'static [&'static str],
) -> FlagDefinition {
    FlagDefinition { name, kind, default, meaning, aliases }
}

use FlagKind::{Bool, BoundedCount, Bytes, Choice, Count, Fraction, List, Pairs, Word};

/// All flags, in the order of the documentation.
pub static FLAG_TABLE: &[FlagDefinition] = &[
    define_flag(
        "allocator_strategy",
        Choice(&["auto_growth", "best_fit", "naive_best_fit"]),
        "auto_growth",
        "How device memory is allocated: on demand, or one large chunk up front that is then divided",
        &["FLAGS_allocator_strategy"],
    ),
    define_flag(
        "attribute_async_errors",
        Bool,
        "true",
        "Record an event after every asynchronous kernel, so that an error names the op that failed; otherwise it names all ops since the last wait",
        &[],
    ),
    define_flag(
        "benchmark",
        Bool,
        "false",
        "Wait for every kernel before the next is launched, so that each time belongs to the op that it is listed for",
        &["FLAGS_benchmark"],
    ),
    define_flag(
        "check_nan_inf",
        Bool,
        "false",
        "Look for NaN and infinity in every output, and fail where one is found",
        &["FLAGS_check_nan_inf"],
    ),
    define_flag(
        "check_nan_inf_skip_ops",
        List,
        "",
        "Ops whose outputs are not checked, by exact name",
        &["PADDLE_INF_NAN_SKIP_OP"],
    ),
    define_flag(
        "check_nan_inf_skip_outputs",
        Pairs,
        "",
        "Outputs that are not looked through, as `op:output`; the op's name is exact, the output's may be a part of the name that its schema has, or its place, such as `output 0`",
        &["PADDLE_INF_NAN_SKIP_VAR"],
    ),
    define_flag(
        "deterministic",
        Bool,
        "false",
        "Use only kernels that give the same bits each time",
        &["FLAGS_cpu_deterministic", "FLAGS_cudnn_deterministic"],
    ),
    define_flag("device", Word, "", "The device that is used when none is named, such as `cuda:0`", &[]),
    define_flag(
        "device_memory_fraction",
        Fraction,
        "0.92",
        "With `best_fit`: how much of a device's free memory is taken at first, where the memory is its own",
        &["FLAGS_fraction_of_gpu_memory_to_use"],
    ),
    define_flag(
        "device_memory_initial",
        Bytes,
        "0",
        "With `best_fit`: how much is taken at first; 0 means that the fraction decides",
        &["FLAGS_initial_gpu_memory_in_mb"],
    ),
    define_flag(
        "device_memory_limit",
        Bytes,
        "0",
        "The most memory that is taken of one device; 0 is no limit",
        &["FLAGS_gpu_memory_limit_mb"],
    ),
    define_flag(
        "device_memory_refill",
        Bytes,
        "0",
        "With `best_fit`: how much is taken each time after the first; 0 means the preference of the device",
        &["FLAGS_reallocate_gpu_memory_in_mb"],
    ),
    define_flag(
        "kernel_fallback",
        Choice(&["error", "models", "cpu"]),
        "models",
        "What happens if a device has no kernel: with `error`, models and calls of ops fail; with `models`, the CPU runs such nodes of a model, with a warning, and calls of ops fail; with `cpu`, the CPU runs both, and the copies that calls cost are counted",
        &[],
    ),
    define_flag(
        "kernel_preference",
        List,
        "",
        "Plugins whose kernels take precedence over all others, in descending order of preference; `op=plugin` applies to one op only",
        &[],
    ),
    define_flag(
        "poison_memory",
        Bool,
        "false",
        "Fill memory with nonzero bytes on allocation and on release, to expose reads of uninitialized memory",
        &["FLAGS_init_allocated_mem"],
    ),
    define_flag(
        "random_seed",
        Count,
        "0",
        "The seed of the random generator; 0 takes one from the system",
        &["FLAGS_random_seed"],
    ),
    define_flag(
        "run_steps_limit",
        Count,
        "0",
        "The maximum number of steps in one run of a model; each iteration of a loop counts separately; 0 means no limit",
        &[],
    ),
    define_flag(
        "threads",
        BoundedCount(oarlock_host::MAX_WORKERS as u64),
        "0",
        "How many threads kernels on the CPU use; 0 is as many as the process may use at once",
        &["FLAGS_paddle_num_threads", "FLAGS_inner_op_parallelism"],
    ),
];

impl Flags {
    /// The flag `allocator_strategy`.
    pub fn allocator_strategy(&self) -> AllocatorStrategy {
        match self.flag_value("allocator_strategy") {
            FlagValue::Choice("auto_growth") => AllocatorStrategy::AutoGrowth,
            _ => AllocatorStrategy::BestFit,
        }
    }

    /// The flag `kernel_fallback`.
    pub fn kernel_fallback(&self) -> FallbackScope {
        match self.flag_value("kernel_fallback") {
            FlagValue::Choice("cpu") => FallbackScope::Cpu,
            FlagValue::Choice("models") => FallbackScope::Models,
            _ => FallbackScope::Error,
        }
    }

    /// The flag `deterministic`.
    pub fn is_deterministic(&self) -> bool {
        self.is_enabled("deterministic")
    }

    /// The flag `random_seed`; `None` means a new seed in every run.
    pub fn random_seed(&self) -> Option<u64> {
        self.nonzero_count("random_seed")
    }

    /// The flag `run_steps_limit`; `None` means no limit.
    pub fn run_steps_limit(&self) -> Option<u64> {
        self.nonzero_count("run_steps_limit")
    }

    /// The value of a flag of the kind [`FlagKind::Bool`].
    pub(crate) fn is_enabled(&self, name: &str) -> bool {
        self.flag_value(name) == FlagValue::Bool(true)
    }

    /// The flag `device`; `None` if the user chose none.
    pub fn default_device(&self) -> Option<String> {
        if let FlagValue::Word(device) = self.flag_value("device") {
            Some(device).filter(|name| !name.is_empty())
        } else {
            None
        }
    }

    /// The value of a flag of the kind [`FlagKind::Count`] or [`FlagKind::Bytes`]; `None` if it is 0.
    pub(crate) fn nonzero_count(&self, name: &str) -> Option<u64> {
        if let FlagValue::Count(count) = self.flag_value(name) {
            Some(count).filter(|count| *count != 0)
        } else {
            None
        }
    }

    /// The value of a flag of the kind [`FlagKind::Fraction`].
    pub(crate) fn fraction_value(&self, name: &str) -> f64 {
        if let FlagValue::Fraction(fraction) = self.flag_value(name) { fraction } else { 0.0 }
    }

    /// The value of a flag of the kind [`FlagKind::List`] or [`FlagKind::Pairs`].
    pub(crate) fn word_list(&self, name: &str) -> Vec<String> {
        if let FlagValue::List(words) = self.flag_value(name) { words } else { Vec::new() }
    }
}

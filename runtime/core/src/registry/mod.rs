//! The registry: all kernels, and which of them accepts a call.
//!
//! Each kernel is an entry. The entries of an op are stored in the order in which they were loaded. `matching.rs`
//! compares the requirements of an entry with a call. `rank_entries` sorts the matching entries by these criteria, in
//! order: the user's preference, no copies of inputs with strides, the highest score, and the order of loading.

pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod matching;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

use oarlock_host::{KernelHandle, KernelInfo, LoadedPlugin};

pub use check::KernelProblem;
pub use explain::{ConsideredKernel, DispatchExplanation, MissingKernel};

use crate::Error;
use crate::schema::{displayed_domain, normalize_domain};

/// A kernel of a plugin, as an entry of the registry.
#[derive(Clone, Debug)]
pub struct KernelEntry {
    handle: KernelHandle,
    order: usize,
}

impl KernelEntry {
    /// The properties and requirements that the kernel declares.
    pub fn info(&self) -> &KernelInfo {
        self.handle.info()
    }

    /// The name of the plugin that provides the kernel.
    pub fn plugin_name(&self) -> &str {
        &self.handle.plugin().info().name
    }

    pub(crate) fn kernel_handle(&self) -> &KernelHandle {
        &self.handle
    }
}

/// Formats what distinguishes an entry from others: `oarlock-cpu` 14+ for `cpu`, score 100.
impl fmt::Display for KernelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KernelInfo { device_type, score, .. } = self.info();
        let (plugin, versions) = (self.plugin_name(), self.info().version_range());
        write!(f, "`{plugin}` {versions} for `{device_type}`, score {score}")
    }
}

/// All kernels of all plugins.
#[derive(Clone, Debug, Default)]
pub struct KernelRegistry {
    entries: Vec<KernelEntry>,
    /// For each entry the cached result of its validation.
    errors: Vec<OnceLock<Option<Error>>>,
    by_op: HashMap<String, Vec<usize>>,
    preferences: Vec<KernelPreference>,
    /// The types of devices that plugins provide.
    device_types: BTreeSet<String>,
}

/// One item of the flag `kernel_preference`.
#[derive(Clone, Debug)]
struct KernelPreference {
    /// The op it applies to; `None` for every op.
    op: Option<String>,
    plugin: String,
}

impl KernelRegistry {
    /// Collects the kernels of plugins. `preferences` is the value of the flag `kernel_preference`.
    pub(crate) fn new(plugins: &[Arc<LoadedPlugin>], preferences: &[String]) -> Self {
        let preference = |text: &String| match text.split_once('=') {
            Some((op, plugin)) => KernelPreference { op: Some(op.to_owned()), plugin: plugin.to_owned() },
            None => KernelPreference { op: None, plugin: text.clone() },
        };
        let device_types = plugins.iter().filter_map(|plugin| plugin.info().device_type.clone()).collect();
        let preferences = preferences.iter().map(preference).collect();
        Self { preferences, device_types, ..Self::default() }.with_plugins(plugins)
    }

    /// A copy with the kernels of further plugins appended.
    pub(crate) fn with_plugins(&self, plugins: &[Arc<LoadedPlugin>]) -> Self {
        let mut all = self.clone();
        for handle in plugins.iter().flat_map(|plugin| plugin.kernel_handles()) {
            let order = all.entries.len();
            all.by_op.entry(handle.info().op.clone()).or_default().push(order);
            all.entries.push(KernelEntry { handle, order });
            all.errors.push(OnceLock::new());
        }
        all
    }

    /// All entries, in the order of loading.
    pub fn entries(&self) -> &[KernelEntry] {
        &self.entries
    }

    /// The entries of one op, in the order of loading.
    pub fn entries_for_op(&self, domain: &str, op: &str) -> impl Iterator<Item = &KernelEntry> {
        let indices = self.by_op.get(op).map(Vec::as_slice).unwrap_or_default();
        let entries = indices.iter().map(|index| &self.entries[*index]);
        entries.filter(move |entry| normalize_domain(&entry.info().domain) == normalize_domain(domain))
    }

    /// The first domain other than `domain` for which there is a kernel of an op of this name.
    pub(crate) fn other_domain_of_op(&self, domain: &str, op: &str) -> Option<&str> {
        let indices = self.by_op.get(op).map(Vec::as_slice).unwrap_or_default();
        let domains = indices.iter().map(|index| self.entries[*index].info().domain.as_str());
        domains.map(displayed_domain).find(|other| *other != displayed_domain(domain))
    }

    /// True if some kernel for a type of device returns before its work is done.
    pub(crate) fn runs_asynchronously(&self, device_type: &str) -> bool {
        self.entries.iter().any(|entry| entry.info().asynchronous && entry.info().device_type == device_type)
    }

    /// Sorts by the user's preference, then by whether strided inputs need no copies, then by score, and finally by the
    /// order of loading.
    pub(crate) fn rank_entries(&self, entries: &mut [&KernelEntry], has_strides: &[bool]) {
        let needs_copies = |entry: &KernelEntry| {
            let operand_specs = &entry.info().inputs;
            let takes = |index: usize| {
                operand_specs
                    .get(index)
                    .or(operand_specs.last())
                    .is_some_and(|operand_spec| operand_spec.strided)
            };
            (0..).zip(has_strides).any(|(index, has_strides)| *has_strides && !takes(index))
        };
        entries.sort_by_key(|entry| {
            (
                self.preference_rank(entry),
                needs_copies(entry),
                std::cmp::Reverse(entry.info().score),
                entry.order,
            )
        });
    }

    /// The rank of an entry's plugin in the user's preferences. A preference for one op takes precedence over one for all ops.
    fn preference_rank(&self, entry: &KernelEntry) -> usize {
        let place = |is_own: bool| {
            self.preferences.iter().position(|preference| {
                preference.plugin == entry.plugin_name()
                    && if is_own {
                        preference.op.as_deref() == Some(&entry.info().op)
                    } else {
                        preference.op.is_none()
                    }
            })
        };
        let all = self.preferences.len();
        place(true).or_else(|| place(false).map(|place| all + place)).unwrap_or(usize::MAX)
    }
}

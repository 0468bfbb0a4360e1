//! The registry: which kernels there are, and which of them takes a call.
//!
//! A kernel is a row. The rows of an op stand together in the order in which they were loaded. What a row demands is
//! compared with a call in `fit.rs`; of the rows that fit, `rank` puts the one first that the user
//! prefers, then one that needs no copies of inputs with strides, then the one with the highest score, then the one that
//! was loaded first.

pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod fit;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

use oarlock_host::{KernelHandle, KernelInfo, Plugin};

pub use check::RowProblem;
pub use explain::{Considered, Explanation, MissingKernel};

use crate::Error;

/// The domain of an op under the one name it has here: ONNX's own is the empty one.
pub(crate) fn domain_name(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// One kernel.
#[derive(Clone, Debug)]
pub struct Row {
    handle: KernelHandle,
    order: usize,
}

impl Row {
    /// What the kernel does and demands.
    pub fn info(&self) -> &KernelInfo {
        self.handle.info()
    }

    /// The name of the plugin it came from.
    pub fn plugin(&self) -> &str {
        &self.handle.plugin().info().name
    }

    /// The kernel.
    pub(crate) fn handle(&self) -> &KernelHandle {
        &self.handle
    }
}

/// A row by what tells it from others: `oarlock-cpu` 14+ for `cpu`, score 100.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KernelInfo { device_type, score, .. } = self.info();
        let (plugin, versions) = (self.plugin(), self.info().versions());
        write!(f, "`{plugin}` {versions} for `{device_type}`, score {score}")
    }
}

/// All kernels of all plugins.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    rows: Vec<Row>,
    /// What is wrong with each row, once somebody asked.
    errors: Vec<OnceLock<Option<Error>>>,
    by_op: HashMap<String, Vec<usize>>,
    preferences: Vec<Preference>,
    /// The types of devices that plugins bring.
    device_types: BTreeSet<String>,
}

/// What the user says about which kernels come first.
#[derive(Clone, Debug)]
struct Preference {
    /// The op it is for, or every op.
    op: Option<String>,
    plugin: String,
}

impl Registry {
    /// The kernels of these plugins. `preferences` are those of the flag `kernel_preference`.
    pub(crate) fn new(plugins: &[Arc<Plugin>], preferences: &[String]) -> Self {
        let preference = |text: &String| match text.split_once('=') {
            Some((op, plugin)) => Preference { op: Some(op.to_owned()), plugin: plugin.to_owned() },
            None => Preference { op: None, plugin: text.clone() },
        };
        let device_types = plugins.iter().filter_map(|plugin| plugin.info().device_type.clone()).collect();
        let preferences = preferences.iter().map(preference).collect();
        Self { preferences, device_types, ..Self::default() }.with(plugins)
    }

    /// These kernels, and behind them those of further plugins.
    pub(crate) fn with(&self, plugins: &[Arc<Plugin>]) -> Self {
        let mut all = self.clone();
        for handle in plugins.iter().flat_map(|plugin| plugin.kernel_handles()) {
            let order = all.rows.len();
            all.by_op.entry(handle.info().op.clone()).or_default().push(order);
            all.rows.push(Row { handle, order });
            all.errors.push(OnceLock::new());
        }
        all
    }

    /// Every row, in the order of loading.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows of one op, in the order of loading.
    pub fn rows_of(&self, domain: &str, op: &str) -> impl Iterator<Item = &Row> {
        let indices = self.by_op.get(op).map(Vec::as_slice).unwrap_or_default();
        let rows = indices.iter().map(|index| &self.rows[*index]);
        rows.filter(move |row| domain_name(&row.info().domain) == domain_name(domain))
    }

    /// Whether some kernel for a type of devices returns before its work is done.
    pub(crate) fn leaves_work_behind(&self, device_type: &str) -> bool {
        self.rows.iter().any(|row| row.info().asynchronous && row.info().device_type == device_type)
    }

    /// Puts the row that runs before others first: what the user prefers, then whatever takes the inputs that have strides
    /// as they are, then the score, then the order of loading.
    pub(crate) fn rank(&self, rows: &mut [&Row], has_strides: &[bool]) {
        let needs_copies = |row: &Row| {
            let demands = &row.info().inputs;
            let takes =
                |index: usize| demands.get(index).or(demands.last()).is_some_and(|demand| demand.strided);
            (0..).zip(has_strides).any(|(index, has_strides)| *has_strides && !takes(index))
        };
        rows.sort_by_key(|row| {
            (self.preference(row), needs_copies(row), std::cmp::Reverse(row.info().score), row.order)
        });
    }

    /// The place of a row's plugin in what the user prefers; what is said of one op is before what is said of all.
    fn preference(&self, row: &Row) -> usize {
        let place = |is_own: bool| {
            self.preferences.iter().position(|preference| {
                preference.plugin == row.plugin()
                    && if is_own {
                        preference.op.as_deref() == Some(&row.info().op)
                    } else {
                        preference.op.is_none()
                    }
            })
        };
        let all = self.preferences.len();
        place(true).or_else(|| place(false).map(|place| all + place)).unwrap_or(usize::MAX)
    }
}

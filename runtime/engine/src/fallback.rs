//! What the CPU runs of a model because no device that was named has a kernel for it, and who is told.
//!
//! Who names a device means that the model runs there. So what the CPU does in its place is told once for each op, or is an
//! error, as the flag `kernel_fallback` says. Where the CPU was named too, it is what was asked for. What the host does on
//! purpose, such as computing shapes, is none of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::flags::FallbackScope;
use oarlock_core::registry::MissingKernel;
use oarlock_core::{CpuFallback, Device, Error, Result, Runtime};

use crate::environment::SessionEnvironment;
use crate::graph::Node;
use crate::plan::{DeviceSupport, ExecutionPlan, HostNodes, HostReason, StepAction, device_support};

/// How many ops a sentence names of a kind.
const MOST_NAMED_OPS: usize = 6;

/// Which device runs how many nodes, and what the CPU runs because the others cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FallbackSummary {
    /// The devices that come before the CPU.
    pub devices: Vec<String>,
    /// The CPU.
    pub cpu: String,
    /// Whether the CPU was named too, so that it is meant to run what the others cannot.
    pub is_cpu_named: bool,
    /// How many nodes take a kernel. Copies, other views of the same memory, and control flow take none.
    pub nodes: usize,
    /// How many of them each device runs.
    pub nodes_by_device: BTreeMap<String, usize>,
    /// What the CPU runs because the devices before it have no kernel, the op with most nodes first.
    pub ops: Vec<FallbackOp>,
    /// How many nodes the CPU has to compute shapes and what else the host reads before it calls a kernel.
    pub shape_nodes: usize,
    /// How many it has because they are about text.
    pub text_nodes: usize,
    /// How many it has because copying would take longer.
    pub small_nodes: usize,
}

/// An op for which devices have no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackOp {
    /// Its name, with its domain where that is not ONNX's own.
    pub op: String,
    /// What the first device lacks.
    pub missing: MissingKernel,
    /// The same in a sentence.
    pub reason: String,
    /// How many nodes there are of it.
    pub count: usize,
    /// The name of the first; it may be empty.
    pub first_node: String,
}

/// Whoever is told of what the CPU runs for other devices. Without anybody, who watches the runtime is.
#[derive(Clone, Default)]
pub struct FallbackListener(Option<Arc<FallbackCallback>>);

/// A function that is told.
type FallbackCallback = dyn Fn(&FallbackSummary) + Send + Sync;

impl FallbackListener {
    /// Has a function be told: when a plan is made in which the CPU runs an op that was not told of before. It must not run
    /// the session itself, which waits for the plan.
    pub fn new(told: impl Fn(&FallbackSummary) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }
}

impl fmt::Debug for FallbackListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "FallbackListener(a function)"
        } else {
            "FallbackListener(the log)"
        })
    }
}

/// What a session lets the CPU do for other devices.
#[derive(Clone)]
pub(crate) struct FallbackPolicy {
    is_cpu_named: bool,
    fallback: FallbackScope,
    listener: FallbackListener,
    /// The ops that were told of.
    told: Arc<Mutex<BTreeSet<String>>>,
}

impl FallbackPolicy {
    pub(crate) fn new(is_cpu_named: bool, fallback: FallbackScope) -> Self {
        Self { is_cpu_named, fallback, listener: FallbackListener::default(), told: Arc::default() }
    }

    /// The same with wishes of its own.
    pub(crate) fn with_overrides(self, fallback: Option<FallbackScope>, listener: FallbackListener) -> Self {
        Self { fallback: fallback.unwrap_or(self.fallback), listener, ..self }
    }

    /// Whether the CPU may run what no other device can.
    fn allows_cpu(&self) -> bool {
        self.is_cpu_named || self.fallback.covers_models()
    }

    /// Whether the CPU makes a call that its device has no kernel for, as it turns out in the run.
    pub(crate) fn runtime_fallback(&self) -> CpuFallback {
        match (self.is_cpu_named, self.allows_cpu()) {
            (true, _) => CpuFallback::Quiet,
            (false, true) => CpuFallback::Told,
            (false, false) => CpuFallback::Never,
        }
    }

    /// Tells of ops that nobody was told of.
    fn notify_listener(&self, summary: &FallbackSummary, runtime: &Runtime) {
        match &self.listener.0 {
            Some(told) => told(summary),
            None => runtime.log_warning(&format!("{summary}; `explain` says why for each node")),
        }
    }
}

/// Looks at a plan that is new: what the CPU runs for other devices is told, or an error.
pub(crate) fn review_fallbacks(plan: &ExecutionPlan, environment: &SessionEnvironment) -> Result<()> {
    let policy = &environment.fallback;
    if policy.is_cpu_named {
        return Ok(());
    }
    let host_nodes = HostNodes::from_plan(plan);
    let fallen: BTreeSet<String> = plan
        .steps
        .iter()
        .filter(|step| matches!(step.work, StepAction::Call(_) | StepAction::Eager(_)))
        .filter(|step| {
            step.device.is_same_device(&environment.host) && host_nodes.host_reason(step.node).is_none()
        })
        .map(|step| qualified_op(&plan.graph.nodes[step.node]))
        .collect();
    if fallen.is_empty() {
        return Ok(());
    }
    if !policy.allows_cpu() {
        return Err(FallbackSummary::from_plan(plan, environment).to_error());
    }
    let mut told = policy.told.lock().unwrap_or_else(PoisonError::into_inner);
    if !fallen.is_subset(&told) {
        told.extend(fallen);
        drop(told);
        policy.notify_listener(&FallbackSummary::from_plan(plan, environment), &environment.runtime);
    }
    Ok(())
}

impl FallbackSummary {
    /// Of a plan alone.
    fn from_plan(plan: &ExecutionPlan, environment: &SessionEnvironment) -> Self {
        let mut summary = Self::new(environment);
        summary.add_plan(plan, environment);
        summary.sorted()
    }

    /// Of a plan, and of branches and bodies as they ran first, as far as they did.
    pub(crate) fn from_run(plan: &ExecutionPlan, environment: &SessionEnvironment) -> Self {
        let mut summary = Self::new(environment);
        summary.add_plan_with_bodies(plan, environment);
        summary.sorted()
    }

    fn new(environment: &SessionEnvironment) -> Self {
        let SessionEnvironment { devices, host, fallback, .. } = environment;
        let before = devices.iter().take_while(|device| !device.is_same_device(host));
        Self {
            devices: before.map(|device| device.name().to_owned()).collect(),
            cpu: host.name().to_owned(),
            is_cpu_named: fallback.is_cpu_named,
            nodes_by_device: devices.iter().map(|device| (device.name().to_owned(), 0)).collect(),
            ..Self::default()
        }
    }

    fn add_plan_with_bodies(&mut self, plan: &ExecutionPlan, environment: &SessionEnvironment) {
        self.add_plan(plan, environment);
        for step in &plan.steps {
            let StepAction::Control(control) = &step.work else { continue };
            for body in control.programs().filter_map(|program| program.first_plan()) {
                self.add_plan_with_bodies(&body, environment);
            }
        }
    }

    fn add_plan(&mut self, plan: &ExecutionPlan, environment: &SessionEnvironment) {
        let SessionEnvironment { runtime, devices, host, .. } = environment;
        let first = devices.first().filter(|device| !device.is_same_device(host));
        let host_nodes = HostNodes::from_plan(plan);
        for step in
            plan.steps.iter().filter(|step| matches!(step.work, StepAction::Call(_) | StepAction::Eager(_)))
        {
            self.nodes += 1;
            *self.nodes_by_device.entry(step.device.name().to_owned()).or_default() += 1;
            let Some(first) = first.filter(|_| step.device.is_same_device(host)) else { continue };
            match host_nodes.host_reason(step.node) {
                Some(HostReason::Shapes) => self.shape_nodes += 1,
                Some(HostReason::Text) => self.text_nodes += 1,
                Some(HostReason::TooSmall) => self.small_nodes += 1,
                None => self.count_node(plan, &plan.graph.nodes[step.node], runtime, first),
            }
        }
    }

    fn count_node(&mut self, plan: &ExecutionPlan, node: &Node, runtime: &Runtime, device: &Device) {
        let (missing, reason) = match device_support(&plan.graph, node, runtime, device) {
            DeviceSupport::Kernels(explanation) => {
                (explanation.missing_kernel(), explanation.to_error().message().to_owned())
            }
            other => (MissingKernel::Op, other.refusal().unwrap_or_default()),
        };
        let op = qualified_op(node);
        match self.ops.iter_mut().find(|known| known.op == op && known.missing == missing) {
            Some(known) => known.count += 1,
            None => {
                let first_node = node.name.to_string();
                self.ops.push(FallbackOp { op, missing, reason, count: 1, first_node });
            }
        }
    }

    fn sorted(mut self) -> Self {
        self.ops.sort_by_key(|op| (op.missing, std::cmp::Reverse(op.count)));
        self
    }

    /// How many nodes the CPU runs because other devices have no kernel for them.
    pub fn fallback_nodes(&self) -> usize {
        self.ops.iter().map(|op| op.count).sum()
    }

    /// The error where the CPU is not to run them.
    pub fn to_error(&self) -> Error {
        let named = |op: &FallbackOp| match (op.count, op.first_node.as_str()) {
            (1, "") => format!("`{}`", op.op),
            (1, name) => format!("`{}` (`{name}`)", op.op),
            (count, "") => format!("`{}` ({count} nodes)", op.op),
            (count, name) => format!("`{}` ({count} nodes, `{name}` the first)", op.op),
        };
        let ops: Vec<String> = self.ops.iter().map(named).collect();
        let message = format!(
            "expected kernels of {} for all nodes that take one, found none for {} of {}: {}",
            quote_names(&self.devices),
            self.fallback_nodes(),
            self.nodes,
            list_first_ops(&ops)
        );
        Error::unimplemented(message).with_advice(format!(
            "name `{}` as the last device, or set `kernel_fallback=models`, to have the CPU run them; \
             `explain` then says why for each node",
            self.cpu.split(':').next().unwrap_or_default()
        ))
    }
}

/// One sentence.
impl fmt::Display for FallbackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fallen, devices) = (self.fallback_nodes(), quote_names(&self.devices));
        let (runs, has) =
            (if fallen == 1 { "runs" } else { "run" }, if self.devices.len() == 1 { "has" } else { "have" });
        write!(f, "{fallen} of the {} nodes that take a kernel {runs} on `{}`, ", self.nodes, self.cpu)?;
        write!(f, "as {devices} {has} ")?;
        let kinds = [
            (MissingKernel::Op, "for"),
            (MissingKernel::Dtype, "for the dtypes of"),
            (MissingKernel::Operands, "for the operands of"),
        ];
        let of_kind = |(kind, words): (MissingKernel, &str)| {
            let named = |op: &FallbackOp| match op.count {
                1 => format!("`{}`", op.op),
                count => format!("`{}` ({count})", op.op),
            };
            let ops: Vec<String> = self.ops.iter().filter(|op| op.missing == kind).map(named).collect();
            (!ops.is_empty()).then(|| format!("{words} {}", list_first_ops(&ops)))
        };
        let kinds: Vec<String> = kinds.into_iter().filter_map(of_kind).collect();
        write!(f, "no kernel {}", kinds.join(", none "))?;
        let kept = [
            (self.shape_nodes, "to compute shapes"),
            (self.text_nodes, "as text is on the host alone"),
            (self.small_nodes, "as copying would take longer"),
        ];
        kept.into_iter().filter(|(count, _)| *count > 0).try_for_each(|(count, why)| {
            write!(f, "; {count} more {} there on purpose, {why}", if count == 1 { "is" } else { "are" })
        })
    }
}

/// The op of a node, with its domain where that is not ONNX's own.
fn qualified_op(node: &Node) -> String {
    if node.domain.is_empty() { node.op.to_string() } else { format!("{}.{}", node.domain, node.op) }
}

/// The first of some ops, and how many more there are.
fn list_first_ops(ops: &[String]) -> String {
    let (named, more) = ops.split_at(ops.len().min(MOST_NAMED_OPS));
    match more.len() {
        0 => join_texts(named),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn quote_names(names: &[String]) -> String {
    join_texts(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>())
}

fn join_texts(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fallback_op(op: &str, missing: MissingKernel, count: usize) -> FallbackOp {
        let (reason, first_node) = (String::new(), op.to_uppercase());
        FallbackOp { op: op.to_owned(), missing, reason, count, first_node }
    }

    fn fallback_summary(ops: Vec<FallbackOp>) -> FallbackSummary {
        FallbackSummary {
            devices: vec!["opencl:0".to_owned()],
            cpu: "cpu:0".to_owned(),
            nodes: 12,
            ops,
            ..FallbackSummary::default()
        }
    }

    #[test]
    fn one_sentence_says_how_many_where_which_and_why() {
        let all = ["Conv", "Relu", "Gemm", "TopK", "Tan", "Sin", "Cos", "Abs"]
            .map(|name| fallback_op(name, MissingKernel::Op, 1));
        assert_eq!(
            fallback_summary(all.to_vec()).to_string(),
            "8 of the 12 nodes that take a kernel run on `cpu:0`, as `opencl:0` has no kernel for `Conv`, `Relu`, `Gemm`, `TopK`, `Tan`, `Sin` \
             and 2 more"
        );
        let kinds = vec![
            fallback_op("Conv", MissingKernel::Op, 2),
            fallback_op("Add", MissingKernel::Dtype, 1),
            fallback_op("Max", MissingKernel::Operands, 1),
        ];
        assert_eq!(
            FallbackSummary { shape_nodes: 3, ..fallback_summary(kinds) }.to_string(),
            "4 of the 12 nodes that take a kernel run on `cpu:0`, as `opencl:0` has no kernel for `Conv` (2), none for the dtypes of `Add`, none for \
             the operands of `Max`; 3 more are there on purpose, to compute shapes"
        );
        assert_eq!(
            fallback_summary(vec![fallback_op("Add", MissingKernel::Dtype, 1)]).to_string(),
            "1 of the 12 nodes that take a kernel runs on `cpu:0`, as `opencl:0` has no kernel for the dtypes of `Add`"
        );
    }

    #[test]
    fn the_error_names_the_first_nodes_and_what_to_do() {
        let error = fallback_summary(vec![
            fallback_op("Conv", MissingKernel::Op, 2),
            fallback_op("Add", MissingKernel::Dtype, 1),
        ])
        .to_error();
        assert_eq!(
            error.message(),
            "expected kernels of `opencl:0` for all nodes that take one, found none for 3 of 12: `Conv` (2 nodes, `CONV` the first) and \
             `Add` (`ADD`)"
        );
        assert!(
            error
                .advice()
                .unwrap()
                .starts_with("name `cpu` as the last device, or set `kernel_fallback=models`"),
            "{error:?}"
        );
    }
}

//! Builds a plan from a graph with known shapes.
//!
//! First every node gets a device and an action, in a list of steps without memory. Then the memory planner decides which values are
//! tensors of their own, and where the others lie in arenas.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use oarlock_core::{Device, Dims, Op, PrepareOutcome, PreparedCall, Result, shape};
use oarlock_host::OperandInfo;
use smallvec::smallvec;

use super::host_affinity::{self, HostAffinity};
use super::memory_planner::MemoryPlanner;
use super::unallocated_step::{PlanValue, PlanValueIndices, UnallocatedAction, UnallocatedStep};
use super::{ExecutionPlan, PlanStep, StepAction};
use crate::graph::{Graph, Node, ValueId};
use crate::host_ops::HostOp;
use crate::node_listener::NodeEvent;
use crate::passes::{PassReplay, is_same_op, is_same_value, node_op, with_expected_inputs};
use crate::session_environment::SessionEnvironment;

/// An earlier plan of the same nodes. A node whose operands are all unchanged reuses the step it has there.
pub(crate) struct PreviousPlan<'a> {
    pub(crate) plan: &'a ExecutionPlan,
    pub(crate) differs: &'a [bool],
}

/// Limit on the search for an already prepared kernel that can be shared; beyond it, preparing one is cheaper.
const MAX_SHARED_KERNELS: usize = 16;

/// Builds a plan for an optimized graph, reusing prepared kernels of `previous` where possible.
pub(crate) fn build_plan(
    graph: Graph,
    pass_replay: &PassReplay,
    previous: Option<PreviousPlan<'_>>,
    environment: &SessionEnvironment,
) -> Result<ExecutionPlan> {
    PlanBuilder::new(graph, pass_replay, previous, environment).build()
}

struct PlanBuilder<'a> {
    graph: Graph,
    pass_replay: &'a PassReplay,
    previous: Option<PreviousPlan<'a>>,
    /// The steps of the previous plan, by node.
    previous_steps: Vec<Option<&'a PlanStep>>,
    environment: &'a SessionEnvironment,
    plan_values: Vec<PlanValue>,
    steps: Vec<UnallocatedStep>,
    /// Nodes that stay on the host although a device could run them.
    host_affinities: BTreeMap<usize, HostAffinity>,
    /// Steps whose kernels may be shared, because they were not prepared with constants.
    shared: Vec<usize>,
    /// Bytes of constants that this plan alone holds on a device.
    copied_bytes: Cell<usize>,
    /// Copies that already exist, by value and target device.
    copies: HashMap<(usize, String), usize>,
}

impl<'a> PlanBuilder<'a> {
    fn new(
        graph: Graph,
        pass_replay: &'a PassReplay,
        previous: Option<PreviousPlan<'a>>,
        environment: &'a SessionEnvironment,
    ) -> Self {
        let mut plan_values: Vec<PlanValue> =
            graph.values().map(|(value, _)| PlanValue { value, device: None, size: None }).collect();
        for input in &graph.inputs {
            let device =
                if is_text(graph.value(*input)) { &environment.host } else { environment.main_device() };
            plan_values[input.index()].device = Some(device.clone());
        }
        let host_affinities = host_affinity::find_host_affinities(&graph, environment);
        let mut previous_steps = vec![None; graph.nodes.len()];
        let known = previous.iter().flat_map(|previous| &previous.plan.steps);
        known.filter(|step| !step.is_copy()).for_each(|step| previous_steps[step.node] = Some(step));
        let steps = Vec::with_capacity(graph.nodes.len());
        let (shared, copies) = (Vec::new(), HashMap::new());
        Self {
            graph,
            pass_replay,
            previous,
            previous_steps,
            environment,
            plan_values,
            steps,
            host_affinities,
            shared,
            copied_bytes: Cell::default(),
            copies,
        }
    }

    fn build(mut self) -> Result<ExecutionPlan> {
        let nodes = std::mem::take(&mut self.graph.nodes);
        let mut last_readers = vec![0; self.graph.value_count()];
        for (at, node) in nodes.iter().enumerate() {
            node.read_values().for_each(|value| last_readers[value.index()] = at);
        }
        for (at, node) in nodes.iter().enumerate() {
            self.environment.progress.report_progress(at, nodes.len());
            self.environment.on_node.report_node(|| NodeEvent { node, run: None });
            self.plan_node(at, &nodes).map_err(|error| error.with_op(&node.op).with_node(&node.name))?;
            self.let_weights_go(at, node, &last_readers);
        }
        self.environment.progress.report_progress(nodes.len(), nodes.len());
        self.graph.nodes = nodes;
        let effects = self.pass_replay.effects().to_vec();
        let Self { graph, environment, plan_values, steps, host_affinities, copied_bytes, .. } = self;
        let (steps, arenas, slots, inputs, outputs) =
            MemoryPlanner::new(&graph, environment, &plan_values, &steps).finish(steps)?;
        Ok(ExecutionPlan {
            graph,
            effects,
            host_affinities,
            steps,
            arenas,
            slots,
            inputs,
            outputs,
            copied_bytes: copied_bytes.get(),
        })
    }

    /// Lets go of the weights that no later node reads. Kernels hold what they need of them. So while a plan is made, few weights
    /// are in memory twice: as they are in the file and as kernels packed them.
    fn let_weights_go(&self, at: usize, node: &Node, last_readers: &[usize]) {
        for value in node.read_values().filter(|value| last_readers[value.index()] == at) {
            if let Some(numbers) = self.graph.value(value).known_numbers() {
                numbers.let_go();
            }
        }
    }

    /// The action for an op that the engine runs itself. It does not depend on shapes, so the previous plan's is reused.
    fn engine_action(&self, at: usize, node: &Node) -> Result<Option<UnallocatedAction>> {
        if node.is_control_flow() {
            return Ok(Some(UnallocatedAction::ControlFlow));
        }
        let op = match self.previous_steps[at].map(|step| &step.action) {
            Some(StepAction::Host(call)) => Some(call.op.clone()),
            Some(_) => None,
            None => HostOp::from_node(node)?.map(Arc::new),
        };
        Ok(op.map(UnallocatedAction::Host))
    }

    /// Reuses the step of the previous plan if neither its operands nor its placement changed.
    fn action_of_previous_step(&self, at: usize, node: &Node) -> Option<(Device, UnallocatedAction)> {
        let (previous, step) = (self.previous.as_ref()?, self.previous_steps[at]?);
        let mut touched = node.read_values().chain(node.written_values());
        let host_affinities =
            self.host_affinities.contains_key(&at) == previous.plan.host_affinities.contains_key(&at);
        if !host_affinities || touched.any(|value| previous.differs[value.index()]) {
            return None;
        }
        let action = match &step.action {
            StepAction::Call(call) => UnallocatedAction::Call(call.prepared.clone()),
            StepAction::Dispatched(dispatched) => UnallocatedAction::Dispatched(dispatched.op.clone()),
            StepAction::View { .. }
            | StepAction::Copy { .. }
            | StepAction::Host(_)
            | StepAction::ControlFlow(_) => return None,
        };
        Some((step.device.clone(), action))
    }

    /// Shares the kernel of an earlier node with the same op and the same operand types.
    fn action_of_same_node(&self, at: usize, nodes: &[Node]) -> Option<(Device, UnallocatedAction)> {
        let node = &nodes[at];
        let is_same = |(own, other): (&Option<ValueId>, &Option<ValueId>)| match (own, other) {
            (Some(own), Some(other)) => {
                is_same_value(self.graph.shared_value(*own), self.graph.shared_value(*other))
            }
            (own, other) => own == other,
        };
        let does_the_same = |step: &&UnallocatedStep| {
            let other = &nodes[step.node];
            is_same_op(node, other)
                && node.inputs.iter().zip(&other.inputs).all(is_same)
                && self.host_affinities.contains_key(&at) == self.host_affinities.contains_key(&step.node)
        };
        let step = self.shared.iter().map(|step| &self.steps[*step]).find(does_the_same)?;
        match &step.action {
            UnallocatedAction::Call(prepared) => {
                Some((step.device.clone(), UnallocatedAction::Call(prepared.clone())))
            }
            _ => None,
        }
    }

    /// True if other nodes may use this node's kernel. Kernels with constant inputs are excluded: they were prepared for those.
    fn can_share_kernel(&self, node: &Node) -> bool {
        let is_constant = |input: &ValueId| self.graph.value(*input).weight.is_some();
        self.shared.len() < MAX_SHARED_KERNELS && !node.inputs.iter().flatten().any(is_constant)
    }

    /// Decides how a node runs and appends its step, without memory.
    fn plan_node(&mut self, at: usize, nodes: &[Node]) -> Result<()> {
        let node = &nodes[at];
        let inputs: PlanValueIndices = node.inputs.iter().map(|input| input.map(ValueId::index)).collect();
        let mut is_new = false;
        let (device, action, inputs) = if let Some(action) = self.engine_action(at, node)? {
            // Captured values follow the node's own inputs.
            let captured = node.subgraphs.iter().flat_map(|subgraph| &subgraph.captures);
            let inputs = inputs.into_iter().chain(captured.map(|value| Some(value.index()))).collect();
            (self.environment.main_device().clone(), action, inputs)
        } else if let Some((device, dims)) = self.view_of_input(node) {
            (device, UnallocatedAction::View(dims), inputs[..1].into())
        } else {
            let (device, action) = match self
                .action_of_previous_step(at, node)
                .or_else(|| self.action_of_same_node(at, nodes))
            {
                Some(known) => known,
                None => {
                    let (device, action) = self.prepare_kernel(at, node)?;
                    is_new = self.can_share_kernel(node);
                    (device, action)
                }
            };
            let inputs = inputs
                .into_iter()
                .map(|input| input.map(|input| self.copy_to_device(at, input, &device)))
                .collect();
            (device, action, inputs)
        };
        let mut outputs: PlanValueIndices =
            node.outputs.iter().map(|output| output.map(ValueId::index)).collect();
        if let UnallocatedAction::Call(prepared) = &action {
            self.add_unused_outputs(node, prepared, &mut outputs);
        }
        for output in outputs.iter().flatten() {
            self.plan_values[*output].device = Some(device.clone());
        }
        if is_new && matches!(action, UnallocatedAction::Call(_)) {
            self.shared.push(self.steps.len());
        }
        self.steps.push(UnallocatedStep { node: at, device, action, inputs, outputs });
        Ok(())
    }

    /// Gives unused outputs a buffer too, because the kernel writes them all the same.
    fn add_unused_outputs(&mut self, node: &Node, prepared: &PreparedCall, outputs: &mut [Option<usize>]) {
        let Some(value) = node.written_values().next() else { return };
        for (output, known) in outputs.iter_mut().zip(prepared.output_types()) {
            if output.is_none() {
                let size = known.and_then(|(dtype, dims)| shape::size_in_bytes(dtype, dims).ok());
                *output = Some(self.plan_values.len());
                self.plan_values.push(PlanValue { value, device: None, size });
            }
        }
    }

    /// The device and output shape of a node that is only a view of its input.
    fn view_of_input(&self, node: &Node) -> Option<(Device, Dims)> {
        let input = node.input(0)?;
        let is_view = node.is_view();
        let (from, to) = (self.graph.value(input), self.graph.value(node.output(0)?));
        let is_same = from.dtype()? == to.dtype()? && from.size_in_bytes()? == to.size_in_bytes()?;
        if !is_view || !is_same || from.dtype()? == oarlock_core::Dtype::String {
            return None;
        }
        let device =
            self.plan_values[input.index()].device.as_ref().unwrap_or(self.environment.main_device());
        Some((device.clone(), to.dims()?))
    }

    /// Prepares a kernel on the first device that has one, or on the host if the node stays there.
    fn prepare_kernel(&self, at: usize, node: &Node) -> Result<(Device, UnallocatedAction)> {
        let SessionEnvironment { runtime, devices, host, .. } = self.environment;
        let op = self.pass_replay.node_op(at).map_or_else(|| node_op(node, runtime), |op| Ok(op.clone()))?;
        let mut refused = None;
        // Text exists only on the host.
        let reads_text = node.inputs.iter().flatten().any(|input| is_text(self.graph.value(*input)));
        let is_of_host = reads_text || self.host_affinities.contains_key(&at);
        let devices = if is_of_host { std::slice::from_ref(host) } else { devices };
        for device in devices {
            let stream = device.default_stream()?;
            let constant = |index: usize, operand: Option<&OperandInfo>| {
                let weight = node.input(index).and_then(|input| self.graph.value(input).weight.as_ref());
                let missing = || oarlock_core::Error::fatal("expected a constant, found none");
                let weight = weight.ok_or_else(missing)?;
                self.copied_bytes.update(|bytes| bytes + self.environment.copy_bytes(weight, device));
                self.environment.constant_input(weight, device, operand)
            };
            let outcome = with_expected_inputs(&self.graph, node, |expected| {
                op.prepare_call(runtime, device, stream, expected, node.outputs.len(), constant)
            });
            let Some(outcome) = outcome else {
                let device = self.dispatch_device(node);
                return Ok((device.clone(), self.dispatched_action(node, op, &device)?));
            };
            match outcome? {
                PrepareOutcome::Kernel(prepared) if !prepared.requires_tensors() => {
                    return Ok((device.clone(), UnallocatedAction::Call(prepared)));
                }
                PrepareOutcome::Kernel(_) | PrepareOutcome::NeedsValues => {
                    return Ok((device.clone(), self.dispatched_action(node, op, device)?));
                }
                PrepareOutcome::NoKernel(explanation) => {
                    refused.get_or_insert(explanation);
                }
            }
        }
        match refused {
            Some(explanation) => Err(explanation.to_error()),
            None => Err(oarlock_core::Error::unavailable("expected a device, found none")),
        }
    }

    /// An action that dispatches the call during the run. If the device turns out to have no kernel, the session's fallback
    /// policy applies, not that of ops called on their own.
    fn dispatched_action(&self, node: &Node, op: Arc<Op>, device: &Device) -> Result<UnallocatedAction> {
        let SessionEnvironment { runtime, host, fallback, .. } = self.environment;
        if device.is_same_device(host) {
            return Ok(UnallocatedAction::Dispatched(op));
        }
        let op = Op::new(runtime, &node.domain, &node.op, node.opset, node.attributes.clone())?;
        Ok(UnallocatedAction::Dispatched(Arc::new(op.with_fallback(fallback.runtime_fallback()))))
    }

    /// The first device with any kernel for the op, for nodes whose shapes are unknown.
    fn dispatch_device(&self, node: &Node) -> Device {
        let SessionEnvironment { runtime, devices, host, .. } = self.environment;
        let has_kernel = |device: &&Device| {
            let registry = runtime.registry();
            let mut entries = registry.entries_for_op(&node.domain, &node.op);
            entries.any(|entry| entry.info().device_type == device.device_type())
        };
        devices.iter().find(has_kernel).unwrap_or(host).clone()
    }

    /// Returns the value on `device`, adding a copy step if it lies on another one.
    fn copy_to_device(&mut self, node: usize, plan_value: usize, device: &Device) -> usize {
        if self.plan_values[plan_value].device.as_ref().is_none_or(|own| own.is_same_device(device)) {
            return plan_value;
        }
        let key = (plan_value, device.name().to_owned());
        if let Some(copy) = self.copies.get(&key) {
            return *copy;
        }
        let copy = self.plan_values.len();
        self.plan_values
            .push(PlanValue { device: Some(device.clone()), ..self.plan_values[plan_value].clone() });
        self.copies.insert(key, copy);
        self.steps.push(UnallocatedStep {
            node,
            device: device.clone(),
            action: UnallocatedAction::Copy,
            inputs: smallvec![Some(plan_value)],
            outputs: smallvec![Some(copy)],
        });
        copy
    }
}

fn is_text(value: &crate::graph::GraphValue) -> bool {
    value.dtype() == Some(oarlock_core::Dtype::String)
}

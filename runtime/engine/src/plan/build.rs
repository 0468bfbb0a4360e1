//! From a graph with known shapes to a plan.
//!
//! First every node gets a device and a way to run, which makes a list of drafts; then it is decided which values are
//! tensors of their own and where the others lie.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use oarlock_core::{Device, Dims, Op, PrepareOutcome, PreparedCall, Result, shape};
use smallvec::{SmallVec, smallvec};

use super::layout::PlanLayout;
use super::placement::{self, HostAffinity};
use super::{ExecutionPlan, PlanStep, RunContextPool, StepAction};
use crate::environment::SessionEnvironment;
use crate::graph::{Graph, Node, ValueId};
use crate::passes::{ReplayPlan, is_same_op, is_same_value, node_op, with_expected_inputs};
use crate::run::ControlFlowNode;

/// What is known of a value while a plan is made. Copies to other devices are values too.
#[derive(Clone)]
pub(super) struct PlanValue {
    /// The value of the graph it is or is a copy of.
    pub(super) value: ValueId,
    /// Where it is made; `None` for constants, which are on every device.
    pub(super) device: Option<Device>,
    /// How many bytes it has, where that is known and not what the value has.
    size: Option<u64>,
}

impl PlanValue {
    /// How many bytes it has, where that is known.
    pub(super) fn size_in_bytes(&self, graph: &Graph) -> Option<u64> {
        self.size.or_else(|| graph.value(self.value).size_in_bytes())
    }
}

/// A step before it is known where its operands lie. Operands are numbers of pieces.
pub(super) struct DraftStep {
    pub(super) node: usize,
    pub(super) device: Device,
    pub(super) way: DraftAction,
    pub(super) inputs: PlanValueIndices,
    pub(super) outputs: PlanValueIndices,
}

/// Numbers of pieces; one that is left out is `None`.
type PlanValueIndices = SmallVec<[Option<usize>; 4]>;

/// How a node runs.
pub(super) enum DraftAction {
    Call(PreparedCall),
    Eager(Arc<Op>),
    View(Dims),
    Copy,
    Control(ControlFlowNode),
}

/// A plan of the same nodes, and what else is known of their values now. A node of which nothing else is known runs as it
/// does there.
pub(crate) struct ExamplePlan<'a> {
    pub(crate) plan: &'a ExecutionPlan,
    pub(crate) differs: &'a [bool],
}

/// How many kernels are looked through for one that is ready already.
const MOST_SHARED_KERNELS: usize = 16;

/// Constants of which it is worth to give the memory back.
const RELEASED_CONSTANT_BYTES: usize = 1 << 18;

/// Makes a plan of a graph that passes have done with, as a recipe says, in the manner of another plan where there is one.
pub(crate) fn build_plan(
    graph: Graph,
    recipe: &ReplayPlan,
    example: Option<ExamplePlan<'_>>,
    environment: &SessionEnvironment,
) -> Result<ExecutionPlan> {
    PlanBuilder::new(graph, recipe, example, environment).build()
}

struct PlanBuilder<'a> {
    graph: Graph,
    recipe: &'a ReplayPlan,
    example: Option<ExamplePlan<'a>>,
    /// The steps of the example by their nodes.
    steps: Vec<Option<&'a PlanStep>>,
    environment: &'a SessionEnvironment,
    pieces: Vec<PlanValue>,
    drafts: Vec<DraftStep>,
    /// The nodes that stay on the host although a device before it could run them.
    stays: BTreeMap<usize, HostAffinity>,
    /// Drafts whose kernels others may run too, as they know no constants.
    shared: Vec<usize>,
    /// How many bytes constants take that no other plan has.
    copied: Cell<usize>,
    /// Copies on other devices that were made before, by piece and name of the device.
    copies: HashMap<(usize, String), usize>,
}

impl<'a> PlanBuilder<'a> {
    fn new(
        graph: Graph,
        recipe: &'a ReplayPlan,
        example: Option<ExamplePlan<'a>>,
        environment: &'a SessionEnvironment,
    ) -> Self {
        let mut pieces: Vec<PlanValue> =
            graph.values().map(|(value, _)| PlanValue { value, device: None, size: None }).collect();
        for input in &graph.inputs {
            let device =
                if is_text(graph.value(*input)) { &environment.host } else { environment.main_device() };
            pieces[input.index()].device = Some(device.clone());
        }
        let stays = placement::find_host_affinities(&graph, environment);
        let mut steps = vec![None; graph.nodes.len()];
        let known = example.iter().flat_map(|example| &example.plan.steps);
        known.filter(|step| !step.is_copy()).for_each(|step| steps[step.node] = Some(step));
        let drafts = Vec::with_capacity(graph.nodes.len());
        let (shared, copies) = (Vec::new(), HashMap::new());
        Self {
            graph,
            recipe,
            example,
            steps,
            environment,
            pieces,
            drafts,
            stays,
            shared,
            copied: Cell::default(),
            copies,
        }
    }

    fn build(mut self) -> Result<ExecutionPlan> {
        let nodes = std::mem::take(&mut self.graph.nodes);
        for (at, node) in nodes.iter().enumerate() {
            self.environment.progress.report_progress(at, nodes.len());
            self.draft_node(at, &nodes).map_err(|error| error.with_op(&node.op).with_node(&node.name))?;
        }
        self.graph.nodes = nodes;
        let effects = self.recipe.effects().to_vec();
        let Self { graph, environment, pieces, drafts, stays, copied, .. } = self;
        let (steps, arenas, slots, inputs, outputs) =
            PlanLayout::new(&graph, environment, &pieces, &drafts).finish(drafts)?;
        Ok(ExecutionPlan {
            graph,
            effects,
            stays,
            steps,
            arenas,
            slots,
            inputs,
            outputs,
            copied: copied.get(),
            contexts: RunContextPool::default(),
        })
    }

    /// What the engine does for a node, which is the same for all shapes.
    fn control_flow(&self, at: usize, node: &Node) -> Result<Option<ControlFlowNode>> {
        match self.steps[at].map(|step| &step.work) {
            Some(StepAction::Control(control)) => Ok(Some(control.clone())),
            Some(_) => Ok(None),
            None => ControlFlowNode::from_node(node, self.environment),
        }
    }

    /// How a node ran for other shapes, where nothing else is known of what it reads and makes.
    fn action_of_example(&self, at: usize, node: &Node) -> Option<(Device, DraftAction)> {
        let (example, step) = (self.example.as_ref()?, self.steps[at]?);
        let mut touched = node.read_values().chain(node.written_values());
        let stays = self.stays.contains_key(&at) == example.plan.stays.contains_key(&at);
        if !stays || touched.any(|value| example.differs[value.index()]) {
            return None;
        }
        let way = match &step.work {
            StepAction::Call(call) => DraftAction::Call(call.ready.clone()),
            StepAction::Eager(eager) => DraftAction::Eager(eager.op.clone()),
            StepAction::View { .. } | StepAction::Copy { .. } | StepAction::Control(_) => return None,
        };
        Some((step.device.clone(), way))
    }

    /// How another node runs that does the same as a node on other operands.
    fn action_of_same_node(&self, at: usize, nodes: &[Node]) -> Option<(Device, DraftAction)> {
        let node = &nodes[at];
        let is_same = |(own, other): (&Option<ValueId>, &Option<ValueId>)| match (own, other) {
            (Some(own), Some(other)) => {
                is_same_value(self.graph.shared_value(*own), self.graph.shared_value(*other))
            }
            (own, other) => own == other,
        };
        let does_the_same = |draft: &&DraftStep| {
            let other = &nodes[draft.node];
            is_same_op(node, other)
                && node.inputs.iter().zip(&other.inputs).all(is_same)
                && self.stays.contains_key(&at) == self.stays.contains_key(&draft.node)
        };
        let draft = self.shared.iter().map(|draft| &self.drafts[*draft]).find(does_the_same)?;
        match &draft.way {
            DraftAction::Call(ready) => Some((draft.device.clone(), DraftAction::Call(ready.clone()))),
            _ => None,
        }
    }

    /// Whether others may run the kernel of a node, and there are not so many already that looking through them takes longer
    /// than readying one.
    fn can_share_kernel(&self, node: &Node) -> bool {
        let is_constant = |input: &ValueId| self.graph.value(*input).weight.is_some();
        self.shared.len() < MOST_SHARED_KERNELS && !node.inputs.iter().flatten().any(is_constant)
    }

    /// Decides how a node runs.
    fn draft_node(&mut self, at: usize, nodes: &[Node]) -> Result<()> {
        let node = &nodes[at];
        let inputs: PlanValueIndices = node.inputs.iter().map(|input| input.map(ValueId::index)).collect();
        let mut is_new = false;
        let (device, way, inputs) = if let Some(control) = self.control_flow(at, node)? {
            // What control reads beside its inputs follows them.
            let captured = node.subgraphs.iter().flat_map(|subgraph| &subgraph.captures);
            let inputs = inputs.into_iter().chain(captured.map(|value| Some(value.index()))).collect();
            (self.environment.main_device().clone(), DraftAction::Control(control), inputs)
        } else if let Some((device, dims)) = self.view_of_input(node) {
            (device, DraftAction::View(dims), inputs[..1].into())
        } else {
            let (device, way) =
                match self.action_of_example(at, node).or_else(|| self.action_of_same_node(at, nodes)) {
                    Some(known) => known,
                    None => {
                        let (device, way) = self.prepare_kernel(at, node)?;
                        is_new = self.can_share_kernel(node);
                        (device, way)
                    }
                };
            let inputs = inputs
                .into_iter()
                .map(|input| input.map(|input| self.copy_to_device(at, input, &device)))
                .collect();
            (device, way, inputs)
        };
        let mut outputs: PlanValueIndices =
            node.outputs.iter().map(|output| output.map(ValueId::index)).collect();
        if let DraftAction::Call(ready) = &way {
            self.add_unused_outputs(node, ready, &mut outputs);
        }
        for output in outputs.iter().flatten() {
            self.pieces[*output].device = Some(device.clone());
        }
        if is_new && matches!(way, DraftAction::Call(_)) {
            self.shared.push(self.drafts.len());
        }
        self.drafts.push(DraftStep { node: at, device, way, inputs, outputs });
        Ok(())
    }

    /// Gives outputs that nobody wants a piece too: the kernel writes them all the same.
    fn add_unused_outputs(&mut self, node: &Node, ready: &PreparedCall, outputs: &mut [Option<usize>]) {
        let Some(value) = node.written_values().next() else { return };
        for (output, known) in outputs.iter_mut().zip(ready.output_types()) {
            if output.is_none() {
                let size = known.and_then(|(dtype, dims)| shape::size_in_bytes(dtype, dims).ok());
                *output = Some(self.pieces.len());
                self.pieces.push(PlanValue { value, device: None, size });
            }
        }
    }

    /// The device and the shape of a node that sees its input in another shape.
    fn view_of_input(&self, node: &Node) -> Option<(Device, Dims)> {
        let input = node.input(0)?;
        let is_view = node.is_view();
        let (from, to) = (self.graph.value(input), self.graph.value(node.output(0)?));
        let is_same = from.dtype()? == to.dtype()? && from.size_in_bytes()? == to.size_in_bytes()?;
        if !is_view || !is_same || from.dtype()? == oarlock_core::Dtype::String {
            return None;
        }
        let device = self.pieces[input.index()].device.as_ref().unwrap_or(self.environment.main_device());
        Some((device.clone(), to.dims()?))
    }

    /// The device and the kernel of a node: of the first device that has one, unless it stays on the host.
    fn prepare_kernel(&self, at: usize, node: &Node) -> Result<(Device, DraftAction)> {
        let SessionEnvironment { runtime, devices, host, .. } = self.environment;
        let op = self.recipe.node_op(at).map_or_else(|| node_op(node, runtime), |op| Ok(op.clone()))?;
        let mut refused = None;
        // Text is nowhere but on the host.
        let reads_text = node.inputs.iter().flatten().any(|input| is_text(self.graph.value(*input)));
        let is_of_host = reads_text || self.stays.contains_key(&at);
        let devices = if is_of_host { std::slice::from_ref(host) } else { devices };
        for device in devices {
            let stream = device.default_stream()?;
            let constant = |index: usize, takes_any_address: bool| {
                let weight = node.input(index).and_then(|input| self.graph.value(input).weight.as_ref());
                let missing = || oarlock_core::Error::fatal("expected a constant, found none");
                let weight = weight.ok_or_else(missing)?;
                self.copied.update(|bytes| bytes + self.environment.copy_bytes(weight, device));
                self.environment.constant_on_device(weight, device, takes_any_address)
            };
            let readied = with_expected_inputs(&self.graph, node, |expected| {
                op.prepare_call(runtime, device, stream, expected, node.outputs.len(), constant)
            });
            let Some(readied) = readied else {
                let device = self.eager_device(node);
                return Ok((device.clone(), self.eager_action(node, op, &device)?));
            };
            // What kernels packed, or what was copied to a device, need not stay in memory twice.
            self.large_weights(node).for_each(|bytes| self.environment.release_constant(bytes));
            match readied? {
                PrepareOutcome::Kernel(ready) if !ready.requires_tensors() => {
                    return Ok((device.clone(), DraftAction::Call(ready)));
                }
                PrepareOutcome::Kernel(_) | PrepareOutcome::NeedsValues => {
                    return Ok((device.clone(), self.eager_action(node, op, device)?));
                }
                PrepareOutcome::Nothing(explanation) => {
                    refused.get_or_insert(explanation);
                }
            }
        }
        match refused {
            Some(explanation) => Err(explanation.to_error()),
            None => Err(oarlock_core::Error::unavailable("expected a device, found none")),
        }
    }

    /// A call that is dispatched in the run. Whether the CPU makes it where the device has no kernel then is decided as for
    /// other nodes, and not as for ops that are called by themselves.
    fn eager_action(&self, node: &Node, op: Arc<Op>, device: &Device) -> Result<DraftAction> {
        let SessionEnvironment { runtime, host, fallback, .. } = self.environment;
        if device.is_same_device(host) {
            return Ok(DraftAction::Eager(op));
        }
        let op = Op::new(runtime, &node.domain, &node.op, node.opset, node.attributes.clone())?;
        Ok(DraftAction::Eager(Arc::new(op.with_fallback(fallback.runtime_fallback()))))
    }

    /// The bytes of the large constants that a node reads.
    fn large_weights(&self, node: &Node) -> impl Iterator<Item = &[u8]> {
        let numbers = |input: &ValueId| self.graph.value(*input).weight.as_ref()?.as_numbers();
        let bytes = node.inputs.iter().flatten().filter_map(numbers).map(oarlock_core::Constant::bytes);
        bytes.filter(|bytes| bytes.len() >= RELEASED_CONSTANT_BYTES)
    }

    /// The first device with any kernel for the op of a node whose shapes are not known.
    fn eager_device(&self, node: &Node) -> Device {
        let SessionEnvironment { runtime, devices, host, .. } = self.environment;
        let has_kernel = |device: &&Device| {
            let registry = runtime.registry();
            let mut rows = registry.entries_for_op(&node.domain, &node.op);
            rows.any(|row| row.info().device_type == device.device_type())
        };
        devices.iter().find(has_kernel).unwrap_or(host).clone()
    }

    /// A value on a device, with a step that copies it there where it is on another one.
    fn copy_to_device(&mut self, node: usize, piece: usize, device: &Device) -> usize {
        if self.pieces[piece].device.as_ref().is_none_or(|own| own.is_same_device(device)) {
            return piece;
        }
        let key = (piece, device.name().to_owned());
        if let Some(copy) = self.copies.get(&key) {
            return *copy;
        }
        let copy = self.pieces.len();
        self.pieces.push(PlanValue { device: Some(device.clone()), ..self.pieces[piece].clone() });
        self.copies.insert(key, copy);
        self.drafts.push(DraftStep {
            node,
            device: device.clone(),
            way: DraftAction::Copy,
            inputs: smallvec![Some(piece)],
            outputs: smallvec![Some(copy)],
        });
        copy
    }
}

fn is_text(value: &crate::graph::GraphValue) -> bool {
    value.dtype() == Some(oarlock_core::Dtype::String)
}

//! From a graph with known shapes to a plan.
//!
//! First every node gets a device and a way to run, which makes a list of drafts; then it is decided which values are
//! tensors of their own and where the others lie.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use oarlock_core::{Device, Dims, Op, Readied, Ready, Result, shape};
use smallvec::{SmallVec, smallvec};

use super::layout::Layout;
use super::placement::{self, Stay};
use super::{Contexts, Plan, Step, Work};
use crate::environment::Environment;
use crate::graph::{Graph, Node, ValueId};
use crate::passes::{Recipe, is_same_op, is_same_value, op_of, with_expected};
use crate::run::Control;

/// What is known of a value while a plan is made. Copies to other devices are values too.
#[derive(Clone)]
pub(super) struct Piece {
    /// The value of the graph it is or is a copy of.
    pub(super) value: ValueId,
    /// Where it is made; `None` for constants, which are on every device.
    pub(super) device: Option<Device>,
    /// How many bytes it has, where that is known and not what the value has.
    size: Option<u64>,
}

impl Piece {
    /// How many bytes it has, where that is known.
    pub(super) fn size_in_bytes(&self, graph: &Graph) -> Option<u64> {
        self.size.or_else(|| graph.value(self.value).size_in_bytes())
    }
}

/// A step before it is known where its operands lie. Operands are numbers of pieces.
pub(super) struct Draft {
    pub(super) node: usize,
    pub(super) device: Device,
    pub(super) way: DraftWay,
    pub(super) inputs: Pieces,
    pub(super) outputs: Pieces,
}

/// Numbers of pieces; one that is left out is `None`.
type Pieces = SmallVec<[Option<usize>; 4]>;

/// How a node runs.
pub(super) enum DraftWay {
    Call(Ready),
    Eager(Arc<Op>),
    View(Dims),
    Copy,
    Control(Control),
}

/// A plan of the same nodes, and what else is known of their values now. A node of which nothing else is known runs as it
/// does there.
pub(crate) struct Example<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) differs: &'a [bool],
}

/// How many kernels are looked through for one that is ready already.
const MOST_SHARED: usize = 16;

/// Constants of which it is worth to give the memory back.
const RELEASED_BYTES: usize = 1 << 18;

/// Makes a plan of a graph that passes have done with, as a recipe says, in the manner of another plan where there is one.
pub(crate) fn build(
    graph: Graph,
    recipe: &Recipe,
    example: Option<Example<'_>>,
    environment: &Environment,
) -> Result<Plan> {
    Builder::new(graph, recipe, example, environment).build()
}

struct Builder<'a> {
    graph: Graph,
    recipe: &'a Recipe,
    example: Option<Example<'a>>,
    /// The steps of the example by their nodes.
    steps: Vec<Option<&'a Step>>,
    environment: &'a Environment,
    pieces: Vec<Piece>,
    drafts: Vec<Draft>,
    /// The nodes that stay on the host although a device before it could run them.
    stays: BTreeMap<usize, Stay>,
    /// Drafts whose kernels others may run too, as they know no constants.
    shared: Vec<usize>,
    /// How many bytes constants take that no other plan has.
    copied: Cell<usize>,
    /// Copies on other devices that were made before, by piece and name of the device.
    copies: HashMap<(usize, String), usize>,
}

impl<'a> Builder<'a> {
    fn new(
        graph: Graph,
        recipe: &'a Recipe,
        example: Option<Example<'a>>,
        environment: &'a Environment,
    ) -> Self {
        let mut pieces: Vec<Piece> =
            graph.values().map(|(value, _)| Piece { value, device: None, size: None }).collect();
        for input in &graph.inputs {
            let device =
                if is_text(graph.value(*input)) { &environment.host } else { environment.main_device() };
            pieces[input.index()].device = Some(device.clone());
        }
        let stays = placement::stays(&graph, environment);
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

    fn build(mut self) -> Result<Plan> {
        let nodes = std::mem::take(&mut self.graph.nodes);
        for (at, node) in nodes.iter().enumerate() {
            self.environment.progress.tell(at, nodes.len());
            self.draft(at, &nodes).map_err(|error| error.of_op(&node.op).of_node(&node.name))?;
        }
        self.graph.nodes = nodes;
        let effects = self.recipe.effects().to_vec();
        let Self { graph, environment, pieces, drafts, stays, copied, .. } = self;
        let (steps, arenas, slots, inputs, outputs) =
            Layout::new(&graph, environment, &pieces, &drafts).finish(drafts)?;
        Ok(Plan {
            graph,
            effects,
            stays,
            steps,
            arenas,
            slots,
            inputs,
            outputs,
            copied: copied.get(),
            contexts: Contexts::default(),
        })
    }

    /// What the engine does for a node, which is the same for all shapes.
    fn control(&self, at: usize, node: &Node) -> Result<Option<Control>> {
        match self.steps[at].map(|step| &step.work) {
            Some(Work::Control(control)) => Ok(Some(control.clone())),
            Some(_) => Ok(None),
            None => Control::of(node, self.environment),
        }
    }

    /// How a node ran for other shapes, where nothing else is known of what it reads and makes.
    fn as_before(&self, at: usize, node: &Node) -> Option<(Device, DraftWay)> {
        let (example, step) = (self.example.as_ref()?, self.steps[at]?);
        let mut touched = node.uses().chain(node.makes());
        let stays = self.stays.contains_key(&at) == example.plan.stays.contains_key(&at);
        if !stays || touched.any(|value| example.differs[value.index()]) {
            return None;
        }
        let way = match &step.work {
            Work::Call(call) => DraftWay::Call(call.ready.clone()),
            Work::Eager(eager) => DraftWay::Eager(eager.op.clone()),
            Work::View { .. } | Work::Copy { .. } | Work::Control(_) => return None,
        };
        Some((step.device.clone(), way))
    }

    /// How another node runs that does the same as a node on other operands.
    fn as_another(&self, at: usize, nodes: &[Node]) -> Option<(Device, DraftWay)> {
        let node = &nodes[at];
        let is_same = |(own, other): (&Option<ValueId>, &Option<ValueId>)| match (own, other) {
            (Some(own), Some(other)) => is_same_value(self.graph.shared(*own), self.graph.shared(*other)),
            (own, other) => own == other,
        };
        let does_the_same = |draft: &&Draft| {
            let other = &nodes[draft.node];
            is_same_op(node, other)
                && node.inputs.iter().zip(&other.inputs).all(is_same)
                && self.stays.contains_key(&at) == self.stays.contains_key(&draft.node)
        };
        let draft = self.shared.iter().map(|draft| &self.drafts[*draft]).find(does_the_same)?;
        match &draft.way {
            DraftWay::Call(ready) => Some((draft.device.clone(), DraftWay::Call(ready.clone()))),
            _ => None,
        }
    }

    /// Whether others may run the kernel of a node, and there are not so many already that looking through them takes longer
    /// than readying one.
    fn may_share(&self, node: &Node) -> bool {
        let is_constant = |input: &ValueId| self.graph.value(*input).weight.is_some();
        self.shared.len() < MOST_SHARED && !node.inputs.iter().flatten().any(is_constant)
    }

    /// Decides how a node runs.
    fn draft(&mut self, at: usize, nodes: &[Node]) -> Result<()> {
        let node = &nodes[at];
        let inputs: Pieces = node.inputs.iter().map(|input| input.map(ValueId::index)).collect();
        let mut is_new = false;
        let (device, way, inputs) = if let Some(control) = self.control(at, node)? {
            // What control reads beside its inputs follows them.
            let captured = node.subgraphs.iter().flat_map(|subgraph| &subgraph.captures);
            let inputs = inputs.into_iter().chain(captured.map(|value| Some(value.index()))).collect();
            (self.environment.main_device().clone(), DraftWay::Control(control), inputs)
        } else if let Some((device, dims)) = self.view(node) {
            (device, DraftWay::View(dims), inputs[..1].into())
        } else {
            let (device, way) = match self.as_before(at, node).or_else(|| self.as_another(at, nodes)) {
                Some(known) => known,
                None => {
                    let (device, way) = self.kernel(at, node)?;
                    is_new = self.may_share(node);
                    (device, way)
                }
            };
            let inputs =
                inputs.into_iter().map(|input| input.map(|input| self.on(at, input, &device))).collect();
            (device, way, inputs)
        };
        let mut outputs: Pieces = node.outputs.iter().map(|output| output.map(ValueId::index)).collect();
        if let DraftWay::Call(ready) = &way {
            self.take_unwanted(node, ready, &mut outputs);
        }
        for output in outputs.iter().flatten() {
            self.pieces[*output].device = Some(device.clone());
        }
        if is_new && matches!(way, DraftWay::Call(_)) {
            self.shared.push(self.drafts.len());
        }
        self.drafts.push(Draft { node: at, device, way, inputs, outputs });
        Ok(())
    }

    /// Gives outputs that nobody wants a piece too: the kernel writes them all the same.
    fn take_unwanted(&mut self, node: &Node, ready: &Ready, outputs: &mut [Option<usize>]) {
        let Some(value) = node.makes().next() else { return };
        for (output, known) in outputs.iter_mut().zip(ready.outputs()) {
            if output.is_none() {
                let size = known.and_then(|(dtype, dims)| shape::size_in_bytes(dtype, dims).ok());
                *output = Some(self.pieces.len());
                self.pieces.push(Piece { value, device: None, size });
            }
        }
    }

    /// The device and the shape of a node that sees its input in another shape.
    fn view(&self, node: &Node) -> Option<(Device, Dims)> {
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
    fn kernel(&self, at: usize, node: &Node) -> Result<(Device, DraftWay)> {
        let Environment { runtime, devices, host, .. } = self.environment;
        let op = self.recipe.op(at).map_or_else(|| op_of(node, runtime), |op| Ok(op.clone()))?;
        let mut refused = None;
        // Text is nowhere but on the host.
        let reads_text = node.inputs.iter().flatten().any(|input| is_text(self.graph.value(*input)));
        let is_of_host = reads_text || self.stays.contains_key(&at);
        let devices = if is_of_host { std::slice::from_ref(host) } else { devices };
        for device in devices {
            let stream = device.stream()?;
            let constant = |index: usize, takes_any_address: bool| {
                let weight = node.input(index).and_then(|input| self.graph.value(input).weight.as_ref());
                let missing = || oarlock_core::Error::fatal("expected a constant, found none");
                let weight = weight.ok_or_else(missing)?;
                self.copied.update(|bytes| bytes + self.environment.bytes_of_copy(weight, device));
                self.environment.constant(weight, device, takes_any_address)
            };
            let readied = with_expected(&self.graph, node, |expected| {
                op.ready(runtime, device, stream, expected, node.outputs.len(), constant)
            });
            let Some(readied) = readied else {
                let device = self.eager_device(node);
                return Ok((device.clone(), self.eager(node, op, &device)?));
            };
            // What kernels packed, or what was copied to a device, need not stay in memory twice.
            self.weights(node).for_each(|bytes| self.environment.release(bytes));
            match readied? {
                Readied::Kernel(ready) if !ready.takes_tensors_only() => {
                    return Ok((device.clone(), DraftWay::Call(ready)));
                }
                Readied::Kernel(_) | Readied::NeedsValues => {
                    return Ok((device.clone(), self.eager(node, op, device)?));
                }
                Readied::Nothing(explanation) => {
                    refused.get_or_insert(explanation);
                }
            }
        }
        match refused {
            Some(explanation) => Err(explanation.error()),
            None => Err(oarlock_core::Error::unavailable("expected a device, found none")),
        }
    }

    /// A call that is dispatched in the run. Whether the CPU makes it where the device has no kernel then is decided as for
    /// other nodes, and not as for ops that are called by themselves.
    fn eager(&self, node: &Node, op: Arc<Op>, device: &Device) -> Result<DraftWay> {
        let Environment { runtime, host, fallback, .. } = self.environment;
        if device.is(host) {
            return Ok(DraftWay::Eager(op));
        }
        let op = Op::new(runtime, &node.domain, &node.op, node.opset, node.attributes.clone())?;
        Ok(DraftWay::Eager(Arc::new(op.with_fallback(fallback.in_the_run()))))
    }

    /// The bytes of the large constants that a node reads.
    fn weights(&self, node: &Node) -> impl Iterator<Item = &[u8]> {
        let numbers = |input: &ValueId| self.graph.value(*input).weight.as_ref()?.numbers();
        let bytes = node.inputs.iter().flatten().filter_map(numbers).map(oarlock_core::Constant::bytes);
        bytes.filter(|bytes| bytes.len() >= RELEASED_BYTES)
    }

    /// The first device with any kernel for the op of a node whose shapes are not known.
    fn eager_device(&self, node: &Node) -> Device {
        let Environment { runtime, devices, host, .. } = self.environment;
        let has_kernel = |device: &&Device| {
            let registry = runtime.registry();
            let mut rows = registry.rows_of(&node.domain, &node.op);
            rows.any(|row| row.info().device_type == device.device_type())
        };
        devices.iter().find(has_kernel).unwrap_or(host).clone()
    }

    /// A value on a device, with a step that copies it there where it is on another one.
    fn on(&mut self, node: usize, piece: usize, device: &Device) -> usize {
        if self.pieces[piece].device.as_ref().is_none_or(|own| own.is(device)) {
            return piece;
        }
        let key = (piece, device.name().to_owned());
        if let Some(copy) = self.copies.get(&key) {
            return *copy;
        }
        let copy = self.pieces.len();
        self.pieces.push(Piece { device: Some(device.clone()), ..self.pieces[piece].clone() });
        self.copies.insert(key, copy);
        self.drafts.push(Draft {
            node,
            device: device.clone(),
            way: DraftWay::Copy,
            inputs: smallvec![Some(piece)],
            outputs: smallvec![Some(copy)],
        });
        copy
    }
}

fn is_text(value: &crate::graph::Value) -> bool {
    value.dtype() == Some(oarlock_core::Dtype::String)
}

//! Keeps small groups of nodes on the host where a device would not pay off.
//!
//! Each node runs on the first device with a kernel for it, as the user who chose that device wants, with one exception. If the
//! device lacks some ops, a few nodes may form an island amid host work, with all their inputs coming from the host. If
//! copying those inputs and the outputs costs more than the device gains, the island stays on the host.
//!
//! The figures below are rough on purpose. They are exact for no machine, but on every machine they tell a few additions from
//! a convolution.

use std::collections::{BTreeMap, BTreeSet};

use super::report::is_engine_op;
use super::report::{DeviceSupport, device_support, node_cost};
use crate::graph::{Graph, Node, ValueId};
use crate::session_environment::SessionEnvironment;

/// Latency of a copy between devices in seconds, and its bandwidth in bytes per second.
const COPY_COST: (f64, f64) = (20e-6, 6e9);
/// Latency of a kernel launch on a device, in seconds.
const LAUNCH_SECONDS: f64 = 5e-6;
/// Host throughput: FLOP per second, and memory bandwidth in bytes per second.
const HOST_RATES: (f64, f64) = (50e9, 10e9);
/// Speedup of a device over the host, once a kernel runs.
const DEVICE_GAIN: f64 = 10.0;

/// Placement of a node on its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodePlacement {
    Host,
    /// On the device with this index.
    Device(usize),
    /// With its input, as for a view.
    WithInput,
    /// Placed by something other than kernels, such as control flow.
    Fixed,
}

/// Why an island stays on the host, for `explain`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HostAffinity {
    /// Nodes in the island.
    nodes: usize,
    /// Values that would be copied, and their bytes.
    copies: usize,
    bytes: u64,
}

impl std::fmt::Display for HostAffinity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { nodes, copies, bytes } = self;
        write!(
            f,
            "amid work of the host; copying {copies} values of {bytes} bytes for it and {} nodes around it would take \
             longer",
            nodes - 1
        )
    }
}

/// Finds the nodes that stay on the host. Empty if everything runs there anyway.
pub(super) fn find_host_affinities(
    graph: &Graph,
    environment: &SessionEnvironment,
) -> BTreeMap<usize, HostAffinity> {
    let mut host_affinities = BTreeMap::new();
    if environment.devices.iter().all(|device| device.is_same_device(&environment.host)) {
        return host_affinities;
    }
    let analysis = IslandAnalysis::new(graph, environment);
    let mut places: Vec<NodePlacement> =
        graph.nodes.iter().map(|node| place_node(graph, node, environment)).collect();
    // An island that stays joins the host's part, which may enclose further islands; repeat until nothing changes.
    loop {
        let before = host_affinities.len();
        for island in find_islands(graph, &places) {
            if let Some(affinity) = analysis.weigh_island(&places, &island) {
                island.iter().for_each(|at| places[*at] = NodePlacement::Host);
                host_affinities.extend(island.iter().map(|at| (*at, affinity)));
            }
        }
        if host_affinities.len() == before {
            return host_affinities;
        }
    }
}

fn place_node(graph: &Graph, node: &Node, environment: &SessionEnvironment) -> NodePlacement {
    let SessionEnvironment { runtime, devices, host, .. } = environment;
    if is_engine_op(node) {
        return NodePlacement::Fixed;
    }
    let first = devices.iter().enumerate().find_map(|(index, device)| {
        match device_support(graph, node, runtime, device) {
            DeviceSupport::Kernels(explanation) if explanation.chosen_entry().is_some() => {
                Some(if device.is_same_device(host) {
                    NodePlacement::Host
                } else {
                    NodePlacement::Device(index)
                })
            }
            DeviceSupport::Engine => Some(NodePlacement::WithInput),
            DeviceSupport::Kernels(_) | DeviceSupport::InvalidNode(_) => None,
            DeviceSupport::DecidedAtRun(_) => Some(NodePlacement::Fixed),
        }
    });
    first.unwrap_or(NodePlacement::Fixed)
}

/// Connected groups of nodes on one device, each in topological order.
fn find_islands(graph: &Graph, places: &[NodePlacement]) -> Vec<Vec<usize>> {
    let mut makers: Vec<Option<usize>> = vec![None; graph.value_count()];
    let mut groups: Vec<usize> = (0..graph.nodes.len()).collect();
    let mut devices: Vec<Option<usize>> = Vec::with_capacity(graph.nodes.len());
    for (at, node) in graph.nodes.iter().enumerate() {
        let made_at = |value: &ValueId| makers[value.index()];
        let device = match places[at] {
            NodePlacement::Device(device) => Some(device),
            NodePlacement::WithInput => node.input(0).and_then(|input| devices[made_at(&input)?]),
            NodePlacement::Host | NodePlacement::Fixed => None,
        };
        let reads = node.inputs.iter().flatten().filter_map(made_at);
        for maker in reads.filter(|maker| device.is_some() && devices[*maker] == device) {
            let (one, other) = (group_root(&mut groups, maker), group_root(&mut groups, at));
            groups[one.max(other)] = one.min(other);
        }
        devices.push(device);
        node.written_values().for_each(|value| makers[value.index()] = Some(at));
    }
    let mut islands: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in (0..groups.len()).filter(|at| devices[*at].is_some()) {
        islands.entry(group_root(&mut groups, at)).or_default().push(at);
    }
    islands.into_values().collect()
}

/// Union-find root with path halving.
fn group_root(groups: &mut [usize], mut at: usize) -> usize {
    while groups[at] != at {
        groups[at] = groups[groups[at]];
        at = groups[at];
    }
    at
}

/// The graph with producers and readers of its values.
struct IslandAnalysis<'a> {
    graph: &'a Graph,
    environment: &'a SessionEnvironment,
    makers: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
}

impl<'a> IslandAnalysis<'a> {
    fn new(graph: &'a Graph, environment: &'a SessionEnvironment) -> Self {
        let mut readers = vec![Vec::new(); graph.value_count()];
        for (at, node) in graph.nodes.iter().enumerate() {
            let captured = node.subgraphs.iter().flat_map(|subgraph| &subgraph.captures);
            node.inputs.iter().flatten().chain(captured).for_each(|value| readers[value.index()].push(at));
        }
        Self { graph, environment, makers: graph.producers(), readers }
    }

    /// Returns the island's cost if the host should keep it. `None` if it exchanges values with anything but the host, if a
    /// size is unknown, or if the host lacks a kernel.
    fn weigh_island(&self, places: &[NodePlacement], island: &[usize]) -> Option<HostAffinity> {
        let moved = self.crossing_values(places, island).filter(|moved| !moved.is_empty())?;
        let bytes =
            moved.iter().map(|value| self.graph.value(*value).size_in_bytes()).sum::<Option<u64>>()?;
        let copying = moved.len() as f64 * COPY_COST.0 + bytes as f64 / COPY_COST.1;
        let gains = island.iter().map(|at| self.device_gain(&self.graph.nodes[*at]));
        let gain = gains.sum::<Option<f64>>()?;
        (copying > gain).then_some(HostAffinity { nodes: island.len(), copies: moved.len(), bytes })
    }

    /// Values that enter or leave the island; `None` if any of them does not go to or come from the host.
    fn crossing_values(&self, places: &[NodePlacement], island: &[usize]) -> Option<BTreeSet<ValueId>> {
        let is_inside = |at: usize| island.binary_search(&at).is_ok();
        let is_of_host = |at: usize| places[at] == NodePlacement::Host;
        let nodes = || island.iter().map(|at| &self.graph.nodes[*at]);
        let mut moved = BTreeSet::new();
        for value in nodes().flat_map(|node| node.inputs.iter().flatten().copied()) {
            let is_constant = self.graph.value(value).weight.is_some();
            match self.makers[value.index()] {
                Some(maker) if is_inside(maker) => {}
                Some(maker) if is_of_host(maker) => _ = moved.insert(value),
                _ if is_constant => {}
                _ => return None,
            }
        }
        if moved.is_empty() {
            return None;
        }
        for value in nodes().flat_map(Node::written_values) {
            let mut readers = self.readers[value.index()].iter().filter(|at| !is_inside(**at)).peekable();
            if readers.peek().is_some() || self.graph.outputs.contains(&value) {
                moved.insert(value);
            }
            if !readers.all(|at| is_of_host(*at)) {
                return None;
            }
        }
        Some(moved)
    }

    /// Seconds saved by running a node on a device; `None` if the host cannot run it or a size is unknown.
    fn device_gain(&self, node: &Node) -> Option<f64> {
        match device_support(self.graph, node, &self.environment.runtime, &self.environment.host) {
            DeviceSupport::Engine => Some(0.0),
            able if able.is_supported() => {
                let cost = node_cost(self.graph, node);
                let computing = cost.flops.unwrap_or(0) as f64 / HOST_RATES.0;
                let on_host = computing.max(cost.bytes? as f64 / HOST_RATES.1);
                Some(on_host - on_host / DEVICE_GAIN - LAUNCH_SECONDS)
            }
            _ => None,
        }
    }
}

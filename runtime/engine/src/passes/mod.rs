//! Passes: small changes to a graph, each with a name and a reason.
//!
//! They run twice. When a model is loaded, little is known of shapes, so what they find then holds for every input; it is
//! done once. When the shapes of the inputs are known they run on a copy: shapes that were computed become constants, and
//! ops are joined where the device has a kernel for what they do together. A pass that finds nothing costs little, so
//! none needs to know which of the two it is in.

mod activation;
mod attention;
mod batch_norm;
mod block_product;
mod branch;
mod channels_last;
mod common_subexpressions;
mod dead_nodes;
mod einsum;
mod epilogue;
mod factors;
mod flex_attention;
mod fold;
mod gelu;
mod graph_view;
mod identity;
mod infer;
mod layer_norm;
mod pass_trace;
mod precision;
mod product;
mod quantized;
mod transposes;

pub(crate) use fold::weight_to_tensor;
pub(crate) use graph_view::{is_same_op, is_same_value, with_expected_inputs};
pub use infer::infer_graph;
pub(crate) use infer::{node_op, value_fact};
pub use pass_trace::PassTrace;
pub(crate) use pass_trace::{ReplayPlan, ReplayedGraph};
pub(crate) use precision::{can_round, is_rounded, with_rounding};

use oarlock_core::{Device, Result, Runtime};

use crate::graph::{self, Graph};
use crate::precision::PrecisionMode;

/// One kind of change.
pub struct GraphPass {
    /// What it is called, as in `oarlock explain --passes`.
    pub name: &'static str,
    /// What it does, and why.
    pub purpose: &'static str,
    /// Changes a graph; says in how many places.
    run: fn(&mut Graph, &PassContext<'_>) -> Result<usize>,
}

/// What passes know beside the graph.
pub struct PassContext<'a> {
    /// Where ops and kernels are found.
    pub runtime: &'a Runtime,
    /// Where constants are computed.
    pub host: &'a Device,
    /// Where the graph will run.
    pub device: &'a Device,
    /// Whether only those passes run without which there may be no plan.
    pub is_plain: bool,
    /// How precise products have to be.
    pub precision: PrecisionMode,
    /// What passes are told.
    pub notes: PassTrace,
}

/// The passes without which there may be no plan: shapes may have to be computed, branches chosen, and ops that no kernel can
/// run written as others.
const REQUIRED_PASSES: [&str; 4] = [
    fold::FOLD_CONSTANTS.name,
    branch::INLINE_BRANCHES.name,
    flex_attention::LOWER_FLEX_ATTENTION.name,
    dead_nodes::ELIMINATE_DEAD_NODES.name,
];

/// What a pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassEffect {
    /// The name of the pass.
    pub pass: &'static str,
    /// In how many places it changed the graph.
    pub changes: usize,
    /// How many nodes there were before and after.
    pub nodes: (usize, usize),
}

/// Every pass, in the order in which they run.
pub const ALL_PASSES: &[GraphPass] = &[
    fold::FOLD_CONSTANTS,
    branch::INLINE_BRANCHES,
    flex_attention::LOWER_FLEX_ATTENTION,
    identity::ELIMINATE_IDENTITIES,
    common_subexpressions::ELIMINATE_COMMON_SUBEXPRESSIONS,
    einsum::LOWER_EINSUM,
    quantized::FUSE_QUANTIZATION,
    quantized::DYNAMIC,
    batch_norm::FOLD_BATCH_NORM,
    activation::FUSE_ACTIVATIONS,
    gelu::FUSE_GELU,
    layer_norm::FUSE_LAYER_NORM,
    channels_last::CHANNELS_LAST,
    transposes::MOVE_TRANSPOSES,
    attention::FUSE_ATTENTION,
    attention::FUSE_ATTENTION_PAST,
    attention::FUSE_ROW_ATTENTION,
    product::FUSE_PRODUCTS,
    block_product::FUSE_BLOCK_PRODUCTS,
    epilogue::FUSE_EPILOGUES,
    layer_norm::FUSE_SKIP_LAYER_NORM,
    dead_nodes::ELIMINATE_DEAD_NODES,
    LAST_PASS,
];

/// The pass that runs once, when no other finds anything.
const LAST_PASS: GraphPass = precision::LOWER_PRECISION;

/// How often all passes run one after the other, at most: each round may let another pass find more.
const MOST_ROUNDS: usize = 4;

/// Runs all passes until none finds anything.
pub fn run_passes(graph: &mut Graph, scene: &PassContext<'_>) -> Result<Vec<PassEffect>> {
    let mut effects = Vec::new();
    infer_graph(graph, scene)?;
    for _ in 0..MOST_ROUNDS {
        let mut changed = false;
        let is_wanted = |pass: &&GraphPass| !scene.is_plain || REQUIRED_PASSES.contains(&pass.name);
        for pass in ALL_PASSES.iter().filter(is_wanted).filter(|pass| pass.name != LAST_PASS.name) {
            changed |= apply_pass(pass, graph, scene, &mut effects)?;
        }
        if !changed {
            break;
        }
        infer_graph(graph, scene)?;
    }
    if !scene.is_plain {
        apply_pass(&LAST_PASS, graph, scene, &mut effects)?;
    }
    Ok(effects)
}

/// Runs a pass; says whether it found anything.
fn apply_pass(
    pass: &GraphPass,
    graph: &mut Graph,
    scene: &PassContext<'_>,
    effects: &mut Vec<PassEffect>,
) -> Result<bool> {
    let before = graph.nodes.len();
    let changes = (pass.run)(graph, scene)?;
    if changes > 0 {
        debug_assert!(
            graph::check_graph(graph).is_ok(),
            "{}: {:?}\n{graph}",
            pass.name,
            graph::check_graph(graph)
        );
        effects.push(PassEffect { pass: pass.name, changes, nodes: (before, graph.nodes.len()) });
    }
    Ok(changes > 0)
}

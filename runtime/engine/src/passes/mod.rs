//! Passes: rewrites of a graph, each with a name and a purpose.
//!
//! They run twice. When a model is loaded, few shapes are known, so every rewrite is valid for all inputs and happens only
//! once. When input shapes are known, the passes run again on a copy: computed shapes become constants, and ops are fused where
//! the device has a kernel for the fused op. A pass that finds nothing is cheap, so none needs to know which of the two runs it
//! is in. Decisions of the second run are recorded in a [`PassRecording`] and replayed for further shapes.

mod activation;
mod affine_folding;
mod attention;
mod batch_norm;
mod block_product;
mod branch;
mod channel_affine;
mod channels_last;
mod common_subexpressions;
mod constant_evaluation;
mod conv_kernels;
mod dead_nodes;
mod einsum;
mod elementwise;
mod epilogue;
mod factors;
mod flex_attention;
mod fold;
mod gelu;
mod graph_view;
mod identity;
mod infer;
mod layer_norm;
mod node_support;
mod pass_recording;
mod pass_replay;
mod precision;
mod product;
mod quantized;
mod rms_norm;
mod squeezes;
mod transposes;

pub(crate) use constant_evaluation::weight_to_tensor;
pub use infer::infer_graph;
pub(crate) use infer::{node_op, value_fact};
pub(crate) use node_support::{is_same_op, is_same_value, with_expected_inputs};
pub use pass_recording::PassRecording;
pub(crate) use pass_replay::{PassReplay, ReplayedGraph};
pub(crate) use precision::{can_round, is_rounded, with_rounding};

use oarlock_core::{Device, Result, Runtime};

use crate::graph::{self, Graph};
use crate::precision::PrecisionMode;

/// One kind of rewrite.
pub struct GraphPass {
    /// Name, as in `oarlock explain --passes`.
    pub name: &'static str,
    /// One sentence about the rewrite and its benefit.
    pub purpose: &'static str,
    /// Rewrites a graph and returns the number of places.
    run: fn(&mut Graph, &PassContext<'_>) -> Result<usize>,
}

/// Context of a pass besides the graph.
pub struct PassContext<'a> {
    /// Schemas and kernels.
    pub runtime: &'a Runtime,
    /// Device that folds constants.
    pub host: &'a Device,
    /// Device that most of the graph will run on; passes ask for its kernels.
    pub device: &'a Device,
    /// Runs only those passes that a plan depends on.
    pub is_plain: bool,
    /// Rounding that the session permits.
    pub precision: PrecisionMode,
    /// Replay log of shape-dependent decisions.
    pub recording: PassRecording,
}

/// Passes that a plan may depend on: they compute shapes, choose branches, and lower ops that no kernel can run.
const REQUIRED_PASSES: [&str; 4] = [
    fold::FOLD_CONSTANTS.name,
    branch::INLINE_BRANCHES.name,
    flex_attention::LOWER_FLEX_ATTENTION.name,
    dead_nodes::ELIMINATE_DEAD_NODES.name,
];

/// Statistics of one application of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassEffect {
    /// Name of the pass.
    pub pass: &'static str,
    /// Number of places it changed.
    pub changes: usize,
    /// Number of nodes before and after.
    pub nodes: (usize, usize),
}

/// Every pass, in the order of a round. Dead nodes go last, because rewrites leave them behind.
pub const ALL_PASSES: &[GraphPass] = &[
    fold::FOLD_CONSTANTS,
    branch::INLINE_BRANCHES,
    flex_attention::LOWER_FLEX_ATTENTION,
    identity::ELIMINATE_IDENTITIES,
    common_subexpressions::ELIMINATE_COMMON_SUBEXPRESSIONS,
    einsum::LOWER_EINSUM,
    quantized::FUSE_QUANTIZATION,
    quantized::FUSE_DYNAMIC_QUANTIZATION,
    // After the passes that make layers of what quantizes.
    quantized::FUSE_BYTE_MAPS,
    // Before the passes that make the ops behind a convolution part of it.
    squeezes::DELAY_SQUEEZES,
    activation::FUSE_ACTIVATIONS,
    gelu::FUSE_GELU,
    layer_norm::FUSE_LAYER_NORM,
    rms_norm::FUSE_RMS_NORM,
    // After the passes that look for arithmetic with constants.
    affine_folding::FOLD_AFFINE_OUTPUTS,
    affine_folding::FOLD_AFFINE_INPUTS,
    batch_norm::LOWER_BATCH_NORM,
    channels_last::CONVERT_TO_CHANNELS_LAST,
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
    PASS_WITH_SHAPES,
];

/// Runs once, when no other pass finds anything.
const LAST_PASS: GraphPass = precision::LOWER_PRECISION;

/// Runs once behind the last one, but only when the shapes of the inputs are known.
const PASS_WITH_SHAPES: GraphPass = elementwise::FUSE_ELEMENTWISE;

/// Limit on rounds over all passes; each round may enable more rewrites in the next.
const MAX_ROUNDS: usize = 16;

/// Limit on how often constants are folded before other passes run. Where a model computes shapes, folding makes more of them
/// known, and these make more constants; that may get no further than one block of a transformer at a time.
const MAX_FOLDING_ROUNDS: usize = 64;

/// Infers shapes and runs all passes until none finds anything, then the last one.
pub fn run_passes(graph: &mut Graph, context: &PassContext<'_>) -> Result<Vec<PassEffect>> {
    let mut effects = Vec::new();
    infer_graph(graph, context)?;
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for _ in 0..MAX_FOLDING_ROUNDS {
            if !apply_pass(&fold::FOLD_CONSTANTS, graph, context, &mut effects)? {
                break;
            }
            changed = true;
            infer_graph(graph, context)?;
        }
        let is_wanted = |pass: &&GraphPass| !context.is_plain || REQUIRED_PASSES.contains(&pass.name);
        let apart = [fold::FOLD_CONSTANTS.name, LAST_PASS.name, PASS_WITH_SHAPES.name];
        for pass in ALL_PASSES.iter().filter(is_wanted).filter(|pass| !apart.contains(&pass.name)) {
            changed |= apply_pass(pass, graph, context, &mut effects)?;
        }
        if !changed {
            break;
        }
        infer_graph(graph, context)?;
    }
    if !context.is_plain {
        apply_pass(&LAST_PASS, graph, context, &mut effects)?;
    }
    Ok(effects)
}

/// Runs all passes on a graph whose inputs have known shapes.
pub(crate) fn run_passes_with_shapes(
    graph: &mut Graph,
    context: &PassContext<'_>,
) -> Result<Vec<PassEffect>> {
    let mut effects = run_passes(graph, context)?;
    if !context.is_plain {
        apply_pass(&PASS_WITH_SHAPES, graph, context, &mut effects)?;
    }
    Ok(effects)
}

/// Runs a pass and checks the graph in debug builds; returns true if anything changed.
fn apply_pass(
    pass: &GraphPass,
    graph: &mut Graph,
    context: &PassContext<'_>,
    effects: &mut Vec<PassEffect>,
) -> Result<bool> {
    let before = graph.nodes.len();
    let changes = (pass.run)(graph, context)?;
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

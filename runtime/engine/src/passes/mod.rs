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
mod common;
mod cse;
mod dead;
mod einsum;
mod factors;
mod finish;
mod flexible;
mod fold;
mod gelu;
mod infer;
mod layer_norm;
mod notes;
mod precision;
mod product;
mod quantized;
mod tidy;
mod transposes;

pub(crate) use common::{is_same_op, is_same_value, with_expected};
pub(crate) use fold::tensor_of;
pub use infer::infer;
pub(crate) use infer::{fact_of, op_of};
pub use notes::Notes;
pub(crate) use notes::{Again, Recipe};
pub(crate) use precision::{may_round, rounded, rounds};

use oarlock_core::{Device, Result, Runtime};

use crate::graph::{self, Graph};
use crate::precision::Precision;

/// One kind of change.
pub struct Pass {
    /// What it is called, as in `oarlock explain --passes`.
    pub name: &'static str,
    /// What it does, and why.
    pub purpose: &'static str,
    /// Changes a graph; says in how many places.
    run: fn(&mut Graph, &Scene<'_>) -> Result<usize>,
}

/// What passes know beside the graph.
pub struct Scene<'a> {
    /// Where ops and kernels are found.
    pub runtime: &'a Runtime,
    /// Where constants are computed.
    pub host: &'a Device,
    /// Where the graph will run.
    pub device: &'a Device,
    /// Whether only those passes run without which there may be no plan.
    pub is_plain: bool,
    /// How precise products have to be.
    pub precision: Precision,
    /// What passes are told.
    pub notes: Notes,
}

/// The passes without which there may be no plan: shapes may have to be computed, branches chosen, and ops that no kernel can
/// run written as others.
const PLAIN: [&str; 4] = [fold::PASS.name, branch::PASS.name, flexible::PASS.name, dead::PASS.name];

/// What a pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The name of the pass.
    pub pass: &'static str,
    /// In how many places it changed the graph.
    pub changes: usize,
    /// How many nodes there were before and after.
    pub nodes: (usize, usize),
}

/// Every pass, in the order in which they run.
pub const ALL: &[Pass] = &[
    fold::PASS,
    branch::PASS,
    flexible::PASS,
    tidy::PASS,
    cse::PASS,
    einsum::PASS,
    quantized::PASS,
    quantized::DYNAMIC,
    batch_norm::PASS,
    activation::PASS,
    gelu::PASS,
    layer_norm::PASS,
    channels_last::PASS,
    transposes::PASS,
    attention::PASS,
    attention::PAST,
    attention::ROWS,
    product::PASS,
    block_product::PASS,
    finish::PASS,
    layer_norm::SKIP,
    dead::PASS,
    LAST,
];

/// The pass that runs once, when no other finds anything.
const LAST: Pass = precision::PASS;

/// How often all passes run one after the other, at most: each round may let another pass find more.
const ROUNDS: usize = 4;

/// Runs all passes until none finds anything.
pub fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    infer(graph, scene)?;
    for _ in 0..ROUNDS {
        let mut changed = false;
        let is_wanted = |pass: &&Pass| !scene.is_plain || PLAIN.contains(&pass.name);
        for pass in ALL.iter().filter(is_wanted).filter(|pass| pass.name != LAST.name) {
            changed |= apply(pass, graph, scene, &mut effects)?;
        }
        if !changed {
            break;
        }
        infer(graph, scene)?;
    }
    if !scene.is_plain {
        apply(&LAST, graph, scene, &mut effects)?;
    }
    Ok(effects)
}

/// Runs a pass; says whether it found anything.
fn apply(pass: &Pass, graph: &mut Graph, scene: &Scene<'_>, effects: &mut Vec<Effect>) -> Result<bool> {
    let before = graph.nodes.len();
    let changes = (pass.run)(graph, scene)?;
    if changes > 0 {
        debug_assert!(graph::check(graph).is_ok(), "{}: {:?}\n{graph}", pass.name, graph::check(graph));
        effects.push(Effect { pass: pass.name, changes, nodes: (before, graph.nodes.len()) });
    }
    Ok(changes > 0)
}

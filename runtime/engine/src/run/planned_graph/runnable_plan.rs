//! A plan together with what its runs keep.

use std::collections::BTreeMap;
use std::sync::Arc;

use oarlock_core::Result;

use super::control_flow::ControlFlowBodies;
use crate::fallback_summary::FallbackSummary;
use crate::plan::{ControlFlowCall, ExecutionPlan, StepAction};
use crate::run::context_pool::RunContextPool;
use crate::run::{RunScope, missing_value};
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

/// A plan, the bodies of its branches and loops, and the contexts that finished runs leave for later ones.
pub(crate) struct RunnablePlan {
    pub(crate) plan: Arc<ExecutionPlan>,
    /// By node. They do not depend on shapes, so plans for other shapes share them.
    bodies: BTreeMap<usize, Arc<ControlFlowBodies>>,
    pub(in crate::run) contexts: RunContextPool,
}

impl RunnablePlan {
    /// Takes the bodies over from a plan of the same nodes, if there is one.
    pub(super) fn new(
        plan: ExecutionPlan,
        previous: Option<&Self>,
        environment: &SessionEnvironment,
    ) -> Result<Self> {
        let is_control_flow = |node: &usize| plan.graph.nodes[*node].is_control_flow();
        let bodies = |node: usize| {
            let known = previous.and_then(|previous| previous.bodies.get(&node)).cloned();
            let bodies = known.map_or_else(
                || ControlFlowBodies::from_node(&plan.graph.nodes[node], environment).map(Arc::new),
                Ok,
            )?;
            Ok((node, bodies))
        };
        let bodies =
            (0..plan.graph.nodes.len()).filter(is_control_flow).map(bodies).collect::<Result<_>>()?;
        Ok(Self { plan: Arc::new(plan), bodies, contexts: RunContextPool::default() })
    }

    /// The bodies of a node that is a branch or a loop.
    fn bodies(&self, node: usize) -> Option<&ControlFlowBodies> {
        self.bodies.get(&node).map(Arc::as_ref)
    }

    /// Runs a node that is a branch or a loop.
    pub(in crate::run) fn run_control_flow(
        &self,
        node: usize,
        call: &ControlFlowCall,
        run: RunScope<'_>,
        slots: &mut [Option<RuntimeValue>],
    ) -> Result<()> {
        self.bodies(node).ok_or_else(missing_value)?.run(call, run, slots)
    }

    /// What the CPU runs because no other device can, in subgraphs too: each by the first plan it ran with. A subgraph that
    /// never ran is not counted.
    pub(crate) fn summarize_fallbacks(&self, environment: &SessionEnvironment) -> FallbackSummary {
        let mut summary = FallbackSummary::new(environment);
        self.add_fallbacks(&mut summary, environment);
        summary.sorted()
    }

    fn add_fallbacks(&self, summary: &mut FallbackSummary, environment: &SessionEnvironment) {
        summary.add_plan(&self.plan, environment);
        for step in &self.plan.steps {
            if let StepAction::ControlFlow(_) = &step.action {
                let bodies = self.bodies(step.node).into_iter().flat_map(ControlFlowBodies::graphs);
                for body in bodies.filter_map(|graph| graph.first_plan()) {
                    body.add_fallbacks(summary, environment);
                }
            }
        }
    }
}

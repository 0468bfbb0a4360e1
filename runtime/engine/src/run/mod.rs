//! Runs: the loop over the steps of a plan.

#![expect(unsafe_code, reason = "kernels run on memory whose places the plan decided")]

mod arena_pool;
mod clock;
mod context_pool;
mod interrupt;
mod planned_graph;

use oarlock_core::{
    BoundCall, Device, Error, MemoryLocation, OpInvocation, OpOutputs, Result, Tensor, with_nested_ops,
};
use smallvec::SmallVec;

use arena_pool::{ArenaPool, RunArena};
use clock::StepClock;
pub use clock::{RunTimings, StepTiming};
use interrupt::InterruptCheck;
pub(crate) use planned_graph::PlannedGraph;
use planned_graph::RunnablePlan;

use crate::node_listener::{NodeEvent, NodeRun};
use crate::plan::{
    DispatchedCall, ExecutionPlan, HostOpCall, PlanStep, PlannedCall, PlannedOperand, StepAction, ValueSource,
};
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;
use crate::step_budget::StepBudget;

/// Bound calls and their arena addresses. One run uses it at a time; a later run can take it over.
pub(crate) struct RunContext {
    /// For each step that calls a prepared kernel, the bound call.
    calls: Vec<Option<BoundCall>>,
    slots: Vec<Option<RuntimeValue>>,
    /// Start addresses of the arenas that the calls are bound to.
    arena_starts: SmallVec<[MemoryLocation; 1]>,
}

impl RunContext {
    fn new(plan: &ExecutionPlan, environment: &SessionEnvironment) -> Result<Self> {
        let bind = |step: &PlanStep| match &step.action {
            StepAction::Call(call) => {
                Ok(Some(call.prepared.create_bound_call(&environment.runtime, step.device.default_stream()?)))
            }
            _ => Ok(None),
        };
        let calls = plan.steps.iter().map(bind).collect::<Result<_>>()?;
        Ok(Self { calls, slots: (0..plan.slots).map(|_| None).collect(), arena_starts: SmallVec::new() })
    }

    /// Binds the calls to these arenas, unless they still are from the last run.
    #[inline]
    fn bind_arenas(&mut self, plan: &ExecutionPlan, arenas: &[RunArena]) {
        let arenas = &arenas[..plan.arenas.len()];
        let arena_starts = || arenas.iter().map(|arena| MemoryLocation::from_allocation(&arena.memory, 0));
        if !arena_starts().eq(self.arena_starts.iter().copied()) {
            self.arena_starts = arena_starts().collect();
            let calls = plan.steps.iter().zip(&mut self.calls);
            calls.for_each(|(step, bound_call)| {
                if let (StepAction::Call(call), Some(bound_call)) = (&step.action, bound_call) {
                    bind_arena_operands(call, bound_call, arenas);
                }
            });
        }
    }
}

/// Binds all operands of a call that lie in arenas.
fn bind_arena_operands(call: &PlannedCall, bound_call: &mut BoundCall, arenas: &[RunArena]) {
    let place = |operand: &PlannedOperand| match operand {
        PlannedOperand::Arena(arena, offset) => {
            Some(MemoryLocation::from_allocation(&arenas[*arena].memory, *offset))
        }
        PlannedOperand::Fixed | PlannedOperand::Slot(_) => None,
    };
    for (index, operand) in call.inputs.iter().enumerate() {
        place(operand).into_iter().for_each(|place| bound_call.bind_input(index, place));
    }
    for (index, operand) in call.outputs.iter().enumerate() {
        place(operand).into_iter().for_each(|place| bound_call.bind_output(index, place));
    }
    if let Some((arena, offset)) = call.workspace {
        bound_call.bind_workspace(MemoryLocation::from_allocation(&arenas[arena].memory, offset));
    }
}

/// State shared by a run and everything that its subgraphs run.
#[derive(Clone, Copy)]
pub(crate) struct RunScope<'a> {
    pub(crate) environment: &'a SessionEnvironment,
    pub(crate) step_budget: &'a StepBudget,
    /// Records step timings, if the caller wants them.
    pub(crate) clock: Option<&'a StepClock>,
    /// Lets the caller interrupt the run.
    pub(crate) interrupt_check: Option<&'a InterruptCheck<'a>>,
}

/// Runs a plan on inputs of the shapes that it was built for.
pub(crate) fn run_plan(
    runnable: &RunnablePlan,
    arenas: &ArenaPool,
    run: RunScope<'_>,
    inputs: &[RuntimeValue],
) -> Result<Vec<RuntimeValue>> {
    let RunnablePlan { plan, contexts, .. } = runnable;
    run.step_budget.spend(plan.steps.len())?;
    let mut context = match contexts.take_context() {
        Some(context) => context,
        None => RunContext::new(plan, run.environment)?,
    };
    let memory = if plan.arenas.is_empty() { Vec::new() } else { arenas.take_arenas(plan)? };
    context.bind_arenas(plan, &memory);
    let outputs = context.run_steps(runnable, run, inputs);
    context.slots.iter_mut().for_each(|slot| *slot = None);
    contexts.return_context(context);
    if !memory.is_empty() {
        arenas.return_arenas(memory);
    }
    outputs
}

impl RunContext {
    fn run_steps(
        &mut self,
        runnable: &RunnablePlan,
        run: RunScope<'_>,
        inputs: &[RuntimeValue],
    ) -> Result<Vec<RuntimeValue>> {
        let plan = &runnable.plan;
        for (input, destination) in inputs.iter().zip(&plan.inputs) {
            if let Some((slot, device)) = destination {
                self.slots[*slot] = Some(prepare_input(input, device, run.environment)?);
            }
        }
        for (step_index, step) in plan.steps.iter().enumerate() {
            if let Some(interrupt_check) = run.interrupt_check {
                interrupt_check.check_interrupt()?;
            }
            run.environment.on_node.report_node(|| {
                let kernel = match &step.action {
                    StepAction::Call(call) => Some(call.prepared.kernel_entry()),
                    _ => None,
                };
                let node = &plan.graph.nodes[step.node];
                NodeEvent { node, run: Some(NodeRun { device: &step.device, kernel }) }
            });
            let ran = match run.clock {
                None => self.run_step(step_index, step, runnable, run),
                Some(clock) => clock.time_step(plan, step_index, &step.device, || {
                    self.run_step(step_index, step, runnable, run)
                }),
            };
            if let Err(error) = ran {
                let node = &plan.graph.nodes[step.node];
                return Err(error.with_op(&node.op).with_node(&node.name));
            }
            for slot in &step.frees {
                self.slots[*slot] = None;
            }
        }
        plan.outputs.iter().map(|output| read_source(&self.slots, output)).collect()
    }

    #[inline]
    fn run_step(
        &mut self,
        step_index: usize,
        step: &PlanStep,
        runnable: &RunnablePlan,
        run: RunScope<'_>,
    ) -> Result<()> {
        match &step.action {
            StepAction::Call(call) => self.call_kernel(step_index, call, run.environment),
            StepAction::Dispatched(dispatched) => {
                self.dispatch_call(dispatched, &step.device, run.environment)
            }
            StepAction::View { from, dims, to } => self.view_tensor(from, dims, *to),
            StepAction::Copy { from, to } => self.copy_tensor(from, *to, &step.device),
            StepAction::Host(call) => self.run_on_host(call, run.environment),
            StepAction::ControlFlow(call) => runnable.run_control_flow(step.node, call, run, &mut self.slots),
        }
    }

    #[inline]
    fn call_kernel(
        &mut self,
        step_index: usize,
        call: &PlannedCall,
        environment: &SessionEnvironment,
    ) -> Result<()> {
        let Some(bound_call) = &mut self.calls[step_index] else { return Err(missing_value()) };
        for (index, operand) in call.inputs.iter().enumerate() {
            if let PlannedOperand::Slot(slot) = operand {
                let tensor = slot_tensor(&self.slots, *slot)?;
                bound_call.wait_for_tensor(tensor)?;
                bound_call.bind_input(index, MemoryLocation::from_tensor(tensor));
            }
        }
        for (index, operand) in call.outputs.iter().enumerate() {
            if let PlannedOperand::Slot(slot) = operand {
                let tensor = call.prepared.allocate_output(index, bound_call.stream())?;
                bound_call.bind_output(index, MemoryLocation::from_tensor(&tensor));
                self.slots[*slot] = Some(RuntimeValue::Tensor(tensor));
            }
        }
        let may_call_ops = bound_call.may_call_ops();
        // SAFETY: the plan gave every operand memory that is reserved for it from this step to its last use: in an arena that
        // this run holds, and that no other run gets before this one is over and its work is in the streams, in a constant that
        // the kernel keeps, or in a tensor of a slot. Tensors that were passed in have the shapes that the kernel was prepared
        // for, as `prepare_input` and the choice of the plan ensure. Memory that returns to a pool while a stream still uses it
        // is handed out again in the order of the stream.
        let mut run = || unsafe { bound_call.run() };
        if may_call_ops { with_nested_ops(&environment.runtime, run) } else { run() }?;
        if environment.runtime.has_post_kernel_checks() {
            let result = call.outputs.iter().map(|operand| match operand {
                PlannedOperand::Slot(slot) => slot_tensor(&self.slots, *slot).ok().cloned(),
                PlannedOperand::Fixed | PlannedOperand::Arena(..) => None,
            });
            let outputs: OpOutputs = result.collect();
            call.prepared.check_outputs(&environment.runtime, bound_call.stream(), &outputs)?;
        }
        Ok(())
    }

    fn dispatch_call(
        &mut self,
        dispatched: &DispatchedCall,
        device: &Device,
        environment: &SessionEnvironment,
    ) -> Result<()> {
        let given = |source: &Option<ValueSource>| -> Result<Option<Tensor>> {
            let Some(source) = source else { return Ok(None) };
            read_source(&self.slots, source)?.as_tensor()?.to_device(device).map(Some)
        };
        let inputs: Vec<Option<Tensor>> = dispatched.inputs.iter().map(given).collect::<Result<_>>()?;
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let call = OpInvocation {
            inputs: &inputs,
            outputs: dispatched.outputs.len(),
            device: Some(device),
            stream: None,
        };
        let constants = dispatched.constant_inputs;
        let result = dispatched.op.invoke_with_constants(&environment.runtime, &call, constants)?;
        for (slot, tensor) in dispatched.outputs.iter().zip(result) {
            if let (Some(slot), Some(tensor)) = (slot, tensor) {
                self.slots[*slot] = Some(RuntimeValue::Tensor(tensor));
            }
        }
        Ok(())
    }

    fn run_on_host(&mut self, call: &HostOpCall, environment: &SessionEnvironment) -> Result<()> {
        let read = |source: &Option<ValueSource>| {
            source.as_ref().map(|source| read_source(&self.slots, source)).transpose()
        };
        let inputs: Vec<Option<RuntimeValue>> = call.inputs.iter().map(read).collect::<Result<_>>()?;
        let output = call.op.run(environment, &inputs)?;
        if let Some(Some(slot)) = call.outputs.first() {
            self.slots[*slot] = Some(output);
        }
        Ok(())
    }

    fn view_tensor(&mut self, from: &ValueSource, dims: &[i64], to: usize) -> Result<()> {
        let tensor = read_source(&self.slots, from)?.as_tensor()?.reshape(dims)?;
        self.slots[to] = Some(RuntimeValue::Tensor(tensor));
        Ok(())
    }

    fn copy_tensor(&mut self, from: &ValueSource, to: usize, device: &Device) -> Result<()> {
        let tensor = read_source(&self.slots, from)?.as_tensor()?.to_device(device)?;
        self.slots[to] = Some(RuntimeValue::Tensor(tensor));
        Ok(())
    }
}

/// Returns an input as the steps expect it: on their device, and contiguous.
#[inline]
fn prepare_input(
    input: &RuntimeValue,
    device: &Device,
    environment: &SessionEnvironment,
) -> Result<RuntimeValue> {
    let RuntimeValue::Tensor(tensor) = input else { return Ok(input.clone()) };
    if tensor.device().is_same_device(device) && tensor.is_contiguous() {
        return Ok(input.clone());
    }
    let tensor = environment.runtime.make_contiguous(&tensor.to_device(device)?, device.default_stream()?)?;
    Ok(RuntimeValue::Tensor(tensor))
}

fn read_source(slots: &[Option<RuntimeValue>], source: &ValueSource) -> Result<RuntimeValue> {
    match source {
        ValueSource::Constant(tensor) => Ok(RuntimeValue::Tensor(tensor.clone())),
        ValueSource::Slot(slot) => slots.get(*slot).cloned().flatten().ok_or_else(missing_value),
    }
}

#[inline]
fn slot_tensor(slots: &[Option<RuntimeValue>], slot: usize) -> Result<&Tensor> {
    slots.get(slot).and_then(Option::as_ref).ok_or_else(missing_value)?.as_tensor()
}

#[cold]
fn missing_value() -> Error {
    Error::fatal("expected a value that was made before, found none")
}

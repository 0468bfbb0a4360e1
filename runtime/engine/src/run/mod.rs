//! Runs: the loop over the steps of a plan.

#![expect(unsafe_code, reason = "kernels run on memory whose places the plan decided")]

mod allowance;
mod arenas;
mod clock;
mod control;
mod labels;
mod scan;
mod sequence;
mod text;
mod watch;

use std::sync::Arc;

use oarlock_core::{Device, Error, Invocation, Outputs, Packed, Place, Result, Tensor};
use smallvec::SmallVec;

pub(crate) use allowance::Allowance;
use arenas::Arena;
pub(crate) use arenas::Arenas;
pub(crate) use clock::Clock;
pub use clock::{Timing, Timings};
pub(crate) use control::Control;
pub use text::{make_text, makes_text};
pub(crate) use watch::Watch;

use crate::datum::Datum;
use crate::environment::Environment;
use crate::plan::{Call, Eager, Operand, Plan, Source, Step, Work};

/// What a run needs beside the plan and its memory: calls with the places of their operands. A run has one for itself.
pub(crate) struct Context {
    /// For each step that calls a ready kernel the call.
    calls: Vec<Option<Packed>>,
    slots: Vec<Option<Datum>>,
    /// Where the arenas begin that operands of the calls lie in.
    begins: SmallVec<[Place; 1]>,
}

impl Context {
    fn new(plan: &Plan, environment: &Environment) -> Result<Self> {
        let pack = |step: &Step| match &step.work {
            Work::Call(call) => Ok(Some(call.ready.pack(&environment.runtime, step.device.stream()?))),
            _ => Ok(None),
        };
        let calls = plan.steps.iter().map(pack).collect::<Result<_>>()?;
        Ok(Self { calls, slots: (0..plan.slots).map(|_| None).collect(), begins: SmallVec::new() })
    }

    /// Has the calls find their operands in these arenas.
    #[inline]
    fn lie_in(&mut self, plan: &Plan, arenas: &[Arena]) {
        let arenas = &arenas[..plan.arenas.len()];
        let begins = || arenas.iter().map(|arena| Place::within(&arena.memory, 0));
        if !begins().eq(self.begins.iter().copied()) {
            self.begins = begins().collect();
            let calls = plan.steps.iter().zip(&mut self.calls);
            calls.for_each(|(step, packed)| {
                if let (Work::Call(call), Some(packed)) = (&step.work, packed) {
                    place(call, packed, arenas);
                }
            });
        }
    }
}

/// Gives all operands of a call that lie in arenas their places.
fn place(call: &Call, packed: &mut Packed, arenas: &[Arena]) {
    let place = |operand: &Operand| match operand {
        Operand::Arena(arena, offset) => Some(Place::within(&arenas[*arena].memory, *offset)),
        Operand::Fixed | Operand::Slot(_) => None,
    };
    for (index, operand) in call.inputs.iter().enumerate() {
        place(operand).into_iter().for_each(|place| packed.place_input(index, place));
    }
    for (index, operand) in call.outputs.iter().enumerate() {
        place(operand).into_iter().for_each(|place| packed.place_output(index, place));
    }
    if let Some((arena, offset)) = call.workspace {
        packed.place_workspace(Place::within(&arenas[arena].memory, offset));
    }
}

/// What holds for a run and for all that its branches and loops run.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) allowance: &'a Allowance,
    /// Who wants to know when the steps take place, if anybody does.
    pub(crate) clock: Option<&'a Clock>,
    /// Who may stop it, if anybody may.
    pub(crate) watch: Option<&'a Watch<'a>>,
}

/// Runs a plan on inputs that have the shapes it was made for.
pub(crate) fn run(plan: &Arc<Plan>, arenas: &Arenas, run: Run<'_>, inputs: &[Datum]) -> Result<Vec<Datum>> {
    run.allowance.take(plan.steps.len())?;
    let mut context = match plan.contexts.take() {
        Some(context) => context,
        None => Context::new(plan, run.environment)?,
    };
    let memory = if plan.arenas.is_empty() { Vec::new() } else { arenas.take(plan)? };
    context.lie_in(plan, &memory);
    let outputs = context.run(plan, run, inputs);
    context.slots.iter_mut().for_each(|slot| *slot = None);
    plan.contexts.leave(context);
    if !memory.is_empty() {
        arenas.leave(memory);
    }
    outputs
}

impl Context {
    fn run(&mut self, plan: &Arc<Plan>, run: Run<'_>, inputs: &[Datum]) -> Result<Vec<Datum>> {
        for (input, home) in inputs.iter().zip(&plan.inputs) {
            if let Some((slot, device)) = home {
                self.slots[*slot] = Some(ready_input(input, device, run.environment)?);
            }
        }
        for (at, step) in plan.steps.iter().enumerate() {
            if let Some(watch) = run.watch {
                watch.look()?;
            }
            let ran = match run.clock {
                None => self.step(at, step, run),
                Some(clock) => clock.time(plan, at, &step.device, || self.step(at, step, run)),
            };
            if let Err(error) = ran {
                let node = &plan.graph.nodes[step.node];
                return Err(error.of_op(&node.op).of_node(&node.name));
            }
            for slot in &step.frees {
                self.slots[*slot] = None;
            }
        }
        plan.outputs.iter().map(|output| datum(&self.slots, output)).collect()
    }

    #[inline]
    fn step(&mut self, at: usize, step: &Step, run: Run<'_>) -> Result<()> {
        match &step.work {
            Work::Call(call) => self.call(at, call, run.environment),
            Work::Eager(eager) => self.dispatch(eager, &step.device, run.environment),
            Work::View { from, dims, to } => self.view(from, dims, *to),
            Work::Copy { from, to } => self.copy(from, *to, &step.device),
            Work::Control(control) => control.run(run, &mut self.slots),
        }
    }

    #[inline]
    fn call(&mut self, at: usize, call: &Call, environment: &Environment) -> Result<()> {
        let Some(packed) = &mut self.calls[at] else { return Err(missing()) };
        for (index, operand) in call.inputs.iter().enumerate() {
            if let Operand::Slot(slot) = operand {
                let tensor = slot_tensor(&self.slots, *slot)?;
                packed.wait_for(tensor)?;
                packed.place_input(index, Place::of(tensor));
            }
        }
        for (index, operand) in call.outputs.iter().enumerate() {
            if let Operand::Slot(slot) = operand {
                let tensor = call.ready.take_output(index, packed.stream())?;
                packed.place_output(index, Place::of(&tensor));
                self.slots[*slot] = Some(Datum::Tensor(tensor));
            }
        }
        // SAFETY: the plan gave every operand a place that is free for it from this step to its last use: in an arena that
        // this run holds, which no other has before this one is over and its work is in the streams, in a constant that the kernel keeps, or in a tensor of a slot. Tensors
        // that were handed in have the shapes the kernel was readied for, as `ready_input` and the choice of the plan
        // see to; memory that goes back to a pool while a stream still uses it is handed out in the order of the stream.
        unsafe { packed.run()? };
        if environment.runtime.is_watching() {
            let made = call.outputs.iter().map(|operand| match operand {
                Operand::Slot(slot) => slot_tensor(&self.slots, *slot).ok().cloned(),
                Operand::Fixed | Operand::Arena(..) => None,
            });
            let outputs: Outputs = made.collect();
            call.ready.look_at(&environment.runtime, packed.stream(), &outputs)?;
        }
        Ok(())
    }

    fn dispatch(&mut self, eager: &Eager, device: &Device, environment: &Environment) -> Result<()> {
        let given = |source: &Option<Source>| -> Result<Option<Tensor>> {
            let Some(source) = source else { return Ok(None) };
            datum(&self.slots, source)?.tensor()?.to(device).map(Some)
        };
        let inputs: Vec<Option<Tensor>> = eager.inputs.iter().map(given).collect::<Result<_>>()?;
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let call =
            Invocation { inputs: &inputs, outputs: eager.outputs.len(), device: Some(device), stream: None };
        let made = eager.op.invoke(&environment.runtime, &call)?;
        for (slot, tensor) in eager.outputs.iter().zip(made) {
            if let (Some(slot), Some(tensor)) = (slot, tensor) {
                self.slots[*slot] = Some(Datum::Tensor(tensor));
            }
        }
        Ok(())
    }

    fn view(&mut self, from: &Source, dims: &[i64], to: usize) -> Result<()> {
        let tensor = datum(&self.slots, from)?.tensor()?.reshape(dims)?;
        self.slots[to] = Some(Datum::Tensor(tensor));
        Ok(())
    }

    fn copy(&mut self, from: &Source, to: usize, device: &Device) -> Result<()> {
        let tensor = datum(&self.slots, from)?.tensor()?.to(device)?;
        self.slots[to] = Some(Datum::Tensor(tensor));
        Ok(())
    }
}

/// An input as the steps want it: on their device, its elements one after the other.
#[inline]
fn ready_input(input: &Datum, device: &Device, environment: &Environment) -> Result<Datum> {
    let Datum::Tensor(tensor) = input else { return Ok(input.clone()) };
    if tensor.device().is(device) && tensor.is_contiguous() {
        return Ok(input.clone());
    }
    let tensor = environment.runtime.contiguous(&tensor.to(device)?, device.stream()?)?;
    Ok(Datum::Tensor(tensor))
}

/// What a source has.
fn datum(slots: &[Option<Datum>], source: &Source) -> Result<Datum> {
    match source {
        Source::Constant(tensor) => Ok(Datum::Tensor(tensor.clone())),
        Source::Slot(slot) => slots.get(*slot).cloned().flatten().ok_or_else(missing),
    }
}

#[inline]
fn slot_tensor(slots: &[Option<Datum>], slot: usize) -> Result<&Tensor> {
    slots.get(slot).and_then(Option::as_ref).ok_or_else(missing)?.tensor()
}

#[cold]
fn missing() -> Error {
    Error::fatal("expected a value that was made before, found none")
}

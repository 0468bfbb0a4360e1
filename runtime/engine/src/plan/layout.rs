//! Decides where the values of a plan lie: in arenas, or as tensors of their own.
//!
//! A value that only prepared kernels read lies in the arena of its device. Inputs, outputs, operands of calls that are
//! dispatched during the run, and values that subgraphs see are tensors, each in a slot.

use oarlock_core::{Device, Error, Result, Tensor};

use super::buffer_offsets::{self, BufferLifetime};
use super::build::{DraftAction, DraftStep, PlanValue};
use super::step::{
    ControlFlowCall, EagerCall, EngineOpCall, PlanStep, PlannedCall, PlannedOperand, StepAction, ValueSource,
};
use crate::environment::SessionEnvironment;
use crate::graph::Graph;

/// Device and size in bytes of each arena.
type ArenaSizes = Vec<(Device, u64)>;
/// Index of an arena, and the byte offset in it.
type ArenaOffset = (usize, u64);
/// Steps, arenas, number of slots, destinations of inputs, sources of outputs.
type LayoutResult = (Vec<PlanStep>, ArenaSizes, usize, Vec<Option<(usize, Device)>>, Vec<ValueSource>);

/// Location of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueLocation {
    /// A constant, or never read.
    None,
    /// In the arena, in the buffer with this index.
    Arena(usize),
    /// A tensor in this slot.
    Slot(usize),
}

pub(super) struct PlanLayout<'a> {
    graph: &'a Graph,
    environment: &'a SessionEnvironment,
    plan_values: &'a [PlanValue],
    /// Values that must be tensors.
    is_tensor: Vec<bool>,
    /// The last draft that reads a value, or a view of it in the same location.
    last_use: Vec<usize>,
    locations: Vec<ValueLocation>,
    buffers: Vec<BufferLifetime>,
    /// Device of each buffer.
    buffer_devices: Vec<Device>,
    slots: usize,
}

impl<'a> PlanLayout<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        environment: &'a SessionEnvironment,
        plan_values: &'a [PlanValue],
        drafts: &[DraftStep],
    ) -> Self {
        let count = plan_values.len();
        let mut layout = Self {
            graph,
            environment,
            plan_values,
            is_tensor: vec![environment.runtime.has_post_kernel_checks(); count],
            last_use: vec![0; count],
            locations: vec![ValueLocation::None; count],
            buffers: Vec::new(),
            buffer_devices: Vec::new(),
            slots: 0,
        };
        layout.find_tensors(drafts);
        layout.find_last_uses(drafts);
        layout.find_locations(drafts);
        layout
    }

    /// Marks the values that must be tensors. If a view is a tensor, so is the value it views.
    fn find_tensors(&mut self, drafts: &[DraftStep]) {
        let Self { graph, is_tensor, .. } = self;
        for end in graph.inputs.iter().chain(&graph.outputs) {
            is_tensor[end.index()] = true;
        }
        for draft in drafts {
            if !matches!(draft.action, DraftAction::Call(_) | DraftAction::View(_)) {
                draft
                    .inputs
                    .iter()
                    .chain(&draft.outputs)
                    .flatten()
                    .for_each(|plan_value| is_tensor[*plan_value] = true);
            }
        }
        for draft in drafts.iter().rev() {
            if let (DraftAction::View(_), [Some(from)], Some(Some(to))) =
                (&draft.action, &*draft.inputs, draft.outputs.first())
            {
                is_tensor[*from] |= is_tensor[*to];
            }
        }
    }

    /// Computes last uses. A view that is not a tensor extends the lifetime of the value it views.
    fn find_last_uses(&mut self, drafts: &[DraftStep]) {
        for output in &self.graph.outputs {
            self.last_use[output.index()] = drafts.len();
        }
        for (at, draft) in drafts.iter().enumerate().rev() {
            let mut until = at;
            if let (DraftAction::View(_), Some(Some(to))) = (&draft.action, draft.outputs.first())
                && !self.is_tensor[*to]
            {
                until = self.last_use[*to].max(at);
            }
            for input in draft.inputs.iter().flatten() {
                self.last_use[*input] = self.last_use[*input].max(until);
            }
        }
    }

    fn find_locations(&mut self, drafts: &[DraftStep]) {
        for input in &self.graph.inputs {
            self.locations[input.index()] = self.new_slot();
        }
        for (at, draft) in drafts.iter().enumerate() {
            for (index, output) in draft.outputs.iter().enumerate() {
                let Some(output) = *output else { continue };
                self.locations[output] = match (&draft.action, draft.inputs.first()) {
                    _ if self.is_tensor[output] => self.new_slot(),
                    (DraftAction::View(_), Some(Some(from)))
                        if self.locations[*from] != ValueLocation::None =>
                    {
                        self.locations[*from]
                    }
                    (DraftAction::View(_), _) => self.new_slot(),
                    _ => self.allocate_in_arena(at, draft, index, output),
                };
                // Constants have no location, so a view of one is a tensor.
                if matches!(draft.action, DraftAction::View(_))
                    && matches!(self.locations[output], ValueLocation::Slot(_))
                {
                    self.is_tensor[output] |=
                        draft.inputs[0].is_some_and(|from| self.locations[from] == ValueLocation::None);
                }
            }
        }
    }

    fn new_slot(&mut self) -> ValueLocation {
        self.slots += 1;
        ValueLocation::Slot(self.slots - 1)
    }

    /// Places an output of a call: in the buffer of an input that dies here if the kernel can run in place, or in a new buffer.
    fn allocate_in_arena(
        &mut self,
        at: usize,
        draft: &DraftStep,
        index: usize,
        output: usize,
    ) -> ValueLocation {
        let last = self.last_use[output].max(at);
        let size = self.plan_values[output].size_in_bytes(self.graph).unwrap_or(0);
        if let DraftAction::Call(prepared) = &draft.action {
            for (position, input) in draft.inputs.iter().enumerate() {
                let Some(input) = *input else { continue };
                let ValueLocation::Arena(need) = self.locations[input] else { continue };
                let is_over = self.buffers[need].last == at && self.buffers[need].size == size;
                if !is_over || !prepared.can_run_in_place(index, position) {
                    continue;
                }
                let others = draft.inputs.iter().flatten();
                if others.filter(|other| self.locations[**other] == ValueLocation::Arena(need)).count() == 1 {
                    self.buffers[need].last = last;
                    return ValueLocation::Arena(need);
                }
            }
        }
        ValueLocation::Arena(self.new_buffer(size, at, last, &draft.device))
    }

    fn new_buffer(&mut self, size: u64, first: usize, last: usize, device: &Device) -> usize {
        self.buffers.push(BufferLifetime { size, first, last });
        self.buffer_devices.push(device.clone());
        self.buffers.len() - 1
    }

    pub(super) fn finish(mut self, drafts: Vec<DraftStep>) -> Result<LayoutResult> {
        let workspaces: Vec<Option<usize>> = drafts
            .iter()
            .enumerate()
            .map(|(at, draft)| match &draft.action {
                DraftAction::Call(prepared) if prepared.workspace_size() > 0 => {
                    Some(self.new_buffer(prepared.workspace_size(), at, at, &draft.device))
                }
                _ => None,
            })
            .collect();
        let (arenas, places) = self.place_buffers();
        let operand = |home: ValueLocation| match home {
            ValueLocation::None => PlannedOperand::Fixed,
            ValueLocation::Slot(slot) => PlannedOperand::Slot(slot),
            ValueLocation::Arena(need) => PlannedOperand::Arena(places[need].0, places[need].1),
        };
        let ends = self.slot_last_uses();
        let mut steps = Vec::new();
        for (at, draft) in drafts.into_iter().enumerate() {
            let frees = self.slots_freed_after(at, &draft, &ends);
            let DraftStep { node, device, action, inputs, outputs } = draft;
            let action = match action {
                DraftAction::Call(prepared) => StepAction::Call(PlannedCall {
                    prepared,
                    inputs: self.operand_locations(&inputs, operand),
                    outputs: self.operand_locations(&outputs, operand),
                    workspace: workspaces[at].map(|need| places[need]),
                }),
                DraftAction::Eager(op) => StepAction::Eager(EagerCall {
                    op,
                    inputs: self.value_sources(&inputs, &device)?,
                    outputs: outputs.iter().map(|output| self.slot_of(*output)).collect(),
                }),
                DraftAction::View(dims) => match outputs[0].filter(|output| self.is_tensor[*output]) {
                    Some(to) => StepAction::View {
                        from: self.value_source(inputs[0], &device)?,
                        dims,
                        to: self.slot_of(Some(to)).ok_or_else(missing_value)?,
                    },
                    None => continue,
                },
                DraftAction::Copy => StepAction::Copy {
                    from: self.value_source(inputs[0], &device)?,
                    to: self.slot_of(outputs[0]).ok_or_else(missing_value)?,
                },
                DraftAction::Host(op) => StepAction::Host(EngineOpCall {
                    op,
                    inputs: self.value_sources(&inputs, &device)?,
                    outputs: outputs.iter().map(|output| self.slot_of(*output)).collect(),
                }),
                DraftAction::ControlFlow => StepAction::ControlFlow(ControlFlowCall {
                    own_inputs: self.graph.nodes[node].inputs.len(),
                    inputs: self.value_sources(&inputs, &device)?,
                    outputs: outputs.iter().map(|output| self.slot_of(*output)).collect(),
                }),
            };
            steps.push(PlanStep { node, device, action, frees });
        }
        let inputs = self.graph.inputs.iter().map(|input| {
            let device = self.plan_values[input.index()].device.clone();
            self.slot_of(Some(input.index())).zip(device)
        });
        let inputs = inputs.collect();
        let main = self.environment.main_device();
        let outputs: Result<Vec<ValueSource>> =
            self.graph.outputs.iter().map(|output| self.value_source(Some(output.index()), main)).collect();
        Ok((steps, arenas, self.slots, inputs, outputs?))
    }

    /// Assigns offsets within one arena for each device; returns the arenas, and arena and offset of each buffer.
    fn place_buffers(&self) -> (ArenaSizes, Vec<ArenaOffset>) {
        let mut arenas: Vec<(Device, u64)> = Vec::new();
        let mut places = vec![(0, 0); self.buffers.len()];
        for device in &self.environment.devices {
            let own: Vec<usize> = (0..self.buffers.len())
                .filter(|need| self.buffer_devices[*need].is_same_device(device))
                .collect();
            if own.is_empty() {
                continue;
            }
            let buffers: Vec<BufferLifetime> = own.iter().map(|need| self.buffers[*need]).collect();
            let (offsets, total) = buffer_offsets::assign_offsets(&buffers);
            for (need, offset) in own.into_iter().zip(offsets) {
                places[need] = (arenas.len(), offset);
            }
            arenas.push((device.clone(), total));
        }
        (arenas, places)
    }

    /// The last use of each slot. Views share the slot of the value they view.
    fn slot_last_uses(&self) -> Vec<usize> {
        let mut ends = vec![0; self.slots];
        for (home, last_use) in self.locations.iter().zip(&self.last_use) {
            if let ValueLocation::Slot(slot) = home {
                ends[*slot] = ends[*slot].max(*last_use);
            }
        }
        ends
    }

    /// Slots that are dead after a draft.
    fn slots_freed_after(&self, at: usize, draft: &DraftStep, ends: &[usize]) -> Vec<usize> {
        let touched = draft.inputs.iter().chain(&draft.outputs);
        let mut freed: Vec<usize> = touched
            .filter_map(|plan_value| self.slot_of(*plan_value))
            .filter(|slot| ends[*slot] <= at)
            .collect();
        freed.sort_unstable();
        freed.dedup();
        freed
    }

    fn operand_locations(
        &self,
        plan_values: &[Option<usize>],
        operand: impl Fn(ValueLocation) -> PlannedOperand,
    ) -> Vec<PlannedOperand> {
        plan_values
            .iter()
            .map(|plan_value| {
                plan_value.map_or(PlannedOperand::Fixed, |plan_value| operand(self.locations[plan_value]))
            })
            .collect()
    }

    fn slot_of(&self, plan_value: Option<usize>) -> Option<usize> {
        if let ValueLocation::Slot(slot) = self.locations[plan_value?] { Some(slot) } else { None }
    }

    fn value_sources(
        &self,
        plan_values: &[Option<usize>],
        device: &Device,
    ) -> Result<Vec<Option<ValueSource>>> {
        plan_values
            .iter()
            .map(|plan_value| {
                plan_value.map(|plan_value| self.value_source(Some(plan_value), device)).transpose()
            })
            .collect()
    }

    fn value_source(&self, plan_value: Option<usize>, device: &Device) -> Result<ValueSource> {
        let plan_value = plan_value.ok_or_else(missing_value)?;
        if let Some(slot) = self.slot_of(Some(plan_value)) {
            return Ok(ValueSource::Slot(slot));
        }
        let weight =
            self.graph.value(self.plan_values[plan_value].value).weight.as_ref().ok_or_else(missing_value)?;
        let tensor: Tensor = self.environment.constant_on_device(weight, device, false)?;
        Ok(ValueSource::Constant(tensor))
    }
}

#[cold]
fn missing_value() -> Error {
    Error::fatal("expected a value that is made before it is read, found one that is not")
}

//! Decides where the values of a plan lie: in arenas, or as tensors of their own.
//!
//! A value that only prepared kernels read lies in the arena of its device. Inputs, outputs, operands of calls that are
//! dispatched during the run, and values that subgraphs see are tensors, each in a slot.

use oarlock_core::{Device, Error, Result, Tensor};

use super::buffer_offsets::{self, BufferLifetime};
use super::step::{
    ControlFlowCall, DispatchedCall, HostOpCall, PlanStep, PlannedCall, PlannedOperand, StepAction,
    ValueSource,
};
use super::unallocated_step::{PlanValue, UnallocatedAction, UnallocatedStep};
use crate::graph::Graph;
use crate::session_environment::SessionEnvironment;

/// Device and size in bytes of each arena.
type ArenaSizes = Vec<(Device, u64)>;
/// Index of an arena, and the byte offset in it.
type ArenaOffset = (usize, u64);
/// Steps, arenas, number of slots, destinations of inputs, sources of outputs.
type PlannedMemory = (Vec<PlanStep>, ArenaSizes, usize, Vec<Option<(usize, Device)>>, Vec<ValueSource>);

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

pub(super) struct MemoryPlanner<'a> {
    graph: &'a Graph,
    environment: &'a SessionEnvironment,
    plan_values: &'a [PlanValue],
    /// Values that must be tensors.
    is_tensor: Vec<bool>,
    /// The last step that reads a value, or a view of it in the same location.
    last_use: Vec<usize>,
    locations: Vec<ValueLocation>,
    buffers: Vec<BufferLifetime>,
    /// Device of each buffer.
    buffer_devices: Vec<Device>,
    slots: usize,
}

impl<'a> MemoryPlanner<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        environment: &'a SessionEnvironment,
        plan_values: &'a [PlanValue],
        steps: &[UnallocatedStep],
    ) -> Self {
        let count = plan_values.len();
        let mut planner = Self {
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
        planner.find_tensors(steps);
        planner.find_last_uses(steps);
        planner.find_locations(steps);
        planner
    }

    /// Marks the values that must be tensors. If a view is a tensor, so is the value it views.
    fn find_tensors(&mut self, steps: &[UnallocatedStep]) {
        let Self { graph, is_tensor, .. } = self;
        for end in graph.inputs.iter().chain(&graph.outputs) {
            is_tensor[end.index()] = true;
        }
        for step in steps {
            if !matches!(step.action, UnallocatedAction::Call(_) | UnallocatedAction::View(_)) {
                step.inputs
                    .iter()
                    .chain(&step.outputs)
                    .flatten()
                    .for_each(|plan_value| is_tensor[*plan_value] = true);
            }
        }
        for step in steps.iter().rev() {
            if let (UnallocatedAction::View(_), [Some(from)], Some(Some(to))) =
                (&step.action, &*step.inputs, step.outputs.first())
            {
                is_tensor[*from] |= is_tensor[*to];
            }
        }
    }

    /// Computes last uses. A view that is not a tensor extends the lifetime of the value it views.
    fn find_last_uses(&mut self, steps: &[UnallocatedStep]) {
        for output in &self.graph.outputs {
            self.last_use[output.index()] = steps.len();
        }
        for (at, step) in steps.iter().enumerate().rev() {
            let mut until = at;
            if let (UnallocatedAction::View(_), Some(Some(to))) = (&step.action, step.outputs.first())
                && !self.is_tensor[*to]
            {
                until = self.last_use[*to].max(at);
            }
            for input in step.inputs.iter().flatten() {
                self.last_use[*input] = self.last_use[*input].max(until);
            }
        }
    }

    fn find_locations(&mut self, steps: &[UnallocatedStep]) {
        for input in &self.graph.inputs {
            self.locations[input.index()] = self.new_slot();
        }
        for (at, step) in steps.iter().enumerate() {
            for (index, output) in step.outputs.iter().enumerate() {
                let Some(output) = *output else { continue };
                self.locations[output] = match (&step.action, step.inputs.first()) {
                    _ if self.is_tensor[output] => self.new_slot(),
                    (UnallocatedAction::View(_), Some(Some(from)))
                        if self.locations[*from] != ValueLocation::None =>
                    {
                        self.locations[*from]
                    }
                    (UnallocatedAction::View(_), _) => self.new_slot(),
                    _ => self.allocate_in_arena(at, step, index, output),
                };
                // Constants have no location, so a view of one is a tensor.
                if matches!(step.action, UnallocatedAction::View(_))
                    && matches!(self.locations[output], ValueLocation::Slot(_))
                {
                    self.is_tensor[output] |=
                        step.inputs[0].is_some_and(|from| self.locations[from] == ValueLocation::None);
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
        step: &UnallocatedStep,
        index: usize,
        output: usize,
    ) -> ValueLocation {
        let last = self.last_use[output].max(at);
        let size = self.plan_values[output].size_in_bytes(self.graph).unwrap_or(0);
        if let UnallocatedAction::Call(prepared) = &step.action {
            for (position, input) in step.inputs.iter().enumerate() {
                let Some(input) = *input else { continue };
                let ValueLocation::Arena(need) = self.locations[input] else { continue };
                let is_over = self.buffers[need].last == at && self.buffers[need].size == size;
                if !is_over || !prepared.can_run_in_place(index, position) {
                    continue;
                }
                let others = step.inputs.iter().flatten();
                if others.filter(|other| self.locations[**other] == ValueLocation::Arena(need)).count() == 1 {
                    self.buffers[need].last = last;
                    return ValueLocation::Arena(need);
                }
            }
        }
        ValueLocation::Arena(self.new_buffer(size, at, last, &step.device))
    }

    fn new_buffer(&mut self, size: u64, first: usize, last: usize, device: &Device) -> usize {
        self.buffers.push(BufferLifetime { size, first, last });
        self.buffer_devices.push(device.clone());
        self.buffers.len() - 1
    }

    pub(super) fn finish(mut self, steps: Vec<UnallocatedStep>) -> Result<PlannedMemory> {
        let workspaces: Vec<Option<usize>> = steps
            .iter()
            .enumerate()
            .map(|(at, step)| match &step.action {
                UnallocatedAction::Call(prepared) if prepared.workspace_size() > 0 => {
                    Some(self.new_buffer(prepared.workspace_size(), at, at, &step.device))
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
        let mut placed = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            let frees = self.slots_freed_after(at, &step, &ends);
            let UnallocatedStep { node, device, action, inputs, outputs } = step;
            let action = match action {
                UnallocatedAction::Call(prepared) => StepAction::Call(PlannedCall {
                    prepared,
                    inputs: self.operand_locations(&inputs, operand),
                    outputs: self.operand_locations(&outputs, operand),
                    workspace: workspaces[at].map(|need| places[need]),
                }),
                UnallocatedAction::Dispatched(op) => {
                    let inputs = self.value_sources(&inputs, &device)?;
                    StepAction::Dispatched(DispatchedCall {
                        op,
                        constant_inputs: constant_inputs(&inputs, &device),
                        inputs,
                        outputs: outputs.iter().map(|output| self.slot_of(*output)).collect(),
                    })
                }
                UnallocatedAction::View(dims) => match outputs[0].filter(|output| self.is_tensor[*output]) {
                    Some(to) => StepAction::View {
                        from: self.value_source(inputs[0], &device)?,
                        dims,
                        to: self.slot_of(Some(to)).ok_or_else(missing_value)?,
                    },
                    None => continue,
                },
                UnallocatedAction::Copy => StepAction::Copy {
                    from: self.value_source(inputs[0], &device)?,
                    to: self.slot_of(outputs[0]).ok_or_else(missing_value)?,
                },
                UnallocatedAction::Host(op) => StepAction::Host(HostOpCall {
                    op,
                    inputs: self.value_sources(&inputs, &device)?,
                    outputs: outputs.iter().map(|output| self.slot_of(*output)).collect(),
                }),
                UnallocatedAction::ControlFlow => StepAction::ControlFlow(ControlFlowCall {
                    own_inputs: self.graph.nodes[node].inputs.len(),
                    inputs: self.value_sources(&inputs, &device)?,
                    outputs: outputs.iter().map(|output| self.slot_of(*output)).collect(),
                }),
            };
            placed.push(PlanStep { node, device, action, frees });
        }
        let inputs = self.graph.inputs.iter().map(|input| {
            let device = self.plan_values[input.index()].device.clone();
            self.slot_of(Some(input.index())).zip(device)
        });
        let inputs = inputs.collect();
        let main = self.environment.main_device();
        let outputs: Result<Vec<ValueSource>> =
            self.graph.outputs.iter().map(|output| self.value_source(Some(output.index()), main)).collect();
        Ok((placed, arenas, self.slots, inputs, outputs?))
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

    /// Slots that are dead after a step.
    fn slots_freed_after(&self, at: usize, step: &UnallocatedStep, ends: &[usize]) -> Vec<usize> {
        let touched = step.inputs.iter().chain(&step.outputs);
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
/// A bit for each input that is a constant on the device.
fn constant_inputs(inputs: &[Option<ValueSource>], device: &Device) -> u64 {
    let is_constant = |source: &Option<ValueSource>| matches!(source, Some(ValueSource::Constant(tensor)) if tensor.device().is_same_device(device));
    let bits = inputs.iter().take(64).enumerate();
    bits.filter(|(_, source)| is_constant(source)).fold(0, |bits, (index, _)| bits | 1 << index)
}

fn missing_value() -> Error {
    Error::fatal("expected a value that is made before it is read, found one that is not")
}

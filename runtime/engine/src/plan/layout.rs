//! Where the values of a plan lie: in arenas, or as tensors of their own.
//!
//! A value that only kernels read which are ready lies in the arena of its device. What is handed in or out, what is
//! dispatched in the run, and what branches and loops see are tensors, each in a slot.

use oarlock_core::{Device, Error, Result, Tensor};

use super::build::{Draft, DraftWay, Piece};
use super::memory::{self, Need};
use super::step::{Call, Eager, Operand, Source, Step, Work};
use crate::environment::Environment;
use crate::graph::Graph;

/// For each arena its device and its size in bytes.
type Arenas = Vec<(Device, u64)>;
/// An arena and the bytes from its start.
type Place = (usize, u64);
/// Steps, arenas, the count of slots, where inputs go and outputs come from.
type Laid = (Vec<Step>, Arenas, usize, Vec<Option<(usize, Device)>>, Vec<Source>);

/// Where a piece lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// It is constant, or nobody reads it.
    None,
    /// In the memory of a need.
    Arena(usize),
    /// In a slot.
    Slot(usize),
}

pub(super) struct Layout<'a> {
    graph: &'a Graph,
    environment: &'a Environment,
    pieces: &'a [Piece],
    /// Whether a piece must be a tensor of its own.
    is_tensor: Vec<bool>,
    /// The last draft that reads a piece, or a view of it that shares its home.
    last_use: Vec<usize>,
    homes: Vec<Home>,
    needs: Vec<Need>,
    /// The device of each need.
    need_devices: Vec<Device>,
    slots: usize,
}

impl<'a> Layout<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        environment: &'a Environment,
        pieces: &'a [Piece],
        drafts: &[Draft],
    ) -> Self {
        let count = pieces.len();
        let mut layout = Self {
            graph,
            environment,
            pieces,
            is_tensor: vec![environment.runtime.is_watching(); count],
            last_use: vec![0; count],
            homes: vec![Home::None; count],
            needs: Vec::new(),
            need_devices: Vec::new(),
            slots: 0,
        };
        layout.find_tensors(drafts);
        layout.find_last_uses(drafts);
        layout.find_homes(drafts);
        layout
    }

    /// Finds the pieces that must be tensors of their own. What a view shows as a tensor must be one.
    fn find_tensors(&mut self, drafts: &[Draft]) {
        let Self { graph, is_tensor, .. } = self;
        for end in graph.inputs.iter().chain(&graph.outputs) {
            is_tensor[end.index()] = true;
        }
        for draft in drafts {
            if !matches!(draft.way, DraftWay::Call(_) | DraftWay::View(_)) {
                draft
                    .inputs
                    .iter()
                    .chain(&draft.outputs)
                    .flatten()
                    .for_each(|piece| is_tensor[*piece] = true);
            }
        }
        for draft in drafts.iter().rev() {
            if let (DraftWay::View(_), [Some(from)], Some(Some(to))) =
                (&draft.way, &*draft.inputs, draft.outputs.first())
            {
                is_tensor[*from] |= is_tensor[*to];
            }
        }
    }

    /// Finds until when pieces are read. A view that is no tensor keeps what it shows.
    fn find_last_uses(&mut self, drafts: &[Draft]) {
        for output in &self.graph.outputs {
            self.last_use[output.index()] = drafts.len();
        }
        for (at, draft) in drafts.iter().enumerate().rev() {
            let mut until = at;
            if let (DraftWay::View(_), Some(Some(to))) = (&draft.way, draft.outputs.first())
                && !self.is_tensor[*to]
            {
                until = self.last_use[*to].max(at);
            }
            for input in draft.inputs.iter().flatten() {
                self.last_use[*input] = self.last_use[*input].max(until);
            }
        }
    }

    fn find_homes(&mut self, drafts: &[Draft]) {
        for input in &self.graph.inputs {
            self.homes[input.index()] = self.new_slot();
        }
        for (at, draft) in drafts.iter().enumerate() {
            for (index, output) in draft.outputs.iter().enumerate() {
                let Some(output) = *output else { continue };
                self.homes[output] = match (&draft.way, draft.inputs.first()) {
                    _ if self.is_tensor[output] => self.new_slot(),
                    (DraftWay::View(_), Some(Some(from))) if self.homes[*from] != Home::None => {
                        self.homes[*from]
                    }
                    (DraftWay::View(_), _) => self.new_slot(),
                    _ => self.in_arena(at, draft, index, output),
                };
                // A view of a constant is a tensor, as a constant has no home.
                if matches!(draft.way, DraftWay::View(_)) && matches!(self.homes[output], Home::Slot(_)) {
                    self.is_tensor[output] |=
                        draft.inputs[0].is_some_and(|from| self.homes[from] == Home::None);
                }
            }
        }
    }

    fn new_slot(&mut self) -> Home {
        self.slots += 1;
        Home::Slot(self.slots - 1)
    }

    /// Memory for an output of a call: that of an input which nobody reads afterwards, or memory of its own.
    fn in_arena(&mut self, at: usize, draft: &Draft, index: usize, output: usize) -> Home {
        let last = self.last_use[output].max(at);
        let size = self.pieces[output].size_in_bytes(self.graph).unwrap_or(0);
        if let DraftWay::Call(ready) = &draft.way {
            for (position, input) in draft.inputs.iter().enumerate() {
                let Some(input) = *input else { continue };
                let Home::Arena(need) = self.homes[input] else { continue };
                let is_over = self.needs[need].last == at && self.needs[need].size == size;
                if !is_over || !ready.is_in_place(index, position) {
                    continue;
                }
                let others = draft.inputs.iter().flatten();
                if others.filter(|other| self.homes[**other] == Home::Arena(need)).count() == 1 {
                    self.needs[need].last = last;
                    return Home::Arena(need);
                }
            }
        }
        Home::Arena(self.new_need(size, at, last, &draft.device))
    }

    fn new_need(&mut self, size: u64, first: usize, last: usize, device: &Device) -> usize {
        self.needs.push(Need { size, first, last });
        self.need_devices.push(device.clone());
        self.needs.len() - 1
    }

    pub(super) fn finish(mut self, drafts: Vec<Draft>) -> Result<Laid> {
        let workspaces: Vec<Option<usize>> = drafts
            .iter()
            .enumerate()
            .map(|(at, draft)| match &draft.way {
                DraftWay::Call(ready) if ready.workspace() > 0 => {
                    Some(self.new_need(ready.workspace(), at, at, &draft.device))
                }
                _ => None,
            })
            .collect();
        let (arenas, places) = self.place_needs();
        let operand = |home: Home| match home {
            Home::None => Operand::Fixed,
            Home::Slot(slot) => Operand::Slot(slot),
            Home::Arena(need) => Operand::Arena(places[need].0, places[need].1),
        };
        let ends = self.slot_ends();
        let mut steps = Vec::new();
        for (at, draft) in drafts.into_iter().enumerate() {
            let frees = self.freed_after(at, &draft, &ends);
            let Draft { node, device, way, inputs, outputs } = draft;
            let work = match way {
                DraftWay::Call(ready) => Work::Call(Call {
                    ready,
                    inputs: self.operands(&inputs, operand),
                    outputs: self.operands(&outputs, operand),
                    workspace: workspaces[at].map(|need| places[need]),
                }),
                DraftWay::Eager(op) => Work::Eager(Eager {
                    op,
                    inputs: self.sources(&inputs, &device)?,
                    outputs: outputs.iter().map(|output| self.slot(*output)).collect(),
                }),
                DraftWay::View(dims) => match outputs[0].filter(|output| self.is_tensor[*output]) {
                    Some(to) => Work::View {
                        from: self.source(inputs[0], &device)?,
                        dims,
                        to: self.slot(Some(to)).ok_or_else(homeless)?,
                    },
                    None => continue,
                },
                DraftWay::Copy => Work::Copy {
                    from: self.source(inputs[0], &device)?,
                    to: self.slot(outputs[0]).ok_or_else(homeless)?,
                },
                DraftWay::Control(mut control) => {
                    control.connect(
                        self.sources(&inputs, &device)?,
                        outputs.iter().map(|output| self.slot(*output)).collect(),
                    );
                    Work::Control(control)
                }
            };
            steps.push(Step { node, device, work, frees });
        }
        let inputs = self.graph.inputs.iter().map(|input| {
            let device = self.pieces[input.index()].device.clone();
            self.slot(Some(input.index())).zip(device)
        });
        let inputs = inputs.collect();
        let main = self.environment.main_device();
        let outputs: Result<Vec<Source>> =
            self.graph.outputs.iter().map(|output| self.source(Some(output.index()), main)).collect();
        Ok((steps, arenas, self.slots, inputs, outputs?))
    }

    /// The arenas, and for each need its arena and its place there.
    fn place_needs(&self) -> (Arenas, Vec<Place>) {
        let mut arenas: Vec<(Device, u64)> = Vec::new();
        let mut places = vec![(0, 0); self.needs.len()];
        for device in &self.environment.devices {
            let own: Vec<usize> =
                (0..self.needs.len()).filter(|need| self.need_devices[*need].is(device)).collect();
            if own.is_empty() {
                continue;
            }
            let needs: Vec<Need> = own.iter().map(|need| self.needs[*need]).collect();
            let (offsets, total) = memory::place(&needs);
            for (need, offset) in own.into_iter().zip(offsets) {
                places[need] = (arenas.len(), offset);
            }
            arenas.push((device.clone(), total));
        }
        (arenas, places)
    }

    /// When each slot is read last. A view that shares one keeps it for the others that do.
    fn slot_ends(&self) -> Vec<usize> {
        let mut ends = vec![0; self.slots];
        for (home, last_use) in self.homes.iter().zip(&self.last_use) {
            if let Home::Slot(slot) = home {
                ends[*slot] = ends[*slot].max(*last_use);
            }
        }
        ends
    }

    /// The slots of what nobody reads after a draft.
    fn freed_after(&self, at: usize, draft: &Draft, ends: &[usize]) -> Vec<usize> {
        let touched = draft.inputs.iter().chain(&draft.outputs);
        let mut freed: Vec<usize> =
            touched.filter_map(|piece| self.slot(*piece)).filter(|slot| ends[*slot] <= at).collect();
        freed.sort_unstable();
        freed.dedup();
        freed
    }

    fn operands(&self, pieces: &[Option<usize>], operand: impl Fn(Home) -> Operand) -> Vec<Operand> {
        pieces.iter().map(|piece| piece.map_or(Operand::Fixed, |piece| operand(self.homes[piece]))).collect()
    }

    fn slot(&self, piece: Option<usize>) -> Option<usize> {
        if let Home::Slot(slot) = self.homes[piece?] { Some(slot) } else { None }
    }

    fn sources(&self, pieces: &[Option<usize>], device: &Device) -> Result<Vec<Option<Source>>> {
        pieces.iter().map(|piece| piece.map(|piece| self.source(Some(piece), device)).transpose()).collect()
    }

    fn source(&self, piece: Option<usize>, device: &Device) -> Result<Source> {
        let piece = piece.ok_or_else(homeless)?;
        if let Some(slot) = self.slot(Some(piece)) {
            return Ok(Source::Slot(slot));
        }
        let weight = self.graph.value(self.pieces[piece].value).weight.as_ref().ok_or_else(homeless)?;
        let tensor: Tensor = self.environment.constant(weight, device, false)?;
        Ok(Source::Constant(tensor))
    }
}

#[cold]
fn homeless() -> Error {
    Error::fatal("expected a value that is made before it is read, found one that is not")
}

//! The walk through the steps.

use std::borrow::Cow;

use oarlock_sdk::{Error, Result};

use super::cell::Cell;
use super::plan::{Kind, Plan, ReadyWeights};
use super::weights::{Room, Weights};
use super::{Computed, Stored, Wide};
use crate::device::Cpu;
use crate::kernels::elementwise::math;
use crate::kernels::rows::axis::count;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::Number;
use crate::kernels::rows::operands::Operands;
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::room::filled;

/// About as many rows are multiplied with the weights of inputs at once: enough for a good product, and few enough to be
/// still near when their steps come.
const ROWS_AT_ONCE: usize = 256;

/// The sizes that operands have to agree on.
struct Extent {
    steps: usize,
    batches: usize,
    features: usize,
    hidden: usize,
    directions: usize,
    rows: usize,
}

impl Extent {
    fn new<E: Stored>(plan: &Plan<E>, operands: &Operands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (x, w, r) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let ([first, second, features], [_, turned_hidden, hidden]) = (x.dims(), r.dims()) else {
            return Err(Error::invalid_argument(format!(
                "expected `X` and `R` of three dimensions, found {:?} and {:?}",
                x.dims(),
                r.dims()
            )));
        };
        let hidden = if plan.has_bytes { turned_hidden } else { hidden };
        let (steps, batches) = if plan.is_batch_first { (second, first) } else { (first, second) };
        let directions = plan.directions.len();
        count(&[*hidden, *batches, 4 * 2])?;
        let rows = hidden.saturating_mul(plan.kind.gates() as i64);
        let known = directions as i64;
        let turned = |depth: i64| if plan.has_bytes { [known, depth, rows] } else { [known, rows, depth] };
        operands.expect_dims(&w, "W", &turned(*features))?;
        operands.expect_dims(&r, "R", &turned(*hidden))?;
        let state = if plan.is_batch_first { [*batches, known, *hidden] } else { [known, *batches, *hidden] };
        let optional: [(usize, &str, &[i64]); 5] = [
            (3, "B", &[known, rows.saturating_mul(2)]),
            (4, "sequence_lens", &[*batches]),
            (5, "initial_h", &state),
            (6, "initial_c", &state),
            (7, "P", &[known, hidden.saturating_mul(3)]),
        ];
        for (index, name, dims) in optional {
            if let Some(tensor) = call.optional_input(index)? {
                operands.expect_dims(&tensor, name, dims)?;
            }
        }
        let all = if plan.is_batch_first {
            [*batches, *steps, known, *hidden]
        } else {
            [*steps, known, *batches, *hidden]
        };
        for (index, name, dims) in [(0, "Y", &all[..]), (1, "Y_h", &state), (2, "Y_c", &state)] {
            if let Some(tensor) = call.optional_output(index)? {
                operands.expect_dims(&tensor, name, dims)?;
            }
        }
        let size = |dim: &i64| usize::try_from(*dim).unwrap_or(0);
        Ok(Self {
            steps: size(steps),
            batches: size(batches),
            features: size(features),
            hidden: size(hidden),
            directions,
            rows: size(&rows),
        })
    }
}

/// Runs the network.
pub(super) fn run<E: Stored>(cpu: &Cpu, plan: &Plan<E>, operands: &Operands<'_, '_>) -> Result<()> {
    run_with(cpu, plan, &plan.ready, operands)
}

/// The same with weights that were made ready.
pub(super) fn run_with<E: Stored>(
    cpu: &Cpu,
    plan: &Plan<E>,
    ready: &[ReadyWeights<E>],
    operands: &Operands<'_, '_>,
) -> Result<()> {
    let extent = Extent::new(plan, operands)?;
    let widened = |elements| E::floats(cpu.isa(), elements);
    let floats = |index| operands.read(index).map(widened);
    let optional = |index| Ok(operands.read_optional(index)?.map(widened));
    let x = extent.steps_first(floats(0)?, plan.is_batch_first);
    let (bias, peepholes) = (optional(3)?, optional(7)?);
    // Weights of eight bits are all ready.
    let none = || Cow::Borrowed(&[][..]);
    let (w, r) = if plan.has_bytes { (none(), none()) } else { (floats(1)?, floats(2)?) };
    let lengths = lengths(operands, extent.steps)?;
    let initial = (optional(5)?, optional(6)?);
    let mut outputs = Outputs::<E> {
        all: operands.write_optional(0)?,
        state: operands.write_optional(1)?,
        cells: if plan.kind == Kind::Memory { operands.write_optional(2)? } else { None },
        is_batch_first: plan.is_batch_first,
    };
    let Extent { hidden, rows, features, .. } = extent;
    if extent.batches == 0 || hidden == 0 {
        return Ok(());
    }
    for (direction, is_reverse) in plan.directions.iter().enumerate() {
        let ready = ready.get(direction);
        let input = part(&w, direction * rows * features, rows * features);
        let mut start = direction * rows * hidden;
        let mut recurrent = Vec::new();
        for (index, gates) in plan.recurrent_gates().iter().enumerate() {
            let rows = gates * hidden;
            let ready = ready.and_then(|ready| ready.recurrent.get(index).map(|ready| &**ready));
            recurrent.push(Weights::new(part(&r, start, rows * hidden), rows, hidden, ready));
            start += rows * hidden;
        }
        let mut walk = Walk {
            cpu,
            plan,
            extent: &extent,
            lengths: lengths.as_deref(),
            cell: cell(cpu, plan, &extent, direction, bias.as_deref(), peepholes.as_deref()),
            recurrent,
            gates: filled(Wide::<E>::default(), extent.batches * rows)?,
            reset: filled(Wide::<E>::default(), extent.batches * hidden)?,
            state: extent.initial(initial.0.as_deref(), direction, plan.is_batch_first)?,
            cells: extent.initial(initial.1.as_deref(), direction, plan.is_batch_first)?,
            room: Room::default(),
        };
        let input = Weights::new(input, rows, features, ready.and_then(|ready| ready.input.as_deref()));
        walk.all(&x, &input, *is_reverse, |step, state| outputs.write(&extent, direction, step, state))?;
        outputs.finish(&extent, direction, &walk.state, &walk.cells);
    }
    Ok(())
}

/// Some weights, or none where they are all ready.
fn part<C>(all: &[C], start: usize, count: usize) -> &[C] {
    all.get(start..start + count).unwrap_or_default()
}

/// How long each sequence is.
fn lengths(operands: &Operands<'_, '_>, steps: usize) -> Result<Option<Vec<usize>>> {
    let Some(lengths) = operands.read_optional::<i32>(4)? else { return Ok(None) };
    let length = |length: &i32| {
        let known = usize::try_from(*length).ok().filter(|length| *length <= steps);
        known.ok_or_else(|| {
            Error::out_of_range(format!("expected `sequence_lens` from 0 to {steps}, found {length}"))
        })
    };
    lengths.iter().map(length).collect::<Result<_>>().map(Some)
}

fn cell<'a, E: Stored>(
    cpu: &Cpu,
    plan: &'a Plan<E>,
    extent: &Extent,
    direction: usize,
    bias: Option<&[Wide<E>]>,
    peepholes: Option<&'a [Wide<E>]>,
) -> Cell<'a, Wide<E>> {
    let Extent { hidden, rows, .. } = *extent;
    let mut sums = vec![Wide::<E>::default(); rows];
    let mut reset_bias = vec![Wide::<E>::default(); if plan.kind == Kind::Gated { hidden } else { 0 }];
    if let Some(bias) = bias {
        let (of_input, of_state) = bias[direction * 2 * rows..][..2 * rows].split_at(rows);
        let shared = if plan.kind == Kind::Gated && plan.resets_product { 2 * hidden } else { rows };
        sums.copy_from_slice(of_input);
        sums[..shared].iter_mut().zip(of_state).for_each(|(sum, bias)| *sum = *sum + *bias);
        reset_bias.iter_mut().zip(&of_state[shared..]).for_each(|(own, bias)| *own = *bias);
    }
    let peepholes = peepholes.map(|all| {
        let of_gate = |gate: usize| &all[(direction * 3 + gate) * hidden..][..hidden];
        [of_gate(0), of_gate(1), of_gate(2)]
    });
    Cell {
        isa: cpu.isa(),
        hidden,
        bias: sums,
        reset_bias,
        peepholes,
        functions: plan.functions(direction),
        clip: plan.clip.map(<Wide<E> as math::Float>::of),
        couples_gates: plan.couples_gates,
    }
}

impl Extent {
    /// The inputs of all sequences at a step, one step after the other.
    fn steps_first<'a, C: Computed>(&self, x: Cow<'a, [C]>, is_batch_first: bool) -> Cow<'a, [C]> {
        let &Self { steps, batches, features, .. } = self;
        if !is_batch_first || steps == 1 || batches == 1 {
            return x;
        }
        let mut turned = Vec::with_capacity(x.len());
        for step in 0..steps {
            for batch in 0..batches {
                turned.extend_from_slice(&x[(batch * steps + step) * features..][..features]);
            }
        }
        turned.into()
    }

    /// Which vector of a state is that of a sequence.
    fn place(&self, direction: usize, batch: usize, is_batch_first: bool) -> usize {
        if is_batch_first { batch * self.directions + direction } else { direction * self.batches + batch }
    }

    /// The states of all sequences before the first step.
    fn initial<C: Computed>(
        &self,
        given: Option<&[C]>,
        direction: usize,
        is_batch_first: bool,
    ) -> Result<Vec<C>> {
        let hidden = self.hidden;
        let Some(given) = given else { return filled(C::default(), self.batches * hidden) };
        let of_batch = |batch| &given[self.place(direction, batch, is_batch_first) * hidden..][..hidden];
        Ok((0..self.batches).flat_map(of_batch).copied().collect())
    }
}

/// One direction's way through the steps.
struct Walk<'a, E: Stored> {
    cpu: &'a Cpu,
    plan: &'a Plan<E>,
    extent: &'a Extent,
    lengths: Option<&'a [usize]>,
    cell: Cell<'a, Wide<E>>,
    recurrent: Vec<Weights<'a, Wide<E>>>,
    /// What the products with the state give, and what becomes of it.
    gates: Vec<Wide<E>>,
    reset: Vec<Wide<E>>,
    state: Vec<Wide<E>>,
    cells: Vec<Wide<E>>,
    room: Room,
}

impl<E: Stored> Walk<'_, E> {
    /// Goes through all steps and hands out the state after each.
    fn all(
        &mut self,
        x: &[Wide<E>],
        weights: &Weights<'_, Wide<E>>,
        is_reverse: bool,
        mut each: impl FnMut(usize, StatesAt<'_, E>),
    ) -> Result<()> {
        let &Extent { steps, batches, features, rows, .. } = self.extent;
        // What is rounded has one scale for all steps.
        let at_once = if self.plan.has_bytes { steps.max(1) } else { (ROWS_AT_ONCE / batches).max(1) };
        let mut products = filled(Wide::<E>::default(), at_once.min(steps) * batches * rows)?;
        let blocks = steps.div_ceil(at_once);
        let in_order = |index: usize, count: usize| if is_reverse { count - 1 - index } else { index };
        for block in 0..blocks {
            let start = in_order(block, blocks) * at_once;
            let count = at_once.min(steps - start);
            let x = &x[start * batches * features..][..count * batches * features];
            let products = &mut products[..count * batches * rows];
            weights.multiply(self.cpu, x, products, &mut self.room)?;
            for index in 0..count {
                let index = in_order(index, count);
                self.step(start + index, &products[index * batches * rows..][..batches * rows])?;
                each(start + index, StatesAt { states: &self.state, lengths: self.lengths });
            }
        }
        Ok(())
    }

    /// Goes one step: `input` holds the products of all sequences' inputs.
    fn step(&mut self, step: usize, input: &[Wide<E>]) -> Result<()> {
        let &Extent { batches, hidden, rows, .. } = self.extent;
        let Self { cpu, cell, lengths, gates, reset, state, cells, recurrent, room, .. } = self;
        let goes_on = |batch: usize| lengths.is_none_or(|lengths| step < lengths[batch]);
        let input = |batch: usize| &input[batch * rows..][..rows];
        let grain = grain(rows);
        match (self.plan.kind, &recurrent[..]) {
            (Kind::Memory, [weights, ..]) => {
                weights.multiply(cpu, state, gates, room)?;
                let outputs = (Rows::new(gates, rows), Rows::new(state, hidden), Rows::new(cells, hidden));
                in_parallel(cpu, batches, grain, outputs, |first, (gates, state, cells)| {
                    let states = state.chunks_mut(hidden).zip(cells.chunks_mut(hidden));
                    for (index, (gates, (state, cells))) in gates.chunks_mut(rows).zip(states).enumerate() {
                        if goes_on(first + index) {
                            cell.memory(input(first + index), gates, state, cells);
                        }
                    }
                });
            }
            (Kind::Gated, [weights, of_reset]) => {
                let (gates, new) = gates.split_at_mut(2 * batches * hidden);
                weights.multiply(cpu, state, gates, room)?;
                for batch in 0..batches {
                    let own = batch * hidden..(batch + 1) * hidden;
                    let gates = &mut gates[2 * own.start..2 * own.end];
                    cell.update_and_reset(input(batch), gates, &state[own.clone()], &mut reset[own]);
                }
                of_reset.multiply(cpu, reset, new, room)?;
                for batch in (0..batches).filter(|batch| goes_on(*batch)) {
                    let own = batch * hidden..(batch + 1) * hidden;
                    let update = &gates[2 * own.start..][..hidden];
                    cell.update(input(batch), update, &mut new[own.clone()], &mut state[own]);
                }
            }
            (kind, [weights, ..]) => {
                weights.multiply(cpu, state, gates, room)?;
                let outputs = (Rows::new(gates, rows), Rows::new(state, hidden));
                in_parallel(cpu, batches, grain, outputs, |first, (gates, state)| {
                    let both = gates.chunks_mut(rows).zip(state.chunks_mut(hidden));
                    for (index, (gates, state)) in
                        both.enumerate().filter(|(index, _)| goes_on(first + index))
                    {
                        match kind {
                            Kind::Plain => cell.plain(input(first + index), gates, state),
                            _ => cell.reset_product(input(first + index), gates, state),
                        }
                    }
                });
            }
            (_, []) => {}
        }
        Ok(())
    }
}

/// The states after a step, with the lengths of the sequences they are of.
struct StatesAt<'a, E: Stored> {
    states: &'a [Wide<E>],
    lengths: Option<&'a [usize]>,
}

/// Where results go.
struct Outputs<'a, E> {
    all: Option<&'a mut [E]>,
    state: Option<&'a mut [E]>,
    cells: Option<&'a mut [E]>,
    is_batch_first: bool,
}

impl<E: Stored> Outputs<'_, E> {
    /// Writes the states after a step; zeros where a sequence has ended.
    fn write(&mut self, extent: &Extent, direction: usize, step: usize, at: StatesAt<'_, E>) {
        let Some(all) = &mut self.all else { return };
        let &Extent { steps, batches, hidden, directions, .. } = extent;
        for (batch, state) in at.states.chunks(hidden).enumerate() {
            let place = match self.is_batch_first {
                true => (batch * steps + step) * directions + direction,
                false => (step * directions + direction) * batches + batch,
            };
            let out = &mut all[place * hidden..][..hidden];
            if at.lengths.is_none_or(|lengths| step < lengths[batch]) {
                store(out, state);
            } else {
                out.fill(E::of_float(Wide::<E>::default()));
            }
        }
    }

    /// Writes the states after the last step.
    fn finish(&mut self, extent: &Extent, direction: usize, state: &[Wide<E>], cells: &[Wide<E>]) {
        let hidden = extent.hidden;
        for (output, values) in [(&mut self.state, state), (&mut self.cells, cells)] {
            let Some(output) = output else { continue };
            for (batch, values) in values.chunks(hidden).enumerate() {
                let place = extent.place(direction, batch, self.is_batch_first);
                store(&mut output[place * hidden..][..hidden], values);
            }
        }
    }
}

fn store<E: Number>(out: &mut [E], values: &[E::Float]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = E::of_float(*value));
}

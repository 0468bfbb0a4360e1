//! The loop over the steps.

#![expect(unsafe_code, reason = "directions write disjoint parts of scratch memory")]

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::KernelOperands;
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_gemm::{DisjointSlice, ScratchBuffer};
use oarlock_sdk::{KernelCall, PluginError, Result};

use super::cell::RecurrentCell;
use super::outputs::{RecurrentOutputs, StepStates};
use super::plan::{PreparedWeights, RecurrentCellKind, RecurrentPlan};
use super::recurrent_shape::RecurrentShape;
use super::weights::{GateWeights, ReusableScratch};
use super::{FloatOf, RecurrentElement, RecurrentFloat};

/// The approximate number of rows that are multiplied with the input weights at once: enough for an efficient product, and few
/// enough that the results are still in cache when their steps run.
const ROWS_AT_ONCE: usize = 256;
/// The multiplications of a step up to which a direction gains little from several threads, which would meet in each step.
const ONE_THREAD_STEP_WORK: usize = 1 << 21;
/// The bytes that aligning a buffer may take.
const CACHE_LINE: u64 = 64;

/// The number of steps whose inputs are multiplied at once.
fn steps_at_once(steps: usize, batches: usize, has_bytes: bool) -> usize {
    // Quantized inputs share one scale over all steps.
    let most = if has_bytes { steps } else { ROWS_AT_ONCE / batches.max(1) };
    most.clamp(1, steps.max(1))
}

/// True if all directions run at the same time, each on one thread.
fn run_at_once(cpu: &Cpu, directions: usize, step_work: usize) -> bool {
    let threads = cpu.worker_count();
    directions > 1 && threads > 1 && (threads <= directions || step_work <= ONE_THREAD_STEP_WORK)
}

/// The bytes of the products of inputs and input weights.
pub(super) fn product_bytes<C>(cpu: &Cpu, call: &KernelCall<'_>, has_bytes: bool) -> Result<u64> {
    let (x, w) = (call.input(0)?, call.input(1)?);
    let ([first, second, _], [directions, rows, columns]) = (x.dims(), w.dims()) else {
        // The run reports what is wrong with the shapes.
        return Ok(0);
    };
    let is_batch_first = call.int_attribute("layout")?.unwrap_or(0) != 0;
    let (steps, batches) = if is_batch_first { (second, first) } else { (first, second) };
    let rows = if has_bytes { columns } else { rows };
    let [steps, batches, rows, directions] =
        [steps, batches, rows, directions].map(|size| usize::try_from(*size).unwrap_or(0));
    let hidden =
        usize::try_from(call.input(2)?.dims().get(if has_bytes { 1 } else { 2 }).copied().unwrap_or(0));
    let step_work = batches.saturating_mul(rows).saturating_mul(hidden.unwrap_or(0));
    let buffers = if run_at_once(cpu, directions, step_work) { directions } else { 1 };
    let sizes = [buffers, steps_at_once(steps, batches, has_bytes), batches, rows, size_of::<C>()];
    Ok(sizes.into_iter().map(|size| size as u64).fold(1, u64::saturating_mul).saturating_add(CACHE_LINE))
}

pub(super) fn run_recurrent<E: RecurrentElement>(
    cpu: &Cpu,
    plan: &RecurrentPlan<FloatOf<E>>,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    run_with_weights::<E>(cpu, plan, &plan.ready, operands)
}

/// Like [`run_recurrent`], with these prepared weights.
pub(super) fn run_with_weights<E: RecurrentElement>(
    cpu: &Cpu,
    plan: &RecurrentPlan<FloatOf<E>>,
    ready: &[PreparedWeights<FloatOf<E>>],
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let sizes = RecurrentShape::new(plan, operands)?;
    let widened = |elements| E::to_floats(cpu.isa(), elements);
    let floats = |index| operands.read_input(index).map(widened);
    let optional = |index| Ok(operands.read_optional_input(index)?.map(widened));
    let x = sizes.steps_first(floats(0)?, plan.is_batch_first);
    let (bias, peepholes) = (optional(3)?, optional(7)?);
    // 8-bit weights are always prepared.
    let none = || Cow::Borrowed(&[][..]);
    let (w, r) = if plan.has_bytes { (none(), none()) } else { (floats(1)?, floats(2)?) };
    // Lengths are checked before anything is written.
    let lengths = sequence_lengths(operands, sizes.steps)?;
    let initial = (optional(5)?, optional(6)?);
    let output = |index| Ok(operands.write_optional_output(index)?.map(DisjointSlice::new));
    let outputs = RecurrentOutputs::<E> {
        all: output(0)?,
        state: output(1)?,
        cells: if plan.kind == RecurrentCellKind::Memory { output(2)? } else { None },
        is_batch_first: plan.is_batch_first,
    };
    let RecurrentShape { hidden, rows, features, .. } = sizes;
    if sizes.batches == 0 || hidden == 0 {
        return Ok(());
    }
    let run_direction = |direction: usize, products: &mut [FloatOf<E>]| -> Result<()> {
        let ready = ready.get(direction);
        let input = weight_range(&w, direction * rows * features, rows * features);
        // Some cells need several products per step: a GRU resets the state before it multiplies the last gate.
        let mut start = direction * rows * hidden;
        let mut recurrent = Vec::new();
        for (index, gates) in plan.recurrent_gates().iter().enumerate() {
            let rows = gates * hidden;
            let ready = ready.and_then(|ready| ready.recurrent.get(index).map(|ready| &**ready));
            recurrent.push(GateWeights::new(weight_range(&r, start, rows * hidden), rows, hidden, ready));
            start += rows * hidden;
        }
        let mut walk = DirectionWalk {
            cpu,
            plan,
            sizes: &sizes,
            lengths: lengths.as_deref(),
            cell: make_cell(cpu, plan, &sizes, direction, bias.as_deref(), peepholes.as_deref()),
            recurrent,
            gates: try_filled_vec(FloatOf::<E>::default(), sizes.batches * rows)?,
            reset: try_filled_vec(FloatOf::<E>::default(), sizes.batches * hidden)?,
            state: sizes.initial_states(initial.0.as_deref(), direction, plan.is_batch_first)?,
            cells: sizes.initial_states(initial.1.as_deref(), direction, plan.is_batch_first)?,
            scratch: ReusableScratch::default(),
        };
        let input = GateWeights::new(input, rows, features, ready.and_then(|ready| ready.input.as_deref()));
        walk.walk_steps(&x, &input, plan.directions[direction], products, &mut |step, state| {
            outputs.write_step(&sizes, direction, step, state);
        })?;
        outputs.write_final(&sizes, direction, &walk.state, &walk.cells);
        Ok(())
    };
    let at_once = steps_at_once(sizes.steps, sizes.batches, plan.has_bytes);
    let product_count = at_once * sizes.batches * rows;
    let mut scratch = ScratchBuffer::from_call(operands.call());
    if !run_at_once(cpu, sizes.directions, sizes.batches * rows * hidden) {
        // One after the other: each uses all threads.
        let products = scratch.allocate_elements(product_count);
        return (0..sizes.directions).try_for_each(|direction| run_direction(direction, products));
    }
    let products = DisjointSlice::new(scratch.allocate_elements(sizes.directions * product_count));
    let failure = Mutex::new(None);
    cpu.parallel_for(sizes.directions, 1, |begin, end| {
        for direction in begin..end {
            // SAFETY: each direction has its own part, and is run once.
            let part =
                unsafe { products.range_mut(direction * product_count..(direction + 1) * product_count) };
            if let Err(error) = run_direction(direction, part) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// A range of weights, or an empty slice if only prepared weights exist.
fn weight_range<C>(all: &[C], start: usize, count: usize) -> &[C] {
    all.get(start..start + count).unwrap_or_default()
}

/// The length of each sequence.
fn sequence_lengths(operands: &KernelOperands<'_, '_>, steps: usize) -> Result<Option<Vec<usize>>> {
    let Some(lengths) = operands.read_optional_input::<i32>(4)? else { return Ok(None) };
    let length = |length: &i32| {
        let known = usize::try_from(*length).ok().filter(|length| *length <= steps);
        known.ok_or_else(|| {
            PluginError::out_of_range(format!("expected `sequence_lens` from 0 to {steps}, found {length}"))
        })
    };
    lengths.iter().map(length).collect::<Result<_>>().map(Some)
}

fn make_cell<'a, C: RecurrentFloat>(
    cpu: &Cpu,
    plan: &'a RecurrentPlan<C>,
    sizes: &RecurrentShape,
    direction: usize,
    bias: Option<&[C]>,
    peepholes: Option<&'a [C]>,
) -> RecurrentCell<'a, C> {
    let RecurrentShape { hidden, rows, .. } = *sizes;
    let mut sums = vec![C::default(); rows];
    let mut reset_bias = vec![C::default(); if plan.kind == RecurrentCellKind::Gated { hidden } else { 0 }];
    if let Some(bias) = bias {
        let (of_input, of_state) = bias[direction * 2 * rows..][..2 * rows].split_at(rows);
        let shared =
            // If the reset gate scales the product (`linear_before_reset`), it also scales the bias of the state, which must then
            // stay separate. Otherwise both biases are added once, here.
            if plan.kind == RecurrentCellKind::Gated && plan.resets_product { 2 * hidden } else { rows };
        sums.copy_from_slice(of_input);
        sums[..shared].iter_mut().zip(of_state).for_each(|(sum, bias)| *sum = *sum + *bias);
        reset_bias.iter_mut().zip(&of_state[shared..]).for_each(|(own, bias)| *own = *bias);
    }
    let peepholes = peepholes.map(|all| {
        let of_gate = |gate: usize| &all[(direction * 3 + gate) * hidden..][..hidden];
        [of_gate(0), of_gate(1), of_gate(2)]
    });
    RecurrentCell {
        isa: cpu.isa(),
        hidden,
        bias: sums,
        reset_bias,
        peepholes,
        functions: plan.direction_functions(direction),
        clip: plan.clip.map(C::from_f64),
        couples_gates: plan.couples_gates,
    }
}

/// The loop over the steps of one direction.
struct DirectionWalk<'a, C: RecurrentFloat> {
    cpu: &'a Cpu,
    plan: &'a RecurrentPlan<C>,
    sizes: &'a RecurrentShape,
    lengths: Option<&'a [usize]>,
    cell: RecurrentCell<'a, C>,
    recurrent: Vec<GateWeights<'a, C>>,
    /// The products with the state, which become gates in place.
    gates: Vec<C>,
    reset: Vec<C>,
    state: Vec<C>,
    cells: Vec<C>,
    scratch: ReusableScratch,
}

impl<C: RecurrentFloat> DirectionWalk<'_, C> {
    /// Runs all steps, and calls `each` with the states after each step.
    fn walk_steps(
        &mut self,
        x: &[C],
        weights: &GateWeights<'_, C>,
        is_reverse: bool,
        products: &mut [C],
        each: &mut dyn FnMut(usize, StepStates<'_, C>),
    ) -> Result<()> {
        let &RecurrentShape { steps, batches, features, rows, .. } = self.sizes;
        // All inputs are known in advance, so their products are computed for many steps at once; only products with the state
        // depend on earlier steps.
        let at_once = steps_at_once(steps, batches, self.plan.has_bytes);
        let blocks = steps.div_ceil(at_once);
        // In reverse, the blocks and the steps within them run from the end.
        let in_order = |index: usize, count: usize| if is_reverse { count - 1 - index } else { index };
        for block in 0..blocks {
            let start = in_order(block, blocks) * at_once;
            let count = at_once.min(steps - start);
            let x = &x[start * batches * features..][..count * batches * features];
            let products = &mut products[..count * batches * rows];
            weights.multiply_rows(self.cpu, x, products, &mut self.scratch)?;
            for index in 0..count {
                let index = in_order(index, count);
                self.run_step(start + index, &products[index * batches * rows..][..batches * rows])?;
                each(start + index, StepStates { states: &self.state, lengths: self.lengths });
            }
        }
        Ok(())
    }

    /// Runs one step; `input` has the input products of all sequences.
    fn run_step(&mut self, step: usize, input: &[C]) -> Result<()> {
        let &RecurrentShape { batches, hidden, rows, .. } = self.sizes;
        let Self { cpu, cell, lengths, gates, reset, state, cells, recurrent, scratch, .. } = self;
        scratch.is_backwards = step % 2 == 1;
        let goes_on = |batch: usize| lengths.is_none_or(|lengths| step < lengths[batch]);
        // The input products of a sequence, one per gate element.
        let input = |batch: usize| &input[batch * rows..][..rows];
        let grain = grain_for(rows);
        match (self.plan.kind, &recurrent[..]) {
            (RecurrentCellKind::Memory, [weights, ..]) => {
                weights.multiply_rows(cpu, state, gates, scratch)?;
                let outputs = (
                    OutputRows::new(gates, rows),
                    OutputRows::new(state, hidden),
                    OutputRows::new(cells, hidden),
                );
                parallel_for_parts(cpu, batches, grain, outputs, |first, (gates, state, cells)| {
                    let states = state.chunks_mut(hidden).zip(cells.chunks_mut(hidden));
                    for (index, (gates, (state, cells))) in gates.chunks_mut(rows).zip(states).enumerate() {
                        // A sequence that has ended keeps its final state.
                        if goes_on(first + index) {
                            cell.step_lstm(input(first + index), gates, state, cells);
                        }
                    }
                });
            }
            (RecurrentCellKind::Gated, [weights, of_reset]) => {
                // The update and reset gates come first, since the product for the new state needs the reset state.
                // Two products fill separate parts of the buffer, so the gates of a sequence are not contiguous with its new state.
                let (gates, new) = gates.split_at_mut(2 * batches * hidden);
                weights.multiply_rows(cpu, state, gates, scratch)?;
                for batch in 0..batches {
                    let own = batch * hidden..(batch + 1) * hidden;
                    let gates = &mut gates[2 * own.start..2 * own.end];
                    cell.step_gru_gates(input(batch), gates, &state[own.clone()], &mut reset[own]);
                }
                of_reset.multiply_rows(cpu, reset, new, scratch)?;
                for batch in (0..batches).filter(|batch| goes_on(*batch)) {
                    let own = batch * hidden..(batch + 1) * hidden;
                    let update = &gates[2 * own.start..][..hidden];
                    cell.step_gru(input(batch), update, &mut new[own.clone()], &mut state[own]);
                }
            }
            (kind, [weights, ..]) => {
                weights.multiply_rows(cpu, state, gates, scratch)?;
                let outputs = (OutputRows::new(gates, rows), OutputRows::new(state, hidden));
                parallel_for_parts(cpu, batches, grain, outputs, |first, (gates, state)| {
                    let both = gates.chunks_mut(rows).zip(state.chunks_mut(hidden));
                    for (index, (gates, state)) in
                        both.enumerate().filter(|(index, _)| goes_on(first + index))
                    {
                        match kind {
                            RecurrentCellKind::Plain => cell.step_rnn(input(first + index), gates, state),
                            _ => cell.step_gru_reset_product(input(first + index), gates, state),
                        }
                    }
                });
            }
            // Every kind has at least one product.
            (_, []) => {}
        }
        Ok(())
    }
}

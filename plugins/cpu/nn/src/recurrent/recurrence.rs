//! The loop over the steps.

use std::borrow::Cow;

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::KernelOperands;
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{PluginError, Result};

use super::cell::RecurrentCell;
use super::plan::{PreparedWeights, RecurrentCellKind, RecurrentPlan};
use super::weights::{GateWeights, ReusableScratch};
use super::{FloatOf, RecurrentElement, RecurrentFloat};

/// The approximate number of rows that are multiplied with the input weights at once: enough for an efficient product, and few
/// enough that the results are still in cache when their steps run.
const ROWS_AT_ONCE: usize = 256;

/// The sizes on which the operands agree.
struct RecurrentShape {
    steps: usize,
    batches: usize,
    features: usize,
    hidden: usize,
    directions: usize,
    rows: usize,
}

impl RecurrentShape {
    fn new<E: RecurrentElement>(plan: &RecurrentPlan<E>, operands: &KernelOperands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (x, w, r) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let ([first, second, features], [_, transposed_hidden, hidden]) = (x.dims(), r.dims()) else {
            return Err(PluginError::invalid_argument(format!(
                "expected `X` and `R` of three dimensions, found {:?} and {:?}",
                x.dims(),
                r.dims()
            )));
        };
        // 8-bit weights are stored transposed, as onnxruntime defines `DynamicQuantizeLSTM`.
        let hidden = if plan.has_bytes { transposed_hidden } else { hidden };
        let (steps, batches) = if plan.is_batch_first { (second, first) } else { (first, second) };
        let directions = plan.directions.len();
        // Checks the size of the largest buffer below, so that products of these sizes cannot overflow later.
        element_count(&[*hidden, *batches, 4 * 2])?;
        let rows = hidden.saturating_mul(plan.kind.gate_count() as i64);
        let known = directions as i64;
        let transposed =
            |depth: i64| if plan.has_bytes { [known, depth, rows] } else { [known, rows, depth] };
        operands.expect_dims(&w, "W", &transposed(*features))?;
        operands.expect_dims(&r, "R", &transposed(*hidden))?;
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

pub(super) fn run_recurrent<E: RecurrentElement>(
    cpu: &Cpu,
    plan: &RecurrentPlan<E>,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    run_with_weights(cpu, plan, &plan.ready, operands)
}

/// Like [`run_recurrent`], with these prepared weights.
pub(super) fn run_with_weights<E: RecurrentElement>(
    cpu: &Cpu,
    plan: &RecurrentPlan<E>,
    ready: &[PreparedWeights<E>],
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
    let mut outputs = RecurrentOutputs::<E> {
        all: operands.write_optional_output(0)?,
        state: operands.write_optional_output(1)?,
        cells: if plan.kind == RecurrentCellKind::Memory { operands.write_optional_output(2)? } else { None },
        is_batch_first: plan.is_batch_first,
    };
    let RecurrentShape { hidden, rows, features, .. } = sizes;
    if sizes.batches == 0 || hidden == 0 {
        return Ok(());
    }
    // Directions run one after the other: each uses all threads, and both write parts of the same output rows.
    for (direction, is_reverse) in plan.directions.iter().enumerate() {
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
        walk.walk_steps(&x, &input, *is_reverse, |step, state| {
            outputs.write_step(&sizes, direction, step, state);
        })?;
        outputs.write_final(&sizes, direction, &walk.state, &walk.cells);
    }
    Ok(())
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

fn make_cell<'a, E: RecurrentElement>(
    cpu: &Cpu,
    plan: &'a RecurrentPlan<E>,
    sizes: &RecurrentShape,
    direction: usize,
    bias: Option<&[FloatOf<E>]>,
    peepholes: Option<&'a [FloatOf<E>]>,
) -> RecurrentCell<'a, FloatOf<E>> {
    let RecurrentShape { hidden, rows, .. } = *sizes;
    let mut sums = vec![FloatOf::<E>::default(); rows];
    let mut reset_bias =
        vec![FloatOf::<E>::default(); if plan.kind == RecurrentCellKind::Gated { hidden } else { 0 }];
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
        clip: plan.clip.map(<FloatOf<E> as math::MathFloat>::from_f64),
        couples_gates: plan.couples_gates,
    }
}

impl RecurrentShape {
    /// The inputs of all sequences, transposed to have the steps first.
    fn steps_first<'a, C: RecurrentFloat>(&self, x: Cow<'a, [C]>, is_batch_first: bool) -> Cow<'a, [C]> {
        let &Self { steps, batches, features, .. } = self;
        // With one step or one sequence, both layouts have the same numbers in the same order.
        if !is_batch_first || steps == 1 || batches == 1 {
            return x;
        }
        let mut transposed = Vec::with_capacity(x.len());
        for step in 0..steps {
            for batch in 0..batches {
                transposed.extend_from_slice(&x[(batch * steps + step) * features..][..features]);
            }
        }
        transposed.into()
    }

    /// The index of a sequence's vector in a state.
    fn state_index(&self, direction: usize, batch: usize, is_batch_first: bool) -> usize {
        if is_batch_first { batch * self.directions + direction } else { direction * self.batches + batch }
    }

    /// The initial states of all sequences.
    fn initial_states<C: RecurrentFloat>(
        &self,
        given: Option<&[C]>,
        direction: usize,
        is_batch_first: bool,
    ) -> Result<Vec<C>> {
        let hidden = self.hidden;
        let Some(given) = given else { return try_filled_vec(C::default(), self.batches * hidden) };
        let of_batch =
            |batch| &given[self.state_index(direction, batch, is_batch_first) * hidden..][..hidden];
        Ok((0..self.batches).flat_map(of_batch).copied().collect())
    }
}

/// The loop over the steps of one direction.
struct DirectionWalk<'a, E: RecurrentElement> {
    cpu: &'a Cpu,
    plan: &'a RecurrentPlan<E>,
    sizes: &'a RecurrentShape,
    lengths: Option<&'a [usize]>,
    cell: RecurrentCell<'a, FloatOf<E>>,
    recurrent: Vec<GateWeights<'a, FloatOf<E>>>,
    /// The products with the state, which become gates in place.
    gates: Vec<FloatOf<E>>,
    reset: Vec<FloatOf<E>>,
    state: Vec<FloatOf<E>>,
    cells: Vec<FloatOf<E>>,
    scratch: ReusableScratch,
}

impl<E: RecurrentElement> DirectionWalk<'_, E> {
    /// Runs all steps, and calls `each` with the states after each step.
    fn walk_steps(
        &mut self,
        x: &[FloatOf<E>],
        weights: &GateWeights<'_, FloatOf<E>>,
        is_reverse: bool,
        mut each: impl FnMut(usize, StepStates<'_, E>),
    ) -> Result<()> {
        let &RecurrentShape { steps, batches, features, rows, .. } = self.sizes;
        // Quantized inputs share one scale over all steps, so they are multiplied at once.
        let at_once = if self.plan.has_bytes { steps.max(1) } else { (ROWS_AT_ONCE / batches).max(1) };
        // All inputs are known in advance, so their products are computed for many steps at once; only products with the state
        // depend on earlier steps.
        let mut products = try_filled_vec(FloatOf::<E>::default(), at_once.min(steps) * batches * rows)?;
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
    fn run_step(&mut self, step: usize, input: &[FloatOf<E>]) -> Result<()> {
        let &RecurrentShape { batches, hidden, rows, .. } = self.sizes;
        let Self { cpu, cell, lengths, gates, reset, state, cells, recurrent, scratch, .. } = self;
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

/// The states after a step, with the lengths of their sequences.
struct StepStates<'a, E: RecurrentElement> {
    states: &'a [FloatOf<E>],
    lengths: Option<&'a [usize]>,
}

struct RecurrentOutputs<'a, E> {
    all: Option<&'a mut [E]>,
    state: Option<&'a mut [E]>,
    cells: Option<&'a mut [E]>,
    is_batch_first: bool,
}

impl<E: RecurrentElement> RecurrentOutputs<'_, E> {
    /// Stores the states after a step; zeros for sequences that have ended.
    fn write_step(&mut self, sizes: &RecurrentShape, direction: usize, step: usize, at: StepStates<'_, E>) {
        let Some(all) = &mut self.all else { return };
        let &RecurrentShape { steps, batches, hidden, directions, .. } = sizes;
        for (batch, state) in at.states.chunks(hidden).enumerate() {
            // With `layout` 1, the directions come after the steps.
            let place = match self.is_batch_first {
                true => (batch * steps + step) * directions + direction,
                false => (step * directions + direction) * batches + batch,
            };
            let out = &mut all[place * hidden..][..hidden];
            if at.lengths.is_none_or(|lengths| step < lengths[batch]) {
                store_values(out, state);
            } else {
                // The output of a sequence that has ended is 0, unlike its state.
                out.fill(E::from_float(FloatOf::<E>::default()));
            }
        }
    }

    /// Stores the states after the last step.
    fn write_final(
        &mut self,
        sizes: &RecurrentShape,
        direction: usize,
        state: &[FloatOf<E>],
        cells: &[FloatOf<E>],
    ) {
        let hidden = sizes.hidden;
        for (output, values) in [(&mut self.state, state), (&mut self.cells, cells)] {
            let Some(output) = output else { continue };
            for (batch, values) in values.chunks(hidden).enumerate() {
                let place = sizes.state_index(direction, batch, self.is_batch_first);
                // The state is kept in the compute type between steps and rounded only here.
                store_values(&mut output[place * hidden..][..hidden], values);
            }
        }
    }
}

fn store_values<E: ComputeElement>(out: &mut [E], values: &[E::Float]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = E::from_float(*value));
}

//! The outputs of a recurrent network.

#![expect(unsafe_code, reason = "directions write disjoint parts of the same outputs")]

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_gemm::DisjointSlice;

use super::recurrent_shape::RecurrentShape;
use super::{FloatOf, RecurrentElement};

/// The states after a step, with the lengths of their sequences.
pub(super) struct StepStates<'a, C> {
    pub(super) states: &'a [C],
    pub(super) lengths: Option<&'a [usize]>,
}

/// The outputs, which the directions write at the same time.
pub(super) struct RecurrentOutputs<'a, E> {
    pub(super) all: Option<DisjointSlice<'a, E>>,
    pub(super) state: Option<DisjointSlice<'a, E>>,
    pub(super) cells: Option<DisjointSlice<'a, E>>,
    pub(super) is_batch_first: bool,
}

impl<E: RecurrentElement> RecurrentOutputs<'_, E> {
    /// Stores the states of a direction after a step; zeros for sequences that have ended.
    pub(super) fn write_step(
        &self,
        sizes: &RecurrentShape,
        direction: usize,
        step: usize,
        at: StepStates<'_, FloatOf<E>>,
    ) {
        let Some(all) = &self.all else { return };
        let &RecurrentShape { steps, batches, hidden, directions, .. } = sizes;
        for (batch, state) in at.states.chunks(hidden).enumerate() {
            // With `layout` 1, the directions come after the steps.
            let place = match self.is_batch_first {
                true => (batch * steps + step) * directions + direction,
                false => (step * directions + direction) * batches + batch,
            };
            // SAFETY: each place belongs to one direction, which one thread computes.
            let out = unsafe { all.range_mut(place * hidden..(place + 1) * hidden) };
            if at.lengths.is_none_or(|lengths| step < lengths[batch]) {
                store_values(out, state);
            } else {
                // The output of a sequence that has ended is 0, unlike its state.
                out.fill(E::from_float(FloatOf::<E>::default()));
            }
        }
    }

    /// Stores the states of a direction after the last step.
    pub(super) fn write_final(
        &self,
        sizes: &RecurrentShape,
        direction: usize,
        state: &[FloatOf<E>],
        cells: &[FloatOf<E>],
    ) {
        let hidden = sizes.hidden;
        for (output, values) in [(&self.state, state), (&self.cells, cells)] {
            let Some(output) = output else { continue };
            for (batch, values) in values.chunks(hidden).enumerate() {
                let place = sizes.state_index(direction, batch, self.is_batch_first);
                // SAFETY: as above.
                let out = unsafe { output.range_mut(place * hidden..(place + 1) * hidden) };
                // The state is kept in the compute type between steps and rounded only here.
                store_values(out, values);
            }
        }
    }
}

fn store_values<E: ComputeElement>(out: &mut [E], values: &[E::Float]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = E::from_float(*value));
}

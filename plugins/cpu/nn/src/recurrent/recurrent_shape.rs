//! The sizes of a recurrent network, and the order of its states.

use std::borrow::Cow;

use oarlock_cpu_base::rows::operands::KernelOperands;
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{PluginError, Result};

use super::RecurrentFloat;
use super::plan::RecurrentPlan;

/// The sizes on which the operands agree.
pub(super) struct RecurrentShape {
    pub(super) steps: usize,
    pub(super) batches: usize,
    pub(super) features: usize,
    pub(super) hidden: usize,
    pub(super) directions: usize,
    pub(super) rows: usize,
}

impl RecurrentShape {
    pub(super) fn new<C: RecurrentFloat>(
        plan: &RecurrentPlan<C>,
        operands: &KernelOperands<'_, '_>,
    ) -> Result<Self> {
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

impl RecurrentShape {
    /// The inputs of all sequences, transposed to have the steps first.
    pub(super) fn steps_first<'a, C: RecurrentFloat>(
        &self,
        x: Cow<'a, [C]>,
        is_batch_first: bool,
    ) -> Cow<'a, [C]> {
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
    pub(super) fn state_index(&self, direction: usize, batch: usize, is_batch_first: bool) -> usize {
        if is_batch_first { batch * self.directions + direction } else { direction * self.batches + batch }
    }

    /// The initial states of all sequences.
    pub(super) fn initial_states<C: RecurrentFloat>(
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

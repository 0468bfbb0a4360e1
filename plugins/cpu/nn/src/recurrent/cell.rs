//! Updates the state of one sequence in a step, after the products are computed.

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::math;

use super::RecurrentFloat;
use super::activation::RecurrentActivation;

/// Everything that the steps of one direction share.
pub(super) struct RecurrentCell<'a, C> {
    pub(super) isa: Isa,
    pub(super) hidden: usize,
    /// Added to each gate: the sum of both biases, if they can be added together.
    pub(super) bias: Vec<C>,
    /// Added to the product of the state in the last gate of `GRU`, before the reset.
    pub(super) reset_bias: Vec<C>,
    /// The weights from the cells of `LSTM` to its input, output and forget gates.
    pub(super) peepholes: Option<[&'a [C]; 3]>,
    pub(super) functions: &'a [RecurrentActivation],
    pub(super) clip: Option<C>,
    pub(super) couples_gates: bool,
}

impl<C: RecurrentFloat> RecurrentCell<'_, C> {
    /// `gates += input + bias`, starting at gate `from`.
    fn add_input(&self, gates: &mut [C], input: &[C], from: usize) {
        let first = from * self.hidden;
        let input = &input[first..][..gates.len()];
        self.isa.vectorize(GateAddition { sums: gates, left: input, right: &self.bias[first..] });
    }

    fn activate_gate(&self, function: usize, gate: &mut [C]) {
        if let Some(clip) = self.clip {
            // ONNX clips the argument of the function instead of its result.
            gate.iter_mut().for_each(|value| *value = math::clamp_keeping_nan(*value, -clip, clip));
        }
        self.functions[function].apply_to(self.isa, gate);
    }

    /// The next state of `RNN`.
    pub(super) fn step_rnn(&self, input: &[C], gates: &mut [C], state: &mut [C]) {
        self.add_input(gates, input, 0);
        self.activate_gate(0, gates);
        for (state, gate) in state.iter_mut().zip(gates) {
            *state = math::flush_subnormal(*gate);
        }
    }

    /// True if `LSTM` has its default functions, and nothing but them.
    fn is_default_lstm(&self) -> bool {
        let has_defaults = matches!(self.functions, [gates, new, out] if gates.is_sigmoid() && new.is_tanh() && out.is_tanh());
        has_defaults && self.peepholes.is_none() && self.clip.is_none() && !self.couples_gates
    }

    /// The next state and cells of `LSTM`.
    pub(super) fn step_lstm(&self, input: &[C], gates: &mut [C], state: &mut [C], cells: &mut [C]) {
        if self.is_default_lstm() {
            return self.isa.vectorize(LstmStep { gates, input, bias: &self.bias, state, cells });
        }
        self.add_input(gates, input, 0);
        // ONNX orders the gates input, output, forget, cell.
        let (fill, rest) = gates.split_at_mut(self.hidden);
        let (out, rest) = rest.split_at_mut(self.hidden);
        let (clear, new) = rest.split_at_mut(self.hidden);
        if let Some([to_fill, _, to_clear]) = self.peepholes {
            // The input and forget gates use the old cells; the output gate below uses the new ones.
            self.isa.vectorize(PeepholeAddition { sums: fill, left: to_fill, right: cells });
            self.isa.vectorize(PeepholeAddition { sums: clear, left: to_clear, right: cells });
        }
        self.activate_gate(0, fill);
        self.activate_gate(1, new);
        if self.couples_gates {
            let one = C::ONE;
            // With coupled gates, what is not forgotten is not written: the forget gate follows from the input gate.
            clear.iter_mut().zip(&*fill).for_each(|(clear, fill)| *clear = one - *fill);
        } else {
            self.activate_gate(0, clear);
        }
        // The cells are updated before the output gate is computed, which has peepholes to the new cells.
        self.isa.vectorize(CellBlend { kept: cells, clear, fill, new });
        if let Some([_, to_out, _]) = self.peepholes {
            self.isa.vectorize(PeepholeAddition { sums: out, left: to_out, right: cells });
        }
        self.activate_gate(0, out);
        state.copy_from_slice(cells);
        // `clip` is not applied here: in ONNX it applies to gates only.
        self.functions[2].apply_to(self.isa, state);
        for (state, out) in state.iter_mut().zip(out) {
            *state = math::flush_subnormal(*state * *out);
        }
    }

    /// The update and reset gates of `GRU`. The reset state is stored in `reset`.
    pub(super) fn step_gru_gates(&self, input: &[C], gates: &mut [C], state: &[C], reset: &mut [C]) {
        self.add_input(gates, input, 0);
        self.activate_gate(0, gates);
        let factors = &gates[self.hidden..];
        reset
            .iter_mut()
            .zip(state)
            .zip(factors)
            .for_each(|((reset, state), factor)| *reset = *state * *factor);
    }

    /// The next state of `GRU`, from the update gate and the product of the reset state.
    pub(super) fn step_gru(&self, input: &[C], update: &[C], new: &mut [C], state: &mut [C]) {
        self.add_input(new, input, 2);
        self.activate_gate(1, new);
        // The update gate is the share of the old state that is kept.
        self.isa.vectorize(StateMix { state, share: update, new });
    }

    /// The next state of `GRU` if the product of the state is reset instead of the state (`linear_before_reset`).
    pub(super) fn step_gru_reset_product(&self, input: &[C], gates: &mut [C], state: &mut [C]) {
        let (first, new) = gates.split_at_mut(2 * self.hidden);
        self.add_input(first, input, 0);
        self.activate_gate(0, first);
        // ONNX orders the gates update, reset, hidden.
        let (update, reset) = first.split_at(self.hidden);
        // The input is added after the reset, in `step_gru`.
        for ((new, bias), factor) in new.iter_mut().zip(&self.reset_bias).zip(reset) {
            *new = (*new + *bias) * *factor;
        }
        self.step_gru(input, update, new, state);
    }
}

/// A step of `LSTM` with its default functions, in one pass. States that become subnormal are 0 from then on: they decay, and each step
/// multiplies them with all weights.
struct LstmStep<'a, C> {
    /// Products of the state, in the order input, output, forget, cell.
    gates: &'a [C],
    input: &'a [C],
    bias: &'a [C],
    state: &'a mut [C],
    cells: &'a mut [C],
}

/// States of a vector or two, which stay in registers from the gates to the new state.
const STEP_LANES: usize = 16;

impl<C: RecurrentFloat> SimdTask for LstmStep<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let hidden = self.state.len();
        let sums = [self.gates, self.input, self.bias];
        let whole = hidden / STEP_LANES * STEP_LANES;
        let (states, rest_of_state) = self.state.split_at_mut(whole);
        let (cells, rest_of_cells) = self.cells.split_at_mut(whole);
        let blocks = states.chunks_exact_mut(STEP_LANES).zip(cells.chunks_exact_mut(STEP_LANES));
        for (block, (state, cells)) in blocks.enumerate() {
            let gates = gate_sums(sums, hidden, block * STEP_LANES, STEP_LANES);
            step_lanes::<T, C>(gates, state, cells);
        }
        let rest = hidden - whole;
        if rest > 0 {
            let (mut state, mut cells) = ([C::ZERO; STEP_LANES], [C::ZERO; STEP_LANES]);
            cells[..rest].copy_from_slice(rest_of_cells);
            step_lanes::<T, C>(gate_sums(sums, hidden, whole, rest), &mut state, &mut cells);
            rest_of_state.copy_from_slice(&state[..rest]);
            rest_of_cells.copy_from_slice(&cells[..rest]);
        }
    }
}

/// The sums of products, input and bias of some states, in all gates.
#[inline(always)]
fn gate_sums<C: RecurrentFloat>(
    [gates, input, bias]: [&[C]; 3],
    hidden: usize,
    begin: usize,
    count: usize,
) -> [[C; STEP_LANES]; 4] {
    let mut sums = [[C::ZERO; STEP_LANES]; 4];
    for (gate, sums) in sums.iter_mut().enumerate() {
        let part = gate * hidden + begin..gate * hidden + begin + count;
        let parts = gates[part.clone()].iter().zip(&input[part.clone()]).zip(&bias[part]);
        for (sum, ((gate, input), bias)) in sums.iter_mut().zip(parts) {
            *sum = *gate + (*input + *bias);
        }
    }
    sums
}

/// Computes the new state and cells from the sums of the gates. Each loop compiles to a few vectors.
#[inline(always)]
fn step_lanes<T: SimdTarget, C: RecurrentFloat>(
    [mut fill, mut out, mut clear, mut new]: [[C; STEP_LANES]; 4],
    state: &mut [C],
    cells: &mut [C],
) {
    fill.iter_mut().for_each(|sum| *sum = math::sigmoid::<T, C>(*sum));
    new.iter_mut().for_each(|sum| *sum = math::tanh::<T, C>(*sum));
    clear.iter_mut().for_each(|sum| *sum = math::sigmoid::<T, C>(*sum));
    for (lane, cell) in cells.iter_mut().enumerate() {
        let next = cell.multiply_add::<T>(clear[lane], fill[lane] * new[lane]);
        *cell = math::flush_subnormal(next);
    }
    out.iter_mut().for_each(|sum| *sum = math::sigmoid::<T, C>(*sum));
    for (lane, (state, cell)) in state.iter_mut().zip(cells).enumerate() {
        *state = math::flush_subnormal(math::tanh::<T, C>(*cell) * out[lane]);
    }
}

/// sums += left + right
struct GateAddition<'a, C> {
    sums: &'a mut [C],
    left: &'a [C],
    right: &'a [C],
}

impl<C: RecurrentFloat> SimdTask for GateAddition<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for ((sum, left), right) in self.sums.iter_mut().zip(self.left).zip(self.right) {
            *sum = *sum + (*left + *right);
        }
    }
}

/// sums += left · right
struct PeepholeAddition<'a, C> {
    sums: &'a mut [C],
    left: &'a [C],
    right: &'a [C],
}

impl<C: RecurrentFloat> SimdTask for PeepholeAddition<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for ((sum, left), right) in self.sums.iter_mut().zip(self.left).zip(self.right) {
            *sum = left.multiply_add::<T>(*right, *sum);
        }
    }
}

/// kept = kept · clear + fill · new
struct CellBlend<'a, C> {
    kept: &'a mut [C],
    clear: &'a [C],
    fill: &'a [C],
    new: &'a [C],
}

impl<C: RecurrentFloat> SimdTask for CellBlend<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let others = self.clear.iter().zip(self.fill).zip(self.new);
        for (kept, ((clear, fill), new)) in self.kept.iter_mut().zip(others) {
            *kept = math::flush_subnormal(kept.multiply_add::<T>(*clear, *fill * *new));
        }
    }
}

/// state = share · state + (1 - share) · new
struct StateMix<'a, C> {
    state: &'a mut [C],
    share: &'a [C],
    new: &'a [C],
}

impl<C: RecurrentFloat> SimdTask for StateMix<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let one = C::ONE;
        for ((state, share), new) in self.state.iter_mut().zip(self.share).zip(self.new) {
            *state = math::flush_subnormal(share.multiply_add::<T>(*state, (one - *share) * *new));
        }
    }
}

//! The attributes of a recurrent kernel, and its prepared constant weights.

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::constant_elements;
use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

use super::activation::RecurrentActivation;
use super::weights::PackedGateWeights;
use super::{RecurrentElement, RecurrentFloat, byte_weights};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecurrentCellKind {
    /// `RNN`: one function of input and state.
    Plain,
    /// `GRU`: gates that update and reset the state.
    Gated,
    /// `LSTM`: a state, and cells with input, forget and output gates.
    Memory,
}

impl RecurrentCellKind {
    /// The number of gates: vectors of the size of the state that products compute.
    pub(super) fn gate_count(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Gated => 3,
            Self::Memory => 4,
        }
    }

    fn default_functions(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["Tanh"],
            Self::Gated => &["Sigmoid", "Tanh"],
            Self::Memory => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// Everything that does not depend on the shapes of a run.
pub(super) struct RecurrentPlan<C: RecurrentFloat> {
    pub(super) kind: RecurrentCellKind,
    /// For each direction, true if it runs from the last step to the first.
    pub(super) directions: Vec<bool>,
    /// The functions of all directions.
    pub(super) activations: Vec<RecurrentActivation>,
    /// The bound of the arguments of gate functions.
    pub(super) clip: Option<f64>,
    pub(super) is_batch_first: bool,
    /// True if the input gate of `LSTM` also determines the forget gate.
    pub(super) couples_gates: bool,
    /// True if `GRU` resets the product of the state instead of the state.
    pub(super) resets_product: bool,
    /// True if weights are 8-bit and transposed.
    pub(super) has_bytes: bool,
    pub(super) ready: Vec<PreparedWeights<C>>,
}

/// The prepared weights of one direction.
pub(super) struct PreparedWeights<C> {
    pub(super) input: Option<Arc<PackedGateWeights<C>>>,
    pub(super) recurrent: Vec<Arc<PackedGateWeights<C>>>,
}

impl RecurrentPlan<f32> {
    /// The plan of a network with 8-bit weights, which are prepared if they are constant.
    pub(super) fn from_byte_weights(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Self> {
        // onnxruntime defines only the LSTM with dynamic quantization.
        let mut plan = Self::from_attributes(call, RecurrentCellKind::Memory)?;
        plan.has_bytes = true;
        let is_constant = |index: usize| call.input(index).is_ok_and(|operand| operand.is_constant());
        // Scales and zero points must be constant as well, since prepared weights contain them.
        if INPUT_OPERANDS.into_iter().chain(RECURRENT_OPERANDS).all(is_constant) {
            plan.ready = Self::prepare_byte_weights(cpu, call)?;
        }
        Ok(plan)
    }

    /// The 8-bit weights of a call.
    pub(super) fn prepare_byte_weights(
        cpu: &Cpu,
        call: &KernelCall<'_>,
    ) -> Result<Vec<PreparedWeights<f32>>> {
        let both = byte_weights::prepare_byte_weights(cpu, call, INPUT_OPERANDS)?
            .into_iter()
            .zip(byte_weights::prepare_byte_weights(cpu, call, RECURRENT_OPERANDS)?);
        let ready = |(input, recurrent)| PreparedWeights { input: Some(input), recurrent: vec![recurrent] };
        Ok(both.map(ready).collect())
    }
}

/// The indices of 8-bit weights, their scales and their zero points.
const INPUT_OPERANDS: [usize; 3] = [1, 8, 9];
const RECURRENT_OPERANDS: [usize; 3] = [2, 10, 11];

impl<C: RecurrentFloat> RecurrentPlan<C> {
    pub(super) fn new<E: RecurrentElement<Float = C>>(
        cpu: &Cpu,
        call: &KernelCall<'_>,
        kind: RecurrentCellKind,
    ) -> Result<Self> {
        let mut plan = Self::from_attributes(call, kind)?;
        plan.ready = plan.prepare_weights::<E>(cpu, call)?;
        Ok(plan)
    }

    fn from_attributes(call: &KernelCall<'_>, kind: RecurrentCellKind) -> Result<Self> {
        let directions = match call.string_attribute("direction")?.unwrap_or("forward") {
            "forward" => vec![false],
            "reverse" => vec![true],
            "bidirectional" => vec![false, true],
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `direction` to be `forward`, `reverse` or `bidirectional`, found `{other}`"
                )));
            }
        };
        let clip = call.float_attribute("clip")?;
        ensure!(
            clip.is_none_or(|clip| clip >= 0.0),
            invalid_argument,
            "expected `clip` of at least 0, found {clip:?}"
        );
        let activations =
            RecurrentActivation::all_directions(call, kind.default_functions(), directions.len())?;
        let is_set = |name| call.int_attribute(name).map(|value| value.unwrap_or(0) != 0);
        Ok(Self {
            kind,
            directions,
            activations,
            // Some models write 0 to mean no bound.
            clip: clip.filter(|clip| *clip > 0.0),
            // Attributes that a cell kind lacks are absent, and so false.
            is_batch_first: is_set("layout")?,
            couples_gates: is_set("input_forget")?,
            resets_product: is_set("linear_before_reset")?,
            has_bytes: false,
            ready: Vec::new(),
        })
    }

    /// The functions of a direction.
    pub(super) fn direction_functions(&self, direction: usize) -> &[RecurrentActivation] {
        let count = self.kind.default_functions().len();
        &self.activations[direction * count..][..count]
    }

    /// The number of gates that each product with the state computes.
    pub(super) fn recurrent_gates(&self) -> &'static [usize] {
        match self.kind {
            // The last gate multiplies the reset state, which the first two determine.
            RecurrentCellKind::Gated if !self.resets_product => &[2, 1],
            RecurrentCellKind::Gated => &[3],
            RecurrentCellKind::Plain => &[1],
            RecurrentCellKind::Memory => &[4],
        }
    }

    /// Packs constant weights for the products.
    fn prepare_weights<E: RecurrentElement<Float = C>>(
        &self,
        cpu: &Cpu,
        call: &KernelCall<'_>,
    ) -> Result<Vec<PreparedWeights<C>>> {
        let (x, w, r) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let ([first, second, _], &[directions, rows, features], &[_, _, hidden]) =
            (x.dims(), w.dims(), r.dims())
        else {
            // Not an error here: preparation only makes calls faster. The run checks the shapes again and reports what is wrong
            // with the call.
            return Ok(Vec::new());
        };
        let batches = if self.is_batch_first { *first } else { *second };
        let (steps_and_batches, hidden) =
            (first.saturating_mul(*second), usize::try_from(hidden).unwrap_or(0));
        // Shapes may be wrong or unknown at this point: nothing is packed then, and slices below stay in bounds.
        let fits = directions == self.directions.len() as i64
            && usize::try_from(rows) == Ok(hidden.saturating_mul(self.kind.gate_count()))
            && r.dims() == [directions, rows, hidden as i64];
        if !fits {
            return Ok(Vec::new());
        }
        let (rows, features) = (rows as usize, features as usize);
        let (input, recurrent) = (constant_elements::<E>(w)?, constant_elements::<E>(r)?);
        let lines = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
        let (steps_and_batches, batches) = (lines(steps_and_batches), lines(batches));
        let ready = |elements: &[E], rows: usize, depth: usize, lines: usize| {
            let is_small = PackedGateWeights::<C>::is_small_product(cpu, (rows, depth), lines);
            // Everything that the packed form depends on, since all sessions share one cache.
            let key = (cpu.isa(), E::DTYPE.0, rows, depth, is_small);
            let make =
                || PackedGateWeights::new(cpu, &E::to_floats(cpu.isa(), elements), (rows, depth), lines);
            C::prepared_constants().get_or_make(elements, key, make)
        };
        let of_direction = |direction: usize| -> Result<_> {
            let input = input.map(|all| {
                let own = &all[direction * rows * features..][..rows * features];
                ready(own, rows, features, steps_and_batches)
            });
            let mut start = direction * rows * hidden;
            let mut parts = Vec::new();
            for gates in recurrent.map_or(&[][..], |_| self.recurrent_gates()) {
                let rows = gates * hidden;
                let part =
                    recurrent.unwrap_or_default().get(start..start + rows * hidden).unwrap_or_default();
                parts.push(ready(part, rows, hidden, batches)?);
                start += rows * hidden;
            }
            Ok(PreparedWeights { input: input.transpose()?, recurrent: parts })
        };
        (0..self.directions.len()).map(of_direction).collect()
    }
}

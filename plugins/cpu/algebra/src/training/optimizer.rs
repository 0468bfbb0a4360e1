//! Optimizers: `Adam`, `Adagrad` and `Momentum` of `ai.onnx.preview.training`, and plain steps, `Sgd` of `oarlock`.
//!
//! The operands after the rate and the update count are lists of the same length: all tensors to optimize, then their gradients,
//! then each kind of state. The outputs are the new tensors, then each kind of new state.

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::compute_element::ComputeFloat;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result,
    dispatch, ensure, family,
};

pub(super) fn optimizer_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        optimizer_kernel("Adam", AdamRule::new),
        optimizer_kernel("Adagrad", AdagradRule::new),
        optimizer_kernel("Momentum", MomentumRule::new),
        operand_kernel("Sgd", |_| Ok(SgdRule), run_optimizer)
            .with_domain(OARLOCK_DOMAIN)
            // An op of our own has no schema of ONNX to infer its shape.
            .with_shape_inference(|_, call| {
                let x = call.input(1)?;
                call.allocate_output(0, x.dtype(), x.dims())
            })
            .with_flags(KernelFlags::DETERMINISTIC)
            .with_inputs([
                OperandSpec::new(family::FLOATING).with_name("R").with_rank(0, 1),
                tensor_operand("X"),
                tensor_operand("G"),
            ])
            .with_outputs([tensor_operand("X_new")]),
    ]
}

fn tensor_operand(name: &'static str) -> OperandSpec {
    OperandSpec::new(family::FLOATING).with_dtype_group(1).with_name(name)
}

fn optimizer_kernel<R: UpdateRule>(
    op: &'static str,
    plan: impl Fn(&KernelCall<'_>) -> Result<R> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let scalar = |dtypes: DtypeSet| OperandSpec::new(dtypes).with_rank(0, 1);
    let all = |name| OperandSpec::new(family::FLOATING).with_name(name).with_flags(OperandFlags::VARIADIC);
    operand_kernel(op, plan, run_optimizer)
        .with_domain("ai.onnx.preview.training")
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([
            scalar(family::FLOATING).with_name("R"),
            scalar(DtypeSet::I64).with_name("T"),
            all("inputs"),
        ])
        .with_outputs([all("outputs")])
}

/// The update of one element and its states.
trait UpdateRule: Send + Sync + 'static {
    /// The number of states per tensor, at most 2.
    const STATES: usize;
    /// True if the update count is an operand.
    const COUNTS_UPDATES: bool = true;

    /// The factors that all elements share in this update, from the learning rate and the update count.
    fn update_factors(&self, rate: f64, updates: f64) -> [f64; 2];

    /// Returns the new element and its new states.
    fn update_element<F: ComputeFloat>(
        &self,
        factors: [F; 2],
        x: F,
        gradient: F,
        states: [F; 2],
    ) -> (F, [F; 2]);
}

fn run_optimizer<R: UpdateRule>(cpu: &Cpu, rule: &R, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let rate = read_scalar(operands, 0)?;
    let updates = if R::COUNTS_UPDATES { read_scalar(operands, 1)? } else { 0.0 };
    // The tensors themselves and their gradients are lists, too.
    let (first, lists) = (1 + usize::from(R::COUNTS_UPDATES), 2 + R::STATES);
    let (inputs, outputs) =
        (operands.call().input_count().saturating_sub(first), operands.call().output_count());
    // The number of tensors is not an attribute; it follows from the number of operands.
    let tensors = inputs / lists;
    ensure!(
        tensors * lists == inputs && outputs == tensors * (1 + R::STATES),
        invalid_argument,
        "expected {lists} inputs and {} outputs for each tensor, found {inputs} and {outputs}",
        1 + R::STATES
    );
    // Once for all elements, in `f64`: powers of the update count lose digits otherwise.
    let factors = rule.update_factors(rate, updates);
    for tensor in 0..tensors {
        // Tensors of one call may have different dtypes.
        let dtype = operands.call().input(first + tensor)?.dtype();
        let places = TensorOperands { first, tensor, tensors };
        dispatch!(dtype, floating, F => update_tensor::<F, R>(cpu, rule, factors.map(F::from_f64), places, operands))?;
    }
    Ok(())
}

/// The number in an operand.
fn read_scalar(operands: &KernelOperands<'_, '_>, index: usize) -> Result<f64> {
    let found: Vec<f64> = match operands.call().input(index)?.dtype() {
        Dtype::F32 => operands.read_input::<f32>(index)?.iter().map(|number| f64::from(*number)).collect(),
        Dtype::I64 => operands.read_input::<i64>(index)?.iter().map(|number| *number as f64).collect(),
        _ => operands.read_input::<f64>(index)?.to_vec(),
    };
    match found[..] {
        [number] => Ok(number),
        _ => Err(PluginError::invalid_argument(format!(
            "expected one number as input {index}, found {}",
            found.len()
        ))),
    }
}

/// The operands that belong to one tensor.
#[derive(Clone, Copy)]
struct TensorOperands {
    first: usize,
    tensor: usize,
    tensors: usize,
}

impl TensorOperands {
    fn input_index(self, list: usize) -> usize {
        self.first + self.output_index(list)
    }

    fn output_index(self, list: usize) -> usize {
        list * self.tensors + self.tensor
    }
}

fn update_tensor<F: ComputeFloat, R: UpdateRule>(
    cpu: &Cpu,
    rule: &R,
    factors: [F; 2],
    places: TensorOperands,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let dims = operands.call().input(places.input_index(0))?.dims();
    // The kernel indexes all lists by the places of the first one.
    for list in 1..2 + R::STATES {
        operands.expect_dims(&operands.call().input(places.input_index(list))?, "each list", dims)?;
    }
    for list in 0..1 + R::STATES {
        operands.expect_dims(&operands.call().output(places.output_index(list))?, "each output", dims)?;
    }
    let (x, gradient) =
        (operands.read_input::<F>(places.input_index(0))?, operands.read_input::<F>(places.input_index(1))?);
    // Rules have no, one or two states; absent ones read as 0 and are not stored.
    let (mut states, mut new_states) = ([None, None], [None, None]);
    for state in 0..R::STATES {
        states[state] = Some(operands.read_input::<F>(places.input_index(2 + state))?);
        new_states[state] =
            Some(OutputRows::new(operands.write_output::<F>(places.output_index(1 + state))?, 1));
    }
    let [first, second] = new_states;
    let outputs = (OutputRows::new(operands.write_output::<F>(places.output_index(0))?, 1), first, second);
    parallel_for_parts(cpu, x.len(), grain_for(1), outputs, |begin, (results, mut first, mut second)| {
        with_isa!(cpu.isa(), || {
            for (index, result) in results.iter_mut().enumerate() {
                let at = begin + index;
                let state = states.map(|state| state.map_or(F::ZERO, |state| state[at]));
                let (new, new_state) = rule.update_element(factors, x[at], gradient[at], state);
                *result = new;
                for (target, value) in [&mut first, &mut second].into_iter().zip(new_state) {
                    if let Some(target) = target {
                        target[index] = value;
                    }
                }
            }
        });
    });
    Ok(())
}

fn number_attribute(call: &KernelCall<'_>, name: &str, default: Option<f32>) -> Result<f64> {
    let found = call.float_attribute(name)?.or(default.map(f64::from));
    found.ok_or_else(|| PluginError::invalid_argument(format!("expected the attribute `{name}`, found none")))
}

struct AdamRule {
    alpha: f64,
    beta: f64,
    epsilon: f64,
    decay: f64,
    decay_after: f64,
}

impl AdamRule {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(Self {
            alpha: number_attribute(call, "alpha", Some(0.9))?,
            beta: number_attribute(call, "beta", Some(0.999))?,
            epsilon: number_attribute(call, "epsilon", Some(1e-6))?,
            decay: number_attribute(call, "norm_coefficient", Some(0.0))?,
            decay_after: number_attribute(call, "norm_coefficient_post", Some(0.0))?,
        })
    }
}

impl UpdateRule for AdamRule {
    const STATES: usize = 2;

    fn update_factors(&self, rate: f64, updates: f64) -> [f64; 2] {
        // From the first update on, ONNX corrects for averages that start at 0. Before it, the divisor would be 0.
        if updates <= 0.0 {
            return [rate, 0.0];
        }
        [rate * (1.0 - self.beta.powf(updates)).sqrt() / (1.0 - self.alpha.powf(updates)), 0.0]
    }

    #[inline(always)]
    fn update_element<F: ComputeFloat>(
        &self,
        [rate, _]: [F; 2],
        x: F,
        gradient: F,
        [v, h]: [F; 2],
    ) -> (F, [F; 2]) {
        // L2 regularization, added to the gradient as ONNX has it.
        let gradient = F::from_f64(self.decay) * x + gradient;
        let v = F::from_f64(self.alpha) * v + F::from_f64(1.0 - self.alpha) * gradient;
        let h = F::from_f64(self.beta) * h + F::from_f64(1.0 - self.beta) * gradient * gradient;
        let new = x - rate * (v / (h.square_root() + F::from_f64(self.epsilon)));
        (F::from_f64(1.0 - self.decay_after) * new, [v, h])
    }
}

struct AdagradRule {
    decay_of_rate: f64,
    epsilon: f64,
    decay: f64,
}

impl AdagradRule {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(Self {
            decay_of_rate: number_attribute(call, "decay_factor", Some(0.0))?,
            epsilon: number_attribute(call, "epsilon", Some(1e-6))?,
            decay: number_attribute(call, "norm_coefficient", Some(0.0))?,
        })
    }
}

impl UpdateRule for AdagradRule {
    const STATES: usize = 1;

    fn update_factors(&self, rate: f64, updates: f64) -> [f64; 2] {
        [rate / (1.0 + updates * self.decay_of_rate), 0.0]
    }

    #[inline(always)]
    fn update_element<F: ComputeFloat>(
        &self,
        [rate, _]: [F; 2],
        x: F,
        gradient: F,
        [h, other]: [F; 2],
    ) -> (F, [F; 2]) {
        let gradient = F::from_f64(self.decay) * x + gradient;
        let h = h + gradient * gradient;
        (x - rate * gradient / (h.square_root() + F::from_f64(self.epsilon)), [h, other])
    }
}

struct MomentumRule {
    alpha: f64,
    beta: f64,
    decay: f64,
    is_nesterov: bool,
}

impl MomentumRule {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let is_nesterov = match call.string_attribute("mode")? {
            Some("standard") => false,
            Some("nesterov") => true,
            found => {
                let found = found.unwrap_or("none");
                return Err(PluginError::invalid_argument(format!(
                    "expected `mode` to be `standard` or `nesterov`, found `{found}`"
                )));
            }
        };
        Ok(Self {
            alpha: number_attribute(call, "alpha", None)?,
            beta: number_attribute(call, "beta", None)?,
            decay: number_attribute(call, "norm_coefficient", None)?,
            is_nesterov,
        })
    }
}

impl UpdateRule for MomentumRule {
    const STATES: usize = 1;

    /// In the first update the gradient counts in full.
    fn update_factors(&self, rate: f64, updates: f64) -> [f64; 2] {
        [rate, if updates > 0.0 { self.beta } else { 1.0 }]
    }

    #[inline(always)]
    fn update_element<F: ComputeFloat>(
        &self,
        [rate, beta]: [F; 2],
        x: F,
        gradient: F,
        [v, other]: [F; 2],
    ) -> (F, [F; 2]) {
        let gradient = F::from_f64(self.decay) * x + gradient;
        let v = F::from_f64(self.alpha) * v + beta * gradient;
        // Nesterov looks ahead: the step goes where the momentum would lead next.
        let change = if self.is_nesterov { gradient + F::from_f64(self.alpha) * v } else { v };
        (x - rate * change, [v, other])
    }
}

struct SgdRule;

impl UpdateRule for SgdRule {
    const STATES: usize = 0;
    const COUNTS_UPDATES: bool = false;

    fn update_factors(&self, rate: f64, _: f64) -> [f64; 2] {
        [rate, 0.0]
    }

    #[inline(always)]
    fn update_element<F: ComputeFloat>(
        &self,
        [rate, _]: [F; 2],
        x: F,
        gradient: F,
        states: [F; 2],
    ) -> (F, [F; 2]) {
        (x - rate * gradient, states)
    }
}

//! Optimisers: `Adam`, `Adagrad` and `Momentum` of `ai.onnx.preview.training`, and plain steps, `Sgd` of `oarlock`.
//!
//! The operands after the rate and the number of the update are lists of the same length: all tensors to optimise, then their
//! gradients, then each kind of state. The outputs are the new tensors, then each kind of new state.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, dispatch, ensure,
    family,
};

use crate::device::Cpu;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::Float;
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::vector::with_isa;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![
        row("Adam", Adam::new),
        row("Adagrad", Adagrad::new),
        row("Momentum", Momentum::new),
        kernel("Sgd", |_| Ok(Sgd), run)
            .domain("oarlock")
            .infer(|_, call| {
                let x = call.input(1)?;
                call.allocate_output(0, x.dtype(), x.dims())
            })
            .flags(KernelFlags::DETERMINISTIC)
            .inputs([Operand::new(family::FLOATING).named("R").rank(0, 1), tensor("X"), tensor("G")])
            .outputs([tensor("X_new")]),
    ]
}

fn tensor(name: &'static str) -> Operand {
    Operand::new(family::FLOATING).group(1).named(name)
}

fn row<R: Rule>(
    op: &'static str,
    plan: impl Fn(&Call<'_>) -> Result<R> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let scalar = |dtypes: DtypeSet| Operand::new(dtypes).rank(0, 1);
    let all = |name| Operand::new(family::FLOATING).named(name).flags(OperandFlags::VARIADIC);
    kernel(op, plan, run)
        .domain("ai.onnx.preview.training")
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([scalar(family::FLOATING).named("R"), scalar(DtypeSet::I64).named("T"), all("inputs")])
        .outputs([all("outputs")])
}

/// How one element and its states change.
trait Rule: Send + Sync + 'static {
    /// How many states each tensor has: at most 2.
    const STATES: usize;
    /// Whether the number of the update is an operand.
    const COUNTS_UPDATES: bool = true;

    /// What all elements have in common in this update, from the learning rate and the number of the update.
    fn factors(&self, rate: f64, updates: f64) -> [f64; 2];

    /// The new element and its new states.
    fn step<F: Float>(&self, factors: [F; 2], x: F, gradient: F, states: [F; 2]) -> (F, [F; 2]);
}

fn run<R: Rule>(cpu: &Cpu, rule: &R, operands: &Operands<'_, '_>) -> Result<()> {
    let rate = single(operands, 0)?;
    let updates = if R::COUNTS_UPDATES { single(operands, 1)? } else { 0.0 };
    let (first, lists) = (1 + usize::from(R::COUNTS_UPDATES), 2 + R::STATES);
    let (inputs, outputs) =
        (operands.call().input_count().saturating_sub(first), operands.call().output_count());
    let tensors = inputs / lists;
    ensure!(
        tensors * lists == inputs && outputs == tensors * (1 + R::STATES),
        invalid_argument,
        "expected {lists} inputs and {} outputs for each tensor, found {inputs} and {outputs}",
        1 + R::STATES
    );
    let factors = rule.factors(rate, updates);
    for tensor in 0..tensors {
        let dtype = operands.call().input(first + tensor)?.dtype();
        let places = Places { first, tensor, tensors };
        dispatch!(dtype, floating, F => update::<F, R>(cpu, rule, factors.map(F::of), places, operands))?;
    }
    Ok(())
}

/// The one number of an operand.
fn single(operands: &Operands<'_, '_>, index: usize) -> Result<f64> {
    let found: Vec<f64> = match operands.call().input(index)?.dtype() {
        Dtype::F32 => operands.read::<f32>(index)?.iter().map(|number| f64::from(*number)).collect(),
        Dtype::I64 => operands.read::<i64>(index)?.iter().map(|number| *number as f64).collect(),
        _ => operands.read::<f64>(index)?.to_vec(),
    };
    match found[..] {
        [number] => Ok(number),
        _ => Err(Error::invalid_argument(format!(
            "expected one number as input {index}, found {}",
            found.len()
        ))),
    }
}

/// Which operands belong to one tensor.
#[derive(Clone, Copy)]
struct Places {
    first: usize,
    tensor: usize,
    tensors: usize,
}

impl Places {
    fn input(self, list: usize) -> usize {
        self.first + self.output(list)
    }

    fn output(self, list: usize) -> usize {
        list * self.tensors + self.tensor
    }
}

fn update<F: Float, R: Rule>(
    cpu: &Cpu,
    rule: &R,
    factors: [F; 2],
    places: Places,
    operands: &Operands<'_, '_>,
) -> Result<()> {
    let dims = operands.call().input(places.input(0))?.dims();
    for list in 1..2 + R::STATES {
        operands.expect_dims(&operands.call().input(places.input(list))?, "each list", dims)?;
    }
    for list in 0..1 + R::STATES {
        operands.expect_dims(&operands.call().output(places.output(list))?, "each output", dims)?;
    }
    let (x, gradient) = (operands.read::<F>(places.input(0))?, operands.read::<F>(places.input(1))?);
    let (mut states, mut new_states) = ([None, None], [None, None]);
    for state in 0..R::STATES {
        states[state] = Some(operands.read::<F>(places.input(2 + state))?);
        new_states[state] = Some(Rows::new(operands.write::<F>(places.output(1 + state))?, 1));
    }
    let [first, second] = new_states;
    let outputs = (Rows::new(operands.write::<F>(places.output(0))?, 1), first, second);
    in_parallel(cpu, x.len(), grain(1), outputs, |begin, (results, mut first, mut second)| {
        with_isa!(cpu.isa(), || {
            for (index, result) in results.iter_mut().enumerate() {
                let at = begin + index;
                let state = states.map(|state| state.map_or(F::ZERO, |state| state[at]));
                let (new, new_state) = rule.step(factors, x[at], gradient[at], state);
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

/// An attribute that is a number.
fn number(call: &Call<'_>, name: &str, default: Option<f32>) -> Result<f64> {
    let found = call.float(name)?.or(default.map(f64::from));
    found.ok_or_else(|| Error::invalid_argument(format!("expected the attribute `{name}`, found none")))
}

struct Adam {
    alpha: f64,
    beta: f64,
    epsilon: f64,
    decay: f64,
    decay_after: f64,
}

impl Adam {
    fn new(call: &Call<'_>) -> Result<Self> {
        Ok(Self {
            alpha: number(call, "alpha", Some(0.9))?,
            beta: number(call, "beta", Some(0.999))?,
            epsilon: number(call, "epsilon", Some(1e-6))?,
            decay: number(call, "norm_coefficient", Some(0.0))?,
            decay_after: number(call, "norm_coefficient_post", Some(0.0))?,
        })
    }
}

impl Rule for Adam {
    const STATES: usize = 2;

    fn factors(&self, rate: f64, updates: f64) -> [f64; 2] {
        if updates <= 0.0 {
            return [rate, 0.0];
        }
        [rate * (1.0 - self.beta.powf(updates)).sqrt() / (1.0 - self.alpha.powf(updates)), 0.0]
    }

    #[inline(always)]
    fn step<F: Float>(&self, [rate, _]: [F; 2], x: F, gradient: F, [v, h]: [F; 2]) -> (F, [F; 2]) {
        let gradient = F::of(self.decay) * x + gradient;
        let v = F::of(self.alpha) * v + F::of(1.0 - self.alpha) * gradient;
        let h = F::of(self.beta) * h + F::of(1.0 - self.beta) * gradient * gradient;
        let new = x - rate * (v / (h.root() + F::of(self.epsilon)));
        (F::of(1.0 - self.decay_after) * new, [v, h])
    }
}

struct Adagrad {
    decay_of_rate: f64,
    epsilon: f64,
    decay: f64,
}

impl Adagrad {
    fn new(call: &Call<'_>) -> Result<Self> {
        Ok(Self {
            decay_of_rate: number(call, "decay_factor", Some(0.0))?,
            epsilon: number(call, "epsilon", Some(1e-6))?,
            decay: number(call, "norm_coefficient", Some(0.0))?,
        })
    }
}

impl Rule for Adagrad {
    const STATES: usize = 1;

    fn factors(&self, rate: f64, updates: f64) -> [f64; 2] {
        [rate / (1.0 + updates * self.decay_of_rate), 0.0]
    }

    #[inline(always)]
    fn step<F: Float>(&self, [rate, _]: [F; 2], x: F, gradient: F, [h, other]: [F; 2]) -> (F, [F; 2]) {
        let gradient = F::of(self.decay) * x + gradient;
        let h = h + gradient * gradient;
        (x - rate * gradient / (h.root() + F::of(self.epsilon)), [h, other])
    }
}

struct Momentum {
    alpha: f64,
    beta: f64,
    decay: f64,
    is_nesterov: bool,
}

impl Momentum {
    fn new(call: &Call<'_>) -> Result<Self> {
        let is_nesterov = match call.string("mode")? {
            Some("standard") => false,
            Some("nesterov") => true,
            found => {
                let found = found.unwrap_or("none");
                return Err(Error::invalid_argument(format!(
                    "expected `mode` to be `standard` or `nesterov`, found `{found}`"
                )));
            }
        };
        Ok(Self {
            alpha: number(call, "alpha", None)?,
            beta: number(call, "beta", None)?,
            decay: number(call, "norm_coefficient", None)?,
            is_nesterov,
        })
    }
}

impl Rule for Momentum {
    const STATES: usize = 1;

    /// In the first update the gradient counts in full.
    fn factors(&self, rate: f64, updates: f64) -> [f64; 2] {
        [rate, if updates > 0.0 { self.beta } else { 1.0 }]
    }

    #[inline(always)]
    fn step<F: Float>(&self, [rate, beta]: [F; 2], x: F, gradient: F, [v, other]: [F; 2]) -> (F, [F; 2]) {
        let gradient = F::of(self.decay) * x + gradient;
        let v = F::of(self.alpha) * v + beta * gradient;
        let change = if self.is_nesterov { gradient + F::of(self.alpha) * v } else { v };
        (x - rate * change, [v, other])
    }
}

struct Sgd;

impl Rule for Sgd {
    const STATES: usize = 0;
    const COUNTS_UPDATES: bool = false;

    fn factors(&self, rate: f64, _: f64) -> [f64; 2] {
        [rate, 0.0]
    }

    #[inline(always)]
    fn step<F: Float>(&self, [rate, _]: [F; 2], x: F, gradient: F, states: [F; 2]) -> (F, [F; 2]) {
        (x - rate * gradient, states)
    }
}

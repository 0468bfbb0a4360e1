//! `LinearAttention`: keys and values are summed up in a state of fixed size, so that a step costs the same however long the
//! past is.
//!
//! The state of a head is a matrix with a row for each element of a key. A step lets it fade, adds the product of a key and a
//! value, and reads it with queries. It is kept in `f32` whatever operands hold, and heads are shared among threads.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, bf16, dtype_set,
    ensure, f16,
};

use crate::device::Cpu;
use crate::isa::{Target, Vectorized};
use crate::kernels::elementwise::math::{self, Float};
use crate::kernels::rows::axis::count;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Number, Real};
use crate::kernels::rows::operands::{Operands, kernel as kernel_of};
use crate::kernels::rows::parts::{Rows, in_parallel};

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

/// The places of inputs that may be left out.
const PAST: usize = 3;
const DECAY: usize = 4;
const BETA: usize = 5;

pub(super) fn kernel() -> Kernel<Cpu> {
    let float = Operand::new(FLOATS).group(1);
    let optional = float.flags(OperandFlags::OPTIONAL).rank(3, 3);
    let state = Operand::new(FLOATS).group(2).rank(4, 4);
    kernel_of("LinearAttention", Plan::new, run)
        .since(27)
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([
            float.named("query").rank(3, 3),
            float.named("key").rank(3, 3),
            float.named("value").rank(3, 3),
            state.named("past_state").flags(OperandFlags::OPTIONAL),
            optional.named("decay"),
            optional.named("beta"),
        ])
        .outputs([float.named("output").rank(3, 3), state.named("present_state")])
}

/// What attributes say.
struct Plan {
    heads: i64,
    /// Heads of keys and values, each of which as many heads of queries read.
    shared: i64,
    /// What outputs are multiplied with, where that does not follow from the size of keys.
    scale: Option<f32>,
    /// Whether states fade.
    decays: bool,
    /// Whether only that is added to a state which it does not give for a key already.
    corrects: bool,
}

impl Plan {
    fn new(call: &Call<'_>) -> Result<Self> {
        let heads = call.int("q_num_heads")?.unwrap_or(0);
        let shared = call.int("kv_num_heads")?.unwrap_or(0);
        ensure!(
            heads > 0 && shared > 0 && heads % shared == 0,
            invalid_argument,
            "expected `kv_num_heads` to divide `q_num_heads`, found {shared} and {heads}"
        );
        let (decays, corrects) = match call.string("update_rule")?.unwrap_or("gated_delta") {
            "linear" => (false, false),
            "gated" => (true, false),
            "delta" => (false, true),
            "gated_delta" => (true, true),
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected `update_rule` to be `linear`, `gated`, `delta` or `gated_delta`, found `{other}`"
                )));
            }
        };
        let scale = call.float("scale")?.filter(|scale| *scale != 0.0).map(|scale| scale as f32);
        Ok(Self { heads, shared, scale, decays, corrects })
    }
}

/// The sizes of a call.
struct Extent {
    batches: usize,
    steps: usize,
    shared: usize,
    /// Heads of queries for each head of keys.
    group: usize,
    size: usize,
    value_size: usize,
    /// Elements that say how a head fades in a step: one, or one for each row of its state.
    decay_size: usize,
    /// Elements that say how much is added in a step: one, or one for each head.
    beta_size: usize,
}

impl Extent {
    fn new(plan: &Plan, operands: &Operands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (query, key, value) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let (&[batches, steps, width], &[.., value_width]) = (query.dims(), value.dims()) else {
            return Err(Error::invalid_argument("expected operands of three dimensions, found others"));
        };
        let &Plan { heads, shared, decays, corrects, .. } = plan;
        ensure!(
            width % heads == 0 && value_width % shared == 0,
            invalid_argument,
            "expected {heads} heads of queries and {shared} of values, found rows of {width} and {value_width}"
        );
        let (size, value_size) = (width / heads, value_width / shared);
        count(&[shared, size, value_size])?;
        count(&[batches, steps, heads, value_size])?;
        operands.expect_dims(&key, "key", &[batches, steps, shared * size])?;
        operands.expect_dims(&value, "value", &[batches, steps, value_width])?;
        operands.expect_dims(&call.output(0)?, "output", &[batches, steps, heads * value_size])?;
        let state = [batches, shared, size, value_size];
        operands.expect_dims(&call.output(1)?, "present_state", &state)?;
        if let Some(past) = call.optional_input(PAST)? {
            operands.expect_dims(&past, "past_state", &state)?;
        }
        let gate = |input, name: &str, is_wanted: bool, most: i64, fewest: i64| {
            let found = call.optional_input(input)?;
            ensure!(
                found.is_some() == is_wanted,
                invalid_argument,
                "expected `{name}` where `update_rule` uses it and nowhere else, found {}",
                if is_wanted { "none" } else { "one" }
            );
            let Some(found) = found else { return Ok(1) };
            let dims = found.dims();
            let fits = dims == [batches, steps, most] || dims == [batches, steps, fewest];
            ensure!(
                fits,
                invalid_argument,
                "expected `{name}` of shape [{batches}, {steps}, {most} or {fewest}], found {dims:?}"
            );
            Ok(if dims[2] == most { most } else { fewest })
        };
        let decay = gate(DECAY, "decay", decays, shared * size, shared)?;
        let beta = gate(BETA, "beta", corrects, shared, 1)?;
        Ok(Self {
            batches: count(&[batches])?,
            steps: count(&[steps])?,
            shared: count(&[shared])?,
            group: count(&[heads / shared])?,
            size: count(&[size])?,
            value_size: count(&[value_size])?,
            decay_size: if decay == shared { 1 } else { count(&[size])? },
            beta_size: count(&[beta])?,
        })
    }
}

fn run(cpu: &Cpu, plan: &Plan, operands: &Operands<'_, '_>) -> Result<()> {
    match operands.call().input(0)?.dtype() {
        Dtype::F32 => run_of::<f32>(cpu, plan, operands),
        Dtype::F16 => run_of::<f16>(cpu, plan, operands),
        _ => run_of::<bf16>(cpu, plan, operands),
    }
}

/// Floats that are computed in `f32`.
trait Narrow: Real + Number<Float = f32> {}

impl<E: Real + Number<Float = f32>> Narrow for E {}

fn run_of<E: Narrow>(cpu: &Cpu, plan: &Plan, operands: &Operands<'_, '_>) -> Result<()> {
    let extent = Extent::new(plan, operands)?;
    // Of rows without elements there may be more than anybody could go through.
    if operands.call().output(0)?.dims().contains(&0) && operands.call().output(1)?.dims().contains(&0) {
        return Ok(());
    }
    let widened = |elements| E::floats(cpu.isa(), elements);
    let floats = |index| operands.read(index).map(widened);
    let optional = |index| Ok::<_, Error>(operands.read_optional(index)?.map(widened));
    let (query, key, value) = (floats(0)?, floats(1)?, floats(2)?);
    let (decay, beta) = (optional(DECAY)?, optional(BETA)?);
    let scale = plan.scale.unwrap_or(1.0 / (extent.size as f32).sqrt());
    let attention = Attention {
        query: &query,
        key: &key,
        value: &value,
        decay: decay.as_deref(),
        beta: beta.as_deref(),
        scale,
        extent: &extent,
    };
    let mut made =
        vec![0.0; extent.batches * extent.shared * extent.steps * extent.group * extent.value_size];
    match operands.call().output(1)?.dtype() {
        Dtype::F32 => states::<f32>(cpu, &attention, operands, &mut made)?,
        Dtype::F16 => states::<f16>(cpu, &attention, operands, &mut made)?,
        _ => states::<bf16>(cpu, &attention, operands, &mut made)?,
    }
    let Extent { batches, steps, shared, group, value_size, .. } = extent;
    let width = group * value_size;
    let output = operands.write::<E>(0)?;
    for place in 0..batches * steps * shared {
        let (batch, step, head) = (place / (steps * shared), place / shared % steps, place % shared);
        let made = &made[((batch * shared + head) * steps + step) * width..][..width];
        let output = &mut output[place * width..][..width];
        output.iter_mut().zip(made).for_each(|(output, made)| *output = E::of_float(*made));
    }
    Ok(())
}

/// Takes all heads through all steps. What each gives in each step is put together by heads.
fn states<S: Narrow>(
    cpu: &Cpu,
    attention: &Attention<'_>,
    operands: &Operands<'_, '_>,
    made: &mut [f32],
) -> Result<()> {
    let &Extent { batches, steps, shared, group, size, value_size, .. } = attention.extent;
    let past = operands.read_optional::<S>(PAST)?.map(|past| S::floats(cpu.isa(), past));
    let (state_size, made_size) = (size * value_size, steps * group * value_size);
    S::write_floats(cpu.isa(), operands.write::<S>(1)?, |states| {
        match &past {
            Some(past) => states.copy_from_slice(past),
            None => states.fill(0.0),
        }
        let outputs = (Rows::new(states, state_size), Rows::new(made, made_size));
        let grain = grain(steps.saturating_mul(state_size));
        in_parallel(cpu, batches * shared, grain, outputs, |first, (states, made)| {
            let heads = states.len().checked_div(state_size).unwrap_or(0);
            for index in 0..heads {
                let state = &mut states[index * state_size..][..state_size];
                let made = &mut made[index * made_size..][..made_size];
                cpu.isa().vectorize(Head { attention, number: first + index, state, made });
            }
        });
    });
    Ok(())
}

/// The operands of a call.
struct Attention<'a> {
    query: &'a [f32],
    key: &'a [f32],
    value: &'a [f32],
    decay: Option<&'a [f32]>,
    beta: Option<&'a [f32]>,
    scale: f32,
    extent: &'a Extent,
}

/// One head of one batch, its state, and room for what it gives in all steps.
struct Head<'a> {
    attention: &'a Attention<'a>,
    number: usize,
    state: &'a mut [f32],
    made: &'a mut [f32],
}

impl Vectorized for Head<'_> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Self { attention, number, state, made } = self;
        let &Attention { query, key, value, decay, beta, scale, extent } = attention;
        let &Extent { steps, shared, group, size, value_size, decay_size, beta_size, .. } = extent;
        let (batch, head) = (number / shared, number % shared);
        let mut added = vec![0.0; value_size];
        for step in 0..steps {
            let row = batch * steps + step;
            let place = row * shared + head;
            let key = &key[place * size..][..size];
            added.copy_from_slice(&value[place * value_size..][..value_size]);
            if let Some(decay) = decay {
                let decay = &decay[place * decay_size..][..decay_size];
                for (index, line) in state.chunks_exact_mut(value_size).enumerate() {
                    let kept = math::exp::<T, f32>(decay[index % decay_size]);
                    line.iter_mut().for_each(|element| *element *= kept);
                }
            }
            if let Some(beta) = beta {
                let share = beta[if beta_size == 1 { row } else { place }];
                for (key, line) in key.iter().zip(state.chunks_exact(value_size)) {
                    plus::<T>(&mut added, -*key, line);
                }
                added.iter_mut().for_each(|element| *element *= share);
            }
            for (key, line) in key.iter().zip(state.chunks_exact_mut(value_size)) {
                plus::<T>(line, *key, &added);
            }
            for query_head in 0..group {
                let query = &query[(place * group + query_head) * size..][..size];
                let sums = &mut made[(step * group + query_head) * value_size..][..value_size];
                for (query, line) in query.iter().zip(state.chunks_exact(value_size)) {
                    plus::<T>(sums, scale * query, line);
                }
            }
        }
    }
}

/// sums += factor · line
#[inline(always)]
fn plus<T: Target>(sums: &mut [f32], factor: f32, line: &[f32]) {
    for (sum, element) in sums.iter_mut().zip(line) {
        *sum = factor.times_plus::<T>(*element, *sum);
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute};

    /// Two heads of queries that read one head of keys.
    fn attributes(rule: &str) -> [(&str, Attribute<'_>); 4] {
        [
            ("q_num_heads", Attribute::Int(2)),
            ("kv_num_heads", Attribute::Int(1)),
            ("scale", Attribute::Float(1.0)),
            ("update_rule", Attribute::Text(rule)),
        ]
    }

    /// A rule, its gates, and what comes out of two steps: the outputs and the state.
    type Case<'a> = (&'a str, [Option<&'a Array>; 2], [f32; 4], [f32; 2]);

    #[test]
    fn states_fade_and_take_what_they_do_not_have_yet() {
        let query = Array::of(&[1, 2, 4], &[1f32, 0., 0., 1., 1., 0., 0., 1.]);
        let key = Array::of(&[1, 2, 2], &[1f32, 0., 1., 1.]);
        let value = Array::of(&[1, 2, 1], &[2f32, 4.]);
        let beta = Array::of(&[1, 2, 1], &[1f32, 0.5]);
        // Halves the first row of the state in the second step, and keeps the other.
        let decay = Array::of(&[1, 2, 2], &[0f32, 0., -std::f32::consts::LN_2, 0.]);
        let operands = [Some(&query), Some(&key), Some(&value), None];
        let cases: [Case<'_>; 4] = [
            ("linear", [None, None], [2., 0., 6., 4.], [6., 4.]),
            ("gated", [Some(&decay), None], [2., 0., 5., 4.], [5., 4.]),
            ("delta", [None, Some(&beta)], [2., 0., 3., 1.], [3., 1.]),
            ("gated_delta", [Some(&decay), Some(&beta)], [2., 0., 2.5, 1.5], [2.5, 1.5]),
        ];
        for (rule, gates, made, state) in cases {
            let inputs: Vec<_> = operands.into_iter().chain(gates).collect();
            let outputs = [Array::of(&[1, 2, 2], &made), Array::of(&[1, 1, 2, 1], &state)];
            check("LinearAttention", 27, &attributes(rule), &inputs, &outputs);
        }
    }

    #[test]
    fn a_gate_that_the_rule_does_not_know_is_refused() {
        let (query, key) = (Array::of(&[1, 1, 4], &[1f32; 4]), Array::of(&[1, 1, 2], &[1f32; 2]));
        let outputs = [Some((Dtype::F32, &[1i64, 1, 4][..])), Some((Dtype::F32, &[1, 1, 2, 2]))];
        let operands = [Some(&query), Some(&key), Some(&key), None, Some(&key)];
        let message = refusal("LinearAttention", 27, &attributes("linear"), &operands, &outputs);
        assert!(message.contains("`decay` where `update_rule` uses it"), "{message}");
        let message = refusal("LinearAttention", 27, &attributes("gated"), &operands[..4], &outputs);
        assert!(message.contains("found none"), "{message}");
        let message = refusal("LinearAttention", 27, &attributes("plain"), &operands, &outputs);
        assert!(message.contains("`gated_delta`, found `plain`"), "{message}");
    }
}

//! `LinearAttention`: keys and values accumulate in a state of fixed size, so the cost of a step does not depend on the length of
//! the past.
//!
//! The state of a head is a matrix with a row for each element of a key. A step decays it, adds the outer product of a key and a
//! value, and multiplies it by queries. It is kept in `f32` whatever the dtype of the operands, and heads are distributed over
//! threads.

use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::math::{self, MathFloat};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel as kernel_of};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result, bf16,
    dtype_set, ensure, f16,
};

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

/// The indices of optional inputs.
const PAST_INPUT: usize = 3;
const DECAY_INPUT: usize = 4;
const BETA_INPUT: usize = 5;

pub(super) fn linear_attention_kernel() -> Kernel<Cpu> {
    let float = OperandSpec::new(FLOATS).with_dtype_group(1);
    let optional = float.with_flags(OperandFlags::OPTIONAL).with_rank(3, 3);
    let state = OperandSpec::new(FLOATS).with_dtype_group(2).with_rank(4, 4);
    kernel_of("LinearAttention", LinearAttentionPlan::new, run_linear_attention)
        .since_version(27)
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([
            float.with_name("query").with_rank(3, 3),
            float.with_name("key").with_rank(3, 3),
            float.with_name("value").with_rank(3, 3),
            state.with_name("past_state").with_flags(OperandFlags::OPTIONAL),
            optional.with_name("decay"),
            optional.with_name("beta"),
        ])
        .with_outputs([float.with_name("output").with_rank(3, 3), state.with_name("present_state")])
}

struct LinearAttentionPlan {
    heads: i64,
    /// Key and value heads, each read by the same number of query heads.
    shared: i64,
    /// The factor of the outputs; `None` to derive it from the size of keys.
    scale: Option<f32>,
    /// True if states decay.
    decays: bool,
    /// True for the delta rule, which adds only the difference between a value and what the state already returns for its key.
    corrects: bool,
}

impl LinearAttentionPlan {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let heads = call.int_attribute("q_num_heads")?.unwrap_or(0);
        let shared = call.int_attribute("kv_num_heads")?.unwrap_or(0);
        ensure!(
            heads > 0 && shared > 0 && heads % shared == 0,
            invalid_argument,
            "expected `kv_num_heads` to divide `q_num_heads`, found {shared} and {heads}"
        );
        let (decays, corrects) = match call.string_attribute("update_rule")?.unwrap_or("gated_delta") {
            "linear" => (false, false),
            "gated" => (true, false),
            "delta" => (false, true),
            "gated_delta" => (true, true),
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `update_rule` to be `linear`, `gated`, `delta` or `gated_delta`, found `{other}`"
                )));
            }
        };
        // In ONNX, 0 means "not set".
        let scale = call.float_attribute("scale")?.filter(|scale| *scale != 0.0).map(|scale| scale as f32);
        Ok(Self { heads, shared, scale, decays, corrects })
    }
}

struct LinearAttentionShape {
    batches: usize,
    steps: usize,
    shared: usize,
    /// The number of query heads per key head.
    group: usize,
    size: usize,
    value_size: usize,
    /// The number of decay values of a head per step: one, or one per row of the state.
    decay_size: usize,
    /// The number of beta values per step, which scale what is added: one, or one per head.
    beta_size: usize,
}

impl LinearAttentionShape {
    fn new(plan: &LinearAttentionPlan, operands: &KernelOperands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (query, key, value) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let (&[batches, steps, width], &[.., value_width]) = (query.dims(), value.dims()) else {
            return Err(PluginError::invalid_argument("expected operands of three dimensions, found others"));
        };
        let &LinearAttentionPlan { heads, shared, decays, corrects, .. } = plan;
        ensure!(
            width % heads == 0 && value_width % shared == 0,
            invalid_argument,
            "expected {heads} heads of queries and {shared} of values, found rows of {width} and {value_width}"
        );
        // Queries have more heads than keys and values; a group of them reads one state.
        let (size, value_size) = (width / heads, value_width / shared);
        // Checks that the products of sizes below do not overflow.
        element_count(&[shared, size, value_size])?;
        element_count(&[batches, steps, heads, value_size])?;
        // The checks below make every slice in the loops in bounds, for any shapes that a call may have.
        operands.expect_dims(&key, "key", &[batches, steps, shared * size])?;
        operands.expect_dims(&value, "value", &[batches, steps, value_width])?;
        operands.expect_dims(&call.output(0)?, "output", &[batches, steps, heads * value_size])?;
        let state = [batches, shared, size, value_size];
        operands.expect_dims(&call.output(1)?, "present_state", &state)?;
        if let Some(past) = call.optional_input(PAST_INPUT)? {
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
            // If both are equal, it does not matter which.
            Ok(if dims[2] == most { most } else { fewest })
        };
        let decay = gate(DECAY_INPUT, "decay", decays, shared * size, shared)?;
        let beta = gate(BETA_INPUT, "beta", corrects, shared, 1)?;
        Ok(Self {
            batches: element_count(&[batches])?,
            steps: element_count(&[steps])?,
            shared: element_count(&[shared])?,
            group: element_count(&[heads / shared])?,
            size: element_count(&[size])?,
            value_size: element_count(&[value_size])?,
            decay_size: if decay == shared { 1 } else { element_count(&[size])? },
            beta_size: element_count(&[beta])?,
        })
    }
}

fn run_linear_attention(
    cpu: &Cpu,
    plan: &LinearAttentionPlan,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    match operands.call().input(0)?.dtype() {
        Dtype::F32 => run_typed::<f32>(cpu, plan, operands),
        Dtype::F16 => run_typed::<f16>(cpu, plan, operands),
        _ => run_typed::<bf16>(cpu, plan, operands),
    }
}

/// Floats that are computed in `f32`.
trait LinearAttentionFloat: FloatElement + ComputeElement<Float = f32> {}

impl<E: FloatElement + ComputeElement<Float = f32>> LinearAttentionFloat for E {}

fn run_typed<E: LinearAttentionFloat>(
    cpu: &Cpu,
    plan: &LinearAttentionPlan,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let sizes = LinearAttentionShape::new(plan, operands)?;
    // A shape with a 0 may have more rows than a loop could visit.
    if operands.call().output(0)?.dims().contains(&0) && operands.call().output(1)?.dims().contains(&0) {
        return Ok(());
    }
    let widened = |elements| E::to_floats(cpu.isa(), elements);
    let floats = |index| operands.read_input(index).map(widened);
    let optional = |index| Ok::<_, PluginError>(operands.read_optional_input(index)?.map(widened));
    let (query, key, value) = (floats(0)?, floats(1)?, floats(2)?);
    let (decay, beta) = (optional(DECAY_INPUT)?, optional(BETA_INPUT)?);
    // The usual scale of attention, which keeps the variance of scores at 1.
    let scale = plan.scale.unwrap_or(1.0 / (sizes.size as f32).sqrt());
    let attention = LinearAttentionOperands {
        query: &query,
        key: &key,
        value: &value,
        decay: decay.as_deref(),
        beta: beta.as_deref(),
        scale,
        sizes: &sizes,
    };
    // Grouped by head, because a task computes all steps of a head and its results must be one slice. In the output, steps come
    // before heads, so the results are reordered at the end.
    let mut made = vec![0.0; sizes.batches * sizes.shared * sizes.steps * sizes.group * sizes.value_size];
    match operands.call().output(1)?.dtype() {
        Dtype::F32 => compute_states::<f32>(cpu, &attention, operands, &mut made)?,
        Dtype::F16 => compute_states::<f16>(cpu, &attention, operands, &mut made)?,
        _ => compute_states::<bf16>(cpu, &attention, operands, &mut made)?,
    }
    let LinearAttentionShape { batches, steps, shared, group, value_size, .. } = sizes;
    let width = group * value_size;
    let output = operands.write_output::<E>(0)?;
    for place in 0..batches * steps * shared {
        let (batch, step, head) = (place / (steps * shared), place / shared % steps, place % shared);
        let made = &made[((batch * shared + head) * steps + step) * width..][..width];
        let output = &mut output[place * width..][..width];
        output.iter_mut().zip(made).for_each(|(output, made)| *output = E::from_float(*made));
    }
    Ok(())
}

/// Runs all heads through all steps. Results are grouped by head.
fn compute_states<S: LinearAttentionFloat>(
    cpu: &Cpu,
    attention: &LinearAttentionOperands<'_>,
    operands: &KernelOperands<'_, '_>,
    made: &mut [f32],
) -> Result<()> {
    let &LinearAttentionShape { batches, steps, shared, group, size, value_size, .. } = attention.sizes;
    // States may have another dtype than the operands, so they are converted separately.
    let past = operands.read_optional_input::<S>(PAST_INPUT)?.map(|past| S::to_floats(cpu.isa(), past));
    let (state_size, made_size) = (size * value_size, steps * group * value_size);
    S::write_floats(cpu.isa(), operands.write_output::<S>(1)?, |states| {
        match &past {
            Some(past) => states.copy_from_slice(past),
            None => states.fill(0.0),
        }
        let outputs = (OutputRows::new(states, state_size), OutputRows::new(made, made_size));
        // Steps depend on each other, so only heads and batches run in parallel.
        let grain = grain_for(steps.saturating_mul(state_size));
        parallel_for_parts(cpu, batches * shared, grain, outputs, |first, (states, made)| {
            // States without elements may still have outputs. These are zeros, with which `made` was filled.
            let heads = states.len().checked_div(state_size).unwrap_or(0);
            for index in 0..heads {
                let state = &mut states[index * state_size..][..state_size];
                let made = &mut made[index * made_size..][..made_size];
                cpu.isa().vectorize(LinearAttentionHead { attention, number: first + index, state, made });
            }
        });
    });
    Ok(())
}

struct LinearAttentionOperands<'a> {
    query: &'a [f32],
    key: &'a [f32],
    value: &'a [f32],
    decay: Option<&'a [f32]>,
    beta: Option<&'a [f32]>,
    scale: f32,
    sizes: &'a LinearAttentionShape,
}

/// One head of one batch: its state, and memory for the results of all steps.
struct LinearAttentionHead<'a> {
    attention: &'a LinearAttentionOperands<'a>,
    number: usize,
    state: &'a mut [f32],
    made: &'a mut [f32],
}

impl SimdTask for LinearAttentionHead<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { attention, number, state, made } = self;
        let &LinearAttentionOperands { query, key, value, decay, beta, scale, sizes } = attention;
        let &LinearAttentionShape { steps, shared, group, size, value_size, decay_size, beta_size, .. } =
            sizes;
        let (batch, head) = (number / shared, number % shared);
        let mut added = vec![0.0; value_size];
        for step in 0..steps {
            let row = batch * steps + step;
            let place = row * shared + head;
            let key = &key[place * size..][..size];
            // Starts from the value. The delta rule below subtracts what the state already returns for the key, so that only the
            // difference is added.
            added.copy_from_slice(&value[place * value_size..][..value_size]);
            // The state decays first, so that the delta rule compares with the decayed state.
            if let Some(decay) = decay {
                let decay = &decay[place * decay_size..][..decay_size];
                for (index, line) in state.chunks_exact_mut(value_size).enumerate() {
                    // Decays are logarithms. If the head has a single decay, `decay_size` is 1 and every row uses it.
                    let kept = math::exp::<T, f32>(decay[index % decay_size]);
                    line.iter_mut().for_each(|element| *element *= kept);
                }
            }
            if let Some(beta) = beta {
                let share = beta[if beta_size == 1 { row } else { place }];
                for (key, line) in key.iter().zip(state.chunks_exact(value_size)) {
                    // The product with the transposed state, as a sum of scaled rows: that has unit stride and vectorizes; dot
                    // products with columns would not.
                    add_scaled::<T>(&mut added, -*key, line);
                }
                added.iter_mut().for_each(|element| *element *= share);
            }
            for (key, line) in key.iter().zip(state.chunks_exact_mut(value_size)) {
                add_scaled::<T>(line, *key, &added);
            }
            for query_head in 0..group {
                let query = &query[(place * group + query_head) * size..][..size];
                let sums = &mut made[(step * group + query_head) * value_size..][..value_size];
                for (query, line) in query.iter().zip(state.chunks_exact(value_size)) {
                    // The state is read after the update, so a query sees its own step.
                    add_scaled::<T>(sums, scale * query, line);
                }
            }
        }
    }
}

/// sums += factor · line
#[inline(always)]
fn add_scaled<T: SimdTarget>(sums: &mut [f32], factor: f32, line: &[f32]) {
    for (sum, element) in sums.iter_mut().zip(line) {
        *sum = factor.multiply_add::<T>(*element, *sum);
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    /// Two query heads that read one key head.
    fn rule_attributes(rule: &str) -> [(&str, TestAttribute<'_>); 4] {
        [
            ("q_num_heads", TestAttribute::Int(2)),
            ("kv_num_heads", TestAttribute::Int(1)),
            ("scale", TestAttribute::Float(1.0)),
            ("update_rule", TestAttribute::Text(rule)),
        ]
    }

    /// A rule, its gates, and the expected outputs and state after two steps.
    type LinearAttentionCase<'a> = (&'a str, [Option<&'a TestArray>; 2], [f32; 4], [f32; 2]);

    #[test]
    fn states_fade_and_take_what_they_do_not_have_yet() {
        let query = TestArray::from_values(&[1, 2, 4], &[1f32, 0., 0., 1., 1., 0., 0., 1.]);
        let key = TestArray::from_values(&[1, 2, 2], &[1f32, 0., 1., 1.]);
        let value = TestArray::from_values(&[1, 2, 1], &[2f32, 4.]);
        let beta = TestArray::from_values(&[1, 2, 1], &[1f32, 0.5]);
        // Halves the first row of the state in the second step and keeps the other.
        let decay = TestArray::from_values(&[1, 2, 2], &[0f32, 0., -std::f32::consts::LN_2, 0.]);
        let operands = [Some(&query), Some(&key), Some(&value), None];
        let cases: [LinearAttentionCase<'_>; 4] = [
            ("linear", [None, None], [2., 0., 6., 4.], [6., 4.]),
            ("gated", [Some(&decay), None], [2., 0., 5., 4.], [5., 4.]),
            ("delta", [None, Some(&beta)], [2., 0., 3., 1.], [3., 1.]),
            ("gated_delta", [Some(&decay), Some(&beta)], [2., 0., 2.5, 1.5], [2.5, 1.5]),
        ];
        for (rule, gates, made, state) in cases {
            let inputs: Vec<_> = operands.into_iter().chain(gates).collect();
            let outputs =
                [TestArray::from_values(&[1, 2, 2], &made), TestArray::from_values(&[1, 1, 2, 1], &state)];
            KERNELS.check_kernel("LinearAttention", 27, &rule_attributes(rule), &inputs, &outputs);
        }
    }

    #[test]
    fn a_gate_that_the_rule_does_not_know_is_refused() {
        let (query, key) =
            (TestArray::from_values(&[1, 1, 4], &[1f32; 4]), TestArray::from_values(&[1, 1, 2], &[1f32; 2]));
        let outputs = [Some((Dtype::F32, &[1i64, 1, 4][..])), Some((Dtype::F32, &[1, 1, 2, 2]))];
        let operands = [Some(&query), Some(&key), Some(&key), None, Some(&key)];
        let message =
            KERNELS.refusal_message("LinearAttention", 27, &rule_attributes("linear"), &operands, &outputs);
        assert!(message.contains("`decay` where `update_rule` uses it"), "{message}");
        let message = KERNELS.refusal_message(
            "LinearAttention",
            27,
            &rule_attributes("gated"),
            &operands[..4],
            &outputs,
        );
        assert!(message.contains("found none"), "{message}");
        let message =
            KERNELS.refusal_message("LinearAttention", 27, &rule_attributes("plain"), &operands, &outputs);
        assert!(message.contains("`gated_delta`, found `plain`"), "{message}");
    }
}

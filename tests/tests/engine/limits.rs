//! Small models that need too much: memory, steps, positions in a sequence, space for text. Each is refused with an error that
//! names the limit.

use std::sync::{Arc, LazyLock};

use oarlock_core::{Attribute, Constant, Dtype, Error, ErrorKind, Runtime, Tensor};
use oarlock_engine::graph::{Graph, GraphValue, ValueId, Weight};
use oarlock_engine::{RuntimeValue, Session, SessionOptions};

use crate::sketch::{GraphSketch, int_datum, start_runtime};

/// A runtime with limits on the steps and the memory of a run.
static LIMITED_RUNTIME: LazyLock<Arc<Runtime>> = LazyLock::new(|| {
    Arc::new(start_runtime("devices 1", &[("run_steps_limit", "1000"), ("device_memory_limit", "64MiB")]))
});

/// Runs a model that must fail, and returns the error.
fn expect_refusal(sketch: &GraphSketch, inputs: &[RuntimeValue]) -> Error {
    run_limited(sketch, inputs).expect_err("an error")
}

fn run_limited(sketch: &GraphSketch, inputs: &[RuntimeValue]) -> Result<Vec<RuntimeValue>, Error> {
    let session = Session::new(LIMITED_RUNTIME.clone(), &sketch.to_model(), &SessionOptions::default())?;
    session.run(inputs)
}

impl GraphSketch {
    fn add_true(&mut self) -> ValueId {
        self.add_constant(Constant::new(Dtype::Bool, &[], vec![1]).expect("one element"))
    }

    /// An endless loop over values; a function builds its body in a nested sketch.
    fn add_endless_loop(
        &mut self,
        carried: &[ValueId],
        body: impl FnOnce(&mut GraphSketch, &[ValueId]) -> Vec<ValueId>,
    ) -> ValueId {
        let count = self.add_constant(Constant::from_ints(&[i64::MAX]).with_shape(&[]).expect("one element"));
        let goes_on = self.add_true();
        let operands: Vec<ValueId> = [count, goes_on].into_iter().chain(carried.iter().copied()).collect();
        let mut inner = GraphSketch::new();
        inner.add_input("iteration", Dtype::I64, &[]);
        let condition = inner.add_input("goes on", Dtype::Bool, &[]);
        let formal: Vec<ValueId> = carried
            .iter()
            .map(|_| inner.add_input(&format!("carried {}", inner.graph.value_count()), Dtype::F32, &[]))
            .collect();
        let made = body(&mut inner, &formal);
        inner.graph.outputs = [condition].into_iter().chain(made).collect();
        let outputs = self.add_op_with_outputs("Loop", &operands, &[], carried.len().max(1));
        self.set_subgraph("body", inner.graph, &[]);
        outputs[0]
    }
}

#[test]
fn a_loop_without_end_takes_as_many_steps_as_it_may() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1]);
    let y = sketch.add_endless_loop(&[x], |body, carried| vec![body.add_op("Relu", carried)]);
    let error = expect_refusal(&sketch.with_outputs(&[y]), &[crate::sketch::float_datum(&[1], &[1.0])]);
    let text = error.to_string();
    assert!(text.contains("at most 1000 steps") && text.contains("`run_steps_limit`"), "{text}");
    // A loop with an empty body counts too.
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1]);
    let y = sketch.add_endless_loop(&[x], |_, carried| carried.to_vec());
    let error = expect_refusal(&sketch.with_outputs(&[y]), &[crate::sketch::float_datum(&[1], &[1.0])]);
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
}

#[test]
fn sizes_that_add_up_to_more_than_a_number_holds_do_not_become_little_memory() {
    let mut sketch = GraphSketch::new();
    let shape = sketch.add_input("shape", Dtype::I64, &[1]);
    let size = sketch.add_ints(&[1 << 58]);
    // Each needs 2^60 bytes, and all of them together with their sum 2^64.
    let parts: Vec<ValueId> = (0..15)
        .map(|index| {
            let one = sketch.add_floats(&[1], &[index as f32]);
            let expanded = sketch.add_op("Expand", &[one, size]);
            sketch.add_op("Sin", &[expanded])
        })
        .collect();
    let sum = sketch.add_op("Sum", &parts);
    let axes = sketch.add_ints(&[0]);
    let sum = sketch.add_op("ReduceSum", &[sum, axes]);
    let error = expect_refusal(&sketch.with_outputs(&[sum, shape]), &[int_datum(&[1], &[1])]);
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
}

#[test]
fn nothing_is_cut_into_more_parts_than_a_sequence_holds() {
    for (dims, size) in [([1i64 << 40, 0], None), ([1 << 40, 0], Some(3i64)), ([1 << 21, 1], None)] {
        let mut sketch = GraphSketch::new();
        let dims = sketch.add_ints(&dims);
        let x = sketch.add_op("ConstantOfShape", &[dims]);
        let mut operands = vec![x];
        if let Some(size) = size {
            operands.push(
                sketch.add_constant(Constant::from_ints(&[size]).with_shape(&[]).expect("one element")),
            );
        }
        let parts = sketch.add_op("SplitToSequence", &operands);
        let count = sketch.add_op("SequenceLength", &[parts]);
        let error = expect_refusal(&sketch.with_outputs(&[count]), &[]);
        assert!(error.to_string().contains("at most 1048576 parts"), "{error}");
    }
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1]);
    let sizes = sketch.add_ints(&[i64::MAX, i64::MAX, 4]);
    let parts = sketch.add_op("SplitToSequence", &[x, sizes]);
    let count = sketch.add_op("SequenceLength", &[parts]);
    let error =
        expect_refusal(&sketch.with_outputs(&[count]), &[crate::sketch::float_datum(&[2], &[1.0, 2.0])]);
    assert!(error.to_string().contains("together have 2 elements"), "{error}");
}

#[test]
fn text_that_doubles_again_and_again_is_refused() {
    let texts = |sketch: &mut GraphSketch, dims: &[i64]| {
        let texts = vec!["text".to_owned(); dims.iter().product::<i64>() as usize];
        let weight = Weight::Texts { dims: dims.to_vec(), texts: texts.into() };
        sketch.graph.add_value(GraphValue::with_weight(format!("texts {dims:?}"), weight))
    };
    let mut sketch = GraphSketch::new();
    let mut text = texts(&mut sketch, &[1]);
    for _ in 0..40 {
        text = sketch.add_op("StringConcat", &[text, text]);
    }
    let error = expect_refusal(&sketch.with_outputs(&[text]), &[]);
    assert!(error.to_string().contains("texts of at most 16777216 bytes, found one of 33554432"), "{error}");
    let mut sketch = GraphSketch::new();
    let (rows, columns) = (texts(&mut sketch, &[1 << 13, 1]), texts(&mut sketch, &[1, 1 << 13]));
    let pairs = sketch.add_op("StringConcat", &[rows, columns]);
    let error = expect_refusal(&sketch.with_outputs(&[pairs]), &[]);
    assert!(error.to_string().contains("at most 1073741824 bytes of new text"), "{error}");
    let mut sketch = GraphSketch::new();
    let (truth, size) = (sketch.add_true(), sketch.add_ints(&[44 << 20]));
    let truths = sketch.add_op("Expand", &[truth, size]);
    let to = [("to", Attribute::Int(Dtype::String.onnx_number()))];
    let written = sketch.add_op_with("Cast", &[truths], &to);
    let error = expect_refusal(&sketch.with_outputs(&[written]), &[]);
    assert!(error.to_string().contains("at most 1073741824 bytes of new text"), "{error}");
}

#[test]
fn a_sequence_of_sequences_is_refused_as_it_would_double_with_each_op() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1]);
    let mut sequence = sketch.add_op("SequenceConstruct", &[x]);
    for _ in 0..40 {
        sequence = sketch.add_op("SequenceConstruct", &[sequence, sequence]);
    }
    let error =
        expect_refusal(&sketch.with_outputs(&[sequence]), &[crate::sketch::float_datum(&[1], &[1.0])]);
    assert!(error.to_string().contains("expected a tensor, found a sequence"), "{error}");
}

/// An `If` whose branches have this many formal inputs and outputs.
fn branching_sketch(is_constant: bool, formal: usize, outputs: usize) -> GraphSketch {
    let mut sketch = GraphSketch::new();
    let condition = if is_constant { sketch.add_true() } else { sketch.add_input("c", Dtype::Bool, &[]) };
    let branch = || {
        let mut branch = GraphSketch::new();
        let mut last = branch.add_floats(&[1], &[1.0]);
        for index in 0..formal {
            last = branch.add_input(&format!("formal {index}"), Dtype::F32, &[1]);
        }
        let made = branch.add_op("Relu", &[last]);
        branch.with_outputs(&vec![made; outputs]).graph
    };
    let made = sketch.add_op_with_outputs("If", &[condition], &[], 2);
    sketch.set_subgraph("then_branch", branch(), &[]);
    sketch.set_subgraph("else_branch", branch(), &[]);
    sketch.with_outputs(&made)
}

#[test]
fn branches_with_unfed_inputs_or_too_few_outputs_are_refused() {
    for is_constant in [true, false] {
        let cpu = LIMITED_RUNTIME.device("cpu").expect("the CPU");
        let condition = Tensor::from_bytes(&cpu, Dtype::Bool, &[], &[1]).expect("a condition");
        let inputs: Vec<RuntimeValue> = if is_constant { vec![] } else { vec![condition.into()] };
        run_limited(&branching_sketch(is_constant, 0, 2), &inputs).expect("outputs");
        let error = expect_refusal(&branching_sketch(is_constant, 1, 2), &inputs);
        assert!(error.to_string().contains("found one with 1"), "{error}");
        let error = expect_refusal(&branching_sketch(is_constant, 0, 1), &inputs);
        assert!(error.to_string().contains("at least 2 values"), "{error}");
    }
}

#[test]
fn graphs_lie_as_deep_in_each_other_as_a_file_may_have_them() {
    let mut inner: Option<Graph> = None;
    for _ in 0..20 {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[-1]);
        let made = match inner {
            None => sketch.add_op("Relu", &[x]),
            Some(graph) => {
                let count =
                    sketch.add_constant(Constant::from_ints(&[1]).with_shape(&[]).expect("one element"));
                let mut body = GraphSketch::new();
                body.add_input("iteration", Dtype::I64, &[]);
                let goes_on = body.add_input("goes on", Dtype::Bool, &[]);
                let captured = body.add_input("captured", Dtype::F32, &[-1]);
                let condition = body.add_op("Not", &[goes_on]);
                let condition = body.add_op("Not", &[condition]);
                let made = body.add_op_with_outputs("If", &[condition], &[], 1);
                let mut other = GraphSketch::new();
                let nothing = other.add_floats(&[0], &[]);
                body.set_subgraph("then_branch", graph, &[captured]);
                body.set_subgraph("else_branch", other.with_outputs(&[nothing]).graph, &[]);
                body.graph.outputs = vec![goes_on, made[0]];
                let goes_on = sketch.add_true();
                let made = sketch.add_op("Loop", &[count, goes_on]);
                sketch.set_subgraph("body", body.graph, &[x]);
                let axes = sketch.add_ints(&[0]);
                sketch.add_op("Squeeze", &[made, axes])
            }
        };
        inner = Some(sketch.with_outputs(&[made]).graph);
    }
    let mut sketch = GraphSketch::new();
    sketch.graph = inner.expect("a graph");
    let found = run_limited(&sketch, &[crate::sketch::float_datum(&[2], &[1.0, -1.0])]).expect("outputs");
    assert_eq!(found[0].as_tensor().unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0]);
}

#[test]
fn constants_that_double_again_and_again_stay_few() {
    let mut sketch = GraphSketch::new();
    let mut doubled = sketch.add_floats(&[4], &[1.0, 2.0, 3.0, 4.0]);
    for _ in 0..26 {
        doubled = sketch.add_op_with("Concat", &[doubled, doubled], &[("axis", Attribute::Int(0))]);
    }
    let x = sketch.add_input("x", Dtype::F32, &[1]);
    let sum = sketch.add_op("ReduceSum", &[doubled]);
    let made = sketch.add_op("Add", &[x, sum]);
    let session = sketch.with_outputs(&[made]).start_session(&SessionOptions::default());
    let plan = session.plan(&[crate::sketch::float_datum(&[1], &[0.0])]).expect("a plan");
    let folded = plan.graph().weight_bytes();
    // Each of the two runs of the passes may fold a base of 16 MiB and some more for each byte that it starts with.
    assert!((1 << 20..256 << 20).contains(&folded), "{folded} bytes");
}

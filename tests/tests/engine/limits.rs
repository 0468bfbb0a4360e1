//! Small models that want more than there is: memory, steps, places in a sequence, room for text. Each is refused, and what
//! is refused is named.

use std::sync::{Arc, LazyLock};

use oarlock_core::{Attribute, Constant, Dtype, Error, ErrorKind, Runtime, Tensor};
use oarlock_engine::graph::{Graph, Value, ValueId, Weight};
use oarlock_engine::{Datum, Session, SessionOptions};

use crate::sketch::{Sketch, ints, runtime};

/// A runtime whose runs take so many steps and so much memory.
static LIMITED: LazyLock<Arc<Runtime>> = LazyLock::new(|| {
    Arc::new(runtime("devices 1", &[("run_steps_limit", "1000"), ("device_memory_limit", "64MiB")]))
});

/// Runs a model; it fails.
fn refused(sketch: &Sketch, inputs: &[Datum]) -> Error {
    ran(sketch, inputs).expect_err("an error")
}

fn ran(sketch: &Sketch, inputs: &[Datum]) -> Result<Vec<Datum>, Error> {
    let session = Session::new(LIMITED.clone(), &sketch.model(), &SessionOptions::default())?;
    session.run(inputs)
}

impl Sketch {
    fn truth(&mut self) -> ValueId {
        self.constant(Constant::new(Dtype::Bool, &[], vec![1]).expect("one element"))
    }

    /// A loop without end over values, whose body is what a function makes of one more sketch.
    fn endless(
        &mut self,
        carried: &[ValueId],
        body: impl FnOnce(&mut Sketch, &[ValueId]) -> Vec<ValueId>,
    ) -> ValueId {
        let count = self.constant(Constant::of_ints(&[i64::MAX]).reshaped(&[]).expect("one element"));
        let goes_on = self.truth();
        let operands: Vec<ValueId> = [count, goes_on].into_iter().chain(carried.iter().copied()).collect();
        let mut inner = Sketch::new();
        inner.input("iteration", Dtype::I64, &[]);
        let condition = inner.input("goes on", Dtype::Bool, &[]);
        let formal: Vec<ValueId> = carried
            .iter()
            .map(|_| inner.input(&format!("carried {}", inner.graph.value_count()), Dtype::F32, &[]))
            .collect();
        let made = body(&mut inner, &formal);
        inner.graph.outputs = [condition].into_iter().chain(made).collect();
        let outputs = self.op_of("Loop", &operands, &[], carried.len().max(1));
        self.with_graph("body", inner.graph, &[]);
        outputs[0]
    }
}

#[test]
fn a_loop_without_end_takes_as_many_steps_as_it_may() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1]);
    let y = sketch.endless(&[x], |body, carried| vec![body.op("Relu", carried)]);
    let error = refused(&sketch.output(&[y]), &[crate::sketch::tensor(&[1], &[1.0])]);
    let text = error.to_string();
    assert!(text.contains("at most 1000 steps") && text.contains("`run_steps_limit`"), "{text}");
    // One whose body does nothing counts too.
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1]);
    let y = sketch.endless(&[x], |_, carried| carried.to_vec());
    let error = refused(&sketch.output(&[y]), &[crate::sketch::tensor(&[1], &[1.0])]);
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
}

#[test]
fn sizes_that_add_up_to_more_than_a_number_holds_do_not_become_little_memory() {
    let mut sketch = Sketch::new();
    let shape = sketch.input("shape", Dtype::I64, &[1]);
    let size = sketch.ints(&[1 << 58]);
    // Each takes 2^60 bytes, and all of them together with their sum 2^64.
    let parts: Vec<ValueId> = (0..15)
        .map(|index| {
            let one = sketch.floats(&[1], &[index as f32]);
            let expanded = sketch.op("Expand", &[one, size]);
            sketch.op("Sin", &[expanded])
        })
        .collect();
    let sum = sketch.op("Sum", &parts);
    let axes = sketch.ints(&[0]);
    let sum = sketch.op("ReduceSum", &[sum, axes]);
    let error = refused(&sketch.output(&[sum, shape]), &[ints(&[1], &[1])]);
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
}

#[test]
fn nothing_is_cut_into_more_parts_than_a_sequence_holds() {
    for (dims, size) in [([1i64 << 40, 0], None), ([1 << 40, 0], Some(3i64)), ([1 << 21, 1], None)] {
        let mut sketch = Sketch::new();
        let dims = sketch.ints(&dims);
        let x = sketch.op("ConstantOfShape", &[dims]);
        let mut operands = vec![x];
        if let Some(size) = size {
            operands.push(sketch.constant(Constant::of_ints(&[size]).reshaped(&[]).expect("one element")));
        }
        let parts = sketch.op("SplitToSequence", &operands);
        let count = sketch.op("SequenceLength", &[parts]);
        let error = refused(&sketch.output(&[count]), &[]);
        assert!(error.to_string().contains("at most 1048576 parts"), "{error}");
    }
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1]);
    let sizes = sketch.ints(&[i64::MAX, i64::MAX, 4]);
    let parts = sketch.op("SplitToSequence", &[x, sizes]);
    let count = sketch.op("SequenceLength", &[parts]);
    let error = refused(&sketch.output(&[count]), &[crate::sketch::tensor(&[2], &[1.0, 2.0])]);
    assert!(error.to_string().contains("together have 2 elements"), "{error}");
}

#[test]
fn text_that_doubles_again_and_again_is_refused() {
    let texts = |sketch: &mut Sketch, dims: &[i64]| {
        let texts = vec!["text".to_owned(); dims.iter().product::<i64>() as usize];
        let weight = Weight::Texts { dims: dims.to_vec(), texts: texts.into() };
        sketch.graph.add(Value::constant(format!("texts {dims:?}"), weight))
    };
    let mut sketch = Sketch::new();
    let mut text = texts(&mut sketch, &[1]);
    for _ in 0..40 {
        text = sketch.op("StringConcat", &[text, text]);
    }
    let error = refused(&sketch.output(&[text]), &[]);
    assert!(error.to_string().contains("texts of at most 16777216 bytes, found one of 33554432"), "{error}");
    let mut sketch = Sketch::new();
    let (rows, columns) = (texts(&mut sketch, &[1 << 13, 1]), texts(&mut sketch, &[1, 1 << 13]));
    let pairs = sketch.op("StringConcat", &[rows, columns]);
    let error = refused(&sketch.output(&[pairs]), &[]);
    assert!(error.to_string().contains("at most 1073741824 bytes of new text"), "{error}");
    let mut sketch = Sketch::new();
    let (truth, size) = (sketch.truth(), sketch.ints(&[44 << 20]));
    let truths = sketch.op("Expand", &[truth, size]);
    let to = [("to", Attribute::Int(Dtype::String.onnx_number()))];
    let written = sketch.op_with("Cast", &[truths], &to);
    let error = refused(&sketch.output(&[written]), &[]);
    assert!(error.to_string().contains("at most 1073741824 bytes of new text"), "{error}");
}

#[test]
fn a_sequence_of_sequences_is_refused_as_it_would_double_with_each_op() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1]);
    let mut sequence = sketch.op("SequenceConstruct", &[x]);
    for _ in 0..40 {
        sequence = sketch.op("SequenceConstruct", &[sequence, sequence]);
    }
    let error = refused(&sketch.output(&[sequence]), &[crate::sketch::tensor(&[1], &[1.0])]);
    assert!(error.to_string().contains("expected a tensor, found a sequence"), "{error}");
}

/// An `If` whose branches take so many formal inputs and make so many outputs.
fn branching(is_constant: bool, formal: usize, outputs: usize) -> Sketch {
    let mut sketch = Sketch::new();
    let condition = if is_constant { sketch.truth() } else { sketch.input("c", Dtype::Bool, &[]) };
    let branch = || {
        let mut branch = Sketch::new();
        let mut last = branch.floats(&[1], &[1.0]);
        for index in 0..formal {
            last = branch.input(&format!("formal {index}"), Dtype::F32, &[1]);
        }
        let made = branch.op("Relu", &[last]);
        branch.output(&vec![made; outputs]).graph
    };
    let made = sketch.op_of("If", &[condition], &[], 2);
    sketch.with_graph("then_branch", branch(), &[]);
    sketch.with_graph("else_branch", branch(), &[]);
    sketch.output(&made)
}

#[test]
fn branches_that_want_what_nobody_gives_or_make_too_little_are_refused() {
    for is_constant in [true, false] {
        let cpu = LIMITED.device("cpu").expect("the CPU");
        let condition = Tensor::from_bytes(&cpu, Dtype::Bool, &[], &[1]).expect("a condition");
        let inputs: Vec<Datum> = if is_constant { vec![] } else { vec![condition.into()] };
        ran(&branching(is_constant, 0, 2), &inputs).expect("outputs");
        let error = refused(&branching(is_constant, 1, 2), &inputs);
        assert!(error.to_string().contains("found one with 1"), "{error}");
        let error = refused(&branching(is_constant, 0, 1), &inputs);
        assert!(error.to_string().contains("at least 2 values"), "{error}");
    }
}

#[test]
fn graphs_lie_as_deep_in_each_other_as_a_file_may_have_them() {
    let mut inner: Option<Graph> = None;
    for _ in 0..20 {
        let mut sketch = Sketch::new();
        let x = sketch.input("x", Dtype::F32, &[-1]);
        let made = match inner {
            None => sketch.op("Relu", &[x]),
            Some(graph) => {
                let count = sketch.constant(Constant::of_ints(&[1]).reshaped(&[]).expect("one element"));
                let mut body = Sketch::new();
                body.input("iteration", Dtype::I64, &[]);
                let goes_on = body.input("goes on", Dtype::Bool, &[]);
                let captured = body.input("captured", Dtype::F32, &[-1]);
                let condition = body.op("Not", &[goes_on]);
                let condition = body.op("Not", &[condition]);
                let made = body.op_of("If", &[condition], &[], 1);
                let mut other = Sketch::new();
                let nothing = other.floats(&[0], &[]);
                body.with_graph("then_branch", graph, &[captured]);
                body.with_graph("else_branch", other.output(&[nothing]).graph, &[]);
                body.graph.outputs = vec![goes_on, made[0]];
                let goes_on = sketch.truth();
                let made = sketch.op("Loop", &[count, goes_on]);
                sketch.with_graph("body", body.graph, &[x]);
                let axes = sketch.ints(&[0]);
                sketch.op("Squeeze", &[made, axes])
            }
        };
        inner = Some(sketch.output(&[made]).graph);
    }
    let mut sketch = Sketch::new();
    sketch.graph = inner.expect("a graph");
    let found = ran(&sketch, &[crate::sketch::tensor(&[2], &[1.0, -1.0])]).expect("outputs");
    assert_eq!(found[0].tensor().unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0]);
}

#[test]
fn constants_that_double_again_and_again_stay_few() {
    let mut sketch = Sketch::new();
    let mut doubled = sketch.floats(&[4], &[1.0, 2.0, 3.0, 4.0]);
    for _ in 0..26 {
        doubled = sketch.op_with("Concat", &[doubled, doubled], &[("axis", Attribute::Int(0))]);
    }
    let x = sketch.input("x", Dtype::F32, &[1]);
    let sum = sketch.op("ReduceSum", &[doubled]);
    let made = sketch.op("Add", &[x, sum]);
    let session = sketch.output(&[made]).session(&SessionOptions::default());
    let plan = session.plan(&[crate::sketch::tensor(&[1], &[0.0])]).expect("a plan");
    let folded = plan.graph().weight_bytes();
    assert!((1 << 20..100 << 20).contains(&folded), "{folded} bytes");
}

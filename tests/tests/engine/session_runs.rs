//! Runs: changing shapes, data-dependent shapes, control flow, many threads, and invalid feeds.

use std::sync::Arc;

use oarlock_core::{Attribute, Dtype, Tensor};
use oarlock_engine::graph::{DeclaredDimension, GraphValue, ValueId, ValueType};
use oarlock_engine::{ExecutionPlan, RuntimeValue, Session, SessionOptions};

use crate::sketch::{
    GraphSketch, SHARED_RUNTIME, datum_bytes, float_datum, int_datum, random_datum, run_session,
    start_runtime,
};

fn read_floats(datum: &RuntimeValue) -> Vec<f32> {
    datum.as_tensor().and_then(Tensor::to_vec).unwrap_or_else(|error| panic!("{error}"))
}

/// `Y = softmax(X·W + b)` for any number of rows.
fn classifier_sketch() -> GraphSketch {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, 16]);
    let (w, b) = (sketch.add_weights(&[16, 10], 2), sketch.add_weights(&[10], 3));
    let product = sketch.add_op("MatMul", &[x, w]);
    let sum = sketch.add_op("Add", &[product, b]);
    let y = sketch.add_op("Softmax", &[sum]);
    sketch.with_outputs(&[y])
}

#[test]
fn every_shape_gets_a_plan_of_its_own() {
    let session = classifier_sketch().start_session(&SessionOptions::default());
    for rows in (1..60).chain(1..60) {
        let made = run_session(&session, &[random_datum(&[rows, 16], 5)]);
        assert_eq!(made[0].as_tensor().unwrap().dims(), [rows, 10]);
        let sum: f32 = read_floats(&made[0]).iter().sum();
        assert!((sum - rows as f32).abs() < 1e-3, "{sum}");
    }
}

#[test]
fn threads_that_come_first_with_the_same_shapes_share_one_plan() {
    let session = classifier_sketch().start_session(&SessionOptions::default());
    let plan = || session.plan(&[random_datum(&[3, 16], 5)]).unwrap();
    let plans: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(plan)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(plans.iter().all(|plan| Arc::ptr_eq(plan, &plans[0])));
}

/// The session's plan for this number of rows.
fn plan_for(session: &Session, rows: i64) -> Arc<ExecutionPlan> {
    session.plan(&[random_datum(&[rows, 16], 5)]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn plans_that_take_little_memory_stay() {
    let session = classifier_sketch().start_session(&SessionOptions::default());
    let plans: Vec<_> = (1..200).map(|rows| plan_for(&session, rows)).collect();
    for (rows, plan) in (1..200).zip(&plans) {
        assert!(Arc::ptr_eq(plan, &plan_for(&session, rows)), "{rows}");
        assert_eq!(plan.graph().value(plan.graph().inputs[0]).dims().unwrap().as_slice(), [rows, 16]);
    }
}

#[test]
fn others_take_the_place_of_plans_that_take_much_unless_somebody_keeps_asking_for_them() {
    let mut sketch = classifier_sketch();
    (0..40_000).for_each(|_| _ = sketch.add_scalar(1.0));
    let session = sketch.start_session(&SessionOptions::default());
    let first = plan_for(&session, 1);
    let plan = plan_for(&session, 3);
    let others = |asks: bool, most| {
        for rows in 10..most {
            plan_for(&session, rows);
            asks.then(|| plan_for(&session, 3));
        }
        Arc::ptr_eq(&plan_for(&session, 3), &plan)
    };
    assert!(others(true, 80));
    // Eviction picks plans at random, so with this many shapes the plan is all but certain to be gone.
    assert!(!others(false, 300));
    // The plan of the first shape is kept, since most runs use it.
    assert!(Arc::ptr_eq(&plan_for(&session, 1), &first));
}

#[test]
fn plans_of_all_shapes_run_in_the_memory_of_the_largest() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, 1024]);
    let sum = sketch.add_op("Exp", &[x]);
    let y = sketch.add_op("ReduceSum", &[sum]);
    let runtime = Arc::new(start_runtime("mode lazy; seed 5; devices 1", &[]));
    let session = sketch.with_outputs(&[y]).simulated_session(&runtime);
    let pool = runtime.device("sim").unwrap().memory_pool().unwrap().clone();
    // In the second round all plans exist, and each may try to keep memory; the last round adds a small new one.
    for rows in (1..60).chain(1..60).chain([61, 2]) {
        run_session(&session, &[random_datum(&[rows, 1024], 5)]);
    }
    let taken = |rows: i64| {
        let plan = session.plan(&[random_datum(&[rows, 1024], 5)]).unwrap();
        plan.arenas().iter().map(|(_, size)| *size).sum::<u64>()
    };
    let (largest, all) = (taken(61), (1..=61).map(taken).sum::<u64>());
    let allocated = pool.statistics().allocated;
    assert!(allocated >= largest && allocated < largest + all / 8, "{allocated} of {largest}, {all}");
}

#[test]
fn what_a_model_says_about_its_outputs_is_checked() {
    let declared = |dtype: Dtype, dims: &[i64]| {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[2, 4]);
        let y = sketch.add_op("Relu", &[x]);
        let dims = dims.iter().map(|size| DeclaredDimension::Known(*size)).collect();
        sketch.graph.value_mut(y).declared = ValueType::Tensor { dtype: Some(dtype), dims: Some(dims) };
        let model = sketch.with_outputs(&[y]).to_model();
        let session = Session::new(SHARED_RUNTIME.clone(), &model, &SessionOptions::default());
        session.map(|session| session.outputs()[0].declared.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(declared(Dtype::F32, &[2, 4]), Ok("f32[2, 4]".to_owned()));
    assert_eq!(declared(Dtype::F32, &[7, 7]), Ok("f32[2, 4]".to_owned()));
    let error = declared(Dtype::I64, &[2, 4]).unwrap_err();
    assert!(error.contains("expected i64") && error.contains("found that its nodes make f32"), "{error}");
}

#[test]
fn zero_rows_are_rows_too() {
    let session = classifier_sketch().start_session(&SessionOptions::default());
    let made = run_session(&session, &[random_datum(&[0, 16], 5)]);
    assert_eq!(made[0].as_tensor().unwrap().dims(), [0, 10]);
}

#[test]
fn shapes_that_depend_on_data_are_found_in_the_run() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1]);
    let zero = sketch.add_scalar(0.0);
    let is_more = sketch.add_op("Greater", &[x, zero]);
    let kept = sketch.add_op_with("Compress", &[x, is_more], &[("axis", Attribute::Int(0))]);
    let y = sketch.add_op("Neg", &[kept]);
    let session = sketch.with_outputs(&[y]).start_session(&SessionOptions::default());
    assert_eq!(
        read_floats(&run_session(&session, &[float_datum(&[4], &[1.0, -2.0, 3.0, -4.0])])[0]),
        [-1.0, -3.0]
    );
    assert_eq!(
        read_floats(&run_session(&session, &[float_datum(&[4], &[-1.0, -2.0, -3.0, 4.0])])[0]),
        [-4.0]
    );
}

#[test]
fn a_shape_that_is_an_input_is_read_in_the_run() {
    let mut sketch = GraphSketch::new();
    let (x, shape) = (sketch.add_input("x", Dtype::F32, &[-1]), sketch.add_input("shape", Dtype::I64, &[2]));
    let seen = sketch.add_op("Reshape", &[x, shape]);
    let y = sketch.add_op_with("Transpose", &[seen], &[("perm", Attribute::Ints(vec![1, 0]))]);
    let session = sketch.with_outputs(&[y]).start_session(&SessionOptions::default());
    let x = float_datum(&[6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let made = run_session(&session, &[x.clone(), int_datum(&[2], &[2, 3])]);
    assert_eq!(
        (read_floats(&made[0]), made[0].as_tensor().unwrap().dims()),
        (vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0], &[3, 2][..])
    );
    let made = run_session(&session, &[x, int_datum(&[2], &[1, 6])]);
    assert_eq!(made[0].as_tensor().unwrap().dims(), [6, 1]);
}

#[test]
fn numbers_become_texts_and_texts_become_labels() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[3]);
    let texts = sketch.add_op_with("Cast", &[x], &[("to", Attribute::Int(Dtype::String.onnx_number()))]);
    let words = |words: &[&str]| Attribute::Strings(words.iter().map(|word| (*word).to_owned()).collect());
    let attributes = [
        ("keys_strings", words(&["1.0", "7.0", "1.0"])),
        ("values_strings", words(&["one", "seven", "again"])),
        ("default_string", Attribute::String("other".to_owned())),
    ];
    let labels = sketch.add_op_with("LabelEncoder", &[texts], &attributes);
    let node = sketch.graph.nodes.last_mut().unwrap();
    (node.domain, node.opset) = ("ai.onnx.ml".into(), 4);
    let session = sketch.with_outputs(&[texts, labels]).start_session(&SessionOptions::default());
    let made = run_session(&session, &[float_datum(&[3], &[1.0, 2.5e-7, 7.0])]);
    let made: Vec<Vec<String>> =
        made.iter().map(|made| made.as_tensor().unwrap().to_strings().unwrap()).collect();
    assert_eq!(made, [["1.0", "2.5e-07", "7.0"], ["one", "other", "seven"]]);
}

#[test]
fn labels_for_numbers_outlive_their_session() {
    let words = |words: &[&str]| Attribute::Strings(words.iter().map(|word| (*word).to_owned()).collect());
    let labels_of = |keys: (&'static str, Attribute), x: RuntimeValue, dtype: Dtype| {
        let mut sketch = GraphSketch::new();
        let input = sketch.add_input("x", dtype, &[-1]);
        let attributes = [keys, ("values_strings", words(&["zero", "one", "again"]))];
        let labels = sketch.add_op_with("LabelEncoder", &[input], &attributes);
        let node = sketch.graph.nodes.last_mut().unwrap();
        (node.domain, node.opset) = ("ai.onnx.ml".into(), 4);
        let session = sketch.with_outputs(&[labels]).start_session(&SessionOptions::default());
        let made = run_session(&session, &[x]);
        drop(session);
        made[0].as_tensor().unwrap().to_strings().unwrap()
    };
    let ints = ("keys_int64s", Attribute::Ints(vec![0, 1, 1]));
    let labels = labels_of(ints, int_datum(&[4], &[1, 0, 7, 1]), Dtype::I64);
    assert_eq!(labels, ["one", "zero", "_Unused", "one"]);
    let floats = ("keys_floats", Attribute::Floats(vec![0.0, f64::NAN, f64::NAN]));
    let labels = labels_of(floats, float_datum(&[3], &[-0.0, f32::NAN, 0.5]), Dtype::F32);
    assert_eq!(labels, ["zero", "one", "_Unused"]);
    let none = ("keys_int64s", Attribute::Ints(vec![0, 1, 1]));
    assert_eq!(labels_of(none, int_datum(&[0], &[]), Dtype::I64), [""; 0]);
}

#[test]
fn texts_that_differ_are_found_with_their_places_and_counts() {
    let device = SHARED_RUNTIME.default_device().unwrap().clone();
    let texts = ["b", "a", "b", "a", "z", "b"].map(str::to_owned);
    let rows = RuntimeValue::Tensor(Tensor::from_strings(&device, &[3, 2], texts.to_vec()).unwrap());
    let unique = |attributes: &[(&str, i64)]| {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::String, &[3, 2]);
        let attributes: Vec<_> =
            attributes.iter().map(|(name, value)| (*name, Attribute::Int(*value))).collect();
        let made = sketch.add_op_with_outputs("Unique", &[x], &attributes, 4);
        let made = run_session(
            &sketch.with_outputs(&made).start_session(&SessionOptions::default()),
            std::slice::from_ref(&rows),
        );
        let places: Vec<Vec<i64>> =
            made[1..].iter().map(|made| made.as_tensor().unwrap().to_vec().unwrap()).collect();
        (made[0].as_tensor().unwrap().to_strings().unwrap(), places)
    };
    let (texts, places) = unique(&[]);
    assert_eq!(
        (texts.join(" ").as_str(), places),
        ("a b z", vec![vec![1, 0, 4], vec![1, 0, 1, 0, 2, 1], vec![2, 3, 1]])
    );
    let (texts, places) = unique(&[("sorted", 0)]);
    assert_eq!(
        (texts.join(" ").as_str(), places),
        ("b a z", vec![vec![0, 1, 4], vec![0, 1, 0, 1, 2, 0], vec![3, 2, 1]])
    );
    let (texts, places) = unique(&[("axis", 0)]);
    assert_eq!((texts.join(" ").as_str(), places), ("b a z b", vec![vec![0, 2], vec![0, 0, 1], vec![2, 1]]));
    let (texts, _) = unique(&[("axis", 1)]);
    assert_eq!(texts.join(" "), "a b a b b z");
}

/// Adds `step` to `start` repeatedly, and stacks the squares of the sums.
fn counter_sketch() -> GraphSketch {
    let mut body = GraphSketch::new();
    let [iteration, condition, sum, step] =
        ["i", "go", "sum", "step"].map(|name| body.graph.add_value(GraphValue::with_name(name)));
    body.graph.inputs = vec![iteration, condition, sum, step];
    let more = body.add_op("Add", &[sum, step]);
    let go = body.add_op("Identity", &[condition]);
    let square = body.add_op("Mul", &[more, more]);
    let body = body.with_outputs(&[go, more, square]).graph;
    let mut sketch = GraphSketch::new();
    let (count, start, step) = (
        sketch.add_input("count", Dtype::I64, &[]),
        sketch.add_input("start", Dtype::F32, &[1]),
        sketch.add_input("step", Dtype::F32, &[1]),
    );
    let go = sketch.add_constant(oarlock_core::Constant::new(Dtype::Bool, &[], vec![1]).expect("a constant"));
    let made = sketch.add_op_with_outputs("Loop", &[count, go, start], &[], 2);
    sketch.set_subgraph("body", body, &[step]);
    sketch.with_outputs(&made)
}

#[test]
fn a_loop_carries_values_and_stacks_others() {
    let session = counter_sketch().start_session(&SessionOptions::default());
    let outputs =
        run_session(&session, &[int_datum(&[], &[3]), float_datum(&[1], &[1.0]), float_datum(&[1], &[2.0])]);
    assert_eq!(read_floats(&outputs[0]), [7.0]);
    assert_eq!(
        (read_floats(&outputs[1]), outputs[1].as_tensor().unwrap().dims()),
        (vec![9.0, 25.0, 49.0], &[3, 1][..])
    );
    let outputs =
        run_session(&session, &[int_datum(&[], &[0]), float_datum(&[1], &[1.0]), float_datum(&[1], &[2.0])]);
    assert_eq!((read_floats(&outputs[0]), read_floats(&outputs[1])), (vec![1.0], vec![]));
    // A body that never ran contributes no elements, but still the shape that it would output.
    assert_eq!(outputs[1].as_tensor().unwrap().dims(), [0, 1]);
    let outputs =
        run_session(&session, &[int_datum(&[], &[0]), float_datum(&[1], &[1.0]), float_datum(&[1], &[2.0])]);
    assert_eq!(outputs[1].as_tensor().unwrap().dims(), [0, 1]);
}

#[test]
fn steps_of_a_body_are_timed_within_the_loop_that_they_are_of() {
    let session = counter_sketch().start_session(&SessionOptions::default());
    let inputs = [int_datum(&[], &[3]), float_datum(&[1], &[1.0]), float_datum(&[1], &[2.0])];
    let (outputs, timings) = session.run_timed(&inputs).unwrap();
    assert_eq!(read_floats(&outputs[0]), [7.0]);
    assert_eq!(timings.omitted, 0);
    let steps = &timings.steps;
    let at = steps.iter().position(|timing| &*timing.step().node().op == "Loop").unwrap();
    let ops = |within: Option<usize>| -> Vec<&str> {
        let own = steps.iter().filter(|timing| timing.within == within);
        own.map(|timing| &*timing.step().node().op).collect()
    };
    assert_eq!((ops(None), ops(Some(at))), (vec!["Loop"], ["Add", "Mul"].repeat(3)));
    assert!(steps[at + 1..].iter().all(|timing| {
        steps[at].begin <= timing.begin && timing.begin <= timing.launched && timing.end <= steps[at].end
    }));
    let keys: std::collections::BTreeSet<_> =
        steps.iter().map(oarlock_engine::StepTiming::step_key).collect();
    assert_eq!(keys.len(), 3);
}

/// A loop that grows a list by one element per iteration, although its body declares a list of one element.
fn growing_list_session() -> Session {
    let mut body = GraphSketch::new();
    let [iteration, condition] = ["i", "go"].map(|name| body.graph.add_value(GraphValue::with_name(name)));
    let list = body.add_input("list", Dtype::F32, &[1]);
    body.graph.inputs = vec![iteration, condition, list];
    let one = body.add_floats(&[1], &[1.0]);
    let longer = body.add_op_with("Concat", &[list, one], &[("axis", Attribute::Int(0))]);
    let size = body.add_op("Shape", &[list]);
    let go = body.add_op("Identity", &[condition]);
    let body = body.with_outputs(&[go, longer, size]).graph;
    let mut sketch = GraphSketch::new();
    let (count, start) =
        (sketch.add_input("count", Dtype::I64, &[]), sketch.add_input("start", Dtype::F32, &[-1]));
    let go = sketch.add_constant(oarlock_core::Constant::new(Dtype::Bool, &[], vec![1]).expect("one byte"));
    let made = sketch.add_op_with_outputs("Loop", &[count, go, start], &[], 2);
    sketch.set_subgraph("body", body, &[]);
    sketch.with_outputs(&made).start_session(&SessionOptions::default())
}

#[test]
fn steps_of_a_body_that_is_planned_again_and_again_are_noted_for_some_of_its_plans() {
    let inputs = [int_datum(&[], &[100]), float_datum(&[2], &[5.0, 6.0])];
    let timings = growing_list_session().run_timed(&inputs).unwrap().1;
    let plans: std::collections::BTreeSet<_> =
        timings.steps.iter().map(|timing| timing.step_key().0).collect();
    assert!(timings.omitted > 0 && (10..=65).contains(&plans.len()), "{} {}", timings.omitted, plans.len());
    let noted = timings.steps.iter().filter(|timing| timing.within.is_some()).count();
    assert_eq!((noted + timings.omitted) % 100, 0);
}

#[test]
fn a_run_that_is_watched_ends_when_it_is_told_to_and_the_session_can_be_used_again() {
    let session = growing_list_session();
    let endless = [int_datum(&[], &[i64::MAX]), float_datum(&[2], &[5.0, 6.0])];
    let told = || Err(oarlock_core::Error::unavailable("enough"));
    let error = session.run_interruptible(&endless, &told).unwrap_err();
    assert!(error.to_string().contains("enough"), "{error}");
    let short = [int_datum(&[], &[3]), float_datum(&[2], &[5.0, 6.0])];
    let watched = session.run_interruptible(&short, &|| Ok(())).unwrap();
    assert_eq!(read_floats(&watched[0]), [5.0, 6.0, 1.0, 1.0, 1.0]);
}

#[test]
fn what_a_model_says_about_the_inputs_of_a_body_is_not_believed() {
    let session = growing_list_session();
    let outputs = run_session(&session, &[int_datum(&[], &[3]), float_datum(&[2], &[5.0, 6.0])]);
    assert_eq!(read_floats(&outputs[0]), [5.0, 6.0, 1.0, 1.0, 1.0]);
    assert_eq!(outputs[1].as_tensor().unwrap().to_vec::<i64>().unwrap(), [2, 3, 4]);
}

#[test]
fn many_threads_run_one_session_and_get_their_own_results() {
    let session: Arc<Session> = Arc::new(classifier_sketch().start_session(&SessionOptions::default()));
    let expected: Vec<Vec<u8>> = (0..8)
        .map(|seed| datum_bytes(&run_session(&session, &[random_datum(&[seed + 1, 16], seed as u32)])[0]))
        .collect();
    std::thread::scope(|scope| {
        for thread in 0..8i64 {
            let (session, expected) = (session.clone(), &expected);
            scope.spawn(move || {
                for round in 0..50 {
                    let seed = (thread + round) % 8;
                    let made = run_session(&session, &[random_datum(&[seed + 1, 16], seed as u32)]);
                    assert_eq!(datum_bytes(&made[0]), expected[seed as usize]);
                }
            });
        }
    });
}

#[test]
fn outputs_of_a_run_stay_what_they_are_in_later_runs() {
    let session = classifier_sketch().start_session(&SessionOptions::default());
    let first = run_session(&session, &[random_datum(&[4, 16], 1)]);
    let before = datum_bytes(&first[0]);
    (2..10).for_each(|seed| drop(run_session(&session, &[random_datum(&[4, 16], seed)])));
    assert_eq!(datum_bytes(&first[0]), before);
}

#[test]
fn a_device_without_a_kernel_leaves_the_node_to_the_cpu() {
    let sim = SHARED_RUNTIME.device("sim").expect("the simulated device");
    let options = SessionOptions { devices: vec![sim], ..SessionOptions::default() };
    let session = classifier_sketch().start_session(&options);
    let plain = classifier_sketch().start_session(&SessionOptions::default());
    let x = random_datum(&[4, 16], 1);
    let (there, here) = (run_session(&session, std::slice::from_ref(&x)), run_session(&plain, &[x]));
    assert_eq!(there[0].as_tensor().unwrap().device().device_type(), "sim");
    for (a, b) in read_floats(&there[0]).iter().zip(read_floats(&here[0])) {
        assert!((a - b).abs() < 1e-5);
    }
}

#[test]
fn a_little_work_amid_work_of_the_host_stays_there_and_much_does_not() {
    let runtime = Arc::new(start_runtime("ops Add,MatMul; mode random; seed 4; devices 1", &[]));
    // A node on the device, one on the host because the device lacks the op, then ops that could run on either.
    let devices = |width: i64, ops: &dyn Fn(&mut GraphSketch, ValueId) -> ValueId| -> Vec<String> {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[width, width]);
        let sum = sketch.add_op("Add", &[x, x]);
        let cos = sketch.add_op("Cos", &[sum]);
        let between = ops(&mut sketch, cos);
        let y = sketch.add_op("Sin", &[between]);
        let session = sketch.with_outputs(&[y]).simulated_session(&runtime);
        let inputs = [random_datum(&[width, width], 1)];
        assert_eq!(run_session(&session, &inputs)[0].as_tensor().unwrap().dims(), [width, width]);
        let plan = session.plan(&inputs).unwrap();
        let steps = plan.steps().filter(|step| !step.is_copy());
        steps.map(|step| format!("{} {}", step.node().op, step.device().device_type())).collect()
    };
    let little = devices(4, &|sketch, x| sketch.add_op("Add", &[x, x]));
    assert_eq!(little, ["Add sim", "Cos cpu", "Add cpu", "Sin cpu"]);
    let much = devices(256, &|sketch, x| {
        (0..8).fold(x, |x, seed| {
            let weights = sketch.add_weights(&[256, 256], seed);
            sketch.add_op("MatMul", &[x, weights])
        })
    });
    assert_eq!(much[..3], ["Add sim", "Cos cpu", "MatMul sim"]);
    assert_eq!(much.last().map(String::as_str), Some("Sin cpu"));
}

#[test]
fn a_device_without_memory_says_so_and_the_session_stays_usable() {
    let runtime = Arc::new(start_runtime("quota 4MiB; mode random; seed 3; devices 1", &[]));
    let session = classifier_sketch().simulated_session(&runtime);
    let error = session.run(&[random_datum(&[200_000, 16], 1)]).map(drop).expect_err("a run without memory");
    assert_eq!(error.kind(), oarlock_core::ErrorKind::ResourceExhausted, "{error}");
    assert_eq!(run_session(&session, &[random_datum(&[3, 16], 1)])[0].as_tensor().unwrap().dims(), [3, 10]);
}

#[test]
fn a_kernel_that_fails_is_named_and_the_session_stays_usable() {
    let runtime = Arc::new(start_runtime("fail run 4 internal; seed 3; devices 1", &[]));
    let session = classifier_sketch().simulated_session(&runtime);
    let mut failed = 0;
    for _ in 0..6 {
        let outcome =
            session.run(&[random_datum(&[3, 16], 1)]).and_then(|made| made[0].as_tensor()?.to_bytes());
        if let Err(error) = outcome {
            failed += 1;
            assert!(error.to_string().contains("failed as scripted"), "{error}");
        }
    }
    assert_eq!(failed, 1);
}

#[test]
fn what_is_no_number_is_found_behind_the_kernel_that_made_it() {
    let runtime = Arc::new(start_runtime("devices 1", &[("check_nan_inf", "true")]));
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[4]);
    let root = sketch.add_op("Sqrt", &[x]);
    let y = sketch.add_op("Cos", &[root]);
    let model = sketch.with_outputs(&[y]).to_model();
    let session =
        Session::new(runtime, &model, &SessionOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(session.run(&[random_datum(&[4], 2)]).is_err_and(|error| error.op() == Some("Sqrt")));
    run_session(&session, &[float_datum(&[4], &[1.0, 2.0, 3.0, 4.0])]);
}

#[test]
fn results_have_the_same_bits_on_any_number_of_threads() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 8, 40, 40]);
    let w = sketch.add_weights(&[32, 8, 3, 3], 1);
    let conv = sketch.add_op_with("Conv", &[x, w], &[("pads", Attribute::Ints(vec![1; 4]))]);
    let active = sketch.add_op("Relu", &[conv]);
    let shape = sketch.add_ints(&[1, 256, 200]);
    let rows = sketch.add_op("Reshape", &[active, shape]);
    let w = sketch.add_weights(&[200, 300], 2);
    let product = sketch.add_op("MatMul", &[rows, w]);
    let y = sketch.add_op("Softmax", &[product]);
    let sum = sketch.add_op("ReduceSum", &[y]);
    // Whether a matrix stays in L2 depends on how many threads share it.
    let mut row = sketch.add_op("Flatten", &[sum]);
    for (outputs, inputs) in [(512, 1), (1000, 512), (1003, 1000)] {
        let w = sketch.add_weights(&[outputs, inputs], 4);
        row = sketch.add_op_with("Gemm", &[row, w], &[("transB", Attribute::Int(1))]);
    }
    let model = sketch.with_outputs(&[y, sum, row]).to_model();
    let made: Vec<Vec<Vec<u8>>> = ["1", "2", "3", "5"]
        .map(|threads| {
            let runtime = Arc::new(start_runtime("devices 1", &[("threads", threads)]));
            let session = Session::new(runtime, &model, &SessionOptions::default());
            let session = session.unwrap_or_else(|error| panic!("{error}"));
            run_session(&session, &[random_datum(&[1, 8, 40, 40], 3)]).iter().map(datum_bytes).collect()
        })
        .into();
    assert!(made.iter().all(|other| *other == made[0]));
}

/// The same elements at a misaligned address, as in a mapped file.
fn to_unaligned_constant(constant: &oarlock_core::Constant) -> oarlock_core::Constant {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&constant.bytes().expect("bytes"));
    let bytes = bytes::Bytes::from(bytes).slice(1..);
    let moved =
        oarlock_core::Constant::new(constant.dtype(), constant.dims(), bytes).expect("the same shape");
    assert!(!moved.is_aligned());
    moved
}

#[test]
fn constants_at_odd_addresses_are_the_same_constants() {
    let noise = |dims: &[i64], seed| {
        let count = usize::try_from(dims.iter().product::<i64>()).expect("a count");
        let bytes: Vec<u8> =
            crate::sketch::random_floats(count, seed).iter().flat_map(|x| x.to_ne_bytes()).collect();
        oarlock_core::Constant::new(Dtype::F32, dims, bytes).expect("as many elements as the shape has")
    };
    for rows in [1, 3, 9] {
        let make = |place: fn(&oarlock_core::Constant) -> oarlock_core::Constant| {
            let mut sketch = GraphSketch::new();
            let x = sketch.add_input("x", Dtype::F32, &[rows, 40]);
            let [w, turned] =
                [noise(&[40, 70], 1), noise(&[33, 70], 2)].map(|w| sketch.add_constant(place(&w)));
            let product = sketch.add_op("MatMul", &[x, w]);
            let second = sketch.add_op_with("Gemm", &[product, turned], &[("transB", Attribute::Int(1))]);
            let shape = sketch.add_ints(&[rows, 3, 11, 1]);
            let image = sketch.add_op("Reshape", &[second, shape]);
            let w = sketch.add_constant(place(&noise(&[5, 3, 1, 1], 3)));
            let conv = sketch.add_op("Conv", &[image, w]);
            let (table, ids) =
                (sketch.add_constant(place(&noise(&[7, 4], 4))), sketch.add_input("ids", Dtype::I64, &[2]));
            let picked = sketch.add_op("Gather", &[table, ids]);
            let scaled = sketch.add_constant(place(&noise(&[4], 5)));
            let scaled = sketch.add_op("Mul", &[picked, scaled]);
            let session = sketch.with_outputs(&[conv, scaled]).start_session(&SessionOptions::default());
            run_session(&session, &[random_datum(&[rows, 40], 9), int_datum(&[2], &[6, 0])])
                .iter()
                .map(datum_bytes)
                .collect::<Vec<_>>()
        };
        assert_eq!(make(oarlock_core::Constant::clone), make(to_unaligned_constant), "{rows} rows");
    }
}

/// The error message of a run that must fail.
fn run_refusal(sketch: &GraphSketch, feeds: &[(&str, RuntimeValue)]) -> String {
    let session = sketch.start_session(&SessionOptions::default());
    let error = session.run_named(feeds).map(drop).expect_err("a run that fails");
    // The session stays usable.
    run_session(&session, &[random_datum(&[2, 16], 1)]);
    error.to_string()
}

#[test]
fn a_feed_that_does_not_fit_is_named_with_what_the_model_wants() {
    let sketch = classifier_sketch();
    let wrong = run_refusal(&sketch, &[("y", random_datum(&[1, 16], 1))]);
    assert!(wrong.contains("expected one of the inputs `x`, found `y`"), "{wrong}");
    let wrong = run_refusal(&sketch, &[]);
    assert!(wrong.contains("expected the input `x: f32[?, 16]`, found no value"), "{wrong}");
    let wrong = run_refusal(&sketch, &[("x", random_datum(&[1, 15], 1))]);
    assert!(wrong.contains("input `x`: expected f32[?, 16], found f32[1, 15]"), "{wrong}");
    let wrong = run_refusal(&sketch, &[("x", int_datum(&[1, 16], &[0; 16]))]);
    assert!(wrong.contains("input `x`: expected f32[?, 16], found i64[1, 16]"), "{wrong}");
    let wrong = run_refusal(&sketch, &[("x", RuntimeValue::Nothing)]);
    assert!(wrong.contains("found an optional that holds nothing"), "{wrong}");
}

#[test]
fn an_op_that_no_device_has_is_named_before_anything_runs() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1]);
    let y = sketch.add_op("NoSuchOp", &[x]);
    let model = sketch.with_outputs(&[y]).to_model();
    let error = Session::new(SHARED_RUNTIME.clone(), &model, &SessionOptions::default())
        .map(drop)
        .expect_err("an error");
    assert!(error.to_string().contains("NoSuchOp"), "{error}");
}

#[test]
fn numbers_that_are_none_go_through_as_they_are() {
    let session = classifier_sketch().start_session(&SessionOptions::default());
    let mut x = vec![0.5f32; 32];
    (x[3], x[20]) = (f32::NAN, f32::INFINITY);
    let made = read_floats(&run_session(&session, &[float_datum(&[2, 16], &x)])[0]);
    assert!(made.iter().all(|element| element.is_nan()), "{made:?}");
}

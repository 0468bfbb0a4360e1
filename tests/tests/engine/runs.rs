//! Runs: shapes that change, shapes that depend on data, control flow, many threads, and feeds that do not fit.

use std::sync::Arc;

use oarlock_core::{Attribute, Dtype, Tensor};
use oarlock_engine::graph::{Dimension, Value, ValueId, ValueType};
use oarlock_engine::{Datum, Plan, Session, SessionOptions};

use crate::sketch::{RUNTIME, Sketch, bytes, ints, random, run, runtime, tensor};

fn floats(datum: &Datum) -> Vec<f32> {
    datum.tensor().and_then(Tensor::to_vec).unwrap_or_else(|error| panic!("{error}"))
}

/// Y = softmax(X·W + b) of any number of rows.
fn classifier() -> Sketch {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, 16]);
    let (w, b) = (sketch.weights(&[16, 10], 2), sketch.weights(&[10], 3));
    let product = sketch.op("MatMul", &[x, w]);
    let sum = sketch.op("Add", &[product, b]);
    let y = sketch.op("Softmax", &[sum]);
    sketch.output(&[y])
}

#[test]
fn every_shape_gets_a_plan_of_its_own() {
    let session = classifier().session(&SessionOptions::default());
    for rows in (1..60).chain(1..60) {
        let made = run(&session, &[random(&[rows, 16], 5)]);
        assert_eq!(made[0].tensor().unwrap().dims(), [rows, 10]);
        let sum: f32 = floats(&made[0]).iter().sum();
        assert!((sum - rows as f32).abs() < 1e-3, "{sum}");
    }
}

#[test]
fn threads_that_come_first_with_the_same_shapes_share_one_plan() {
    let session = classifier().session(&SessionOptions::default());
    let plan = || session.plan(&[random(&[3, 16], 5)]).unwrap();
    let plans: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(plan)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(plans.iter().all(|plan| Arc::ptr_eq(plan, &plans[0])));
}

/// The plan of a session for so many rows.
fn plan_for(session: &Session, rows: i64) -> Arc<Plan> {
    session.plan(&[random(&[rows, 16], 5)]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn plans_that_take_little_memory_stay() {
    let session = classifier().session(&SessionOptions::default());
    let plans: Vec<_> = (1..200).map(|rows| plan_for(&session, rows)).collect();
    for (rows, plan) in (1..200).zip(&plans) {
        assert!(Arc::ptr_eq(plan, &plan_for(&session, rows)), "{rows}");
        assert_eq!(plan.graph().value(plan.graph().inputs[0]).dims().unwrap().as_slice(), [rows, 16]);
    }
}

#[test]
fn others_take_the_place_of_plans_that_take_much_unless_somebody_keeps_asking_for_them() {
    let mut sketch = classifier();
    (0..40_000).for_each(|_| _ = sketch.scalar(1.0));
    let session = sketch.session(&SessionOptions::default());
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
    // Which one goes is left to chance.
    assert!(!others(false, 300));
    // What a session is run on first it is mostly run on.
    assert!(Arc::ptr_eq(&plan_for(&session, 1), &first));
}

#[test]
fn plans_of_all_shapes_run_in_the_memory_of_the_largest() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, 1024]);
    let sum = sketch.op("Exp", &[x]);
    let y = sketch.op("ReduceSum", &[sum]);
    let runtime = Arc::new(runtime("mode lazy; seed 5; devices 1", &[]));
    let session = sketch.output(&[y]).simulated(&runtime);
    let pool = runtime.device("sim").unwrap().pool().unwrap().clone();
    // In the second round all plans are there, and each may want to keep memory; in the last a small one is new.
    for rows in (1..60).chain(1..60).chain([61, 2]) {
        run(&session, &[random(&[rows, 1024], 5)]);
    }
    let taken = |rows: i64| {
        let plan = session.plan(&[random(&[rows, 1024], 5)]).unwrap();
        plan.arenas().iter().map(|(_, size)| *size).sum::<u64>()
    };
    let (largest, all) = (taken(61), (1..=61).map(taken).sum::<u64>());
    let allocated = pool.statistics().allocated;
    assert!(allocated >= largest && allocated < largest + all / 8, "{allocated} of {largest}, {all}");
}

#[test]
fn what_a_model_says_about_its_outputs_is_checked() {
    let declared = |dtype: Dtype, dims: &[i64]| {
        let mut sketch = Sketch::new();
        let x = sketch.input("x", Dtype::F32, &[2, 4]);
        let y = sketch.op("Relu", &[x]);
        let dims = dims.iter().map(|size| Dimension::Known(*size)).collect();
        sketch.graph.value_mut(y).declared = ValueType::Tensor { dtype: Some(dtype), dims: Some(dims) };
        let model = sketch.output(&[y]).model();
        let session = Session::new(RUNTIME.clone(), &model, &SessionOptions::default());
        session.map(|session| session.outputs()[0].declared.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(declared(Dtype::F32, &[2, 4]), Ok("f32[2, 4]".to_owned()));
    assert_eq!(declared(Dtype::F32, &[7, 7]), Ok("f32[2, 4]".to_owned()));
    let error = declared(Dtype::I64, &[2, 4]).unwrap_err();
    assert!(error.contains("expected i64") && error.contains("found that its nodes make f32"), "{error}");
}

#[test]
fn zero_rows_are_rows_too() {
    let session = classifier().session(&SessionOptions::default());
    let made = run(&session, &[random(&[0, 16], 5)]);
    assert_eq!(made[0].tensor().unwrap().dims(), [0, 10]);
}

#[test]
fn shapes_that_depend_on_data_are_found_in_the_run() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1]);
    let zero = sketch.scalar(0.0);
    let is_more = sketch.op("Greater", &[x, zero]);
    let kept = sketch.op_with("Compress", &[x, is_more], &[("axis", Attribute::Int(0))]);
    let y = sketch.op("Neg", &[kept]);
    let session = sketch.output(&[y]).session(&SessionOptions::default());
    assert_eq!(floats(&run(&session, &[tensor(&[4], &[1.0, -2.0, 3.0, -4.0])])[0]), [-1.0, -3.0]);
    assert_eq!(floats(&run(&session, &[tensor(&[4], &[-1.0, -2.0, -3.0, 4.0])])[0]), [-4.0]);
}

#[test]
fn a_shape_that_is_an_input_is_read_in_the_run() {
    let mut sketch = Sketch::new();
    let (x, shape) = (sketch.input("x", Dtype::F32, &[-1]), sketch.input("shape", Dtype::I64, &[2]));
    let seen = sketch.op("Reshape", &[x, shape]);
    let y = sketch.op_with("Transpose", &[seen], &[("perm", Attribute::Ints(vec![1, 0]))]);
    let session = sketch.output(&[y]).session(&SessionOptions::default());
    let x = tensor(&[6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let made = run(&session, &[x.clone(), ints(&[2], &[2, 3])]);
    assert_eq!(
        (floats(&made[0]), made[0].tensor().unwrap().dims()),
        (vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0], &[3, 2][..])
    );
    let made = run(&session, &[x, ints(&[2], &[1, 6])]);
    assert_eq!(made[0].tensor().unwrap().dims(), [6, 1]);
}

#[test]
fn numbers_become_texts_and_texts_become_labels() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[3]);
    let texts = sketch.op_with("Cast", &[x], &[("to", Attribute::Int(Dtype::String.onnx_number()))]);
    let words = |words: &[&str]| Attribute::Strings(words.iter().map(|word| (*word).to_owned()).collect());
    let attributes = [
        ("keys_strings", words(&["1.0", "7.0", "1.0"])),
        ("values_strings", words(&["one", "seven", "again"])),
        ("default_string", Attribute::String("other".to_owned())),
    ];
    let labels = sketch.op_with("LabelEncoder", &[texts], &attributes);
    let node = sketch.graph.nodes.last_mut().unwrap();
    (node.domain, node.opset) = ("ai.onnx.ml".into(), 4);
    let session = sketch.output(&[texts, labels]).session(&SessionOptions::default());
    let made = run(&session, &[tensor(&[3], &[1.0, 2.5e-7, 7.0])]);
    let made: Vec<Vec<String>> = made.iter().map(|made| made.tensor().unwrap().to_texts().unwrap()).collect();
    assert_eq!(made, [["1.0", "2.5e-07", "7.0"], ["one", "other", "seven"]]);
}

#[test]
fn texts_that_differ_are_found_with_their_places_and_counts() {
    let device = RUNTIME.default_device().unwrap().clone();
    let texts = ["b", "a", "b", "a", "z", "b"].map(str::to_owned);
    let rows = Datum::Tensor(Tensor::from_texts(&device, &[3, 2], texts.to_vec()).unwrap());
    let unique = |attributes: &[(&str, i64)]| {
        let mut sketch = Sketch::new();
        let x = sketch.input("x", Dtype::String, &[3, 2]);
        let attributes: Vec<_> =
            attributes.iter().map(|(name, value)| (*name, Attribute::Int(*value))).collect();
        let made = sketch.op_of("Unique", &[x], &attributes, 4);
        let made =
            run(&sketch.output(&made).session(&SessionOptions::default()), std::slice::from_ref(&rows));
        let places: Vec<Vec<i64>> =
            made[1..].iter().map(|made| made.tensor().unwrap().to_vec().unwrap()).collect();
        (made[0].tensor().unwrap().to_texts().unwrap(), places)
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

/// Adds `step` to `start` so often, and stacks the squares of the sums.
fn counter() -> Sketch {
    let mut body = Sketch::new();
    let [iteration, condition, sum, step] =
        ["i", "go", "sum", "step"].map(|name| body.graph.add(Value::named(name)));
    body.graph.inputs = vec![iteration, condition, sum, step];
    let more = body.op("Add", &[sum, step]);
    let go = body.op("Identity", &[condition]);
    let square = body.op("Mul", &[more, more]);
    let body = body.output(&[go, more, square]).graph;
    let mut sketch = Sketch::new();
    let (count, start, step) = (
        sketch.input("count", Dtype::I64, &[]),
        sketch.input("start", Dtype::F32, &[1]),
        sketch.input("step", Dtype::F32, &[1]),
    );
    let go = sketch.constant(oarlock_core::Constant::new(Dtype::Bool, &[], vec![1]).expect("a constant"));
    let made = sketch.op_of("Loop", &[count, go, start], &[], 2);
    sketch.with_graph("body", body, &[step]);
    sketch.output(&made)
}

#[test]
fn a_loop_carries_values_and_stacks_others() {
    let session = counter().session(&SessionOptions::default());
    let outputs = run(&session, &[ints(&[], &[3]), tensor(&[1], &[1.0]), tensor(&[1], &[2.0])]);
    assert_eq!(floats(&outputs[0]), [7.0]);
    assert_eq!(
        (floats(&outputs[1]), outputs[1].tensor().unwrap().dims()),
        (vec![9.0, 25.0, 49.0], &[3, 1][..])
    );
    let outputs = run(&session, &[ints(&[], &[0]), tensor(&[1], &[1.0]), tensor(&[1], &[2.0])]);
    assert_eq!((floats(&outputs[0]), floats(&outputs[1])), (vec![1.0], vec![]));
    // A body that never ran makes nothing of the shape that it would make.
    assert_eq!(outputs[1].tensor().unwrap().dims(), [0, 1]);
    let outputs = run(&session, &[ints(&[], &[0]), tensor(&[1], &[1.0]), tensor(&[1], &[2.0])]);
    assert_eq!(outputs[1].tensor().unwrap().dims(), [0, 1]);
}

#[test]
fn steps_of_a_body_are_timed_within_the_loop_that_they_are_of() {
    let session = counter().session(&SessionOptions::default());
    let inputs = [ints(&[], &[3]), tensor(&[1], &[1.0]), tensor(&[1], &[2.0])];
    let (outputs, timings) = session.run_timed(&inputs).unwrap();
    assert_eq!(floats(&outputs[0]), [7.0]);
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
    let keys: std::collections::BTreeSet<_> = steps.iter().map(oarlock_engine::Timing::key).collect();
    assert_eq!(keys.len(), 3);
}

/// A loop that makes a list longer by an element each time, of which its body says that it has one.
fn growing() -> Session {
    let mut body = Sketch::new();
    let [iteration, condition] = ["i", "go"].map(|name| body.graph.add(Value::named(name)));
    let list = body.input("list", Dtype::F32, &[1]);
    body.graph.inputs = vec![iteration, condition, list];
    let one = body.floats(&[1], &[1.0]);
    let longer = body.op_with("Concat", &[list, one], &[("axis", Attribute::Int(0))]);
    let size = body.op("Shape", &[list]);
    let go = body.op("Identity", &[condition]);
    let body = body.output(&[go, longer, size]).graph;
    let mut sketch = Sketch::new();
    let (count, start) = (sketch.input("count", Dtype::I64, &[]), sketch.input("start", Dtype::F32, &[-1]));
    let go = sketch.constant(oarlock_core::Constant::new(Dtype::Bool, &[], vec![1]).expect("one byte"));
    let made = sketch.op_of("Loop", &[count, go, start], &[], 2);
    sketch.with_graph("body", body, &[]);
    sketch.output(&made).session(&SessionOptions::default())
}

#[test]
fn steps_of_a_body_that_is_planned_again_and_again_are_noted_for_some_of_its_plans() {
    let inputs = [ints(&[], &[100]), tensor(&[2], &[5.0, 6.0])];
    let timings = growing().run_timed(&inputs).unwrap().1;
    let plans: std::collections::BTreeSet<_> = timings.steps.iter().map(|timing| timing.key().0).collect();
    assert!(timings.omitted > 0 && (10..=65).contains(&plans.len()), "{} {}", timings.omitted, plans.len());
    let noted = timings.steps.iter().filter(|timing| timing.within.is_some()).count();
    assert_eq!((noted + timings.omitted) % 100, 0);
}

#[test]
fn a_run_that_is_watched_ends_when_it_is_told_to_and_the_session_can_be_used_again() {
    let session = growing();
    let endless = [ints(&[], &[i64::MAX]), tensor(&[2], &[5.0, 6.0])];
    let told = || Err(oarlock_core::Error::unavailable("enough"));
    let error = session.run_watched(&endless, &told).unwrap_err();
    assert!(error.to_string().contains("enough"), "{error}");
    let short = [ints(&[], &[3]), tensor(&[2], &[5.0, 6.0])];
    let watched = session.run_watched(&short, &|| Ok(())).unwrap();
    assert_eq!(floats(&watched[0]), [5.0, 6.0, 1.0, 1.0, 1.0]);
}

#[test]
fn what_a_model_says_about_the_inputs_of_a_body_is_not_believed() {
    let session = growing();
    let outputs = run(&session, &[ints(&[], &[3]), tensor(&[2], &[5.0, 6.0])]);
    assert_eq!(floats(&outputs[0]), [5.0, 6.0, 1.0, 1.0, 1.0]);
    assert_eq!(outputs[1].tensor().unwrap().to_vec::<i64>().unwrap(), [2, 3, 4]);
}

#[test]
fn many_threads_run_one_session_and_get_their_own_results() {
    let session: Arc<Session> = Arc::new(classifier().session(&SessionOptions::default()));
    let expected: Vec<Vec<u8>> =
        (0..8).map(|seed| bytes(&run(&session, &[random(&[seed + 1, 16], seed as u32)])[0])).collect();
    std::thread::scope(|scope| {
        for thread in 0..8i64 {
            let (session, expected) = (session.clone(), &expected);
            scope.spawn(move || {
                for round in 0..50 {
                    let seed = (thread + round) % 8;
                    let made = run(&session, &[random(&[seed + 1, 16], seed as u32)]);
                    assert_eq!(bytes(&made[0]), expected[seed as usize]);
                }
            });
        }
    });
}

#[test]
fn outputs_of_a_run_stay_what_they_are_in_later_runs() {
    let session = classifier().session(&SessionOptions::default());
    let first = run(&session, &[random(&[4, 16], 1)]);
    let before = bytes(&first[0]);
    (2..10).for_each(|seed| drop(run(&session, &[random(&[4, 16], seed)])));
    assert_eq!(bytes(&first[0]), before);
}

#[test]
fn a_device_without_a_kernel_leaves_the_node_to_the_cpu() {
    let sim = RUNTIME.device("sim").expect("the simulated device");
    let options = SessionOptions { devices: vec![sim], ..SessionOptions::default() };
    let session = classifier().session(&options);
    let plain = classifier().session(&SessionOptions::default());
    let x = random(&[4, 16], 1);
    let (there, here) = (run(&session, std::slice::from_ref(&x)), run(&plain, &[x]));
    assert_eq!(there[0].tensor().unwrap().device().device_type(), "sim");
    for (a, b) in floats(&there[0]).iter().zip(floats(&here[0])) {
        assert!((a - b).abs() < 1e-5);
    }
}

#[test]
fn a_little_work_amid_work_of_the_host_stays_there_and_much_does_not() {
    let runtime = Arc::new(runtime("ops Add,MatMul; mode random; seed 4; devices 1", &[]));
    // On the device, on the host as the device lacks the op, and then what could be on either.
    let devices = |width: i64, ops: &dyn Fn(&mut Sketch, ValueId) -> ValueId| -> Vec<String> {
        let mut sketch = Sketch::new();
        let x = sketch.input("x", Dtype::F32, &[width, width]);
        let sum = sketch.op("Add", &[x, x]);
        let cos = sketch.op("Cos", &[sum]);
        let between = ops(&mut sketch, cos);
        let y = sketch.op("Sin", &[between]);
        let session = sketch.output(&[y]).simulated(&runtime);
        let inputs = [random(&[width, width], 1)];
        assert_eq!(run(&session, &inputs)[0].tensor().unwrap().dims(), [width, width]);
        let plan = session.plan(&inputs).unwrap();
        let steps = plan.steps().filter(|step| !step.is_copy());
        steps.map(|step| format!("{} {}", step.node().op, step.device().device_type())).collect()
    };
    let little = devices(4, &|sketch, x| sketch.op("Add", &[x, x]));
    assert_eq!(little, ["Add sim", "Cos cpu", "Add cpu", "Sin cpu"]);
    let much = devices(256, &|sketch, x| {
        (0..8).fold(x, |x, seed| {
            let weights = sketch.weights(&[256, 256], seed);
            sketch.op("MatMul", &[x, weights])
        })
    });
    assert_eq!(much[..3], ["Add sim", "Cos cpu", "MatMul sim"]);
    assert_eq!(much.last().map(String::as_str), Some("Sin cpu"));
}

#[test]
fn a_device_without_memory_says_so_and_the_session_stays_usable() {
    let runtime = Arc::new(runtime("quota 4MiB; mode random; seed 3; devices 1", &[]));
    let session = classifier().simulated(&runtime);
    let error = session.run(&[random(&[200_000, 16], 1)]).map(drop).expect_err("a run without memory");
    assert_eq!(error.kind(), oarlock_core::ErrorKind::ResourceExhausted, "{error}");
    assert_eq!(run(&session, &[random(&[3, 16], 1)])[0].tensor().unwrap().dims(), [3, 10]);
}

#[test]
fn a_kernel_that_fails_is_named_and_the_session_stays_usable() {
    let runtime = Arc::new(runtime("fail run 4 internal; seed 3; devices 1", &[]));
    let session = classifier().simulated(&runtime);
    let mut failed = 0;
    for _ in 0..6 {
        let outcome = session.run(&[random(&[3, 16], 1)]).and_then(|made| made[0].tensor()?.to_bytes());
        if let Err(error) = outcome {
            failed += 1;
            assert!(error.to_string().contains("failed as scripted"), "{error}");
        }
    }
    assert_eq!(failed, 1);
}

#[test]
fn what_is_no_number_is_found_behind_the_kernel_that_made_it() {
    let runtime = Arc::new(runtime("devices 1", &[("check_nan_inf", "true")]));
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[4]);
    let root = sketch.op("Sqrt", &[x]);
    let y = sketch.op("Cos", &[root]);
    let model = sketch.output(&[y]).model();
    let session =
        Session::new(runtime, &model, &SessionOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(session.run(&[random(&[4], 2)]).is_err_and(|error| error.op() == Some("Sqrt")));
    run(&session, &[tensor(&[4], &[1.0, 2.0, 3.0, 4.0])]);
}

#[test]
fn results_have_the_same_bits_on_any_number_of_threads() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1, 8, 40, 40]);
    let w = sketch.weights(&[32, 8, 3, 3], 1);
    let conv = sketch.op_with("Conv", &[x, w], &[("pads", Attribute::Ints(vec![1; 4]))]);
    let active = sketch.op("Relu", &[conv]);
    let shape = sketch.ints(&[1, 256, 200]);
    let rows = sketch.op("Reshape", &[active, shape]);
    let w = sketch.weights(&[200, 300], 2);
    let product = sketch.op("MatMul", &[rows, w]);
    let y = sketch.op("Softmax", &[product]);
    let sum = sketch.op("ReduceSum", &[y]);
    let model = sketch.output(&[y, sum]).model();
    let made: Vec<Vec<Vec<u8>>> = ["1", "2", "5"]
        .map(|threads| {
            let runtime = Arc::new(runtime("devices 1", &[("threads", threads)]));
            let session = Session::new(runtime, &model, &SessionOptions::default());
            let session = session.unwrap_or_else(|error| panic!("{error}"));
            run(&session, &[random(&[1, 8, 40, 40], 3)]).iter().map(bytes).collect()
        })
        .into();
    assert!(made.iter().all(|other| *other == made[0]));
}

/// The same elements at an address that fits none of them, as in a mapped file.
fn at_an_odd_address(constant: &oarlock_core::Constant) -> oarlock_core::Constant {
    let mut bytes = vec![0];
    bytes.extend_from_slice(constant.bytes());
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
        let bytes: Vec<u8> = crate::sketch::noise(count, seed).iter().flat_map(|x| x.to_ne_bytes()).collect();
        oarlock_core::Constant::new(Dtype::F32, dims, bytes).expect("as many elements as the shape has")
    };
    for rows in [1, 3, 9] {
        let make = |place: fn(&oarlock_core::Constant) -> oarlock_core::Constant| {
            let mut sketch = Sketch::new();
            let x = sketch.input("x", Dtype::F32, &[rows, 40]);
            let [w, turned] = [noise(&[40, 70], 1), noise(&[33, 70], 2)].map(|w| sketch.constant(place(&w)));
            let product = sketch.op("MatMul", &[x, w]);
            let second = sketch.op_with("Gemm", &[product, turned], &[("transB", Attribute::Int(1))]);
            let shape = sketch.ints(&[rows, 3, 11, 1]);
            let image = sketch.op("Reshape", &[second, shape]);
            let w = sketch.constant(place(&noise(&[5, 3, 1, 1], 3)));
            let conv = sketch.op("Conv", &[image, w]);
            let (table, ids) =
                (sketch.constant(place(&noise(&[7, 4], 4))), sketch.input("ids", Dtype::I64, &[2]));
            let picked = sketch.op("Gather", &[table, ids]);
            let scaled = sketch.constant(place(&noise(&[4], 5)));
            let scaled = sketch.op("Mul", &[picked, scaled]);
            let session = sketch.output(&[conv, scaled]).session(&SessionOptions::default());
            run(&session, &[random(&[rows, 40], 9), ints(&[2], &[6, 0])])
                .iter()
                .map(bytes)
                .collect::<Vec<_>>()
        };
        assert_eq!(make(oarlock_core::Constant::clone), make(at_an_odd_address), "{rows} rows");
    }
}

/// The message of a run that must fail.
fn refused(sketch: &Sketch, feeds: &[(&str, Datum)]) -> String {
    let session = sketch.session(&SessionOptions::default());
    let error = session.run_named(feeds).map(drop).expect_err("a run that fails");
    // A session stays usable.
    run(&session, &[random(&[2, 16], 1)]);
    error.to_string()
}

#[test]
fn a_feed_that_does_not_fit_is_named_with_what_the_model_wants() {
    let sketch = classifier();
    let wrong = refused(&sketch, &[("y", random(&[1, 16], 1))]);
    assert!(wrong.contains("expected one of the inputs `x`, found `y`"), "{wrong}");
    let wrong = refused(&sketch, &[]);
    assert!(wrong.contains("expected the input `x: f32[?, 16]`, found no value"), "{wrong}");
    let wrong = refused(&sketch, &[("x", random(&[1, 15], 1))]);
    assert!(wrong.contains("input `x`: expected f32[?, 16], found f32[1, 15]"), "{wrong}");
    let wrong = refused(&sketch, &[("x", ints(&[1, 16], &[0; 16]))]);
    assert!(wrong.contains("input `x`: expected f32[?, 16], found i64[1, 16]"), "{wrong}");
    let wrong = refused(&sketch, &[("x", Datum::Nothing)]);
    assert!(wrong.contains("found an optional that holds nothing"), "{wrong}");
}

#[test]
fn an_op_that_no_device_has_is_named_before_anything_runs() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1]);
    let y = sketch.op("NoSuchOp", &[x]);
    let model = sketch.output(&[y]).model();
    let error =
        Session::new(RUNTIME.clone(), &model, &SessionOptions::default()).map(drop).expect_err("an error");
    assert!(error.to_string().contains("NoSuchOp"), "{error}");
}

#[test]
fn numbers_that_are_none_go_through_as_they_are() {
    let session = classifier().session(&SessionOptions::default());
    let mut x = vec![0.5f32; 32];
    (x[3], x[20]) = (f32::NAN, f32::INFINITY);
    let made = floats(&run(&session, &[tensor(&[2, 16], &x)])[0]);
    assert!(made.iter().all(|element| element.is_nan()), "{made:?}");
}

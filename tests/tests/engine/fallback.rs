//! Fallback to the CPU for ops without a kernel on the device: reported once per op, or an error if configured so.

use std::sync::{Arc, Mutex};

use oarlock_core::flags::FallbackScope;
use oarlock_core::registry::MissingKernel;
use oarlock_core::{Constant, Dtype, ErrorKind, Runtime};
use oarlock_engine::{FallbackListener, FallbackSummary, RuntimeValue, Session, SessionOptions};

use crate::sketch::{GraphSketch, datum_bytes, random_datum, run_session, start_runtime};

/// A runtime whose simulated device only has kernels for these ops.
fn runtime_with_ops(ops: &str, flags: &[(&str, &str)]) -> Arc<Runtime> {
    Arc::new(start_runtime(&format!("seed 1; devices 1; ops {ops}"), flags))
}

/// A session on the named devices, and the summaries that it logs.
fn session_with_summaries(
    runtime: &Arc<Runtime>,
    sketch: &GraphSketch,
    devices: &[&str],
    fallback: Option<FallbackScope>,
) -> (Session, Arc<Mutex<Vec<FallbackSummary>>>) {
    let summaries = Arc::new(Mutex::new(Vec::new()));
    let kept = summaries.clone();
    let options = SessionOptions {
        devices: devices.iter().map(|name| runtime.device(name).expect("a device")).collect(),
        fallback,
        on_fallback: FallbackListener::new(move |summary| {
            kept.lock().expect("no panic").push(summary.clone());
        }),
        ..SessionOptions::default()
    };
    let session = Session::new(runtime.clone(), &sketch.to_model(), &options);
    (session.unwrap_or_else(|error| panic!("{error}")), summaries)
}

/// `y = relu(x) + x` for any number of rows, on a device without a kernel for the first op.
fn half_supported_sketch() -> GraphSketch {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, 8]);
    let relu = sketch.add_op("Relu", &[x]);
    let y = sketch.add_op("Add", &[relu, x]);
    sketch.with_outputs(&[y])
}

#[test]
fn what_the_cpu_runs_for_a_device_is_told_once_for_each_op_and_session() {
    let runtime = runtime_with_ops("Add", &[]);
    let (session, summaries) = session_with_summaries(&runtime, &half_supported_sketch(), &["sim"], None);
    for rows in [2, 3, 2, 5] {
        run_session(&session, &[random_datum(&[rows, 8], 1)]);
    }
    let summaries = summaries.lock().unwrap();
    let [summary] = summaries.as_slice() else { panic!("{summaries:?}") };
    assert_eq!((summary.nodes, summary.fallback_nodes(), summary.is_cpu_named), (2, 1, false));
    assert_eq!((summary.devices.as_slice(), summary.cpu.as_str()), (&["sim:0".to_owned()][..], "cpu:0"));
    assert_eq!(summary.nodes_by_device["sim:0"], 1);
    assert_eq!((summary.ops[0].op.as_str(), summary.ops[0].missing), ("Relu", MissingKernel::Op));
    assert!(summary.ops[0].reason.contains("found kernels for `cpu` only"), "{summary:?}");
}

#[test]
fn a_cpu_that_was_named_may_do_what_it_does_without_a_word() {
    let runtime = runtime_with_ops("Add", &[("kernel_fallback", "error")]);
    let (session, summaries) =
        session_with_summaries(&runtime, &half_supported_sketch(), &["sim", "cpu"], None);
    let input = [random_datum(&[2, 8], 1)];
    run_session(&session, &input);
    assert!(summaries.lock().unwrap().is_empty());
    let summary = session.fallback_summary(&input).unwrap();
    assert_eq!((summary.fallback_nodes(), summary.is_cpu_named), (1, true));
}

#[test]
fn a_model_with_such_nodes_fails_where_the_flag_or_the_session_says_error() {
    let input = [random_datum(&[2, 8], 1)];
    let by_flag = runtime_with_ops("Add", &[("kernel_fallback", "error")]);
    let by_session = runtime_with_ops("Add", &[("kernel_fallback", "cpu")]);
    for (runtime, fallback) in [(&by_flag, None), (&by_session, Some(FallbackScope::Error))] {
        let (session, summaries) =
            session_with_summaries(runtime, &half_supported_sketch(), &["sim"], fallback);
        let error = session.run(&input).unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (
                ErrorKind::Unimplemented,
                "expected kernels of `sim:0` for all nodes that take one, found none for 1 of 2: `Relu`"
            )
        );
        assert!(error.advice().unwrap().contains("`kernel_fallback=models`"), "{error:?}");
        assert!(summaries.lock().unwrap().is_empty());
    }
    let (session, _) =
        session_with_summaries(&by_flag, &half_supported_sketch(), &["sim"], Some(FallbackScope::Models));
    run_session(&session, &input);
}

#[test]
fn shape_work_on_the_host_is_told_apart_and_never_an_error() {
    let runtime = runtime_with_ops("NonZero,Reshape", &[("kernel_fallback", "error")]);
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 3]);
    let found = sketch.add_op("NonZero", &[x]);
    let shape = sketch.add_op("Shape", &[found]);
    let turned = sketch.add_ints(&[-1]);
    let wanted = sketch.add_op_with("Concat", &[turned, shape], &[("axis", oarlock_core::Attribute::Int(0))]);
    let first = sketch.add_ints(&[0]);
    let wanted = sketch.add_op("Gather", &[wanted, first]);
    let y = sketch.add_op("Reshape", &[found, wanted]);
    let (session, _) = session_with_summaries(&runtime, &sketch.with_outputs(&[y]), &["sim"], None);
    let input = [random_datum(&[2, 3], 1)];
    assert_eq!(run_session(&session, &input)[0].as_tensor().unwrap().dims(), [12]);
    let summary = session.fallback_summary(&input).unwrap();
    assert_eq!((summary.fallback_nodes(), summary.shape_nodes), (0, 3), "{summary:?}");
    assert_eq!(summary.nodes_by_device["sim:0"], 2, "{summary:?}");
}

#[test]
fn branch_nodes_count_as_fallbacks_when_the_branch_runs() {
    let runtime = runtime_with_ops("Add,Neg", &[]);
    let mut branches = ["Relu", "Neg"].map(|op| {
        let mut branch = GraphSketch::new();
        let x = branch.add_input("x", Dtype::F32, &[4]);
        let y = branch.add_op(op, &[x]);
        branch.with_outputs(&[y]).graph
    });
    let mut sketch = GraphSketch::new();
    let (x, condition) = (sketch.add_input("x", Dtype::F32, &[4]), sketch.add_input("c", Dtype::Bool, &[]));
    let y = sketch.add_op("If", &[condition]);
    sketch.set_subgraph("then_branch", std::mem::take(&mut branches[0]), &[x]);
    sketch.set_subgraph("else_branch", std::mem::take(&mut branches[1]), &[x]);
    let (session, summaries) = session_with_summaries(&runtime, &sketch.with_outputs(&[y]), &["sim"], None);
    let input = |truth: u8| {
        let cpu = runtime.device("cpu").unwrap();
        let truth = Constant::new(Dtype::Bool, &[], vec![truth]).unwrap();
        [
            random_datum(&[4], 1),
            RuntimeValue::Tensor(oarlock_core::Tensor::from_constant(&cpu, &truth).unwrap()),
        ]
    };
    run_session(&session, &input(0));
    assert_eq!(session.fallback_summary(&input(0)).unwrap().fallback_nodes(), 0);
    assert!(summaries.lock().unwrap().is_empty());
    assert!(!datum_bytes(&run_session(&session, &input(1))[0]).is_empty());
    let summary = session.fallback_summary(&input(1)).unwrap();
    assert_eq!((summary.nodes, summary.fallback_nodes()), (2, 1), "{summary:?}");
    assert_eq!(summaries.lock().unwrap().len(), 1);
}

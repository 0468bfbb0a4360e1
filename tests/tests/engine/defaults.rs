//! Constants of a model that a run may be given others for.

use oarlock_core::Tensor;
use oarlock_engine::import::onnx::messages::tensor_proto::DataType;
use oarlock_engine::{Datum, Session, SessionOptions};

use crate::file::{File, branch};
use crate::sketch::{RUNTIME, run, tensor};

fn floats(datum: &Datum) -> Vec<f32> {
    datum.tensor().and_then(Tensor::to_vec).unwrap_or_else(|error| panic!("{error}"))
}

/// y = x · scale + offset, where both have defaults.
fn line() -> File {
    let mut file = File::default();
    file.input("x", DataType::Float, &[-1]).input("scale", DataType::Float, &[-1]);
    file.input("offset", DataType::Float, &[1]).floats("offset", &[1], &[0.5]).floats("scale", &[1], &[2.0]);
    file.node(".Neg", "scale", "less", &[]).node(".Neg", "less", "more", &[]);
    file.node(".Mul", "x more", "product", &[]).node(".Add", "product offset", "y", &[]).outputs("y");
    file
}

fn named(session: &Session, feeds: &[(&str, &[f32])]) -> Vec<f32> {
    let feeds: Vec<(&str, Datum)> =
        feeds.iter().map(|(name, values)| (*name, tensor(&[values.len() as i64], values))).collect();
    floats(&session.run_named(&feeds).unwrap_or_else(|error| panic!("{error}"))[0])
}

#[test]
fn a_value_of_the_model_is_taken_unless_another_is_given() {
    for version in [3, 10] {
        let model = line().read_as(version).unwrap();
        let session = Session::new(RUNTIME.clone(), &model, &SessionOptions::default()).unwrap();
        let names = |slots: &[oarlock_engine::Slot]| -> Vec<String> {
            slots.iter().map(|slot| slot.name.to_string()).collect()
        };
        assert_eq!(names(session.inputs()), ["x"]);
        assert_eq!(names(session.optional_inputs()), ["offset", "scale"]);
        let x: (&str, &[f32]) = ("x", &[1.0, 3.0]);
        assert_eq!(named(&session, &[x]), [2.5, 6.5]);
        assert_eq!(named(&session, &[("scale", &[10.0, 20.0]), x]), [10.5, 60.5]);
        assert_eq!(named(&session, &[x, ("offset", &[1.0])]), [3.0, 7.0]);
        assert_eq!(named(&session, &[x, ("offset", &[1.0]), ("scale", &[3.0])]), [4.0, 10.0]);
        assert_eq!(named(&session, &[x]), [2.5, 6.5]);
    }
}

#[test]
fn a_constant_is_folded_where_nobody_gives_another() {
    let session = line().session();
    let x = tensor(&[2], &[1.0, 3.0]);
    let ops = |inputs: &[Datum]| -> Vec<String> {
        let plan = session.plan(inputs).unwrap();
        plan.graph().nodes.iter().map(|node| node.op.to_string()).collect()
    };
    assert_eq!(ops(std::slice::from_ref(&x)), ["Mul", "Add"]);
    let other = session.in_order(&[("x", x.clone()), ("scale", tensor(&[1], &[2.0]))]).unwrap();
    assert_eq!(ops(&other), ["Neg", "Neg", "Mul", "Add"]);
    // What is left out in its place is the model's own.
    assert_eq!(ops(&[x, Datum::Nothing, Datum::Nothing]), ["Mul", "Add"]);
}

#[test]
fn a_branch_sees_the_value_that_is_given() {
    let mut file = File::default();
    file.input("c", DataType::Bool, &[]).input("k", DataType::Float, &[1]).floats("k", &[1], &[7.0]);
    let mut taken = File::default();
    taken.node(".Neg", "k", "n", &[]).outputs("n");
    let mut other = File::default();
    other.node(".Identity", "k", "i", &[]).outputs("i");
    let branches = [branch("then_branch", taken.graph), branch("else_branch", other.graph)];
    file.node(".If", "c", "y", &branches).outputs("y");
    let session = file.session();
    let cpu = RUNTIME.device("cpu").unwrap();
    for (is_taken, sign) in [(true, -1.0), (false, 1.0)] {
        let condition: Datum = Tensor::from_slice(&cpu, &[], &[is_taken]).unwrap().into();
        assert_eq!(floats(&run(&session, std::slice::from_ref(&condition))[0]), [7.0 * sign]);
        let feeds = [("c", condition), ("k", tensor(&[1], &[9.0]))];
        assert_eq!(floats(&session.run_named(&feeds).unwrap()[0]), [9.0 * sign]);
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_name() {
    let session = line().session();
    let x = ("x", tensor(&[1], &[1.0]));
    let message = |feeds: &[(&str, Datum)]| session.run_named(feeds).map(drop).unwrap_err().to_string();
    assert!(message(&[x.clone(), ("offset", tensor(&[2], &[1.0, 2.0]))]).contains("input `offset`"));
    assert!(message(&[x.clone(), ("scal", tensor(&[1], &[1.0]))]).contains("`scale`"));
    assert!(message(&[("scale", tensor(&[1], &[1.0]))]).contains("`x: f32[?]`"));
    let two = [x.1.clone(), x.1];
    assert!(session.run(&two).unwrap_err().to_string().contains("expected 1 inputs"));
}

#[test]
fn threads_that_give_different_values_get_their_own_results() {
    let session = line().session();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let session = &session;
            scope.spawn(move || {
                for round in 0..20_u8 {
                    let value = f32::from(thread * 20 + round);
                    let name = if thread % 2 == 0 { "scale" } else { "offset" };
                    let expected = if thread % 2 == 0 { value + 0.5 } else { 2.0 + value };
                    assert_eq!(named(session, &[("x", &[1.0]), (name, &[value])]), [expected]);
                }
            });
        }
    });
}

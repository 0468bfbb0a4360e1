//! Model constants that a run may override.

use oarlock_core::Tensor;
use oarlock_engine::import::onnx::messages::tensor_proto::DataType;
use oarlock_engine::{RuntimeValue, Session, SessionOptions};

use crate::onnx_file::{OnnxFile, graph_attribute};
use crate::sketch::{SHARED_RUNTIME, float_datum, op_names, run_session};

fn read_floats(datum: &RuntimeValue) -> Vec<f32> {
    datum.as_tensor().and_then(Tensor::to_vec).unwrap_or_else(|error| panic!("{error}"))
}

/// `y = x · scale + offset`, with defaults for both constants.
fn line_model() -> OnnxFile {
    let mut file = OnnxFile::default();
    file.add_input("x", DataType::Float, &[-1]).add_input("scale", DataType::Float, &[-1]);
    file.add_input("offset", DataType::Float, &[1]).add_floats("offset", &[1], &[0.5]).add_floats(
        "scale",
        &[1],
        &[2.0],
    );
    file.add_node(".Neg", "scale", "less", &[]).add_node(".Neg", "less", "more", &[]);
    file.add_node(".Mul", "x more", "product", &[])
        .add_node(".Add", "product offset", "y", &[])
        .add_outputs("y");
    file
}

fn run_with_feeds(session: &Session, feeds: &[(&str, &[f32])]) -> Vec<f32> {
    let feeds: Vec<(&str, RuntimeValue)> =
        feeds.iter().map(|(name, values)| (*name, float_datum(&[values.len() as i64], values))).collect();
    read_floats(&session.run_named(&feeds).unwrap_or_else(|error| panic!("{error}"))[0])
}

#[test]
fn an_initializer_is_the_default_unless_the_input_is_fed() {
    for version in [3, 10] {
        let model = line_model().import_with_ir_version(version).unwrap();
        let session = Session::new(SHARED_RUNTIME.clone(), &model, &SessionOptions::default()).unwrap();
        let names = |slots: &[oarlock_engine::ModelOperand]| -> Vec<String> {
            slots.iter().map(|slot| slot.name.to_string()).collect()
        };
        assert_eq!(names(session.inputs()), ["x"]);
        assert_eq!(names(session.optional_inputs()), ["offset", "scale"]);
        let x: (&str, &[f32]) = ("x", &[1.0, 3.0]);
        assert_eq!(run_with_feeds(&session, &[x]), [2.5, 6.5]);
        assert_eq!(run_with_feeds(&session, &[("scale", &[10.0, 20.0]), x]), [10.5, 60.5]);
        assert_eq!(run_with_feeds(&session, &[x, ("offset", &[1.0])]), [3.0, 7.0]);
        assert_eq!(run_with_feeds(&session, &[x, ("offset", &[1.0]), ("scale", &[3.0])]), [4.0, 10.0]);
        assert_eq!(run_with_feeds(&session, &[x]), [2.5, 6.5]);
    }
}

#[test]
fn a_constant_is_folded_where_nobody_gives_another() {
    let session = line_model().start_session();
    let x = float_datum(&[2], &[1.0, 3.0]);
    let ops = |inputs: &[RuntimeValue]| -> Vec<String> {
        let plan = session.plan(inputs).unwrap();
        plan.graph().nodes.iter().flat_map(op_names).collect()
    };
    assert_eq!(ops(std::slice::from_ref(&x)), ["Mul", "Add"]);
    let other = session.order_inputs(&[("x", x.clone()), ("scale", float_datum(&[1], &[2.0]))]).unwrap();
    assert_eq!(ops(&other), ["Neg", "Neg", "Mul", "Add"]);
    // An omitted input falls back to the model's constant.
    assert_eq!(ops(&[x, RuntimeValue::Nothing, RuntimeValue::Nothing]), ["Mul", "Add"]);
}

#[test]
fn a_branch_sees_the_value_that_is_given() {
    let mut file = OnnxFile::default();
    file.add_input("c", DataType::Bool, &[]).add_input("k", DataType::Float, &[1]).add_floats(
        "k",
        &[1],
        &[7.0],
    );
    let mut taken = OnnxFile::default();
    taken.add_node(".Neg", "k", "n", &[]).add_outputs("n");
    let mut other = OnnxFile::default();
    other.add_node(".Identity", "k", "i", &[]).add_outputs("i");
    let branches = [graph_attribute("then_branch", taken.graph), graph_attribute("else_branch", other.graph)];
    file.add_node(".If", "c", "y", &branches).add_outputs("y");
    let session = file.start_session();
    let cpu = SHARED_RUNTIME.device("cpu").unwrap();
    for (is_taken, sign) in [(true, -1.0), (false, 1.0)] {
        let condition: RuntimeValue = Tensor::from_slice(&cpu, &[], &[is_taken]).unwrap().into();
        assert_eq!(read_floats(&run_session(&session, std::slice::from_ref(&condition))[0]), [7.0 * sign]);
        let feeds = [("c", condition), ("k", float_datum(&[1], &[9.0]))];
        assert_eq!(read_floats(&session.run_named(&feeds).unwrap()[0]), [9.0 * sign]);
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_name() {
    let session = line_model().start_session();
    let x = ("x", float_datum(&[1], &[1.0]));
    let message =
        |feeds: &[(&str, RuntimeValue)]| session.run_named(feeds).map(drop).unwrap_err().to_string();
    assert!(message(&[x.clone(), ("offset", float_datum(&[2], &[1.0, 2.0]))]).contains("input `offset`"));
    assert!(message(&[x.clone(), ("scal", float_datum(&[1], &[1.0]))]).contains("`scale`"));
    assert!(message(&[("scale", float_datum(&[1], &[1.0]))]).contains("`x: f32[?]`"));
    let two = [x.1.clone(), x.1];
    assert!(session.run(&two).unwrap_err().to_string().contains("expected 1 inputs"));
}

#[test]
fn threads_that_give_different_values_get_their_own_results() {
    let session = line_model().start_session();
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let session = &session;
            scope.spawn(move || {
                for round in 0..20_u8 {
                    let value = f32::from(thread * 20 + round);
                    let name = if thread % 2 == 0 { "scale" } else { "offset" };
                    let expected = if thread % 2 == 0 { value + 0.5 } else { 2.0 + value };
                    assert_eq!(run_with_feeds(session, &[("x", &[1.0]), (name, &[value])]), [expected]);
                }
            });
        }
    });
}

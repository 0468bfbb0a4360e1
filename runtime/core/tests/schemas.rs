//! Calls that the embedded schemas permit, and what is said about others.

use oarlock_core::schema::{
    AttributeKind, CheckedCall, OpSchema, OperandArity, find_schema, latest_opset, latest_schema,
};
use oarlock_core::{Attribute, Attributes, Dtype, ErrorKind, Result};

fn check_op(name: &str, attributes: Attributes, inputs: &[Option<Dtype>]) -> Result<CheckedCall> {
    latest_schema("", name)?.check_call(&attributes, inputs)
}

fn check_error(name: &str, attributes: Attributes, inputs: &[Option<Dtype>]) -> String {
    check_op(name, attributes, inputs).expect_err("an error").to_string()
}

fn allowed_types(schema: &OpSchema, input: usize) -> String {
    schema.types[schema.inputs[input].type_index].allowed.to_string()
}

const F32: Option<Dtype> = Some(Dtype::F32);
const F64: Option<Dtype> = Some(Dtype::F64);
const I64: Option<Dtype> = Some(Dtype::I64);

#[test]
fn the_schema_of_an_opset_is_the_newest_that_is_not_newer() {
    let since = |name, opset| find_schema("", name, opset).unwrap().since_version;
    let opsets = [1, 5, 6, 7, 12, 13, 14, 22];
    assert_eq!(opsets.map(|opset| since("Add", opset)), [1, 1, 6, 7, 7, 13, 14, 14]);
    assert_eq!(
        latest_schema("ai.onnx", "Add").unwrap(),
        find_schema("", "Add", latest_opset("").unwrap()).unwrap()
    );
    assert!(latest_opset("").unwrap() >= 28 && latest_opset("ai.onnx.ml").unwrap() >= 5);
}

#[test]
fn add_takes_more_types_and_fewer_attributes_with_every_version() {
    let add = |opset| find_schema("", "Add", opset).unwrap();
    let names = |opset| add(opset).attributes.iter().map(|known| known.name).collect::<Vec<_>>();
    assert_eq!(names(1), ["axis", "broadcast", "consumed_inputs"]);
    assert_eq!(names(6), ["axis", "broadcast"]);
    assert!(names(7).is_empty() && names(14).is_empty());
    assert_eq!(allowed_types(add(1), 0), "f16, f32 or f64");
    assert_eq!(allowed_types(add(7), 1), "i32, u32, i64, u64, f16, f32 or f64");
    assert_eq!(allowed_types(add(13), 1), "i32, u32, i64, u64, f16, bf16, f32 or f64");
    assert_eq!(allowed_types(add(14), 0), "i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32 or f64");
    assert_eq!((add(14).min_inputs(), add(14).max_inputs(), add(14).max_outputs()), (2, Some(2), Some(1)));
}

#[test]
fn the_limits_of_clip_are_attributes_first_and_optional_inputs_later() {
    let old = find_schema("", "Clip", 10).unwrap();
    assert_eq!((old.inputs.len(), old.since_version), (1, 6));
    assert_eq!(old.attributes[0].default, Some(Attribute::Float(f64::from(f32::MAX))));
    let new = find_schema("", "Clip", 11).unwrap();
    assert!(new.attributes.is_empty());
    assert_eq!((new.min_inputs(), new.max_inputs()), (1, Some(3)));
    assert_eq!(new.inputs[1].arity, OperandArity::Optional);
    assert!(new.check_call(&Attributes::new(), &[F32, None, F32]).is_ok());
}

#[test]
fn types_and_defaults_are_what_onnx_says() {
    let reshape = find_schema("", "Reshape", 5).unwrap();
    assert_eq!(
        (reshape.operand_name(1), allowed_types(reshape, 1)),
        ("input 1 (shape)".into(), "i64".into())
    );
    let cast = find_schema("", "Cast", 9).unwrap();
    assert!(cast.attributes[0].is_required && cast.attributes[0].kind == AttributeKind::Int);
    let split = find_schema("", "Split", 18).unwrap();
    assert_eq!((split.min_outputs(), split.max_outputs()), (1, None));
    assert_eq!(split.formal_output(7).unwrap().name, "outputs");
    assert_eq!(split.formal_input(2), None);
    let norm = find_schema("", "LayerNormalization", 17).unwrap();
    let defaults: Vec<_> = norm.attributes.iter().filter_map(|known| known.default.clone()).collect();
    assert_eq!(defaults, [Attribute::Int(-1), Attribute::Float(f64::from(1e-5f32)), Attribute::Int(1)]);
    assert_eq!((norm.min_outputs(), norm.max_outputs()), (1, Some(3)));
    let rnn = find_schema("", "RNN", 7).unwrap();
    let activations = rnn.attributes.iter().find(|known| known.name == "activations").unwrap();
    assert_eq!(activations.default, Some(Attribute::Strings(vec!["Tanh".into(), "Tanh".into()])));
    let own = latest_schema("oarlock", "Sgd").unwrap();
    assert_eq!(own.check_call(&Attributes::new(), &[F64; 3]).unwrap().outputs, [F64]);
}

#[test]
fn what_is_not_there_is_told_apart() {
    let message = |domain, name, opset| find_schema(domain, name, opset).unwrap_err().to_string();
    assert!(message("ai.onx", "Add", 1).ends_with("found `ai.onx`; did you mean `ai.onnx`"));
    assert_eq!(
        message("", "Matmul", 9),
        "expected an op of `ai.onnx`, found `Matmul`; did you mean `MatMul`"
    );
    assert_eq!(message("", "Zqxwvk\n", 9), "expected an op of `ai.onnx`, found `Zqxwvk\\n`");
    assert_eq!(
        message("", "Gelu", 19),
        "expected an op of opset 19 of `ai.onnx`, found `Gelu`, which came with opset 20"
    );
    assert!(
        find_schema("", "Upsample", 11).unwrap().is_deprecated
            && !find_schema("", "Upsample", 9).unwrap().is_deprecated
    );
    let error = find_schema("", "Add", u32::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert!(error.message().contains("up to") && error.message().ends_with("found 4294967295"), "{error}");
}

#[test]
fn outputs_have_the_dtypes_that_inputs_and_schema_decide() {
    let none = Attributes::new;
    assert_eq!(check_op("Add", none(), &[F32, F32]).unwrap().outputs, [F32]);
    assert_eq!(check_op("Less", none(), &[F32, F32]).unwrap().outputs, [Some(Dtype::Bool)]);
    assert_eq!(check_op("Shape", none(), &[F32]).unwrap().outputs, [I64]);
    let to = none().with_attribute("to", Attribute::Int(1));
    assert_eq!(check_op("Cast", to, &[I64]).unwrap().outputs, [None]);
    assert_eq!(check_op("TopK", none(), &[F32, I64]).unwrap().outputs, [F32, I64]);
}

#[test]
fn inputs_are_held_to_the_types_and_the_number_there_may_be() {
    let none = Attributes::new;
    assert_eq!(
        check_error("Add", none(), &[F32, F64]),
        "`Add`: input 1 (B): expected f32 like input 0 (A), found f64"
    );
    assert_eq!(
        check_error("Sin", none(), &[I64]),
        "`Sin`: input 0 (input): expected f16, bf16, f32 or f64, found i64"
    );
    assert_eq!(
        check_error("Reshape", none(), &[F32, F32]),
        "`Reshape`: input 1 (shape): expected i64, found f32"
    );
    assert_eq!(check_error("Add", none(), &[F32]), "`Add`: input 1 (B): expected a tensor, found none");
    assert_eq!(check_error("Add", none(), &[None, F32]), "`Add`: input 0 (A): expected a tensor, found none");
    assert_eq!(check_error("Add", none(), &[F32; 3]), "`Add`: expected 2 inputs, found 3");
    assert_eq!(check_error("Clip", none(), &[F32; 4]), "`Clip`: expected 1 to 3 inputs, found 4");
}

#[test]
fn a_variadic_input_takes_any_number_of_one_type() {
    let axis = || Attributes::new().with_attribute("axis", Attribute::Int(0));
    assert_eq!(check_op("Concat", axis(), &[I64; 5]).unwrap().outputs, [I64]);
    assert_eq!(
        check_error("Concat", axis(), &[F32, F32, I64]),
        "`Concat`: input 2 (inputs): expected f32 like input 0 (inputs), found i64"
    );
    assert_eq!(
        check_error("Concat", axis(), &[]),
        "`Concat`: input 0 (inputs): expected a tensor, found none"
    );
    assert_eq!(
        check_error("Concat", axis(), &[F32, None]),
        "`Concat`: input 1 (inputs): expected a tensor, found none"
    );
}

#[test]
fn attributes_get_their_defaults_and_schema_kinds() {
    let given = Attributes::new().with_attribute("alpha", Attribute::Int(2));
    let complete = check_op("Gemm", given, &[F32, F32]).unwrap().attributes;
    assert_eq!(
        (complete.get_float("alpha").unwrap(), complete.get_float("beta").unwrap()),
        (Some(2.0), Some(1.0))
    );
    assert_eq!((complete.get_int("transA").unwrap(), complete.iter().len()), (Some(0), 4));
    let given = Attributes::new().with_attribute("value_floats", Attribute::Ints(vec![1, 2]));
    let complete = check_op("Constant", given, &[]).unwrap().attributes;
    assert_eq!(complete.get("value_floats"), Some(&Attribute::Floats(vec![1.0, 2.0])));
}

#[test]
fn unknown_missing_and_mistyped_attributes_are_refused() {
    let with = |name: &str, value| Attributes::new().with_attribute(name, value);
    assert_eq!(
        check_error("Gemm", with("transa", Attribute::Int(1)), &[F32, F32]),
        "`Gemm`: expected attributes named alpha, beta, transA, transB, found `transa`; did you mean `transA`"
    );
    assert_eq!(
        check_error("Add", with("axis", Attribute::Int(1)), &[F32, F32]),
        "`Add`: expected no attribute, found `axis`"
    );
    assert_eq!(
        check_error("Gemm", with("transA", Attribute::Float(1.0)), &[F32, F32]),
        "`Gemm`: expected the attribute `transA` to hold int, found float"
    );
    assert_eq!(
        check_error("Concat", Attributes::new(), &[F32]),
        "`Concat`: expected the attribute `axis`, which holds int, found none"
    );
}

#[test]
fn what_is_no_tensor_is_refused_as_not_supported() {
    let error = check_op("SequenceLength", Attributes::new(), &[F32]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unimplemented);
    assert!(error.message().contains("seq(tensor(float))"), "{error}");
    assert_eq!(check_op("SequenceConstruct", Attributes::new(), &[F32]).unwrap().outputs, [None]);
    let error = check_op("If", Attributes::new(), &[Some(Dtype::Bool)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unimplemented);
    assert!(error.message().contains("`else_branch`") && error.message().contains("graph"), "{error}");
}

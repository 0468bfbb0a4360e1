//! Ops of plugins in C and C++ that declare their operands and attributes with `oarlock/op.h`.

use std::sync::Arc;

use oarlock_core::{Attribute, Attributes, CpuFallback, Dtype, Op, OpInvocation, Result, Runtime, Tensor};
use oarlock_engine::graph::Node;
use oarlock_engine::{Session, SessionOptions};

use crate::added_plugins::{compile_plugin, start_random_sim};
use crate::sketch::{GraphSketch, datum_bytes, run_session};

fn manifest(name: &str) -> String {
    format!("name = \"{name}\"\nkind = \"kernels\"\n")
}

fn start_with_c_ops() -> Arc<Runtime> {
    let runtime = start_random_sim();
    let file = compile_plugin("declared_ops.c", "libdeclared_c.so", &manifest("declared-c"));
    runtime.add_plugin(&file).expect("the plugin loads");
    runtime
}

fn declared_op(runtime: &Runtime, name: &str, attributes: &[(&str, Attribute)]) -> Op {
    let mut all = Attributes::new();
    attributes.iter().for_each(|(name, value)| all.set(*name, value.clone()));
    Op::new(runtime, "test.declared", name, 1, all).expect("the op is there")
}

fn floats(runtime: &Runtime, device: &str, elements: &[f32]) -> Tensor {
    let device = runtime.device(device).expect("the device");
    Tensor::from_slice(&device, &[elements.len() as i64], elements).expect("a tensor")
}

#[test]
fn an_op_has_a_kernel_for_each_of_two_types_of_device() {
    let runtime = start_with_c_ops();
    let op = declared_op(&runtime, "negate", &[]).with_fallback(CpuFallback::Never);
    let negated = op.run(&runtime, &[&floats(&runtime, "cpu:0", &[1.0, -2.0])]).expect("a kernel of the CPU");
    assert_eq!(negated.to_vec::<f32>().expect("a copy"), [-1.0, 2.0]);
    let simulated = op.run(&runtime, &[&floats(&runtime, "sim:0", &[1.0])]);
    let error = simulated.and_then(|made| made.wait()).expect_err("it fails").to_string();
    assert!(error.contains("the kernel for device 0 of `sim` was called"), "{error}");
}

#[test]
fn an_input_may_be_left_out_and_the_last_one_is_a_list() {
    let runtime = start_with_c_ops();
    let terms = [[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]].map(|term| floats(&runtime, "cpu", &term));
    let op = declared_op(&runtime, "total", &[]);
    let total = |inputs: &[Option<&Tensor>]| -> Result<Vec<f32>> {
        let call = OpInvocation { inputs, outputs: 1, device: None, stream: None };
        op.invoke(&runtime, &call)?[0].as_ref().expect("an output").to_vec()
    };
    let [first, second, third] = &terms;
    assert_eq!(total(&[Some(first), Some(second)]).expect("a sum"), [11.0, 22.0]);
    assert_eq!(total(&[None, Some(second), Some(third)]).expect("a sum"), [110.0, 220.0]);
    assert_eq!(total(&[None, Some(second), Some(third), Some(third)]).expect("a sum"), [210.0, 420.0]);
}

#[test]
fn the_caller_says_how_many_outputs_a_list_has() {
    let runtime = start_with_c_ops();
    let x = floats(&runtime, "cpu", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for count in [1, 2, 3] {
        let call = OpInvocation { inputs: &[Some(&x)], outputs: count, device: None, stream: None };
        let parts = declared_op(&runtime, "split", &[]).invoke(&runtime, &call).expect("parts");
        let lists: Vec<f32> =
            parts.iter().flatten().flat_map(|part| part.to_vec::<f32>().expect("a copy")).collect();
        assert_eq!((parts.len(), lists), (count, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    }
}

#[test]
fn attributes_of_all_kinds_reach_the_kernel_and_others_are_refused() {
    let runtime = start_random_sim();
    let file = compile_plugin("declared_ops.cpp", "libdeclared_cpp.so", &manifest("declared-cpp"));
    runtime.add_plugin(&file).expect("the plugin loads");
    let x = floats(&runtime, "cpu", &[1.0]);
    let scale = |attributes: &[(&str, Attribute)]| -> Result<f32> {
        Ok(declared_op(&runtime, "scale", attributes).run(&runtime, &[&x])?.to_vec::<f32>()?[0])
    };
    let factor = ("factor", Attribute::Float(0.5));
    let text = |text: &str| text.to_owned();
    let accepted = [
        (("factor", Attribute::Int(7)), 7.0),
        (("doubles", Attribute::Int(1)), 1.0),
        (("small", Attribute::Int(3)), 1.5),
        (("large", Attribute::Int(1 << 40)), (1_u64 << 39) as f32),
        (("name", Attribute::String(text("thrice"))), 1.5),
        (("sizes", Attribute::Ints(vec![2, 3])), 3.0),
        (("sizes", Attribute::Int(2)), 1.0),
        (("more", Attribute::Floats(vec![0.5, 4.0])), 1.0),
        (("more", Attribute::Ints(vec![2, 4])), 4.0),
        (("names", Attribute::Strings(vec![text(""), text("five")])), 2.5),
        (("counts", Attribute::Ints(vec![1, -1])), 0.5),
    ];
    for (attribute, expected) in accepted {
        let all = [factor.clone(), attribute.clone()];
        let all = if attribute.0 == "factor" { &all[1..] } else { &all };
        assert_eq!(scale(all).expect("a product"), expected, "{attribute:?}");
    }
    let refused = [
        (("doubles", Attribute::Int(2)), "`doubles` to be 0 or 1"),
        (("doubles", Attribute::Float(1.0)), "`doubles` to be 0 or 1"),
        (("small", Attribute::Int(1 << 31)), "`small` to be a whole number of 32 bits"),
        (("large", Attribute::Float(1.5)), "`large` to be a whole number"),
        (("factor", Attribute::String(text("2"))), "`factor` to be a number"),
        (("factor", Attribute::Floats(vec![2.0])), "`factor` to be a number"),
        (("name", Attribute::Int(1)), "`name` to be text"),
        (("counts", Attribute::Ints(vec![1, 1 << 31])), "`counts` to be whole numbers of 32 bits"),
        (("sizes", Attribute::Floats(vec![1.0])), "`sizes` to be whole numbers"),
        (("more", Attribute::Strings(vec![text("1")])), "`more` to be numbers"),
        (("names", Attribute::Ints(vec![1])), "`names` to be texts"),
        (("faktor", Attribute::Float(1.0)), "attributes that `scale` has: `factor`, `doubles`, `small`, "),
    ];
    for (attribute, words) in refused {
        let all = if attribute.0 == "factor" {
            vec![attribute.clone()]
        } else {
            vec![factor.clone(), attribute.clone()]
        };
        let error = scale(&all).expect_err(words).to_string();
        assert!(error.contains(words), "expected `{words}` in: {error}");
    }
    let missing = scale(&[]).expect_err("a factor is required").to_string();
    assert!(missing.contains("the attribute `factor` of `scale`, which has no default"), "{missing}");
}

#[test]
fn a_dispatch_computes_with_the_type_of_each_dtype_and_names_others() {
    let runtime = start_random_sim();
    let file = compile_plugin("declared_ops.cpp", "libdispatched.so", &manifest("declared-cpp"));
    runtime.add_plugin(&file).expect("the plugin loads");
    let cpu = runtime.device("cpu").expect("the CPU");
    let op = declared_op(&runtime, "scale", &[("factor", Attribute::Float(3.0))]);
    let bytes = Tensor::from_slice(&cpu, &[1], &[-5_i8]).expect("a tensor");
    assert_eq!(op.run(&runtime, &[&bytes]).expect("a product").to_vec::<i8>().expect("a copy"), [-15]);
    let words = Tensor::from_slice(&cpu, &[1], &[20_000_u16]).expect("a tensor");
    assert_eq!(op.run(&runtime, &[&words]).expect("a product").to_vec::<u16>().expect("a copy"), [60_000]);
    let large = Tensor::from_slice(&cpu, &[1], &[1_i64 << 40]).expect("a tensor");
    assert_eq!(op.run(&runtime, &[&large]).expect("a product").to_vec::<i64>().expect("a copy"), [3 << 40]);
    let exact = Tensor::from_slice(&cpu, &[1], &[0.1_f64]).expect("a tensor");
    assert_eq!(op.run(&runtime, &[&exact]).expect("a product").to_vec::<f64>().expect("a copy"), [0.1 * 3.0]);
    let truth = Tensor::from_slice(&cpu, &[1], &[true]).expect("a tensor");
    let error = op.run(&runtime, &[&truth]).expect_err("no type for it").to_string();
    assert!(error.contains("expected a dtype that `scale` computes with, found the dtype 1"), "{error}");
}

#[test]
fn a_kernel_calls_other_ops_by_name() {
    let runtime = start_with_c_ops();
    let cpu = runtime.device("cpu").expect("the CPU");
    let x = Tensor::from_slice(&cpu, &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).expect("a tensor");
    for (axis, expected) in [(0, [22.0, 32.0]), (1, [17.0, 37.0])] {
        let op = declared_op(&runtime, "square", &[("axis", Attribute::Int(axis))]);
        let call = OpInvocation { inputs: &[Some(&x)], outputs: 2, device: None, stream: None };
        let made = op.invoke(&runtime, &call).expect("both outputs");
        let lists: Vec<Vec<f32>> =
            made.iter().flatten().map(|tensor| tensor.to_vec().expect("a copy")).collect();
        assert_eq!(lists, [vec![7.0, 10.0, 15.0, 22.0], expected.to_vec()]);
    }
    // The error of the inner op is that of the call.
    let wide = Tensor::from_slice(&cpu, &[1, 2], &[1.0_f32, 2.0]).expect("a tensor");
    let call = OpInvocation { inputs: &[Some(&wide)], outputs: 2, device: None, stream: None };
    let error = declared_op(&runtime, "square", &[]).invoke(&runtime, &call).expect_err("shapes").to_string();
    assert!(error.contains("`square`") && error.contains("`MatMul`"), "{error}");
}

#[test]
fn a_kernel_calls_other_ops_in_a_model() {
    let runtime = start_with_c_ops();
    let mut sketch = GraphSketch::new();
    let input = sketch.add_input("x", Dtype::F32, &[2, 2]);
    let relu = sketch.add_op("Relu", &[input]);
    let squared = sketch.add_op("of a domain of its own", &[relu]);
    let node = sketch.graph.nodes.last_mut().expect("the node");
    *node = Node { domain: "test.declared".into(), op: "square".into(), opset: 1, ..node.clone() };
    let end = sketch.add_op("Neg", &[squared]);
    let sketch = sketch.with_outputs(&[end]);
    let session =
        Session::new(runtime.clone(), &sketch.to_model(), &SessionOptions::default()).expect("a session");
    let x = Tensor::from_slice(&runtime.device("cpu").expect("the CPU"), &[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
    let made = run_session(&session, &[x.expect("a tensor").into()]);
    let expected: Vec<u8> =
        [-7.0_f32, -10.0, -15.0, -22.0].iter().flat_map(|number| number.to_ne_bytes()).collect();
    assert_eq!(datum_bytes(&made[0]), expected);
}

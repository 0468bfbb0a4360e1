//! Functions of a model, whose nodes take the place of their calls.

use attribute_proto::AttributeType;
use oarlock_engine::import::onnx::messages::*;

use crate::build::*;

const DOMAIN: &str = "local";

fn function(name: &str, inputs: &[&str], nodes: Vec<NodeProto>, outputs: &[&str]) -> FunctionProto {
    FunctionProto {
        name: Some(name.into()),
        domain: Some(DOMAIN.into()),
        input: inputs.iter().map(|name| (*name).into()).collect(),
        output: outputs.iter().map(|name| (*name).into()).collect(),
        node: nodes,
        opset_import: vec![opset("", 18), opset(DOMAIN, 1)],
        ..FunctionProto::default()
    }
}

fn call(name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    node(name, inputs, outputs).of(DOMAIN)
}

fn with(functions: Vec<FunctionProto>, graph: GraphProto) -> ModelProto {
    let model = model(graph);
    let opset_import = [model.opset_import, vec![opset(DOMAIN, 1)]].concat();
    ModelProto { functions, opset_import, ..model }
}

#[test]
fn a_call_becomes_the_nodes_of_the_function() {
    let double = function(
        "Double",
        &["a"],
        vec![node("Add", &["a", "a"], &["t"]), node("Relu", &["t"], &["b"])],
        &["b"],
    );
    let nodes =
        vec![call("Double", &["x"], &["y"]).named("first"), call("Double", &["y"], &["z"]).named("second")];
    let graph = graph_of(&with(vec![double], graph(&["x"], nodes, &["z"])));
    let expected = "\
input x: ?
first/t = Add(x, x)
y = Relu(first/t)
second/t = Add(y, y)
z = Relu(second/t)
output z
";
    assert_eq!(graph.to_string(), expected);
    assert!(graph.nodes.iter().all(|node| node.opset == 18));
}

#[test]
fn functions_call_functions_and_their_bodies_see_them() {
    let inner = function("Inner", &["p"], vec![node("Neg", &["p"], &["q"])], &["q"]);
    let branch = graph(&[], vec![call("Inner", &["k"], &["r"])], &["r"]);
    let condition =
        node("If", &["c"], &["o"]).body("then_branch", branch.clone()).body("else_branch", branch);
    let outer = function("Outer", &["c", "v"], vec![node("Relu", &["v"], &["k"]), condition], &["o"]);
    let nodes = vec![call("Outer", &["cond", "x"], &["y"])];
    let graph = graph_of(&with(vec![outer, inner], graph(&["cond", "x"], nodes, &["y"])));
    let expected = "\
input cond: ?
input x: ?
Outer/k = Relu(x)
y = If(cond)
  then_branch with [Outer/k]
    input Outer/k: ?
    r = Neg(Outer/k)
    output r
  else_branch with [Outer/k]
    input Outer/k: ?
    r = Neg(Outer/k)
    output r
output y
";
    assert_eq!(graph.to_string(), expected);
}

#[test]
fn attributes_are_given_by_the_call_by_default_or_not_at_all() {
    let elu = node("Elu", &["a"], &["b"]).with(reference("alpha", AttributeType::Float, "slope"));
    let constant = node("Constant", &[], &["c"]).with(reference("value_float", AttributeType::Float, "bias"));
    let mut inner = function("Inner", &["a"], vec![elu, constant, node("Add", &["b", "c"], &["d"])], &["d"]);
    inner.attribute = vec!["slope".into()];
    inner.attribute_proto = vec![float("bias", 9.0)];
    let handed_on = call("Inner", &["a"], &["b"]).with(reference("slope", AttributeType::Float, "s"));
    let outer = function("Outer", &["a"], vec![handed_on], &["b"]);
    let nodes = vec![
        call("Outer", &["x"], &["y"]).with(float("s", 0.25)),
        call("Inner", &["y"], &["z"]).with(float("bias", 1.0)),
    ];
    let graph = graph_of(&with(vec![outer, inner], graph(&["x"], nodes, &["z"])));
    let alphas: Vec<Option<f64>> =
        graph.nodes.iter().map(|node| node.attributes.float("alpha").unwrap()).collect();
    assert_eq!(alphas, [Some(0.25), None, None, None]);
    let text = graph.to_string();
    says(&text, &["y = Add(Outer/Inner/b, [9.0])", "z = Add(Inner/b, [1.0])"]);
}

#[test]
fn operands_that_a_call_leaves_out_are_left_out_in_the_function() {
    let nodes = vec![node("Clip", &["a", "low", "high"], &["b"]), node("Neg", &["a"], &["unwanted"])];
    let clip = function("Clamp", &["a", "low", "high"], nodes, &["b", "unwanted"]);
    let graph =
        graph_of(&with(vec![clip], graph(&["x", "h"], vec![call("Clamp", &["x", "", "h"], &["y"])], &["y"])));
    assert_eq!(graph.nodes.len(), 2);
    says(&graph.to_string(), &["y = Clip(x, _, h)", "Clamp/unwanted = Neg(x)"]);
}

#[test]
fn what_a_function_hands_through_is_copied() {
    let through = function("Through", &["a"], vec![node("Neg", &["a"], &["b"])], &["a", "b", "b"]);
    let nodes = vec![call("Through", &["x"], &["p", "q", "r"])];
    let graph = graph_of(&with(vec![through], graph(&["x"], nodes, &["p", "q", "r"])));
    assert_eq!(
        graph.to_string(),
        "input x: ?\nq = Neg(x)\np = Identity(x)\nr = Identity(q)\noutput p\noutput q\noutput r\n"
    );
}

#[test]
fn overloads_are_told_apart() {
    let mut first = function("F", &["a"], vec![node("Neg", &["a"], &["b"])], &["b"]);
    let mut second = function("F", &["a"], vec![node("Abs", &["a"], &["b"])], &["b"]);
    (first.overload, second.overload) = (Some("one".into()), Some("two".into()));
    let mut node = call("F", &["x"], &["y"]);
    node.overload = Some("two".into());
    let graph = graph_of(&with(vec![first, second], graph(&["x"], vec![node], &["y"])));
    assert!(graph.nodes[0].is("Abs"));
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let a = function("A", &["a"], vec![call("B", &["a"], &["b"])], &["b"]);
    let b = function("B", &["a"], vec![call("A", &["a"], &["b"])], &["b"]);
    let model = with(vec![a, b], graph(&["x"], vec![call("A", &["x"], &["y"])], &["y"]));
    says(&refusal(&model), &["functions that do not call themselves", "the function `local.A`, which does"]);
}

#[test]
fn functions_that_become_too_much_are_refused() {
    let many = AttributeProto { ints: vec![1; 100_000], ..attribute("axes", AttributeType::Ints) };
    let mut functions = vec![function("F0", &["a"], vec![node("Neg", &["a"], &["b"]).with(many)], &["b"])];
    for depth in 1..30 {
        let callee = format!("F{}", depth - 1);
        let nodes = vec![call(&callee, &["a"], &["t"]), call(&callee, &["t"], &["b"])];
        functions.push(function(&format!("F{depth}"), &["a"], nodes, &["b"]));
    }
    let model = with(functions, graph(&["x"], vec![call("F29", &["x"], &["y"])], &["y"]));
    says(&refusal(&model), &["functions that become at most 200000 nodes of 67108864 bytes"]);
}

#[test]
fn functions_that_are_too_deep_in_each_other_are_refused() {
    let mut functions = vec![function("F0", &["a"], vec![node("Neg", &["a"], &["b"])], &["b"])];
    for depth in 1..1000 {
        let branch = graph(&[], vec![call(&format!("F{}", depth - 1), &["a"], &["c"])], &["c"]);
        let nodes = vec![node("If", &["a"], &["b"]).body("then_branch", branch)];
        functions.push(function(&format!("F{depth}"), &["a"], nodes, &["b"]));
    }
    let model = with(functions, graph(&["x"], vec![call("F999", &["x"], &["y"])], &["y"]));
    says(&refusal(&model), &["at most 64 deep in each other"]);
}

#[test]
fn calls_that_do_not_fit_their_function_are_refused() {
    let f = || function("F", &["a"], vec![node("Neg", &["a"], &["b"])], &["b"]);
    let of = |functions, node| refusal(&with(functions, graph(&["x"], vec![node], &["y"])));
    let many = call("F", &["x", "x"], &["y"]);
    says(&of(vec![f()], many), &["the function `local.F`", "at most 1 inputs, found 2"]);
    says(&of(vec![f()], call("F", &["x"], &["y", "z"])), &["at most 1 outputs, found 2"]);
    says(&of(vec![f(), f()], call("F", &["x"], &["y"])), &["every function once", "`local.F` twice"]);
    let body = call("F", &["x"], &["y"]).body("g", graph(&[], Vec::new(), &["x"]));
    says(&of(vec![f()], body), &["the attribute `g`", "without graphs among its attributes"]);
    let lost = FunctionProto { output: vec!["lost".into()], ..f() };
    says(&of(vec![lost], call("F", &["x"], &["y"])), &["`lost`, which nothing makes"]);
    let outside = function("F", &["a"], vec![node("Neg", &["x"], &["b"])], &["b"]);
    says(
        &of(vec![outside], call("F", &["x"], &["y"])),
        &["the function `local.F`: the `Neg` that makes `b`", "`x`, which is none"],
    );
}

//! Functions of a model are inlined.

use attribute_proto::AttributeType;
use oarlock_model::import::onnx::messages::*;

use crate::model_builder::*;

const LOCAL_DOMAIN: &str = "local";

fn build_function(name: &str, inputs: &[&str], nodes: Vec<NodeProto>, outputs: &[&str]) -> FunctionProto {
    FunctionProto {
        name: Some(name.into()),
        domain: Some(LOCAL_DOMAIN.into()),
        input: inputs.iter().map(|name| (*name).into()).collect(),
        output: outputs.iter().map(|name| (*name).into()).collect(),
        node: nodes,
        opset_import: vec![build_opset("", 18), build_opset(LOCAL_DOMAIN, 1)],
        ..FunctionProto::default()
    }
}

fn function_call(name: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    build_node(name, inputs, outputs).with_domain(LOCAL_DOMAIN)
}

fn with_functions(functions: Vec<FunctionProto>, graph: GraphProto) -> ModelProto {
    let model = build_model(graph);
    let opset_import = [model.opset_import, vec![build_opset(LOCAL_DOMAIN, 1)]].concat();
    ModelProto { functions, opset_import, ..model }
}

#[test]
fn a_call_becomes_the_nodes_of_the_function() {
    let double = build_function(
        "Double",
        &["a"],
        vec![build_node("Add", &["a", "a"], &["t"]), build_node("Relu", &["t"], &["b"])],
        &["b"],
    );
    let nodes = vec![
        function_call("Double", &["x"], &["y"]).with_name("first"),
        function_call("Double", &["y"], &["z"]).with_name("second"),
    ];
    let graph = import_graph(&with_functions(vec![double], build_graph(&["x"], nodes, &["z"])));
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
    let inner = build_function("Inner", &["p"], vec![build_node("Neg", &["p"], &["q"])], &["q"]);
    let branch = build_graph(&[], vec![function_call("Inner", &["k"], &["r"])], &["r"]);
    let condition = build_node("If", &["c"], &["o"])
        .with_body("then_branch", branch.clone())
        .with_body("else_branch", branch);
    let outer =
        build_function("Outer", &["c", "v"], vec![build_node("Relu", &["v"], &["k"]), condition], &["o"]);
    let nodes = vec![function_call("Outer", &["cond", "x"], &["y"])];
    let graph = import_graph(&with_functions(vec![outer, inner], build_graph(&["cond", "x"], nodes, &["y"])));
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
fn function_attributes_come_from_the_call_or_the_default() {
    let elu = build_node("Elu", &["a"], &["b"]).with_attribute(attribute_reference(
        "alpha",
        AttributeType::Float,
        "slope",
    ));
    let constant = build_node("Constant", &[], &["c"]).with_attribute(attribute_reference(
        "value_float",
        AttributeType::Float,
        "bias",
    ));
    let mut inner =
        build_function("Inner", &["a"], vec![elu, constant, build_node("Add", &["b", "c"], &["d"])], &["d"]);
    inner.attribute = vec!["slope".into()];
    inner.attribute_proto = vec![float_attribute("bias", 9.0)];
    let handed_on = function_call("Inner", &["a"], &["b"]).with_attribute(attribute_reference(
        "slope",
        AttributeType::Float,
        "s",
    ));
    let outer = build_function("Outer", &["a"], vec![handed_on], &["b"]);
    let nodes = vec![
        function_call("Outer", &["x"], &["y"]).with_attribute(float_attribute("s", 0.25)),
        function_call("Inner", &["y"], &["z"]).with_attribute(float_attribute("bias", 1.0)),
    ];
    let graph = import_graph(&with_functions(vec![outer, inner], build_graph(&["x"], nodes, &["z"])));
    let alphas: Vec<Option<f64>> =
        graph.nodes.iter().map(|node| node.attributes.get_float("alpha").unwrap()).collect();
    assert_eq!(alphas, [Some(0.25), None, None, None]);
    let text = graph.to_string();
    assert_contains(&text, &["y = Add(Outer/Inner/b, [9.0])", "z = Add(Inner/b, [1.0])"]);
}

#[test]
fn operands_that_a_call_leaves_out_are_left_out_in_the_function() {
    let nodes =
        vec![build_node("Clip", &["a", "low", "high"], &["b"]), build_node("Neg", &["a"], &["unwanted"])];
    let clip = build_function("Clamp", &["a", "low", "high"], nodes, &["b", "unwanted"]);
    let graph = import_graph(&with_functions(
        vec![clip],
        build_graph(&["x", "h"], vec![function_call("Clamp", &["x", "", "h"], &["y"])], &["y"]),
    ));
    assert_eq!(graph.nodes.len(), 2);
    assert_contains(&graph.to_string(), &["y = Clip(x, _, h)", "Clamp/unwanted = Neg(x)"]);
}

#[test]
fn what_a_function_hands_through_is_copied() {
    let through =
        build_function("Through", &["a"], vec![build_node("Neg", &["a"], &["b"])], &["a", "b", "b"]);
    let nodes = vec![function_call("Through", &["x"], &["p", "q", "r"])];
    let graph = import_graph(&with_functions(vec![through], build_graph(&["x"], nodes, &["p", "q", "r"])));
    assert_eq!(
        graph.to_string(),
        "input x: ?\nq = Neg(x)\np = Identity(x)\nr = Identity(q)\noutput p\noutput q\noutput r\n"
    );
}

#[test]
fn overloads_are_told_apart() {
    let mut first = build_function("F", &["a"], vec![build_node("Neg", &["a"], &["b"])], &["b"]);
    let mut second = build_function("F", &["a"], vec![build_node("Abs", &["a"], &["b"])], &["b"]);
    (first.overload, second.overload) = (Some("one".into()), Some("two".into()));
    let mut node = function_call("F", &["x"], &["y"]);
    node.overload = Some("two".into());
    let graph = import_graph(&with_functions(vec![first, second], build_graph(&["x"], vec![node], &["y"])));
    assert!(graph.nodes[0].is_op("Abs"));
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let a = build_function("A", &["a"], vec![function_call("B", &["a"], &["b"])], &["b"]);
    let b = build_function("B", &["a"], vec![function_call("A", &["a"], &["b"])], &["b"]);
    let model =
        with_functions(vec![a, b], build_graph(&["x"], vec![function_call("A", &["x"], &["y"])], &["y"]));
    assert_contains(
        &import_refusal(&model),
        &["functions that do not call themselves", "the function `local.A`, which does"],
    );
}

#[test]
fn functions_that_become_too_much_are_refused() {
    let many = AttributeProto { ints: vec![1; 100_000], ..build_attribute("axes", AttributeType::Ints) };
    let mut functions = vec![build_function(
        "F0",
        &["a"],
        vec![build_node("Neg", &["a"], &["b"]).with_attribute(many)],
        &["b"],
    )];
    for depth in 1..30 {
        let callee = format!("F{}", depth - 1);
        let nodes = vec![function_call(&callee, &["a"], &["t"]), function_call(&callee, &["t"], &["b"])];
        functions.push(build_function(&format!("F{depth}"), &["a"], nodes, &["b"]));
    }
    let model =
        with_functions(functions, build_graph(&["x"], vec![function_call("F29", &["x"], &["y"])], &["y"]));
    assert_contains(
        &import_refusal(&model),
        &["functions that become at most 200000 nodes of 67108864 bytes"],
    );
}

#[test]
fn functions_that_are_too_deep_in_each_other_are_refused() {
    let mut functions = vec![build_function("F0", &["a"], vec![build_node("Neg", &["a"], &["b"])], &["b"])];
    for depth in 1..1000 {
        let branch =
            build_graph(&[], vec![function_call(&format!("F{}", depth - 1), &["a"], &["c"])], &["c"]);
        let nodes = vec![build_node("If", &["a"], &["b"]).with_body("then_branch", branch)];
        functions.push(build_function(&format!("F{depth}"), &["a"], nodes, &["b"]));
    }
    let model =
        with_functions(functions, build_graph(&["x"], vec![function_call("F999", &["x"], &["y"])], &["y"]));
    assert_contains(&import_refusal(&model), &["at most 64 deep in each other"]);
}

#[test]
fn calls_that_do_not_fit_their_function_are_refused() {
    let f = || build_function("F", &["a"], vec![build_node("Neg", &["a"], &["b"])], &["b"]);
    let of =
        |functions, node| import_refusal(&with_functions(functions, build_graph(&["x"], vec![node], &["y"])));
    let many = function_call("F", &["x", "x"], &["y"]);
    assert_contains(&of(vec![f()], many), &["the function `local.F`", "at most 1 inputs, found 2"]);
    assert_contains(&of(vec![f()], function_call("F", &["x"], &["y", "z"])), &["at most 1 outputs, found 2"]);
    assert_contains(
        &of(vec![f(), f()], function_call("F", &["x"], &["y"])),
        &["every function once", "`local.F` twice"],
    );
    let body = function_call("F", &["x"], &["y"]).with_body("g", build_graph(&[], Vec::new(), &["x"]));
    assert_contains(&of(vec![f()], body), &["the attribute `g`", "without graphs among its attributes"]);
    let lost = FunctionProto { output: vec!["lost".into()], ..f() };
    assert_contains(&of(vec![lost], function_call("F", &["x"], &["y"])), &["`lost`, which nothing makes"]);
    let outside = build_function("F", &["a"], vec![build_node("Neg", &["x"], &["b"])], &["b"]);
    assert_contains(
        &of(vec![outside], function_call("F", &["x"], &["y"])),
        &["the function `local.F`: the `Neg` that makes `b`", "`x`, which is none"],
    );
}

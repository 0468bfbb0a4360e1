//! What names mean: in graphs, in the bodies within their nodes, and in whichever order the nodes stand.

use crate::build::*;
use oarlock_engine::import::onnx::messages::*;

/// A condition with a branch that has these nodes, and another that gives what is around it.
fn branches(then: GraphProto, otherwise: GraphProto, output: &str) -> NodeProto {
    node("If", &["cond"], &[output]).body("then_branch", then).body("else_branch", otherwise)
}

#[test]
fn what_a_branch_takes_from_around_it_becomes_its_input() {
    let then = graph(&[], vec![node("Add", &["x", "h"], &["a"])], &["a"]);
    let otherwise = graph(&[], Vec::new(), &["h"]);
    let nodes = vec![node("Relu", &["x"], &["h"]), branches(then, otherwise, "y")];
    let graph = graph_of(&model(graph(&["cond", "x"], nodes, &["y"])));
    let expected = "\
input cond: ?
input x: ?
h = Relu(x)
y = If(cond)
  then_branch with [x, h]
    input x: ?
    input h: ?
    a = Add(x, h)
    output a
  else_branch with [h]
    input h: ?
    output h
output y
";
    assert_eq!(graph.to_string(), expected);
}

#[test]
fn a_body_within_a_body_takes_through_both() {
    let innermost = graph(&[], vec![node("Add", &["x", "i"], &["b"])], &["b"]);
    let inner = graph(&["i"], vec![branches(innermost.clone(), innermost, "c")], &["c"]);
    let nodes = vec![node("Loop", &["n"], &["y"]).body("body", inner)];
    let graph = graph_of(&model(graph(&["n", "cond", "x"], nodes, &["y"])));
    let body = &graph.nodes[0].subgraphs[0];
    assert_eq!(body.captures.iter().map(|id| &*graph.value(*id).name).collect::<Vec<_>>(), ["cond", "x"]);
    let branch = &body.graph.nodes[0].subgraphs[0];
    assert_eq!(branch.captures.iter().map(|id| &*body.graph.value(*id).name).collect::<Vec<_>>(), ["x", "i"]);
}

#[test]
fn a_constant_is_one_in_bodies_too() {
    let branch = graph(&[], vec![node("Add", &["x", "w"], &["a"])], &["a"]);
    let mut proto = graph(&["cond", "x"], vec![branches(branch.clone(), branch, "y")], &["y"]);
    proto.initializer = vec![floats("w", &[1], &[2.0])];
    let graph = graph_of(&model(proto));
    assert!(graph.to_string().contains("then_branch with [x]\n"), "{graph}");
    assert!(graph.to_string().contains("a = Add(x, [2.0])"), "{graph}");
}

#[test]
fn an_input_of_a_body_stays_one_even_with_a_weight() {
    let mut body = graph(&["i"], vec![node("Relu", &["i"], &["o"])], &["o"]);
    body.initializer = vec![floats("i", &[1], &[2.0])];
    let graph =
        graph_of(&model(graph(&["n"], vec![node("Loop", &["n"], &["y"]).body("body", body)], &["y"])));
    assert_eq!(graph.nodes[0].subgraphs[0].graph.inputs.len(), 1);
}

#[test]
fn nodes_may_stand_in_any_order_that_can_be_sorted() {
    let then = graph(&[], Vec::new(), &["late"]);
    let nodes =
        vec![branches(then.clone(), then, "y"), node("Neg", &["h"], &["late"]), node("Relu", &["x"], &["h"])];
    let graph = graph_of(&model(graph(&["cond", "x"], nodes, &["y"])));
    assert_eq!(graph.nodes.iter().map(|node| &*node.op).collect::<Vec<_>>(), ["Relu", "Neg", "If"]);
}

#[test]
fn nodes_that_wait_for_each_other_are_named() {
    let nodes = vec![
        node("Add", &["x", "b"], &["a"]).named("first"),
        node("Relu", &["a"], &["b"]).named("second"),
        node("Neg", &["a"], &["c"]).named("innocent"),
    ];
    let text = refusal(&model(graph(&["x"], nodes, &["c"])));
    says(
        &text,
        &["graph `g`: expected nodes that can be put in order", "`first`", "`second`", "wait for each other"],
    );
    assert!(!text.contains("innocent"), "{text}");
}

#[test]
fn a_body_that_reads_what_its_node_makes_is_a_cycle() {
    let branch = graph(&[], Vec::new(), &["y"]);
    says(
        &refusal(&model(graph(&["cond"], vec![branches(branch.clone(), branch, "y")], &["y"]))),
        &["`If`, which wait"],
    );
}

#[test]
fn names_that_mean_nothing_are_refused_with_their_place() {
    says(
        &refusal(&model(graph(&["x"], vec![node("Add", &["x", "gone"], &["y"]).named("sum")], &["y"]))),
        &[
            "graph `g`: `Add` (`sum`): expected values that are given, constant or made by a node, found `gone`",
        ],
    );
    let inner = graph(&[], vec![node("Relu", &["gone"], &["a"])], &["a"]);
    let mut inner_named = inner.clone();
    inner_named.name = Some("inner".into());
    let nodes = vec![branches(inner_named, inner, "y")];
    says(
        &refusal(&model(graph(&["cond"], nodes, &["y"]))),
        &[
            "graph `g`: the `If` that makes `y`: the attribute `then_branch`: graph `inner`: the `Relu` that makes `a`",
            "`gone`",
        ],
    );
    says(&refusal(&model(graph(&["x"], Vec::new(), &["y"]))), &["graph `g`: outputs", "`y`"]);
    says(&refusal(&model(graph(&["x"], Vec::new(), &[""]))), &["graph `g`: outputs"]);
    says(&refusal(&model(graph(&[""], Vec::new(), &[]))), &["input ``", "a name"]);
}

#[test]
fn a_body_does_not_lend_its_names_to_what_is_around_it() {
    let branch = graph(&[], vec![node("Relu", &["x"], &["inside"])], &["inside"]);
    let nodes = vec![branches(branch.clone(), branch, "y"), node("Neg", &["inside"], &["z"])];
    says(&refusal(&model(graph(&["cond", "x"], nodes, &["z"]))), &["the `Neg` that makes `z`", "`inside`"]);
}

#[test]
fn a_name_that_is_made_twice_is_refused() {
    let twice = |mut proto: GraphProto| {
        proto.initializer.push(floats("w", &[1], &[1.0]));
        refusal(&model(proto))
    };
    let relu = || node("Relu", &["x"], &["y"]);
    says(
        &twice(graph(&["x"], vec![relu(), node("Neg", &["x"], &["y"])], &["y"])),
        &["`Neg`", "made once", "`y` twice"],
    );
    says(&twice(graph(&["x", "x"], vec![relu()], &["y"])), &["input `x`", "`x` twice"]);
    says(&twice(graph(&["x"], vec![node("Relu", &["x"], &["x"])], &["x"])), &["`x` twice"]);
    says(&twice(graph(&["x"], vec![node("Relu", &["x"], &["w"])], &["w"])), &["`w` twice"]);
    let mut weights = graph(&["x"], vec![relu()], &["y"]);
    weights.initializer.push(floats("w", &[1], &[2.0]));
    says(&twice(weights), &["initializer `w`", "`w` twice"]);
}

#[test]
fn a_body_that_makes_a_name_again_that_is_around_it_is_refused() {
    let with = |first: &str, made: &str| {
        let branch = graph(&[], vec![node("Neg", &["x"], &[made])], &[made]);
        let choice = branches(branch.clone(), branch, "y");
        let nodes = vec![node("Relu", &["x"], &[first]), choice, node("Abs", &["y"], &["late"])];
        model(graph(&["cond", "x"], nodes, &["late"]))
    };
    for name in ["h", "x", "cond"] {
        let places = ["the `If` that makes `y`: graph `g`: the `Neg`", name, "which is one around it"];
        says(&refusal(&with("h", name)), &places);
    }
    // What is made further behind is not there yet, and what a branch makes not in the other.
    for name in ["late", "own"] {
        graph_of(&with("h", name));
    }
    // An input hides what is around it.
    let body = graph(&["i", "x"], vec![node("Neg", &["x"], &["o"])], &["o"]);
    let nodes = vec![node("Loop", &["n", "", "x"], &["y"]).body("body", body)];
    graph_of(&model(graph(&["n", "x"], nodes, &["y"])));
}

#[test]
fn a_node_without_an_op_is_refused() {
    says(&refusal(&model(graph(&["x"], vec![node("", &["x"], &["y"])], &["y"]))), &["a node of an op"]);
}

#[test]
fn names_in_messages_are_short_and_safe_to_print() {
    let name = format!("\u{1b}[31m{}", "n".repeat(10_000));
    let text = refusal(&model(graph(&["x"], vec![node("Relu", &[&name], &["y"])], &["y"])));
    assert!(!text.contains('\u{1b}') && text.len() < 1000, "{text}");
}

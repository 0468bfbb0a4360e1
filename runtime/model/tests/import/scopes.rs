//! Name resolution: in graphs, in subgraphs, and for nodes in any order.

use crate::model_builder::*;
use oarlock_model::import::onnx::messages::*;

/// An `If` with a branch of these nodes, and another that returns an outer value.
fn if_node(then: GraphProto, otherwise: GraphProto, output: &str) -> NodeProto {
    build_node("If", &["cond"], &[output]).with_body("then_branch", then).with_body("else_branch", otherwise)
}

#[test]
fn what_a_branch_takes_from_around_it_becomes_its_input() {
    let then = build_graph(&[], vec![build_node("Add", &["x", "h"], &["a"])], &["a"]);
    let otherwise = build_graph(&[], Vec::new(), &["h"]);
    let nodes = vec![build_node("Relu", &["x"], &["h"]), if_node(then, otherwise, "y")];
    let graph = import_graph(&build_model(build_graph(&["cond", "x"], nodes, &["y"])));
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
    let innermost = build_graph(&[], vec![build_node("Add", &["x", "i"], &["b"])], &["b"]);
    let inner = build_graph(&["i"], vec![if_node(innermost.clone(), innermost, "c")], &["c"]);
    let nodes = vec![build_node("Loop", &["n"], &["y"]).with_body("body", inner)];
    let graph = import_graph(&build_model(build_graph(&["n", "cond", "x"], nodes, &["y"])));
    let body = &graph.nodes[0].subgraphs[0];
    assert_eq!(body.captures.iter().map(|id| &*graph.value(*id).name).collect::<Vec<_>>(), ["cond", "x"]);
    let branch = &body.graph.nodes[0].subgraphs[0];
    assert_eq!(branch.captures.iter().map(|id| &*body.graph.value(*id).name).collect::<Vec<_>>(), ["x", "i"]);
}

#[test]
fn a_constant_is_one_in_bodies_too() {
    let branch = build_graph(&[], vec![build_node("Add", &["x", "w"], &["a"])], &["a"]);
    let mut proto = build_graph(&["cond", "x"], vec![if_node(branch.clone(), branch, "y")], &["y"]);
    proto.initializer = vec![float_tensor("w", &[1], &[2.0])];
    let graph = import_graph(&build_model(proto));
    assert!(graph.to_string().contains("then_branch with [x]\n"), "{graph}");
    assert!(graph.to_string().contains("a = Add(x, [2.0])"), "{graph}");
}

#[test]
fn an_input_of_a_body_stays_one_even_with_a_weight() {
    let mut body = build_graph(&["i"], vec![build_node("Relu", &["i"], &["o"])], &["o"]);
    body.initializer = vec![float_tensor("i", &[1], &[2.0])];
    let graph = import_graph(&build_model(build_graph(
        &["n"],
        vec![build_node("Loop", &["n"], &["y"]).with_body("body", body)],
        &["y"],
    )));
    assert_eq!(graph.nodes[0].subgraphs[0].graph.inputs.len(), 1);
}

#[test]
fn nodes_may_stand_in_any_order_that_can_be_sorted() {
    let then = build_graph(&[], Vec::new(), &["late"]);
    let nodes = vec![
        if_node(then.clone(), then, "y"),
        build_node("Neg", &["h"], &["late"]),
        build_node("Relu", &["x"], &["h"]),
    ];
    let graph = import_graph(&build_model(build_graph(&["cond", "x"], nodes, &["y"])));
    assert_eq!(graph.nodes.iter().map(|node| &*node.op).collect::<Vec<_>>(), ["Relu", "Neg", "If"]);
}

#[test]
fn nodes_that_wait_for_each_other_are_named() {
    let nodes = vec![
        build_node("Add", &["x", "b"], &["a"]).with_name("first"),
        build_node("Relu", &["a"], &["b"]).with_name("second"),
        build_node("Neg", &["a"], &["c"]).with_name("innocent"),
    ];
    let text = import_refusal(&build_model(build_graph(&["x"], nodes, &["c"])));
    assert_contains(
        &text,
        &["graph `g`: expected nodes that can be put in order", "`first`", "`second`", "wait for each other"],
    );
    assert!(!text.contains("innocent"), "{text}");
}

#[test]
fn a_body_that_reads_what_its_node_makes_is_a_cycle() {
    let branch = build_graph(&[], Vec::new(), &["y"]);
    assert_contains(
        &import_refusal(&build_model(build_graph(
            &["cond"],
            vec![if_node(branch.clone(), branch, "y")],
            &["y"],
        ))),
        &["`If`, which wait"],
    );
}

#[test]
fn undefined_names_are_refused_with_their_location() {
    assert_contains(
        &import_refusal(&build_model(build_graph(
            &["x"],
            vec![build_node("Add", &["x", "gone"], &["y"]).with_name("sum")],
            &["y"],
        ))),
        &[
            "graph `g`: `Add` (`sum`): expected values that are given, constant or made by a node, found `gone`",
        ],
    );
    let inner = build_graph(&[], vec![build_node("Relu", &["gone"], &["a"])], &["a"]);
    let mut inner_named = inner.clone();
    inner_named.name = Some("inner".into());
    let nodes = vec![if_node(inner_named, inner, "y")];
    assert_contains(
        &import_refusal(&build_model(build_graph(&["cond"], nodes, &["y"]))),
        &[
            "graph `g`: the `If` that makes `y`: the attribute `then_branch`: graph `inner`: the `Relu` that makes `a`",
            "`gone`",
        ],
    );
    assert_contains(
        &import_refusal(&build_model(build_graph(&["x"], Vec::new(), &["y"]))),
        &["graph `g`: outputs", "`y`"],
    );
    assert_contains(
        &import_refusal(&build_model(build_graph(&["x"], Vec::new(), &[""]))),
        &["graph `g`: outputs"],
    );
    assert_contains(
        &import_refusal(&build_model(build_graph(&[""], Vec::new(), &[]))),
        &["input ``", "a name"],
    );
}

#[test]
fn a_body_does_not_lend_its_names_to_what_is_around_it() {
    let branch = build_graph(&[], vec![build_node("Relu", &["x"], &["inside"])], &["inside"]);
    let nodes = vec![if_node(branch.clone(), branch, "y"), build_node("Neg", &["inside"], &["z"])];
    assert_contains(
        &import_refusal(&build_model(build_graph(&["cond", "x"], nodes, &["z"]))),
        &["the `Neg` that makes `z`", "`inside`"],
    );
}

#[test]
fn a_name_that_is_made_twice_is_refused() {
    let twice = |mut proto: GraphProto| {
        proto.initializer.push(float_tensor("w", &[1], &[1.0]));
        import_refusal(&build_model(proto))
    };
    let relu = || build_node("Relu", &["x"], &["y"]);
    assert_contains(
        &twice(build_graph(&["x"], vec![relu(), build_node("Neg", &["x"], &["y"])], &["y"])),
        &["`Neg`", "made once", "`y` twice"],
    );
    assert_contains(&twice(build_graph(&["x", "x"], vec![relu()], &["y"])), &["input `x`", "`x` twice"]);
    assert_contains(
        &twice(build_graph(&["x"], vec![build_node("Relu", &["x"], &["x"])], &["x"])),
        &["`x` twice"],
    );
    assert_contains(
        &twice(build_graph(&["x"], vec![build_node("Relu", &["x"], &["w"])], &["w"])),
        &["`w` twice"],
    );
    let mut weights = build_graph(&["x"], vec![relu()], &["y"]);
    weights.initializer.push(float_tensor("w", &[1], &[2.0]));
    assert_contains(&twice(weights), &["initializer `w`", "`w` twice"]);
}

#[test]
fn a_body_that_makes_a_name_again_that_is_around_it_is_refused() {
    let with = |first: &str, made: &str| {
        let branch = build_graph(&[], vec![build_node("Neg", &["x"], &[made])], &[made]);
        let choice = if_node(branch.clone(), branch, "y");
        let nodes = vec![build_node("Relu", &["x"], &[first]), choice, build_node("Abs", &["y"], &["late"])];
        build_model(build_graph(&["cond", "x"], nodes, &["late"]))
    };
    for name in ["h", "x", "cond"] {
        let places = ["the `If` that makes `y`: graph `g`: the `Neg`", name, "which is one around it"];
        assert_contains(&import_refusal(&with("h", name)), &places);
    }
    // Names that are defined later, or only in the other branch, do not clash.
    for name in ["late", "own"] {
        import_graph(&with("h", name));
    }
    // An input of a body shadows an outer name.
    let body = build_graph(&["i", "x"], vec![build_node("Neg", &["x"], &["o"])], &["o"]);
    let nodes = vec![build_node("Loop", &["n", "", "x"], &["y"]).with_body("body", body)];
    import_graph(&build_model(build_graph(&["n", "x"], nodes, &["y"])));
}

#[test]
fn a_node_without_an_op_is_refused() {
    assert_contains(
        &import_refusal(&build_model(build_graph(&["x"], vec![build_node("", &["x"], &["y"])], &["y"]))),
        &["a node of an op"],
    );
}

#[test]
fn names_in_messages_are_short_and_safe_to_print() {
    let name = format!("\u{1b}[31m{}", "n".repeat(10_000));
    let text =
        import_refusal(&build_model(build_graph(&["x"], vec![build_node("Relu", &[&name], &["y"])], &["y"])));
    assert!(!text.contains('\u{1b}') && text.len() < 1000, "{text}");
}

//! Paddle programs with blocks: loops, branches and tensor arrays, valid and corrupt.

use oarlock_model::graph::Graph;
use oarlock_model::import::paddle::messages::*;

use crate::model_builder::assert_contains;
use crate::paddle::*;

const BOOL_TYPE: i32 = 0;
const F64_TYPE: i32 = 6;
const TENSOR_ARRAY_TYPE: i32 = 13;

fn block_attribute(index: i32) -> op_desc::Attr {
    op_desc::Attr { block_idx: Some(index), ..empty_attribute("sub_block") }
}

fn bool_shape() -> op_desc::Attr {
    op_desc::Attr { b: Some(true), ..empty_attribute("is_scalar_condition") }
}

fn unary_op(name: &str, from: &str, to: &str) -> OpDesc {
    build_op(name, &[("X", &[from])], &[("Out", &[to])], Vec::new())
}

/// A program of several blocks; the first computes `y` from `x`.
fn program_with_blocks(variables: Vec<VarDesc>, blocks: Vec<Vec<OpDesc>>) -> ProgramDesc {
    let mut blocks = blocks.into_iter();
    let mut program = build_program(variables, blocks.next().unwrap_or_default());
    for ops in blocks {
        program.blocks.push(BlockDesc { ops, ..BlockDesc::default() });
    }
    program
}

fn array_variable(name: &str) -> VarDesc {
    let kind = VarType { r#type: Some(TENSOR_ARRAY_TYPE), dense_tensor: None, tensor_array: None };
    VarDesc { name: Some(name.into()), r#type: Some(kind), persistable: None }
}

/// A loop that doubles `x` as long as `less` holds, which its body recomputes.
fn doubling_loop(body: Vec<OpDesc>) -> ProgramDesc {
    let more = build_op("less_than", &[("X", &["x"]), ("Y", &["x"])], &[("Out", &["less"])], Vec::new());
    let repeat = build_op(
        "while",
        &[("Condition", &["less"]), ("X", &["x"])],
        &[("Out", &["y", "less"])],
        vec![block_attribute(1)],
    );
    let ops = vec![more, unary_op("assign", "x", "y"), repeat];
    program_with_blocks(
        vec![build_variable("x", F32_TYPE, &[]), build_variable("less", BOOL_TYPE, &[])],
        vec![ops, body],
    )
}

fn less_than_op() -> OpDesc {
    build_op("less_than", &[("X", &["y"]), ("Y", &["x"])], &[("Out", &["less"])], Vec::new())
}

fn inner_ops(graph: &Graph, op: &str) -> Vec<String> {
    let node = graph.nodes.iter().find(|node| node.is_op(op)).expect("a node with graphs");
    node.subgraphs.iter().map(|subgraph| subgraph.graph.to_string()).collect()
}

#[test]
fn a_loop_carries_what_its_block_makes_anew_and_captures_what_it_only_reads() {
    let double = build_op("sum", &[("X", &["y", "y"])], &[("Out", &["y"])], Vec::new());
    let graph = import_graph(&doubling_loop(vec![double, less_than_op()]));
    let node = graph.nodes.iter().find(|node| node.is_op("Loop")).expect("a loop");
    assert_eq!((node.inputs.len(), node.outputs.len()), (3, 1));
    assert_eq!(node.subgraphs[0].captures, [graph.inputs[0]]);
    assert_contains(&inner_ops(&graph, "Loop")[0], &["y = Sum(y, y)", "less = Less(y, x)"]);
}

#[test]
fn what_is_undefined_before_a_loop_gets_the_dtype_that_its_block_assigns() {
    let initial = |dtype: i32| {
        let elements = op_desc::Attr { float64s: vec![1.0], ..empty_attribute("values") };
        let attributes = vec![int_attribute("dtype", dtype), ints_attribute("shape", &[1]), elements];
        build_op("assign_value", &[], &[("Out", &["y"])], attributes)
    };
    let casts = |dtype: i32| {
        let mut program = doubling_loop(vec![unary_op("assign", "x", "y"), less_than_op()]);
        // Only the value before the loop differs.
        program.blocks[0].ops[2] = initial(dtype);
        import_graph(&program).nodes.iter().filter(|node| node.is_op("Cast")).count()
    };
    assert_eq!(casts(F64_TYPE), 1);
    assert_eq!(casts(F32_TYPE), 0);
}

#[test]
fn a_branch_that_makes_nothing_gives_what_was_there() {
    let graph = |is_there: bool| {
        let holds =
            build_op("less_than", &[("X", &["x"]), ("Y", &["x"])], &[("Out", &["holds"])], Vec::new());
        let branch = build_op(
            "conditional_block",
            &[("Cond", &["holds"]), ("Input", &["x"])],
            &[("Out", &["y"])],
            vec![block_attribute(1), bool_shape()],
        );
        let before = if is_there { vec![unary_op("assign", "x", "y")] } else { Vec::new() };
        let ops = [vec![holds], before, vec![branch]].concat();
        let variables = vec![
            build_variable("x", F32_TYPE, &[]),
            build_variable("holds", BOOL_TYPE, &[]),
            build_variable("y", F32_TYPE, &[-1, 2]),
        ];
        import_graph(&program_with_blocks(variables, vec![ops, vec![unary_op("relu", "x", "y")]]))
    };
    assert_eq!(inner_ops(&graph(true), "If")[1], "input x: f32[]\noutput x\n");
    assert_eq!(inner_ops(&graph(false), "If")[1], "output []\n");
}

#[test]
fn a_list_becomes_longer_by_its_length() {
    let length = build_op("lod_array_length", &[("X", &["list"])], &[("Out", &["end"])], Vec::new());
    let write =
        build_op("write_to_array", &[("X", &["x"]), ("I", &["end"])], &[("Out", &["list"])], Vec::new());
    let join = build_op("tensor_array_to_tensor", &[("X", &["list"])], &[("Out", &["y"])], Vec::new());
    let variables =
        vec![build_variable("x", F32_TYPE, &[2]), array_variable("list"), build_variable("end", 3, &[])];
    let graph = import_graph(&build_program(variables, vec![length, write, join]));
    let names: Vec<&str> = graph.nodes.iter().map(|node| &*node.op).collect();
    assert_eq!(names, ["SequenceEmpty", "SequenceLength", "SequenceInsert", "ConcatFromSequence"]);
}

#[test]
fn blocks_that_are_not_there_or_are_there_twice_are_refused() {
    let mut gone = doubling_loop(vec![less_than_op()]);
    gone.blocks.truncate(1);
    assert_contains(&import_refusal(&gone), &["the `while` that makes `y`", "a block of the program"]);
    let mut twice = doubling_loop(vec![less_than_op()]);
    let again = twice.blocks[0].ops[3].clone();
    twice.blocks[0].ops.insert(4, again);
    assert_contains(&import_refusal(&twice), &["a block that is the body of one op, found block 1 again"]);
    let within = build_op("while", &[("Condition", &["less"])], &[("Out", &["y"])], vec![block_attribute(1)]);
    assert_contains(&import_refusal(&doubling_loop(vec![within, less_than_op()])), &["block 1 again"]);
    let fed = build_op("feed", &[("X", &["feed"])], &[("Out", &["z"])], Vec::new());
    assert_contains(
        &import_refusal(&doubling_loop(vec![fed, less_than_op()])),
        &["a program that is fed, found a block that is"],
    );
}

#[test]
fn blocks_that_lie_too_deep_in_each_other_are_refused() {
    let deep = |count: i32| {
        let holds = build_op("less_than", &[("X", &["x"]), ("Y", &["x"])], &[("Out", &["y"])], Vec::new());
        let next = |index| {
            let attributes = vec![block_attribute(index), bool_shape()];
            build_op("conditional_block", &[("Cond", &["y"])], &[("Out", &["y"])], attributes)
        };
        let blocks = (1..=count).map(|index| vec![holds.clone(), next(index)]);
        let blocks = blocks.chain([vec![holds.clone()]]).collect();
        program_with_blocks(
            vec![build_variable("x", F32_TYPE, &[]), build_variable("y", BOOL_TYPE, &[])],
            blocks,
        )
    };
    import_graph(&deep(30));
    assert_contains(
        &import_refusal(&deep(40)),
        &["blocks that are at most 32 deep in each other, found more"],
    );
}

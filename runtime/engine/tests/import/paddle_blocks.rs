//! Programs of Paddle with blocks: loops, branches and lists of tensors, whole and broken.

use oarlock_engine::graph::Graph;
use oarlock_engine::import::paddle::messages::*;

use crate::build::says;
use crate::paddle::*;

const BOOL: i32 = 0;
const TENSOR_ARRAY: i32 = 13;

fn block(index: i32) -> op_desc::Attr {
    op_desc::Attr { block_idx: Some(index), ..named("sub_block") }
}

fn one_truth() -> op_desc::Attr {
    op_desc::Attr { b: Some(true), ..named("is_scalar_condition") }
}

fn unary(name: &str, from: &str, to: &str) -> OpDesc {
    op(name, &[("X", &[from])], &[("Out", &[to])], Vec::new())
}

/// A program of several blocks, of which the first makes `y` of `x`.
fn with_blocks(variables: Vec<VarDesc>, blocks: Vec<Vec<OpDesc>>) -> ProgramDesc {
    let mut blocks = blocks.into_iter();
    let mut program = program(variables, blocks.next().unwrap_or_default());
    for ops in blocks {
        program.blocks.push(BlockDesc { ops, ..BlockDesc::default() });
    }
    program
}

fn array(name: &str) -> VarDesc {
    let kind = VarType { r#type: Some(TENSOR_ARRAY), dense_tensor: None, tensor_array: None };
    VarDesc { name: Some(name.into()), r#type: Some(kind), persistable: None }
}

/// A loop that doubles `x` as long as `less` holds, which its body makes anew.
fn doubling(body: Vec<OpDesc>) -> ProgramDesc {
    let more = op("less_than", &[("X", &["x"]), ("Y", &["x"])], &[("Out", &["less"])], Vec::new());
    let repeat =
        op("while", &[("Condition", &["less"]), ("X", &["x"])], &[("Out", &["y", "less"])], vec![block(1)]);
    let ops = vec![more, unary("assign", "x", "y"), repeat];
    with_blocks(vec![variable("x", F32, &[]), variable("less", BOOL, &[])], vec![ops, body])
}

fn less() -> OpDesc {
    op("less_than", &[("X", &["y"]), ("Y", &["x"])], &[("Out", &["less"])], Vec::new())
}

fn inner(graph: &Graph, op: &str) -> Vec<String> {
    let node = graph.nodes.iter().find(|node| node.is(op)).expect("a node with graphs");
    node.subgraphs.iter().map(|subgraph| subgraph.graph.to_string()).collect()
}

#[test]
fn a_loop_carries_what_its_block_makes_anew_and_captures_what_it_only_reads() {
    let double = op("sum", &[("X", &["y", "y"])], &[("Out", &["y"])], Vec::new());
    let graph = graph_of(&doubling(vec![double, less()]));
    let node = graph.nodes.iter().find(|node| node.is("Loop")).expect("a loop");
    assert_eq!((node.inputs.len(), node.outputs.len()), (3, 1));
    assert_eq!(node.subgraphs[0].captures, [graph.inputs[0]]);
    says(&inner(&graph, "Loop")[0], &["y = Sum(y, y)", "less = Less(y, x)"]);
}

#[test]
fn a_branch_that_makes_nothing_gives_what_was_there() {
    let graph = |is_there: bool| {
        let holds = op("less_than", &[("X", &["x"]), ("Y", &["x"])], &[("Out", &["holds"])], Vec::new());
        let branch = op(
            "conditional_block",
            &[("Cond", &["holds"]), ("Input", &["x"])],
            &[("Out", &["y"])],
            vec![block(1), one_truth()],
        );
        let before = if is_there { vec![unary("assign", "x", "y")] } else { Vec::new() };
        let ops = [vec![holds], before, vec![branch]].concat();
        let variables =
            vec![variable("x", F32, &[]), variable("holds", BOOL, &[]), variable("y", F32, &[-1, 2])];
        graph_of(&with_blocks(variables, vec![ops, vec![unary("relu", "x", "y")]]))
    };
    assert_eq!(inner(&graph(true), "If")[1], "input x: f32[]\noutput x\n");
    assert_eq!(inner(&graph(false), "If")[1], "output []\n");
}

#[test]
fn a_list_becomes_longer_by_its_length() {
    let length = op("lod_array_length", &[("X", &["list"])], &[("Out", &["end"])], Vec::new());
    let write = op("write_to_array", &[("X", &["x"]), ("I", &["end"])], &[("Out", &["list"])], Vec::new());
    let join = op("tensor_array_to_tensor", &[("X", &["list"])], &[("Out", &["y"])], Vec::new());
    let variables = vec![variable("x", F32, &[2]), array("list"), variable("end", 3, &[])];
    let graph = graph_of(&program(variables, vec![length, write, join]));
    let names: Vec<&str> = graph.nodes.iter().map(|node| &*node.op).collect();
    assert_eq!(names, ["SequenceEmpty", "SequenceLength", "SequenceInsert", "ConcatFromSequence"]);
}

#[test]
fn blocks_that_are_not_there_or_are_there_twice_are_refused() {
    let mut gone = doubling(vec![less()]);
    gone.blocks.truncate(1);
    says(&refusal(&gone), &["the `while` that makes `y`", "a block of the program"]);
    let mut twice = doubling(vec![less()]);
    let again = twice.blocks[0].ops[3].clone();
    twice.blocks[0].ops.insert(4, again);
    says(&refusal(&twice), &["a block that is the body of one op, found block 1 again"]);
    let within = op("while", &[("Condition", &["less"])], &[("Out", &["y"])], vec![block(1)]);
    says(&refusal(&doubling(vec![within, less()])), &["block 1 again"]);
    let fed = op("feed", &[("X", &["feed"])], &[("Out", &["z"])], Vec::new());
    says(&refusal(&doubling(vec![fed, less()])), &["a program that is fed, found a block that is"]);
}

#[test]
fn blocks_that_lie_too_deep_in_each_other_are_refused() {
    let deep = |count: i32| {
        let holds = op("less_than", &[("X", &["x"]), ("Y", &["x"])], &[("Out", &["y"])], Vec::new());
        let next = |index| {
            let attributes = vec![block(index), one_truth()];
            op("conditional_block", &[("Cond", &["y"])], &[("Out", &["y"])], attributes)
        };
        let blocks = (1..=count).map(|index| vec![holds.clone(), next(index)]);
        let blocks = blocks.chain([vec![holds.clone()]]).collect();
        with_blocks(vec![variable("x", F32, &[]), variable("y", BOOL, &[])], blocks)
    };
    graph_of(&deep(30));
    says(&refusal(&deep(40)), &["blocks that are at most 32 deep in each other, found more"]);
}

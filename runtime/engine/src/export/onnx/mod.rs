//! Exports graphs as ONNX files.
//!
//! The graph is written as the passes left it, so that a reader need not repeat their work. The file is equivalent to the
//! graph, but not always portable: Oarlock's own ops are of the domain `oarlock` unless `decompose_own_ops` replaced them, and a
//! node of another opset than the model's is wrapped in a function.

mod attribute;
mod compact_constants;
mod graph;
mod opsets;
mod types;
mod weights;

use std::collections::BTreeMap;

use bytes::Bytes;
use oarlock_core::{Error, Result};
use prost::Message as _;

use self::graph::OnnxExporter;
use self::opsets::ExportOpsets;
use self::weights::WeightWriter;
use crate::graph::{Graph, Node};
use crate::import::onnx::messages::{ModelProto, StringStringEntryProto};
use crate::model_operand::ModelOperand;

/// Version of the file format: the newest that most programs read. It has everything that export uses.
const IR_VERSION: i64 = 10;

/// Weights beyond this size go to a file of their own, because a protobuf message is limited to 2 GiB.
const MAX_INLINE_BYTES: u64 = 1 << 30;

/// Contents of a file besides the graph.
#[derive(Clone, Debug, Default)]
pub struct OnnxExportOptions<'a> {
    /// Key-value metadata of the model.
    pub metadata: BTreeMap<String, String>,
    /// Opsets of the imported model, by domain; the file keeps them where they suit its nodes.
    pub opsets: BTreeMap<String, u32>,
    /// Name of the file beside the model for weights that are too large to be in it.
    pub weights_file: &'a str,
}

/// An exported model as the bytes of its files.
pub struct OnnxModelFiles {
    /// The model file.
    pub model: Vec<u8>,
    /// Parts of the weights file, each with its offset; empty if there is no such file.
    pub weights: Vec<(u64, Bytes)>,
    /// Number of nodes, without those of branches and bodies.
    pub nodes: usize,
    /// Number of nodes that are wrapped for another opset, or are of an op that only Oarlock has.
    pub own_nodes: usize,
}

/// Exports a graph. `folded` are the nodes that became its constants.
pub(crate) fn export_onnx(
    graph: &Graph,
    folded: &[Node],
    inputs: &[ModelOperand],
    outputs: &[ModelOperand],
    about: &OnnxExportOptions<'_>,
) -> Result<OnnxModelFiles> {
    let is_inside = graph.weight_bytes() <= MAX_INLINE_BYTES;
    let weights =
        if is_inside { WeightWriter::inline() } else { WeightWriter::to_external_file(about.weights_file) };
    encode_model(graph, folded, inputs, outputs, about, weights)
}

fn encode_model(
    graph: &Graph,
    folded: &[Node],
    inputs: &[ModelOperand],
    outputs: &[ModelOperand],
    about: &OnnxExportOptions<'_>,
    weights: WeightWriter,
) -> Result<OnnxModelFiles> {
    let mut exporter = OnnxExporter::new(ExportOpsets::choose_opsets(graph, &about.opsets)?, weights);
    let proto = exporter.export_model(graph, folded, inputs, outputs)?;
    let entry = |(key, value): (&String, &String)| StringStringEntryProto {
        key: Some(key.clone()),
        value: Some(value.clone()),
    };
    let nodes = proto.node.len();
    let OnnxExporter { opsets, weights, own_nodes, .. } = exporter;
    let (opset_import, functions) = opsets.finish();
    let model = ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import,
        producer_name: Some("oarlock".to_owned()),
        producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        graph: Some(proto),
        metadata_props: about.metadata.iter().map(entry).collect(),
        functions,
        ..ModelProto::default()
    };
    let size = model.encoded_len();
    if i32::try_from(size).is_err() {
        return Err(Error::unimplemented(format!("expected a model of less than 2 GiB, found {size} bytes")));
    }
    Ok(OnnxModelFiles { model: model.encode_to_vec(), weights: weights.finish(), nodes, own_nodes })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use oarlock_core::{Constant, Dtype};

    use super::*;
    use crate::graph::{DeclaredDimension, GraphValue, Subgraph, ValueId, ValueType, Weight};
    use crate::import;

    fn add_input(graph: &mut Graph, name: &str) -> ValueId {
        let dims = Some(vec![DeclaredDimension::Symbol("n".into())]);
        let declared = ValueType::Tensor { dtype: Some(Dtype::F32), dims };
        let id = graph.add_value(GraphValue { declared, ..GraphValue::with_name(name) });
        graph.inputs.push(id);
        id
    }

    fn add_weight(graph: &mut Graph, name: &str, length: i64) -> ValueId {
        let numbers = Constant::from_ints(&(0..length).collect::<Vec<_>>());
        graph.add_value(GraphValue::with_weight(name, Weight::Numbers(numbers)))
    }

    fn add_op(graph: &mut Graph, op: &str, opset: u32, inputs: &[ValueId], name: &str) -> ValueId {
        let made = graph.add_value(GraphValue::with_name(name));
        graph.nodes.push(Node::new("", op, opset, inputs.iter().copied().map(Some), [Some(made)]));
        made
    }

    /// Exports a graph with named outputs and imports it again.
    fn export_and_reimport(
        graph: &Graph,
        outputs: &[&str],
        weights: WeightWriter,
    ) -> (OnnxModelFiles, Graph) {
        export_and_reimport_folded(graph, &[], outputs, weights)
    }

    /// The same for a graph with constants that were folded from nodes.
    fn export_and_reimport_folded(
        graph: &Graph,
        folded: &[Node],
        outputs: &[&str],
        weights: WeightWriter,
    ) -> (OnnxModelFiles, Graph) {
        let slots = |ids: &[ValueId]| -> Vec<ModelOperand> {
            let slot = |value: &GraphValue| ModelOperand {
                name: value.name.clone(),
                declared: value.declared.clone(),
            };
            ids.iter().map(|id| slot(graph.value(*id))).collect()
        };
        let mut made = slots(&graph.outputs);
        made.iter_mut().zip(outputs).for_each(|(slot, name)| slot.name = (*name).into());
        let files =
            encode_model(graph, folded, &slots(&graph.inputs), &made, &OnnxExportOptions::default(), weights)
                .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut beside = Vec::new();
        for (place, bytes) in &files.weights {
            beside.resize(usize::try_from(*place).unwrap(), 0);
            beside.extend_from_slice(bytes);
        }
        fs::write(directory.path().join("weights"), beside).unwrap();
        fs::write(directory.path().join("model.onnx"), &files.model).unwrap();
        let read = import::onnx::load_onnx(&directory.path().join("model.onnx")).unwrap().graph;
        let names: Vec<&str> = read.outputs.iter().map(|id| &*read.value(*id).name).collect();
        assert_eq!(names, outputs);
        (files, read)
    }

    fn graph_lines(graph: &Graph) -> Vec<String> {
        graph.to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn values_of_one_name_get_others_and_those_of_inputs_and_outputs_stay() {
        let mut graph = Graph::new("");
        let x = add_input(&mut graph, "y");
        let first = add_op(&mut graph, "Neg", 20, &[x], "y");
        let second = add_op(&mut graph, "Abs", 20, &[first], "y");
        let last = add_op(&mut graph, "Relu", 20, &[second], "");
        graph.outputs = vec![last];
        let (files, read) = export_and_reimport(&graph, &["z"], WeightWriter::inline());
        let expected = ["input y: f32[n]", "y_2 = Neg(y)", "y_3 = Abs(y_2)", "z = Relu(y_3)", "output z"];
        assert_eq!(graph_lines(&read), expected);
        assert_eq!((files.nodes, files.own_nodes), (3, 0));
    }

    #[test]
    fn repeated_outputs_and_passed_through_inputs_become_identities() {
        let mut graph = Graph::new("twice");
        let x = add_input(&mut graph, "x");
        let y = add_op(&mut graph, "Neg", 20, &[x], "y");
        graph.outputs = vec![y, y, x, x];
        let (_, read) = export_and_reimport(&graph, &["a", "b", "x", "c"], WeightWriter::inline());
        let expected = ["a = Neg(x)", "b = Identity(a)", "c = Identity(x)"];
        assert_eq!(graph_lines(&read)[1..4], expected);
    }

    #[test]
    fn an_output_with_the_name_of_an_input_that_it_is_not_is_refused() {
        let mut graph = Graph::new("again");
        let x = add_input(&mut graph, "x");
        graph.outputs = vec![add_op(&mut graph, "Neg", 20, &[x], "x")];
        let slot =
            |id: ValueId| ModelOperand { name: "x".into(), declared: graph.value(id).declared.clone() };
        let (inputs, outputs) = ([slot(x)], [slot(graph.outputs[0])]);
        let refused = encode_model(
            &graph,
            &[],
            &inputs,
            &outputs,
            &OnnxExportOptions::default(),
            WeightWriter::inline(),
        )
        .err();
        let message = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains("found an input and an output `x`"), "{message}");
    }

    #[test]
    fn a_constant_that_is_given_is_read_by_a_node() {
        let mut graph = Graph::new("constant");
        let given = add_weight(&mut graph, "y", 2);
        graph.outputs = vec![given, given];
        let (_, read) = export_and_reimport(&graph, &["y", "y"], WeightWriter::inline());
        assert_eq!(graph_lines(&read), ["y = Identity([0.0, 1.0])", "output y", "output y"]);
    }

    #[test]
    fn a_node_of_another_opset_keeps_it() {
        let mut graph = Graph::new("mixed");
        let x = add_input(&mut graph, "x");
        let first = add_op(&mut graph, "Softmax", 13, &[x], "first");
        let second = add_op(&mut graph, "Softmax", 13, &[first], "second");
        let third = add_op(&mut graph, "Softmax", 11, &[second], "third");
        graph.nodes[2].name = "the third".into();
        let fourth = add_op(&mut graph, "Softmax", 12, &[third], "fourth");
        let last = add_op(&mut graph, "Abs", 13, &[fourth], "last");
        graph.outputs = vec![last];
        let (files, read) = export_and_reimport(&graph, &["last"], WeightWriter::inline());
        let meant: Vec<(&str, u32)> = read.nodes.iter().map(|node| (&*node.op, node.opset)).collect();
        assert_eq!(&*read.nodes[2].name, "the third");
        let softmax = |opset| ("Softmax", opset);
        assert_eq!(meant, [softmax(13), softmax(13), softmax(11), softmax(12), ("Abs", 13)]);
        assert_eq!(files.own_nodes, 2);
    }

    #[test]
    fn the_opset_of_the_model_stays_where_no_other_suits_more_nodes() {
        let mut graph = Graph::new("older");
        let x = add_input(&mut graph, "x");
        let y = add_op(&mut graph, "Abs", 20, &[x], "y");
        graph.outputs = vec![y];
        let about =
            OnnxExportOptions { opsets: [("ai.onnx".to_owned(), 13)].into(), ..OnnxExportOptions::default() };
        let slot = |name: &str| ModelOperand { name: name.into(), declared: ValueType::Unknown };
        let written = |graph: &Graph| {
            let files =
                encode_model(graph, &[], &[slot("x")], &[slot("y")], &about, WeightWriter::inline()).unwrap();
            import::onnx::decode_onnx(files.model.into(), None).unwrap().opsets["ai.onnx"]
        };
        assert_eq!(written(&graph), 13);
        // `Reshape` changed between these opsets.
        let z = add_op(&mut graph, "Reshape", 20, &[y, y], "z");
        graph.outputs = vec![z];
        assert_eq!(written(&graph), 20);
    }

    #[test]
    fn a_body_reads_what_it_captures_by_its_name_and_has_names_of_its_own() {
        let mut graph = Graph::new("outer");
        let (x, condition) = (add_input(&mut graph, "x"), add_input(&mut graph, "condition"));
        let taken = add_op(&mut graph, "Neg", 20, &[x], "inner");
        let branch = |with_node: bool| {
            let mut branch = Graph::new("branch");
            let captured = add_input(&mut branch, "captured");
            let given =
                if with_node { add_op(&mut branch, "Abs", 20, &[captured], "inner") } else { captured };
            branch.outputs = vec![given];
            branch
        };
        let chosen = add_op(&mut graph, "If", 20, &[condition], "chosen");
        let node = graph.nodes.last_mut().unwrap();
        for (attribute, graph) in [("then_branch", branch(true)), ("else_branch", branch(false))] {
            node.subgraphs.push(Subgraph { attribute: attribute.into(), graph, captures: vec![taken] });
        }
        graph.outputs = vec![chosen];
        let (_, read) = export_and_reimport(&graph, &["chosen"], WeightWriter::inline());
        let lines = graph_lines(&read);
        let has = |line: &str| assert!(lines.iter().any(|found| found.trim() == line), "{line} in {lines:?}");
        has("inner_2 = Abs(inner)");
        has("captured = Identity(inner)");
        has("then_branch with [inner]");
    }

    #[test]
    fn large_weights_lie_in_a_file_beside_and_small_ones_do_not() {
        let mut graph = Graph::new("weights");
        let x = add_input(&mut graph, "x");
        let sums = [("large", 1000), ("small", 2), ("larger", 2000)].map(|(name, length)| {
            let weight = add_weight(&mut graph, name, length);
            add_op(&mut graph, "Gather", 20, &[weight, x], &format!("of {name}"))
        });
        graph.outputs = sums.to_vec();
        let names = ["of large", "of small", "of larger"];
        let (files, read) = export_and_reimport(&graph, &names, WeightWriter::to_external_file("weights"));
        let places: Vec<(u64, usize)> =
            files.weights.iter().map(|(place, bytes)| (*place, bytes.len())).collect();
        assert_eq!(places, [(0, 8000), (8192, 16000)]);
        let numbers = |graph: &Graph| -> Vec<Vec<u8>> {
            let weights = graph.nodes.iter().filter_map(|node| graph.value(node.input(0)?).known_numbers());
            weights.map(|numbers| numbers.bytes().unwrap().to_vec()).collect()
        };
        assert_eq!(numbers(&read), numbers(&graph));
    }

    #[test]
    fn constants_much_larger_than_their_source_are_exported_as_nodes() {
        let mut graph = Graph::new("repeated");
        let x = add_input(&mut graph, "x");
        let (few, often) = (add_weight(&mut graph, "few", 3), add_weight(&mut graph, "often", 1));
        let repeated = [("many", 1000), ("more", 4000), ("some", 100)];
        let [many, more, some] = repeated.map(|(name, length)| add_weight(&mut graph, name, length));
        let folded = [(few, many), (many, more), (few, some)]
            .map(|(from, to)| Node::new("", "Tile", 20, [Some(from), Some(often)], [Some(to)]));
        // The reader of the derived constant comes first.
        let read = [more, many, some].map(|from| add_op(&mut graph, "Gather", 20, &[from, x], "y"));
        graph.outputs = read.to_vec();
        let names = ["a", "b", "c"];
        let (files, read) = export_and_reimport_folded(&graph, &folded, &names, WeightWriter::inline());
        let ops: Vec<String> = graph_lines(&read).into_iter().filter(|line| line.contains("Tile")).collect();
        assert_eq!(ops.len(), 2, "{ops:?}");
        assert!(ops[0].starts_with("many = Tile(") && ops[1].starts_with("more = Tile(many, "), "{ops:?}");
        assert!((800..1600).contains(&files.model.len()), "{}", files.model.len());
        // Ops that other programs may lack are not written in place of constants.
        let own = folded.map(|node| Node { domain: "oarlock".into(), ..node });
        assert!(
            export_and_reimport_folded(&graph, &own, &names, WeightWriter::inline()).0.model.len() > 8 * 5100
        );
    }

    #[test]
    fn a_file_that_is_read_and_written_again_is_the_same() {
        let mut graph = Graph::new("");
        let x = add_input(&mut graph, "x");
        let weights = ["late", "early", "late"].map(|name| add_weight(&mut graph, name, 2));
        let early = add_op(&mut graph, "Gather", 20, &[weights[1], x], "h");
        let late = add_op(&mut graph, "Gather", 20, &[weights[0], early], "h");
        let last = add_op(&mut graph, "Gather", 20, &[weights[2], late], "");
        graph.outputs = vec![last, x, weights[1]];
        let names = ["y", "also x", "given"];
        let (files, read) = export_and_reimport(&graph, &names, WeightWriter::inline());
        let (again, _) = export_and_reimport(&read, &names, WeightWriter::inline());
        assert!(files.model == again.model);
    }

    #[test]
    fn what_branches_share_is_written_once_and_what_they_do_not_read_not_at_all() {
        let mut graph = Graph::new("outer");
        let (x, condition) = (add_input(&mut graph, "x"), add_input(&mut graph, "condition"));
        let (shared, unread) = (add_weight(&mut graph, "w", 1000), add_weight(&mut graph, "unread", 1000));
        let branch = || {
            let mut branch = Graph::new("branch");
            let own = branch.add_value(graph.value(shared).clone());
            let captured = ["captured", "unread"].map(|name| add_input(&mut branch, name));
            branch.outputs = vec![add_op(&mut branch, "Gather", 20, &[own, captured[0]], "made")];
            branch
        };
        let branches = ["then_branch", "else_branch"].map(|attribute| (attribute, branch()));
        let chosen = add_op(&mut graph, "If", 20, &[condition], "chosen");
        let node = graph.nodes.last_mut().unwrap();
        for (attribute, graph) in branches {
            let captures = vec![x, unread];
            node.subgraphs.push(Subgraph { attribute: attribute.into(), graph, captures });
        }
        graph.outputs = vec![chosen];
        let (files, read) = export_and_reimport(&graph, &["chosen"], WeightWriter::inline());
        assert!((8000..9000).contains(&files.model.len()), "{}", files.model.len());
        let (second, _) = export_and_reimport(&read, &["chosen"], WeightWriter::inline());
        assert!(files.model == second.model);
    }
}

//! Well-formed graphs that make no sense: ops on whatever values exist, sizes taken from data, bodies that do not fit their
//! loops, false types.

use oarlock_core::{Attribute, Constant, Dtype, Tensor, shape};
use oarlock_engine::graph::{
    DeclaredDimension, Graph, GraphValue, Node, Subgraph, ValueId, ValueType, Weight,
};
use oarlock_engine::{Model, RuntimeValue};

use crate::door::{CallCase, ChoiceSource};

/// Ops with a letter for each operand and output: `f` for floats, `i` for integers, `b` for booleans, `s` for strings and `q`
/// for sequences.
const OP_SIGNATURES: [(&str, &str, &str); 44] = [
    ("Relu", "f", "f"),
    ("Sigmoid", "f", "f"),
    ("Identity", "f", "f"),
    ("Shape", "f", "i"),
    ("Size", "f", "i"),
    ("NonZero", "f", "i"),
    ("Softmax", "f", "f"),
    ("Transpose", "f", "f"),
    ("Flatten", "f", "f"),
    ("ReduceSum", "fi", "f"),
    ("ReduceMax", "ii", "i"),
    ("Unique", "f", "fi"),
    ("Add", "ff", "f"),
    ("Mul", "ii", "i"),
    ("Div", "ii", "i"),
    ("MatMul", "ff", "f"),
    ("Conv", "ff", "f"),
    ("Equal", "ff", "b"),
    ("Less", "ii", "b"),
    ("Not", "b", "b"),
    ("Where", "bff", "f"),
    ("Compress", "fb", "f"),
    ("ConstantOfShape", "i", "f"),
    ("Expand", "fi", "f"),
    ("Reshape", "fi", "f"),
    ("Tile", "fi", "f"),
    ("Gather", "fi", "f"),
    ("Unsqueeze", "fi", "f"),
    ("Squeeze", "fi", "f"),
    ("Pad", "fi", "f"),
    ("TopK", "fi", "fi"),
    ("Range", "iii", "i"),
    ("Slice", "fiii", "f"),
    ("OneHot", "iif", "f"),
    ("Concat", "ff", "f"),
    ("StringConcat", "ss", "s"),
    ("SequenceConstruct", "ff", "q"),
    ("SequenceEmpty", "", "q"),
    ("SequenceAt", "qi", "f"),
    ("SequenceInsert", "qf", "q"),
    ("SequenceErase", "qi", "q"),
    ("SequenceLength", "q", "i"),
    ("SplitToSequence", "f", "q"),
    ("ConcatFromSequence", "q", "f"),
];

/// Nesting limit of graphs.
const MAX_DEPTH: usize = 4;
const GRAPH_OPSET: u32 = 21;

pub(crate) fn random_model(source: &mut ChoiceSource<'_>) -> Model {
    let count = 1 + source.choose_below(3);
    let mut growing = HostileGraphBuilder::new(source);
    for index in 0..count {
        let declared = growing.random_value_type();
        growing.add_input(&format!("x{index}"), declared);
    }
    growing.grow_graph(MAX_DEPTH);
    let mut graph = growing.finish_graph(None);
    match source.choose_below(24) {
        0 => graph.nodes.reverse(),
        1 => graph.outputs.extend(graph.inputs.clone()),
        2 => graph.nodes.extend(graph.nodes.last().cloned()),
        3 => graph.inputs.extend(graph.inputs.first().copied()),
        _ => {}
    }
    Model {
        graph,
        format: "made up".to_owned(),
        producer: String::new(),
        opsets: Default::default(),
        metadata: Default::default(),
        labels: Default::default(),
        maps: Default::default(),
        weight_files: Default::default(),
    }
}

/// Feeds for the inputs of a model, most of which fit.
pub(crate) fn make_feed(
    device: &oarlock_core::Device,
    declared: &ValueType,
    source: &mut ChoiceSource<'_>,
) -> RuntimeValue {
    let (mut dtype, mut dims) = (Dtype::F32, vec![2, 3]);
    if let ValueType::Tensor { dtype: declared, dims: known } = declared {
        dtype = declared.unwrap_or(dtype);
        // A fuzzer's model may ask for very many elements; do not spend the fuzzer's time on them.
        let size = |(axis, dim): (usize, &DeclaredDimension)| match dim {
            DeclaredDimension::Known(size) => (*size).clamp(0, if axis < 5 { 9 } else { 1 }),
            _ => 2,
        };
        dims = known.iter().flatten().enumerate().map(size).collect();
    }
    match source.choose_below(32) {
        0 => return RuntimeValue::Nothing,
        1 => return RuntimeValue::Sequence(vec![RuntimeValue::Nothing; source.choose_below(3)]),
        2 => dtype = source.choose_from(Dtype::ALL),
        3 => dims.push(source.choose_size()),
        4 => dims = vec![source.choose_size(); source.choose_below(4)],
        _ => {}
    }
    let constant = random_weight(source, dtype, &dims);
    let tensor = match &constant {
        Weight::Numbers(numbers) => {
            numbers.bytes().and_then(|bytes| Tensor::from_bytes(device, dtype, &dims, &bytes))
        }
        Weight::Texts { texts, .. } => Tensor::from_strings(device, &dims, texts.to_vec()),
    };
    tensor.map_or(RuntimeValue::Nothing, RuntimeValue::Tensor)
}

/// Weights with elements that are rarely ordinary numbers.
fn random_weight(source: &mut ChoiceSource<'_>, dtype: Dtype, dims: &[i64]) -> Weight {
    let count = dims.iter().product::<i64>() as usize;
    if dtype == Dtype::String {
        return Weight::Texts { dims: dims.to_vec(), texts: vec!["text".to_owned(); count].into() };
    }
    // All elements beyond the first few are equal, since choices are limited.
    let (ints, floats) =
        ([source.choose_int(), source.choose_int()], [source.choose_float(), source.choose_float()]);
    let element = |at: usize| match dtype {
        Dtype::F32 => (floats[at] as f32).to_ne_bytes().to_vec(),
        Dtype::F64 => floats[at].to_ne_bytes().to_vec(),
        Dtype::Bool => vec![u8::from(ints[at] % 2 != 0)],
        other => ints[at].to_ne_bytes().repeat(2)[..other.byte_size().unwrap_or(1) as usize].to_vec(),
    };
    let bytes = [element(0), element(1)].concat().repeat(count.div_ceil(2));
    let size = shape::size_in_bytes(dtype, dims).expect("a small shape") as usize;
    let numbers = Constant::new(dtype, dims, bytes[..size].to_vec());
    Weight::Numbers(numbers.expect("as many bytes as the shape has"))
}

/// The letter of a dtype in [`OP_SIGNATURES`].
fn dtype_letter(dtype: Dtype) -> char {
    match dtype {
        Dtype::I64 => 'i',
        Dtype::Bool => 'b',
        Dtype::String => 's',
        _ => 'f',
    }
}

/// A growing graph.
struct HostileGraphBuilder<'s, 'b> {
    graph: Graph,
    /// Available values, each with the letter of its probable dtype.
    values: Vec<(ValueId, char)>,
    source: &'s mut ChoiceSource<'b>,
}

impl<'s, 'b> HostileGraphBuilder<'s, 'b> {
    fn new(source: &'s mut ChoiceSource<'b>) -> Self {
        Self { graph: Graph::new("hostile"), values: Vec::new(), source }
    }

    /// A declared type, which may be false.
    fn random_value_type(&mut self) -> ValueType {
        let dtype =
            self.source.choose_from(&[Dtype::F32, Dtype::F32, Dtype::I64, Dtype::Bool, Dtype::String]);
        match self.source.choose_below(12) {
            0 => ValueType::Unknown,
            1 => ValueType::Sequence(Box::new(ValueType::Unknown)),
            choice => {
                let dim = |source: &mut ChoiceSource<'_>| match source.choose_below(12) {
                    0 => DeclaredDimension::Unknown,
                    1 => DeclaredDimension::Symbol("n".into()),
                    2 => DeclaredDimension::Known(source.choose_int()),
                    _ => DeclaredDimension::Known(source.choose_size()),
                };
                let rank = self.source.choose_below(4);
                let dims = (0..rank).map(|_| dim(self.source)).collect();
                ValueType::Tensor { dtype: Some(dtype), dims: (choice != 2).then_some(dims) }
            }
        }
    }

    fn add_input(&mut self, name: &str, declared: ValueType) {
        let letter = match &declared {
            ValueType::Tensor { dtype: Some(dtype), .. } => dtype_letter(*dtype),
            ValueType::Sequence(_) => 'q',
            _ => 'f',
        };
        let id = self.graph.add_value(GraphValue { declared, ..GraphValue::with_name(name) });
        self.graph.inputs.push(id);
        self.values.push((id, letter));
    }

    fn add_weight(&mut self, weight: Weight) -> ValueId {
        let (name, letter) = (format!("constant {}", self.graph.value_count()), dtype_letter(weight.dtype()));
        let id = self.graph.add_value(GraphValue::with_weight(name, weight));
        self.values.push((id, letter));
        id
    }

    /// A condition that is usually true.
    fn add_condition(&mut self) -> ValueId {
        let truth = vec![u8::from(!self.source.once_in(4))];
        self.add_weight(Weight::Numbers(Constant::new(Dtype::Bool, &[], truth).expect("one element")))
    }

    /// Some operand: usually a recent value of the kind, or a constant of it.
    fn choose_operand(&mut self, letter: char) -> Option<ValueId> {
        if self.source.once_in(48) {
            return None;
        }
        let takes_any = self.source.once_in(16);
        let fitting: Vec<ValueId> = (self.values.iter().rev())
            .filter(|(_, other)| takes_any || *other == letter)
            .map(|(id, _)| *id)
            .take(4)
            .collect();
        if !fitting.is_empty() && !self.source.once_in(3) {
            return Some(fitting[self.source.choose_below(fitting.len())]);
        }
        let dtype = match letter {
            'i' => Dtype::I64,
            'b' => Dtype::Bool,
            's' => Dtype::String,
            _ => self.source.choose_from(&[Dtype::F32, Dtype::F32, Dtype::F32, Dtype::F64]),
        };
        let dims = self.source.choose_from::<&[i64]>(&[
            &[1],
            &[2],
            &[],
            &[2, 3],
            &[3],
            &[0],
            &[2, 2, 2],
            &[1, 2, 2, 2],
        ]);
        let weight = random_weight(self.source, dtype, dims);
        Some(self.add_weight(weight))
    }

    fn add_node(
        &mut self,
        domain: &str,
        op: &str,
        opset: u32,
        operands: Vec<Option<ValueId>>,
        letters: &str,
    ) -> &mut Node {
        let made: Vec<ValueId> = (0..letters.len())
            .map(|index| {
                let declared =
                    if self.source.once_in(4) { self.random_value_type() } else { ValueType::Unknown };
                let name = format!("{op} {} {index}", self.graph.nodes.len());
                self.graph.add_value(GraphValue { declared, ..GraphValue::with_name(name) })
            })
            .collect();
        self.values.extend(made.iter().zip(letters.chars()).map(|(id, letter)| (*id, letter)));
        self.graph.nodes.push(Node::new(domain, op, opset, operands, made.into_iter().map(Some)));
        self.graph.nodes.last_mut().expect("the node")
    }

    fn grow_graph(&mut self, depth: usize) {
        let most = self.source.choose_from(&[1, 2, 3, 8]);
        for _ in 0..1 + self.source.choose_below(most) {
            match self.source.choose_below(8) {
                0..=4 => {
                    let (op, takes, makes) = self.source.choose_from(&OP_SIGNATURES);
                    let operands = takes.chars().map(|letter| self.choose_operand(letter)).collect();
                    let axis = self.source.once_in(4).then(|| self.source.choose_int());
                    let node = self.add_node("", op, GRAPH_OPSET, operands, makes);
                    axis.into_iter().for_each(|axis| node.attributes.set("axis", Attribute::Int(axis)));
                    if op == "Concat" && node.attributes.get("axis").is_none() {
                        node.attributes.set("axis", Attribute::Int(0));
                    }
                }
                5 | 6 if depth > 0 => self.add_control_flow(depth - 1),
                _ => self.add_working_call(),
            }
        }
    }

    /// A call from the list of valid ones, or a mutated one, with some operands replaced.
    fn add_working_call(&mut self) {
        let case = if self.source.once_in(3) {
            CallCase::from_choices(self.source)
        } else {
            CallCase::working_cases()[self.source.choose_below(CallCase::working_cases().len())].clone()
        };
        let mut operands = Vec::new();
        for input in &case.inputs {
            operands.push(match input.as_ref().filter(|input| input.element_count() <= 1 << 12) {
                Some(input) if !self.source.once_in(4) => {
                    let weight = match input.dtype {
                        Dtype::String => random_weight(self.source, Dtype::String, &input.dims),
                        _ => Weight::Numbers(input.to_constant().expect("numbers")),
                    };
                    Some(self.add_weight(weight))
                }
                Some(input) => self.choose_operand(dtype_letter(input.dtype)),
                None => None,
            });
        }
        let letters = &"ffffffff"[..case.outputs.min(8)];
        let node = self.add_node(&case.domain, &case.op, case.opset, operands, letters);
        node.attributes = case.attributes;
    }

    /// A node with subgraphs, which may take and return anything.
    fn add_control_flow(&mut self, depth: usize) {
        let op = self.source.choose_from(&["If", "Loop", "Scan", "SequenceMap"]);
        let states = self.source.choose_below(3);
        let extra = self.source.choose_below(2);
        let (inputs, formal, outputs) = match op {
            "If" => (1, 0, 1 + extra),
            "Loop" => (2 + states, 2 + states, 1 + states + extra),
            "Scan" => (states + 1, states + 1, states + 1),
            _ => (1 + extra, 1 + extra, 1),
        };
        let names: &[&str] = if op == "If" { &["then_branch", "else_branch"] } else { &["body"] };
        let captures: Vec<ValueId> =
            (0..self.source.choose_below(3).min(self.values.len())).map(|at| self.values[at].0).collect();
        let mut graphs = Vec::new();
        for name in names {
            let mut body = HostileGraphBuilder::new(self.source);
            let is_wrong = body.source.once_in(12);
            for index in 0..formal + captures.len() + usize::from(is_wrong) {
                let declared =
                    if body.source.once_in(2) { body.random_value_type() } else { ValueType::Unknown };
                body.add_input(&format!("formal {index}"), declared);
            }
            let goes_on = body.add_condition();
            body.grow_graph(depth);
            let wanted = if op == "If" { outputs } else { outputs + usize::from(op == "Loop") - 1 + extra };
            let wrong = usize::from(body.source.once_in(12));
            let is_loop = op == "Loop" && !body.source.once_in(6);
            let mut graph = body.finish_graph(Some(wanted + wrong));
            if is_loop && let Some(first) = graph.outputs.first_mut() {
                *first = goes_on;
            }
            let captures = captures.clone();
            graphs.push(Subgraph { attribute: (*name).into(), graph, captures });
        }
        let scanned = Attribute::Int(1 + self.source.choose_below(2) as i64);
        let axes = Attribute::Ints(vec![self.source.choose_int(); 2]);
        let has_axes = self.source.once_in(6);
        let made = outputs.saturating_sub(usize::from(op == "Loop")).max(1);
        let condition = self.add_condition();
        let count = Constant::from_ints(&[self.source.choose_int()]).with_shape(&[]).expect("one element");
        let count = self.add_weight(Weight::Numbers(count));
        let usual: &[ValueId] = match op {
            "If" => &[condition],
            "Loop" => &[count, condition],
            _ => &[],
        };
        let operands = (0..inputs).map(|index| match usual.get(index) {
            Some(usual) if !self.source.once_in(8) => Some(*usual),
            _ => self.choose_operand('f'),
        });
        let operands = operands.collect();
        let letters = &(if op == "SequenceMap" { "qqqq" } else { "ffff" })[..made];
        let node = self.add_node("", op, GRAPH_OPSET, operands, letters);
        if op == "Scan" {
            node.attributes.set("num_scan_inputs", scanned);
            if has_axes {
                node.attributes.set("scan_input_axes", axes.clone());
                node.attributes.set("scan_output_axes", axes);
            }
        }
        node.subgraphs = graphs;
    }

    /// Finishes the graph with `wanted` outputs, or with some.
    fn finish_graph(self, wanted: Option<usize>) -> Graph {
        let Self { mut graph, values, source } = self;
        let count = wanted.unwrap_or_else(|| 1 + source.choose_below(3));
        graph.outputs = (0..count)
            .filter_map(|index| {
                let recent =
                    values.len().checked_sub(1 + (index + source.choose_below(3)) % values.len().max(1))?;
                Some(values[recent].0)
            })
            .collect();
        graph
    }
}

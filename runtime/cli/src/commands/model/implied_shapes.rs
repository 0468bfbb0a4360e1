//! Shapes of inputs that fit the rest of a model, for sizes that the model leaves open.
//!
//! Weights say how many channels or features an op takes. The remaining sizes are tried: shape inference says whether they fit the
//! constants of `Reshape`, the weights of products and the declared shapes of other values.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use oarlock_core::infer::{PartialDim, TensorFact};
use oarlock_core::{Attribute, Device, Dtype, Runtime};
use oarlock_engine::graph::{DeclaredDimension, Graph, Node, ValueId, ValueType};
use oarlock_engine::passes::{self, PassContext, PassRecording};
use oarlock_engine::{Model, PrecisionMode, RuntimeValue};

use crate::problem::CommandError;

/// Sizes that images of networks have, the usual ones first, and those of sequences.
const IMAGE_SIZES: [i64; 24] = [
    224, 256, 320, 640, 512, 416, 384, 299, 448, 480, 608, 227, 1024, 128, 112, 96, 64, 56, 48, 32, 28, 16,
    14, 8,
];
const SEQUENCE_SIZES: [i64; 12] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 1024];

/// Sizes of the file are tried up to this one, and up to this number.
const MAX_TRIED_SIZE: i64 = 4096;
const MAX_TRIALS: usize = 120;
const MAX_SEARCH: Duration = Duration::from_secs(2);

/// Ops whose output has the shape of their first input.
const SAME_SHAPE_OPS: [&str; 14] = [
    "Cast",
    "Clip",
    "DequantizeLinear",
    "Dropout",
    "Elu",
    "Identity",
    "LeakyRelu",
    "Neg",
    "Normalizer",
    "QuantizeLinear",
    "Relu",
    "Sigmoid",
    "Softmax",
    "Tanh",
];

/// What a suggestion starts from.
pub(super) struct ShapeQuestion<'a> {
    pub(super) model: &'a Model,
    /// Values of `--shape`.
    pub(super) shapes: &'a [(String, Vec<i64>)],
    pub(super) runtime: &'a Runtime,
    pub(super) device: &'a Device,
}

/// How well sizes fit, the best last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ShapeFit {
    /// No op contradicts them.
    Inferred,
    /// Neither does a declared shape, but the batch of an output is not that of the input.
    OtherBatch,
    Declared,
}

/// A dimension of an input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputDimension {
    Known(i64),
    /// Open; an index into the sizes to find.
    Open(usize),
}

/// Inputs with open dimensions, and the sizes found so far.
struct OpenShapes {
    inputs: Vec<Option<Vec<InputDimension>>>,
    found: Vec<Option<i64>>,
}

impl ShapeQuestion<'_> {
    /// Arguments that give each input with open sizes a shape that fits, such as `--shape x=1x3x224x224`; `None` if there is no such
    /// input, or no shape is found.
    pub(super) fn suggest_arguments(&self) -> Option<String> {
        let graph = &self.model.graph;
        let mut open = self.open_shapes();
        if !open.inputs.iter().any(is_open) {
            return None;
        }
        open.read_weights(graph);
        self.find_sizes(&mut open)?;
        let shown =
            graph.inputs.iter().zip(&open.inputs).filter(|(_, dims)| is_open(dims)).map(|(id, dims)| {
                let dims = dims.iter().flatten().map(|dim| open.size(*dim).unwrap_or(1).to_string());
                format!("--shape {}={}", graph.value(*id).name, dims.collect::<Vec<_>>().join("x"))
            });
        Some(format!("`{}`", shown.collect::<Vec<_>>().join(" ")))
    }

    fn requested(&self, name: &str) -> Option<&[i64]> {
        self.shapes.iter().find(|(other, _)| other == name).map(|(_, sizes)| sizes.as_slice())
    }

    fn open_shapes(&self) -> OpenShapes {
        let graph = &self.model.graph;
        let (mut symbols, mut found) = (HashMap::<&str, usize>::new(), Vec::new());
        let mut inputs = Vec::new();
        for id in &graph.inputs {
            let value = graph.value(*id);
            let mut new_size = || {
                found.push(None);
                InputDimension::Open(found.len() - 1)
            };
            inputs.push(match (&value.declared, self.requested(&value.name)) {
                (_, Some(sizes)) => Some(sizes.iter().copied().map(InputDimension::Known).collect()),
                (ValueType::Tensor { dims: Some(dims), .. }, None) => {
                    let mut shape: Vec<InputDimension> = Vec::new();
                    for dim in dims {
                        shape.push(match dim {
                            DeclaredDimension::Known(size) => InputDimension::Known(*size),
                            DeclaredDimension::Unknown => new_size(),
                            DeclaredDimension::Symbol(name) => match self.requested(name) {
                                Some([size]) => InputDimension::Known(*size),
                                _ => {
                                    let next = match symbols.get(&**name) {
                                        Some(index) => InputDimension::Open(*index),
                                        None => new_size(),
                                    };
                                    if let InputDimension::Open(index) = next {
                                        symbols.insert(name, index);
                                    }
                                    next
                                }
                            },
                        });
                    }
                    Some(shape)
                }
                (ValueType::Tensor { dims: None, .. } | ValueType::Unknown, None) => {
                    rank_by_readers(graph, *id).map(|rank| (0..rank).map(|_| new_size()).collect())
                }
                _ => None,
            });
        }
        OpenShapes { inputs, found }
    }

    /// Finds sizes for what the weights leave open: 1 for batches, and the same size for everything else.
    fn find_sizes(&self, open: &mut OpenShapes) -> Option<()> {
        for dims in open.inputs.iter().flatten() {
            if let Some(InputDimension::Open(index)) = dims.first()
                && dims.len() > 1
            {
                open.found[*index].get_or_insert(1);
            }
        }
        let is_image = open.inputs.iter().flatten().any(|dims| dims.len() >= 4);
        let rest: Vec<usize> = (0..open.found.len()).filter(|index| open.found[*index].is_none()).collect();
        let usual = if is_image { &IMAGE_SIZES[..] } else { &SEQUENCE_SIZES[..] };
        let mut sizes: Vec<i64> = if rest.is_empty() { vec![1] } else { usual.to_vec() };
        if !rest.is_empty() {
            let more = sizes_in_file(&self.model.graph);
            sizes.extend(more.into_iter().filter(|size| !usual.contains(size)));
        }
        let mut best: Option<(ShapeFit, i64)> = None;
        let began = Instant::now();
        for size in sizes.into_iter().take(MAX_TRIALS) {
            rest.iter().for_each(|index| open.found[*index] = Some(size));
            if let Some(fit) = self.try_sizes(open)
                && best.is_none_or(|(other, _)| fit > other)
            {
                best = Some((fit, size));
            }
            if best.is_some_and(|(fit, _)| fit == ShapeFit::Declared) || began.elapsed() > MAX_SEARCH {
                break;
            }
        }
        let (_, size) = best?;
        rest.iter().for_each(|index| open.found[*index] = Some(size));
        Some(())
    }

    /// Infers all shapes, and compares them with those that the file declares; `None` if the sizes contradict an op.
    fn try_sizes(&self, open: &OpenShapes) -> Option<ShapeFit> {
        let shape = |dims: &Vec<InputDimension>| -> Vec<i64> {
            dims.iter().map(|dim| open.size(*dim).unwrap_or(1)).collect()
        };
        let shapes: Vec<Option<Vec<i64>>> = open.inputs.iter().map(|dims| dims.as_ref().map(shape)).collect();
        let graph = self.infer_shapes(&shapes).ok()?;
        let made = graph.nodes.iter().flat_map(|node| node.written_values().collect::<Vec<_>>());
        if !made.into_iter().all(|id| has_declared_shape(&graph, id)) {
            return Some(ShapeFit::Inferred);
        }
        // A larger image that becomes several rows of a product fits, too, but is not what the model is for.
        let is_one = |id: &ValueId| {
            graph.value(*id).dims().is_none_or(|dims| dims.first().is_none_or(|rows| *rows == 1))
        };
        Some(if graph.outputs.iter().all(is_one) { ShapeFit::Declared } else { ShapeFit::OtherBatch })
    }

    fn infer_shapes(&self, shapes: &[Option<Vec<i64>>]) -> oarlock_core::Result<Graph> {
        let mut graph = self.model.graph.clone();
        for (id, sizes) in self.model.graph.inputs.iter().zip(shapes) {
            let Some(sizes) = sizes else { continue };
            let value = graph.value_mut(*id);
            let dtype = match &value.declared {
                ValueType::Tensor { dtype: Some(dtype), .. } => *dtype,
                _ => Dtype::F32,
            };
            value.fact = Some(TensorFact::from_shape(dtype, sizes));
        }
        let (runtime, device, host) = (self.runtime, self.device, self.runtime.device("cpu")?);
        let (precision, recording) = (PrecisionMode::F32, PassRecording::default());
        let context = PassContext { runtime, host: &host, device, is_plain: true, precision, recording };
        passes::infer_graph(&mut graph, &context).map(|()| graph)
    }

    /// The error about made-up inputs whose shapes do not fit the model, with shapes that do; `None` if there is nothing to suggest.
    pub(super) fn refuse_made_up(&self, data: &[RuntimeValue]) -> Option<CommandError> {
        let shape = |value: &RuntimeValue| match value {
            RuntimeValue::Tensor(tensor) => Some(tensor.dims().to_vec()),
            _ => None,
        };
        let shapes: Vec<Option<Vec<i64>>> = data.iter().map(shape).collect();
        let open = self.open_shapes();
        if !open.inputs.iter().any(is_open) {
            return None;
        }
        let error = self.infer_shapes(&shapes).err()?;
        let fitting = self.suggest_arguments()?;
        let hint = format!(
            "sizes that the model leaves open are 1 unless you give them; those that fit it are {fitting}"
        );
        Some(CommandError::from(error).with_hint(hint))
    }
}

fn is_open(dims: &Option<Vec<InputDimension>>) -> bool {
    dims.iter().flatten().any(|dim| matches!(dim, InputDimension::Open(_)))
}

/// False if inference contradicts a declared size, other than that of a batch.
fn has_declared_shape(graph: &Graph, id: ValueId) -> bool {
    let value = graph.value(id);
    let (ValueType::Tensor { dims: Some(declared), .. }, Some(TensorFact { dims: Some(dims), .. })) =
        (&value.declared, &value.fact)
    else {
        return true;
    };
    let differs = |(declared, found): (&DeclaredDimension, &PartialDim)| match (declared, found) {
        (DeclaredDimension::Known(size), PartialDim::Known(found)) => size != found,
        _ => false,
    };
    !declared.iter().zip(dims).skip(1).any(differs)
}

/// Sizes that the file mentions, and multiples of them by powers of 2, as strides divide sizes.
fn sizes_in_file(graph: &Graph) -> BTreeSet<i64> {
    let mut mentioned = BTreeSet::new();
    for (_, value) in graph.values() {
        if let ValueType::Tensor { dims: Some(dims), .. } = &value.declared {
            mentioned.extend(
                dims.iter().filter_map(|dim| {
                    if let DeclaredDimension::Known(size) = dim { Some(*size) } else { None }
                }),
            );
        }
        let shape = value.weight.as_ref().and_then(|weight| weight.as_numbers());
        // Short lists of integers are shapes.
        if let Some(shape) = shape.filter(|shape| shape.dtype() == Dtype::I64 && shape.size_in_bytes() <= 64)
        {
            mentioned.extend(shape.to_ints().iter().flat_map(|ints| ints.iter().copied()));
        }
        mentioned.extend(value.weight.as_ref().iter().flat_map(|weight| weight.dims().iter().copied()));
    }
    let multiples =
        mentioned.into_iter().flat_map(|size| (0..6).map(move |shift| size.saturating_mul(1 << shift)));
    multiples.filter(|size| (2..=MAX_TRIED_SIZE).contains(size)).collect()
}

/// The rank of an input, as the weights of an op that reads it say.
fn rank_by_readers(graph: &Graph, id: ValueId) -> Option<usize> {
    graph.nodes.iter().filter(|node| node.input(0) == Some(id)).find_map(|node| match &*node.op {
        "Conv" | "ConvTranspose" => Some(constant_dims(graph, node.input(1)?)?.len()),
        "MatMul" | "Gemm" => constant_dims(graph, node.input(1)?).map(|_| 2),
        "LSTM" | "GRU" | "RNN" => Some(3),
        "LinearClassifier"
        | "LinearRegressor"
        | "TreeEnsembleClassifier"
        | "TreeEnsembleRegressor"
        | "Scaler" => Some(2),
        _ => None,
    })
}

/// The shape of a constant, or of one that is only cast or dequantized.
fn constant_dims(graph: &Graph, id: ValueId) -> Option<Vec<i64>> {
    if let Some(weight) = &graph.value(id).weight {
        return Some(weight.dims().to_vec());
    }
    let maker = graph.nodes.iter().find(|node| node.written_values().any(|made| made == id))?;
    let from = maker.input(0).filter(|_| SAME_SHAPE_OPS.contains(&&*maker.op))?;
    graph.value(from).weight.as_ref().map(|weight| weight.dims().to_vec())
}

impl OpenShapes {
    fn size(&self, dim: InputDimension) -> Option<i64> {
        match dim {
            InputDimension::Known(size) => Some(size),
            InputDimension::Open(index) => self.found[index],
        }
    }

    /// Finds sizes by the weights of the ops that read the inputs, directly or after ops that keep dimensions.
    fn read_weights(&mut self, graph: &Graph) {
        let mut traced: HashMap<ValueId, Vec<InputDimension>> = HashMap::new();
        for (id, dims) in graph.inputs.iter().zip(&self.inputs) {
            traced.extend(dims.clone().map(|dims| (*id, dims)));
        }
        for node in &graph.nodes {
            let operand = |index: usize| node.input(index).and_then(|id| traced.get(&id)).cloned();
            let weight = |index: usize| node.input(index).and_then(|id| constant_dims(graph, id));
            let (first, made) = (operand(0), node.output(0));
            if let Some(dims) = first.as_ref().or(operand(1).as_ref()) {
                self.read_node(graph, node, dims, first.is_some());
            }
            let result = match (&*node.op, first) {
                (op, Some(dims)) if SAME_SHAPE_OPS.contains(&op) => Some(dims),
                ("Transpose", Some(dims)) => transposed(node, &dims),
                ("Add" | "Sub" | "Mul" | "Div", first) => {
                    let other = if first.is_some() { weight(1) } else { weight(0) };
                    first
                        .or_else(|| operand(1))
                        .filter(|dims| other.is_some_and(|other| other.len() <= dims.len()))
                }
                _ => None,
            };
            if let (Some(made), Some(dims)) = (made, result) {
                traced.insert(made, dims);
            }
        }
    }

    /// Reads the sizes that a node demands of an operand.
    fn read_node(&mut self, graph: &Graph, node: &Node, dims: &[InputDimension], is_first: bool) {
        let weight = |index: usize| node.input(index).and_then(|id| constant_dims(graph, id));
        let int = |name: &str, default: i64| node.attributes.get_int(name).ok().flatten().unwrap_or(default);
        let last = dims.len().wrapping_sub(1);
        let mut demand = |axis: usize, size: Option<&i64>| {
            if let (Some(InputDimension::Open(index)), Some(size)) = (dims.get(axis), size) {
                self.found[*index].get_or_insert(*size);
            }
        };
        match &*node.op {
            "Conv" => {
                let channels = weight(1).and_then(|dims| dims.get(1)?.checked_mul(int("group", 1)));
                demand(1, channels.as_ref());
            }
            "ConvTranspose" => demand(1, weight(1).and_then(|dims| dims.first().copied()).as_ref()),
            "BatchNormalization" | "InstanceNormalization" => {
                demand(1, weight(1).and_then(|dims| dims.first().copied()).as_ref());
            }
            "LayerNormalization" => demand(last, weight(1).and_then(|dims| dims.last().copied()).as_ref()),
            "LSTM" | "GRU" | "RNN" => demand(2, weight(1).and_then(|dims| dims.get(2).copied()).as_ref()),
            "MatMul" if is_first => {
                let size = weight(1).and_then(|dims| dims.len().checked_sub(2).map(|row| dims[row]));
                demand(last, size.as_ref());
            }
            "Gemm" if is_first => {
                let (own, other) = (usize::from(int("transA", 0) == 0), usize::from(int("transB", 0) != 0));
                demand(own, weight(1).and_then(|dims| dims.get(other).copied()).as_ref());
            }
            "Add" | "Sub" | "Mul" | "Div" => {
                let other = weight(usize::from(is_first)).unwrap_or_default();
                for (back, size) in other.iter().rev().enumerate().filter(|(_, size)| **size > 1) {
                    demand(last.wrapping_sub(back), Some(size));
                }
            }
            "TreeEnsembleClassifier" | "TreeEnsembleRegressor" => {
                let features =
                    node.attributes.get_ints("nodes_featureids").ok().flatten().unwrap_or_default();
                demand(last, features.iter().max().map(|highest| highest.saturating_add(1)).as_ref());
            }
            "LinearClassifier" | "LinearRegressor" => {
                let count = |name: &str| {
                    if let Some(Attribute::Floats(list)) = node.attributes.get(name) {
                        list.len() as i64
                    } else {
                        0
                    }
                };
                let features = count("coefficients").checked_div(count("intercepts"));
                demand(last, features.as_ref());
            }
            _ => {}
        }
    }
}

fn transposed(node: &Node, dims: &[InputDimension]) -> Option<Vec<InputDimension>> {
    let order = node.attributes.get_ints("perm").ok()??;
    order.iter().map(|axis| dims.get(usize::try_from(*axis).ok()?).copied()).collect()
}

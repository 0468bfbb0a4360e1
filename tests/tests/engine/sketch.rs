//! Builder for small graphs.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use oarlock_core::flags::Flags;
use oarlock_core::{Attribute, Constant, Dtype, Runtime, Tensor};
use oarlock_engine::graph::{
    DeclaredDimension, Graph, GraphValue, Node, Subgraph, ValueId, ValueType, Weight,
};
use oarlock_engine::{Model, RuntimeValue, Session, SessionOptions};
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, host_options};

/// A runtime shared by all tests.
pub(crate) static SHARED_RUNTIME: LazyLock<Arc<Runtime>> =
    LazyLock::new(|| Arc::new(start_runtime("mode random; seed 1; poison on; devices 1", &[])));

/// A runtime with these flags, whose simulated device follows a script.
pub(crate) fn start_runtime(script: &str, flags: &[(&str, &str)]) -> Runtime {
    let config = format!("[plugin.oarlock-sim]\nscript = '{script}'");
    let options = host_options("tests 1.0", &config, &[CPU_PLUGIN, SIM_PLUGIN]);
    let mut set = Flags::from_environment(|_| None).expect("the defaults of the flags");
    flags.iter().for_each(|(name, value)| set.set(name, value).expect("a flag"));
    Runtime::start(options, set).expect("a runtime")
}

/// A graph under construction.
pub(crate) struct GraphSketch {
    pub(crate) graph: Graph,
    opset: u32,
}

impl GraphSketch {
    pub(crate) fn new() -> Self {
        Self { graph: Graph::new("sketch"), opset: 20 }
    }

    /// Adds an input; a negative size is unknown.
    pub(crate) fn add_input(&mut self, name: &str, dtype: Dtype, dims: &[i64]) -> ValueId {
        let dim =
            |size: &i64| if *size < 0 { DeclaredDimension::Unknown } else { DeclaredDimension::Known(*size) };
        let declared = ValueType::Tensor { dtype: Some(dtype), dims: Some(dims.iter().map(dim).collect()) };
        let id = self.graph.add_value(GraphValue { declared, ..GraphValue::with_name(name) });
        self.graph.inputs.push(id);
        id
    }

    pub(crate) fn add_floats(&mut self, dims: &[i64], elements: &[f32]) -> ValueId {
        let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_ne_bytes()).collect();
        self.add_constant(Constant::new(Dtype::F32, dims, bytes).expect("as many elements as the shape has"))
    }

    pub(crate) fn add_scalar(&mut self, element: f32) -> ValueId {
        self.add_floats(&[], &[element])
    }

    /// Adds a constant with pseudo-random elements between -1 and 1.
    pub(crate) fn add_weights(&mut self, dims: &[i64], seed: u32) -> ValueId {
        let count = dims.iter().product::<i64>();
        self.add_floats(dims, &random_floats(usize::try_from(count).expect("a count"), seed))
    }

    pub(crate) fn add_ints(&mut self, elements: &[i64]) -> ValueId {
        self.add_constant(Constant::from_ints(elements))
    }

    pub(crate) fn add_constant(&mut self, constant: Constant) -> ValueId {
        let name = format!("constant {}", self.graph.value_count());
        self.graph.add_value(GraphValue::with_weight(name, Weight::Numbers(constant)))
    }

    /// Adds a node with one output.
    pub(crate) fn add_op(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        self.add_op_with(op, inputs, &[])
    }

    pub(crate) fn add_op_with(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: &[(&str, Attribute)],
    ) -> ValueId {
        self.add_op_with_outputs(op, inputs, attributes, 1)[0]
    }

    pub(crate) fn add_op_with_outputs(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: &[(&str, Attribute)],
        outputs: usize,
    ) -> Vec<ValueId> {
        let made: Vec<ValueId> = (0..outputs)
            .map(|index| {
                self.graph
                    .add_value(GraphValue::with_name(format!("{op} {} {index}", self.graph.nodes.len())))
            })
            .collect();
        let mut node =
            Node::new("", op, self.opset, inputs.iter().copied().map(Some), made.iter().copied().map(Some));
        attributes.iter().for_each(|(name, value)| node.attributes.set(*name, value.clone()));
        self.graph.nodes.push(node);
        made
    }

    /// Gives the last node a subgraph.
    pub(crate) fn set_subgraph(&mut self, attribute: &str, graph: Graph, captures: &[ValueId]) {
        let node = self.graph.nodes.last_mut().expect("a node");
        node.subgraphs.push(Subgraph { attribute: attribute.into(), graph, captures: captures.to_vec() });
    }

    pub(crate) fn with_outputs(mut self, outputs: &[ValueId]) -> Self {
        self.graph.outputs = outputs.to_vec();
        self
    }

    pub(crate) fn to_model(&self) -> Model {
        Model {
            graph: self.graph.clone(),
            format: "sketch".to_owned(),
            producer: String::new(),
            opsets: BTreeMap::new(),
            metadata: BTreeMap::new(),
            labels: Default::default(),
            maps: Default::default(),
            weight_files: Default::default(),
        }
    }

    /// A session on the simulated device of a runtime.
    pub(crate) fn simulated_session(&self, runtime: &Arc<Runtime>) -> Session {
        let devices = vec![runtime.device("sim").expect("the simulated device")];
        let options = SessionOptions { devices, ..SessionOptions::default() };
        Session::new(runtime.clone(), &self.to_model(), &options).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn start_session(&self, options: &SessionOptions) -> Session {
        Session::new(SHARED_RUNTIME.clone(), &self.to_model(), options)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`GraphSketch::check_fused`], but with the steps of elementwise ops that run as one.
    pub(crate) fn check_optimized(&self, inputs: &[RuntimeValue]) -> Vec<String> {
        self.check_plan(inputs, op_names)
    }

    /// Runs the graph with and without passes on the same inputs, checks that the outputs match, and returns the remaining ops.
    pub(crate) fn check_fused(&self, inputs: &[RuntimeValue]) -> Vec<String> {
        self.check_plan(inputs, |node| vec![qualified_op_name(node)])
    }

    fn check_plan(&self, inputs: &[RuntimeValue], names: impl Fn(&Node) -> Vec<String>) -> Vec<String> {
        let session = self.start_session(&SessionOptions::default());
        let found = run_session(&session, inputs);
        let plain = self.start_session(&SessionOptions { is_plain: true, ..SessionOptions::default() });
        let expected = run_session(&plain, inputs);
        assert_eq!(expected.len(), found.len());
        for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert_near(expected, found, &format!("output {index}"));
        }
        // A second run reuses the memory of the first.
        for (again, found) in run_session(&session, inputs).iter().zip(&found) {
            assert_eq!(datum_bytes(again), datum_bytes(found), "the second run differs from the first");
        }
        let plan = session.plan(inputs).unwrap_or_else(|error| panic!("{error}"));
        plan.graph().nodes.iter().flat_map(names).collect()
    }
}

/// The op of a node, or the steps of a fused one.
pub(crate) fn op_names(node: &Node) -> Vec<String> {
    match node.attributes.get_string("steps").ok().flatten() {
        Some(steps) => steps.split(',').map(str::to_owned).collect(),
        None => vec![qualified_op_name(node)],
    }
}

fn qualified_op_name(node: &Node) -> String {
    if node.domain.is_empty() { node.op.to_string() } else { format!("{}.{}", node.domain, node.op) }
}

pub(crate) fn run_session(session: &Session, inputs: &[RuntimeValue]) -> Vec<RuntimeValue> {
    session.run(inputs).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn datum_bytes(datum: &RuntimeValue) -> Vec<u8> {
    datum.as_tensor().and_then(Tensor::to_bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Pseudo-random elements between -1 and 1.
pub(crate) fn random_floats(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A random input.
pub(crate) fn random_datum(dims: &[i64], seed: u32) -> RuntimeValue {
    let count = usize::try_from(dims.iter().product::<i64>()).expect("a count");
    float_datum(dims, &random_floats(count, seed))
}

pub(crate) fn float_datum(dims: &[i64], elements: &[f32]) -> RuntimeValue {
    let cpu = SHARED_RUNTIME.device("cpu").expect("the CPU");
    Tensor::from_slice(&cpu, dims, elements).expect("a tensor").into()
}

pub(crate) fn int_datum(dims: &[i64], elements: &[i64]) -> RuntimeValue {
    let cpu = SHARED_RUNTIME.device("cpu").expect("the CPU");
    Tensor::from_slice(&cpu, dims, elements).expect("a tensor").into()
}

fn assert_near(expected: &RuntimeValue, found: &RuntimeValue, what: &str) {
    let (expected, found) = (expected.as_tensor().expect("a tensor"), found.as_tensor().expect("a tensor"));
    assert_eq!((expected.dtype(), expected.dims()), (found.dtype(), found.dims()), "{what}");
    if expected.dtype() != Dtype::F32 {
        assert_eq!(expected.to_bytes().ok(), found.to_bytes().ok(), "{what}");
        return;
    }
    let (expected, found) =
        (expected.to_vec::<f32>().expect("floats"), found.to_vec::<f32>().expect("floats"));
    for (at, (a, b)) in expected.iter().zip(&found).enumerate() {
        let is_near = (a - b).abs() <= 1e-4 + 1e-4 * a.abs() || a.is_nan() && b.is_nan() || a == b;
        assert!(is_near, "{what}, element {at}: expected {a}, found {b}");
    }
}

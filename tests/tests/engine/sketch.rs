//! Small models, put together in a few lines.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use oarlock_core::flags::Flags;
use oarlock_core::{Attribute, Constant, Dtype, Runtime, Tensor};
use oarlock_engine::graph::{Dimension, Graph, Node, Subgraph, Value, ValueId, ValueType, Weight};
use oarlock_engine::{Datum, Model, Session, SessionOptions};
use oarlock_tests::bare_host::{CPU, SIM, host_options};

/// One runtime for all tests.
pub(crate) static RUNTIME: LazyLock<Arc<Runtime>> =
    LazyLock::new(|| Arc::new(runtime("mode random; seed 1; poison on; devices 1", &[])));

/// A runtime with these flags, whose simulated device follows a script.
pub(crate) fn runtime(script: &str, flags: &[(&str, &str)]) -> Runtime {
    let config = format!("[plugin.oarlock-sim]\nscript = '{script}'");
    let options = host_options("tests 1.0", &config, &[CPU, SIM]);
    let mut set = Flags::from_environment(|_| None).expect("the defaults of the flags");
    flags.iter().for_each(|(name, value)| set.set(name, value).expect("a flag"));
    Runtime::start(options, set).expect("a runtime")
}

/// A graph that is being put together.
pub(crate) struct Sketch {
    pub(crate) graph: Graph,
    opset: u32,
}

impl Sketch {
    pub(crate) fn new() -> Self {
        Self { graph: Graph::new("sketch"), opset: 20 }
    }

    /// An input; a size below 0 is not known.
    pub(crate) fn input(&mut self, name: &str, dtype: Dtype, dims: &[i64]) -> ValueId {
        let dim = |size: &i64| if *size < 0 { Dimension::Unknown } else { Dimension::Known(*size) };
        let declared = ValueType::Tensor { dtype: Some(dtype), dims: Some(dims.iter().map(dim).collect()) };
        let id = self.graph.add(Value { declared, ..Value::named(name) });
        self.graph.inputs.push(id);
        id
    }

    pub(crate) fn floats(&mut self, dims: &[i64], elements: &[f32]) -> ValueId {
        let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_ne_bytes()).collect();
        self.constant(Constant::new(Dtype::F32, dims, bytes).expect("as many elements as the shape has"))
    }

    pub(crate) fn scalar(&mut self, element: f32) -> ValueId {
        self.floats(&[], &[element])
    }

    /// Elements between -1 and 1 that differ from seed to seed.
    pub(crate) fn weights(&mut self, dims: &[i64], seed: u32) -> ValueId {
        let count = dims.iter().product::<i64>();
        self.floats(dims, &noise(usize::try_from(count).expect("a count"), seed))
    }

    pub(crate) fn ints(&mut self, elements: &[i64]) -> ValueId {
        self.constant(Constant::of_ints(elements))
    }

    pub(crate) fn constant(&mut self, constant: Constant) -> ValueId {
        let name = format!("constant {}", self.graph.value_count());
        self.graph.add(Value::constant(name, Weight::Numbers(constant)))
    }

    /// A node with one output.
    pub(crate) fn op(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        self.op_with(op, inputs, &[])
    }

    pub(crate) fn op_with(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: &[(&str, Attribute)],
    ) -> ValueId {
        self.op_of(op, inputs, attributes, 1)[0]
    }

    pub(crate) fn op_of(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: &[(&str, Attribute)],
        outputs: usize,
    ) -> Vec<ValueId> {
        let made: Vec<ValueId> = (0..outputs)
            .map(|index| self.graph.add(Value::named(format!("{op} {} {index}", self.graph.nodes.len()))))
            .collect();
        let mut node =
            Node::new("", op, self.opset, inputs.iter().copied().map(Some), made.iter().copied().map(Some));
        attributes.iter().for_each(|(name, value)| node.attributes.set(*name, value.clone()));
        self.graph.nodes.push(node);
        made
    }

    /// Gives the last node a graph.
    pub(crate) fn with_graph(&mut self, attribute: &str, graph: Graph, captures: &[ValueId]) {
        let node = self.graph.nodes.last_mut().expect("a node");
        node.subgraphs.push(Subgraph { attribute: attribute.into(), graph, captures: captures.to_vec() });
    }

    pub(crate) fn output(mut self, outputs: &[ValueId]) -> Self {
        self.graph.outputs = outputs.to_vec();
        self
    }

    pub(crate) fn model(&self) -> Model {
        Model {
            graph: self.graph.clone(),
            format: "sketch".to_owned(),
            producer: String::new(),
            opsets: BTreeMap::new(),
            metadata: BTreeMap::new(),
            labels: Default::default(),
        }
    }

    /// A session on the simulated device of a runtime.
    pub(crate) fn simulated(&self, runtime: &Arc<Runtime>) -> Session {
        let devices = vec![runtime.device("sim").expect("the simulated device")];
        let options = SessionOptions { devices, ..SessionOptions::default() };
        Session::new(runtime.clone(), &self.model(), &options).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn session(&self, options: &SessionOptions) -> Session {
        Session::new(RUNTIME.clone(), &self.model(), options).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs it with and without passes on the same inputs, and gives the ops that are left; what comes out must be the same.
    pub(crate) fn optimised(&self, inputs: &[Datum]) -> Vec<String> {
        let session = self.session(&SessionOptions::default());
        let found = run(&session, inputs);
        let plain = self.session(&SessionOptions { is_plain: true, ..SessionOptions::default() });
        let expected = run(&plain, inputs);
        assert_eq!(expected.len(), found.len());
        for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert_near(expected, found, &format!("output {index}"));
        }
        // A second run uses the memory of the first again.
        for (again, found) in run(&session, inputs).iter().zip(&found) {
            assert_eq!(bytes(again), bytes(found), "the second run differs from the first");
        }
        let plan = session.plan(inputs).unwrap_or_else(|error| panic!("{error}"));
        plan.graph().nodes.iter().map(name_of).collect()
    }
}

fn name_of(node: &Node) -> String {
    if node.domain.is_empty() { node.op.to_string() } else { format!("{}.{}", node.domain, node.op) }
}

pub(crate) fn run(session: &Session, inputs: &[Datum]) -> Vec<Datum> {
    session.run(inputs).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn bytes(datum: &Datum) -> Vec<u8> {
    datum.tensor().and_then(Tensor::to_bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Elements between -1 and 1.
pub(crate) fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// An input of noise.
pub(crate) fn random(dims: &[i64], seed: u32) -> Datum {
    let count = usize::try_from(dims.iter().product::<i64>()).expect("a count");
    tensor(dims, &noise(count, seed))
}

pub(crate) fn tensor(dims: &[i64], elements: &[f32]) -> Datum {
    let cpu = RUNTIME.device("cpu").expect("the CPU");
    Tensor::from_slice(&cpu, dims, elements).expect("a tensor").into()
}

pub(crate) fn ints(dims: &[i64], elements: &[i64]) -> Datum {
    let cpu = RUNTIME.device("cpu").expect("the CPU");
    Tensor::from_slice(&cpu, dims, elements).expect("a tensor").into()
}

fn assert_near(expected: &Datum, found: &Datum, what: &str) {
    let (expected, found) = (expected.tensor().expect("a tensor"), found.tensor().expect("a tensor"));
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

//! Notes: what passes are told about sizes, so that it can be asked again for other sizes.
//!
//! What passes do to a graph follows from the graph and from what they are told: what is inferred, which nodes are
//! constant, which the device takes, whether two shapes are the same. So all of that is noted, in its order. For inputs of
//! other sizes the notes are gone through again; where each says the same as before, passes would do the same again, and
//! the graph that they left is right, with other sizes in it. Of what they may read without asking, namely how many
//! dimensions there are and which are known, none may differ either.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::infer::{Dim, Fact};
use oarlock_core::{Constant, Dims, Op};
use smallvec::SmallVec;

use super::common::{is_same_op, is_same_value, is_taken};
use super::infer::{declared, facts_of};
use super::{Effect, Scene, fold};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

/// What is noted while passes run.
#[derive(Default)]
pub struct Notes {
    list: RefCell<Vec<Note>>,
    /// The values that were read as they are, with what was known of them then.
    read: RefCell<HashMap<ValueId, Arc<Value>>>,
    /// What was inferred last, by the first value that it is about.
    inferred: RefCell<Vec<Option<Inferred>>>,
    /// How many bytes of constants may still be made; `None` before any are.
    left: Cell<Option<u64>>,
}

/// One thing that passes are told.
pub(super) enum Note {
    /// What follows for the outputs of a node.
    Inferred(Derived),
    /// The outputs of a node became constants.
    Folded(Derived),
    /// A node of constants did not.
    Kept { node: Node, op: Arc<Op> },
    /// A value is another one with its dimensions in another order.
    Turned { from: ValueId, to: ValueId, order: Vec<i64> },
    /// A constant is the shape of a value.
    Shape { of: ValueId, to: ValueId },
    /// The shape of a value follows from those of others.
    Sized { to: ValueId, dims: Box<Sizes> },
    /// The device takes a node, or does not.
    Taken { node: Node, op: Arc<Op>, is_taken: bool },
    /// The answer to a question about shapes.
    Asked { question: Box<Question>, answer: bool },
    /// A value was read as it is.
    Read(ValueId),
}

pub(super) type Sizes = dyn Fn(&Graph) -> Option<Dims> + Send + Sync;
pub(super) type Question = dyn Fn(&Graph) -> Option<bool> + Send + Sync;

/// What became of the outputs of a node.
pub(super) struct Derived {
    pub(super) node: Node,
    pub(super) op: Arc<Op>,
    pub(super) made: Vec<(ValueId, Arc<Value>)>,
}

/// What the outputs of a node were inferred from.
struct Inferred {
    node: Node,
    op: Arc<Op>,
    inputs: Vec<Option<Arc<Value>>>,
}

impl Notes {
    pub(super) fn add(&self, note: impl FnOnce() -> Note) {
        self.list.borrow_mut().push(note());
    }

    /// The nodes that became constants, in their order.
    pub(crate) fn folded(&self) -> Vec<Node> {
        let list = self.list.borrow();
        let folded = list
            .iter()
            .filter_map(|note| if let Note::Folded(Derived { node, .. }) = note { Some(node) } else { None });
        folded.cloned().collect()
    }

    /// The op of a node whose outputs were inferred before, and whether anything is known now that was not known then.
    pub(super) fn known(&self, graph: &Graph, node: &Node) -> Option<(Arc<Op>, bool)> {
        let inferred = self.inferred.borrow();
        let known = inferred.get(node.makes().next()?.index())?.as_ref()?;
        let is_same = (&known.node.op, known.node.opset, &known.node.domain, &known.node.attributes)
            == (&node.op, node.opset, &node.domain, &node.attributes)
            && (&known.node.inputs, &known.node.outputs) == (&node.inputs, &node.outputs);
        let is_as_before = |(input, before): (&Option<ValueId>, &Option<Arc<Value>>)| match (input, before) {
            (Some(input), Some(before)) => Arc::ptr_eq(graph.shared(*input), before),
            _ => true,
        };
        is_same.then(|| (known.op.clone(), !node.inputs.iter().zip(&known.inputs).all(is_as_before)))
    }

    /// Notes what was inferred for the outputs of a node.
    pub(super) fn infers(&self, graph: &Graph, node: &Node, op: Arc<Op>) {
        let Some(first) = node.makes().next() else { return };
        let inputs = node.inputs.iter().map(|input| input.map(|input| graph.shared(input).clone()));
        let inputs = inputs.collect();
        let mut inferred = self.inferred.borrow_mut();
        if inferred.len() <= first.index() {
            inferred.resize_with(graph.value_count(), || None);
        }
        inferred[first.index()] = Some(Inferred { node: node.clone(), op: op.clone(), inputs });
        drop(inferred);
        self.add(|| Note::Inferred(Derived::of(graph, node, op)));
    }
}

impl Derived {
    pub(super) fn of(graph: &Graph, node: &Node, op: Arc<Op>) -> Self {
        let made = node.makes().map(|value| (value, graph.shared(value).clone())).collect();
        Self { node: node.clone(), op, made }
    }
}

/// How many bytes of constants passes make at most, beside as many as the model has, times [`MOST_TIMES`].
const MOST_MADE: u64 = 16 << 20;
/// How many bytes of constants passes make at most for each byte of constants that the model has.
const MOST_TIMES: u64 = 4;

impl Scene<'_> {
    /// Whether passes may make constants of so many bytes; if so, they do. A small file may describe ever larger ones, each
    /// made of the one before, so all that is made counts.
    pub(super) fn may_make(&self, graph: &Graph, bytes: u64) -> bool {
        let at_first = || graph.weight_bytes().saturating_mul(MOST_TIMES).saturating_add(MOST_MADE);
        let left = self.notes.left.get().unwrap_or_else(at_first);
        let after = left.checked_sub(bytes);
        self.notes.left.set(Some(after.unwrap_or(left)));
        after.is_some()
    }

    /// Notes that a value is read as it is, so that what is done holds for this alone.
    pub(super) fn reads(&self, graph: &Graph, value: ValueId) {
        let known = graph.shared(value);
        let before = self.notes.read.borrow_mut().insert(value, known.clone());
        if before.is_none_or(|before| !Arc::ptr_eq(&before, known)) {
            self.notes.add(|| Note::Read(value));
        }
    }

    /// The answer to a question about shapes, which is asked again for others; no where something is not known.
    pub(super) fn asks(
        &self,
        graph: &Graph,
        question: impl Fn(&Graph) -> Option<bool> + Send + Sync + 'static,
    ) -> bool {
        let answer = question(graph).unwrap_or(false);
        self.notes.add(|| Note::Asked { question: Box::new(question), answer });
        answer
    }

    /// Adds a value that is another one with its dimensions in another order.
    pub(super) fn add_turned(&self, graph: &mut Graph, value: ValueId, order: &[i64]) -> Option<ValueId> {
        let fact = turned(graph.value(value), order)?;
        // It may be turned again and again.
        let name = graph.value(value).name.trim_end_matches(" in another order");
        let to = graph.add(Value::known(format!("{name} in another order"), fact));
        self.notes.add(|| Note::Turned { from: value, to, order: order.to_vec() });
        Some(to)
    }

    /// Adds a value of the dtype of another one, whose shape follows from those of others.
    pub(super) fn add_sized(
        &self,
        graph: &mut Graph,
        name: &str,
        like: ValueId,
        dims: impl Fn(&Graph) -> Option<Dims> + Send + Sync + 'static,
    ) -> Option<ValueId> {
        let fact = Fact::of_shape(graph.value(like).dtype()?, &dims(graph)?);
        let to = graph.add(Value::known(name, fact));
        self.notes.add(|| Note::Sized { to, dims: Box::new(dims) });
        Some(to)
    }

    /// Adds a constant that is the shape of a value.
    pub(super) fn add_shape(&self, graph: &mut Graph, value: ValueId) -> Option<ValueId> {
        let shape = graph.value(value).dims()?;
        let constant = Weight::Numbers(Constant::of_ints(&shape));
        let to = graph.add(Value::constant("a shape", constant));
        self.notes.add(|| Note::Shape { of: value, to });
        Some(to)
    }
}

/// What is known of a value with its dimensions in another order.
fn turned(value: &Value, order: &[i64]) -> Option<Fact> {
    let (dtype, dims) = (value.dtype()?, value.dims()?);
    let dim = |axis: &i64| usize::try_from(*axis).ok().and_then(|axis| dims.get(axis)).copied();
    let turned: Dims = order.iter().map(dim).collect::<Option<_>>()?;
    Some(Fact::of_shape(dtype, &turned))
}

/// A graph that passes have done with, and what they were told on the way.
pub(crate) struct Recipe {
    /// The nodes that passes left, with what was known of the values at first.
    graph: Graph,
    /// What was known of the inputs.
    inputs: Vec<Arc<Value>>,
    notes: Vec<Note>,
    /// The ops of the nodes, as far as they are known.
    ops: Vec<Option<Arc<Op>>>,
    effects: Vec<Effect>,
}

/// A graph for other sizes.
pub(crate) struct Again {
    pub(crate) graph: Graph,
    /// Whether something else is known of a value than in the graph that the recipe is of, by the index of the value.
    pub(crate) differs: Vec<bool>,
}

impl Recipe {
    /// Of a graph before and after passes, of which the former is a part, and what was noted in between.
    pub(crate) fn new(before: &Graph, after: &Graph, notes: Notes, effects: Vec<Effect>) -> Self {
        let mut graph = after.clone();
        before.values().for_each(|(id, _)| graph.share(id, before.shared(id)));
        let inputs = after.inputs.iter().map(|input| after.shared(*input).clone()).collect();
        let op = |node: &Node| notes.known(after, node).map(|(op, _)| op);
        let ops = after.nodes.iter().map(op).collect();
        Self { graph, inputs, ops, notes: notes.list.into_inner(), effects }
    }

    /// The op of a node that passes left.
    pub(crate) fn op(&self, at: usize) -> Option<&Arc<Op>> {
        self.ops.get(at)?.as_ref()
    }

    /// What passes did.
    pub(crate) fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The graph for inputs of which something else is known; nothing where passes would make another one.
    pub(crate) fn again(&self, inputs: &[Option<Fact>], scene: &Scene<'_>) -> Option<Again> {
        let mut again = Again { graph: self.graph.clone(), differs: vec![false; self.graph.value_count()] };
        let mut asked = Vec::new();
        for ((id, known), fact) in self.graph.inputs.iter().zip(&self.inputs).zip(inputs) {
            let fact = fact.clone().or_else(|| declared(&known.declared));
            again.learn(*id, known, fact)?;
        }
        for note in &self.notes {
            again.follows(note, &mut asked, scene)?;
        }
        Some(again)
    }
}

/// A node, what was known of its inputs, and whether the device takes it.
struct Asked<'r> {
    node: &'r Node,
    inputs: SmallVec<[Option<Arc<Value>>; 4]>,
    is_taken: bool,
}

/// Further answers are not remembered: with how many a question is compared.
const MOST_ASKED: usize = 16;

impl Again {
    /// Goes through a note; nothing where it says something else.
    fn follows<'r>(&mut self, note: &'r Note, asked: &mut Vec<Asked<'r>>, scene: &Scene<'_>) -> Option<()> {
        match note {
            Note::Inferred(Derived { node, op, made }) => {
                if !self.reads_other(node) {
                    made.iter().for_each(|(id, value)| self.keep(*id, value));
                    return Some(());
                }
                let facts = facts_of(&self.graph, node, op).ok()?;
                let Some(facts) = facts else {
                    let is_same =
                        |(id, before): &(ValueId, Arc<Value>)| self.graph.value(*id).fact == before.fact;
                    return made.iter().all(is_same).then_some(());
                };
                let mut made = made.iter();
                for (_, fact) in node.outputs.iter().zip(facts).filter(|(output, _)| output.is_some()) {
                    let (id, before) = made.next()?;
                    self.learn(*id, before, Some(fact))?;
                }
            }
            Note::Folded(Derived { node, op, made }) => {
                if !self.reads_other(node) && !node.makes().any(|value| self.differs[value.index()]) {
                    made.iter().for_each(|(id, value)| self.keep(*id, value));
                    return Some(());
                }
                let weights = fold::constants(&self.graph, node, op, scene)?;
                let mut made = made.iter();
                for (_, weight) in node.outputs.iter().zip(weights).filter(|(output, _)| output.is_some()) {
                    let (id, before) = made.next()?;
                    let is_alike = before.weight.as_ref().is_some_and(|before| {
                        before.dtype() == weight.dtype() && before.dims().len() == weight.dims().len()
                    });
                    is_alike.then_some(())?;
                    if before.weight.as_ref() == Some(&weight) {
                        self.keep(*id, before);
                    } else {
                        self.graph.value_mut(*id).weight = Some(weight);
                        self.differs[id.index()] = true;
                    }
                }
            }
            Note::Kept { node, op } => {
                let is_kept =
                    !self.reads_other(node) || fold::constants(&self.graph, node, op, scene).is_none();
                is_kept.then_some(())?;
            }
            Note::Turned { from, to, order } => {
                if self.differs[from.index()] {
                    self.graph.value_mut(*to).fact = Some(turned(self.graph.value(*from), order)?);
                    self.differs[to.index()] = true;
                }
            }
            Note::Shape { of, to } => {
                if self.differs[of.index()] {
                    let shape = Constant::of_ints(&self.graph.value(*of).dims()?);
                    self.graph.value_mut(*to).weight = Some(Weight::Numbers(shape));
                    self.differs[to.index()] = true;
                }
            }
            Note::Sized { to, dims } => {
                let before = self.graph.shared(*to).clone();
                let fact = Fact::of_shape(before.dtype()?, &dims(&self.graph)?);
                self.learn(*to, &before, Some(fact))?;
            }
            Note::Taken { node, op, is_taken: before } => {
                let is_same = !self.reads_other(node) || self.is_taken(node, op, asked, scene) == *before;
                is_same.then_some(())?;
            }
            Note::Asked { question, answer } => {
                (question(&self.graph).unwrap_or(false) == *answer).then_some(())?;
            }
            Note::Read(value) => (!self.differs[value.index()]).then_some(())?,
        }
        Some(())
    }

    /// Whether the device takes a node. Models repeat themselves, so the answer may be known from another one.
    fn is_taken<'r>(&self, node: &'r Node, op: &Op, asked: &mut Vec<Asked<'r>>, scene: &Scene<'_>) -> bool {
        let inputs = || node.inputs.iter().map(|input| input.map(|input| self.graph.shared(input)));
        let is_same_call = |other: &&Asked<'_>| {
            let is_same = |(own, other): (Option<&Arc<Value>>, &Option<Arc<Value>>)| match (own, other) {
                (Some(own), Some(other)) => is_same_value(own, other),
                (own, other) => own.is_none() && other.is_none(),
            };
            is_same_op(node, other.node) && inputs().zip(&other.inputs).all(is_same)
        };
        if let Some(known) = asked.iter().find(is_same_call) {
            return known.is_taken;
        }
        let is_taken = is_taken(&self.graph, node, op, scene);
        if asked.len() < MOST_ASKED {
            asked.push(Asked { node, inputs: inputs().map(|input| input.cloned()).collect(), is_taken });
        }
        is_taken
    }

    /// Whether a node reads anything of which something else is known.
    fn reads_other(&self, node: &Node) -> bool {
        node.inputs.iter().flatten().any(|input| self.differs[input.index()])
    }

    /// Of a value the same is known as before.
    fn keep(&mut self, id: ValueId, before: &Arc<Value>) {
        self.graph.share(id, before);
        self.differs[id.index()] = false;
    }

    /// Something is known of a value, which may differ from what was known before, but not in kind.
    fn learn(&mut self, id: ValueId, before: &Arc<Value>, fact: Option<Fact>) -> Option<()> {
        if before.fact == fact {
            self.keep(id, before);
            return Some(());
        }
        let (known, fact) = before.fact.as_ref().zip(fact)?;
        is_alike(known, &fact).then_some(())?;
        let weight = before.weight.clone();
        let (name, declared) = (before.name.clone(), before.declared.clone());
        self.graph.share(id, &Arc::new(Value { name, declared, weight, fact: Some(fact) }));
        self.differs[id.index()] = true;
        Some(())
    }
}

/// Whether as much is known of one value as of another.
fn is_alike(one: &Fact, other: &Fact) -> bool {
    let is_known = |dim: &Dim| dim.known().is_some();
    let has_same_dims = match (&one.dims, &other.dims) {
        (Some(one), Some(other)) => one.iter().map(is_known).eq(other.iter().map(is_known)),
        (one, other) => one.is_none() && other.is_none(),
    };
    one.dtype == other.dtype && has_same_dims && one.value.is_some() == other.value.is_some()
}

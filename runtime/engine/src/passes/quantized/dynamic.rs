//! Dynamically quantised models: sums of integers whose scale is only known in the run, made floats at once.
//!
//! Such a model has `DynamicQuantizeLinear`, `MatMulInteger` or `ConvInteger`, a `Cast`, and a `Mul` by the product of two
//! scales. What quantises stays what it is, since several products may read what it makes; the rest becomes one op. A
//! convolution of each channel for itself has few products, for which floats are as good: it becomes one of those.

use std::collections::{HashMap, HashSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use super::super::channels_last::{orders, transpose, window};
use super::super::common::{Look, OARLOCK, pass, replace};
use super::super::{Pass, Scene};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

pub(in super::super) const PASS: Pass = pass(
    "dynamically quantised",
    "joins sums of integers with what makes them floats, which happens while they are in the cache then",
    run,
);

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    if !scene.has("DequantizedMatMul") {
        return Ok(0);
    }
    let mut found: Vec<(usize, Found)> = {
        let look = Look::at(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, find(&look, node)?))).collect()
    };
    // Where a bias is added is the end of a sum, and what it is added to is not computed for itself.
    found.sort_by_key(|(_, found)| found.addend.is_none());
    let mut done: HashSet<ValueId> = HashSet::new();
    let mut replacements = HashMap::new();
    for (at, found) in found {
        if done.contains(&found.sum) {
            continue;
        }
        let node = graph.nodes[at].clone();
        if let Some(nodes) = written(graph, scene, &node, &found) {
            done.insert(found.sum);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace(graph, replacements))
}

/// A list with an element for each output, or one for all.
#[derive(Clone, Copy)]
enum List {
    /// As it is.
    Value(ValueId),
    /// A constant, with its dimensions of one element left out.
    Narrow(ValueId),
}

/// A sum of integers that becomes floats.
struct Found {
    /// `MatMulInteger` or `ConvInteger`.
    integer: Node,
    /// What it makes.
    sum: ValueId,
    /// That of what is multiplied with weights, where the other is that of weights alone.
    x_scale: Option<ValueId>,
    w_scale: List,
    /// What is added to the sum, and to the floats.
    bias: Option<List>,
    addend: Option<List>,
    /// For a convolution, the attributes of the one whose channels are last.
    attributes: Option<Attributes>,
    is_depthwise: bool,
}

/// Where outputs are along the dimensions of what is made.
struct Outputs {
    count: i64,
    /// How many dimensions follow them.
    behind: usize,
}

fn find(look: &Look<'_>, node: &Node) -> Option<Found> {
    if node.is("Add") {
        let mut pairs = look.either_way(node).into_iter().flatten();
        return pairs.find_map(|(own, other)| {
            let mul = look.made_only_for(own, "Mul").filter(|_| look.dtype(own) == Some(Dtype::F32))?;
            let mut found = scaled(look, mul)?;
            // A product has its bias from the pass for what follows products.
            found.attributes.as_ref()?;
            let is_same = look.has_same_shape(own, node.output(0)?);
            found.addend = list(look, other, &outputs(look, &found.integer)?).filter(|_| is_same);
            found.addend?;
            Some(found)
        });
    }
    if node.is("Mul") && look.dtype(node.output(0)?)? == Dtype::F32 { scaled(look, node) } else { None }
}

/// The sum that a node scales.
fn scaled(look: &Look<'_>, mul: &Node) -> Option<Found> {
    look.either_way(mul).into_iter().flatten().find_map(|(made, scale)| {
        let cast = look.made_only_for(made, "Cast");
        let cast = cast.filter(|_| mul.output(0).is_some_and(|scaled| look.has_same_shape(made, scaled)))?;
        let mut sum = cast.input(0).filter(|sum| look.dtype(*sum) == Some(Dtype::I32))?;
        let mut added = None;
        if let Some(add) = look.made_only_for(sum, "Add") {
            let is_integer = |value: ValueId| look.maker(value).is_some_and(is_integer);
            let mut pairs = look.either_way(add).into_iter().flatten();
            let (own, other) = pairs.find(|(own, _)| is_integer(*own))?;
            (sum, added) = (look.has_same_shape(own, sum).then_some(own)?, Some(other));
        }
        let integer = look.maker(sum).filter(|node| is_integer(node) && look.is_read_once(sum))?;
        let outputs = outputs(look, integer)?;
        let bias = match added {
            None => None,
            Some(added) => Some(list(look, added, &outputs)?),
        };
        // A scale that is known beforehand is the product already.
        let parts = look.made_by(scale, "Mul").and_then(|scales| {
            let mut pairs = look.either_way(scales).into_iter().flatten();
            pairs.find_map(|(x, w)| Some((x, has_one(look, x).then(|| list(look, w, &outputs))??)))
        });
        let (x_scale, w_scale) = match parts {
            Some((x, w)) => (Some(x), w),
            None => (None, list(look, scale, &outputs)?),
        };
        let zeros = [integer.input(2), integer.input(3)];
        let fits = |index: usize, zero: ValueId| match index {
            0 => has_one(look, zero),
            _ => look.rank(zero).is_some_and(|rank| rank <= 1) && list(look, zero, &outputs.last()).is_some(),
        };
        let fit =
            zeros.into_iter().enumerate().all(|(index, zero)| zero.is_none_or(|zero| fits(index, zero)));
        let (attributes, is_depthwise) = convolution(look, integer)?;
        fit.then(|| Found {
            integer: integer.clone(),
            sum,
            x_scale,
            w_scale,
            bias,
            addend: None,
            attributes,
            is_depthwise,
        })
    })
}

fn is_integer(node: &Node) -> bool {
    node.is("MatMulInteger") || node.is("ConvInteger")
}

fn has_one(look: &Look<'_>, value: ValueId) -> bool {
    look.asks(move |graph| Some(graph.value(value).dims()?.iter().all(|dim| *dim == 1)))
}

impl Outputs {
    /// The same where they are the last dimension.
    fn last(&self) -> Self {
        Self { count: self.count, behind: 0 }
    }
}

/// The outputs of an op whose weights are known to be constant.
fn outputs(look: &Look<'_>, integer: &Node) -> Option<Outputs> {
    let w = integer.input(1)?;
    look.graph.value(w).weight.as_ref()?;
    let rank = look.rank(w)?;
    if integer.is("ConvInteger") {
        return Some(Outputs { count: look.size(w, 0)?, behind: rank.checked_sub(2)? });
    }
    (rank == 2).then_some(Outputs { count: look.size(w, 1)?, behind: 0 })
}

/// A value that has one element, or one for each output.
fn list(look: &Look<'_>, value: ValueId, outputs: &Outputs) -> Option<List> {
    let &Outputs { count, behind } = outputs;
    let fits = look.asks(move |graph| {
        let dims = graph.value(value).dims()?;
        let at = dims.len().checked_sub(1 + behind);
        let is_one = dims.iter().all(|dim| *dim == 1);
        let others = dims.iter().enumerate().all(|(axis, dim)| Some(axis) == at || *dim == 1);
        Some(is_one || others && at.is_some_and(|at| dims[at] == count))
    });
    if !fits {
        return None;
    }
    if look.rank(value)? <= 1 {
        return Some(List::Value(value));
    }
    if look.graph.value(value).weight.is_some() {
        return Some(List::Narrow(value));
    }
    // What was a list before it had more dimensions.
    let before = look.made_by(value, "Reshape").or_else(|| look.made_by(value, "Unsqueeze"))?.input(0)?;
    (look.rank(before)? == 1).then_some(List::Value(before))
}

/// What a convolution is with its channels last, and whether it is one of each channel for itself; nothing of a product.
fn convolution(look: &Look<'_>, integer: &Node) -> Option<(Option<Attributes>, bool)> {
    if !integer.is("ConvInteger") {
        return Some((None, false));
    }
    let (x, w) = integer.input(0).zip(integer.input(1))?;
    let groups = integer.attributes.int("group").ok()?.unwrap_or(1);
    let is_depthwise = groups > 1 && look.size(x, 1)? == groups && look.size(w, 0)? == groups;
    let kernel = look.dims(w)?.get(2..)?.to_vec();
    let is_taken = (3..=4).contains(&look.rank(x)?);
    let attributes = window(look, integer, kernel, &["group"]).filter(|_| is_taken)?;
    Some((Some(attributes), is_depthwise))
}

/// The op in the place of the last node of a sum, if the device takes it: a convolution between transposes.
fn written(graph: &mut Graph, scene: &Scene<'_>, node: &Node, found: &Found) -> Option<Vec<Node>> {
    if found.is_depthwise {
        return of_floats(graph, scene, node, found);
    }
    let (x, w) = found.integer.input(0).zip(found.integer.input(1))?;
    let (x_scale, scale) = (x_scale(graph, found)?, listed(graph, scene, found.w_scale)?);
    let lists = [found.bias, found.addend];
    let [bias, addend] = lists.map(|list| list.map(|list| listed(graph, scene, list)));
    let (bias, addend) =
        (bias.map_or(Some(None), |bias| bias.map(Some))?, addend.map_or(Some(None), |list| list.map(Some))?);
    let zeros = [found.integer.input(2), found.integer.input(3)];
    let y = node.output(0)?;
    let own = |op: &str, x: ValueId, y: ValueId| {
        let inputs = [Some(x), Some(w), Some(x_scale), Some(scale), zeros[0], zeros[1], bias, addend];
        let used = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let mut own = Node::new(OARLOCK, op, 1, inputs.into_iter().take(used), [Some(y)]);
        own.name = found.integer.name.clone();
        own
    };
    let Some(attributes) = &found.attributes else {
        let own = own("DequantizedMatMul", x, y);
        return scene.takes(graph, &own).then(|| vec![own]);
    };
    let (last, first) = orders(graph.value(x).dims()?.len());
    let (turned_x, turned_y) = (scene.add_turned(graph, x, &last)?, scene.add_turned(graph, y, &last)?);
    let mut own = own("DequantizedConv", turned_x, turned_y);
    own.attributes = attributes.clone();
    scene.takes(graph, &own).then(|| vec![transpose(x, turned_x, last), own, transpose(turned_y, y, first)])
}

/// The scale of what is multiplied with weights.
fn x_scale(graph: &mut Graph, found: &Found) -> Option<ValueId> {
    if found.x_scale.is_some() {
        return found.x_scale;
    }
    let one = Constant::new(Dtype::F32, &[], 1f32.to_ne_bytes().to_vec()).ok()?;
    Some(graph.add(Value::constant("a scale of one", Weight::Numbers(one))))
}

/// A list as an op reads it: of one dimension at most.
fn listed(graph: &mut Graph, scene: &Scene<'_>, list: List) -> Option<ValueId> {
    let value = match list {
        List::Value(value) => return Some(value),
        List::Narrow(value) => value,
    };
    scene.reads(graph, value);
    let numbers = graph.value(value).numbers()?;
    let count = numbers.dims().iter().product();
    let narrow = numbers.reshaped(&[count]).ok()?;
    Some(graph.add(Value::constant("a list", Weight::Numbers(narrow))))
}

/// A convolution of each channel for itself, of floats.
fn of_floats(graph: &mut Graph, scene: &Scene<'_>, node: &Node, found: &Found) -> Option<Vec<Node>> {
    let (x, w) = found.integer.input(0).zip(found.integer.input(1))?;
    let scale = listed(graph, scene, found.w_scale)?;
    let known = |graph: &Graph, value: ValueId| {
        scene.reads(graph, value);
        graph.value(value).numbers().cloned()
    };
    let (weights, scales) = (known(graph, w)?, known(graph, scale)?.floats().ok()?);
    let zeros = match found.integer.input(3) {
        None => vec![0],
        Some(zeros) => bytes_of(&known(graph, zeros)?)?,
    };
    let outputs = usize::try_from(*weights.dims().first()?).ok()?;
    let taps = bytes_of(&weights)?.len() / outputs.max(1);
    let of = |list: usize, index: usize| if list == 1 { 0 } else { index / taps.max(1) };
    let real = bytes_of(&weights)?.into_iter().enumerate().flat_map(|(index, weight)| {
        let zero = zeros[of(zeros.len(), index)];
        ((weight - zero) as f32 * scales[of(scales.len(), index)] as f32).to_ne_bytes()
    });
    let real = Constant::new(Dtype::F32, weights.dims(), real.collect::<Vec<u8>>()).ok()?;
    let bias = match found.addend {
        None => None,
        Some(addend) => Some(listed(graph, scene, addend)?),
    };
    // Integers that are added have steps of their own, lists of one element are no bias, and scales of one are lists.
    let count = i64::try_from(outputs).ok()?;
    let has_fitting_bias =
        bias.is_none_or(|bias| scene.asks(graph, move |graph| Some(*graph.value(bias).dims()? == [count])));
    let is_scalar = |value: ValueId| graph.value(value).dims().is_some_and(|dims| dims.is_empty());
    let is_of_all = found.x_scale.is_none_or(is_scalar) && found.integer.input(2).is_none_or(is_scalar);
    if found.bias.is_some() || !has_fitting_bias || !is_of_all {
        return None;
    }
    let y = node.output(0)?;
    let x_scale = x_scale(graph, found)?;
    let real_x = scene.add_sized(graph, "an image of floats", y, move |graph| graph.value(x).dims())?;
    let real = graph.add(Value::constant("weights of floats", Weight::Numbers(real)));
    let zero = found.integer.input(2);
    let inputs = [Some(x), Some(x_scale), zero].into_iter().take(if zero.is_some() { 3 } else { 2 });
    let moved = Node::new("", "DequantizeLinear", 13, inputs, [Some(real_x)]);
    let inputs = [Some(real_x), Some(real), bias].into_iter().take(if bias.is_some() { 3 } else { 2 });
    let mut conv = Node::new("", "Conv", 11, inputs, [Some(y)]);
    conv.attributes = found.attributes.clone()?;
    conv.attributes.set("group", Attribute::Int(count));
    conv.name = found.integer.name.clone();
    Some(vec![moved, conv])
}

/// The numbers of a constant of eight bits.
fn bytes_of(constant: &Constant) -> Option<Vec<i32>> {
    let number: fn(&u8) -> i32 = match constant.dtype() {
        Dtype::I8 => |byte| byte.cast_signed().into(),
        Dtype::U8 => |byte| i32::from(*byte),
        _ => return None,
    };
    Some(constant.bytes().iter().map(number).collect())
}

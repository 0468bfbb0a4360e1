//! Constant weights of a convolution as kernels, one for each pair of an input and an output channel within a group.

use oarlock_core::{Constant, Dtype};

use super::channel_affine::{float_constant, float_elements};
use super::graph_view::GraphView;
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

/// The kernels of a `Conv` or `ConvTranspose` in f32.
pub(super) struct ConvKernels<'a> {
    node: &'a Node,
    weights: &'a Constant,
    /// The sizes of the first two axes of the weights: output channels and input channels of a group, or all input channels and
    /// output channels of a group if transposed.
    sizes: [usize; 2],
    groups: usize,
    is_transposed: bool,
}

/// New weights and a new bias.
pub(super) struct ConvConstants {
    pub(super) weights: Constant,
    pub(super) bias: Constant,
}

impl<'a> ConvKernels<'a> {
    /// The kernels of a convolution; `None` for other nodes, other dtypes, and weights that are not constant or are empty.
    pub(super) fn from_node(view: &GraphView<'a>, node: &'a Node) -> Option<Self> {
        let is_transposed = node.is_op("ConvTranspose");
        if !is_transposed && !node.is_op("Conv") {
            return None;
        }
        let weights = view.constant(node.input(1)?)?;
        let size = |axis: usize| usize::try_from(*weights.dims().get(axis)?).ok();
        let sizes = [size(0)?, size(1)?];
        let groups = usize::try_from(node.attributes.get_int("group").ok()?.unwrap_or(1)).ok()?.max(1);
        let is_divisible = sizes[0] >= groups && sizes[0].is_multiple_of(groups);
        let is_known = weights.dtype() == Dtype::F32 && weights.size_in_bytes() > 0 && is_divisible;
        is_known.then_some(Self { node, weights, sizes, groups, is_transposed })
    }

    pub(super) fn node(&self) -> &'a Node {
        self.node
    }

    /// The rank of inputs and outputs.
    pub(super) fn rank(&self) -> usize {
        self.weights.dims().len()
    }

    pub(super) fn output_channels(&self) -> usize {
        if self.is_transposed { self.sizes[1] * self.groups } else { self.sizes[0] }
    }

    pub(super) fn input_channels(&self) -> usize {
        if self.is_transposed { self.sizes[0] } else { self.sizes[1] * self.groups }
    }

    /// Calls a function with the output channel, the input channel and the elements of each kernel, in order.
    fn for_each(&self, mut each: impl FnMut(usize, usize, &mut dyn Iterator<Item = f64>)) -> Option<()> {
        let [first_size, second_size] = self.sizes;
        let weights = self.weights.bytes().ok()?;
        let bytes_each = weights.len() / (first_size * second_size);
        for (index, kernel) in weights.chunks_exact(bytes_each).enumerate() {
            let (first, second) = (index / second_size, index % second_size);
            // Along the second axis, channels are counted within the group that the first axis determines.
            let grouped = first / (first_size / self.groups) * second_size + second;
            let (output, input) = if self.is_transposed { (grouped, first) } else { (first, grouped) };
            let elements = kernel.as_chunks::<4>().0.iter();
            each(output, input, &mut elements.map(|bytes| f64::from(f32::from_ne_bytes(*bytes))));
        }
        Some(())
    }

    /// The weights, each kernel times a factor of its output and input channel.
    pub(super) fn scaled(&self, factor: impl Fn(usize, usize) -> f64) -> Option<Constant> {
        let mut bytes = Vec::with_capacity(self.weights.size_in_bytes());
        self.for_each(|output, input, elements| {
            let factor = factor(output, input);
            bytes.extend(elements.flat_map(|element| ((element * factor) as f32).to_ne_bytes()));
        })?;
        Constant::new(Dtype::F32, self.weights.dims(), bytes).ok()
    }

    /// The outputs for an input with the same value in all places of a channel.
    pub(super) fn sums(&self, value: impl Fn(usize) -> f64) -> Option<Vec<f64>> {
        let mut sums = vec![0.0; self.output_channels()];
        self.for_each(|output, input, elements| sums[output] += elements.sum::<f64>() * value(input))?;
        Some(sums)
    }

    /// The bias, zeros if there is none.
    pub(super) fn bias(&self, view: &GraphView<'_>) -> Option<Vec<f64>> {
        let channels = self.output_channels();
        match self.node.input(2) {
            Some(bias) => float_elements(view, bias).filter(|bias| bias.len() == channels),
            None => Some(vec![0.0; channels]),
        }
    }

    /// The constants of these weights and this bias.
    pub(super) fn with_constants(
        &self,
        weights: Constant,
        bias: impl Iterator<Item = f64>,
    ) -> Option<ConvConstants> {
        Some(ConvConstants { weights, bias: float_constant(bias, &[self.output_channels() as i64])? })
    }
}

impl ConvConstants {
    /// Gives a convolution these weights and this bias.
    pub(super) fn replace_in(self, graph: &mut Graph, conv: &mut Node) {
        let name = conv.label();
        let mut add = |constant: Constant, kind: &str| -> Option<ValueId> {
            let value = GraphValue::with_weight(format!("{kind} of {name}"), Weight::Numbers(constant));
            Some(graph.add_value(value))
        };
        let inputs = [add(self.weights, "weights"), add(self.bias, "bias")];
        conv.inputs.truncate(1);
        conv.inputs.extend(inputs);
    }
}

//! Mutations of a call.

use oarlock_core::schema::{self, AttributeKind};
use oarlock_core::{Attribute, Attributes, Dtype, shape};

use super::call::CallCase;
use super::call_input::{CallInput, ElementValue, InputView};
use super::choice_source::ChoiceSource;

/// Ops with at least as many output elements as input elements, so that an excessive size is refused before any work is done.
/// Other ops would correctly read 2^40 elements one by one.
const SIZE_PRESERVING_OPS: &[&str] = &[
    "Abs",
    "Add",
    "And",
    "Cast",
    "Clip",
    "Concat",
    "Div",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "Flatten",
    "Identity",
    "Less",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "PRelu",
    "Pow",
    "Relu",
    "Reshape",
    "Shape",
    "Sigmoid",
    "Size",
    "Softmax",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Tanh",
    "Tile",
    "Transpose",
    "Trilu",
    "Unsqueeze",
    "Where",
    "Xor",
];

/// Applies one mutation.
pub(super) fn change_something(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    match source.choose_below(15) {
        0 => {}
        1 => change_dtype(case, source),
        2 | 3 => change_dims(case, source),
        4 | 5 => change_elements(case, source),
        6 => change_view(case, source),
        7 => make_huge(case, source),
        8 => change_input_count(case, source),
        9..=11 => change_known_attribute(case, source),
        12 => change_constants(case, source),
        13 => make_large_together(case, source),
        _ => change_version_or_outputs(case, source),
    }
}

/// Toggles whether one input is constant, or makes all but the first constant.
fn change_constants(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    if source.once_in(2) {
        case.inputs.iter_mut().skip(1).flatten().for_each(|input| input.is_constant = true);
    } else if let Some(input) = choose_input(case, source) {
        input.is_constant = !input.is_constant;
    }
}

fn choose_input<'c>(case: &'c mut CallCase, source: &mut ChoiceSource<'_>) -> Option<&'c mut CallInput> {
    let count = case.inputs.len().max(1);
    case.inputs.get_mut(source.choose_below(count))?.as_mut()
}

fn change_dtype(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    let dtype = source.choose_from(Dtype::ALL);
    if source.once_in(2) {
        case.inputs.iter_mut().flatten().for_each(|input| input.dtype = dtype);
    } else if let Some(input) = choose_input(case, source) {
        input.dtype = dtype;
    }
}

fn change_dims(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    let Some(input) = choose_input(case, source) else { return };
    let rank = input.dims.len();
    match source.choose_below(6) {
        0 if rank > 0 => input.dims[source.choose_below(rank)] = source.choose_size(),
        1 if rank > 0 => input.dims[source.choose_below(rank)] = 0,
        2 if rank > 0 => _ = input.dims.remove(source.choose_below(rank)),
        3 => input.dims.insert(source.choose_below(rank + 1), source.choose_from(&[1, 2, 0])),
        4 => input.dims = vec![source.choose_from(&[1, 0]); source.choose_from(&[0, 1, 9, 12, 13, 64])],
        _ => input.dims = (0..source.choose_below(6)).map(|_| source.choose_size()).collect(),
    }
    input.dims.truncate(shape::MAX_RANK);
}

fn change_elements(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    let Some(input) = choose_input(case, source) else { return };
    let count = input.element_count().min(64);
    let number = |source: &mut ChoiceSource<'_>| {
        let (int, float) = (source.choose_int(), source.choose_float());
        ElementValue { int, float }
    };
    if source.once_in(3) {
        input.elements = (0..count).map(|_| number(source)).collect();
        return;
    }
    let at = source.choose_below(count);
    while input.elements.len() <= at {
        input.elements.push(ElementValue { int: 1, float: 1.0 });
    }
    input.elements[at] = number(source);
}

fn change_view(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    let Some(input) = choose_input(case, source) else { return };
    let rank = input.dims.len();
    match source.choose_below(4) {
        0 => {
            let mut order: Vec<usize> = (0..rank).collect();
            order.rotate_left(source.choose_below(rank.max(1)));
            input.views.push(InputView::Transpose(order));
        }
        1 => {
            // A view of part of a larger tensor.
            let (before, after) = (source.choose_size(), source.choose_size());
            let axis = source.choose_below(rank.max(1));
            if let Some(dim) = input.dims.get_mut(axis) {
                let step = source.choose_from(&[1, 2, 3]);
                let end = before + (*dim - 1).max(0) * step + 1;
                *dim = end + after;
                input.views.push(InputView::Slice(axis as i64, before as u64, end as u64, step as u64));
            }
        }
        2 => {
            let dims =
                input.dims.iter().map(|dim| if *dim == 1 { source.choose_size() } else { *dim }).collect();
            input.views.push(InputView::Expand(dims));
        }
        _ => {
            let mut dims = input.dims.clone();
            dims.insert(0, source.choose_size());
            input.views.push(InputView::Expand(dims));
        }
    }
}

/// Makes dimensions of one size huge in all inputs, and those of another size 0, so that shapes still fit together.
fn make_huge_together(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    let dims = case.inputs.iter().flatten().flat_map(|input| input.dims.clone());
    let sizes: Vec<i64> = dims.filter(|size| *size > 0).collect();
    if sizes.is_empty() {
        return;
    }
    let (large, none) = (source.choose_from(&sizes), source.choose_from(&sizes));
    let huge = source.choose_from(&[1 << 40, 1 << 32, 1 << 62, i64::MAX, 1 << 31]);
    let changed = |dims: &[i64]| -> Vec<i64> {
        let change = |dim: &i64| match *dim {
            dim if dim == none => 0,
            dim if dim == large => huge,
            dim => dim,
        };
        dims.iter().map(change).collect()
    };
    let values = oarlock_core::infer::value_input_indices(&case.domain, &case.op, case.opset);
    let inputs = case.inputs.iter_mut().enumerate().filter(|(at, _)| !values.contains(at));
    for input in inputs.filter_map(|(_, input)| input.as_mut()) {
        let dims = changed(&input.dims);
        // A huge tensor that has elements would correctly take forever.
        if dims.contains(&0) {
            input.dims = dims.iter().map(|dim| i64::from(*dim != 0)).collect();
            input.views = vec![InputView::Expand(dims)];
        }
    }
}

/// Raises dimensions of one size to thousands in all inputs, so that kernels work on more than one tile, panel or task.
fn make_large_together(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    const MAX_ELEMENTS: u64 = 1 << 15;
    let sizes: Vec<i64> = case.inputs.iter().flatten().flat_map(|input| input.dims.clone()).collect();
    if sizes.is_empty() {
        return;
    }
    let (chosen, large) = (source.choose_from(&sizes), source.choose_from(&[513, 1025, 2049, 4099, 5000]));
    let values = oarlock_core::infer::value_input_indices(&case.domain, &case.op, case.opset);
    let inputs = case.inputs.iter_mut().enumerate().filter(|(at, _)| !values.contains(at));
    for input in inputs.filter_map(|(_, input)| input.as_mut()).filter(|input| input.views.is_empty()) {
        let dims: Vec<i64> = input.dims.iter().map(|dim| if *dim == chosen { large } else { *dim }).collect();
        // A later change may replace a dimension of 0, so it does not make the tensor small.
        let positive: Vec<i64> = dims.iter().map(|dim| (*dim).max(1)).collect();
        if shape::element_count(&positive).is_ok_and(|count| count <= MAX_ELEMENTS) {
            input.dims = dims;
        }
    }
}

/// Shapes whose sizes are close to the limits of integers.
fn make_huge(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    if source.once_in(2) {
        return make_huge_together(case, source);
    }
    let is_held_back = !SIZE_PRESERVING_OPS.contains(&case.op.as_str());
    let domain = case.domain.clone();
    let values = oarlock_core::infer::value_input_indices(&domain, &case.op, case.opset);
    let at = source.choose_below(case.inputs.len());
    let Some(Some(input)) = case.inputs.get_mut(at) else { return };
    let full: [&[i64]; 5] =
        [&[1 << 40], &[1 << 20, 1 << 20], &[1 << 31, 1 << 29], &[(1 << 60) - 1], &[1 << 33, 1, 1 << 20]];
    if is_held_back || values.contains(&at) || source.once_in(2) {
        if input.dims.len() < 2 || source.once_in(4) {
            input.dims = vec![1; source.choose_from(&[2, 3, 4])];
        }
        let size = |source: &mut ChoiceSource<'_>| {
            source.choose_from(&[0, i64::MAX, 1 << 32, 1 << 62, 1 << 40, 1, 3])
        };
        let mut dims: Vec<i64> = input.dims.iter().map(|_| size(source)).collect();
        if !dims.contains(&0) {
            dims[source.choose_below(input.dims.len())] = 0;
        }
        // Expands an empty tensor from one whose dimensions are 0 or 1.
        input.dims = dims.iter().map(|dim| i64::from(*dim != 0)).collect();
        input.views = vec![InputView::Expand(dims)];
    } else {
        input.dims = Vec::new();
        input.views = vec![InputView::Expand(source.choose_from(&full).to_vec())];
    }
}

fn change_input_count(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    let count = case.inputs.len();
    match source.choose_below(5) {
        0 => _ = case.inputs.pop(),
        1 if count > 0 => case.inputs[source.choose_below(count)] = None,
        2 => case.inputs.push(case.inputs.first().cloned().flatten()),
        3 if count > 1 => case.inputs.swap(source.choose_below(count), source.choose_below(count)),
        _ => {
            case.inputs
                .push(Some(CallInput::new(source.choose_from(Dtype::ALL), vec![source.choose_size()])));
        }
    }
}

fn change_version_or_outputs(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    if source.once_in(3) {
        case.outputs = source.choose_from(&[0, 1, 2, 3, 4, 5, 9]);
    } else {
        case.opset = source.choose_below(31) as u32;
    }
}

fn change_known_attribute(case: &mut CallCase, source: &mut ChoiceSource<'_>) {
    let Ok(schema) = schema::find_schema(&case.domain, &case.op, case.opset) else { return };
    if schema.attributes.is_empty() || source.once_in(24) {
        case.attributes.set(
            source.choose_from(&["axis", "to", "nobody_knows_this", ""]),
            Attribute::Int(source.choose_int()),
        );
        return;
    }
    let known = &schema.attributes[source.choose_below(schema.attributes.len())];
    match source.choose_below(8) {
        0 => {
            let others = case.attributes.iter().filter(|(name, _)| *name != known.name);
            case.attributes =
                others.map(|(name, value)| (name.to_owned(), value.clone())).collect::<Attributes>();
        }
        1 => {
            let kinds = [
                AttributeKind::Int,
                AttributeKind::Float,
                AttributeKind::String,
                AttributeKind::Tensor,
                AttributeKind::Ints,
                AttributeKind::Floats,
                AttributeKind::Strings,
            ];
            let kind = source.choose_from(&kinds);
            set_attribute(case, source, known.name, kind);
        }
        2..=4 => {
            if let Some(Attribute::Ints(list)) = case.attributes.get(known.name) {
                let mut list = list.clone();
                if !list.is_empty() {
                    let at = source.choose_below(list.len());
                    list[at] = source.choose_int();
                }
                case.attributes.set(known.name, Attribute::Ints(list));
            } else {
                set_attribute(case, source, known.name, known.kind);
            }
        }
        _ => set_attribute(case, source, known.name, known.kind),
    }
}

/// Sets an attribute of a kind to some value.
pub(super) fn set_attribute(
    case: &mut CallCase,
    source: &mut ChoiceSource<'_>,
    name: &str,
    kind: AttributeKind,
) {
    const ATTRIBUTE_TEXTS: [&str; 24] = [
        "",
        "SAME_UPPER",
        "SAME_LOWER",
        "VALID",
        "NOTSET",
        "constant",
        "reflect",
        "edge",
        "wrap",
        "linear",
        "cubic",
        "nearest",
        "tf_crop_and_resize",
        "half_pixel",
        "add",
        "mul",
        "max",
        "none",
        "sum",
        "ij,jk->ik",
        "...i,i...",
        "ii,->i",
        "\u{e9}->",
        "RIGHT",
    ];
    let ints = |source: &mut ChoiceSource<'_>| {
        (0..source.choose_below(9)).map(|_| source.choose_int()).collect::<Vec<_>>()
    };
    let value = match kind {
        AttributeKind::Int => Attribute::Int(source.choose_int()),
        AttributeKind::Float => Attribute::Float(source.choose_float()),
        AttributeKind::String => Attribute::String(source.choose_from(&ATTRIBUTE_TEXTS).to_owned()),
        AttributeKind::Ints => Attribute::Ints(ints(source)),
        AttributeKind::Floats => {
            Attribute::Floats((0..source.choose_below(6)).map(|_| source.choose_float()).collect())
        }
        AttributeKind::Strings => Attribute::Strings(vec![source.choose_from(&ATTRIBUTE_TEXTS).to_owned()]),
        AttributeKind::Tensor => {
            let given = CallInput::new(source.choose_from(Dtype::ALL), vec![source.choose_size()]);
            match given.to_constant() {
                Ok(constant) => Attribute::Tensor(constant),
                Err(_) => return,
            }
        }
        _ => return,
    };
    case.attributes.set(name, value);
}

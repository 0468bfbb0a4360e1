//! A call as plain data, and how it is decoded from bytes.

use std::sync::LazyLock;

use oarlock_core::schema::{self, OpSchema};
use oarlock_core::{Attribute, Attributes, Dtype};

use super::call_change;
use super::call_input::{CallInput, ElementValue, InputView};
use super::choice_source::ChoiceSource;

/// Valid calls. Lines that begin with `#` are comments.
const WORKING_CALLS_TEXT: &str = include_str!("calls.txt");

static WORKING_CALLS: LazyLock<Vec<CallCase>> = LazyLock::new(|| {
    let lines = WORKING_CALLS_TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| CallCase::parse_line(line).unwrap_or_else(|| panic!("no call: {line}"))).collect()
});

static SCHEMAS: LazyLock<Vec<&'static OpSchema>> = LazyLock::new(|| {
    schema::all_schemas().expect("schemas").map(|schema| schema.expect("a schema")).collect()
});

#[derive(Clone, Debug)]
pub(crate) struct CallCase {
    pub(crate) domain: String,
    pub(crate) op: String,
    pub(crate) opset: u32,
    pub(crate) attributes: Attributes,
    pub(crate) inputs: Vec<Option<CallInput>>,
    pub(crate) outputs: usize,
}

impl CallCase {
    /// The valid calls.
    pub(crate) fn working_cases() -> &'static [Self] {
        &WORKING_CALLS
    }

    /// A call that is usually wrong somewhere.
    pub(crate) fn from_choices(source: &mut ChoiceSource<'_>) -> Self {
        let mut case = if source.once_in(8) {
            Self::random_case(source)
        } else {
            WORKING_CALLS[source.choose_below(WORKING_CALLS.len())].clone()
        };
        for _ in 0..=source.choose_below(3) {
            call_change::change_something(&mut case, source);
        }
        case
    }

    /// Parses a line of the list.
    pub(crate) fn parse_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let (domain, op) = name.split_once(':').unwrap_or(("", name));
        let mut case = Self {
            domain: domain.to_owned(),
            op: op.to_owned(),
            opset: schema::latest_opset(domain).ok()?,
            attributes: Attributes::new(),
            inputs: Vec::new(),
            outputs: 1,
        };
        for word in words {
            let letter = word.chars().next()?;
            match letter {
                '@' => case.opset = word[1..].parse().ok()?,
                '>' => case.outputs = word[1..].parse().ok()?,
                '-' => case.inputs.push(None),
                _ => match word.split_once('=') {
                    Some((name, value)) => case.attributes.set(name, parse_attribute(value)?),
                    None => case.inputs.push(Some(parse_tensor(word)?)),
                },
            }
        }
        Some(case)
    }

    /// A call of any op in any version, with unrelated inputs.
    fn random_case(source: &mut ChoiceSource<'_>) -> Self {
        let schema = SCHEMAS[source.choose_below(SCHEMAS.len())];
        let most = schema.max_inputs().unwrap_or(4).min(8);
        let count = if source.once_in(3) { source.choose_below(9) } else { most };
        let mut dtypes = vec![None; schema.types.len()];
        let mut input = |index: usize| {
            let formal = schema.formal_input(index)?;
            let allowed = schema.allowed_dtypes(formal);
            let fitting: Vec<Dtype> =
                Dtype::ALL.iter().copied().filter(|dtype| dtype.is_in(allowed)).collect();
            if fitting.is_empty() || source.once_in(8) {
                return None;
            }
            let dtype = *dtypes[formal.type_index].get_or_insert(source.choose_from(&fitting));
            let rank = source.choose_from(&[2, 1, 3, 4, 0, 5, 9]);
            Some(CallInput::new(dtype, (0..rank).map(|_| source.choose_from(&[2, 1, 3, 0])).collect()))
        };
        let inputs = (0..count).map(&mut input).collect();
        let mut case = Self {
            domain: schema.domain.to_owned(),
            op: schema.name.to_owned(),
            opset: schema.since_version,
            attributes: Attributes::new(),
            inputs,
            outputs: schema.outputs.len(),
        };
        for known in &schema.attributes {
            if known.is_required || source.once_in(4) {
                call_change::set_attribute(&mut case, source, known.name, known.kind);
            }
        }
        case
    }
}

/// Parses an attribute: a quoted text, a list of texts or numbers in brackets, a tensor or a number.
fn parse_attribute(word: &str) -> Option<Attribute> {
    let text = |word: &str| Some(word.strip_prefix('\'')?.strip_suffix('\'')?.to_owned());
    if word.starts_with('\'') {
        return text(word).map(Attribute::String);
    }
    if let Some(list) = word.strip_prefix('[') {
        let items = || list.trim_end_matches(']').split(',').filter(|item| !item.is_empty());
        return Some(if list.contains('\'') {
            Attribute::Strings(items().map(text).collect::<Option<_>>()?)
        } else if list.contains('.') {
            Attribute::Floats(items().map(|item| item.parse().ok()).collect::<Option<_>>()?)
        } else {
            Attribute::Ints(items().map(|item| item.parse().ok()).collect::<Option<_>>()?)
        });
    }
    if word.contains('[') {
        return Some(Attribute::Tensor(parse_tensor(word)?.to_constant().ok()?));
    }
    if word.contains('.') {
        word.parse().ok().map(Attribute::Float)
    } else {
        word.parse().ok().map(Attribute::Int)
    }
}

/// Parses a tensor such as `f32[2,3]` or `i64[2]{0,1}`, perhaps broadcast to another shape, as `f32[1]->[4]`, or constant, as
/// `*f32[2]`.
fn parse_tensor(word: &str) -> Option<CallInput> {
    if let Some(word) = word.strip_prefix('*') {
        return Some(CallInput { is_constant: true, ..parse_tensor(word)? });
    }
    if let Some((word, dims)) = word.split_once("->") {
        let Attribute::Ints(dims) = parse_attribute(dims)? else { return None };
        return Some(CallInput { views: vec![InputView::Expand(dims)], ..parse_tensor(word)? });
    }
    let (dtype, rest) = word.split_once('[')?;
    let (dims, elements) = rest.split_once(']')?;
    let items = |list: &str| -> Vec<String> {
        list.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
    };
    let dims = items(dims).iter().map(|dim| dim.parse().ok()).collect::<Option<_>>()?;
    let mut given = CallInput::new(dtype.parse().ok()?, dims);
    let elements = items(elements.trim_matches(['{', '}']));
    if given.dtype == Dtype::String {
        given.texts = elements;
    } else {
        let number = |item: &String| {
            let float: f64 = item.parse().ok()?;
            Some(ElementValue { int: item.parse().unwrap_or(float as i64), float })
        };
        given.elements = elements.iter().map(number).collect::<Option<_>>()?;
    }
    Some(given)
}

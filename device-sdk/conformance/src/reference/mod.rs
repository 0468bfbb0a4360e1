//! What ops compute, written once more in plain `f64`, independently of any kernel.
//!
//! A reference is chosen for simplicity. It says which dtypes an op takes, which calls to try, and what they give. Op by op, this is
//! the definition of ONNX; where ONNX leaves a result open, such as the sign of 0 or an overflow of integers, no case asks for it.

mod array;
mod binary;
mod case;
mod indexing;
mod movement;
mod normalize;
mod product;
mod quantize;
mod reduce;
mod samples;
mod tolerance;
mod unary;
mod window;

use oarlock_abi::Dtype;

pub(crate) use array::{ReferenceArray, indices};
pub(crate) use case::{AttributeValue, ReferenceCall, ReferenceCase, ReferenceOutput};
pub(crate) use samples::CaseMaker;
pub(crate) use tolerance::{ToleranceClass, error_in_ulps};

use case::{AttributeSet, TermSum};
use samples::{ValueDomain, binary_cases, unary_cases};

use crate::elements::{is_float, is_unsigned};

/// The dtypes that a reference is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DtypeKinds {
    All,
    Numbers,
    SignedNumbers,
    Floats,
    Integers,
    Unsigned,
    Bool,
}

impl DtypeKinds {
    pub(crate) fn contains(self, dtype: Dtype) -> bool {
        let is_bool = dtype == Dtype::BOOL;
        match self {
            Self::All => true,
            Self::Numbers => !is_bool,
            Self::SignedNumbers => !is_unsigned(dtype),
            Self::Floats => is_float(dtype),
            Self::Integers => !is_float(dtype) && !is_bool,
            Self::Unsigned => is_unsigned(dtype) && !is_bool,
            Self::Bool => is_bool,
        }
    }
}

type UnaryFunction = fn(&ReferenceCall<'_>, f64) -> f64;
type BinaryFunction = fn(&ReferenceCall<'_>, f64, f64) -> f64;
type WholeFunction = fn(&ReferenceCall<'_>) -> Vec<ReferenceOutput>;

/// How outputs are computed, and with it which calls are tried.
#[derive(Clone, Copy)]
enum OpDefinition {
    Unary(ValueDomain, UnaryFunction),
    Binary(ValueDomain, ValueDomain, BinaryFunction),
    /// A question about one element.
    Test(ValueDomain, fn(&ReferenceCall<'_>, f64) -> bool),
    /// A question about two elements.
    Comparison(fn(f64, f64) -> bool),
    /// Any number of inputs, element by element.
    Several(fn(Vec<f64>) -> TermSum),
    /// Cases of its own.
    Whole(fn(CaseMaker) -> Vec<ReferenceCase>, WholeFunction),
}

/// The reference for one op.
pub(crate) struct ReferenceOp {
    pub(crate) name: &'static str,
    /// The versions of the op that this defines; 0 means all later ones.
    versions: (u32, u32),
    /// The dtypes of the operands: `T`, `U` (another one), `I` (an index: i32 or i64) or a name; `*` repeats the last one.
    pub(crate) operands: &'static str,
    pub(crate) kinds: DtypeKinds,
    pub(crate) tolerance: ToleranceClass,
    has_specials: bool,
    attributes: fn() -> Vec<AttributeSet>,
    definition: OpDefinition,
}

impl ReferenceOp {
    const fn new(
        name: &'static str,
        since: u32,
        (kinds, operands): (DtypeKinds, &'static str),
        tolerance: ToleranceClass,
        definition: OpDefinition,
    ) -> Self {
        let attributes = || vec![Vec::new()];
        Self {
            name,
            versions: (since, 0),
            operands,
            kinds,
            tolerance,
            has_specials: false,
            attributes,
            definition,
        }
    }

    const fn with_attributes(self, attributes: fn() -> Vec<AttributeSet>) -> Self {
        Self { attributes, ..self }
    }

    /// Also tries NaN, infinities and the ends of the range.
    const fn with_specials(self) -> Self {
        Self { has_specials: true, ..self }
    }

    /// For versions of the op up to this one.
    const fn until(self, last: u32) -> Self {
        Self { versions: (self.versions.0, last), ..self }
    }

    /// True if this defines the newest version that a kernel for these implements.
    fn defines(&self, newest: u32) -> bool {
        let (since, last) = self.versions;
        (newest == 0 || newest >= since) && (last == 0 || newest != 0 && newest <= last)
    }

    pub(crate) fn cases(&self, make: CaseMaker) -> Vec<ReferenceCase> {
        let attributes = (self.attributes)();
        match self.definition {
            OpDefinition::Unary(domain, _) | OpDefinition::Test(domain, _) => {
                unary_cases(make, domain, self.has_specials, &attributes)
            }
            OpDefinition::Comparison(_) => {
                let domains = (ValueDomain::Small, ValueDomain::Small);
                binary_cases(make, domains, self.has_specials, &attributes)
            }
            OpDefinition::Several(_) => binary::several_cases(make),
            OpDefinition::Binary(left, right, _) => {
                binary_cases(make, (left, right), self.has_specials, &attributes)
            }
            OpDefinition::Whole(cases, _) => cases(make),
        }
    }

    pub(crate) fn compute(&self, call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
        match self.definition {
            OpDefinition::Unary(_, element) => on_elements(call, |x| element(call, x)),
            OpDefinition::Test(_, element) => on_elements(call, |x| f64::from(u8::from(element(call, x)))),
            OpDefinition::Binary(_, _, element) => on_pairs(call, |x, y| element(call, x, y)),
            OpDefinition::Comparison(element) => on_pairs(call, |x, y| f64::from(u8::from(element(x, y)))),
            OpDefinition::Several(function) => vec![binary::compute_several(call, function)],
            OpDefinition::Whole(_, compute) => compute(call),
        }
    }
}

fn on_elements(call: &ReferenceCall<'_>, element: impl Fn(f64) -> f64) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let values = input.values.iter().map(|value| element(*value)).collect();
    vec![ReferenceArray::new(&input.dims, values).into()]
}

fn on_pairs(call: &ReferenceCall<'_>, element: impl Fn(f64, f64) -> f64) -> Vec<ReferenceOutput> {
    let (left, right) = (call.input(0), call.input(1));
    let dims = array::broadcast_dims([&*left.dims, &*right.dims]);
    let value = |at: &[usize]| element(left.broadcast_at(at), right.broadcast_at(at));
    vec![ReferenceArray::from_fn(&dims, value).into()]
}

/// The references for an op of ONNX in the newest version that a kernel implements (0 means all later ones), each for some dtypes.
pub(crate) fn find_references(op: &str, newest: u32) -> impl Iterator<Item = &'static ReferenceOp> {
    all_references().filter(move |known| known.name == op && known.defines(newest))
}

fn all_references() -> impl Iterator<Item = &'static ReferenceOp> {
    [
        unary::OPS,
        binary::OPS,
        reduce::OPS,
        normalize::OPS,
        product::OPS,
        window::OPS,
        movement::OPS,
        indexing::OPS,
        quantize::OPS,
    ]
    .into_iter()
    .flatten()
}

/// The tolerances and the ops that they are for, as a table for the documentation.
pub fn describe_tolerances() -> String {
    let mut table = "| tolerance in ulp: f32 and f64 | f16 and bf16 | ops |\n|---|---|---|\n".to_owned();
    for class in ToleranceClass::ALL {
        let names: std::collections::BTreeSet<&str> =
            all_references().filter(|op| op.tolerance == class).map(|op| op.name).collect();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let (wide, narrow) = (class.ulps(Dtype::F32), class.ulps(Dtype::F16));
        table += &format!("| {wide} | {narrow} | {} |\n", names.join(" "));
    }
    table
}

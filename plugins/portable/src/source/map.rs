//! Element-wise programs.

use std::fmt::Write as _;

use oarlock_sdk::Dtype;

use super::element::{self, arithmetic_definitions, float_type};
use super::template::{
    NamedOperand, SourceTemplate, index_declarations, operand_accessors, operand_declarations,
    operand_parameters, walk_struct,
};
use crate::operand_walk::ElementAccess;

// With 8 inputs of 12 dimensions the arguments just fit into the 1,024 bytes that OpenCL promises.
pub(crate) const INPUT_NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// An expression over the input elements `a`, `b` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ElementFormula {
    /// An expression. `i` is the index of the element, `p` to `s` are parameters.
    Plain(&'static str),
    /// Integer division of `a` by `b`; a `b` of 0 is reported as a fault.
    Division(&'static str),
    /// A binary function or macro, folded over all inputs from left to right.
    Fold(&'static str),
    Mean,
    /// `a` in another dtype, saturated to its range.
    Cast,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MapProgram {
    pub(crate) formula: ElementFormula,
    /// The dtype of the arithmetic.
    pub(crate) compute: Dtype,
    pub(crate) inputs: Vec<(Dtype, ElementAccess)>,
    pub(crate) output: (Dtype, ElementAccess),
    /// Number of scalar parameters after the operands: 64-bit integers for integer dtypes, `F` otherwise.
    pub(crate) parameters: u8,
    /// Rank of the walk; 0 if no operand is strided.
    pub(crate) rank: u8,
    pub(crate) is_wide: bool,
}

impl MapProgram {
    pub(super) fn source_body(&self) -> String {
        let inputs = || self.inputs.iter().zip(INPUT_NAMES);
        let mut operands: Vec<NamedOperand<'_>> =
            inputs().map(|((dtype, _), name)| NamedOperand { name, dtype: *dtype }).collect();
        operands.push(NamedOperand { name: "y", dtype: self.output.0 });
        let mut accesses: Vec<(&str, ElementAccess)> =
            inputs().map(|((_, access), name)| (name, *access)).collect();
        accesses.push(("y", self.output.1));
        let (walk_type, walk_parameter) = walk_struct("walk", self.rank, &accesses);
        // Every element is loaded into a variable before the store: in place, the output is the memory of an input.
        let mut values = String::new();
        for ((dtype, _), name) in inputs() {
            // `store_statement` shadows the operand `a` by its element, so the elements get names of their own here. Writing to a
            // string cannot fail.
            let _ = writeln!(
                values,
                "    {} {name}_value = load_{}({name}, {name}_at);",
                element::computed_type(*dtype),
                element::dtype_name(*dtype)
            );
        }
        let template = SourceTemplate::new(include_str!("../../kernels/map.c"))
            .fill_gap("walk", &walk_type)
            .fill_gap(
                "parameters",
                &(operand_parameters(&operands) + &walk_parameter + &self.parameter_list()),
            )
            .fill_gap("places", &operand_declarations(&operands))
            .fill_gap("steps", &index_declarations("walk", self.rank, "i", &accesses))
            .fill_gap("values", &values)
            .fill_gap("fault", if self.can_fail() { ", GLOBAL u32 *fault" } else { "" })
            .fill_gap("store", &self.store_statement());
        arithmetic_definitions(self.compute) + &operand_accessors(&operands) + &template.into_source()
    }

    /// True if the program may report a fault.
    pub(super) fn can_fail(&self) -> bool {
        matches!(self.formula, ElementFormula::Division(_))
    }

    fn is_integer(&self) -> bool {
        element::arithmetic_kind(self.compute) != element::ArithmeticKind::Float
    }

    fn parameter_list(&self) -> String {
        let of = if self.is_integer() { "i64" } else { float_type(self.compute) };
        ["p", "q", "r", "s"]
            .iter()
            .take(self.parameters.into())
            .map(|name| format!("{of} {name}, "))
            .collect()
    }

    /// The statement that stores the result, in a scope in which `a` is an element and shadows the operand.
    fn store_statement(&self) -> String {
        let elements: String = self
            .inputs
            .iter()
            .zip(INPUT_NAMES)
            .map(|((dtype, _), name)| format!("{} {name} = {name}_value; ", element::computed_type(*dtype)))
            .collect();
        let result = element::computed_type(self.output.0);
        let expression = match self.formula {
            ElementFormula::Plain(text) | ElementFormula::Division(text) => text.to_owned(),
            ElementFormula::Fold(function) => self.fold_expression(function),
            ElementFormula::Mean => format!("({}) / (T){}", self.fold_expression("plus"), self.inputs.len()),
            ElementFormula::Cast => self.cast_expression(),
        };
        // A kernel cannot raise an error, so the work-item goes on and the host reads the word later. No atomic is needed, since every
        // work-item writes the same number.
        let check = if self.can_fail() { "if (b == 0) *fault = 2; " } else { "" };
        format!(
            "{{ {elements}{check}{result} result = ({result})({expression}); STORE_Y(y, y_at, result); }}"
        )
    }

    fn fold_expression(&self, function: &str) -> String {
        let names = &INPUT_NAMES[..self.inputs.len()];
        // One order for all devices: sums of floats depend on it.
        names[1..].iter().fold(names[0].to_owned(), |left, name| format!("{function}({left}, {name})"))
    }

    /// Saturates numbers beyond the range of an integer and maps NaN to 0: C leaves both undefined, and devices differ.
    fn cast_expression(&self) -> String {
        let from_float = element::arithmetic_kind(self.compute) == element::ArithmeticKind::Float;
        let bits = 8 * element::element_size(self.output.0) as i32;
        // Powers of two are exact in `f32`. The greatest number of a wide integer is not: it would round up and out of the range.
        let limits = match element::arithmetic_kind(self.output.0) {
            element::ArithmeticKind::Truth => return "a != 0".to_owned(),
            element::ArithmeticKind::Signed if from_float => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)),
            element::ArithmeticKind::Unsigned if from_float => (0.0, 2f64.powi(bits)),
            // The plain conversion will do: integers keep their low bits, and floats round to nearest.
            _ => return "a".to_owned(),
        };
        let result = element::computed_type(self.output.0);
        let (low, high) = limits;
        // C has no negative literals, and the magnitude of the least number does not fit its type, so 1 is subtracted. On Linux `L` means
        // 64 bits in all three languages; OpenCL C reserves `long long`.
        let (least, greatest) = match element::arithmetic_kind(self.output.0) {
            element::ArithmeticKind::Signed => {
                let greatest = i64::MAX >> (64 - bits);
                (format!("(-{greatest}L - 1)"), format!("{greatest}L"))
            }
            _ => ("0".to_owned(), format!("{}UL", u64::MAX >> (64 - bits))),
        };
        format!(
            "IS_NAN(a) ? ({result})0 : a <= REAL({low:.1}) ? ({result}){least} : a >= REAL({high:.1}) ? ({result}){greatest} : \
             ({result})a"
        )
    }
}

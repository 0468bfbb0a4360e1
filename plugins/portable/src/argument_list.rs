//! Arguments of one launch, in the order of the kernel source's parameters.

use oarlock_sdk::{Dtype, Result};

use crate::device::DeviceSession;
use crate::gpu::{Gpu, LaunchArgument};
use crate::operand_view::OperandView;
use crate::operand_walk::OperandWalk;
use crate::source::{ArithmeticKind, arithmetic_kind};
use crate::touched_bytes::TouchedBytes;

/// A scalar parameter of an [`ElementFormula`](crate::source::ElementFormula).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FormulaNumber {
    Int(i64),
    Float(f64),
}

impl FormulaNumber {
    /// Encodes the number for a source with this compute dtype: 64-bit integers for integer dtypes, the float type `F` otherwise.
    fn to_kernel_bytes(self, compute: Dtype) -> Vec<u8> {
        let float = match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        };
        // Drivers check an argument by its size alone, so the bytes must be as wide as the parameter: `F`, or 64 bits.
        match (self, arithmetic_kind(compute)) {
            (_, ArithmeticKind::Float) if compute == Dtype::F64 => float.to_ne_bytes().to_vec(),
            (_, ArithmeticKind::Float) => (float as f32).to_ne_bytes().to_vec(),
            (Self::Int(number), _) => number.to_ne_bytes().to_vec(),
            // A cast of Rust saturates and makes NaN 0, so no attribute can lead to undefined behavior.
            (Self::Float(number), _) => (number as i64).to_ne_bytes().to_vec(),
        }
    }
}

enum ArgumentItem {
    Memory(TouchedBytes),
    Value(Vec<u8>),
}

#[derive(Default)]
pub(crate) struct ArgumentList(Vec<ArgumentItem>);

impl ArgumentList {
    /// Appends an operand as two arguments: its block, and the byte offset of its first element.
    pub(crate) fn with_operand(mut self, view: &OperandView) -> Self {
        // Two arguments, because OpenCL takes whole buffers: a pointer into the middle of one cannot be passed.
        self.0.push(ArgumentItem::Memory(view.touched_bytes()));
        self.with_value(view.byte_offset().to_ne_bytes().to_vec())
    }

    pub(crate) fn with_operands<'a>(self, views: impl IntoIterator<Item = &'a OperandView>) -> Self {
        views.into_iter().fold(self, Self::with_operand)
    }

    /// Appends the walk struct, unless the kernel needs no dimensions: then the source has no such parameter.
    pub(crate) fn with_walk(self, walk: &OperandWalk) -> Self {
        let bytes = walk.to_bytes();
        if bytes.is_empty() { self } else { self.with_value(bytes) }
    }

    /// Appends one 64-bit integer, or a struct of several.
    pub(crate) fn with_integers(self, numbers: &[i64]) -> Self {
        // A struct of nothing but `i64` has no padding, so every language lays it out alike.
        self.with_value(numbers.iter().flat_map(|number| number.to_ne_bytes()).collect())
    }

    pub(crate) fn with_numbers(self, compute: Dtype, numbers: &[FormulaNumber]) -> Self {
        numbers.iter().fold(self, |arguments, number| arguments.with_value(number.to_kernel_bytes(compute)))
    }

    fn with_value(mut self, bytes: Vec<u8>) -> Self {
        self.0.push(ArgumentItem::Value(bytes));
        self
    }

    /// Resolves the arguments into what the driver takes. Checks that each operand lies inside its block; an empty operand
    /// becomes a null pointer.
    pub(crate) fn resolve_arguments<G: Gpu>(
        &self,
        session: &DeviceSession<G>,
    ) -> Result<Vec<LaunchArgument<'_, G::Block>>> {
        let argument = |item| match item {
            // No work-item reads an empty operand, and it may have no block to look up.
            &ArgumentItem::Memory(TouchedBytes { begin, end, .. }) if begin == end => {
                Ok(LaunchArgument::Memory(None))
            }
            &ArgumentItem::Memory(TouchedBytes { block, begin, end }) => {
                Ok(LaunchArgument::Memory(Some(session.block_range(block, begin, end)?)))
            }
            ArgumentItem::Value(bytes) => Ok(LaunchArgument::Value(bytes)),
        };
        self.0.iter().map(argument).collect()
    }
}

//! The arguments of one launch, in the order of a source's parameters.

use oarlock_sdk::{Dtype, Memory, Result};

use crate::device::Session;
use crate::gpu::{Argument, Gpu};
use crate::source::{Kind, kind};
use crate::view::View;
use crate::walk::Walk;

/// A number that a formula takes as a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    /// The number as a source that computes in a dtype takes it: 64-bit integers beside integers, else `F`.
    fn bytes(self, compute: Dtype) -> Vec<u8> {
        let float = match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        };
        match (self, kind(compute)) {
            (_, Kind::Float) if compute == Dtype::F64 => float.to_ne_bytes().to_vec(),
            (_, Kind::Float) => (float as f32).to_ne_bytes().to_vec(),
            (Self::Int(number), _) => number.to_ne_bytes().to_vec(),
            (Self::Float(number), _) => (number as i64).to_ne_bytes().to_vec(),
        }
    }
}

/// The bytes of a block that are touched: from `begin` to before `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) block: Memory,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

enum Item {
    Memory(Reach),
    Value(Vec<u8>),
}

/// Arguments as they are gathered.
#[derive(Default)]
pub(crate) struct Arguments(Vec<Item>);

impl Arguments {
    /// An operand: its block and where in it the operand starts.
    pub(crate) fn operand(mut self, view: &View) -> Self {
        self.0.push(Item::Memory(view.reach()));
        self.value(view.offset().to_ne_bytes().to_vec())
    }

    pub(crate) fn operands<'a>(self, views: impl IntoIterator<Item = &'a View>) -> Self {
        views.into_iter().fold(self, Self::operand)
    }

    /// A walk, which is no argument at all where the kernel needs no dimensions.
    pub(crate) fn walk(self, walk: &Walk) -> Self {
        let bytes = walk.bytes();
        if bytes.is_empty() { self } else { self.value(bytes) }
    }

    /// One 64-bit integer, or a struct of several.
    pub(crate) fn integers(self, numbers: &[i64]) -> Self {
        self.value(numbers.iter().flat_map(|number| number.to_ne_bytes()).collect())
    }

    pub(crate) fn numbers(self, compute: Dtype, numbers: &[Number]) -> Self {
        numbers.iter().fold(self, |arguments, number| arguments.value(number.bytes(compute)))
    }

    fn value(mut self, bytes: Vec<u8>) -> Self {
        self.0.push(Item::Value(bytes));
        self
    }

    /// The arguments as a driver takes them. Nothing outside of a block is touched, and nothing at all of an empty operand.
    pub(crate) fn resolve<G: Gpu>(&self, session: &Session<G>) -> Result<Vec<Argument<'_, G::Block>>> {
        let argument = |item| match item {
            &Item::Memory(Reach { begin, end, .. }) if begin == end => Ok(Argument::Memory(None)),
            &Item::Memory(Reach { block, begin, end }) => {
                Ok(Argument::Memory(Some(session.range(block, begin, end)?)))
            }
            Item::Value(bytes) => Ok(Argument::Value(bytes)),
        };
        self.0.iter().map(argument).collect()
    }
}

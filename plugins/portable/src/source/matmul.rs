//! Matrix products.

use oarlock_sdk::Dtype;

use super::element::{self, computed, float, unsigned};
use super::template::{Named, Template, accessors, parameters, places, steps, walk};
use crate::walk::Access;

/// A matrix product, for each of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Matmul {
    pub(crate) dtype: Dtype,
    /// How the matrices of the batch are found.
    pub(crate) a: Access,
    pub(crate) b: Access,
    /// Whether the elements of a factor lie one after the other along the dimension that is summed over.
    pub(crate) a_along_depth: bool,
    pub(crate) b_along_depth: bool,
    /// Whether the product is scaled by `alpha` and, with a third operand, that one by `beta` and added.
    pub(crate) is_scaled: bool,
    pub(crate) has_c: bool,
    /// The rank of the walk through the batch.
    pub(crate) rank: u8,
    pub(crate) is_wide: bool,
}

impl Matmul {
    pub(super) fn body(&self) -> String {
        let names = if self.has_c { &["a", "b", "c", "y"][..] } else { &["a", "b", "y"] };
        let operands: Vec<Named<'_>> = names.iter().map(|name| Named { name, dtype: self.dtype }).collect();
        let accesses = [("a", self.a), ("b", self.b)];
        let (walk_type, walk_parameter) = walk("walk", self.rank, &accesses);
        let float = float(self.dtype);
        let scales = if self.is_scaled { format!("{float} alpha, {float} beta, ") } else { String::new() };
        let template = Template::new(include_str!("../../kernels/matmul.c"))
            .fill("walk", &walk_type)
            .fill("parameters", &(parameters(&operands) + &walk_parameter + &scales))
            .fill("places", &places(&operands))
            .fill("steps", &steps("walk", self.rank, "i", &accesses));
        let summed =
            if element::kind(self.dtype) == element::Kind::Float { computed } else { unsigned }(self.dtype);
        let flag = u8::from;
        format!(
            "#define A {summed}\n#define R {}\n#define A_ALONG_DEPTH {}\n#define B_ALONG_DEPTH {}\n{}{}{}",
            computed(self.dtype),
            flag(self.a_along_depth),
            flag(self.b_along_depth),
            if self.is_scaled { "#define SCALED\n" } else { "" },
            accessors(&operands),
            template.finish()
        )
    }
}

//! Products of elements that are stored in one type and computed in another.

#![expect(unsafe_code, reason = "an output is written by several threads")]

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::f16_conversion::round_to_f16;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_sdk::{Element, bf16, f16};

use super::buffer::{DisjointSlice, ScratchBuffer};
use super::{BatchedGemm, ConvertTo, GemmElement, GemmEpilogue, GemmOperand, GemmShape, OutputBlock};

pub trait StoredElement: Element + ConvertTo<Self::ComputeType> {
    /// The type of the sums.
    type ComputeType: GemmElement;

    /// Rounds a sum to the nearest element.
    fn from_computed(number: Self::ComputeType) -> Self;

    /// Rounds as many sums as there are elements.
    fn store_computed(_: Isa, numbers: &[Self::ComputeType], elements: &mut [Self]) {
        for (element, number) in elements.iter_mut().zip(numbers) {
            *element = Self::from_computed(*number);
        }
    }

    fn scale_computed(number: Self::ComputeType, factor: f64) -> Self::ComputeType;
}

macro_rules! floats {
    ($($element:ty => $computed:ty: $store:expr $(, $store_all:ident)?;)*) => {
        $(impl StoredElement for $element {
            type ComputeType = $computed;

            #[inline(always)]
            fn from_computed(number: $computed) -> Self {
                $store(number)
            }

            $(fn store_computed(isa: Isa, numbers: &[$computed], elements: &mut [Self]) {
                $store_all(isa, numbers, elements);
            })?

            #[inline(always)]
            fn scale_computed(number: $computed, factor: f64) -> $computed {
                number * factor as $computed
            }
        })*
    };
}

macro_rules! integers {
    ($($element:ty => $computed:ty),*) => {
        $(impl StoredElement for $element {
            type ComputeType = $computed;

            // Truncates, so the result wraps around as sums in the element's type would.
            fn from_computed(number: $computed) -> Self {
                number as Self
            }

            fn scale_computed(number: $computed, factor: f64) -> $computed {
                if factor == 1.0 { number } else { (number as f64 * factor) as $computed }
            }
        })*
    };
}

macro_rules! wide_unsigned_integers {
    ($($element:ty => $computed:ty),*) => {
        $(impl StoredElement for $element {
            type ComputeType = $computed;

            fn from_computed(number: $computed) -> Self {
                number.cast_unsigned()
            }

            fn scale_computed(number: $computed, factor: f64) -> $computed {
                if factor == 1.0 {
                    return number;
                }
                ((number.cast_unsigned() as f64 * factor) as Self).cast_signed()
            }
        })*
    };
}

floats! {
    f32 => f32: |number| number;
    f64 => f64: |number| number;
    f16 => f32: f16::from_f32, round_to_f16;
    bf16 => f32: bf16::from_f32;
}
integers!(i32 => i32, i64 => i64, i8 => i32, u8 => i32, i16 => i32, u16 => i32);
wide_unsigned_integers!(u32 => i32, u64 => i64);

/// Computes a batch of products, runs `finish` on each block, and stores its elements.
pub fn compute_stored_gemm<E: StoredElement>(
    team: &dyn ThreadTeam,
    sizes: GemmShape,
    sides: (GemmOperand<'_, E::ComputeType>, GemmOperand<'_, E::ComputeType>),
    output: &mut [E],
    epilogue: Option<&GemmEpilogue<'_, E::ComputeType>>,
    scratch: &mut ScratchBuffer<'_>,
) {
    let (left, right) = sides;
    assert!(output.len() == sizes.items * sizes.rows * sizes.columns, "an output of another size");
    if let Some(output) = as_computed_mut(output) {
        BatchedGemm { sizes, left, right, output: Some(output), epilogue }.compute(team, scratch);
        return;
    }
    let (output, isa) = (DisjointSlice::new(output), team.isa());
    let store: &GemmEpilogue<'_, E::ComputeType> = &|mut part| {
        let (item, columns) = (part.item, part.columns.clone());
        if let Some(epilogue) = epilogue {
            epilogue(part.reborrow());
        }
        for (row, numbers) in part.rows_mut() {
            let start = (item * sizes.rows + row) * sizes.columns;
            // SAFETY: each element of the output is finished once, by one thread.
            let elements = unsafe { output.range_mut(start + columns.start..start + columns.end) };
            E::store_computed(isa, numbers, elements);
        }
    };
    BatchedGemm { sizes, left, right, output: None, epilogue: Some(store) }.compute(team, scratch);
}

/// Adds a bias to each row. There are consecutive biases for this many `products`, which repeat over the batch.
pub fn add_bias<E: StoredElement>(
    bias: &[E],
    products: usize,
) -> impl Fn(OutputBlock<'_, E::ComputeType>) + Sync {
    move |mut part| {
        let rows = bias.len() / products;
        let first = part.item % products * rows;
        for (row, numbers) in part.rows_mut() {
            let bias = bias[first + row].convert();
            numbers.iter_mut().for_each(|number| *number = number.plus(bias));
        }
    }
}

/// The elements as numbers to compute with; `None` unless both have the same bits.
pub fn as_computed<E: StoredElement>(elements: &[E]) -> Option<&[E::ComputeType]> {
    if !<E as ConvertTo<E::ComputeType>>::IS_IDENTITY {
        return None;
    }
    // SAFETY: elements are numbers of the same bits.
    Some(unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) })
}

/// Mutable version of [`as_computed`].
fn as_computed_mut<E: StoredElement>(elements: &mut [E]) -> Option<&mut [E::ComputeType]> {
    if !<E as ConvertTo<E::ComputeType>>::IS_IDENTITY {
        return None;
    }
    // SAFETY: elements are numbers of the same bits.
    Some(unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), elements.len()) })
}

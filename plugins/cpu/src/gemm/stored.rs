//! Products of elements that are computed with in another type than they are stored in.

#![expect(unsafe_code, reason = "an output is written by several threads")]

use std::any::Any;

use oarlock_sdk::{Element, bf16, f16};

use super::buffer::{Parts, Scratch};
use super::{Convert, Finish, Finished, Number, Product, Side, Sizes, Team};

/// An element of an operand or an output of a product.
pub(crate) trait Stored: Element + Convert<Self::Computed> {
    /// The type that sums are computed in.
    type Computed: Number;

    /// The element nearest to a number.
    fn store(number: Self::Computed) -> Self;

    /// A number times a factor.
    fn scale(number: Self::Computed, factor: f64) -> Self::Computed;
}

macro_rules! floats {
    ($($element:ty => $computed:ty: $store:expr),*) => {
        $(impl Stored for $element {
            type Computed = $computed;

            #[inline(always)]
            fn store(number: $computed) -> Self {
                $store(number)
            }

            #[inline(always)]
            fn scale(number: $computed, factor: f64) -> $computed {
                number * factor as $computed
            }
        })*
    };
}

macro_rules! integers {
    ($($element:ty => $computed:ty),*) => {
        $(impl Stored for $element {
            type Computed = $computed;

            // What does not fit leaves its lowest bits, as in sums of the element itself.
            fn store(number: $computed) -> Self {
                number as Self
            }

            fn scale(number: $computed, factor: f64) -> $computed {
                if factor == 1.0 { number } else { (number as f64 * factor) as $computed }
            }
        })*
    };
}

floats!(f32 => f32: |number| number, f64 => f64: |number| number, f16 => f32: f16::from_f32, bf16 => f32: bf16::from_f32);
integers!(i32 => i32, i64 => i64, u32 => u32, u64 => u64, i8 => i32, u8 => i32, i16 => i32, u16 => i32);

/// Computes products and stores their elements, one product after the other, once `finish` has changed them.
pub(crate) fn compute_stored<E: Stored>(
    team: &dyn Team,
    sizes: Sizes,
    sides: (Side<'_, E::Computed>, Side<'_, E::Computed>),
    output: &mut [E],
    finish: Option<&Finish<'_, E::Computed>>,
    scratch: &mut Scratch<'_>,
) {
    let (left, right) = sides;
    assert!(output.len() == sizes.items * sizes.rows * sizes.columns, "an output of another size");
    if let Some(output) = same(output) {
        Product { sizes, left, right, output: Some(output), finish }.compute(team, scratch);
        return;
    }
    let output = Parts::new(output);
    let store: &Finish<'_, E::Computed> = &|mut part| {
        let (item, columns) = (part.item, part.columns.clone());
        if let Some(finish) = finish {
            finish(part.reborrow());
        }
        for (row, numbers) in part.each_row() {
            let start = (item * sizes.rows + row) * sizes.columns;
            // SAFETY: each element of the output is finished once, by one thread.
            let elements = unsafe { output.part(start + columns.start..start + columns.end) };
            for (element, number) in elements.iter_mut().zip(numbers) {
                *element = E::store(*number);
            }
        }
    };
    Product { sizes, left, right, output: None, finish: Some(store) }.compute(team, scratch);
}

/// Adds a bias to each row of products, of which so many share the biases one after the other.
pub(crate) fn add_bias<E: Stored>(bias: &[E], products: usize) -> impl Fn(Finished<'_, E::Computed>) + Sync {
    move |mut part| {
        let rows = bias.len() / products;
        let first = part.item % products * rows;
        for (row, numbers) in part.each_row() {
            let bias = bias[first + row].convert();
            numbers.iter_mut().for_each(|number| *number = number.plus(bias));
        }
    }
}

/// The elements as the numbers they are computed with, when the two types are one.
pub(crate) fn same_numbers<E: Stored>(elements: &[E]) -> Option<&[E::Computed]> {
    let none: &dyn Any = &None::<E>;
    if !none.is::<Option<E::Computed>>() {
        return None;
    }
    // SAFETY: the two types are one.
    Some(unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) })
}

/// As [`same_numbers`], to be written.
fn same<E: Stored>(elements: &mut [E]) -> Option<&mut [E::Computed]> {
    let none: &dyn Any = &None::<E>;
    if !none.is::<Option<E::Computed>>() {
        return None;
    }
    // SAFETY: the two types are one.
    Some(unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), elements.len()) })
}

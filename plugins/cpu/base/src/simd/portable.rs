//! Vectors in plain Rust, for machines whose instruction set has none of its own here. Lanes are spelled out: without optimization,
//! as tests are compiled, iterators would take several times as long.

use super::float_vector::{F32Vector, FloatVector};
use super::integer_vector::{IntegerVector, QUAD, SIGN_BIT};

/// Four `f32`, an xmm register on x86.
#[derive(Clone, Copy)]
pub struct PortableF32Vector(pub(super) [f32; 4]);

impl PortableF32Vector {
    #[inline(always)]
    fn zip_lanes(self, other: Self, function: impl Fn(f32, f32) -> f32) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([function(a, e), function(b, f), function(c, g), function(d, h)])
    }
}

impl FloatVector<f32> for PortableF32Vector {
    const LANES: usize = 4;
    const HAS_FMA: bool = false;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 4])
    }

    #[inline(always)]
    unsafe fn load(place: *const f32) -> Self {
        // SAFETY: the caller guarantees all lanes.
        Self(unsafe { place.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_partial(place: *const f32, count: usize) -> Self {
        // SAFETY: the caller guarantees these lanes.
        Self(std::array::from_fn(|lane| if lane < count { unsafe { *place.add(lane) } } else { 0.0 }))
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut f32) {
        // SAFETY: the caller guarantees all lanes.
        unsafe { place.cast::<[f32; 4]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn store_partial(self, place: *mut f32, count: usize) {
        for (lane, value) in self.0.into_iter().enumerate().take(count) {
            // SAFETY: the caller guarantees these lanes.
            unsafe { *place.add(lane) = value };
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a + b)
    }

    #[inline(always)]
    fn subtract(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a - b)
    }

    #[inline(always)]
    fn multiply(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a * b)
    }

    #[inline(always)]
    fn divide(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a / b)
    }

    #[inline(always)]
    fn add_product(self, left: Self, right: Self) -> Self {
        self.add(left.multiply(right))
    }

    #[inline(always)]
    fn max(self, low: Self) -> Self {
        self.zip_lanes(low, |a, low| if a < low { low } else { a })
    }

    #[inline(always)]
    fn min(self, high: Self) -> Self {
        self.zip_lanes(high, |a, high| if a > high { high } else { a })
    }

    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.into_iter().all(f32::is_finite)
    }
}

impl F32Vector for PortableF32Vector {}

/// Four sums, an xmm register on x86.
#[derive(Clone, Copy)]
pub struct PortableI32Vector([i32; 4]);

impl IntegerVector for PortableI32Vector {
    const LANES: usize = 4;

    type Inputs = [u8; QUAD];
    type Weights = [[i8; QUAD]; 4];

    #[inline(always)]
    unsafe fn load(place: *const i32) -> Self {
        // SAFETY: the caller guarantees all lanes.
        Self(unsafe { place.cast::<[i32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, place: *mut i32) {
        // SAFETY: the caller guarantees all lanes.
        unsafe { place.cast::<[i32; 4]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs {
        // SAFETY: the caller guarantees four bytes.
        let inputs = unsafe { place.cast::<[u8; QUAD]>().read() };
        if SIGNED { inputs.map(|input| input ^ SIGN_BIT) } else { inputs }
    }

    #[inline(always)]
    unsafe fn load_weights(place: *const i8) -> Self::Weights {
        // SAFETY: the caller guarantees four bytes for each sum.
        unsafe { place.cast::<[[i8; QUAD]; 4]>().read() }
    }

    #[inline(always)]
    fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, weights);
        Self([add_quad(a, inputs, e), add_quad(b, inputs, f), add_quad(c, inputs, g), add_quad(d, inputs, h)])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a.wrapping_add(e), b.wrapping_add(f), c.wrapping_add(g), d.wrapping_add(h)])
    }
}

#[inline(always)]
fn add_quad(sum: i32, inputs: [u8; QUAD], weights: [i8; QUAD]) -> i32 {
    let product = |place: usize| i32::from(inputs[place]) * i32::from(weights[place]);
    sum.wrapping_add(product(0)).wrapping_add(product(1)).wrapping_add(product(2)).wrapping_add(product(3))
}

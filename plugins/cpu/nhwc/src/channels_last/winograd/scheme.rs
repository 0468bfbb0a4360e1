//! The transforms of Winograd's algorithm. For a window of three and `OUT` outputs, polynomials are evaluated at `OUT + 2` points,
//! and each point needs one product. The points are 0, infinity and pairs of a number and its negative, which share the even and
//! odd parts of a polynomial.

use oarlock_cpu_base::simd::F32Vector;

/// The transforms along one axis.
pub(super) trait WinogradScheme<const OUT: usize, const POINTS: usize>: Copy + Send + Sync {
    /// Evaluates the inputs at the points.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of `V`.
    unsafe fn transform_input<V: F32Vector>(inputs: [V; POINTS]) -> [V; POINTS];

    /// Interpolates the outputs from the products at the points.
    ///
    /// # Safety
    ///
    /// As for [`Self::transform_input`].
    unsafe fn transform_output<V: F32Vector>(products: [V; POINTS]) -> [V; OUT];

    /// Evaluates a window at the points. It computes in `f64`, because weights are transformed only once.
    fn transform_weights(weights: [f64; 3]) -> [f64; POINTS];
}

/// Two outputs from the points 0, 1, -1 and infinity.
#[derive(Clone, Copy)]
pub(super) struct TwoOutputScheme;

#[expect(unsafe_code, reason = "vectors of a kind may only be made where the machine has its instructions")]
impl WinogradScheme<2, 4> for TwoOutputScheme {
    #[inline(always)]
    unsafe fn transform_input<V: F32Vector>([a, b, c, d]: [V; 4]) -> [V; 4] {
        [a.subtract(c), b.add(c), c.subtract(b), d.subtract(b)]
    }

    #[inline(always)]
    unsafe fn transform_output<V: F32Vector>([zero, plus, minus, infinity]: [V; 4]) -> [V; 2] {
        [zero.add(plus).add(minus), plus.subtract(minus).add(infinity)]
    }

    #[inline(always)]
    fn transform_weights([a, b, c]: [f64; 3]) -> [f64; 4] {
        [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c]
    }
}

/// Four outputs from the points 0, ±A, ±B and infinity. Points whose powers stay near 1 lose the fewest digits, even though they
/// are neither integers nor powers of 2.
#[derive(Clone, Copy)]
pub(super) struct FourOutputScheme;

impl FourOutputScheme {
    const A: f64 = 0.625;
    const B: f64 = 1.5;
    const A2: f64 = Self::A * Self::A;
    const B2: f64 = Self::B * Self::B;
}

#[expect(unsafe_code, reason = "vectors of a kind may only be made where the machine has its instructions")]
impl WinogradScheme<4, 6> for FourOutputScheme {
    #[inline(always)]
    unsafe fn transform_input<V: F32Vector>([d0, d1, d2, d3, d4, d5]: [V; 6]) -> [V; 6] {
        // SAFETY: the caller guarantees the instructions.
        let of = |value: f64| unsafe { V::splat(value as f32) };
        let (even_a, odd_a) = (d4.add_product(d2, of(-Self::B2)), d3.add_product(d1, of(-Self::B2)));
        let (even_b, odd_b) = (d4.add_product(d2, of(-Self::A2)), d3.add_product(d1, of(-Self::A2)));
        let (product, sum) = (of(Self::A2 * Self::B2), of(-Self::A2 - Self::B2));
        [
            d4.add_product(d2, sum).add_product(d0, product),
            even_a.add_product(odd_a, of(Self::A)),
            even_a.add_product(odd_a, of(-Self::A)),
            even_b.add_product(odd_b, of(Self::B)),
            even_b.add_product(odd_b, of(-Self::B)),
            d5.add_product(d3, sum).add_product(d1, product),
        ]
    }

    #[inline(always)]
    unsafe fn transform_output<V: F32Vector>([zero, a, minus_a, b, minus_b, infinity]: [V; 6]) -> [V; 4] {
        // SAFETY: the caller guarantees the instructions.
        let of = |value: f64| unsafe { V::splat(value as f32) };
        let (sum_a, difference_a) = (a.add(minus_a), a.subtract(minus_a));
        let (sum_b, difference_b) = (b.add(minus_b), b.subtract(minus_b));
        [
            zero.add(sum_a).add(sum_b),
            difference_a.multiply(of(Self::A)).add_product(difference_b, of(Self::B)),
            sum_a.multiply(of(Self::A2)).add_product(sum_b, of(Self::B2)),
            infinity
                .add_product(difference_a, of(Self::A2 * Self::A))
                .add_product(difference_b, of(Self::B2 * Self::B)),
        ]
    }

    #[inline(always)]
    fn transform_weights([g0, g1, g2]: [f64; 3]) -> [f64; 6] {
        let at = |point: f64, scale: f64| (g0 + point * (g1 + point * g2)) * scale;
        let scale_a = 0.5 / (Self::A2 * (Self::A2 - Self::B2));
        let scale_b = 0.5 / (Self::B2 * (Self::B2 - Self::A2));
        [
            g0 * (1.0 / (Self::A2 * Self::B2)),
            at(Self::A, scale_a),
            at(-Self::A, scale_a),
            at(Self::B, scale_b),
            at(-Self::B, scale_b),
            g2,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oarlock_cpu_base::simd::{FloatVector, PortableF32Vector};

    #[expect(unsafe_code, reason = "vectors are made, of a kind that every machine has")]
    fn check_scheme<S: WinogradScheme<OUT, POINTS>, const OUT: usize, const POINTS: usize>(_: S) {
        let weights = [0.5, -1.25, 2.0];
        let inputs: [f64; POINTS] =
            std::array::from_fn(|place| (place * place) as f64 - 3.0 * place as f64 + 1.0);
        // SAFETY: this kind of vector needs no special instructions.
        let transformed =
            unsafe { S::transform_input(inputs.map(|value| PortableF32Vector::splat(value as f32))) };
        let window = S::transform_weights(weights);
        let mut products = transformed;
        for (product, factor) in products.iter_mut().zip(window) {
            // SAFETY: as above.
            *product = product.multiply(unsafe { PortableF32Vector::splat(factor as f32) });
        }
        // SAFETY: as above.
        let outputs = unsafe { S::transform_output(products) };
        for (place, output) in outputs.into_iter().enumerate() {
            let expected: f64 = (0..3).map(|step| inputs[place + step] * weights[step]).sum();
            let mut found = [0.0; 4];
            // SAFETY: there is room for as many lanes.
            unsafe { output.store(found.as_mut_ptr()) };
            assert!(
                found.iter().all(|found| (f64::from(*found) - expected).abs() < 1e-4),
                "{found:?} {expected}"
            );
        }
    }

    #[test]
    fn products_at_the_points_are_a_window_that_slides() {
        check_scheme(TwoOutputScheme);
        check_scheme(FourOutputScheme);
    }
}

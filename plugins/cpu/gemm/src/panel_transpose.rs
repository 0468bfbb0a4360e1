//! Transposes lanes with contiguous steps into panels with contiguous lanes, using AVX-512 shuffles.

#![expect(unsafe_code, reason = "vectors are read and written through pointers")]

use std::arch::x86_64::*;

use oarlock_cpu_base::isa::Isa;

/// Lanes transposed together: one zmm of f32.
const LANES: usize = 16;
/// Steps transposed together: one xmm per lane, the 128-bit quarters that the shuffles work on.
const STEPS: usize = 4;

/// Transposes lanes, `stride` apart, into the steps of a panel of `width` lanes. Without AVX-512, or if lanes or steps are not a
/// multiple of the group size, it does nothing and returns false.
pub(crate) fn transpose_panel(
    isa: Isa,
    (elements, stride): (&[f32], usize),
    (lanes, steps): (usize, usize),
    (panel, width): (&mut [f32], usize),
) -> bool {
    let is_whole = lanes.is_multiple_of(LANES) && steps.is_multiple_of(STEPS);
    if isa < Isa::Avx512 || lanes == 0 || steps == 0 || !is_whole {
        return false;
    }
    assert!(
        (lanes - 1) * stride + steps <= elements.len() && (steps - 1) * width + lanes <= panel.len(),
        "lanes and a panel of these sizes"
    );
    // SAFETY: an `Isa` above the lowest only exists on machines that have it, and all lanes and steps are in bounds.
    unsafe { transpose_groups(elements.as_ptr(), stride, (lanes, steps), panel.as_mut_ptr(), width) };
    true
}

#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn transpose_groups(
    elements: *const f32,
    stride: usize,
    (lanes, steps): (usize, usize),
    panel: *mut f32,
    width: usize,
) {
    for lane in (0..lanes).step_by(LANES) {
        for step in (0..steps).step_by(STEPS) {
            // SAFETY: the caller guarantees all lanes and steps.
            unsafe {
                let start = elements.add(lane * stride + step);
                // Every fourth lane from `first` on. The unpacks below work within 128-bit quarters, so each quarter ends up with
                // four consecutive lanes.
                let rows = |first: usize| {
                    let quarter = |index: usize| _mm_loadu_ps(start.add((4 * index + first) * stride));
                    let vector = _mm512_castps128_ps512(quarter(0));
                    let vector = _mm512_insertf32x4::<1>(vector, quarter(1));
                    let vector = _mm512_insertf32x4::<2>(vector, quarter(2));
                    _mm512_castps_pd(_mm512_insertf32x4::<3>(vector, quarter(3)))
                };
                let [a, b, c, d] = [rows(0), rows(1), rows(2), rows(3)].map(|rows| _mm512_castpd_ps(rows));
                let low =
                    [_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d)].map(|half| _mm512_castps_pd(half));
                let high =
                    [_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d)].map(|half| _mm512_castps_pd(half));
                let transposed = [
                    _mm512_unpacklo_pd(low[0], low[1]),
                    _mm512_unpackhi_pd(low[0], low[1]),
                    _mm512_unpacklo_pd(high[0], high[1]),
                    _mm512_unpackhi_pd(high[0], high[1]),
                ];
                for (index, vector) in transposed.into_iter().enumerate() {
                    _mm512_storeu_ps(panel.add((step + index) * width + lane), _mm512_castpd_ps(vector));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_groups_of_lanes_become_steps() {
        let elements: Vec<f32> = (0..48 * 20).map(|index| index as f32).collect();
        for (lanes, steps) in [(16, 4), (32, 12), (48, 20), (16, 3), (15, 4), (0, 4)] {
            let mut panel = vec![-1.0; 20 * 50];
            if transpose_panel(
                oarlock_cpu_testing::isa_levels::best_isa(),
                (&elements, 20),
                (lanes, steps),
                (&mut panel, 50),
            ) {
                let expected = |step: usize, lane: usize| {
                    if step < steps && lane < lanes { elements[lane * 20 + step] } else { -1.0 }
                };
                assert!((0..20 * 50).all(|place| panel[place] == expected(place / 50, place % 50)));
            } else {
                assert!(
                    oarlock_cpu_testing::isa_levels::best_isa() < Isa::Avx512
                        || lanes % 16 != 0
                        || lanes == 0
                        || steps % 4 != 0
                );
            }
        }
    }
}

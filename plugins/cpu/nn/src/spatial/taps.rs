//! The taps of a sample along one axis: the elements around its position, and their weights.

/// The interpolation between elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleMethod {
    Nearest,
    Linear,
    Cubic,
}

/// The values beyond the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaddingMode {
    Zeros,
    Border,
    Reflection,
}

/// Elements of an axis and their weights. An element beyond the edges that counts as zero is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AxisTaps {
    taps: [(Option<usize>, f64); 4],
    count: usize,
}

impl AxisTaps {
    /// The taps of a position on an axis of at least one element. Reflection is at `edges`.
    #[inline(always)]
    pub(super) fn new(
        place: f64,
        length: usize,
        method: SampleMethod,
        beyond: PaddingMode,
        edges: (f64, f64),
    ) -> Self {
        // Rounded before reflection, like the ONNX reference: a tie goes to the even element of the unreflected axis.
        let mut place = if method == SampleMethod::Nearest { place.round_ties_even() } else { place };
        if place < edges.0 || place > edges.1 {
            place = match beyond {
                PaddingMode::Zeros => place,
                // Each of the four neighbors is clamped to the border separately, below.
                PaddingMode::Border if method == SampleMethod::Cubic => place,
                PaddingMode::Border => place.clamp(0.0, length as f64 - 1.0),
                PaddingMode::Reflection => reflect_at_edges(place, edges),
            };
        }
        // Weights depend on the position, even if the elements around it are clamped or reflected.
        let whole = place.floor();
        // NaN for an infinite position; element indices stay in bounds all the same.
        let part = place - whole;
        let at = |step: f64| element_index(whole + step, length, beyond, edges);
        let none = (None, 0.0);
        match method {
            SampleMethod::Nearest => Self { taps: [(at(0.0), 1.0), none, none, none], count: 1 },
            SampleMethod::Linear => {
                Self { taps: [(at(0.0), 1.0 - part), (at(1.0), part), none, none], count: 2 }
            }
            SampleMethod::Cubic => {
                let [first, second, third, fourth] = cubic_weights(part);
                let taps = [(at(-1.0), first), (at(0.0), second), (at(1.0), third), (at(2.0), fourth)];
                Self { taps, count: 4 }
            }
        }
    }

    /// The two elements around the position, if both exist and the interpolation is linear.
    #[inline(always)]
    pub(super) fn linear_pair(&self) -> Option<[(usize, f64); 2]> {
        let [(Some(first), one), (Some(second), other), ..] = self.taps else { return None };
        (self.count == 2).then_some([(first, one), (second, other)])
    }

    /// The first two taps: linear interpolation has no others.
    #[inline(always)]
    pub(super) fn first_pair(&self) -> [(Option<usize>, f64); 2] {
        [self.taps[0], self.taps[1]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<usize>, f64)> + Clone {
        self.taps.into_iter().take(self.count)
    }
}

/// The element at an integer position.
#[inline(always)]
fn element_index(place: f64, length: usize, beyond: PaddingMode, edges: (f64, f64)) -> Option<usize> {
    let last = length as f64 - 1.0;
    if (0.0..=last).contains(&place) {
        return Some(place as usize);
    }
    match beyond {
        PaddingMode::Zeros => None,
        // NaN maps to element 0, since `max` ignores it: the weights are NaN anyway.
        PaddingMode::Border => Some((place.max(0.0) as usize).min(length - 1)),
        PaddingMode::Reflection => Some((reflect_at_edges(place, edges).max(0.0) as usize).min(length - 1)),
    }
}

/// Reflects a position at the edges until it lies between them.
fn reflect_at_edges(place: f64, (low, high): (f64, f64)) -> f64 {
    let range = high - low;
    // A single element reflects onto itself; the remainder modulo 0 would be NaN.
    if range <= 0.0 {
        return low;
    }
    let turned = (place - low).rem_euclid(2.0 * range);
    low + if turned > range { 2.0 * range - turned } else { turned }
}

/// The cubic weights of four neighbors, for a position that is `part` of the way from the second to the third.
fn cubic_weights(part: f64) -> [f64; 4] {
    // The value that ONNX and PyTorch use; Catmull-Rom would be -0.5.
    const CUBIC_COEFFICIENT: f64 = -0.75;
    let near = |x: f64| ((CUBIC_COEFFICIENT + 2.0) * x - (CUBIC_COEFFICIENT + 3.0)) * x * x + 1.0;
    let far = |x: f64| {
        ((CUBIC_COEFFICIENT * x - 5.0 * CUBIC_COEFFICIENT) * x + 8.0 * CUBIC_COEFFICIENT) * x
            - 4.0 * CUBIC_COEFFICIENT
    };
    [far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_beyond_the_edges_are_reflected_any_number_of_times() {
        for (place, expected) in [(-0.5, 0.5), (2.5, 1.5), (7.25, 0.75), (-3.0, 1.0)] {
            assert_eq!(reflect_at_edges(place, (0.0, 2.0)), expected);
        }
        assert_eq!(reflect_at_edges(9.0, (3.0, 3.0)), 3.0);
    }

    #[test]
    fn no_place_is_read_outside_of_an_axis() {
        for place in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, -0.5, 2.5] {
            for method in [SampleMethod::Nearest, SampleMethod::Linear, SampleMethod::Cubic] {
                for beyond in [PaddingMode::Zeros, PaddingMode::Border, PaddingMode::Reflection] {
                    for edges in [(0.0, 2.0), (-0.5, 2.5)] {
                        let taps = AxisTaps::new(place, 3, method, beyond, edges);
                        assert!(taps.iter().all(|(index, _)| index.is_none_or(|index| index < 3)));
                    }
                }
            }
        }
    }

    #[test]
    fn weights_of_neighbors_add_up_to_one() {
        for place in [0.0, 0.25, 1.9] {
            for method in [SampleMethod::Linear, SampleMethod::Cubic] {
                let taps = AxisTaps::new(place, 3, method, PaddingMode::Border, (0.0, 2.0));
                let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{taps:?}");
            }
        }
    }
}

//! Splits a transposed convolution into ordinary ones, one for each remainder of the output position modulo the stride.

use std::ops::Range;

use oarlock_cpu_base::window::WindowAxis;

/// The outputs along an axis that are sums over inputs at the same relative positions.
///
/// Input `i` contributes to the outputs at `i * stride + step * dilation - pad`. So the output at `quotient * stride + remainder -
/// pad` is the sum, over some numbers `back`, of input `quotient - back` times the weight of step `(back * stride + remainder) /
/// dilation`: the outputs with one remainder form an ordinary convolution. Often, for example if the kernel is as wide as the
/// stride, these numbers are the same for all remainders, and a single convolution with more output channels computes all outputs.
#[derive(Clone, Debug)]
pub(super) struct OutputPhase {
    /// Parameters as in [`WindowAxis`]. Its windows slide over the output, so its input is the output here.
    stride: usize,
    dilation: usize,
    outputs: Range<usize>,
    pub(super) remainders: Range<usize>,
    pub(super) quotients: Range<usize>,
    pub(super) backs: Vec<usize>,
}

impl OutputPhase {
    /// All outputs along an axis: a phase for each remainder or, with `may_join`, one phase for all remainders if possible.
    pub(super) fn all_phases(axis: &WindowAxis, may_join: bool) -> Vec<Self> {
        let back = |remainder: usize, step: usize| {
            let distance = (step * axis.dilation).checked_sub(remainder)?;
            // Only these steps lead from an input to an output with this remainder.
            distance.is_multiple_of(axis.stride).then_some(distance / axis.stride)
        };
        let backs = |remainder| (0..axis.kernel).filter_map(|step| back(remainder, step)).collect::<Vec<_>>();
        // If all remainders read the same inputs, they can be columns of one product.
        let common = backs(0);
        if may_join && (1..axis.stride).all(|remainder| backs(remainder) == common) {
            return vec![Self::new(axis, 0..axis.stride, common)];
        }
        (0..axis.stride)
            .map(|remainder| Self::new(axis, remainder..remainder + 1, backs(remainder)))
            .collect()
    }

    fn new(axis: &WindowAxis, remainders: Range<usize>, backs: Vec<usize>) -> Self {
        let outputs = axis.pad.0..axis.pad.0 + axis.input;
        let begin = outputs.start.saturating_sub(remainders.end - 1).div_ceil(axis.stride);
        let end = outputs.end.saturating_sub(remainders.start).div_ceil(axis.stride);
        let quotients = begin..end.max(begin);
        Self { stride: axis.stride, dilation: axis.dilation, outputs, remainders, quotients, backs }
    }

    /// The remainders for which the output at a quotient exists.
    pub(super) fn remainders_at(&self, quotient: usize) -> Range<usize> {
        let shift = quotient * self.stride;
        let begin = self.remainders.start.max(self.outputs.start.saturating_sub(shift));
        begin..self.remainders.end.min(self.outputs.end.saturating_sub(shift)).max(begin)
    }

    /// True if the outputs at these quotients exist for all remainders.
    pub(super) fn is_whole(&self, quotients: Range<usize>) -> bool {
        let is_whole = |quotient| self.remainders_at(quotient) == self.remainders;
        // The outputs are a range, so only the ends of it can lack a remainder.
        is_whole(quotients.start) && is_whole(quotients.end - 1)
    }

    pub(super) fn output_index(&self, quotient: usize, remainder: usize) -> usize {
        quotient * self.stride + remainder - self.outputs.start
    }

    /// The step of the kernel that leads to an output with a remainder from the input `back` positions earlier.
    pub(super) fn kernel_step(&self, back: usize, remainder: usize) -> usize {
        (back * self.stride + remainder) / self.dilation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase_axis(input: usize, kernel: usize, stride: usize, pad: (usize, usize)) -> WindowAxis {
        let output = (input - 1) * stride + kernel - pad.0 - pad.1;
        WindowAxis { input: output, output: input, kernel, stride, dilation: 1, pad }
    }

    #[test]
    fn a_kernel_as_wide_as_the_stride_leads_to_each_output_from_one_input() {
        let phases = OutputPhase::all_phases(&phase_axis(5, 2, 2, (0, 0)), true);
        let [phase] = &phases[..] else { panic!("{phases:?}") };
        assert_eq!((&phase.remainders, &phase.quotients, &phase.backs[..]), (&(0..2), &(0..5), &[0][..]));
        assert!(phase.is_whole(0..5));
    }

    #[test]
    fn outputs_that_pads_cut_off_are_not_there_at_the_ends() {
        let phases = OutputPhase::all_phases(&phase_axis(5, 4, 2, (1, 1)), true);
        let [phase] = &phases[..] else { panic!("{phases:?}") };
        assert_eq!((&phase.quotients, &phase.backs[..]), (&(0..6), &[0, 1][..]));
        let at = |quotient| phase.remainders_at(quotient);
        assert_eq!([at(0), at(1), at(4), at(5)], [1..2, 0..2, 0..2, 0..1]);
        assert!(phase.is_whole(1..5) && !phase.is_whole(0..5) && !phase.is_whole(1..6));
    }

    #[test]
    fn outputs_that_are_sums_over_different_inputs_stay_apart() {
        let phases = OutputPhase::all_phases(&phase_axis(5, 3, 2, (1, 1)), true);
        let backs: Vec<_> = phases.iter().map(|phase| &phase.backs[..]).collect();
        assert_eq!(backs, [&[0, 1][..], &[0]]);
    }
}

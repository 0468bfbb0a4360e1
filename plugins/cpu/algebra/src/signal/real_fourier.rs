//! Transforms of an even number of real numbers, by one of half as many complex numbers: neighbors become the parts of one
//! number. Spectra of real numbers are symmetric, which tells apart what comes from the first and from the second parts.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::scratch::try_reserve_vec;
use oarlock_sdk::{Complex, Result};

use super::fourier::FourierTransform;
use super::roots_of_unity::{ComplexF64, RootsOfUnity, swap_components};

/// A transform of real numbers, and its inverse.
pub(super) struct RealFourierTransform {
    half: FourierTransform,
    roots: RootsOfUnity,
}

impl RealFourierTransform {
    /// A transform of an even number of real numbers.
    pub(super) fn new(cpu: &Cpu, length: usize) -> Result<Self> {
        Ok(Self { half: FourierTransform::new(cpu, length / 2)?, roots: RootsOfUnity::new(length)? })
    }

    pub(super) fn length(&self) -> usize {
        2 * self.half.length()
    }

    /// Transforms pairs of real numbers; [`RealFourierTransform::spectrum`] then separates them.
    pub(super) fn transform_forward(
        &self,
        cpu: &Cpu,
        pairs: &mut [ComplexF64],
        room: &mut Vec<ComplexF64>,
    ) -> Result<()> {
        self.half.transform_forward(cpu, pairs, room)
    }

    /// `count` numbers of the spectrum: the first half with the one in the middle, or all.
    pub(super) fn spectrum(
        &self,
        pairs: &[ComplexF64],
        count: usize,
        bins: &mut Vec<ComplexF64>,
    ) -> Result<()> {
        let half = pairs.len();
        bins.clear();
        if bins.capacity() < count {
            *bins = try_reserve_vec(count)?;
        }
        bins.extend((0..=half).map(|bin| {
            // The spectrum of the pairs is periodic, so bin `half` is bin 0.
            let (one, other) = (pairs[bin % half], pairs[(half - bin) % half].conj());
            let (even, odd) = ((one + other) * 0.5, (one - other) * 0.5);
            even + Complex::new(odd.im, -odd.re) * self.roots.root_power(bin)
        }));
        // The other half mirrors this one.
        for bin in (1..half).rev().take(count.saturating_sub(half + 1)) {
            bins.push(bins[bin].conj());
        }
        Ok(())
    }

    /// Turns the first half of the spectrum of real numbers back into pairs of them, each times the length.
    pub(super) fn transform_backward(
        &self,
        cpu: &Cpu,
        spectrum: &[ComplexF64],
        pairs: &mut Vec<ComplexF64>,
        room: &mut Vec<ComplexF64>,
    ) -> Result<()> {
        let half = self.half.length();
        // The imaginary parts of the ends mean nothing.
        let end = |bin: usize| Complex::new(spectrum[bin].re, 0.0);
        let at = |bin: usize| if bin == 0 || bin == half { end(bin) } else { spectrum[bin] };
        pairs.clear();
        if pairs.capacity() < half {
            *pairs = try_reserve_vec(half)?;
        }
        pairs.extend((0..half).map(|bin| {
            let (one, other) = (at(bin), at(half - bin).conj());
            let odd = (one - other) * self.roots.root_power(bin).conj();
            // Swapped on the way in and out, the forward transform below is the inverse one.
            swap_components(one + other + Complex::new(-odd.im, odd.re))
        }));
        self.half.transform_forward(cpu, pairs, room)?;
        pairs.iter_mut().for_each(|pair| *pair = swap_components(*pair));
        Ok(())
    }
}

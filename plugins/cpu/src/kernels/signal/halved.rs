//! Transforms of real numbers, an even number of them, by one of complex numbers half as long: neighbours are taken as the parts
//! of one number, and what becomes of the first and of the second parts is told apart by how spectra of real numbers mirror
//! themselves.

use oarlock_sdk::{Complex, Result};

use super::fourier::{Fourier, Number, Roots, exchanged};
use crate::device::Cpu;
use crate::kernels::rows::room::room_for;

/// A transform of real numbers, and back.
pub(super) struct Halved {
    half: Fourier,
    roots: Roots,
}

impl Halved {
    /// The transform of an even number of real numbers.
    pub(super) fn new(cpu: &Cpu, length: usize) -> Result<Self> {
        Ok(Self { half: Fourier::new(cpu, length / 2)?, roots: Roots::new(length)? })
    }

    /// How many numbers are transformed.
    pub(super) fn length(&self) -> usize {
        2 * self.half.length()
    }

    /// Transforms pairs of real numbers; [`Halved::spectrum`] then knows what of it is whose.
    pub(super) fn forwards(&self, cpu: &Cpu, pairs: &mut [Number], room: &mut Vec<Number>) -> Result<()> {
        self.half.forwards(cpu, pairs, room)
    }

    /// So many numbers of the spectrum: the first half with the one in the middle, or all.
    pub(super) fn spectrum(&self, pairs: &[Number], count: usize, bins: &mut Vec<Number>) -> Result<()> {
        let half = pairs.len();
        bins.clear();
        if bins.capacity() < count {
            *bins = room_for(count)?;
        }
        bins.extend((0..=half).map(|bin| {
            let (one, other) = (pairs[bin % half], pairs[(half - bin) % half].conj());
            let (even, odd) = ((one + other) * 0.5, (one - other) * 0.5);
            even + Complex::new(odd.im, -odd.re) * self.roots.power(bin)
        }));
        // The other half mirrors this one.
        for bin in (1..half).rev().take(count.saturating_sub(half + 1)) {
            bins.push(bins[bin].conj());
        }
        Ok(())
    }

    /// Makes pairs of real numbers of the first half of their spectrum, each times the length.
    pub(super) fn backwards(
        &self,
        cpu: &Cpu,
        spectrum: &[Number],
        pairs: &mut Vec<Number>,
        room: &mut Vec<Number>,
    ) -> Result<()> {
        let half = self.half.length();
        // The imaginary parts of the ends mean nothing.
        let end = |bin: usize| Complex::new(spectrum[bin].re, 0.0);
        let at = |bin: usize| if bin == 0 || bin == half { end(bin) } else { spectrum[bin] };
        pairs.clear();
        if pairs.capacity() < half {
            *pairs = room_for(half)?;
        }
        pairs.extend((0..half).map(|bin| {
            let (one, other) = (at(bin), at(half - bin).conj());
            let odd = (one - other) * self.roots.power(bin).conj();
            exchanged(one + other + Complex::new(-odd.im, odd.re))
        }));
        self.half.forwards(cpu, pairs, room)?;
        pairs.iter_mut().for_each(|pair| *pair = exchanged(*pair));
        Ok(())
    }
}

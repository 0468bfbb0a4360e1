//! Walks over operands in tiles. Operands that must be copied or converted for the loop are cut into parts that fit into L1;
//! others are read and written in place.

#![expect(unsafe_code, reason = "operands are read and written through pointers")]

use std::mem::MaybeUninit;
use std::ops::Range;

use oarlock_cpu_base::isa::Isa;
use oarlock_sdk::{Result, ensure};

use super::element_loop::{ElementFault, ElementLoop};
use super::iteration_space::{IterationSpace, LoopAxis, MAX_OPERANDS};
use super::operand_conversion::OperandConversion;

/// Bytes of an operand in a tile. The buffers of a binary op, one for each of three operands and one to gather into, are 16 KiB:
/// half of a 32 KiB L1 cache.
const TILE_BYTES: usize = 4096;

/// Room for an operand in a tile, and for a few more elements if the first byte is partly another tile's.
#[repr(C, align(64))]
struct LoopBuffer([u8; TILE_BYTES + 64]);

/// A buffer for each operand, and one for gathered elements before their conversion.
type LoopBuffers = MaybeUninit<[LoopBuffer; MAX_OPERANDS + 1]>;

struct LoopScratch<'a> {
    /// Apart from `filled`, and uninitialized: in one value with it, the compiler would zero the buffers as well.
    buffers: &'a mut LoopBuffers,
    /// For each operand, from which element on the buffer was filled, and how many elements.
    filled: [Option<(usize, usize)>; MAX_OPERANDS],
}

impl LoopScratch<'_> {
    fn buffer_pointer(&mut self, index: usize) -> *mut u8 {
        self.buffers.as_mut_ptr().cast::<LoopBuffer>().wrapping_add(index).cast()
    }
}

/// The index of the buffer for gathered elements.
const COLLECTED_BUFFER: usize = MAX_OPERANDS;

/// How a loop gets at an operand in each tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandAccess {
    /// In place.
    Direct,
    /// Contiguous, to be converted.
    Converted,
    /// Strided or broadcast, to be gathered first.
    Collected,
}

/// How an iteration space is cut into tiles.
pub(super) struct LoopTiling<'a> {
    plan: &'a IterationSpace,
    inputs: &'a [OperandConversion],
    output: &'a OperandConversion,
    access: [OperandAccess; MAX_OPERANDS],
    /// The dimension that is cut. Each tile has all inner dimensions whole.
    cut: usize,
    /// Elements per index of the cut dimension.
    row: usize,
    /// Indices of the cut dimension in a tile; the last has fewer.
    rows: usize,
    /// Tiles along the cut dimension.
    tiles_of_cut: usize,
}

impl<'a> LoopTiling<'a> {
    /// Cuts an iteration space. `shared` says that an input shares memory with the output.
    pub(super) fn new(
        plan: &'a IterationSpace,
        inputs: &'a [OperandConversion],
        output: &'a OperandConversion,
        shared: bool,
    ) -> Result<Self> {
        let axes = plan.axes();
        let conversions = || inputs.iter().chain([output]);
        // An element passes through a buffer before its conversion or after it, so the larger of both sizes counts.
        let largest = conversions().map(OperandConversion::max_element_size).max().unwrap_or(1);
        let capacity = TILE_BYTES / largest;
        let goes_on = |axis: &LoopAxis, operand: usize, row: usize| axis.steps[operand] == row;
        let (mut cut, mut row) = (0, 1);
        // As many inner dimensions as fit into a buffer whole; the next one is cut.
        while cut < axes.len() && row * axes[cut].size <= capacity {
            row *= axes[cut].size;
            cut += 1;
        }
        let mut whole = 1;
        for axis in axes {
            ensure!(
                goes_on(axis, inputs.len(), whole),
                invalid_argument,
                "expected a contiguous output, found one with strides"
            );
            whole *= axis.size;
        }
        let length = axes.get(cut).map_or(1, |axis| axis.size);
        let rows = (capacity / row).clamp(1, length);
        // Tiles of several rows span the cut dimension too, so operands in place must also be contiguous along it.
        let inside = if rows > 1 { cut + 1 } else { cut };
        let mut access = [OperandAccess::Direct; MAX_OPERANDS];
        for (index, conversion) in conversions().enumerate() {
            let mut row = 1;
            let side_by_side = axes[..inside].iter().all(|axis| {
                let is_next = goes_on(axis, index, row);
                row *= axis.size;
                is_next
            });
            ensure!(
                side_by_side || !conversion.is_packed() || index < inputs.len(),
                unimplemented,
                "expected a contiguous output of elements that share bytes, found one with strides"
            );
            // Through a buffer, all elements of a tile are read before any is written.
            let is_shared_output = shared && index == inputs.len();
            access[index] = match (side_by_side, conversion.converter) {
                (true, None) if !is_shared_output => OperandAccess::Direct,
                (true, _) => OperandAccess::Converted,
                (false, _) => OperandAccess::Collected,
            };
        }
        Ok(Self { plan, inputs, output, access, cut, row, rows, tiles_of_cut: length.div_ceil(rows) })
    }

    pub(super) fn total_tiles(&self) -> usize {
        let outside = self.plan.axes().iter().skip(self.cut + 1).map(|axis| axis.size).product::<usize>();
        outside * self.tiles_of_cut
    }

    pub(super) fn elements_per_tile(&self) -> usize {
        self.row * self.rows
    }

    /// Runs a loop over some tiles, in rising order.
    ///
    /// # Safety
    ///
    /// The operands at the addresses, the output last, lie in memory as far as the iteration space reaches, and nobody else uses
    /// this part of the output.
    pub(super) unsafe fn run_tiles(
        &self,
        inner: &dyn ElementLoop,
        isa: Isa,
        addresses: &[usize; MAX_OPERANDS],
        tiles: Range<usize>,
    ) -> Result<(), ElementFault> {
        let mut buffers = LoopBuffers::uninit();
        let mut scratch = LoopScratch { buffers: &mut buffers, filled: [None; MAX_OPERANDS] };
        let all_direct =
            self.access[..=self.inputs.len()].iter().all(|access| *access == OperandAccess::Direct);
        // If all operands are in place, neighboring tiles are fused into one call. Tiles of a single row may not be adjacent in
        // memory.
        let fuses = all_direct && self.rows > 1;
        let length = self.plan.axes().get(self.cut).map_or(1, |axis| axis.size);
        let mut tile = tiles.start;
        while tile < tiles.end {
            let first = tile % self.tiles_of_cut * self.rows;
            let wanted = if fuses { (tiles.end - tile) * self.rows } else { self.rows };
            let rows = wanted.min(length - first);
            let offsets = self.tile_offsets(tile / self.tiles_of_cut, first);
            // SAFETY: as the caller vouches; the rows are some of the iteration space's.
            unsafe { self.run_tile(inner, isa, addresses, &offsets, rows, &mut scratch)? };
            tile += rows.div_ceil(self.rows);
        }
        Ok(())
    }

    /// The first element of each operand, at an index of all dimensions outside of the cut one and a row of that.
    fn tile_offsets(&self, mut outside: usize, row: usize) -> [usize; MAX_OPERANDS] {
        let mut offsets = [0; MAX_OPERANDS];
        let mut add = |axis: &LoopAxis, index: usize| {
            for (offset, step) in offsets.iter_mut().zip(&axis.steps) {
                *offset += index * step;
            }
        };
        let mut axes = self.plan.axes().iter().skip(self.cut);
        if let Some(axis) = axes.next() {
            add(axis, row);
        }
        for axis in axes {
            add(axis, outside % axis.size);
            outside /= axis.size;
        }
        offsets
    }

    unsafe fn run_tile(
        &self,
        inner: &dyn ElementLoop,
        isa: Isa,
        addresses: &[usize; MAX_OPERANDS],
        offsets: &[usize; MAX_OPERANDS],
        rows: usize,
        scratch: &mut LoopScratch<'_>,
    ) -> Result<(), ElementFault> {
        let last = self.inputs.len();
        let mut pointers = [std::ptr::null(); MAX_OPERANDS];
        for (index, conversion) in self.inputs.iter().enumerate() {
            // The byte with the first element; packed elements before it in that byte are counted by `packed_offset`.
            let source = (addresses[index] + offsets[index] * conversion.bits / 8) as *const u8;
            pointers[index] = match self.access[index] {
                OperandAccess::Direct => source,
                // SAFETY: as the caller vouches.
                _ => unsafe { self.load_tile(isa, index, source, offsets[index], rows, scratch)? },
            };
        }
        let (count, conversion, offset) = (rows * self.row, self.output, offsets[last]);
        let target = (addresses[last] + offset * conversion.bits / 8) as *mut u8;
        if self.access[last] == OperandAccess::Direct {
            // SAFETY: all operands have `count` elements here, and the output shares no memory with an input.
            return unsafe { inner.run_loop(isa, &pointers[..last], target, count) };
        }
        let buffer = scratch.buffer_pointer(last);
        let before = conversion.packed_offset(offset);
        // SAFETY: as above; the buffer has room for a tile and a few more elements.
        unsafe {
            inner.run_loop(isa, &pointers[..last], buffer.add(before * conversion.computed_size), count)?;
            let Some(converter) = conversion.converter else {
                target.copy_from_nonoverlapping(buffer, count * conversion.computed_size);
                return Ok(());
            };
            if before == 0 {
                return converter.run_loop(isa, &[buffer], target, count);
            }
            // The lowest bits of the first byte are elements that were computed before.
            let kept = *target & ((1 << (before * conversion.bits)) - 1);
            buffer.write_bytes(0, before * conversion.computed_size);
            converter.run_loop(isa, &[buffer], target, count + before)?;
            let zeros = *target & ((1 << (before * conversion.bits)) - 1);
            *target = *target ^ zeros | kept;
            Ok(())
        }
    }

    /// Gathers and converts a tile of an input, as the loop needs it.
    unsafe fn load_tile(
        &self,
        isa: Isa,
        index: usize,
        source: *const u8,
        offset: usize,
        rows: usize,
        scratch: &mut LoopScratch<'_>,
    ) -> Result<*const u8, ElementFault> {
        let conversion = &self.inputs[index];
        let before = conversion.packed_offset(offset);
        let count = rows * self.row;
        let buffer = scratch.buffer_pointer(index);
        let result = buffer.wrapping_add(before * conversion.computed_size).cast_const();
        // A broadcast input is still in the buffer.
        if scratch.filled[index].is_some_and(|(from, length)| from == offset && count <= length) {
            return Ok(result);
        }
        debug_assert!(
            count * conversion.max_element_size() <= TILE_BYTES,
            "a tile that is larger than its buffers"
        );
        scratch.filled[index] = Some((offset, count));
        let is_collected = self.access[index] == OperandAccess::Collected;
        let collected = scratch.buffer_pointer(COLLECTED_BUFFER);
        // SAFETY: the buffers have room for a tile and a few more elements.
        unsafe {
            if is_collected {
                let target = if conversion.converter.is_some() { collected } else { buffer };
                self.gather_tile(index, source, before, rows, target);
            }
            if let Some(converter) = conversion.converter {
                let source = if is_collected { collected.cast_const() } else { source };
                converter.run_loop(isa, &[source], buffer, count + before)?;
            }
        }
        Ok(result)
    }

    /// Gathers the strided elements of a tile of an input.
    unsafe fn gather_tile(
        &self,
        index: usize,
        source: *const u8,
        before: usize,
        rows: usize,
        target: *mut u8,
    ) {
        let inside = &self.plan.axes()[..self.cut];
        let cut = self.plan.axes().get(self.cut).map(|axis| (axis.size.min(rows), axis.steps[index]));
        // SAFETY: as the caller vouches, for elements of this size.
        unsafe {
            match self.inputs[index].bits {
                2 => gather_packed_elements::<2>(inside, cut, index, source, before, target),
                4 => gather_packed_elements::<4>(inside, cut, index, source, before, target),
                8 => gather_elements::<u8>(inside, cut, index, source.cast(), target.cast()),
                16 => gather_elements::<u16>(inside, cut, index, source.cast(), target.cast()),
                32 => gather_elements::<u32>(inside, cut, index, source.cast(), target.cast()),
                // Arrays, because complex elements of these sizes are aligned like their parts.
                64 => gather_elements::<[u32; 2]>(inside, cut, index, source.cast(), target.cast()),
                _ => gather_elements::<[u64; 2]>(inside, cut, index, source.cast(), target.cast()),
            };
        }
    }
}

/// Gathers packed elements into contiguous bytes and returns their number. `before` elements precede the first in its byte.
unsafe fn gather_packed_elements<const BITS: usize>(
    inside: &[LoopAxis],
    outermost: Option<(usize, usize)>,
    operand: usize,
    source: *const u8,
    before: usize,
    target: *mut u8,
) -> usize {
    let axes = || inside.iter().map(|axis| (axis.size, axis.steps[operand])).chain(outermost);
    let (count, shared) = (axes().map(|(size, _)| size).product(), 8 / BITS);
    for place in 0..count {
        let (mut rest, mut at, to) = (place, before, place + before);
        for (size, step) in axes() {
            at += rest % size * step;
            rest /= size;
        }
        // SAFETY: the source has elements as far as the dimensions reach, and the target has room for as many. A byte of the
        // target is read only after its lowest element was written.
        unsafe {
            let part = *source.add(at / shared) >> (at % shared * BITS) & ((1 << BITS) - 1);
            let byte = target.add(to / shared);
            let lower = if to % shared > 0 && place > 0 { *byte } else { 0 };
            byte.write(lower | part << (to % shared * BITS));
        }
    }
    count
}

/// Gathers strided elements and returns their number.
unsafe fn gather_elements<E: Copy>(
    inside: &[LoopAxis],
    outermost: Option<(usize, usize)>,
    operand: usize,
    source: *const E,
    target: *mut E,
) -> usize {
    let (inside, (size, step)) = match (outermost, inside) {
        (Some(outermost), _) => (inside, outermost),
        (None, [inside @ .., axis]) => (inside, (axis.size, axis.steps[operand])),
        (None, []) => (inside, (1, 0)),
    };
    // SAFETY: the source has elements as far as the dimensions reach, and the target has room for as many.
    unsafe {
        if !inside.is_empty() {
            let copy = |count, index| {
                count + gather_elements(inside, None, operand, source.add(index * step), target.add(count))
            };
            return (0..size).fold(0, copy);
        }
        // The target is not initialized, so it is not yet a slice of elements.
        match step {
            0 => std::slice::from_raw_parts_mut(target.cast::<MaybeUninit<E>>(), size)
                .fill(MaybeUninit::new(*source)),
            1 => target.copy_from_nonoverlapping(source, size),
            _ => (0..size).for_each(|index| target.add(index).write(*source.add(index * step))),
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use oarlock_sdk::{Dtype, Element, f16};

    use super::super::binary::Plus;
    use super::super::element_loop::MapLoop;
    use super::super::iteration_space::OperandShape;
    use super::*;

    /// Adds a row to each row of a matrix, in place.
    fn add_in_place<E: Element>(matrix: &mut [E], row: &mut [E], columns: usize) {
        let dims = [(matrix.len() / columns) as i64, columns as i64];
        let shape = |dims| OperandShape { dims, strides: &[] };
        let plan = IterationSpace::new(&[shape(&dims), shape(&dims[1..]), shape(&dims)]).unwrap();
        let input = OperandConversion::for_input(E::DTYPE, Dtype::F32).unwrap();
        let (inputs, output) = ([input; 2], OperandConversion::for_output(E::DTYPE, Dtype::F32).unwrap());
        let tiling = LoopTiling::new(&plan, &inputs, &output, true).unwrap();
        let mut addresses = [matrix.as_mut_ptr() as usize; MAX_OPERANDS];
        addresses[1] = row.as_mut_ptr() as usize;
        for tile in 0..tiling.total_tiles() {
            // SAFETY: the operands are as large as their shapes say.
            unsafe {
                tiling.run_tiles(
                    &MapLoop(Plus::<f32>(PhantomData)),
                    oarlock_cpu_testing::isa_levels::best_isa(),
                    &addresses,
                    tile..tile + 1,
                )
            }
            .unwrap();
        }
    }

    #[test]
    fn the_output_may_be_the_memory_of_an_input() {
        for columns in [3, 700, 3000] {
            let value = |index: usize| (index % 1000) as f32;
            let mut matrix: Vec<f32> = (0..2 * columns).map(value).collect();
            let mut row: Vec<f32> = (0..columns).map(|index| 0.5 * value(index)).collect();
            add_in_place(&mut matrix, &mut row, columns);
            assert!(
                (0..2 * columns).all(|index| matrix[index] == value(index) + 0.5 * value(index % columns))
            );
            let mut matrix: Vec<f16> = (0..2 * columns).map(|index| f16::from_f32(value(index))).collect();
            let mut row = vec![f16::ONE; columns];
            add_in_place(&mut matrix, &mut row, columns);
            assert!((0..2 * columns).all(|index| matrix[index].to_f32() == value(index) + 1.0));
        }
    }
}

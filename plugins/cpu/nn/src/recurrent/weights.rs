//! Products of rows and gate weights.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{
    BatchedGemm, GemmOperand, GemmRows, GemmShape, PackedOperand, ScratchBuffer, StridedMatrix,
    gemm_scratch_size, multiply_rows, row_tile_size,
};
use oarlock_cpu_nhwc::quantized::few_rows::FewRowsBuffers;
use oarlock_sdk::{PluginError, Result};

use super::RecurrentFloat;

/// Above this number of weights (1 MiB of f32), a second thread pays even for one row.
const SINGLE_THREAD_WEIGHTS: usize = 1 << 18;
/// The number of tiles of rows up to which products do without the overhead of larger ones. Each reads all panels.
const MAX_SMALL_TILES: usize = 4;
/// The size of consecutive panels that keep their order: far less than an L2 cache, and enough to hide what a call costs.
const PANEL_GROUP_BYTES: usize = 1 << 17;
/// The alignment of vectors of weights.
const CACHE_LINE: usize = 64;

/// Constant weights, packed for products.
pub(super) enum PackedGateWeights<C> {
    /// For products of many rows, or on several threads.
    Packed(PackedOperand<C>),
    /// For products of a few rows, one per step, for which any fixed overhead matters.
    Panels(RecurrentPanels<C>),
    /// Weights of fewer bits, whose products are rounded.
    Rounding(Box<dyn RoundedWeights<C>>),
}

/// Weights of fewer bits, with rounded products.
pub(super) trait RoundedWeights<C>: Send + Sync {
    /// The number of elements that a product computes, and the steps of each.
    fn matrix_size(&self) -> (usize, usize);

    /// Multiplies consecutive rows. Backwards, the weights are read from the last to the first.
    fn multiply_rows(
        &self,
        cpu: &Cpu,
        left: &[C],
        output: &mut [C],
        is_backwards: bool,
        buffers: &mut FewRowsBuffers,
    );
}

impl<C: RecurrentFloat> PackedGateWeights<C> {
    /// Packs weights for products of this many rows.
    pub(super) fn new(
        cpu: &Cpu,
        elements: &[C],
        (rows, depth): (usize, usize),
        lines: usize,
    ) -> Result<Self> {
        if Self::is_small_product(cpu, (rows, depth), lines) {
            return Ok(Self::Panels(RecurrentPanels::new(cpu, elements, (rows, depth))));
        }
        Ok(Self::Packed(PackedOperand::pack_right(
            cpu,
            &GateWeights::weights_matrix(elements, rows, depth)?,
            rows,
            depth,
        )))
    }

    /// True if products of this many rows use the small kernels.
    pub(super) fn is_small_product(cpu: &Cpu, (rows, depth): (usize, usize), lines: usize) -> bool {
        // Small kernels run on one thread and do no packing of rows, so they suit products that one thread finishes sooner anyway.
        let is_alone = cpu.worker_count() == 1 || rows.saturating_mul(depth) <= SINGLE_THREAD_WEIGHTS;
        depth > 0 && is_alone && lines <= MAX_SMALL_TILES * row_tile_size::<C>(cpu.isa()).0
    }
}

/// Weights in consecutive panels, each as wide as a micro-kernel's tile, step after step.
pub(super) struct RecurrentPanels<C> {
    elements: Vec<C>,
    /// The start of the first panel, which is aligned.
    start: usize,
    rows: usize,
    depth: usize,
    width: usize,
}

impl<C: RecurrentFloat> RecurrentPanels<C> {
    fn new(cpu: &Cpu, elements: &[C], (rows, depth): (usize, usize)) -> Self {
        let width = row_tile_size::<C>(cpu.isa()).1;
        let size = rows.next_multiple_of(width) * depth;
        // One cache line more than needed, so that the first panel can start at an aligned address.
        let mut panels = vec![C::default(); size + CACHE_LINE / size_of::<C>()];
        let start = panels.as_ptr().align_offset(CACHE_LINE).min(panels.len() - size);
        for (row, weights) in elements.chunks_exact(depth).enumerate() {
            // A row of weights is a column of the product: its steps are `width` apart in the panel.
            let first = start + row / width * width * depth + row % width;
            weights.iter().enumerate().for_each(|(step, weight)| panels[first + step * width] = *weight);
        }
        C::flush_weights(cpu.isa(), &mut panels);
        Self { elements: panels, start, rows, depth, width }
    }

    /// Multiplies consecutive rows, as many at once as a tile has. Backwards, groups of panels are read from the last to the first.
    fn multiply_rows(&self, cpu: &Cpu, left: &[C], output: &mut [C], is_backwards: bool) {
        let &Self { rows, depth, width, .. } = self;
        let tiles = (output.len() / rows).div_ceil(row_tile_size::<C>(cpu.isa()).0);
        // Tiles of equal size: one of a single row would read the panels for that row alone.
        let tile = (output.len() / rows).div_ceil(tiles);
        let panel = depth * width;
        let group_width = (PANEL_GROUP_BYTES / (panel * size_of::<C>()).max(1)).max(1) * width;
        let group_count = rows.div_ceil(group_width);
        for index in 0..group_count {
            let first = if is_backwards { group_count - 1 - index } else { index } * group_width;
            let columns = group_width.min(rows - first);
            let panels = (&self.elements[self.start + first * depth..], panel);
            for (left, output) in left.chunks(tile * depth).zip(output.chunks_mut(tile * rows)) {
                let count = output.len() / rows;
                let left = GemmRows { elements: left, count, stride: depth };
                let output = GemmRows { elements: &mut output[first..], count, stride: rows };
                multiply_rows(cpu.isa(), left, panels, depth, output, columns, false);
            }
        }
    }
}

/// The weights of some gates: one row per element of the product.
pub(super) struct GateWeights<'a, C> {
    elements: &'a [C],
    rows: usize,
    depth: usize,
    ready: Option<&'a PackedGateWeights<C>>,
}

impl<'a, C: RecurrentFloat> GateWeights<'a, C> {
    pub(super) fn new(
        elements: &'a [C],
        rows: usize,
        depth: usize,
        ready: Option<&'a PackedGateWeights<C>>,
    ) -> Self {
        // Weights were prepared for the shapes of the model; a call may pass others.
        let fits = |ready: &&PackedGateWeights<C>| match ready {
            PackedGateWeights::Packed(packed) => (packed.lane_count(), packed.depth()) == (rows, depth),
            PackedGateWeights::Panels(panels) => (panels.rows, panels.depth) == (rows, depth),
            PackedGateWeights::Rounding(weights) => weights.matrix_size() == (rows, depth),
        };
        Self { elements, rows, depth, ready: ready.filter(fits) }
    }

    /// The weights as the right operand of a product.
    fn weights_matrix(elements: &[C], rows: usize, depth: usize) -> Result<StridedMatrix<'_, C>> {
        StridedMatrix::new(elements, vec![0], (rows, depth), (depth, 1)).ok_or_else(operand_size_error)
    }

    /// Multiplies consecutive rows with the weights.
    pub(super) fn multiply_rows(
        &self,
        cpu: &Cpu,
        left: &[C],
        output: &mut [C],
        scratch: &mut ReusableScratch,
    ) -> Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let rows = output.len() / self.rows;
        if let Some(PackedGateWeights::Rounding(weights)) = self.ready {
            // All rows of the left operand share one scale, so it must not be split.
            weights.multiply_rows(cpu, left, output, scratch.is_backwards, &mut scratch.few_rows);
            return Ok(());
        }
        if let Some(PackedGateWeights::Panels(panels)) = self.ready {
            panels.multiply_rows(cpu, left, output, scratch.is_backwards);
            return Ok(());
        }
        let left = StridedMatrix::new(left, vec![0], (rows, self.depth), (self.depth, 1))
            .ok_or_else(operand_size_error)?;
        let right = Self::weights_matrix(self.elements, self.rows, self.depth)?;
        let (left, right) = match self.ready {
            Some(PackedGateWeights::Packed(packed)) => {
                (GemmOperand::Operand(&left), GemmOperand::Packed(packed))
            }
            _ => (GemmOperand::Operand(&left), GemmOperand::Operand(&right)),
        };
        let sizes = GemmShape { items: 1, rows, columns: self.rows, depth: self.depth };
        let needed = gemm_scratch_size::<C>(cpu, sizes, (left.operand_form(), right.operand_form()), false);
        let mut scratch = scratch.reserve_scratch(needed);
        BatchedGemm { sizes, left, right, output: Some(output), epilogue: None }.compute(cpu, &mut scratch);
        Ok(())
    }
}

fn operand_size_error() -> PluginError {
    PluginError::out_of_range("expected weights and states as large as their shapes say, found smaller ones")
}

/// Scratch memory that is reused by consecutive products.
#[derive(Default)]
pub(super) struct ReusableScratch {
    bytes: Vec<u8>,
    few_rows: FewRowsBuffers,
    /// Whether products start with the last weights. If steps alternate, each starts with those that are still in the cache.
    pub(super) is_backwards: bool,
}

impl ReusableScratch {
    /// The maximum number of bytes that alignment wastes.
    const SLACK: usize = 64;

    fn reserve_scratch(&mut self, size: u64) -> ScratchBuffer<'_> {
        let size = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(Self::SLACK);
        if self.bytes.len() < size {
            // It only grows, since all steps request the same size.
            self.bytes.resize(size, 0);
        }
        ScratchBuffer::new(&mut self.bytes)
    }
}

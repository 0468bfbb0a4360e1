//! im2col: the windows of a convolution as the right operand of a product, with a column for each window and a row for each window
//! element. Columns are built while panels are packed; the whole matrix is never materialized.

use std::ops::Range;

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::window::{SlidingWindow, WindowAxis, unravel_index};
use oarlock_cpu_gemm::{ConvertTo, GemmElement, PanelSource};

/// The windows over images. Each product uses the channels of one group.
pub(super) struct Im2colOperand<'a, E> {
    elements: &'a [E],
    window: &'a SlidingWindow,
    products: usize,
    channels: usize,
    isa: Isa,
}

impl<'a, E> Im2colOperand<'a, E> {
    /// `None` if there are fewer elements than the shapes state.
    pub(super) fn new(
        elements: &'a [E],
        window: &'a SlidingWindow,
        products: usize,
        channels: usize,
        isa: Isa,
    ) -> Option<Self> {
        let needed = products.checked_mul(channels)?.checked_mul(window.input_count())?;
        (needed <= elements.len() && !window.axes.is_empty()).then_some(Self {
            elements,
            window,
            products,
            channels,
            isa,
        })
    }
}

impl<T: GemmElement, E: ConvertTo<T>> PanelSource<T> for Im2colOperand<'_, E> {
    fn item_count(&self) -> usize {
        self.products
    }

    fn pack_panel(
        &self,
        item: usize,
        depth: Range<usize>,
        lanes: Range<usize>,
        width: usize,
        panel: &mut [T],
    ) {
        // The micro-kernel multiplies whole vectors, so lanes beyond the last window need a number.
        if lanes.len() < width {
            panel.fill(T::default());
        }
        // An item is a group of an image, and the channels of a group are contiguous in NCHW.
        let size = self.channels * self.window.input_count();
        let image = &self.elements[item * size..][..size];
        self.isa.vectorize(Im2colPanel { image, window: self.window, depth, lanes, width, panel });
    }
}

/// One panel to pack.
struct Im2colPanel<'a, T, E> {
    image: &'a [E],
    window: &'a SlidingWindow,
    depth: Range<usize>,
    lanes: Range<usize>,
    width: usize,
    panel: &'a mut [T],
}

/// Adjacent windows along the last dimension.
struct PatchRun {
    /// The lanes of the windows in the panel.
    lanes: Range<usize>,
    /// The index of the first window along the last dimension.
    first: usize,
    /// The positions of the windows along the other dimensions.
    places: Vec<usize>,
}

impl PatchRun {
    fn collect_runs(window: &SlidingWindow, outer: &[WindowAxis], lanes: Range<usize>) -> Vec<Self> {
        let across = window.axes.last().map_or(1, |axis| axis.output);
        let mut runs = Vec::new();
        let mut lane = lanes.start;
        while lane < lanes.end {
            let (row, first) = (lane / across, lane % across);
            // A run ends with an output row, since the next window begins in another image row.
            let end = lanes.end.min(lane + across - first);
            let mut places = vec![0; outer.len()];
            unravel_index(row, outer.iter().map(|axis| axis.output), &mut places);
            runs.push(Self { lanes: lane - lanes.start..end - lanes.start, first, places });
            lane = end;
        }
        runs
    }

    /// The image row for a window element, given as its channel and its step along each dimension; `None` in the padding.
    fn image_row(&self, outer: &[WindowAxis], steps: &[usize]) -> Option<usize> {
        let axes = outer.iter().zip(&self.places).zip(&steps[1..]);
        axes.map(|((axis, place), step)| Some((axis.input, axis.input_position(*place, *step)?)))
            .try_fold(steps[0], |row, axis| axis.map(|(size, place)| row * size + place))
    }
}

impl<T: GemmElement, E: ConvertTo<T>> SimdTask for Im2colPanel<'_, T, E> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<I: SimdTarget>(self) {
        let Self { image, window, depth, lanes, width, panel } = self;
        let Some((last, outer)) = window.axes.split_last() else { return };
        let runs = PatchRun::collect_runs(window, outer, lanes);
        // For each step, the windows whose element is inside the image: computed once per step instead of tested for each element.
        let insides: Vec<_> = (0..last.kernel).map(|step| last.windows_with_step(step)).collect();
        let mut steps = vec![0; window.axes.len() + 1];
        // The channel is the outermost part of the index and needs no bound.
        let sizes = std::iter::once(usize::MAX).chain(window.axes.iter().map(|axis| axis.kernel));
        unravel_index(depth.start, sizes.collect::<Vec<_>>().into_iter(), &mut steps);
        let mut rows = vec![None; runs.len()];
        for (index, target) in panel.chunks_exact_mut(width).take(depth.len()).enumerate() {
            let step = steps[outer.len() + 1];
            // Steps along the last dimension share image rows.
            if index == 0 || step == 0 {
                for (row, run) in rows.iter_mut().zip(&runs) {
                    let place = run.image_row(outer, &steps);
                    *row = place.map(|place| &image[place * last.input..][..last.input]);
                }
            }
            // Windows before and after these read padding, that is, zeros.
            let inside = &insides[step];
            for (run, row) in runs.iter().zip(&rows) {
                let target = &mut target[run.lanes.clone()];
                let windows = run.first..run.first + target.len();
                match row {
                    // The common case, without padding: one strided copy.
                    Some(row) if inside.start <= windows.start && windows.end <= inside.end => {
                        copy_strided(target, &row[last.first_position(step, windows.start)..], last.stride);
                    }
                    Some(row) => {
                        target.fill(T::default());
                        let begin = inside.start.max(windows.start);
                        let end = inside.end.min(windows.end);
                        if begin < end {
                            let target = &mut target[begin - run.first..end - run.first];
                            copy_strided(target, &row[last.first_position(step, begin)..], last.stride);
                        }
                    }
                    None => target.fill(T::default()),
                }
            }
            advance_steps(&mut steps, window);
        }
    }
}

/// Copies elements, `stride` apart, until the target is full. Most runs are short, so blocks have a single vector.
#[inline(always)]
fn copy_strided<T: GemmElement, E: ConvertTo<T>>(targets: &mut [T], elements: &[E], stride: usize) {
    if stride > 1 {
        // Strided loads do not vectorize, so elements are copied one by one.
        for (target, element) in targets.iter_mut().zip(elements.iter().step_by(stride)) {
            *target = element.convert();
        }
        return;
    }
    let elements = &elements[..targets.len()];
    let (targets, last_targets) = targets.as_chunks_mut::<8>();
    let (elements, last_elements) = elements.as_chunks::<8>();
    for (targets, elements) in targets.iter_mut().zip(elements) {
        *targets = elements.map(E::convert);
    }
    for (target, element) in last_targets.iter_mut().zip(last_elements) {
        *target = element.convert();
    }
}

/// Advances to the next window element; after the last, to the first of the next channel.
#[inline(always)]
fn advance_steps(steps: &mut [usize], window: &SlidingWindow) {
    for (index, axis) in window.axes.iter().enumerate().rev() {
        steps[index + 1] += 1;
        if steps[index + 1] < axis.kernel {
            return;
        }
        steps[index + 1] = 0;
    }
    steps[0] += 1;
}

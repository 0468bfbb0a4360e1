//! The sizes of an attention call, and the layout of heads in its operands.

use std::ops::Range;

use oarlock_products::dimension_size;
use oarlock_sdk::{KernelCall, PluginError, Result, TensorView, ensure};

/// The distances between the batches, heads and rows of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadStrides {
    pub(super) batch: usize,
    pub(super) head: usize,
    pub(super) row: usize,
}

impl HeadStrides {
    pub(super) fn row_start(&self, batch: usize, head: usize, row: usize) -> usize {
        batch * self.batch + head * self.head + row * self.row
    }

    // These saturate, since with zero batches the other sizes may overflow.

    /// Heads have a dimension of their own, before the rows.
    fn heads_first(heads: usize, rows: usize, size: usize) -> Self {
        let head = rows.saturating_mul(size);
        Self { batch: heads.saturating_mul(head), head, row: size }
    }

    /// Heads are contiguous within each row.
    fn rows_first(heads: usize, rows: usize, size: usize) -> Self {
        let row = heads.saturating_mul(size);
        Self { batch: rows.saturating_mul(row), head: size, row }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadsLayout {
    pub(super) batches: usize,
    pub(super) count: usize,
    pub(super) rows: usize,
    pub(super) size: usize,
    pub(super) steps: HeadStrides,
}

impl HeadsLayout {
    /// Reads an operand with a dimension for heads, or one whose last dimension contains as many heads as the attribute `name`
    /// states.
    pub(super) fn new(call: &KernelCall<'_>, operand: &TensorView<'_>, name: &str) -> Result<Self> {
        match *operand.dims() {
            [batches, count, rows, width] => {
                let [batches, count, rows, size] = [
                    dimension_size(batches)?,
                    dimension_size(count)?,
                    dimension_size(rows)?,
                    dimension_size(width)?,
                ];
                Ok(Self { batches, count, rows, size, steps: HeadStrides::heads_first(count, rows, size) })
            }
            [batches, rows, width] => {
                // Without a dimension for heads, only the attribute states how many there are.
                let stated = call.int_attribute(name)?.filter(|count| *count > 0 && width % count == 0);
                let count = stated.ok_or_else(|| {
                    PluginError::invalid_argument(format!(
                        "expected `{name}` to divide the last dimension, which is {width}"
                    ))
                })?;
                let [batches, count, rows, size] = [
                    dimension_size(batches)?,
                    dimension_size(count)?,
                    dimension_size(rows)?,
                    dimension_size(width / count)?,
                ];
                Ok(Self { batches, count, rows, size, steps: HeadStrides::rows_first(count, rows, size) })
            }
            ref other => Err(PluginError::invalid_argument(format!(
                "expected operands of 3 or 4 dimensions, found {other:?}"
            ))),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttentionShape {
    pub(super) batches: usize,
    /// Query heads.
    pub(super) heads: usize,
    /// Key and value heads, each shared by the same number of query heads.
    pub(super) shared: usize,
    /// Query rows.
    pub(super) queries: usize,
    /// The numbers of new and of past rows of keys and values.
    pub(super) fresh: usize,
    pub(super) past: usize,
    /// The elements in a row of query and key, and in a row of value and output.
    pub(super) size: usize,
    pub(super) value_size: usize,
    pub(super) query: HeadStrides,
    pub(super) key: HeadStrides,
    pub(super) value: HeadStrides,
    pub(super) output: HeadStrides,
    pub(super) past_key: HeadStrides,
    pub(super) past_value: HeadStrides,
    pub(super) present_key: HeadStrides,
    pub(super) present_value: HeadStrides,
    pub(super) scale: f64,
    pub(super) softcap: f64,
    pub(super) window: AttentionWindow,
    /// Which scores are requested (`qk_matmul_output_mode`), if they are an output.
    pub(super) score_mode: Option<i64>,
    /// True if the softmax must be computed in `f64`.
    pub(super) is_double: bool,
}

/// The keys that are visible to a query row, relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttentionWindow {
    is_causal: bool,
    /// The number of visible keys before and after it; `None` for all.
    left: Option<i64>,
    right: Option<i64>,
}

impl AttentionWindow {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let bound = |name| match call.int_attribute(name)?.unwrap_or(-1) {
            -1 => Ok(None),
            size if size >= 0 => Ok(Some(size)),
            other => Err(PluginError::invalid_argument(format!(
                "expected `{name}` to be at least -1, found {other}"
            ))),
        };
        let is_causal = call.int_attribute("is_causal")?.unwrap_or(0) != 0;
        Ok(Self { is_causal, left: bound("left_window_size")?, right: bound("right_window_size")? })
    }

    /// True if every key is visible to every row.
    pub(super) fn is_open(&self) -> bool {
        !self.is_causal && self.left.is_none() && self.right.is_none()
    }

    /// The keys among the first `count` that are visible to the row at a position.
    pub(super) fn visible_keys(&self, place: i64, count: usize) -> Range<usize> {
        let most = count as i64;
        let after =
            |bound: Option<i64>| bound.map_or(most, |bound| place.saturating_add(bound).saturating_add(1));
        // A causal row sees its own key, so its bound is 0 keys after it.
        let end = after(self.right).min(after(self.is_causal.then_some(0))).clamp(0, most);
        let begin = self.left.map_or(0, |bound| place.saturating_sub(bound)).clamp(0, end);
        begin as usize..end as usize
    }
}

impl AttentionShape {
    pub(super) fn new(call: &KernelCall<'_>) -> Result<Self> {
        let (q, k, v) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let query = HeadsLayout::new(call, &q, "q_num_heads")?;
        let key = HeadsLayout::new(call, &k, "kv_num_heads")?;
        let value = HeadsLayout::new(call, &v, "kv_num_heads")?;
        // Groups of query heads of equal size share a key head. Without query heads, there may be no key heads either.
        let is_whole = key.count > 0 && query.count.is_multiple_of(key.count) || query.count == 0;
        ensure!(
            q.dims().len() == k.dims().len()
                && (query.batches, query.size) == (key.batches, key.size)
                && (value.batches, value.count, value.rows) == (key.batches, key.count, key.rows)
                && is_whole,
            invalid_argument,
            "expected a query, a key and a value that fit together, found {:?}, {:?} and {:?}",
            q.dims(),
            k.dims(),
            v.dims()
        );
        let (past_key, past_value) = (call.optional_input(4)?, call.optional_input(5)?);
        let past = match (&past_key, &past_value) {
            (Some(past_key), Some(past_value)) => past_row_count(past_key, past_value, &key, &value)?,
            (None, None) => 0,
            _ => {
                return Err(PluginError::invalid_argument(
                    "expected a past key with a past value, found one of them",
                ));
            }
        };
        let total = past + key.rows;
        // This factor keeps the variance of scores at 1, whatever the size of a head.
        let default = 1.0 / (query.size as f64).sqrt();
        let is_narrow = q.dims().len() == 3;
        // The output has the layout of the query, while past and present always have a dimension for heads.
        let output = if is_narrow { HeadStrides::rows_first } else { HeadStrides::heads_first };
        let has_scores = call.optional_output(3)?.is_some();
        let precision = call.int_attribute("softmax_precision")?.unwrap_or(1);
        ensure!(
            [1, 10, 11, 16].contains(&precision),
            invalid_argument,
            "expected `softmax_precision` to be 1, 10, 11 or 16, the number of a float type, found {precision}"
        );
        let mode = call.int_attribute("qk_matmul_output_mode")?.unwrap_or(0);
        ensure!(
            (0..4).contains(&mode),
            invalid_argument,
            "expected `qk_matmul_output_mode` from 0 to 3, found {mode}"
        );
        Ok(Self {
            batches: query.batches,
            heads: query.count,
            shared: key.count,
            queries: query.rows,
            fresh: key.rows,
            past,
            size: query.size,
            value_size: value.size,
            query: query.steps,
            key: key.steps,
            value: value.steps,
            output: output(query.count, query.rows, value.size),
            past_key: HeadStrides::heads_first(key.count, past, key.size),
            past_value: HeadStrides::heads_first(key.count, past, value.size),
            present_key: HeadStrides::heads_first(key.count, total, key.size),
            present_value: HeadStrides::heads_first(key.count, total, value.size),
            scale: call.float_attribute("scale")?.unwrap_or(default),
            // 0 disables it; a negative value would flip the sign of scores.
            softcap: call.float_attribute("softcap")?.unwrap_or(0.0).max(0.0),
            window: AttentionWindow::new(call)?,
            score_mode: has_scores.then_some(mode),
            // A 16-bit softmax is computed in `f32`, which is at least as accurate; only `f64` needs the plain algorithm.
            is_double: precision == 11,
        })
    }

    pub(super) fn total_keys(&self) -> usize {
        self.past + self.fresh
    }

    /// The number of query heads per key head.
    pub(super) fn group_size(&self) -> usize {
        self.heads / self.shared.max(1)
    }
}

fn past_row_count(
    past_key: &TensorView<'_>,
    past_value: &TensorView<'_>,
    key: &HeadsLayout,
    value: &HeadsLayout,
) -> Result<usize> {
    let expected =
        |rows: i64, heads: &HeadsLayout| [heads.batches as i64, heads.count as i64, rows, heads.size as i64];
    // The past may have any length; everything else must match the new rows.
    let rows = past_key.dims().get(2).copied().unwrap_or(0);
    ensure!(
        past_key.dims() == expected(rows, key) && past_value.dims() == expected(rows, value),
        invalid_argument,
        "expected a past of the shapes {:?} and {:?}, found {:?} and {:?}",
        expected(rows, key),
        expected(rows, value),
        past_key.dims(),
        past_value.dims()
    );
    dimension_size(rows)
}

#[cfg(test)]
impl AttentionShape {
    /// A shape without strides, for tests that read no operands.
    pub(super) fn example_shape(heads: [usize; 3], rows: [usize; 2], size: usize) -> Self {
        let [batches, heads, shared] = heads;
        let [queries, fresh] = rows;
        let steps = HeadStrides { batch: 0, head: 0, row: 0 };
        let window = AttentionWindow { is_causal: false, left: None, right: None };
        let (scale, softcap, past, value_size) = (0.25, 0.0, 0, size);
        let [query, key, value, output] = [steps; 4];
        let [past_key, past_value, present_key, present_value] = [steps; 4];
        let (score_mode, is_double) = (None, false);
        Self {
            batches,
            heads,
            shared,
            queries,
            fresh,
            past,
            size,
            value_size,
            query,
            key,
            value,
            output,
            past_key,
            past_value,
            present_key,
            present_value,
            scale,
            softcap,
            window,
            score_mode,
            is_double,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_cut_at_the_first_and_at_the_last_key() {
        let window = |is_causal, left, right| AttentionWindow { is_causal, left, right };
        assert_eq!(window(false, None, None).visible_keys(3, 8), 0..8);
        assert_eq!(window(true, None, None).visible_keys(3, 8), 0..4);
        assert_eq!(window(true, Some(2), Some(1)).visible_keys(3, 8), 1..4);
        assert_eq!(window(false, Some(2), Some(1)).visible_keys(3, 8), 1..5);
        assert_eq!(window(false, Some(0), Some(i64::MAX)).visible_keys(9, 8), 8..8);
        assert!(window(true, None, None).visible_keys(-2, 8).is_empty());
    }
}

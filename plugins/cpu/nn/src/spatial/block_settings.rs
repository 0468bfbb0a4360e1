//! The attributes that describe the layout of blocks in an image.

use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

/// The maximum of sizes and distances, so that sums of them stay far from overflow.
pub(super) const MAX_SIZE: i64 = 1 << 40;

/// The layout of blocks in an image. The lists of absent attributes are empty.
#[derive(Clone)]
pub(super) struct BlockSettings {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
}

impl BlockSettings {
    pub(super) fn new(call: &KernelCall<'_>) -> Result<Self> {
        let list = |name: &str, least: i64| {
            let list = call.ints_attribute(name)?.unwrap_or_default().to_vec();
            ensure!(
                list.iter().all(|item| (least..=MAX_SIZE).contains(item)),
                invalid_argument,
                "expected `{name}` of at least {least}, found {list:?}"
            );
            Ok(list)
        };
        Ok(Self { strides: list("strides", 1)?, dilations: list("dilations", 1)?, pads: list("pads", 0)? })
    }

    /// The strides, dilations and pads for this many axes.
    pub(super) fn for_axes(&self, axes: usize) -> Result<[Vec<i64>; 3]> {
        let lists = [("strides", &self.strides, axes, 1), ("dilations", &self.dilations, axes, 1)];
        let of = |(name, list, length, default): (&str, &Vec<i64>, usize, i64)| match list.len() {
            0 => Ok(vec![default; length]),
            found if found == length => Ok(list.clone()),
            found => Err(PluginError::invalid_argument(format!(
                "expected {length} items in `{name}`, found {found}"
            ))),
        };
        let [strides, dilations] = lists.map(of);
        Ok([strides?, dilations?, of(("pads", &self.pads, 2 * axes, 0))?])
    }
}

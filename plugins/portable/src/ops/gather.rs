//! `Gather`: parts of an operand by index. An index outside gives zeros, and an error to whoever waits.

use oarlock_sdk::{Call, Kernel, Result};

use super::elementwise::groups;
use super::row::{ALL, INDICES, axis, check_shape, input, output, plain, row};
use crate::arguments::Arguments;
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::program::launch;
use crate::source::{Indexed, Shaped, Variant, is_wide};

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    vec![
        row("Gather", gather::<G>)
            .inputs([plain(ALL).group(1).named("data"), plain(INDICES).named("indices")])
            .outputs([plain(ALL).group(1).named("output")]),
    ]
}

fn gather<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, indices, y) = (input(call, 0)?.bits(), input(call, 1)?, output(call, 0)?.bits());
    let axis = axis(call.int("axis")?.unwrap_or(0), x.dims.len())?;
    check_shape(&[&x.dims[..axis], &indices.dims, &x.dims[axis + 1..]].concat(), &y)?;
    if y.count == 0 {
        return Ok(());
    }
    let [_, length, inner] = x.around(axis);
    let variant = Variant::Shaped(Shaped {
        source: Indexed::Gather,
        operands: vec![("a", x.dtype), ("b", indices.dtype), ("y", y.dtype)],
        is_cooperative: false,
        is_wide: is_wide([x.last(), y.last()]),
    });
    let arguments =
        Arguments::default().operands([&x, &indices, &y]).integers(&[length, indices.count, inner, y.count]);
    launch(gpus, call, &variant, groups(y.count)?, &arguments)
}

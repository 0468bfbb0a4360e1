//! `DynamicTimeWarping`: the cheapest path through a matrix of costs, from the first corner to the last.

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelFlags, OperandSpec, PluginError, Result, ensure};

pub(super) fn time_warping_kernels() -> Vec<Kernel<Cpu>> {
    let kernel =
        operand_kernel("DynamicTimeWarping", |_| Ok(()), |_, (), operands| run_time_warping(operands));
    vec![
        kernel
            .with_domain(OARLOCK_DOMAIN)
            .with_flags(KernelFlags::ALLOCATES_OUTPUTS)
            .with_inputs([OperandSpec::new(DtypeSet::F32).with_name("input").with_rank(2, 3)])
            .with_outputs([OperandSpec::new(DtypeSet::I32).with_name("output")]),
    ]
}

/// Where the path to a place comes from.
#[derive(Clone, Copy)]
enum WarpStep {
    Corner,
    Above,
    Before,
}

fn run_time_warping(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let input = call.input(0)?;
    let ([rows, columns] | [1, rows, columns]) = *input.dims() else {
        let found = input.dims();
        return Err(PluginError::invalid_argument(format!("expected one matrix, found the shape {found:?}")));
    };
    ensure!(
        (1..=i64::from(i32::MAX)).contains(&rows) && (1..=i64::from(i32::MAX)).contains(&columns),
        invalid_argument,
        "expected rows and columns that numbers of 32 bits count, found {rows} and {columns}"
    );
    let path = cheapest_path(operands.read_input::<f32>(0)?, rows as usize, columns as usize)?;
    call.allocate_output(0, Dtype::I32, &[2, path.len() as i64])?;
    let out = operands.write_output::<i32>(0)?;
    let (of_rows, of_columns) = out.split_at_mut(path.len());
    for ((row, column), place) in of_rows.iter_mut().zip(of_columns).zip(path.into_iter().rev()) {
        (*row, *column) = (place.0 as i32, place.1 as i32);
    }
    Ok(())
}

/// The places on the path, the last one first.
fn cheapest_path(costs: &[f32], rows: usize, columns: usize) -> Result<Vec<(usize, usize)>> {
    let mut came = try_filled_vec(WarpStep::Corner, costs.len())?;
    // The cost of reaching the places of the row above and of this one, with a border before the first.
    let (mut above, mut here) =
        (try_filled_vec(f32::INFINITY, columns + 1)?, try_filled_vec(f32::INFINITY, columns + 1)?);
    above[0] = 0.0;
    for (row, costs) in costs.chunks_exact(columns).enumerate() {
        for (column, cost) in costs.iter().enumerate() {
            let ways = [above[column], above[column + 1], here[column]];
            // A tie goes along the row, as in the alignment of Whisper.
            let (from, sum) = match ways {
                [corner, up, before] if corner < up && corner < before => (WarpStep::Corner, corner),
                [corner, up, before] if up < corner && up < before => (WarpStep::Above, up),
                [_, _, before] => (WarpStep::Before, before),
            };
            came[row * columns + column] = from;
            here[column + 1] = sum + cost;
        }
        std::mem::swap(&mut above, &mut here);
        // Only the first row can be reached from the corner.
        here[0] = f32::INFINITY;
        above[0] = f32::INFINITY;
    }
    let (mut path, mut place) = (Vec::new(), Some((rows - 1, columns - 1)));
    while let Some((row, column)) = place {
        path.push((row, column));
        // The first place comes from beyond the corner; if costs are not finite, others may come from beyond an edge.
        place = match came[row * columns + column] {
            WarpStep::Corner => row.checked_sub(1).zip(column.checked_sub(1)),
            WarpStep::Above => row.checked_sub(1).zip(Some(column)),
            WarpStep::Before => Some(row).zip(column.checked_sub(1)),
        };
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use crate::KERNELS;
    use oarlock_cpu_testing::runner::TestArray;

    #[test]
    fn the_way_is_the_cheapest() {
        let costs = TestArray::from_values(&[1, 3, 4], &[1f32, 9., 9., 9., 1., 1., 9., 9., 9., 9., 1., 2.]);
        let found = KERNELS
            .run_kernel("DynamicTimeWarping", 1, &[], &[Some(&costs)], &[None])
            .unwrap()
            .remove(0)
            .unwrap();
        assert_eq!((&found.dims[..], found.values::<i32>()), (&[2, 4][..], vec![0, 1, 2, 2, 0, 1, 2, 3]));
        let empty = TestArray::from_values::<f32>(&[0, 4], &[]);
        assert!(KERNELS.run_kernel("DynamicTimeWarping", 1, &[], &[Some(&empty)], &[None]).is_err());
    }
}

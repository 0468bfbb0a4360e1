//! The loop of ops that say for each axis on its own where in the input an index of the output lies, or that it lies nowhere.

use oarlock_sdk::{Result, ensure};

use super::operand::in_pieces;
use super::shape;
use super::strided::Cursor;
use crate::device::Cpu;

/// For each index along an axis of the output the index in the input; `None` where the output is filled.
pub(super) type Map = Vec<Option<usize>>;

/// Copies the elements that the maps name, one map for each axis of an input of the given dimensions.
pub(super) fn copy<const N: usize>(
    cpu: &Cpu,
    input: &[[u8; N]],
    dims: &[usize],
    maps: &[Map],
    fill: [u8; N],
    out: &mut [[u8; N]],
) -> Result<()> {
    let is_inside = maps.iter().zip(dims).all(|(map, dim)| map.iter().flatten().all(|index| index < dim));
    let lengths: Vec<_> = maps.iter().map(Vec::len).collect();
    ensure!(
        is_inside
            && maps.len() == dims.len()
            && shape::count(&lengths)? == out.len()
            && shape::count(dims)? == input.len(),
        out_of_range,
        "expected positions inside of the input's {dims:?}, found others"
    );
    let (Some((columns, outer)), false) = (maps.split_last(), out.is_empty()) else {
        if let ([cell], Some(from)) = (out, input.first()) {
            *cell = *from;
        }
        return Ok(());
    };
    let steps = shape::strides(dims);
    let (outer_lengths, still) = (&lengths[..outer.len()], vec![0; outer.len()]);
    in_pieces(cpu, out, columns.len(), |begin, out| {
        let mut cursor = Cursor::new(outer_lengths, &still, begin);
        for row in out.chunks_mut(columns.len()) {
            let places = outer.iter().zip(cursor.counter()).zip(&steps);
            match places.map(|((map, index), step)| map[*index].map(|at| at * step)).sum::<Option<usize>>() {
                // Of an input without elements no column is copied.
                Some(first) => copy_row(input.get(first..).unwrap_or_default(), columns, fill, row),
                None => row.fill(fill),
            }
            cursor.advance();
        }
    });
    Ok(())
}

fn copy_row<const N: usize>(input: &[[u8; N]], columns: &Map, fill: [u8; N], row: &mut [[u8; N]]) {
    for (cell, column) in row.iter_mut().zip(columns) {
        *cell = column.map_or(fill, |column| input[column]);
    }
}

//! Singular values: mirrors from both sides leave two diagonals, and turns of neighbouring rows and columns leave one (the
//! method of Golub and Kahan).

use oarlock_sdk::Result;

use super::eigen::{MOST_STEPS, NOTHING, columns_of, is_small, turn, unsettled};
use super::field::Field;
use super::matrix::{Matrix, power_towards_one};
use super::mirrors::{Mirrors, triangulate};
use super::rows::{Lines, Turn, add_scaled, dot};
use crate::gemm::Team;
use crate::isa::{Target, Vectorized};
use crate::kernels::rows::room::{filled, room_for};

/// Which vectors of a decomposition are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vectors {
    None,
    /// As many as there are values.
    Reduced,
    /// As many as make square matrices.
    Complete,
}

/// A unitary matrix, the singular values, the largest first, and the adjoint of another unitary matrix. All are no numbers
/// where an element of the matrix is not finite.
pub(super) fn svd<F: Field>(
    team: &dyn Team,
    mut matrix: Matrix<F>,
    vectors: Vectors,
) -> Result<(Matrix<F>, Vec<f64>, Matrix<F>)> {
    if matrix.rows < matrix.columns {
        let (left, values, right) = svd(team, matrix.adjoint()?, vectors)?;
        return Ok((right.adjoint()?, values, left.adjoint()?));
    }
    let (rows, size) = (matrix.rows, matrix.columns);
    let (wide, side) = match vectors {
        Vectors::None => (0, 0),
        Vectors::Reduced => (size, size),
        Vectors::Complete => (rows, size),
    };
    let high = if side == 0 { wide } else { rows };
    let most = matrix.size();
    if !most.is_finite() {
        let nothing = F::of_parts([f64::NAN; 2]);
        return Ok((
            Matrix::of(nothing, high, wide)?,
            filled(f64::NAN, size)?,
            Matrix::of(nothing, side, side)?,
        ));
    }
    let power = power_towards_one(most);
    matrix.scale(power);
    let upright = if rows > size { Some(triangulate(team, &mut matrix)?) } else { None };
    matrix.elements.truncate(size * size);
    matrix.rows = size;
    let Diagonals { mut own, mut beside, left: left_mirrors, right: right_mirrors } =
        two_diagonals(team, matrix)?;
    let mut turned = [Matrix::identity(side, side)?, Matrix::identity(side, side)?];
    one_diagonal(team, &mut own, &mut beside, &mut turned)?;
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|one, other| own[*other].abs().total_cmp(&own[*one].abs()));
    for at in (0..side).filter(|at| own[*at] < 0.0) {
        turned[1].row_mut(at).iter_mut().for_each(|element| *element = -*element);
    }
    let values = order.iter().map(|at| own[*at].abs() / power).collect();
    if vectors == Vectors::None {
        return Ok((Matrix::of(F::ZERO, 0, 0)?, values, Matrix::of(F::ZERO, 0, 0)?));
    }
    let mut right = columns_of(&turned[1], &order, size)?;
    right_mirrors.apply(team, &mut right)?;
    let mut left = columns_of(&turned[0], &order, size)?;
    left_mirrors.apply(team, &mut left)?;
    if let Some(mirrors) = upright {
        let mut whole = Matrix::identity(rows, wide)?;
        for row in 0..size {
            whole.row_mut(row)[..size].copy_from_slice(left.row(row));
        }
        mirrors.apply(team, &mut whole)?;
        left = whole;
    }
    Ok((left, values, right.adjoint()?))
}

/// A diagonal, the one right of it, and the mirrors that lead to them from both sides.
struct Diagonals<F> {
    own: Vec<f64>,
    beside: Vec<f64>,
    left: Mirrors<F>,
    right: Mirrors<F>,
}

/// Makes a square matrix two diagonals. What mirrors do to the rows and columns that are left, `down * across` for both sides,
/// is taken from them when they are next gone through.
fn two_diagonals<F: Field>(team: &dyn Team, mut matrix: Matrix<F>) -> Result<Diagonals<F>> {
    let size = matrix.rows;
    let isa = team.isa();
    let (mut own, mut beside) = (filled(0.0, size)?, filled(0.0, size)?);
    let mut left = Mirrors::new(size, size, |index, size| index..size)?;
    let mut right = Mirrors::new(size.saturating_sub(1), size, |index, size| index + 1..size)?;
    let mut down = [filled(F::ZERO, size)?, filled(F::ZERO, size)?];
    let mut across = [filled(F::ZERO, size)?, filled(F::ZERO, size)?];
    for at in 0..size {
        let vector = (at..size)
            .map(|row| matrix.at(row, at) - down[0][row] * across[0][at] - down[1][row] * across[1][at]);
        own[at] = left.set(at, at, vector);
        if at + 1 == size {
            break;
        }
        let (normal, factor) = (left.normal(at), left.factors[at].conjugate());
        let mut sums = filled(F::ZERO, size - at - 1)?;
        let (_, elements) = matrix.split_at_row(at);
        isa.vectorize(FromLeft {
            rows: Lines { elements, stride: size, columns: at + 1..size },
            down: [&down[0][at..], &down[1][at..]],
            across: [&across[0][at + 1..], &across[1][at + 1..]],
            normal,
            sums: &mut sums,
        });
        sums.iter_mut().for_each(|sum| *sum = *sum * factor);
        let row = elements[at + 1..size].iter().zip(&sums);
        beside[at] = right.set(at, at + 1, row.map(|(element, sum)| (*element - *sum).conjugate()));
        let (other, factor) = (right.normal(at), right.factors[at]);
        let (_, elements) = matrix.split_at_row(at + 1);
        isa.vectorize(FromRight {
            rows: Lines { elements, stride: size, columns: at + 1..size },
            normal: other,
            sums: &mut down[1][at + 1..],
        });
        let along = sums.iter().zip(other).fold(F::ZERO, |along, (sum, other)| along + *sum * *other);
        for (row, normal) in (at + 1..size).zip(&normal[1..]) {
            down[0][row] = *normal;
            down[1][row] = (down[1][row] - *normal * along) * factor;
        }
        across[0][at + 1..].copy_from_slice(&sums);
        across[1][at + 1..].iter_mut().zip(other).for_each(|(to, other)| *to = other.conjugate());
    }
    Ok(Diagonals { own, beside, left, right })
}

/// Takes from rows what the last mirrors did, and multiplies what is left with the adjoint of the next normal.
struct FromLeft<'a, F> {
    rows: Lines<'a, F>,
    down: [&'a [F]; 2],
    across: [&'a [F]; 2],
    normal: &'a [F],
    sums: &'a mut [F],
}

impl<F: Field> Vectorized for FromLeft<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(mut self) {
        for (at, row) in self.rows.each().enumerate() {
            add_scaled::<T, F>(row, -self.down[0][at], self.across[0]);
            add_scaled::<T, F>(row, -self.down[1][at], self.across[1]);
            add_scaled::<T, F>(self.sums, self.normal[at].conjugate(), row);
        }
    }
}

/// Multiplies rows with a normal.
struct FromRight<'a, F> {
    rows: Lines<'a, F>,
    normal: &'a [F],
    sums: &'a mut [F],
}

impl<F: Field> Vectorized for FromRight<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(mut self) {
        for (row, sum) in self.rows.each().zip(self.sums) {
            *sum = dot::<T, F>(row, self.normal);
        }
    }
}

/// The cosine and the sine of the angle of a vector, and its length.
fn angle(along: f64, across: f64) -> (f64, f64, f64) {
    let length = along.hypot(across);
    if length == 0.0 { (1.0, 0.0, 0.0) } else { (along / length, across / length, length) }
}

/// Makes what is beside the diagonal vanish. The rows of the first matrix are turned as the rows of the two diagonals are, those
/// of the other one as the columns.
fn one_diagonal(
    team: &dyn Team,
    own: &mut [f64],
    beside: &mut [f64],
    turned: &mut [Matrix<f64>; 2],
) -> Result<()> {
    let (mut end, mut step) = (own.len(), 0);
    let mut turns = [room_for(own.len())?, room_for(own.len())?];
    while end > 0 {
        let begin = (0..end - 1).rev().find(|at| is_small(own, beside, *at)).map_or(0, |at| at + 1);
        if begin > 0 {
            beside[begin - 1] = 0.0;
        }
        if begin + 1 == end {
            (end, step) = (end - 1, 0);
            continue;
        }
        if step == MOST_STEPS {
            return Err(unsettled("singular values"));
        }
        step += 1;
        let is_nothing = |at: &usize| {
            let before = if *at > begin { beside[at - 1].abs() } else { 0.0 };
            let after = if *at + 1 < end { beside[*at].abs() } else { 0.0 };
            own[*at].abs() <= f64::EPSILON * (before + after) + NOTHING
        };
        turns.iter_mut().for_each(Vec::clear);
        match (begin..end).rev().find(is_nothing) {
            Some(at) if at + 1 == end => out_of_column(own, beside, begin, at, &mut turns[1]),
            Some(at) => out_of_row(own, beside, at, end, &mut turns[0]),
            None => chase(own, beside, begin, end, &mut turns),
        }
        turned.iter_mut().zip(&turns).for_each(|(turned, turns)| turn(team, turned, turns));
    }
    Ok(())
}

/// Where the last element on the diagonal is 0, makes the one above it vanish too, by turning it out of its column.
fn out_of_column(own: &mut [f64], beside: &mut [f64], begin: usize, last: usize, turns: &mut Vec<Turn>) {
    own[last] = 0.0;
    let mut rest = std::mem::take(&mut beside[last - 1]);
    for at in (begin..last).rev() {
        let (cosine, sine, length) = angle(own[at], rest);
        own[at] = length;
        if at > begin {
            rest = -sine * beside[at - 1];
            beside[at - 1] *= cosine;
        }
        turns.push(Turn { rows: [at, last], cosine, sine });
    }
}

/// Where another element on the diagonal is 0, makes the one right of it vanish too, by turning it out of its row.
fn out_of_row(own: &mut [f64], beside: &mut [f64], zero: usize, end: usize, turns: &mut Vec<Turn>) {
    own[zero] = 0.0;
    let mut rest = std::mem::take(&mut beside[zero]);
    for at in zero + 1..end {
        let (cosine, sine, length) = angle(own[at], rest);
        own[at] = length;
        rest = -sine * beside[at];
        if at + 1 < end {
            beside[at] *= cosine;
        }
        turns.push(Turn { rows: [at, zero], cosine, sine });
    }
}

/// Brings the last of some values nearer to what it will be, by turns of columns and of rows from the first one on.
fn chase(own: &mut [f64], beside: &mut [f64], begin: usize, end: usize, turns: &mut [Vec<Turn>; 2]) {
    let last = end - 1;
    let sizes = [own[last], own[last - 1], beside[last - 1], own[begin], beside[begin]];
    let scale = sizes.iter().fold(0.0, |most, size| f64::max(most, size.abs()));
    let [value, before, between, first, after] = sizes.map(|size| size / scale);
    let half = ((before + value) * (before - value) + between * between) / 2.0;
    let square = (value * between) * (value * between);
    let root = (half * half + square).sqrt().copysign(half);
    let shift = if root + half == 0.0 { 0.0 } else { square / (half + root) };
    let (mut along, mut across) = ((first + value) * (first - value) + shift, first * after);
    for at in begin..last {
        let (cosine, sine, length) = angle(along, across);
        if at > begin {
            beside[at - 1] = length;
        }
        along = cosine * own[at] + sine * beside[at];
        beside[at] = cosine * beside[at] - sine * own[at];
        across = sine * own[at + 1];
        own[at + 1] *= cosine;
        turns[1].push(Turn { rows: [at, at + 1], cosine, sine });
        let (cosine, sine, length) = angle(along, across);
        own[at] = length;
        along = cosine * beside[at] + sine * own[at + 1];
        own[at + 1] = cosine * own[at + 1] - sine * beside[at];
        if at + 1 < last {
            across = sine * beside[at + 1];
            beside[at + 1] *= cosine;
        }
        turns[0].push(Turn { rows: [at, at + 1], cosine, sine });
    }
    beside[last - 1] = along;
}

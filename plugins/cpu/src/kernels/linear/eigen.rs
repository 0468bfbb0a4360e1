//! Eigenvalues of matrices that are their own adjoints: mirrors leave three diagonals, and turns of neighbouring rows leave one
//! (implicit QL).

use oarlock_sdk::{Error, Result};

use super::field::Field;
use super::matrix::{Matrix, power_towards_one};
use super::mirrors::Mirrors;
use super::rows::{Lines, Turn, TurnRows, add_scaled, dot};
use crate::gemm::Team;
use crate::isa::{Target, Vectorized};
use crate::kernels::rows::room::{filled, room_for};

/// How often a value may be brought nearer, at most. Two or three times are usual.
pub(super) const MOST_STEPS: usize = 100;

/// What is as good as 0 beside numbers near 1, however small its neighbours are.
pub(super) const NOTHING: f64 = 1e-290;

/// The eigenvalues of a matrix that is its own adjoint, the least first, and, where they are wanted, the vectors as columns.
/// Only the lower triangle is looked at. All are no numbers where an element of the matrix is not finite.
pub(super) fn eigh<F: Field>(
    team: &dyn Team,
    mut matrix: Matrix<F>,
    has_vectors: bool,
) -> Result<(Vec<f64>, Matrix<F>)> {
    let size = matrix.rows;
    let side = if has_vectors { size } else { 0 };
    for row in 0..size {
        matrix.row_mut(row)[row + 1..].fill(F::ZERO);
    }
    let most = matrix.size();
    if !most.is_finite() {
        return Ok((filled(f64::NAN, size)?, Matrix::of(F::of_parts([f64::NAN; 2]), side, side)?));
    }
    let power = power_towards_one(most);
    matrix.scale(power);
    let (mut diagonal, mut beside, mirrors) = three_diagonals(team, matrix)?;
    let mut turned = Matrix::identity(side, side)?;
    one_diagonal(team, &mut diagonal, &mut beside, &mut turned)?;
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|one, other| diagonal[*one].total_cmp(&diagonal[*other]));
    let values = order.iter().map(|at| diagonal[*at] / power).collect();
    let mut vectors = columns_of(&turned, &order[..side], side)?;
    if has_vectors {
        mirrors.apply(team, &mut vectors)?;
    }
    Ok((values, vectors))
}

/// Some rows as columns, with zeros below until there are so many rows.
pub(super) fn columns_of<F: Field>(turned: &Matrix<f64>, order: &[usize], rows: usize) -> Result<Matrix<F>> {
    let mut made = Matrix::of(F::ZERO, rows, order.len())?;
    for row in 0..turned.columns {
        for (to, from) in made.row_mut(row).iter_mut().zip(order) {
            *to = F::of_real(turned.at(*from, row));
        }
    }
    Ok(made)
}

/// The diagonal, what is beside it, and the mirrors that lead to them. From the last row upwards a mirror leaves of each row
/// its element on the diagonal and the one before. What that does to the rows above, `left * right' + right * left'`, is taken
/// from them when they are next gone through.
fn three_diagonals<F: Field>(
    team: &dyn Team,
    mut matrix: Matrix<F>,
) -> Result<(Vec<f64>, Vec<f64>, Mirrors<F>)> {
    let size = matrix.rows;
    let (mut diagonal, mut beside) = (filled(0.0, size)?, filled(0.0, size)?);
    let mut mirrors = Mirrors::new(size.saturating_sub(1), size, |index, size| 0..size - 1 - index)?;
    let (mut left, mut right) = (filled(F::ZERO, size)?, filled(F::ZERO, size)?);
    let (mut left_back, mut right_back) = (filled(F::ZERO, size)?, filled(F::ZERO, size)?);
    for row in (0..size).rev() {
        let (above, own) = matrix.split_at_row(row);
        for (column, element) in own[..=row].iter_mut().enumerate() {
            *element = *element - left[row] * right_back[column] - right[row] * left_back[column];
        }
        diagonal[row] = own[row].real();
        if row == 0 {
            break;
        }
        let index = size - 1 - row;
        let vector = own[..row].iter().map(|element| element.conjugate());
        beside[row - 1] = mirrors.set(index, row - 1, vector);
        let (normal, factor) = (mirrors.normal(index), mirrors.factors[index]);
        let mut sums = filled(F::ZERO, row)?;
        team.isa().vectorize(Sweep {
            rows: Lines { elements: above, stride: size, columns: 0..row },
            sides: [&left, &right],
            backs: [&left_back, &right_back],
            normal,
            sums: &mut sums,
        });
        sums.iter_mut().for_each(|sum| *sum = *sum * factor);
        let along =
            sums.iter().zip(normal).fold(F::ZERO, |along, (sum, normal)| along + sum.conjugate() * *normal);
        let along = (factor * along).scaled(0.5);
        for (at, (sum, normal)) in sums.iter().zip(normal).enumerate() {
            left[at] = *normal;
            right[at] = *sum - along * *normal;
            left_back[at] = left[at].conjugate();
            right_back[at] = right[at].conjugate();
        }
    }
    Ok((diagonal, beside, mirrors))
}

/// Takes from the lower triangle of a matrix that is its own adjoint what the last mirror did, and multiplies what is left with
/// the next normal.
struct Sweep<'a, F> {
    rows: Lines<'a, F>,
    sides: [&'a [F]; 2],
    backs: [&'a [F]; 2],
    normal: &'a [F],
    sums: &'a mut [F],
}

impl<F: Field> Vectorized for Sweep<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(mut self) {
        for (at, row) in self.rows.each().enumerate() {
            let row = &mut row[..=at];
            add_scaled::<T, F>(row, -self.sides[0][at], self.backs[1]);
            add_scaled::<T, F>(row, -self.sides[1][at], self.backs[0]);
            let own = dot::<T, F>(row, &self.normal[..=at]);
            let normal = self.normal[at];
            for (sum, element) in self.sums.iter_mut().zip(&row[..at]) {
                *sum = sum.plus_product::<T>(element.conjugate(), normal);
            }
            self.sums[at] = self.sums[at] + own;
        }
    }
}

/// Makes what is beside the diagonal vanish, and turns the rows of a matrix, where it has any, as the columns of the three
/// diagonals are turned.
fn one_diagonal(
    team: &dyn Team,
    diagonal: &mut [f64],
    beside: &mut [f64],
    turned: &mut Matrix<f64>,
) -> Result<()> {
    let size = diagonal.len();
    let mut turns = room_for(size)?;
    for first in 0..size {
        for step in 0.. {
            let last = (first..size - 1).find(|at| is_small(diagonal, beside, *at)).unwrap_or(size - 1);
            if last == first {
                break;
            }
            if step == MOST_STEPS {
                return Err(unsettled("eigenvalues"));
            }
            turns.clear();
            chase(diagonal, beside, first, last, &mut turns);
            turn(team, turned, &turns);
        }
    }
    Ok(())
}

/// Whether an element beside the diagonal is as good as 0.
pub(super) fn is_small(diagonal: &[f64], beside: &[f64], at: usize) -> bool {
    let around = diagonal[at].abs() + diagonal[at + 1].abs();
    beside[at].abs() <= f64::EPSILON * around + NOTHING
}

/// Brings the first of some values nearer to what it will be, by a turn after the other from the last one on.
fn chase(diagonal: &mut [f64], beside: &mut [f64], first: usize, last: usize, turns: &mut Vec<Turn>) {
    let ratio = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first]);
    let length = ratio.hypot(1.0).copysign(ratio);
    let mut ahead = diagonal[last] - diagonal[first] + beside[first] / (ratio + length);
    let (mut sine, mut cosine, mut change) = (1.0, 1.0, 0.0);
    for at in (first..last).rev() {
        let (across, along) = (sine * beside[at], cosine * beside[at]);
        let length = across.hypot(ahead);
        beside[at + 1] = length;
        if length == 0.0 {
            diagonal[at + 1] -= change;
            beside[last] = 0.0;
            return;
        }
        (sine, cosine) = (across / length, ahead / length);
        let own = diagonal[at + 1] - change;
        let both = (diagonal[at] - own) * sine + 2.0 * cosine * along;
        change = sine * both;
        diagonal[at + 1] = own + change;
        ahead = cosine * both - along;
        turns.push(Turn { rows: [at + 1, at], cosine, sine });
    }
    diagonal[first] -= change;
    beside[first] = ahead;
    beside[last] = 0.0;
}

/// Turns rows of a matrix, where it has any.
pub(super) fn turn(team: &dyn Team, turned: &mut Matrix<f64>, turns: &[Turn]) {
    if !turned.elements.is_empty() {
        team.isa().vectorize(TurnRows { stride: turned.columns, elements: &mut turned.elements, turns });
    }
}

pub(super) fn unsettled(what: &str) -> Error {
    Error::out_of_range(format!(
        "expected {what} after {MOST_STEPS} steps each, found some that are not settled"
    ))
}

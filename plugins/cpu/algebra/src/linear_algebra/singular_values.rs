//! Singular values: reflections from both sides leave two diagonals, and rotations of neighboring rows and columns leave one (the
//! method of Golub and Kahan).

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_sdk::{Result, end_if_stopped};

use super::eigen::{
    MAX_ITERATIONS, NEGLIGIBLE, apply_rotations, convergence_error, is_negligible, rows_to_columns,
};
use super::householder::{HouseholderProduct, triangularize};
use super::matrix::{DenseMatrix, normalizing_power};
use super::product::MatrixScalar;
use super::row_operations::{GivensRotation, MatrixRows, add_scaled, dot_product};

/// Which singular vectors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SingularVectors {
    None,
    /// As many as there are values.
    Reduced,
    /// As many as square matrices need.
    Complete,
}

/// A unitary matrix, the singular values in descending order, and the adjoint of another unitary matrix. All are NaN if an
/// element of the matrix is not finite.
pub(super) fn svd<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    mut matrix: DenseMatrix<F>,
    vectors: SingularVectors,
) -> Result<(DenseMatrix<F>, Vec<f64>, DenseMatrix<F>)> {
    // The adjoint has the same singular values, and its vectors change sides.
    if matrix.rows < matrix.columns {
        let (left, values, right) = svd(team, matrix.adjoint()?, vectors)?;
        return Ok((right.adjoint()?, values, left.adjoint()?));
    }
    let (rows, size) = (matrix.rows, matrix.columns);
    let (wide, side) = match vectors {
        SingularVectors::None => (0, 0),
        SingularVectors::Reduced => (size, size),
        SingularVectors::Complete => (rows, size),
    };
    let high = if side == 0 { wide } else { rows };
    let most = matrix.max_component();
    if !most.is_finite() {
        let nothing = F::from_components([f64::NAN; 2]);
        return Ok((
            DenseMatrix::filled_with(nothing, high, wide)?,
            try_filled_vec(f64::NAN, size)?,
            DenseMatrix::filled_with(nothing, side, side)?,
        ));
    }
    // A power of two scales without rounding, and squares of numbers near 1 neither overflow nor vanish.
    let power = normalizing_power(most);
    matrix.scale(power);
    // A tall matrix becomes a square triangle first (Chan's method), so that what follows depends on the shorter side alone.
    let upright = if rows > size { Some(triangularize(team, &mut matrix)?) } else { None };
    matrix.elements.truncate(size * size);
    matrix.rows = size;
    let BidiagonalForm { mut own, mut beside, left: left_mirrors, right: right_mirrors } =
        bidiagonalize(team, matrix)?;
    let mut turned = [DenseMatrix::identity(side, side)?, DenseMatrix::identity(side, side)?];
    diagonalize(team, &mut own, &mut beside, &mut turned)?;
    // In the order of magnitudes, as signs are only settled below.
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|one, other| own[*other].abs().total_cmp(&own[*one].abs()));
    // Singular values are not negative, so the sign goes to a vector.
    for at in (0..side).filter(|at| own[*at] < 0.0) {
        turned[1].row_mut(at).iter_mut().for_each(|element| *element = -*element);
    }
    let values = order.iter().map(|at| own[*at].abs() / power).collect();
    if vectors == SingularVectors::None {
        return Ok((
            DenseMatrix::filled_with(F::ZERO, 0, 0)?,
            values,
            DenseMatrix::filled_with(F::ZERO, 0, 0)?,
        ));
    }
    let mut right = rows_to_columns(&turned[1], &order, size)?;
    right_mirrors.apply_to_matrix(team, &mut right)?;
    let mut left = rows_to_columns(&turned[0], &order, size)?;
    left_mirrors.apply_to_matrix(team, &mut left)?;
    if let Some(mirrors) = upright {
        // If all columns are wanted, those of the identity become the ones beyond the values.
        let mut whole = DenseMatrix::identity(rows, wide)?;
        for row in 0..size {
            whole.row_mut(row)[..size].copy_from_slice(left.row(row));
        }
        mirrors.apply_to_matrix(team, &mut whole)?;
        left = whole;
    }
    Ok((left, values, right.adjoint()?))
}

/// A diagonal, the one right of it, and the reflections that lead to them from both sides.
struct BidiagonalForm<F> {
    own: Vec<f64>,
    beside: Vec<f64>,
    left: HouseholderProduct<F>,
    right: HouseholderProduct<F>,
}

/// Reduces a square matrix to two diagonals. The update of the remaining rows and columns, `down * across` for both sides, waits
/// until they are next gone through.
fn bidiagonalize<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    mut matrix: DenseMatrix<F>,
) -> Result<BidiagonalForm<F>> {
    let size = matrix.rows;
    let isa = team.isa();
    let (mut own, mut beside) = (try_filled_vec(0.0, size)?, try_filled_vec(0.0, size)?);
    let mut left = HouseholderProduct::new(size, size, |index, size| index..size)?;
    let mut right = HouseholderProduct::new(size.saturating_sub(1), size, |index, size| index + 1..size)?;
    let mut down = [try_filled_vec(F::ZERO, size)?, try_filled_vec(F::ZERO, size)?];
    let mut across = [try_filled_vec(F::ZERO, size)?, try_filled_vec(F::ZERO, size)?];
    for at in 0..size {
        end_if_stopped();
        let vector = (at..size).map(|row| {
            matrix.element_at(row, at) - down[0][row] * across[0][at] - down[1][row] * across[1][at]
        });
        own[at] = left.set_reflector(at, at, vector);
        if at + 1 == size {
            break;
        }
        let (normal, factor) = (left.normal_vector(at), left.factors[at].conjugate());
        let mut sums = try_filled_vec(F::ZERO, size - at - 1)?;
        let (_, elements) = matrix.split_at_row(at);
        isa.vectorize(LeftReflection {
            rows: MatrixRows { elements, stride: size, columns: at + 1..size },
            down: [&down[0][at..], &down[1][at..]],
            across: [&across[0][at + 1..], &across[1][at + 1..]],
            normal,
            sums: &mut sums,
        });
        sums.iter_mut().for_each(|sum| *sum = *sum * factor);
        // The normal is 1 in the row that the reflection begins with.
        let row = elements[at + 1..size].iter().zip(&sums);
        beside[at] = right.set_reflector(at, at + 1, row.map(|(element, sum)| (*element - *sum).conjugate()));
        let (other, factor) = (right.normal_vector(at), right.factors[at]);
        let (_, elements) = matrix.split_at_row(at + 1);
        isa.vectorize(RightReflection {
            rows: MatrixRows { elements, stride: size, columns: at + 1..size },
            normal: other,
            sums: &mut down[1][at + 1..],
        });
        let along = sums.iter().zip(other).fold(F::ZERO, |along, (sum, other)| along + *sum * *other);
        // The rows lack the last reflection from the left, whose effect on their products is a multiple of its normal.
        for (row, normal) in (at + 1..size).zip(&normal[1..]) {
            down[0][row] = *normal;
            down[1][row] = (down[1][row] - *normal * along) * factor;
        }
        across[0][at + 1..].copy_from_slice(&sums);
        across[1][at + 1..].iter_mut().zip(other).for_each(|(to, other)| *to = other.conjugate());
    }
    Ok(BidiagonalForm { own, beside, left, right })
}

/// Applies the update of the last reflections to rows, and multiplies the result with the adjoint of the next normal.
struct LeftReflection<'a, F> {
    rows: MatrixRows<'a, F>,
    down: [&'a [F]; 2],
    across: [&'a [F]; 2],
    normal: &'a [F],
    sums: &'a mut [F],
}

impl<F: MatrixScalar> SimdTask for LeftReflection<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        for (at, row) in self.rows.iter_rows().enumerate() {
            add_scaled::<T, F>(row, -self.down[0][at], self.across[0]);
            add_scaled::<T, F>(row, -self.down[1][at], self.across[1]);
            add_scaled::<T, F>(self.sums, self.normal[at].conjugate(), row);
        }
    }
}

/// Multiplies rows with a normal.
struct RightReflection<'a, F> {
    rows: MatrixRows<'a, F>,
    normal: &'a [F],
    sums: &'a mut [F],
}

impl<F: MatrixScalar> SimdTask for RightReflection<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        for (row, sum) in self.rows.iter_rows().zip(self.sums) {
            *sum = dot_product::<T, F>(row, self.normal);
        }
    }
}

/// The cosine and the sine of the angle of a vector, and its length.
fn rotation_angle(along: f64, across: f64) -> (f64, f64, f64) {
    let length = along.hypot(across);
    if length == 0.0 { (1.0, 0.0, 0.0) } else { (along / length, across / length, length) }
}

/// Makes the elements beside the diagonal vanish. The rows of the first matrix are rotated like the rows of the two diagonals,
/// those of the other one like the columns.
fn diagonalize(
    team: &dyn ThreadTeam,
    own: &mut [f64],
    beside: &mut [f64],
    turned: &mut [DenseMatrix<f64>; 2],
) -> Result<()> {
    let (mut end, mut step) = (own.len(), 0);
    let mut turns = [try_reserve_vec(own.len())?, try_reserve_vec(own.len())?];
    while end > 0 {
        end_if_stopped();
        // A negligible element splits the matrix; only the part behind the last one is worked on.
        let begin = (0..end - 1).rev().find(|at| is_negligible(own, beside, *at)).map_or(0, |at| at + 1);
        if begin > 0 {
            beside[begin - 1] = 0.0;
        }
        if begin + 1 == end {
            (end, step) = (end - 1, 0);
            continue;
        }
        if step == MAX_ITERATIONS {
            return Err(convergence_error("singular values"));
        }
        step += 1;
        // A QR step needs a diagonal without zeros, so each 0 is split off first.
        let is_nothing = |at: &usize| {
            let before = if *at > begin { beside[at - 1].abs() } else { 0.0 };
            let after = if *at + 1 < end { beside[*at].abs() } else { 0.0 };
            own[*at].abs() <= f64::EPSILON * (before + after) + NEGLIGIBLE
        };
        turns.iter_mut().for_each(Vec::clear);
        match (begin..end).rev().find(is_nothing) {
            Some(at) if at + 1 == end => deflate_column(own, beside, begin, at, &mut turns[1]),
            Some(at) => deflate_row(own, beside, at, end, &mut turns[0]),
            None => chase_bulge(own, beside, begin, end, &mut turns),
        }
        turned.iter_mut().zip(&turns).for_each(|(turned, turns)| apply_rotations(team, turned, turns));
    }
    Ok(())
}

/// If the last element on the diagonal is 0, makes the one above it vanish too, by rotating it out of its column.
fn deflate_column(
    own: &mut [f64],
    beside: &mut [f64],
    begin: usize,
    last: usize,
    turns: &mut Vec<GivensRotation>,
) {
    own[last] = 0.0;
    let mut rest = std::mem::take(&mut beside[last - 1]);
    for at in (begin..last).rev() {
        let (cosine, sine, length) = rotation_angle(own[at], rest);
        own[at] = length;
        if at > begin {
            rest = -sine * beside[at - 1];
            beside[at - 1] *= cosine;
        }
        turns.push(GivensRotation { rows: [at, last], cosine, sine });
    }
}

/// If another element on the diagonal is 0, makes the one right of it vanish too, by rotating it out of its row.
fn deflate_row(
    own: &mut [f64],
    beside: &mut [f64],
    zero: usize,
    end: usize,
    turns: &mut Vec<GivensRotation>,
) {
    own[zero] = 0.0;
    let mut rest = std::mem::take(&mut beside[zero]);
    for at in zero + 1..end {
        let (cosine, sine, length) = rotation_angle(own[at], rest);
        own[at] = length;
        rest = -sine * beside[at];
        if at + 1 < end {
            beside[at] *= cosine;
        }
        turns.push(GivensRotation { rows: [at, zero], cosine, sine });
    }
}

/// One QR step: brings the last of some values closer to a singular value, by rotations of columns and of rows from the first one
/// on.
fn chase_bulge(
    own: &mut [f64],
    beside: &mut [f64],
    begin: usize,
    end: usize,
    turns: &mut [Vec<GivensRotation>; 2],
) {
    let last = end - 1;
    let sizes = [own[last], own[last - 1], beside[last - 1], own[begin], beside[begin]];
    // Relative to the largest of them, products of two do not overflow.
    let scale = sizes.iter().fold(0.0, |most, size| f64::max(most, size.abs()));
    let [value, before, between, first, after] = sizes.map(|size| size / scale);
    // Wilkinson's shift: of the eigenvalues of the last two rows times their adjoint, the one nearer to the last element.
    // Differences of squares are products, which cancel less.
    let half = ((before + value) * (before - value) + between * between) / 2.0;
    let square = (value * between) * (value * between);
    let root = (half * half + square).sqrt().copysign(half);
    let shift = if root + half == 0.0 { 0.0 } else { square / (half + root) };
    let (mut along, mut across) = ((first + value) * (first - value) + shift, first * after);
    for at in begin..last {
        let (cosine, sine, length) = rotation_angle(along, across);
        if at > begin {
            beside[at - 1] = length;
        }
        along = cosine * own[at] + sine * beside[at];
        beside[at] = cosine * beside[at] - sine * own[at];
        across = sine * own[at + 1];
        own[at + 1] *= cosine;
        turns[1].push(GivensRotation { rows: [at, at + 1], cosine, sine });
        let (cosine, sine, length) = rotation_angle(along, across);
        own[at] = length;
        along = cosine * beside[at] + sine * own[at + 1];
        own[at + 1] = cosine * own[at + 1] - sine * beside[at];
        if at + 1 < last {
            across = sine * beside[at + 1];
            beside[at + 1] *= cosine;
        }
        turns[0].push(GivensRotation { rows: [at, at + 1], cosine, sine });
    }
    beside[last - 1] = along;
}

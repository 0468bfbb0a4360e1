//! Eigenvectors of any square matrix: Householder reflections leave one diagonal below the main one, rotations of neighboring rows and
//! columns leave none (implicit QR with Wilkinson's shifts), and the vectors of that triangle are found by substitution.

use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::{Complex, PluginError, Result, end_if_stopped};

use super::eigen::{MAX_ITERATIONS, NEGLIGIBLE};
use super::field::ScalarField as _;
use super::matrix::{DenseMatrix, normalizing_power};

type Number = Complex<f64>;

/// The eigenvectors of a matrix as columns of length 1. All are NaN if an element of the matrix is not finite.
pub(super) fn eigenvectors(mut matrix: DenseMatrix<Number>) -> Result<DenseMatrix<Number>> {
    let size = matrix.rows;
    let most = matrix.max_component();
    if !most.is_finite() {
        return DenseMatrix::filled_with(Number::new(f64::NAN, f64::NAN), size, size);
    }
    // A power of two scales without rounding, and squares of numbers near 1 neither overflow nor vanish.
    matrix.scale(normalizing_power(most));
    let mut turned = DenseMatrix::identity(size, size)?;
    reduce_to_hessenberg(&mut matrix, &mut turned)?;
    reduce_to_triangle(&mut matrix, &mut turned)?;
    let vectors = triangle_vectors(&matrix)?;
    let mut result = DenseMatrix::filled_with(Number::ZERO, size, size)?;
    for row in 0..size {
        for (at, factor) in turned.row(row).iter().enumerate() {
            for column in at..size {
                *result.element_at_mut(row, column) += factor * vectors.element_at(at, column);
            }
        }
    }
    normalize_columns(&mut result);
    Ok(result)
}

/// Makes everything below the first diagonal under the main one zero; `turned` is multiplied by the reflections.
fn reduce_to_hessenberg(matrix: &mut DenseMatrix<Number>, turned: &mut DenseMatrix<Number>) -> Result<()> {
    let size = matrix.rows;
    let mut mirror = try_filled_vec(Number::ZERO, size)?;
    for column in 0..size.saturating_sub(2) {
        end_if_stopped();
        let first = column + 1;
        let below = (first..size).map(|row| matrix.element_at(row, column).squared_magnitude()).sum::<f64>();
        let head = matrix.element_at(first, column);
        let rest = below - head.squared_magnitude();
        if rest <= NEGLIGIBLE {
            continue;
        }
        let length = below.sqrt();
        // With the sign of the head, nothing cancels.
        let direction =
            if head.magnitude() > 0.0 { head.scaled_by(1.0 / head.magnitude()) } else { Number::ONE };
        (first..size).for_each(|row| mirror[row] = matrix.element_at(row, column));
        mirror[first] = head + direction.scaled_by(length);
        let norm = (first..size).map(|row| mirror[row].squared_magnitude()).sum::<f64>();
        let mirror = &mirror[first..size];
        // (1 - 2 v v* / |v|²) from the left, and from the right.
        for at in 0..size {
            let along = (first..size).zip(mirror).fold(Number::ZERO, |sum, (row, mirror)| {
                sum + mirror.conjugate() * matrix.element_at(row, at)
            });
            let along = along.scaled_by(2.0 / norm);
            for (row, mirror) in (first..size).zip(mirror) {
                *matrix.element_at_mut(row, at) -= mirror * along;
            }
        }
        for matrix in [&mut *matrix, &mut *turned] {
            for row in 0..size {
                let row = &mut matrix.row_mut(row)[first..size];
                let along = row
                    .iter()
                    .zip(mirror)
                    .fold(Number::ZERO, |sum, (element, mirror)| sum + element * mirror);
                let along = along.scaled_by(2.0 / norm);
                row.iter_mut()
                    .zip(mirror)
                    .for_each(|(element, mirror)| *element -= along * mirror.conjugate());
            }
        }
    }
    Ok(())
}

/// Makes the diagonal under the main one zero; `turned` is multiplied by the rotations.
fn reduce_to_triangle(matrix: &mut DenseMatrix<Number>, turned: &mut DenseMatrix<Number>) -> Result<()> {
    let mut end = matrix.rows;
    let mut iterations = 0;
    while end > 1 {
        end_if_stopped();
        let begin = block_begin(matrix, end);
        if begin + 1 == end {
            (end, iterations) = (end - 1, 0);
            continue;
        }
        iterations += 1;
        if iterations > MAX_ITERATIONS {
            return Err(PluginError::out_of_range(
                "expected eigenvalues to converge, found that they did not",
            ));
        }
        let shift = if iterations % 10 == 0 {
            // Matrices that turn in a circle leave it with a shift that has nothing to do with them.
            Number::from_real(matrix.element_at(end - 1, end - 2).magnitude())
        } else {
            wilkinson_shift(matrix, end)
        };
        sweep(matrix, turned, begin, end, shift);
    }
    Ok(())
}

/// The first row of the block that ends before `end`: elements under the diagonal before it that do not matter become zero.
fn block_begin(matrix: &mut DenseMatrix<Number>, end: usize) -> usize {
    for row in (1..end).rev() {
        let beside =
            matrix.element_at(row, row).magnitude() + matrix.element_at(row - 1, row - 1).magnitude();
        if matrix.element_at(row, row - 1).magnitude() <= (f64::EPSILON * beside).max(NEGLIGIBLE) {
            *matrix.element_at_mut(row, row - 1) = Number::ZERO;
            return row;
        }
    }
    0
}

/// The eigenvalue of the last two rows and columns that is closer to the last element.
fn wilkinson_shift(matrix: &DenseMatrix<Number>, end: usize) -> Number {
    let at = |row: usize, column: usize| matrix.element_at(end - 2 + row, end - 2 + column);
    let half = (at(0, 0) - at(1, 1)).scaled_by(0.5);
    let root = square_root(half * half + at(0, 1) * at(1, 0));
    let far = if (half + root).magnitude() >= (half - root).magnitude() { half + root } else { half - root };
    if far.magnitude() == 0.0 { at(1, 1) } else { at(1, 1) - at(0, 1) * at(1, 0) / far }
}

/// The square root whose real part is not negative.
fn square_root(number: Number) -> Number {
    let large = ((number.magnitude() + number.re.abs()) / 2.0).sqrt();
    if large == 0.0 {
        return Number::ZERO;
    }
    let small = number.im.abs() / (2.0 * large);
    let (real, imaginary) = if number.re >= 0.0 { (large, small) } else { (small, large) };
    Number::new(real, imaginary.copysign(number.im))
}

/// One step of QR on the rows and columns of a block: the rotation of the first two makes a bulge, which the others push out.
fn sweep(
    matrix: &mut DenseMatrix<Number>,
    turned: &mut DenseMatrix<Number>,
    begin: usize,
    end: usize,
    shift: Number,
) {
    let size = matrix.rows;
    let mut kept = matrix.element_at(begin, begin) - shift;
    let mut bulge = matrix.element_at(begin + 1, begin);
    for row in begin..end - 1 {
        if row > begin {
            kept = matrix.element_at(row, row - 1);
            bulge = matrix.element_at(row + 1, row - 1);
        }
        let length = kept.magnitude().hypot(bulge.magnitude());
        if length == 0.0 {
            continue;
        }
        let (cosine, sine) = (kept.scaled_by(1.0 / length), bulge.scaled_by(1.0 / length));
        for column in row.saturating_sub(1).max(begin)..size {
            let (upper, lower) = (matrix.element_at(row, column), matrix.element_at(row + 1, column));
            *matrix.element_at_mut(row, column) = cosine.conjugate() * upper + sine.conjugate() * lower;
            *matrix.element_at_mut(row + 1, column) = cosine * lower - sine * upper;
        }
        if row > begin {
            *matrix.element_at_mut(row + 1, row - 1) = Number::ZERO;
        }
        let rows = (row + 3).min(end);
        for (matrix, rows) in [(&mut *matrix, rows), (&mut *turned, size)] {
            for at in 0..rows {
                let (left, right) = (matrix.element_at(at, row), matrix.element_at(at, row + 1));
                *matrix.element_at_mut(at, row) = left * cosine + right * sine;
                *matrix.element_at_mut(at, row + 1) = right * cosine.conjugate() - left * sine.conjugate();
            }
        }
    }
}

/// The eigenvectors of an upper triangle as columns.
fn triangle_vectors(matrix: &DenseMatrix<Number>) -> Result<DenseMatrix<Number>> {
    let size = matrix.rows;
    let mut vectors = DenseMatrix::identity(size, size)?;
    // Equal eigenvalues are told apart by less than rounding does.
    let most = matrix.max_component();
    let least = if most > 0.0 { f64::EPSILON * most } else { 1.0 };
    for column in 1..size {
        end_if_stopped();
        let value = matrix.element_at(column, column);
        for row in (0..column).rev() {
            let sum = (row + 1..=column).fold(Number::ZERO, |sum, at| {
                sum + matrix.element_at(row, at) * vectors.element_at(at, column)
            });
            let apart = value - matrix.element_at(row, row);
            let apart = if apart.magnitude() < least { Number::from_real(least) } else { apart };
            let element = sum / apart;
            *vectors.element_at_mut(row, column) = element;
            // Of equal eigenvalues that share a vector, each element is that much larger than the one below it.
            if element.max_component() > 1e100 {
                scale_column(&mut vectors, column);
            }
        }
        scale_column(&mut vectors, column);
    }
    Ok(vectors)
}

/// Scales a column so that its greatest element is near 1: products of large elements would overflow.
fn scale_column(vectors: &mut DenseMatrix<Number>, column: usize) {
    let most =
        (0..vectors.rows).map(|row| vectors.element_at(row, column).max_component()).fold(0.0, f64::max);
    let by = normalizing_power(most);
    (0..vectors.rows).for_each(|row| {
        let scaled = vectors.element_at(row, column).scaled_by(by);
        *vectors.element_at_mut(row, column) = scaled;
    });
}

fn normalize_columns(vectors: &mut DenseMatrix<Number>) {
    for column in 0..vectors.columns {
        scale_column(vectors, column);
        let squares = (0..vectors.rows).map(|row| vectors.element_at(row, column).squared_magnitude());
        let length = squares.sum::<f64>().sqrt();
        if length > 0.0 {
            (0..vectors.rows).for_each(|row| {
                let scaled = vectors.element_at(row, column).scaled_by(1.0 / length);
                *vectors.element_at_mut(row, column) = scaled;
            });
        }
    }
}

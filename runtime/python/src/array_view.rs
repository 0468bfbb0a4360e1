//! How a view sees the array that it is a view of, and what is selected of one as what is selected of the other.

use oarlock_core::DimSelection;

/// How a view sees its array.
#[derive(Clone)]
pub(crate) enum ArrayView {
    /// A part.
    Selection(Vec<DimSelection>),
    /// The dimensions in another order.
    Permutation(Vec<usize>),
    /// The elements in another shape.
    Shape(Vec<i64>),
}

impl ArrayView {
    /// This view and then another one of it, as one.
    pub(crate) fn followed_by(&self, next: &Self) -> Option<Self> {
        match (self, next) {
            (Self::Selection(outer), Self::Selection(inner)) => {
                compose_selections(outer, inner).map(Self::Selection)
            }
            (Self::Permutation(outer), Self::Permutation(inner)) => {
                Some(Self::Permutation(inner.iter().map(|axis| outer[*axis]).collect()))
            }
            (Self::Shape(_), Self::Shape(_)) => Some(next.clone()),
            _ => None,
        }
    }
}

/// The part of an array that `inner` selects of the part that `outer` selects; `None` if no single selection says it.
pub(crate) fn compose_selections(
    outer: &[DimSelection],
    inner: &[DimSelection],
) -> Option<Vec<DimSelection>> {
    let mut inner = inner.iter().copied();
    let mut made = Vec::with_capacity(outer.len() + inner.len());
    for outer in outer {
        if let DimSelection::At(_) = outer {
            made.push(*outer);
            continue;
        }
        let inner = loop {
            match inner.next() {
                Some(DimSelection::New) => made.push(DimSelection::New),
                found => break found.unwrap_or(DimSelection::Whole),
            }
        };
        match (*outer, inner) {
            (DimSelection::New, DimSelection::At(_)) => {}
            (outer, DimSelection::Whole) => made.push(outer),
            (DimSelection::Whole, inner) => made.push(inner),
            (DimSelection::Range { begin, step, .. }, DimSelection::At(place)) => {
                made.push(DimSelection::At(begin + place * step));
            }
            (
                DimSelection::Range { begin, step, .. },
                DimSelection::Range { begin: first, count, step: stride },
            ) => made.push(DimSelection::Range { begin: begin + first * step, count, step: step * stride }),
            _ => return None,
        }
    }
    made.extend(inner);
    Some(made)
}

/// The selection of an array that has the elements which `picks` selects of its view with dimensions in another order, and the order
/// that gives the dimensions of one the order of the other. `None` if the selection adds dimensions.
pub(crate) fn permute_selection(
    order: &[usize],
    picks: &[DimSelection],
) -> Option<(Vec<DimSelection>, Vec<usize>)> {
    if picks.contains(&DimSelection::New) {
        return None;
    }
    let mut turned = vec![DimSelection::Whole; order.len()];
    for (axis, pick) in order.iter().zip(picks) {
        turned[*axis] = *pick;
    }
    let is_kept = |axis: &&usize| !matches!(turned[**axis], DimSelection::At(_));
    let axes: Vec<usize> = order.iter().filter(is_kept).copied().collect();
    let mut kept: Vec<usize> = (0..axes.len()).collect();
    kept.sort_by_key(|place| axes[*place]);
    Some((turned, kept))
}

/// The place in an array of a single element of its view in another shape; `None` for a selection of more.
pub(crate) fn place_of_element(
    seen: &[i64],
    picks: &[DimSelection],
    dims: &[i64],
) -> Option<Vec<DimSelection>> {
    let mut place = 0;
    for (size, pick) in seen.iter().zip(picks) {
        let DimSelection::At(at) = pick else { return None };
        place = place * size.unsigned_abs() + at;
    }
    if picks.len() != seen.len() {
        return None;
    }
    let mut found = vec![DimSelection::At(0); dims.len()];
    for (pick, size) in found.iter_mut().zip(dims).rev() {
        *pick = DimSelection::At(place % size.unsigned_abs());
        place /= size.unsigned_abs();
    }
    Some(found)
}

//! Ops whose output size depends on the data: `NonZero`, `Compress` and `Unique`.

use std::borrow::Cow;
use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    WHOLE_BYTE_DTYPES, element_bytes, element_bytes_mut, typed_values_mut,
};
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_cpu_base::text_operand::{read_texts, write_texts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::ensure;
use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, TensorView,
};

use super::{data_operand, shape};
use crate::order::line_sort::{LineSort, by_number_size};
use crate::order::rank_mapping::RankMapping;

const UNIQUE_DTYPES: DtypeSet = oarlock_sdk::family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64)
    .union(DtypeSet::BOOL);

pub(super) fn selection_kernels() -> Vec<Kernel<Cpu>> {
    let integers = |name| OperandSpec::new(DtypeSet::I64).with_name(name).with_flags(OperandFlags::OPTIONAL);
    let ordered = OperandSpec::new(UNIQUE_DTYPES.union(DtypeSet::STRING)).with_dtype_group(1);
    let kernels = [
        Kernel::new("NonZero", |_, call| non_zero(call))
            .since_version(9)
            .with_inputs([OperandSpec::new(WHOLE_BYTE_DTYPES).with_name("X")])
            .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("Y")]),
        Kernel::new_prepared("Compress", |_, call| {
            let axis = call.int_attribute("axis")?;
            Ok(Arc::new(move |_: &Cpu, call: &KernelCall<'_>| compress(call, axis)))
        })
        .since_version(9)
        .with_inputs([
            data_operand("input"),
            OperandSpec::new(DtypeSet::BOOL).with_name("condition").with_rank(1, 1),
        ])
        .with_outputs([data_operand("output")]),
        Kernel::new_prepared("Unique", |_, call| {
            let (axis, is_sorted) =
                (call.int_attribute("axis")?, call.int_attribute("sorted")?.unwrap_or(1) != 0);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
                let input = call.input(0)?;
                if input.dtype() == Dtype::STRING {
                    let texts = read_texts(&input)?;
                    return find_unique(call, axis, is_sorted, &texts, &|output, found| {
                        write_texts(output, found.map(|at| texts[at]).collect::<Vec<_>>().into_iter())
                    });
                }
                if axis.is_none() || input.dims().len() == 1 && is_only_axis(axis) {
                    return by_number_size!(input.dtype(), N => unique_numbers::<N>(cpu, call, is_sorted));
                }
                by_number_size!(input.dtype(), N => {
                    let elements = element_bytes::<N>(&input)?;
                    let ranking = RankMapping::<u64>::new(input.dtype(), N, false);
                    let mut ranks = try_reserve_vec(elements.len())?;
                    ranks.extend(elements.iter().map(|element| ranking.rank_of(*element)));
                    find_unique(call, axis, is_sorted, &ranks, &|output, found| {
                        element_bytes_mut::<N>(output)?.iter_mut().zip(found).for_each(|(out, at)| *out = elements[at]);
                        Ok(())
                    })
                })
            }))
        })
        .since_version(11)
        .with_inputs([ordered.with_name("X")])
        .with_outputs([
            ordered.with_name("Y"),
            integers("indices"),
            integers("inverse_indices"),
            integers("counts"),
        ]),
    ];
    kernels.into_iter().map(|kernel| kernel.with_flags(KernelFlags::ALLOCATES_OUTPUTS)).collect()
}

/// The bits that make an element nonzero: all but the signs of floats.
fn significant_bits<const N: usize>(dtype: Dtype) -> [u8; N] {
    let mut bits = [0xFF; N];
    let mut repeat =
        |part: &[u8]| bits.chunks_exact_mut(part.len()).for_each(|chunk| chunk.copy_from_slice(part));
    match dtype {
        // The other floats of 8 bits have no negative 0.
        Dtype::F8E4M3 | Dtype::F8E5M2 => repeat(&[0x7F]),
        Dtype::F16 | Dtype::BF16 => repeat(&(u16::MAX >> 1).to_ne_bytes()),
        Dtype::F32 | Dtype::C64 => repeat(&(u32::MAX >> 1).to_ne_bytes()),
        Dtype::F64 | Dtype::C128 => repeat(&(u64::MAX >> 1).to_ne_bytes()),
        _ => {}
    }
    bits
}

/// Flags that are tested together, so that runs of zeros are skipped: 32 bytes are one ymm register.
const SCAN_BLOCK: usize = 32;

/// Writes the values of elements whose byte is not 0, one after the other, and returns their number. Each value is written to the
/// next free place, which only advances if it is kept: there is no branch to mispredict.
fn write_selected<V>(is_kept: &[u8], value: impl Fn(usize) -> V, out: &mut [V]) -> usize {
    let mut next = 0;
    for (block, bytes) in is_kept.chunks(SCAN_BLOCK).enumerate() {
        if bytes.iter().fold(0, |any, byte| any | byte) == 0 {
            continue;
        }
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(place) = out.get_mut(next) {
                *place = value(block * SCAN_BLOCK + at);
            }
            next += usize::from(*byte != 0);
        }
    }
    next
}

fn count_nonzero(bytes: &[u8]) -> usize {
    // At most 128 flags, so that a byte holds their sum and more lanes fit into a register.
    let few = bytes.chunks(128).map(|few| few.iter().map(|byte| u8::from(*byte != 0)).sum::<u8>());
    few.map(usize::from).sum()
}

fn non_zero(call: &KernelCall<'_>) -> Result<()> {
    let input = call.input(0)?;
    let dims = shape::shape_dims(&input)?;
    let made: Vec<u8>;
    let is_set = if input.dtype() == Dtype::BOOL {
        element_bytes::<1>(&input)?.as_flattened()
    } else {
        made = by_size!(input.dtype(), N => {
            let bits = significant_bits::<N>(input.dtype());
            let is_set = |cell: &[u8; N]| cell.iter().zip(bits).fold(0, |any, (byte, bits)| any | byte & bits);
            let cells = element_bytes::<N>(&input)?;
            let mut made = try_reserve_vec(cells.len())?;
            made.extend(cells.iter().map(is_set));
            made
        });
        &made
    };
    let count = count_nonzero(is_set);
    call.allocate_output(0, Dtype::I64, &[dims.len() as i64, count as i64])?;
    let out = typed_values_mut::<i64>(&call.output(0)?)?;
    // If an element is set, no dimension is 0, and `last` can be the size of a chunk.
    let Some((last, outer)) = dims.split_last().filter(|_| count > 0) else { return Ok(()) };
    // The output has a row for each axis, so positions along the last axis are contiguous.
    let (outer_places, last_places) = out.split_at_mut(outer.len() * count);
    // The positions along the other axes are the same for a whole row.
    let mut row_places = vec![0; outer.len()];
    let mut begin = 0;
    for row in is_set.chunks_exact(*last) {
        let found = write_selected(row, |at| at as i64, &mut last_places[begin..]);
        for (axis, place) in row_places.iter().enumerate() {
            outer_places[axis * count + begin..][..found].fill(*place);
        }
        begin += found;
        for (place, dim) in row_places.iter_mut().zip(outer).rev() {
            *place += 1;
            if (*place as usize) < *dim {
                break;
            }
            *place = 0;
        }
    }
    Ok(())
}

fn compress(call: &KernelCall<'_>, axis: Option<i64>) -> Result<()> {
    let (input, condition) = (call.input(0)?, call.input(1)?);
    let mut dims = shape::shape_dims(&input)?;
    let axis = match axis {
        Some(axis) => resolve_axis(axis, dims.len())?,
        None => {
            dims = vec![shape::element_count(&dims)?];
            0
        }
    };
    let (outer, length, inner) = shape::split_at_axis(&dims, axis);
    // Read as a byte, so that a `bool` that is neither 0 nor 1 does no harm.
    let condition = element_bytes::<1>(&condition)?.as_flattened();
    ensure!(
        condition.len() <= length,
        invalid_argument,
        "expected a `condition` for at most {length} indices, found {}",
        condition.len()
    );
    let kept = count_nonzero(condition);
    dims[axis] = kept;
    let dims: Vec<_> = dims.into_iter().map(|dim| dim as i64).collect();
    call.allocate_output(0, input.dtype(), &dims)?;
    let output = call.output(0)?;
    by_size!(input.dtype(), N => {
        let (from, out) = (element_bytes::<N>(&input)?, element_bytes_mut::<N>(&output)?);
        // Single elements are selected without branches. If none is kept, chunks of 0 would panic.
        if inner == 1 && kept > 0 {
            for (from, out) in from.chunks_exact(length).zip(out.chunks_exact_mut(kept)) {
                write_selected(condition, |at| from[at], out);
            }
            return Ok(());
        }
        let mut parts = out.chunks_exact_mut(inner.max(1));
        for row in 0..outer {
            for (at, _) in condition.iter().enumerate().filter(|(_, byte)| **byte != 0) {
                let Some(part) = parts.next() else { return Ok(()) };
                part.copy_from_slice(&from[(row * length + at) * inner..][..inner]);
            }
        }
        Ok(())
    })
}

fn is_only_axis(axis: Option<i64>) -> bool {
    matches!(axis, Some(0 | -1))
}

/// Finds the distinct elements of all.
fn unique_numbers<const N: usize>(cpu: &Cpu, call: &KernelCall<'_>, is_sorted: bool) -> Result<()> {
    let input = call.input(0)?;
    let elements = element_bytes::<N>(&input)?;
    let axis = AxisLayout { outer: 1, length: elements.len(), inner: 1 };
    // Equal elements are neighbors once they are sorted, so there is no hash table.
    let sorting = LineSort::new(cpu, axis, false, input.dtype());
    // Without places, the entries that are sorted have half the size.
    let mut wants_places = !is_sorted;
    for index in 1..4 {
        wants_places |= call.optional_output(index)?.is_some();
    }
    let mut sorted = try_filled_vec([0; N], elements.len())?;
    let mut places = try_filled_vec(0, if wants_places { elements.len() } else { 0 })?;
    if !elements.is_empty() {
        sorting.sort_lines(elements, &mut sorted, wants_places.then_some(&mut places))?;
    }
    let is_first = first_of_equals(cpu.isa(), input.dtype(), &sorted)?;
    let found = count_nonzero(&is_first);
    call.allocate_output(0, input.dtype(), &[found as i64])?;
    let out = element_bytes_mut::<N>(&call.output(0)?)?;
    if !wants_places {
        write_selected(&is_first, |at| sorted[at], out);
        return Ok(());
    }
    let mut begins = try_filled_vec(0, found)?;
    write_selected(&is_first, |at| at, &mut begins);
    let end_of = |group: usize| begins.get(group + 1).copied().unwrap_or(elements.len());
    let mut groups: Vec<usize> = (0..begins.len()).collect();
    if !is_sorted {
        // Equal elements are in the order of their places, so the first one says where the value first occurs.
        groups.sort_unstable_by_key(|group| places[begins[*group]]);
    }
    for (out, group) in out.iter_mut().zip(&groups) {
        *out = sorted[begins[*group]];
    }
    let mut inverse = try_filled_vec(0, elements.len())?;
    for (at, group) in groups.iter().enumerate() {
        places[begins[*group]..end_of(*group)].iter().for_each(|place| inverse[*place as usize] = at as i64);
    }
    write_output(call, 1, groups.iter().map(|group| places[begins[*group]]))?;
    write_output(call, 2, inverse.into_iter())?;
    write_output(call, 3, groups.iter().map(|group| (end_of(*group) - begins[*group]) as i64))
}

/// A 1 for each sorted element whose rank that before it does not have.
fn first_of_equals<const N: usize>(isa: Isa, dtype: Dtype, sorted: &[[u8; N]]) -> Result<Vec<u8>> {
    let mut is_first = try_filled_vec(1, sorted.len())?;
    let ranking = RankMapping::<u64>::new(dtype, N, false);
    with_isa!(isa, || {
        let mapping = ranking;
        for (flag, pair) in is_first.iter_mut().skip(1).zip(sorted.windows(2)) {
            *flag = u8::from(mapping.rank_of(pair[0]) != mapping.rank_of(pair[1]));
        }
    });
    Ok(is_first)
}

/// Fills an output with the elements of the input at these places.
type PlaceWriter<'a> = dyn Fn(&TensorView<'_>, &mut dyn Iterator<Item = usize>) -> Result<()> + 'a;

/// Finds the distinct elements, or the distinct slices along an axis, by what orders them, and writes them.
fn find_unique<T: Copy + Ord>(
    call: &KernelCall<'_>,
    axis: Option<i64>,
    is_sorted: bool,
    from: &[T],
    fill: &PlaceWriter<'_>,
) -> Result<()> {
    let input = call.input(0)?;
    let mut dims = shape::shape_dims(&input)?;
    let axis = match axis {
        Some(axis) => resolve_axis(axis, dims.len())?,
        None => {
            dims = vec![shape::element_count(&dims)?];
            0
        }
    };
    let (outer, length, inner) = shape::split_at_axis(&dims, axis);
    let width = from.len().checked_div(length).unwrap_or(0);
    let items = contiguous_slices(from, [outer, length, inner]);
    let item = |index: usize| &items[index * width..][..width];
    let sorted = sort_items(&items, width, length)?;
    let mut groups: Vec<_> = sorted.chunk_by(|a, b| item(*a) == item(*b)).collect();
    if !is_sorted {
        // Of equal items the lower index comes first, so each group begins where its value first occurs.
        groups.sort_by_key(|group| group[0]);
    }
    dims[axis] = groups.len();
    let shape: Vec<_> = dims.iter().map(|dim| *dim as i64).collect();
    call.allocate_output(0, input.dtype(), &shape)?;
    // Items are whole slices, but the output has a row of each by turns.
    let first_place = |row: usize, group: &[usize]| (row * length + group[0]) * inner;
    let row = |row: usize| groups.iter().map(move |group| first_place(row, group));
    // Rows without elements may be more than anyone can count.
    let rows = if width == 0 { 0 } else { outer };
    fill(&call.output(0)?, &mut (0..rows).flat_map(row).flat_map(|first| first..first + inner))?;
    let mut inverse = try_filled_vec(0, length)?;
    for (at, group) in groups.iter().enumerate() {
        group.iter().for_each(|index| inverse[*index] = at as i64);
    }
    write_output(call, 1, groups.iter().map(|group| group[0] as i64))?;
    write_output(call, 2, inverse.into_iter())?;
    write_output(call, 3, groups.iter().map(|group| group.len() as i64))
}

/// The elements of each slice along an axis, one slice after the other. The sizes are those before, along and after the axis.
fn contiguous_slices<T: Copy>(from: &[T], [outer, length, inner]: [usize; 3]) -> Cow<'_, [T]> {
    if outer == 1 || from.is_empty() {
        return Cow::Borrowed(from);
    }
    let parts = (0..length).flat_map(|index| (0..outer).map(move |row| (row * length + index) * inner));
    Cow::Owned(parts.flat_map(|first| &from[first..first + inner]).copied().collect())
}

/// The indices of items of `width` elements in sorted order; of equal items the lower index comes first.
fn sort_items<T: Copy + Ord>(items: &[T], width: usize, count: usize) -> Result<Vec<usize>> {
    // Slices without elements may be many.
    let mut sorted = try_reserve_vec(count)?;
    if width == 0 {
        sorted.extend(0..count);
        return Ok(sorted);
    }
    // Most items differ in their first element, which is kept beside the index: comparing it touches no other memory.
    let mut keys: Vec<(T, usize)> = items.iter().step_by(width).copied().zip(0..count).collect();
    let rest = |index: usize| items[index * width..][1..width].iter();
    keys.sort_unstable_by(|(a, at), (b, other)| {
        a.cmp(b).then_with(|| rest(*at).cmp(rest(*other))).then(at.cmp(other))
    });
    sorted.extend(keys.iter().map(|(_, index)| *index));
    Ok(sorted)
}

/// Allocates and writes an output that may be absent.
fn write_output(call: &KernelCall<'_>, index: usize, list: impl ExactSizeIterator<Item = i64>) -> Result<()> {
    if call.optional_output(index)?.is_none() {
        return Ok(());
    }
    call.allocate_output(index as u32, Dtype::I64, &[list.len() as i64])?;
    for (out, value) in typed_values_mut::<i64>(&call.output(index)?)?.iter_mut().zip(list) {
        *out = value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::{Dtype, Element};

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn places_that_are_not_zero_are_listed_by_axis() {
        let input = TestArray::from_values(&[2, 2], &[1f32, -0.0, f32::NAN, 2.]);
        let found =
            KERNELS.run_kernel("NonZero", 13, &[], &[Some(&input)], &[None]).unwrap().remove(0).unwrap();
        assert_eq!((&found.dims[..], found.values::<i64>()), (&[2, 3][..], vec![0, 1, 1, 0, 0, 1]));
        let scalar = TestArray::from_values(&[], &[3u8]);
        let found =
            KERNELS.run_kernel("NonZero", 13, &[], &[Some(&scalar)], &[None]).unwrap().remove(0).unwrap();
        assert_eq!(found.dims, [0, 1]);
    }

    #[test]
    fn what_the_condition_holds_for_is_kept() {
        let (input, condition) = (
            TestArray::from_values(&[2, 3], &[1i16, 2, 3, 4, 5, 6]),
            TestArray::from_values(&[2], &[false, true]),
        );
        let axis = [("axis", TestAttribute::Int(-1))];
        let found =
            KERNELS.run_kernel("Compress", 11, &axis, &[Some(&input), Some(&condition)], &[None]).unwrap();
        let found = found[0].as_ref().unwrap();
        assert_eq!((&found.dims[..], found.values::<i16>()), (&[2, 1][..], vec![2, 5]));
        let long = TestArray::from_values(&[4], &[true; 4]);
        assert!(KERNELS.run_kernel("Compress", 11, &axis, &[Some(&input), Some(&long)], &[None]).is_err());
        let found = KERNELS.run_kernel("Compress", 11, &[], &[Some(&input), Some(&long)], &[None]).unwrap();
        assert_eq!(found[0].as_ref().unwrap().values::<i16>(), [1, 2, 3, 4]);
    }

    #[test]
    fn slices_without_elements_are_equal_however_many_rows_they_have() {
        let input = TestArray::from_values::<i16>(&[1 << 50, 2, 0], &[]);
        let axis = [("axis", TestAttribute::Int(1))];
        let found = KERNELS.run_kernel("Unique", 11, &axis, &[Some(&input)], &[None; 4]).unwrap();
        assert_eq!(found[0].as_ref().unwrap().dims, [1 << 50, 1, 0]);
        assert_eq!(found[3].as_ref().unwrap().values::<i64>(), [2]);
    }

    #[test]
    fn different_elements_are_found_with_their_places_and_counts() {
        let input = TestArray::from_values(&[6], &[2f32, 1., 1., 3., 4., 3.]);
        for (sorted, expected) in [
            (1, [vec![1i64, 2, 3, 4], vec![1, 0, 3, 4], vec![1, 0, 0, 2, 3, 2], vec![2, 1, 2, 1]]),
            (0, [vec![2, 1, 3, 4], vec![0, 1, 3, 4], vec![0, 1, 1, 2, 3, 2], vec![1, 2, 2, 1]]),
        ] {
            let sorted = [("sorted", TestAttribute::Int(sorted))];
            let found = KERNELS.run_kernel("Unique", 11, &sorted, &[Some(&input)], &[None; 4]).unwrap();
            let found: Vec<_> = found.iter().flatten().collect();
            let values: Vec<_> = found[0].values::<f32>().iter().map(|value| *value as i64).collect();
            let rest = found[1..].iter().map(|array| array.values::<i64>());
            assert_eq!([values].into_iter().chain(rest).collect::<Vec<_>>(), expected);
        }
    }

    fn check_values_alone<T: Element + Copy>(number: impl Fn(usize) -> T) {
        for length in [0, 1, 2, 100, 700, 70_000] {
            let values: Vec<T> = (0..length).map(&number).collect();
            let input = TestArray::from_values(&[length as i64], &values);
            let run = |outputs: &[Option<(Dtype, &[i64])>]| {
                KERNELS.run_kernel("Unique", 11, &[], &[Some(&input)], outputs).unwrap().remove(0).unwrap()
            };
            let (alone, among_all) = (run(&[None]), run(&[None; 4]));
            assert_eq!((&alone.dims, alone.bytes()), (&among_all.dims, among_all.bytes()), "{length}");
        }
    }

    #[test]
    fn different_elements_alone_are_those_that_are_found_with_their_places() {
        check_values_alone(|at| at as i32 * 7919 % 1013);
        check_values_alone(|at| (at * 7919 % 89) as u8);
        check_values_alone(|at| (at * 7919 % 60_000) as i16);
        // The first of equals, in whose bits zeros and NaN differ.
        check_values_alone(|at| match at * 7919 % 5 {
            0 => -0f32,
            1 => 0.0,
            2 => -f32::NAN,
            3 => f32::NAN,
            _ => at as f32,
        });
    }

    #[test]
    fn what_is_kept_of_many_is_what_a_plain_search_finds() {
        for (length, inner) in [(31, 1), (32, 1), (1000, 1), (77, 3), (5, 0), (64, 1)] {
            for every in [1, 2, 40, 5000] {
                let condition: Vec<bool> = (0..length).map(|at| (at + 1) * 7919 % every == 0).collect();
                let values: Vec<i32> = (0..2 * length * inner).map(|at| at as i32).collect();
                let kept = |at: &usize| condition[at / inner % length];
                let expected: Vec<i32> = (0..values.len()).filter(kept).map(|at| values[at]).collect();
                let input = TestArray::from_values(&[2, length as i64, inner as i64], &values);
                let condition = TestArray::from_values(&[length as i64], &condition);
                let axis = [("axis", TestAttribute::Int(1))];
                let found = KERNELS
                    .run_kernel("Compress", 11, &axis, &[Some(&input), Some(&condition)], &[None])
                    .unwrap();
                assert_eq!(found[0].as_ref().unwrap().values::<i32>(), expected, "{length} {inner} {every}");
            }
        }
    }

    #[test]
    fn places_in_many_rows_are_those_that_a_plain_search_finds() {
        for dims in [[3i64, 5, 70], [7, 1, 33], [2, 3, 1], [4, 0, 6]] {
            let count = dims.iter().product::<i64>();
            let values: Vec<f64> =
                (0..count).map(|at| if at * 7919 % 5 < 3 { -0.0 } else { 1e-300 }).collect();
            let input = TestArray::from_values(&dims, &values);
            let found =
                KERNELS.run_kernel("NonZero", 13, &[], &[Some(&input)], &[None]).unwrap().remove(0).unwrap();
            let set: Vec<i64> = (0..count).filter(|at| values[*at as usize] != 0.0).collect();
            let along = |axis: usize| {
                let step = dims[axis + 1..].iter().product::<i64>();
                set.iter().map(move |at| at / step % dims[axis]).collect::<Vec<_>>()
            };
            assert_eq!(found.values::<i64>(), (0..3).flat_map(along).collect::<Vec<_>>(), "{dims:?}");
        }
    }

    #[test]
    fn different_rows_are_found_along_an_axis() {
        let input = TestArray::from_values(&[3, 3], &[1u8, 0, 0, 1, 0, 0, 2, 3, 4]);
        let axis = [("axis", TestAttribute::Int(0))];
        let found =
            KERNELS.run_kernel("Unique", 11, &axis, &[Some(&input)], &[None]).unwrap().remove(0).unwrap();
        assert_eq!((&found.dims[..], found.bytes()), (&[2, 3][..], &[1, 0, 0, 2, 3, 4][..]));
        assert_eq!(found.dtype, Dtype::U8);
    }

    #[test]
    fn different_columns_are_found_along_an_inner_axis_in_their_order() {
        let nan = f32::NAN;
        let input = TestArray::from_values(&[2, 5], &[1f32, nan, 1.0, nan, -0.0, 5.0, 2.0, 4.0, 2.0, nan]);
        let axis = [("axis", TestAttribute::Int(1))];
        let found = KERNELS.run_kernel("Unique", 11, &axis, &[Some(&input)], &[None; 4]).unwrap();
        let found: Vec<_> = found.iter().flatten().collect();
        assert_eq!(found[0].dims, [2, 4]);
        let values: Vec<_> = found[0].values::<f32>().iter().map(|value| value.to_string()).collect();
        assert_eq!(values, ["-0", "1", "1", "NaN", "NaN", "4", "5", "2"]);
        let rest: Vec<_> = found[1..].iter().map(|array| array.values::<i64>()).collect();
        assert_eq!(rest, [vec![4, 2, 0, 1], vec![2, 3, 1, 3, 0], vec![1, 1, 1, 2]]);
    }
}

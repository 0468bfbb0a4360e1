//! The small values of the interface: shapes, dtypes, attributes, errors.

use oarlock_core::shape::{broadcast_dims, contiguous_strides, is_contiguous, resolve_axis, size_in_bytes};
use oarlock_core::{Attribute, Attributes, Dtype, Error, ErrorKind};

#[test]
fn sizes_are_checked_and_never_wrap() {
    assert_eq!(size_in_bytes(Dtype::F32, &[2, 3]).unwrap(), 24);
    assert_eq!(size_in_bytes(Dtype::I4, &[3]).unwrap(), 2);
    assert_eq!(size_in_bytes(Dtype::F64, &[]).unwrap(), 8);
    assert_eq!(size_in_bytes(Dtype::F64, &[i64::MAX, i64::MAX, 0]).unwrap(), 0);
}

#[test]
fn what_no_memory_holds_is_told_apart_from_what_no_shape_is() {
    let kind = |dtype, dims: &[i64]| size_in_bytes(dtype, dims).unwrap_err().kind();
    for dims in [&[i64::MAX, 3][..], &[i64::MAX], &[1 << 60, 1], &[1 << 40; 3]] {
        assert_eq!(kind(Dtype::F64, dims), ErrorKind::ResourceExhausted, "{dims:?}");
    }
    for dims in [&[-1][..], &[-1, 0], &[1; 65]] {
        assert_eq!(kind(Dtype::U8, dims), ErrorKind::InvalidArgument, "{dims:?}");
    }
}

#[test]
fn shapes_broadcast_from_the_last_dimension() {
    assert_eq!(broadcast_dims(&[2, 1, 3], &[4, 1]).unwrap().as_slice(), [2, 4, 3]);
    assert_eq!(broadcast_dims(&[], &[5]).unwrap().as_slice(), [5]);
    assert_eq!(broadcast_dims(&[0, 3], &[1]).unwrap().as_slice(), [0, 3]);
    assert!(broadcast_dims(&[2, 3], &[2]).unwrap_err().message().contains("[2, 3] and [2]"));
}

#[test]
fn contiguous_means_that_the_last_dimension_is_fastest() {
    assert_eq!(contiguous_strides(&[2, 3, 4]).as_slice(), [12, 4, 1]);
    assert!(is_contiguous(&[2, 3], &[3, 1]) && is_contiguous(&[2, 1, 3], &[3, 99, 1]));
    assert!(!is_contiguous(&[2, 3], &[1, 2]) && !is_contiguous(&[4], &[0]));
    assert!(is_contiguous(&[4, 0], &[9, 9]));
}

#[test]
fn an_axis_counts_from_either_end() {
    assert_eq!((resolve_axis(-1, 3).unwrap(), resolve_axis(0, 3).unwrap()), (2, 0));
    assert!(
        resolve_axis(3, 3).is_err()
            && resolve_axis(-4, 3).is_err()
            && resolve_axis(0, 0).is_err()
            && resolve_axis(i64::MIN, 3).is_err()
    );
}

#[test]
fn every_dtype_is_the_contracts() {
    for dtype in Dtype::ALL {
        assert_eq!(dtype.to_abi().name(), Some(dtype.name()));
        assert_eq!(Dtype::from_abi(dtype.to_abi()), Some(*dtype));
        assert_eq!(dtype.name().parse::<Dtype>().unwrap(), *dtype);
        assert_eq!(dtype.numpy_name().parse::<Dtype>().unwrap(), *dtype);
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_ones_there_are() {
    let error = "float31".parse::<Dtype>().unwrap_err();
    assert!(error.message().contains("f8e5m2") && error.message().contains("`float31`"), "{error}");
}

#[test]
fn attributes_are_found_by_name_and_the_last_of_a_name_stays() {
    let attributes = Attributes::new()
        .with_attribute("b", Attribute::Int(1))
        .with_attribute("a", Attribute::Ints(vec![2]))
        .with_attribute("b", Attribute::Int(3));
    assert_eq!(attributes.get_int("b").unwrap(), Some(3));
    assert_eq!(attributes.get_ints("a").unwrap(), Some([2].as_slice()));
    assert_eq!(attributes.get_int("c").unwrap(), None);
    assert_eq!(attributes.iter().len(), 2);
    let error = attributes.get_float("a").unwrap_err();
    assert_eq!(error.message(), "expected the attribute `a` to hold float, found ints");
}

#[test]
fn an_error_reads_as_one_sentence_with_its_place() {
    let error = Error::invalid_argument("expected 2 dimensions, found 3")
        .with_operand("input 1 (B)")
        .with_op("MatMul")
        .with_device("cpu:0");
    assert_eq!(error.to_string(), "`MatMul` on `cpu:0`: input 1 (B): expected 2 dimensions, found 3");
    assert_eq!(error.kind().name(), "InvalidArgumentError");
}

#[test]
fn the_innermost_place_stays() {
    let error = Error::fatal("broken").with_op("Add").with_op("Graph");
    assert_eq!(error.op(), Some("Add"));
}

//! Unusual calls that are valid: empty tensors, limits at the extremes, NaN in the data.

use std::fmt::Debug;

use oarlock_core::{Dtype, Element};

use crate::open_doors;

/// Makes a call on every device that has a kernel for the op, and checks the first output.
fn expect_output<T: Element + Debug>(line: &str, dims: &[i64], expected: &[T]) {
    for door in open_doors() {
        let Some(outcome) = door.run_line(line) else { continue };
        let outputs = outcome.unwrap_or_else(|error| panic!("`{line}`: {error}"));
        let found = outputs[0].to_vec::<T>().unwrap_or_else(|error| panic!("`{line}`: {error}"));
        assert_eq!(outputs[0].dims(), dims, "`{line}` on {}", door.target_device());
        // Compare as text, since NaN is not equal to itself.
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "`{line}` on {}", door.target_device());
    }
}

#[test]
fn reductions_of_nothing_give_what_they_start_with() {
    let infinity = f32::INFINITY;
    expect_output("ReduceSum f32[0,3] i64[1]{0}", &[1, 3], &[0f32; 3]);
    expect_output("ReduceProd f32[0,3] i64[1]{0}", &[1, 3], &[1f32; 3]);
    expect_output("ReduceMax f32[0,3] i64[1]{0}", &[1, 3], &[-infinity; 3]);
    expect_output("ReduceMin f32[0,3] i64[1]{0}", &[1, 3], &[infinity; 3]);
    expect_output("ReduceMean f32[0,3] i64[1]{0}", &[1, 3], &[f32::NAN; 3]);
    expect_output("ReduceMax i32[0]", &[1], &[i32::MIN]);
    expect_output("ReduceMin i32[0]", &[1], &[i32::MAX]);
    expect_output("ReduceMin u8[0]", &[1], &[u8::MAX]);
    expect_output("ReduceMax i64[0,2] i64[1]{0} keepdims=0", &[2], &[i64::MIN; 2]);
    expect_output::<f32>("ReduceSum f32[2,0] i64[1]{0}", &[1, 0], &[]);
    expect_output::<i64>("ArgMax f32[3,0] axis=0", &[1, 0], &[]);
}

#[test]
fn products_over_nothing_are_zero() {
    expect_output("MatMul f32[2,0] f32[0,3]", &[2, 3], &[0f32; 6]);
    expect_output("Gemm f32[2,0] f32[0,3] f32[3]{1,2,3}", &[2, 3], &[1f32, 2.0, 3.0, 1.0, 2.0, 3.0]);
    expect_output("Einsum f32[2,0] f32[0,3] equation='ij,jk->ik'", &[2, 3], &[0f32; 6]);
    expect_output("Conv f32[1,0,5] f32[2,0,3] f32[2]{1,2}", &[1, 2, 3], &[1f32, 1.0, 1.0, 2.0, 2.0, 2.0]);
    expect_output::<f32>("MatMul f32[0,2] f32[2,3]", &[0, 3], &[]);
    expect_output::<f32>("MatMul f32[0,2,3] f32[3,0]", &[0, 2, 0], &[]);
}

#[test]
fn empty_tensors_go_through_every_family() {
    expect_output::<f32>("Softmax f32[0,3] axis=0", &[0, 3], &[]);
    expect_output::<f32>("Softmax f32[3,0] axis=1", &[3, 0], &[]);
    expect_output::<f32>("Conv f32[0,1,5] f32[2,1,3]", &[0, 2, 3], &[]);
    expect_output::<f32>("MaxPool f32[0,1,5] kernel_shape=[2]", &[0, 1, 4], &[]);
    expect_output::<f32>("AveragePool f32[0,1,5] kernel_shape=[2]", &[0, 1, 4], &[]);
    expect_output::<f32>("BatchNormalization f32[0,3] f32[3] f32[3] f32[3] f32[3]", &[0, 3], &[]);
    expect_output::<f32>("LayerNormalization f32[2,0] f32[0]", &[2, 0], &[]);
    expect_output::<f32>("Transpose f32[2,0,3] perm=[2,1,0]", &[3, 0, 2], &[]);
    expect_output::<f32>("Gather f32[3,0] i64[2]{0,2}", &[2, 0], &[]);
    expect_output::<f32>("Slice f32[4] i64[1]{3} i64[1]{1}", &[0], &[]);
    expect_output::<f32>("Tile f32[2] i64[1]{0}", &[0], &[]);
    expect_output::<f32>("Expand f32[1,2] i64[2]{0,2}", &[0, 2], &[]);
    expect_output::<f32>("CumSum f32[0] i64[]{0}", &[0], &[]);
    expect_output::<i64>("NonZero f32[0,2]", &[2, 0], &[]);
    expect_output::<f32>("TopK f32[0] i64[1]{0} >2", &[0], &[]);
    expect_output("Concat f32[0] f32[2]{1,2} axis=0", &[2], &[1f32, 2.0]);
    expect_output("Pad f32[0] i64[2]{1,2} f32[]{9}", &[3], &[9f32; 3]);
}

#[test]
fn limits_are_moved_to_the_ends_of_the_data() {
    let (least, most) = (i64::MIN, i64::MAX);
    expect_output(
        &format!("Slice f32[3]{{1,2,3}} i64[1]{{{least}}} i64[1]{{{most}}}"),
        &[3],
        &[1f32, 2.0, 3.0],
    );
    let backwards =
        format!("Slice f32[3]{{1,2,3}} i64[1]{{{most}}} i64[1]{{{least}}} i64[1]{{0}} i64[1]{{-2}}");
    expect_output(&backwards, &[2], &[3f32, 1.0]);
    let wide = format!("Slice f32[3]{{1,2,3}} i64[1]{{0}} i64[1]{{{most}}} i64[1]{{0}} i64[1]{{{most}}}");
    expect_output(&wide, &[1], &[1f32]);
    expect_output(&format!("Shape f32[2,3] start={least} end={most}"), &[2], &[2i64, 3]);
}

#[test]
fn an_index_that_is_none_of_the_depth_is_nowhere_hot() {
    expect_output(
        "OneHot i64[3]{5,-4,-1} i64[]{3} f32[2]{0,1}",
        &[3, 3],
        &[0f32, 0., 0., 0., 0., 0., 0., 0., 1.],
    );
    expect_output("OneHot f32[2]{NaN,1} i64[]{3} f32[2]{0,1}", &[2, 3], &[0f32, 0., 0., 0., 1., 0.]);
    expect_output("OneHot u64[1]{-1} i64[]{2} f32[2]{0,1}", &[1, 2], &[0f32, 0.]);
}

#[test]
fn nan_goes_where_numbers_go() {
    expect_output("Max f32[2]{NaN,1} f32[2]{1,NaN}", &[2], &[f32::NAN; 2]);
    expect_output("Relu f32[1]{NaN}", &[1], &[f32::NAN]);
    expect_output("TopK f32[3]{NaN,1,2} i64[1]{2} >2", &[2], &[f32::NAN, 2.0]);
    let boxes = "NonMaxSuppression f32[1,2,4]{NaN,NaN,NaN,NaN,0,0,1,1} f32[1,1,2]{3,1} i64[]{2}";
    for door in open_doors() {
        let Some(outcome) = door.run_line(boxes) else { continue };
        let outputs = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((outputs[0].dtype(), outputs[0].dims()[1]), (Dtype::I64, 3));
    }
}

#[test]
fn windows_that_are_much_larger_than_the_image_take_no_longer() {
    let cpu = &open_doors()[0];
    let pool = |op: &str, rest: &str| {
        let line = format!("{op} f32[1,1,3]{{1,3,2}} kernel_shape=[1000000000] auto_pad='SAME_UPPER' {rest}");
        let outputs =
            cpu.run_line(&line).expect("a kernel").unwrap_or_else(|error| panic!("`{line}`: {error}"));
        outputs[0].to_vec::<f32>().unwrap()
    };
    assert_eq!(pool("MaxPool", ""), [3.0; 3]);
    assert_eq!(pool("MaxPool", ">2"), [3.0; 3]);
    assert_eq!(pool("AveragePool", ""), [2.0; 3]);
    assert_eq!(pool("LpPool", "p=1"), [6.0; 3]);
}

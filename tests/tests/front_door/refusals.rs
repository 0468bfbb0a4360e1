//! Refusals and their messages: the op, the operand, what was expected and what was found, on every device.

use oarlock_core::ErrorKind;

use crate::open_doors;

/// Makes a call on every device that has a kernel for the op; each must refuse it with all these words.
fn expect_refusal(line: &str, words: &[&str]) {
    for door in open_doors() {
        let Some(outcome) = door.run_line(line) else { continue };
        let Err(error) = outcome else { panic!("`{line}` gave {outcome:?} on {}", door.target_device()) };
        let text = error.to_string();
        let op = line.split(' ').next().expect("an op");
        let device = format!("`{op}` on `{}`", door.target_device());
        for word in words.iter().copied().chain([device.as_str(), "expected"]) {
            assert!(text.contains(word), "`{line}`: expected `{word}` in: {text}");
        }
    }
}

/// Calls that must be refused, one per line, with words of the error separated by bars.
fn expect_refusals(lines: &str) {
    for line in lines.trim().lines() {
        let (call, words) = line.trim().split_once(" | ").expect("a call and words");
        expect_refusal(call.trim(), &words.split(" | ").map(str::trim).collect::<Vec<_>>());
    }
}

#[test]
fn wrong_dtypes_are_named_with_those_that_are_taken() {
    expect_refusals(
        "Add bool[2] bool[2]                   | input 0 (A) | f32 or f64, found bool
         Add f32[2] i32[2]                     | input 1 (B) | expected f32 like input 0 (A), found i32
         Gather f32[3] f32[1]                  | input 1 (indices) | i32 or i64, found f32
         Reshape f32[3] f32[1]                 | input 1 (shape) | i64, found f32
         Where f32[3] f32[3] f32[3]            | input 0 (condition) | bool, found f32
         And f32[2] bool[2]                    | input 0 (A) | bool, found f32
         Sin i32[2]                            | input 0 (input) | found i32
         Cast f32[2] to=99                     | attribute `to` | found 99",
    );
}

#[test]
fn wrong_ranks_and_sizes_are_named_with_the_operand() {
    expect_refusals(
        "Add f32[2] f32[3]                     | input 1 (B) | [2] and [3]
         Conv f32[5] f32[1,1,3]                | input 0 (X) | at least 3 dimensions, found [5]
         Conv f32[1,2,5] f32[1,1,3]            | input 0 (X) | found 2 channels
         Conv f32[1,1,5] f32[1,1,9]            | input 0 (X) | at least 9 | found 5
         MatMul f32[] f32[2]                   | input 0 (A) | at least 1 dimensions, found []
         MatMul f32[2,3] f32[2,3]              | input 1 (B) | to be 3 | found [2, 3]
         Gemm f32[2,3,4] f32[4,2]              | input 0 (A) | 2 dimensions, found [2, 3, 4]
         BatchNormalization f32[2,3] f32[2] f32[3] f32[3] f32[3] | input 1 (scale) | [3], found [2]
         Concat f32[2,3] f32[3,3] axis=1       | input 1 (inputs) | found [3, 3]
         Squeeze f32[2] i64[1]{0}              | input 0 (data) | size 1 in dimension 0 | found [2]
         Trilu f32[2]                          | input 0 (input) | at least 2 dimensions, found [2]
         DepthToSpace f32[1,4,1,1] blocksize=3 | input 0 (input) | 9 divides, found 4
         GatherND f32[3] i64[1,2]              | input 1 (indices) | found [1, 2]
         MaxPool f32[1,1,5] kernel_shape=[9]   | input 0 (X) | at least 9 | found 5",
    );
}

#[test]
fn wrong_attributes_are_named_with_what_they_may_be() {
    expect_refusals(
        "Transpose f32[2,3] perm=[0,0]         | attribute `perm` | every axis once, found [0, 0]
         Transpose f32[2] perm=[-9223372036854775808] | attribute `perm` | found -9223372036854775808
         Concat f32[2,3] f32[2,3] axis=2       | attribute `axis` | from -2 to before 2, found 2
         Conv f32[1,1,5] f32[1,1,3] strides=[0] | attribute `strides` | at least 1, found [0]
         Conv f32[1,1,5] f32[1,1,3] group=0    | attribute `group` | at least 1, found 0
         Flatten f32[2] axis=5                 | attribute `axis` | -1 to 1, found 5
         DepthToSpace f32[1,4,1,1] blocksize=-2 | attribute `blocksize` | more than 0, found -2
         Softmax f32[2] axis='last'            | attribute `axis` | int, found string
         Softmax f32[2] axes=1                 | found `axes` | did you mean `axis`
         GroupNormalization f32[1,4,2] f32[4] f32[4] num_groups=3 | attribute `num_groups` | found 3
         LRN f32[1,2,3] size=9223372036854775807 | `size` | found 9223372036854775807
         Einsum f32[2] equation='i,j->ij'      | attribute `equation` | 1 inputs, found `i,j->ij`",
    );
}

#[test]
fn negative_sizes_are_refused() {
    expect_refusals(
        "Reshape f32[2,3] i64[2]{-2,3}         | input 1 (shape) | at least -1 | found [-2, 3]
         Reshape f32[2,3] i64[2]{-1,-1}        | input 1 (shape) | at most one -1 | found [-1, -1]
         Expand f32[1] i64[1]{-3}              | input 1 (shape) | at least 0, found [-3]
         ConstantOfShape i64[1]{-1}            | input 0 (input) | at least 0, found [-1]
         Tile f32[2] i64[1]{-1}                | input 1 (repeats) | at least 0 | found [-1]
         Pad f32[2] i64[2]{-3,0}               | input 1 (pads) | found -3 and 0 for 2
         OneHot i64[2] i64[]{-1} f32[2]        | input 1 (depth) | at least 0, found -1
         RandomNormal shape=[-1]               | attribute `shape` | at least 0 | [-1]
         TopK f32[4] i64[1]{-1} >2             | input 1 (K) | 0 to 4 | found -1",
    );
}

#[test]
fn sizes_that_no_number_can_hold_are_refused() {
    expect_refusals(
        "Reshape f32[2,3] i64[2]{4611686018427387904,4} | input 1 (shape) | 64 bits | found 4611686018427387904 × 4
         Expand f32[1] i64[2]{9223372036854775807,9223372036854775807} | output 0 | fewer than 2^64
         ConstantOfShape i64[2]{4611686018427387904,4} | output 0 | fewer than 2^64
         Tile f32[2] i64[1]{9223372036854775807} | input 1 (repeats) | found 2 × 9223372036854775807
         Pad f32[2] i64[2]{9223372036854775807,1} | input 1 (pads) | found 2 + 9223372036854775807
         Range i64[]{0} i64[]{9223372036854775807} i64[]{1} | output 0 | memory can hold
         OneHot i64[2] i64[]{9223372036854775807} f32[2] | output 0 | memory can hold
         Upsample @9 f32[1,1,2,2] f32[4]{1,1,1e30,1} | input 1 (scales) | a size that tensors can have",
    );
}

#[test]
fn requests_beyond_memory_are_refused_with_a_table_of_holders() {
    for door in open_doors() {
        let outcome =
            door.run_line("ConstantOfShape i64[1]{1099511627776}").expect("a kernel on every device");
        let error = outcome.expect_err("4 TiB");
        assert_eq!(error.kind(), ErrorKind::ResourceExhausted);
        let text = error.to_string();
        assert!(text.contains("expected 4096.0 GiB of memory for `ConstantOfShape`"), "{text}");
        assert!(text.contains("held by") && text.contains("tensor"), "{text}");
    }
}

#[test]
fn shapes_with_more_numbers_than_the_host_can_hold_are_refused() {
    expect_refusals(
        "Reshape f32[2] i64[1]->[1125899906842624] | input 1 (shape) | of the host's memory
         Expand f32[2] i64[1]->[35184372088832] | input 1 (shape) | of the host's memory",
    );
}

#[test]
fn indices_beyond_the_data_are_refused_by_the_cpu() {
    expect_refusals(
        "GatherND f32[3] i64[1,1]{3}           | `indices` from -3 to 3 (exclusive), found 3
         GatherElements f32[3] i64[1]{-4}      | `indices` from -3 to 3 (exclusive), found -4
         ScatterElements f32[3] i64[1]{3} f32[1] | `indices` from -3 to 3 (exclusive), found 3
         Scatter @10 f32[3] i64[1]{-4} f32[1]  | `indices` from -3 to 3 (exclusive), found -4
         ScatterND f32[3] i64[1,1]{9223372036854775807} f32[1] | found 9223372036854775807
         MaxUnpool f32[1,1,2] i64[1,1,2]{0,9} kernel_shape=[2] | below 3 | found 9
         NegativeLogLikelihoodLoss f32[2,3] i64[2]{0,3} | classes from 0 to less than 3, found 3
         ReverseSequence f32[2,3] i64[3]{1,3,2} | `sequence_lens` from 0 to 2, found 3
         Compress f32[2] bool[3] axis=0        | at most 2 indices, found 3
         TopK f32[4] i64[1]{5} >2              | input 1 (K) | 0 to 4 | found 5
         Slice f32[4] i64[1] i64[1] i64[1]{3}  | input 3 (axes) | found 3
         Slice f32[4] i64[1] i64[1] i64[1]{0} i64[1]{0} | input 4 (steps) | other than 0, found 0
         ArgMax f32[0,3] axis=0                | [0, 3]",
    );
    let cpu = &open_doors()[0];
    for index in [3, -4] {
        let error = cpu
            .run_line(&format!("Gather f32[3] i64[1]{{{index}}}"))
            .expect("a kernel")
            .expect_err("a refusal");
        assert!(error.to_string().contains(&format!("from -3 to 3 (exclusive), found {index}")), "{error}");
    }
}

#[test]
fn values_that_only_the_device_sees_are_refused_there_too() {
    expect_refusals(
        "Gather f32[3] i64[2]{0,3}             | indices
         Gather f32[3] i32[1]{-4}              | indices
         Gather f32[0,3] i64[1]{0}             | indices
         Div i32[2]{1,2} i32[2]{1,0}           | 0
         Mod i64[1]{5} i64[]{0}                | 0
         Mod u8[1]{5} u8[1]{0} fmod=1          | 0",
    );
}

#[test]
fn a_refused_value_is_told_once_and_names_the_op_that_found_it() {
    for door in open_doors() {
        let inputs = "f32[3]{1,2,3} i64[1]";
        for _ in 0..2 {
            let error =
                door.run_line(&format!("Gather {inputs}{{7}}")).expect("a kernel").expect_err("a refusal");
            assert_eq!((error.op(), error.kind()), (Some("Gather"), ErrorKind::OutOfRange));
            let outputs =
                door.run_line(&format!("Gather {inputs}{{-1}}")).expect("a kernel").expect("an element");
            assert_eq!(outputs[0].to_vec::<f32>().expect("the element"), [3.0]);
        }
    }
}

#[test]
fn what_is_no_number_is_no_size_index_or_threshold() {
    expect_refusals(
        "Range f32[]{0} f32[]{NaN} f32[]{1}    | input 2 (delta) | a distance of NaN
         Resize f32[1,1,2,2] - f32[4]{1,1,NaN,1} | input 2 (scales) | more than 0, found NaN
         Dropout f32[2] f32[]{NaN} bool[]{1}   | `ratio` | found NaN
         NonMaxSuppression f32[1,1,4] f32[1,1,1] i64[]{1} f32[]{NaN} | `iou_threshold` | found NaN",
    );
}

//! The tests, by family of ops.

mod elementwise;
mod functions;
mod images;
mod matmul;
mod movement;
mod reduce;
mod reference;
mod refused;
mod rows;

use super::PluginCase;

macro_rules! cases {
    ($($family:ident: $($name:ident)*;)*) => {
        /// Every op test, by name.
        pub const CASES: &[PluginCase] = &[$($((stringify!($name), $family::$name),)*)*];
    };
}

cases! {
    elementwise:
        arithmetic_is_right_for_every_dtype
        operands_are_repeated_and_strided
        comparisons_and_logic_give_truth_values
        integers_wrap_around_and_division_by_zero_is_told
        short_integers_wrap_around_in_products
        powers_and_remainders_follow_the_op
        bits_are_combined_and_shifted
        any_number_of_operands_is_folded
        not_a_number_stays_one
        casts_cut_to_the_range_of_the_target
        clipping_takes_any_bounds
        choosing_keeps_every_bit
        empty_operands_launch_nothing;
    functions:
        functions_of_one_operand_are_right
        functions_with_attributes_are_right;
    matmul:
        products_of_odd_sizes_are_right
        batches_are_repeated
        vectors_are_rows_and_columns
        factors_may_be_transposed_and_scaled;
    movement:
        shapes_change_without_the_elements
        dimensions_change_places
        operands_are_joined_and_divided
        slices_run_in_both_directions
        edges_are_padded_and_cut
        what_lies_outside_is_taken_from_inside
        operands_are_repeated_as_tiles
        parts_are_gathered_and_indices_outside_are_told
        depth_becomes_space_and_back
        constants_and_ranges_come_from_nothing;
    reduce:
        every_reduction_over_every_axis_is_right
        long_reductions_go_in_parts
        nothing_is_reduced_to_the_neutral_element
        reduced_operands_may_be_strided;
    rows:
        the_greatest_and_smallest_are_found
        rows_become_probabilities
        rows_are_normalized;
    images:
        convolutions_of_awkward_windows_are_right
        windows_are_pooled
        channels_are_normalized;
    refused:
        what_does_not_fit_is_refused_with_a_reason;
}

//! Unrolled loops for micro-kernels.

/// An unrolled loop of at most 2, 4, 6, 8, 12 or 14 rounds. The compiler keeps an array in registers only if every index is a constant
/// from the start, which is not so in a loop of more than a few rounds. Each condition is a `const` block, so rounds beyond the
/// count are dropped before LLVM sees them, which halves the code that the micro-kernels pass to it.
#[macro_export]
macro_rules! unrolled {
    ($index:ident in 0..$count:literal, at most 3 $body:block) => {
        $crate::unrolled!(@ $index $count $body 0 1 2)
    };
    ($index:ident in 0..$count:tt, at most 4 $body:block) => {
        $crate::unrolled!(@ $index $count $body 0 1 2 3)
    };
    ($index:ident in 0..$count:literal, at most 8 $body:block) => {
        $crate::unrolled!(@ $index $count $body 0 1 2 3 4 5 6 7)
    };
    ($index:ident in 0..$count:ident, at most 2 $body:block) => {
        $crate::unrolled!(@ $index $count $body 0 1)
    };
    ($index:ident in 0..$count:ident, at most 6 $body:block) => {
        $crate::unrolled!(@ $index $count $body 0 1 2 3 4 5)
    };
    ($index:ident in 0..$count:ident, at most 12 $body:block) => {
        $crate::unrolled!(@ $index $count $body 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    ($index:ident in 0..$count:ident, at most 14 $body:block) => {
        $crate::unrolled!(@ $index $count $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13)
    };
    (@ $index:ident $count:tt $body:block $($number:literal)*) => {
        $(if const { $number < $count } {
            const $index: usize = $number;
            $body
        })*
    };
}

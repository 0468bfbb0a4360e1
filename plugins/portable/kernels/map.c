// Element-wise: each work-item writes one element of `y`, computed from the elements of the inputs that belong to it.
{{walk}}
KERNEL oarlock_kernel({{parameters}}i64 count{{fault}}) {
{{places}}
    INDEX i = FIRST_INDEX;
    // The last work-group is full, so it has work-items past the last element.
    if (i >= (INDEX)count) return;
{{steps}}
    // All loads come before the store: in place, the output is the memory of an input.
{{values}}
    {{store}}
}

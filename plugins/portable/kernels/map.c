// Element-wise: each work-item writes one element of `y`, computed from the elements of the inputs that belong to it.
{{walk}}
KERNEL oarlock_kernel({{parameters}}i64 count{{fault}}) {
{{places}}
    INDEX i = FIRST_INDEX;
    if (i >= (INDEX)count) return;
{{steps}}
{{values}}
    {{store}}
}

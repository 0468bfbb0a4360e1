// Words that formulas use. `T` is the type that is computed in, `U` its unsigned twin (integers wrap around), `F` a
// floating-point type.
// Both comparisons are false for NaN, so NaN passes.
#define CLAMP(x, low, high) ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
// Signed overflow is undefined in C, so these compute in the unsigned twin.
#define WRAP_ADD(x, y) ((T)((U)(x) + (U)(y)))
#define WRAP_SUB(x, y) ((T)((U)(x) - (U)(y)))
// C widens types shorter than `int` to `int`, whose product may overflow; the factor 1u makes it unsigned.
#define WRAP_MUL(x, y) ((T)(1u * (U)(x) * (U)(y)))
#define WRAP_NEG(x) ((T)((U)0 - (U)(x)))
// A literal in the precision that is computed in: devices without f64 know no other than f32.
#ifdef COMPUTES_F64
#define REAL(number) number
#else
#define REAL(number) number##f
#endif
// From its bits: NVRTC has no header that defines it.
#define INFINITE ((T)F32_OF_BITS(0x7F800000u))
// Needs no header, and is false for every integer.
#define IS_NAN(x) ((x) != (x))
// A NaN on either side is the result.
INLINE T maximum(T x, T y) { return IS_NAN(x) || x > y ? x : y; }
INLINE T minimum(T x, T y) { return IS_NAN(x) || x < y ? x : y; }

#ifdef INTEGER
INLINE T plus(T x, T y) { return WRAP_ADD(x, y); }
INLINE T times(T x, T y) { return WRAP_MUL(x, y); }
// Divisions that no processor faults on: by 0 the result is 0, and the smallest number by -1 wraps around.
INLINE T divide(T x, T y) { return y == 0 ? (T)0 : (y == (T)-1 && (T)-1 < (T)1 ? WRAP_NEG(x) : (T)(x / y)); }
INLINE T remainder_like_c(T x, T y) { return y == 0 || (y == (T)-1 && (T)-1 < (T)1) ? (T)0 : (T)(x % y); }
INLINE T remainder_like_divisor(T x, T y) {
    T rest = remainder_like_c(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? (T)(rest + y) : rest;
}
INLINE T power(T x, T y) {
    // A negative power is a fraction, which rounds to 0 for every base but 1 and -1.
    if ((T)-1 < (T)1 && y < (T)0) return x == 1 ? (T)1 : (x == (T)-1 ? ((U)y & 1 ? (T)-1 : (T)1) : (T)0);
    T result = 1;
    // Squaring: one step for each bit of the exponent, whatever its size.
    for (U left = (U)y; left != 0; left >>= 1) {
        if (left & 1) result = WRAP_MUL(result, x);
        x = WRAP_MUL(x, x);
    }
    return result;
}
// C leaves a shift by the width or more undefined, and OpenCL takes it modulo the width.
#define SHIFT(x, y, direction) ((U)(y) >= sizeof(T) * 8 ? (T)0 : (T)((U)(x) direction (y)))
#else
INLINE T plus(T x, T y) { return x + y; }
INLINE T times(T x, T y) { return x * y; }
INLINE T remainder_like_divisor(T x, T y) {
    T rest = fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
// The exponential of a number of at most 0 cannot overflow.
INLINE T softplus(T x) { return (x > 0 ? x : (T)0) + log1p(exp(-fabs(x))); }
INLINE T log_add_exp(T x, T y) {
    T greatest = maximum(x, y);
    // Equal infinities must not be subtracted: their difference is NaN.
    return x == y ? greatest + REAL(0.693147180559945309) : greatest + log1p(exp(-fabs(x - y)));
}
#endif

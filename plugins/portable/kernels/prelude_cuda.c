// The dialect in CUDA C++, as NVRTC compiles it without any header.
// Plain `char` is unsigned on some hosts, and CUDA follows the host.
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

// From the bounds the compiler derives how many registers a thread may use, so that a block always fits.
#define KERNEL extern "C" __global__ void __launch_bounds__(BLOCK_X * BLOCK_Y)
#define INLINE static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
// Signed: unsigned operands would turn index expressions unsigned, and indices may be negative.
#define LOCAL_X ((int)threadIdx.x)
#define LOCAL_Y ((int)threadIdx.y)
#define GROUP blockIdx.x
#define BARRIER __syncthreads()

#define BITS_OF_F32(value) __float_as_uint(value)
#define F32_OF_BITS(bits) __uint_as_float(bits)

// One instruction of PTX; the functions for it are in a header that may not be installed.
INLINE f32 f32_of_f16(const u16 *place) {
    f32 value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(*place));
    return value;
}
INLINE void f16_of_f32(u16 *place, f32 value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    *place = bits;
}

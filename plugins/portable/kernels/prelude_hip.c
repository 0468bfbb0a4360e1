// The dialect in HIP C++, as hipRTC compiles it.
// Plain `char` is unsigned on some hosts.
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

// Without bounds the compiler provides for blocks of 1,024 and leaves each thread fewer registers.
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

INLINE f32 f32_of_f16(const u16 *place) { return (f32)__builtin_bit_cast(_Float16, *place); }
INLINE void f16_of_f32(u16 *place, f32 value) { *place = __builtin_bit_cast(u16, (_Float16)value); }

/* SPDX-License-Identifier: Apache-2.0
 *
 * IEEE 754 half precision in software, for compilers and processors without support for it. */
#ifndef HALF_H
#define HALF_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Exact: a float can represent every half. */
static inline float float_of_half(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu;
    const uint32_t fraction = half & 0x3FFu;
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f;
        return float_of_bits(sign | bits_of_float(magnitude));
    }
    if (exponent == 0x1F) {
        return float_of_bits(sign | 0x7F800000u | fraction << 13);
    }
    return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

/* Rounds to the nearest half, ties to even. A value that is too large becomes infinite. */
static inline uint16_t half_of_float(float value) {
    const uint32_t sign = bits_of_float(value) >> 16 & 0x8000u;
    const uint32_t magnitude = bits_of_float(value) & 0x7FFFFFFFu;
    uint32_t half;
    if (magnitude > 0x7F800000u) {
        half = 0x7E00u | (magnitude >> 13 & 0x3FFu); /* not a number; quiet, with what fits of its payload */
    } else if (magnitude >= bits_of_float(65520.0f)) {
        half = 0x7C00u; /* infinite: 65520 is half way between the largest half and the next power of two */
    } else if (magnitude < bits_of_float(0x1p-14f)) {
        /* Subnormal: near 0.5, the last bit of a float is worth 2^-24, as in a subnormal half, so the addition rounds. */
        half = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
    } else {
        const uint32_t is_odd = magnitude >> 13 & 1u;
        half = ((magnitude + 0xFFFu + is_odd) >> 13) - ((127u - 15u) << 10);
    }
    return (uint16_t)(sign | half);
}

#endif

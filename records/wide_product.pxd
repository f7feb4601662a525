# SPDX-License-Identifier: Apache-2.0
# The higher half of a product of 64-bit numbers, in the single instruction that processors have for it; Cython has no
# type of 128 bits to say it. Without such a type in the compiler either, it is put together from products of halves.

cdef extern from *:
    """
    #include <stdint.h>

    static inline uint64_t high_of_product(uint64_t left, uint64_t right)
    {
    #if defined(__SIZEOF_INT128__) && !defined(RAFTLOG_TABLE_CRC)  /* That is the plainest kernel: for tests. */
        return (uint64_t) ((unsigned __int128) left * right >> 64);
    #else
        uint64_t low = (left & 0xFFFFFFFF) * (right & 0xFFFFFFFF);
        uint64_t first = (left >> 32) * (right & 0xFFFFFFFF) + (low >> 32);
        uint64_t second = (left & 0xFFFFFFFF) * (right >> 32) + (first & 0xFFFFFFFF);
        return (left >> 32) * (right >> 32) + (first >> 32) + (second >> 32);
    #endif
    }
    """
    unsigned long long high_of_product(unsigned long long left, unsigned long long right) noexcept nogil

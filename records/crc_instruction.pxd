# SPDX-License-Identifier: Apache-2.0
# CRC-32C by the processor's instruction for it, where the compiler and the processor have one: besides wide_product.pxd
# the only C of raftlog (DECISIONS.md, 12). Cython, too, cannot say an instruction. Elsewhere the kernel's tables do the
# work.
#
# The instruction takes 8 bytes each cycle, but its result is there three cycles later: so three lanes of bytes are
# worked on at a time, each as if it were the first, and are put together after that. What is a page ahead is fetched
# meanwhile: by itself the processor does not keep up with so many places at once.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(RAFTLOG_TABLE_CRC)  /* As where there is no instruction: for tests. */
    #elif defined(__GNUC__) && defined(__x86_64__)
        #define WITH_CRC __attribute__((target("sse4.2")))
        #define HAS_CRC __builtin_cpu_supports("sse4.2")
        #define crc_of_word(crc, word) ((uint32_t) __builtin_ia32_crc32di(crc, word))
        #define crc_of_byte(crc, byte) __builtin_ia32_crc32qi(crc, byte)
    #elif defined(__GNUC__) && defined(__AARCH64EL__) && defined(__ARM_FEATURE_CRC32)
        #include <arm_acle.h>
        #define WITH_CRC
        #define HAS_CRC 1
        #define crc_of_word(crc, word) __crc32cd(crc, word)
        #define crc_of_byte(crc, byte) __crc32cb(crc, byte)
    #endif

    #ifdef HAS_CRC
        #define LANE_SIZE 128
        #define FETCHED_AHEAD 4096

        /* What each byte of a CRC, the lowest first, makes of the CRC that is a lane further on. */
        static uint32_t crc_after_lane[4][256];

        static inline uint64_t word_at(const unsigned char *data)
        {
            uint64_t word;
            memcpy(&word, data, sizeof word);
            return word;
        }

        static inline uint32_t after_lane(uint32_t crc)
        {
            return crc_after_lane[0][crc & 0xFF] ^ crc_after_lane[1][crc >> 8 & 0xFF]
                ^ crc_after_lane[2][crc >> 16 & 0xFF] ^ crc_after_lane[3][crc >> 24];
        }

        WITH_CRC static int prepare_crc_instruction(void)
        {
            if (!HAS_CRC)
                return 0;
            for (uint32_t index = 0; index < 4 * 256; index++) {
                uint32_t crc = (index & 0xFF) << 8 * (index / 256);
                for (int at = 0; at < LANE_SIZE; at += 8)
                    crc = crc_of_word(crc, 0);
                crc_after_lane[index / 256][index & 0xFF] = crc;
            }
            return 1;
        }

        WITH_CRC static uint32_t crc32c_by_instruction(const unsigned char *data, Py_ssize_t size)
        {
            uint32_t crc = 0xFFFFFFFF;
            for (; size >= 3 * LANE_SIZE; data += 3 * LANE_SIZE, size -= 3 * LANE_SIZE) {
                uint32_t first = 0, second = 0, third = 0;
                for (int at = 0; at < 3 * LANE_SIZE; at += 64)
                    __builtin_prefetch(data + FETCHED_AHEAD + at);  /* Which is never read: it may be beyond the end. */
                for (int at = 0; at < LANE_SIZE; at += 8) {
                    first = crc_of_word(first, word_at(data + at));
                    second = crc_of_word(second, word_at(data + LANE_SIZE + at));
                    third = crc_of_word(third, word_at(data + 2 * LANE_SIZE + at));
                }
                crc = after_lane(after_lane(after_lane(crc) ^ first) ^ second) ^ third;
            }
            for (; size >= 8; data += 8, size -= 8)
                crc = crc_of_word(crc, word_at(data));
            for (; size > 0; data++, size--)
                crc = crc_of_byte(crc, *data);
            return ~crc;
        }
    #else
        static int prepare_crc_instruction(void)
        {
            return 0;
        }

        static uint32_t crc32c_by_instruction(const unsigned char *data, Py_ssize_t size)
        {
            (void) data, (void) size;
            return 0;
        }
    #endif
    """
    bint prepare_crc_instruction() noexcept nogil  # Call it once; it says whether there is one.
    unsigned int crc32c_by_instruction(const unsigned char *data, Py_ssize_t size) noexcept nogil

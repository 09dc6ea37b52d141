/* SPDX-License-Identifier: MIT */
/* The parser of DRM fdinfo, on the texts of drivers as the kernel documents them. */
#include <string.h>

#include "sensor/fdinfo_text.h"
#include "test.h"

static bool parse(const char *text, struct ew_fdinfo *info)
{
    return ew_fdinfo_parse(text, strlen(text), info);
}

TEST(time_and_memory_of_each_driver_are_read)
{
    static const struct {
        const char *remark, *text;
        uint64_t engines_ns, cycles, total_cycles, memory_bytes;
        bool engines, has_cycles, memory;
    } rows[] = {
        {"amdgpu",
         "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00."
         "0\n"
         "drm-memory-vram:\t2048 KiB\ndrm-memory-cpu:\t512 KiB\ndrm-engine-gfx:\t100 ns\n"
         "drm-engine-capacity-gfx:\t2\ndrm-engine-compute:\t23 ns\n",
         123, 0, 0, 2 << 20, true, false, true},
        {"i915: resident replaces memory",
         "drm-driver: i915\ndrm-client-id: 7\ndrm-resident-system0: 1 MiB\ndrm-memory-system0: 9 "
         "MiB\n"
         "drm-engine-render: 5 ns\n",
         5, 0, 0, 1 << 20, true, false, true},
        {"xe",
         "drm-driver:\txe\ndrm-client-id:\t7\ndrm-cycles-rcs:\t10\ndrm-total-cycles-rcs:\t100\n"
         "drm-cycles-bcs:\t5\ndrm-total-cycles-bcs:\t99\n",
         0, 15, 100, 0, false, true, false},
        {"msm: cycles of the engine next to its time (gpu/drm-usage-stats)",
         "drm-driver:\tmsm\ndrm-client-id:\t7\ndrm-engine-gpu:\t5000 ns\ndrm-cycles-gpu:\t70\n"
         "drm-maxfreq-gpu:\t800000000 Hz\n",
         5000, 70, 0, 0, true, false, false},
        {"panfrost (gpu/panfrost)",
         "drm-driver:\tpanfrost\ndrm-client-id:\t7\ndrm-engine-fragment:\t1846584880 ns\n"
         "drm-cycles-fragment:\t1424359409\ndrm-maxfreq-fragment:\t799999987 Hz\n"
         "drm-curfreq-fragment:\t799999987 Hz\ndrm-engine-vertex-tiler:\t71932239 ns\n"
         "drm-cycles-vertex-tiler:\t52617357\ndrm-total-memory:\t290 MiB\n"
         "drm-resident-memory:\t290 MiB\n",
         1846584880 + 71932239, 1424359409 + 52617357, 0, 290 << 20, true, false, true},
        {"v3d: no address, a unit in bytes",
         "drm-driver:\tv3d\ndrm-client-id:\t7\ndrm-engine-bin:\t3 ns\ndrm-memory-x:\t4096\n", 3, 0,
         0, 4096, true, false, true},
        {"an empty value and a number that is too large are ignored",
         "drm-driver:\tx\ndrm-client-id:\t7\ndrm-engine-a:\ndrm-engine-b:\t99999999999999999999 "
         "ns\n"
         "drm-resident-a:\t18446744073709551615 GiB\n",
         0, 0, 0, 0, false, false, false},
        {"sums do not wrap",
         "drm-driver:\tx\ndrm-client-id:\t7\ndrm-engine-a:\t9223372036854775807\n"
         "drm-engine-b:\t9223372036854775807\ndrm-engine-c:\t9223372036854775807\n",
         UINT64_MAX, 0, 0, 0, true, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ew_fdinfo info;
        test_row(rows[i].remark);
        CHECK(parse(rows[i].text, &info));
        CHECK_EQ_UINT(info.client, 7);
        CHECK_EQ_UINT(info.engines_ns, rows[i].engines_ns);
        CHECK_EQ_UINT(info.cycles, rows[i].cycles);
        CHECK_EQ_UINT(info.total_cycles, rows[i].total_cycles);
        CHECK_EQ_UINT(info.memory_bytes, rows[i].memory_bytes);
        CHECK_EQ_INT(info.has_engines, rows[i].engines);
        CHECK_EQ_INT(info.has_cycles, rows[i].has_cycles);
        CHECK_EQ_INT(info.has_memory, rows[i].memory);
    }
}

TEST(engines_that_encode_and_decode_are_apart)
{
    struct ew_fdinfo info;
    CHECK(parse("drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-engine-gfx:\t1 ns\n"
                "drm-engine-enc:\t20 ns\ndrm-engine-enc_1:\t5 ns\ndrm-engine-dec:\t300 ns\n",
                &info));
    CHECK(info.has_codecs);
    CHECK_EQ_UINT(info.encoder_ns, 25);
    CHECK_EQ_UINT(info.decoder_ns, 300);
    CHECK_EQ_UINT(info.engines_ns, 326);
    CHECK(parse("drm-driver:\ti915\ndrm-client-id:\t7\ndrm-engine-video:\t9 ns\n", &info));
    CHECK(!info.has_codecs); /* it does both */
}

TEST(other_files_are_no_clients)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "pos:\t0\nflags:\t02\n",
                                        "drm-driver:\tamdgpu\n",
                                        "drm-client-id:\t7\n",
                                        "drm-driver\ndrm-client-id 7\n"};
    struct ew_fdinfo info;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        test_row(texts[i]);
        CHECK(!parse(texts[i], &info));
    }
}

TEST(a_long_name_is_cut)
{
    struct ew_fdinfo info;
    CHECK(parse(
        "drm-driver:\tabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\ndrm-client-id:\t1\n",
        &info));
    CHECK_EQ_UINT(strlen(info.driver), sizeof info.driver - 1);
}

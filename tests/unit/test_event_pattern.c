/* SPDX-License-Identifier: MIT */
#include "base/event_pattern.h"

#include "test.h"

TEST(an_event_is_selected_by_whole_names_and_globs)
{
    static const struct {
        const char *pattern, *event;
        bool selected;
    } rows[] = {
        {"Thread/CSwitch", "Thread/CSwitch", true}, /* the whole name */
        {"thread/cswitch", "Thread/CSwitch", true}, /* case is ignored */
        {"CSwitch", "Thread/CSwitch", true},        /* one side of the slash */
        {"Thread", "Thread/CSwitch", true},
        {"Switch", "Thread/CSwitch", false}, /* no substrings */
        {"Thread/Start", "ThreadPoolWorkerThread/Start", false},
        {"Thread/C", "Thread/CSwitch", false},
        {"*Switch", "Thread/CSwitch", true}, /* globs */
        {"Thread/*", "Thread/CSwitch", true},
        {"Thr??d", "Thread/CSwitch", true},
        {"*", "", true},
        {"", "Thread/CSwitch", false},
        {"", "", true},
        {"a/b", "a/b/c", false},
        {"b/c", "a/b/c", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ_INT(ew_pattern_event(rows[i].pattern, rows[i].event), rows[i].selected);
}

TEST(a_provider_is_selected_by_its_name_a_glob_or_its_guid)
{
    static const uint8_t guid[16] = {0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42,
                                     0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16};
    const char *name = "Microsoft-Windows-Kernel-Process";
    CHECK(ew_pattern_provider("microsoft-windows-kernel-process", name, guid));
    CHECK(ew_pattern_provider("*Kernel-Process", name, guid));
    CHECK(!ew_pattern_provider("Kernel-Process", name, guid));
    CHECK(ew_pattern_provider("22FB2CD6-0E7B-422B-A0C7-2FAD1FD0E716", name, guid));
    CHECK(ew_pattern_provider("{22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716}", name, guid));
    CHECK(!ew_pattern_provider("{22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716", name, guid));
    CHECK(!ew_pattern_provider("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e717", name, guid));
    CHECK(!ew_pattern_provider("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716", name, NULL));
}

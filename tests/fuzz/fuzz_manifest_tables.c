/* SPDX-License-Identifier: MIT */
/*
 * The input: the event and its table, the pointer size, and a payload. Any payload gives a
 * well-formed list, and the number of consumed bytes lies within it.
 */
#include "decode_input.h"

#include "decode/manifests.h"
#include "fuzz.h"

static const struct ew_table_event *choose(const struct ew_table_provider *table, unsigned n)
{
    unsigned count = 0;
    while (table->events && table->events[count].name)
        count++;
    return count ? &table->events[n % count] : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned tables = 0;
    struct ew_store store;
    struct ew_fields fields;
    size_t used;
    if (size < 3 || size > 65536)
        return 0;
    while (ew_tables(tables))
        tables++;
    const struct ew_table_provider *table = ew_tables(data[0] % tables);
    const struct ew_table_event *event = choose(table, data[1]);
    if (!event)
        return 0;
    ew_store_init(&store);
    ew_fields_init(&fields);
    const struct ew_schema *schema = ew_manifest_table_compile(&store, table, event);
    require(schema != NULL, "every table compiles");
    (void)ew_schema_decode(schema, data + 3, size - 3, data[2] & 1 ? 4 : 8, &fields, &used);
    require(used <= size - 3, "consumed no more than there is");
    check_fields(&fields);
    ew_fields_done(&fields);
    ew_store_done(&store);
    return 0;
}

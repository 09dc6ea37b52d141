/* SPDX-License-Identifier: MIT */
/*
 * Any record as named fields: no byte outside the payload is read, the list is well formed, every
 * event with fields has a name, and decoding twice gives the same result.
 */
#include "decode/kernel.h"
#include "fuzz.h"
#include "kernel_input.h"

static unsigned check_list(const struct ew_fields *fields)
{
    unsigned depth = 0, sum = 0;
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct ew_field *field = &fields->list[i];
        sum += touch(field->name, field->name ? field->name_len : 0);
        switch (field->type) {
        case EW_FIELD_ARRAY:
        case EW_FIELD_STRUCT:
            depth++;
            break;
        case EW_FIELD_CLOSE:
            require(depth > 0, "every closed entry was open");
            depth--;
            break;
        case EW_FIELD_TEXT:
            sum += touch(field->v.text, field->len);
            break;
        case EW_FIELD_SID:
        case EW_FIELD_GUID:
        case EW_FIELD_IPV4:
        case EW_FIELD_IPV6:
        case EW_FIELD_BINARY:
            sum += touch(field->v.raw, field->len);
            break;
        default:
            break;
        }
    }
    require(depth == 0, "everything is closed");
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ew_record record;
    struct ew_fields fields;
    char scratch[EW_KERNEL_NAME_SIZE];
    struct ew_kernel_name name;
    uint8_t *payload = make_record(data, size, &record);
    if (!payload)
        return 0;
    ew_fields_init(&fields);
    bool named = ew_kernel_names(&record, scratch, &name);
    int result = ew_kernel_fields(&record, &fields);
    require(!result || named, "an event with fields has a name");
    require(!named || (*name.provider && *name.event), "names are not empty");
    require(result || fields.count == 0, "an unknown layout has no fields");
    require(!named || name.laid_out == (result != 0), "fields if and only if there is a layout");
    unsigned sum = check_list(&fields);
    ew_fields_clear(&fields);
    require(ew_kernel_fields(&record, &fields) == result, "the same result again");
    require(check_list(&fields) == sum, "the same fields again");
    ew_fields_done(&fields);
    free(payload);
    return 0;
}

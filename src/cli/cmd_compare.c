/* SPDX-License-Identifier: MIT */
/* compare: two runs next to each other. Nothing but the two named files is read. */
#include "cli/cli.h"

#include "cli/compare.h"

static int write_comparison(const struct ew_comparison *comparison,
                            const struct ew_options *options, struct ew_output *output)
{
    struct ew_buf out;
    ew_buf_init(&out, 0, NULL, NULL);
    if (options->json)
        ew_compare_write_json(&out, comparison);
    else
        ew_compare_write_text(&out, comparison);
    int rc = out.error != 0 ? out.error : ew_output_write(output, out.data, out.len);
    ew_buf_done(&out);
    if (rc < 0 && !ew_output_reader_gone(output))
        return ew_print_write_error(options->output_path, output->os_error);
    return EW_EXIT_OK;
}

int ew_cmd_compare(const struct ew_options *options)
{
    struct ew_run_data a = {0}, b = {0};
    struct ew_comparison comparison = {0};
    struct ew_output output;
    int code = EW_EXIT_FAILED;
    int error = ew_output_open(&output, options->output_path, options->mode);
    if (error != 0)
        return ew_print_write_error(options->output_path, error);
    if (ew_cli_recording_confine(options) != EW_EXIT_OK)
        code = EW_EXIT_FAILED;
    else if (ew_compare_read(&a, options->files.words[0]) < 0)
        ew_print_error("%s", a.error);
    else if (ew_compare_read(&b, options->files.words[1]) < 0)
        ew_print_error("%s", b.error);
    else if (ew_compare_runs(&comparison, &a, &b) < 0)
        ew_print_error("%s", comparison.error);
    else
        code = write_comparison(&comparison, options, &output);
    error = ew_output_close(&output);
    if (error != 0 && code == EW_EXIT_OK)
        code = ew_print_write_error(options->output_path, error);
    ew_compare_runs_done(&comparison);
    ew_compare_done(&a);
    ew_compare_done(&b);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "report/samples.h"

#include "base/str.h"
#include <string.h>

/* JSON holds only valid UTF-8 without NUL. */
static void add_text(struct json *o, const struct sample_text *s)
{
    CLEANUP(str_release) struct str shown = { 0 };
    if (strlen(s->text) == s->len && str_is_utf8(s->text))
        str_addn(&shown, s->text, s->len);
    else
        str_add_clean_lines(&shown, s->text, s->len);
    json_add_text(o, "text", shown.s);
}

struct json *report_samples(const char *weights, uint64_t step, const struct sample_text *samples, size_t n)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "weights", weights);
    if (step)
        json_add_int(top, "step", (int64_t)step);
    else
        json_add_null(top, "step");
    struct json *list = json_add_array(top, "samples");
    for (size_t i = 0; i < n; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "prompt", samples[i].prompt);
        add_text(o, &samples[i]);
    }
    return top;
}

struct json *report_video_samples(const char *weights, uint64_t step, const char *dir,
                                  const struct sample_file *samples, size_t n)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "weights", weights);
    json_add_int(top, "step", (int64_t)step);
    json_add_text(top, "dir", dir);
    struct json *list = json_add_array(top, "samples");
    for (size_t i = 0; i < n; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_int(o, "index", (int64_t)samples[i].index);
        json_add_text(o, "prompt", samples[i].prompt);
        json_add_int(o, "seed", samples[i].seed);
        json_add_text(o, "file", samples[i].name);
        json_add_int(o, "width", (int64_t)samples[i].width);
        json_add_int(o, "height", (int64_t)samples[i].height);
        json_add_int(o, "frames", (int64_t)samples[i].frames);
        json_add_real(o, "fps", samples[i].fps);
    }
    return top;
}

/* SPDX-License-Identifier: Apache-2.0
 * Scaling and datasets for resize.py and dataset.py.
 *
 *     dataset_tool fit CHANNELS FROM-WIDTH FROM-HEIGHT WIDTH HEIGHT   pixels on stdin, pixels on stdout
 *     dataset_tool items CONFIG MEDIA [STEP]      MEDIA: JSON {name: [width, height, frames, fps]}; prints JSON */
#include "base/json.h"
#include "base/parse.h"
#include "media/dataset.h"
#include "os/path.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct cairn_error *err)
{
    fprintf(stderr, "dataset_tool: %s\n", err->msg);
    return 1;
}

static int fit(const uint64_t size[5])
{
    CLEANUP(picture_free) struct picture in = { 0 }, out = { 0 };
    struct cairn_error err = { 0 };
    struct picture_fit plan;
    if (picture_new(&in, size[1], size[2], (int)size[0], &err) ||
        picture_fit_plan(&plan, size[1], size[2], size[3], size[4], &err))
        return fail(&err);
    if (fread(in.at, 1, picture_bytes(&in), stdin) != picture_bytes(&in))
        return 2;
    if (picture_fit(&in, &plan, &out, &err))
        return fail(&err);
    return fwrite(out.at, 1, picture_bytes(&out), stdout) != picture_bytes(&out);
}

static int probe(void *context, const char *path, struct arena *a, struct media_info *out,
                 struct cairn_error *err)
{
    const struct json *row = json_get(context, path_name(path));
    (void)a;
    if (!row)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: not a picture", path);
    *out = (struct media_info){ .width = (size_t)json_int(json_at(row, 0), 0),
                                .height = (size_t)json_int(json_at(row, 1), 0),
                                .frames = (size_t)json_int(json_at(row, 2), 0),
                                .fps = json_number(json_at(row, 3), 0) };
    out->clip = out->frames > 1;
    return 0;
}

static void add_item(struct json *list, const struct dataset_item *item)
{
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "file", path_name(item->path));
    json_add_text(o, "caption", item->caption);
    json_add_text(o, "problem", item->problem ? dataset_problem_name(item->problem) : NULL);
    json_add_text(o, "cache_stem", item->cache_stem);
    json_add_text(o, "cache_directory", item->block->cache_directory);
    struct json *bucket = json_add_array(o, "bucket");
    json_add_int(bucket, NULL, (int64_t)item->bucket.width);
    json_add_int(bucket, NULL, (int64_t)item->bucket.height);
    json_add_int(o, "start", (int64_t)item->start);
    struct json *frames = json_add_array(o, "frames");
    for (size_t i = 0; i < item->n_frames; i++)
        json_add_int(frames, NULL, (int64_t)item->frames[i]);
    struct json *scaled = json_add_array(o, "scaled");
    json_add_int(scaled, NULL, (int64_t)item->fit.scaled_width);
    json_add_int(scaled, NULL, (int64_t)item->fit.scaled_height);
    json_add_int(scaled, NULL, (int64_t)item->fit.window.x);
    json_add_int(scaled, NULL, (int64_t)item->fit.window.y);
}

static int items(const char *config, const char *media, uint64_t step)
{
    CLEANUP(json_cleanup) struct json *infos = NULL, *out = json_new_object();
    CLEANUP(dataset_cleanup) struct dataset *d = NULL;
    struct cairn_error err = { 0 };
    if (json_read_object(media, &infos, &err))
        return fail(&err);
    struct dataset_options o = {
        .config = config, .bucket_step = step, .threads = 1, .probe = probe, .probe_context = infos
    };
    if (dataset_open(&d, &o, &err))
        return fail(&err);
    struct json *list = json_add_array(out, "items");
    for (size_t i = 0; i < dataset_count(d); i++)
        add_item(list, dataset_item(d, i));
    json_print(out, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t size[5], step = 0;
    if (argc == 7 && !strcmp(argv[1], "fit")) {
        for (int i = 0; i < 5; i++)
            if (!cairn_parse_u64(argv[2 + i], &size[i]))
                return 2;
        return fit(size);
    }
    if ((argc == 4 || (argc == 5 && cairn_parse_u64(argv[4], &step))) && !strcmp(argv[1], "items"))
        return items(argv[2], argv[3], step);
    return 2;
}

/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the description of a dataset: sources that are complete, or a message.  The first byte chooses
 * the format. */
#include "media/dataset_parts.h"

#include "base/toml.h"
#include "fuzz.h"

static void check_source(const struct dataset_source *s, struct arena *a)
{
    struct media_info clip = { .clip = true, .width = 640, .height = 480, .frames = 50, .fps = 30 };
    struct dataset_piece *piece;
    size_t needed, n;
    FUZZ_REQUIRE(!s->folder != !s->list);
    FUZZ_REQUIRE(s->block.name && s->block.cache_directory && s->block.batch && s->block.repeats);
    FUZZ_REQUIRE(s->by_area ? s->side > 0 : s->buckets.n > 0 && s->clip_buckets.n > 0);
    /* A step of one frame over a clip is many pieces, not a failure. */
    if (!(s->find & DATASET_CLIPS) || s->max_frames > 4096)
        return;
    n = dataset_cut(s, &clip, a, &piece, &needed);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < piece[i].n; k++)
            FUZZ_REQUIRE(piece[i].frames[k] < clip.frames &&
                         (!k || piece[i].frames[k] >= piece[i].frames[k - 1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    CLEANUP(mem_free) char *text = fuzz_text(data + 1, size - 1);
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct dataset_sources s = { 0 };
    struct dataset_options o = { 0 };
    struct yaml_node *root = NULL;
    bool is_toml = *data == 'T', is_job = *data == 'J';
    if (is_toml ? toml_parse("f", text, size - 1, &a, &root, &err)
                : yaml_parse("f", text, size - 1, &a, &root, &err))
        return 0;
    if ((is_job ? dataset_read_toolkit : dataset_read_musubi)("f", root, &o, &a, &s, &err)) {
        FUZZ_REQUIRE(err.code && err.msg[0]);
        return 0;
    }
    FUZZ_REQUIRE(s.n > 0);
    for (size_t i = 0; i < s.n && i < 64; i++)
        check_source(&s.source[i], &a);
    return 0;
}

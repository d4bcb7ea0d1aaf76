/* SPDX-License-Identifier: Apache-2.0
 * media/media.h for a test in Python.
 *
 *     media_tool probe FILE…                        a line of "key=value" words for each
 *     media_tool rgb|grey|alpha FILE OUT FRAME…     raw pixels into OUT, a line "frame width height" for each
 *     media_tool write OUT WIDTH HEIGHT FPS FRAMES  raw RGB from standard input becomes a clip
 *     media_tool png OUT WIDTH HEIGHT CHANNELS      raw pixels from standard input become a PNG file
 *
 * A failure is a line "error CODE TEXT"; exit 1. */
#include "media/media.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "media/clip_writer.h"
#include "media/png_write.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const struct cairn_error *err)
{
    printf("error %d %s%s%s\n", err->code, err->msg, err->hint[0] ? "; " : "", err->hint);
    return 1;
}

static int probe(struct media *m, const char *path)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct media_info i;
    struct cairn_error err = { 0 };
    if (media_probe(m, path, &a, &i, &err))
        return failed(&err);
    printf("clip=%d width=%zu height=%zu frames=%zu fps=%.6f variable=%d start=%.6f alpha=%d bits=%d "
           "orientation=%d cut=%d codec=%s colour=%s\n",
           i.clip, i.width, i.height, i.frames, i.fps, i.variable_rate, i.start_s, i.has_alpha, i.bits,
           i.orientation, i.cut, i.codec ? i.codec : "", i.colour_note ? i.colour_note : "");
    return 0;
}

static int take(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    (void)err;
    printf("%zu %zu %zu\n", frame, p->width, p->height);
    fwrite(p->at, 1, picture_bytes(p), ctx);
    return 0;
}

static int read_frames(struct media *m, char **argv, int n)
{
    static size_t frames[1 << 16];
    struct cairn_error err = { 0 };
    FILE *out = fopen(argv[3], "wb");
    for (int i = 0; i < n; i++)
        frames[i] = strtoull(argv[4 + i], NULL, 10);
    int (*const read)(struct media *, const char *, const size_t *, size_t, media_take *, void *,
                      struct cairn_error *) = !strcmp(argv[1], "rgb")    ? media_read
                                              : !strcmp(argv[1], "grey") ? media_read_grey
                                                                         : media_read_alpha;
    int r = !out || read(m, argv[2], frames, (size_t)n, take, out, &err);
    if (out)
        fclose(out);
    return r ? failed(&err) : 0;
}

static int write_clip(const struct media_options *options, char **argv)
{
    struct cairn_error err = { 0 };
    struct clip_writer *w = NULL;
    struct picture p = { 0 };
    const struct clip_format format = { (size_t)atol(argv[3]), (size_t)atol(argv[4]), atof(argv[5]), true,
                                        str_ends(argv[2], ".jpg")    ? CLIP_JPEG
                                        : str_ends(argv[2], ".webp") ? CLIP_WEBP
                                                                     : CLIP_MP4 };
    int r = clip_writer_open(&w, options, argv[2], &format, &err) ||
            picture_new(&p, format.width, format.height, 3, &err);
    for (int i = 0; !r && i < atoi(argv[6]); i++)
        r = fread(p.at, 1, picture_bytes(&p), stdin) != picture_bytes(&p) || clip_writer_add(w, &p, &err);
    r = r || clip_writer_commit(w, &err);
    clip_writer_close(w);
    picture_free(&p);
    return r ? failed(&err) : 0;
}

static int write_png(char **argv)
{
    struct cairn_error err = { 0 };
    struct picture p = { 0 };
    int r = picture_new(&p, (size_t)atol(argv[3]), (size_t)atol(argv[4]), atoi(argv[5]), &err) ||
            fread(p.at, 1, picture_bytes(&p), stdin) != picture_bytes(&p) || png_write(argv[2], &p, &err);
    picture_free(&p);
    return r ? failed(&err) : 0;
}

int main(int argc, char **argv)
{
    struct media *m;
    struct cairn_error err = { 0 };
    const char *wait = getenv("MEDIA_WAIT"), *memory = getenv("MEDIA_MEMORY");
    const struct media_options options = { .wait_s = wait ? (unsigned)atoi(wait) : 0,
                                           .memory = memory ? strtoull(memory, NULL, 10) : 0 };
    if (argc < 3)
        return 2;
    if (!strcmp(argv[1], "write"))
        return argc == 7 ? write_clip(&options, argv) : 2;
    if (!strcmp(argv[1], "png"))
        return argc == 6 ? write_png(argv) : 2;
    if (media_open(&m, &options, &err))
        return failed(&err);
    int r = 0;
    if (!strcmp(argv[1], "probe"))
        for (int i = 2; i < argc; i++)
            r |= probe(m, argv[i]);
    else
        r = argc > 4 ? read_frames(m, argv, argc - 4) : 2;
    media_close(m);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "encode/decode.h"
#include "os/info.h"
#include "os/path.h"
#include "start/device_memory.h"
#include "start/own_env.h"
#include "start/restart.h"
#include "start/watch_calls.h"
#include <stdio.h>
#include <string.h>

struct options {
    const char *vae, *out, *device;
    int hang_after_s;
    int argc; /* for a restart after a call that never returned */
    char **argv;
};

/* A picture or clip of another format, not a folder. */
static bool is_other_format(const char *name)
{
    static const char *const formats[] = { ".jpg", ".jpeg", ".webp", ".avif", ".bmp",
                                           ".gif", ".webm", ".mkv",  ".mov",  ".avi" };
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (str_ends(name, formats[i]))
            return !os_is_folder(name);
    return false;
}

/* A file of its own for each, named as the cache, in a folder. */
static int name_of(const struct options *w, const char *latents, struct arena *a, const char **out,
                   struct cairn_error *err)
{
    const char *name = path_name(latents), *dot = strrchr(name, '.');
    bool is_clip;
    if (str_ends(w->out, ".png") || str_ends(w->out, ".mp4")) {
        *out = w->out;
        return 0;
    }
    if (decode_is_clip(latents, &is_clip, err))
        return -1;
    *out = arena_printf(a, "%s/%.*s%s", w->out, (int)(dot ? dot - name : (long)strlen(name)), name,
                        is_clip ? ".mp4" : ".png");
    return file_make_dir(w->out, 0777, err);
}

static int decode_all(const struct options *w, char **files, int n, struct gpu *g, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct decode_options o = {
        .device = { .part = ENCODE_VAE,
                    .g = g,
                    .storage = encode_storage_on(g),
                    .budget = device_memory_apply(g, 0),
                    .host_budget = device_memory_host(),
                    .sink = &stderr_messages },
        .vae = w->vae,
    };
    struct decoder *d = NULL;
    int r = decoder_open(&d, &o, err);
    for (int i = 0; !r && i < n; i++) {
        const char *out;
        r = name_of(w, files[i], &a, &out, err) || decode_file(d, files[i], out, err);
        if (!r)
            printf("%s\n", out);
    }
    decoder_close(d);
    return r;
}

/* Called by the watchdog thread. */
static void restart_hung(const struct cairn_error *why)
{
    restart_encoder(why, ENCODE_VAE);
}

static int open_device(const struct options *w, struct gpu **g, struct arena *a, struct cairn_error *err)
{
    const char *device = w->device ? w->device : "auto";
    own_env_apply(&stderr_messages);
    restart_prepare(w->argc, w->argv, true, NULL, &stderr_messages, a);
    return watch_calls(w->hang_after_s, restart_hung, &stderr_messages, err) ||
                   gpu_open(restart_wants_encoder_on_cpu(ENCODE_VAE) ? "cpu" : device, g, err)
               ? -1
               : 0;
}

static int run_decode(const struct options *w, char **files, int n)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct gpu *g = NULL;
    int r = open_device(w, &g, &a, &err) || decode_all(w, files, n, g, &err);
    gpu_close(g);
    return r ? print_error(&err) : EXIT_FINE;
}

int cmd_decode(int argc, char **argv)
{
    struct options w = { .hang_after_s = WATCH_DEFAULT_S, .argc = argc, .argv = argv };
    int rest;
    const struct opt_row rows[] = {
        OPT_STR('o', "out", &w.out, "FILE", "picture (.png), clip (.mp4), or a folder"),
        OPT_STR(0, "vae", &w.vae, "FILE", "VAE of Wan, a file or a folder"),
        OPT_STR('d', "device", &w.device, "NAME", "auto, cpu, hip:0, cuda:0"),
        OPT_HANG_AFTER(&w.hang_after_s),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn decode [options] LATENTS...",
        .about =
            "Shows what a cache holds: decodes latents (*_wan.safetensors) to a picture or a clip. A clip as .png is "
            "one picture with all its frames.",
        .examples = "  cairn decode --vae wan_2.1_vae.safetensors cat_0832x0480_wan.safetensors -o cat.png\n"
                    "  cairn decode --vae wan_2.1_vae.safetensors cache/*_wan.safetensors -o shown\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (rest == argc)
        return options_error("decode", "give the latents to decode");
    if (!w.vae || !w.out)
        return options_error("decode", w.vae ? "--out is missing: where to write" : "--vae is missing");
    if (argc - rest > 1 && (str_ends(w.out, ".png") || str_ends(w.out, ".mp4")))
        return options_error("decode", "--out must be a folder for several latents");
    if (is_other_format(w.out))
        return options_error("decode", "--out must end with .png or .mp4, or name a folder");
    return run_decode(&w, argv + rest, argc - rest);
}

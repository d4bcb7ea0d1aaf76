/* SPDX-License-Identifier: Apache-2.0
 * The VAEs on tiny models: chunks and tiles agree, plans are what is allocated, files are checked, and results that are
 * none are refused.  Against other implementations: golden_vae.c. */
#include "base/str.h"
#include "nn/vae.h"
#include "nn/vae_clip.h"
#include "on_cpu.h"
#include "tensor/safetensors.h"
#include <math.h>

static const char *data;

static const char *file_of(int version)
{
    static char path[2][512];
    char *p = path[version == 22];
    snprintf(p, sizeof(path[0]), "%s/%s.weights.safetensors", data, version == 22 ? "vae22_a" : "vae21_b");
    return p;
}

/* ---- clips ---- */

struct clip {
    struct vae_size size;
    size_t reads, next; /* frames so far; the next one in order */
    float *frames;      /* out of the decoder */
    size_t bad;         /* a frame with a NaN; 0: none */
    float value;        /* everywhere; 0: a pattern */
};

static float pixel(size_t f, size_t y, size_t x, size_t k)
{
    return sinf((float)(f * 7 + y * 3 + x * 5 + k * 11) * 0.37f) * 0.8f;
}

static int read_clip(void *ctx, size_t first, size_t n, float *out, struct cairn_error *err)
{
    struct clip *c = ctx;
    (void)err;
    CHECK(first + n <= c->size.frames);
    c->reads += n;
    for (size_t f = first; f < first + n; f++)
        for (size_t y = 0; y < c->size.height; y++)
            for (size_t x = 0; x < c->size.width; x++)
                for (size_t k = 0; k < 3; k++)
                    *out++ = c->bad && f == c->bad && !y && !x ? NAN : pixel(f, y, x, k);
    return 0;
}

static int write_clip(void *ctx, size_t first, size_t n, const float *rgb, struct cairn_error *err)
{
    struct clip *c = ctx;
    size_t frame = c->size.height * c->size.width * 3;
    (void)err;
    CHECK_INT(first, c->next);
    c->next += n;
    memcpy(c->frames + first * frame, rgb, n * frame * sizeof(float));
    return 0;
}

static struct vae_layout whole(const struct vae_size *size, size_t chunk)
{
    return (struct vae_layout){ .tile_height = size->height, .tile_width = size->width, .chunk = chunk };
}

static float *encode(struct vae *v, struct vae_size size, const struct vae_layout *l, size_t *n)
{
    struct vae_size latent = vae_latent_size(vae_info(v), &size);
    struct clip c = { .size = size };
    struct vae_source source = { read_clip, &c };
    struct cairn_error err = { 0 };
    *n = vae_info(v)->channels * latent.frames * latent.height * latent.width;
    float *out = malloc(*n * sizeof(*out));
    if (vae_encode(v, &size, l, &source, out, &err))
        CHECK_FAIL_("%s", err.msg);
    return out;
}

static float *decode(struct vae *v, struct vae_size size, const struct vae_layout *l, size_t *n)
{
    struct vae_size latent = vae_latent_size(vae_info(v), &size);
    size_t values = vae_info(v)->channels * latent.frames * latent.height * latent.width;
    float *in = malloc(values * sizeof(*in));
    for (size_t i = 0; i < values; i++)
        in[i] = sinf((float)i * 1.7f);
    *n = size.frames * size.height * size.width * 3;
    struct clip c = { .size = size, .frames = malloc(*n * sizeof(float)) };
    struct vae_sink sink = { write_clip, &c };
    struct cairn_error err = { 0 };
    if (vae_decode(v, &size, l, in, &sink, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK_INT(c.next, size.frames);
    free(in);
    return c.frames;
}

static struct vae *open_vae(struct nn *nn, int version)
{
    struct vae *v = NULL;
    struct cairn_error err = { 0 };
    if (vae_open(&v, nn, file_of(version), true, true, &err))
        CHECK_FAIL_("%s", err.msg);
    return v;
}

/* The difference as a share of b, both as the root of the mean square. */
static double difference(const float *a, const float *b, size_t n)
{
    double d = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        all += (double)b[i] * (double)b[i];
    }
    return sqrt(d / all);
}

/* ---- tests ---- */

static const int versions[] = { 21, 22 };
static const char *const storages[] = { "f32", "bf16" };

/* In f32 and bf16, whatever the chunks. */
static void chunks_make_no_difference(void)
{
    struct vae_size size = { 13, 16, 32 };
    for (size_t i = 0; i < 2; i++)
        for (size_t s = 0; s < 2; s++) {
            struct vae *v = open_vae(s ? &bf16 : &f32, versions[i]);
            REQUIRE(v);
            size_t n, pixels;
            struct vae_layout all = whole(&size, 4);
            float *want = encode(v, size, &all, &n), *frames = decode(v, size, &all, &pixels);
            for (size_t chunk = 1; chunk < 4; chunk++) {
                struct vae_layout l = whole(&size, chunk);
                float *got = encode(v, size, &l, &n), *out = decode(v, size, &l, &pixels);
                if (memcmp(got, want, n * sizeof(*got)))
                    CHECK_FAIL_("%d %s: latents differ in chunks of %zu", versions[i], storages[s], chunk);
                if (memcmp(out, frames, pixels * sizeof(*out)))
                    CHECK_FAIL_("%d %s: pixels differ in chunks of %zu", versions[i], storages[s], chunk);
                free(got);
                free(out);
            }
            free(want);
            free(frames);
            vae_close(v);
        }
}

/* Frames beyond 4n + 1 are not asked for. */
static void trailing_frames_are_dropped(void)
{
    struct vae *v = open_vae(&f32, 21);
    REQUIRE(v);
    struct vae_size nine = { 9, 16, 16 }, twelve = { 12, 16, 16 };
    struct vae_layout l = whole(&nine, 1);
    size_t n, m;
    float *a = encode(v, nine, &l, &n), *b = encode(v, twelve, &l, &m);
    CHECK_INT(n, m);
    CHECK(!memcmp(a, b, n * sizeof(*a)));
    free(a);
    free(b);
    vae_close(v);
}

/* Tiles see less than the whole, so that they differ; far from their edges they do not, and blends are in between. */
static void tiles_are_near_the_whole(void)
{
    for (size_t i = 0; i < 2; i++) {
        struct vae *v = open_vae(&f32, versions[i]);
        REQUIRE(v);
        size_t stride = vae_info(v)->stride, n;
        struct vae_size size = { 5, 10 * stride, 7 * stride };
        struct vae_layout one = whole(&size, 2), tiles = one;
        tiles.tile_height = 7 * stride;
        tiles.tile_width = 5 * stride;
        tiles.overlap = 3 * stride;
        tiles.chunk = 1;
        double error;
        float *a = encode(v, size, &one, &n), *b = encode(v, size, &tiles, &n);
        error = difference(b, a, n);
        printf("# %d: latents of tiles: %.3f\n", versions[i], error);
        CHECK(error > 0 && error < 0.4);
        free(a);
        free(b);
        a = decode(v, size, &one, &n);
        b = decode(v, size, &tiles, &n);
        error = difference(b, a, n);
        printf("# %d: pixels of tiles: %.3f\n", versions[i], error);
        CHECK(error > 0 && error < 0.4);
        tiles.chunk = 2;
        float *c = decode(v, size, &tiles, &n);
        CHECK(!memcmp(b, c, n * sizeof(*b)));
        free(a);
        free(b);
        free(c);
        vae_close(v);
    }
}

static void shares_add_up(void)
{
    struct {
        size_t size, tile, overlap;
    } cases[] = { { 14, 9, 4 }, { 30, 8, 4 }, { 9, 9, 4 }, { 11, 10, 8 }, { 100, 17, 3 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct vae_tiles t = vae_tiles_of(cases[i].size, cases[i].tile, cases[i].overlap);
        float sums[100] = { 0 }, shares[100];
        for (size_t k = 0; k < t.n; k++) {
            size_t start = vae_tile_start(&t, k);
            CHECK(start + t.tile <= t.size);
            vae_tile_shares(&t, k, 1, shares);
            for (size_t j = 0; j < t.tile; j++)
                sums[start + j] += shares[j];
        }
        for (size_t k = 0; k < t.size; k++)
            CHECK(fabsf(sums[k] - 1) < 1e-5f);
    }
}

/* What a layout says is what is allocated. */
static void plans_are_what_is_used(void)
{
    struct vae_size size = { 9, 64, 64 };
    for (size_t i = 0; i < 2; i++)
        for (int which = 0; which < 8; which++) {
            bool encoder = which % 2;
            size_t chunk = which % 4 < 2 ? 1 : 2, n;
            enum gpu_storage storage = which < 4 ? GPU_F32 : GPU_BF16;
            struct gpu *g;
            struct nn nn;
            struct cairn_error err = { 0 };
            REQUIRE(!gpu_open("cpu", &g, &err) && !nn_open(&nn, g, storage, &err));
            struct vae *v = open_vae(&nn, versions[i]);
            REQUIRE(v);
            struct vae_layout l = whole(&size, chunk);
            REQUIRE(!vae_layout_bytes(v, encoder, &size, &l, &err));
            uint64_t before = gpu_allocated(g).bytes;
            float *out = encoder ? encode(v, size, &l, &n) : decode(v, size, &l, &n);
            uint64_t used = gpu_allocated(g).most_bytes - before;
            if (used > l.bytes * 105 / 100 || used < l.bytes * 95 / 100)
                CHECK_FAIL_("%d, chunks of %zu: %llu bytes are planned, %llu used", versions[i], chunk,
                            (unsigned long long)l.bytes, (unsigned long long)used);
            free(out);
            vae_close(v);
            nn_close(&nn);
            gpu_close(g);
        }
}

static void plans_fit_their_budget(void)
{
    struct vae *v = open_vae(&bf16, 21);
    REQUIRE(v);
    struct vae_size size = { 81, 480, 832 };
    struct vae_layout l, whole_clip = whole(&size, 21);
    struct cairn_error err = { 0 };
    uint64_t last = UINT64_MAX;
    REQUIRE(!vae_layout_bytes(v, true, &size, &whole_clip, &err));
    for (uint64_t budget = whole_clip.bytes; budget > whole_clip.bytes / 500; budget = budget * 2 / 3) {
        if (vae_plan(v, true, &size, budget, &l, &err)) {
            CHECK_INT(err.code, CAIRN_ENOMEM);
            break;
        }
        CHECK(l.bytes <= budget && l.bytes <= last);
        last = l.bytes;
    }
    CHECK(last < whole_clip.bytes / 20);
    CHECK(vae_plan(v, true, &size, 1000, &l, &err) && err.code == CAIRN_ENOMEM);
    size.height = 481;
    CHECK(vae_plan(v, true, &size, UINT64_MAX, &l, &err) && err.code == CAIRN_EUSAGE);
    /* The memory of a long clip is that of a short one. */
    struct vae_size longer = { 8001, 480, 832 };
    size = (struct vae_size){ 81, 480, 832 };
    struct vae_layout a = whole(&size, 1), b = whole(&longer, 1);
    CHECK(!vae_layout_bytes(v, true, &size, &a, &err) && !vae_layout_bytes(v, true, &longer, &b, &err));
    CHECK_INT(a.bytes, b.bytes);
    vae_close(v);
}

/* bf16 is computed as f16 is, and nn is left as it was. */
static void bf16_is_computed_in_f16(void)
{
    struct vae_size size = { 5, 16, 32 };
    struct vae_layout l = whole(&size, 2);
    struct cairn_error err = { 0 };
    struct nn half;
    REQUIRE(!nn_open(&half, cpu, GPU_F16, &err) && !blas_force(half.blas, "cpu", &err));
    for (size_t i = 0; i < 2; i++) {
        struct vae *v = open_vae(&bf16, versions[i]), *h = open_vae(&half, versions[i]);
        REQUIRE(v && h);
        size_t n, pixels;
        CHECK(!vae_layout_bytes(v, false, &size, &l, &err));
        CHECK_INT(bf16.storage, GPU_BF16);
        float *a = encode(v, size, &l, &n), *b = encode(h, size, &l, &n);
        float *x = decode(v, size, &l, &pixels), *y = decode(h, size, &l, &pixels);
        CHECK(!memcmp(a, b, n * sizeof(*a)) && !memcmp(x, y, pixels * sizeof(*x)));
        CHECK_INT(bf16.storage, GPU_BF16);
        free(a);
        free(b);
        free(x);
        free(y);
        vae_close(v);
        vae_close(h);
    }
    nn_close(&half);
}

static void multiply_weights(struct vae *v, const char *name, float by)
{
    const struct param *p = params_find(&v->table.params, name);
    struct cairn_error err = { 0 };
    REQUIRE(p);
    size_t n = p->rows * p->columns;
    float *w = malloc(n * sizeof(*w));
    CHECK(!weights_get(&v->weights, p, w, &err));
    for (size_t i = 0; i < n; i++)
        w[i] *= by;
    CHECK(!weights_put(&v->weights, p, w, &err));
    free(w);
}

static double largest(const float *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}

/* Sees the largest sum that leaves a convolution in f32. */
struct sums_watcher {
    struct nn_watcher watcher;
    double most;
};
static int see_sums(struct nn_watcher *w, struct nn *nn, const struct nn_event *e, struct cairn_error *err)
{
    struct sums_watcher *s = (struct sums_watcher *)w;
    if (gpu_wait(nn->g, nn->stream, err))
        return -1;
    if (str_eq(e->op, "conv") && e->storage == GPU_F32)
        s->most = fmax(s->most, largest(e->out[0].at, e->out[0].n));
    return 0;
}

/* The sums between blocks may be larger than f16 can hold, in both directions. */
static void large_sums_are_no_overflow(void)
{
    struct vae_size size = { 5, 32, 32 };
    struct vae_layout l = whole(&size, 2);
    for (size_t i = 0; i < 2; i++) {
        struct vae *v = open_vae(&f32, versions[i]), *h = open_vae(&bf16, versions[i]), *both[] = { v, h };
        REQUIRE(v && h);
        for (size_t k = 0; k < 2; k++) {
            multiply_weights(both[k], "encoder.conv1.weight", 1e5f);
            multiply_weights(both[k], "decoder.conv1.weight", 1e5f);
        }
        struct sums_watcher sums = { .watcher = { see_sums } };
        size_t n, pixels;
        bf16.watcher = &sums.watcher;
        float *a = encode(h, size, &l, &n);
        CHECK(sums.most > 65504 && sums.most < 1e6);
        sums.most = 0;
        float *x = decode(h, size, &l, &pixels);
        CHECK(sums.most > 65504 && sums.most < 1e6);
        bf16.watcher = NULL;
        float *b = encode(v, size, &l, &n), *y = decode(v, size, &l, &pixels);
        printf("# %d: differences: %.4f and %.4f\n", versions[i], difference(a, b, n),
               difference(x, y, pixels));
        CHECK(difference(a, b, n) < 0.005 && difference(x, y, pixels) < 0.01);
        free(a);
        free(b);
        free(x);
        free(y);
        vae_close(v);
        vae_close(h);
    }
}

static void nan_is_named(void)
{
    struct vae *v = open_vae(&f32, 21);
    REQUIRE(v);
    struct clip c = { .size = { 9, 16, 16 }, .bad = 6 };
    struct vae_source source = { read_clip, &c };
    struct vae_layout l = whole(&c.size, 1);
    struct cairn_error err = { 0 };
    float latent[16 * 3 * 4];
    CHECK(vae_encode(v, &c.size, &l, &source, latent, &err));
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK(strstr(err.msg, "5 to 8") && strstr(err.msg, "input"));
    vae_set_repair(v, true);
    CHECK(!vae_encode(v, &c.size, &l, &source, latent, &err));
    CHECK_INT(vae_repaired(v), 16 * 4); /* all of the last latent frame */
    for (size_t i = 0; i < ARRAY_LEN(latent); i++)
        CHECK(isfinite(latent[i]));
    vae_set_repair(v, false);
    /* Infinite inside, though neither the pixels nor the weights are. */
    struct nn half;
    REQUIRE(!nn_open(&half, cpu, GPU_F16, &err));
    struct vae *h = NULL;
    REQUIRE(!vae_open(&h, &half, file_of(21), true, false, &err));
    const struct param *p = params_find(&h->table.params, "encoder.downsamples.4.residual.2.weight");
    REQUIRE(p);
    float *w = malloc(p->rows * p->columns * sizeof(*w));
    for (size_t i = 0; i < p->rows * p->columns; i++)
        w[i] = 60000;
    CHECK(!weights_put(&h->weights, p, w, &err));
    c.bad = 0;
    CHECK(vae_encode(h, &c.size, &l, &source, latent, &err));
    CHECK(strstr(err.msg, "encoder.downsamples.4") && err.hint[0]);
    free(w);
    vae_close(h);
    nn_close(&half);
    vae_close(v);
}

/* An encoder that says nothing of its input. */
static void constant_latents_are_refused(void)
{
    for (size_t i = 0; i < 2; i++) {
        struct vae *v = open_vae(&f32, versions[i]);
        REQUIRE(v);
        struct cairn_error err = { 0 };
        const struct param *p = params_find(&v->table.params, "conv1.weight");
        REQUIRE(p);
        float *zeros = calloc(p->rows * p->columns, sizeof(*zeros)),
              *latent = calloc(48 * 12, sizeof(*latent));
        CHECK(!weights_put(&v->weights, p, zeros, &err));
        struct clip c = { .size = { 5, 32, 32 } };
        struct vae_source source = { read_clip, &c };
        struct vae_layout l = whole(&c.size, 1);
        latent = realloc(latent, 48 * 16 * 8 * sizeof(*latent));
        CHECK(vae_encode(v, &c.size, &l, &source, latent, &err));
        CHECK_INT(err.code, CAIRN_EFORMAT);
        CHECK(strstr(err.msg, "constant"));
        free(zeros);
        free(latent);
        vae_close(v);
    }
}

/* ---- files ---- */

/* Copies a file of tensors with other names; `leave_out` may be NULL. */
static void rename_tensors(const char *from, const char *to, const char *prefix, const struct vae_table *t,
                           const char *leave_out, const char *add)
{
    struct st_file f = { 0 };
    struct cairn_error err = { 0 };
    struct arena a = { 0 };
    struct st_writer w = { .out = FILE_OUT_NONE };
    REQUIRE(!st_open(&f, from, &err));
    struct st_tensor *list = ARENA_NEW(&a, struct st_tensor, f.n_tensors + 1);
    size_t n = 0, *of = ARENA_NEW(&a, size_t, f.n_tensors + 1);
    for (size_t i = 0; i < f.n_tensors; i++) {
        const char *name = f.tensors[i].name;
        if (leave_out && str_eq(name, leave_out))
            continue;
        for (size_t k = 0; t && k < t->params.n; k++)
            if (str_eq(t->params.list[k].name, name)) {
                name = t->tensors[k].diffusers;
                break;
            }
        of[n] = i;
        list[n] = f.tensors[i];
        list[n++].name = arena_printf(&a, "%s%s", prefix, name);
    }
    if (add) {
        of[n] = 0;
        list[n] = f.tensors[0];
        list[n++].name = add;
    }
    struct st_contents contents = { .tensors = list, .n = n, .order = ST_ORDER_GIVEN };
    CHECK(!st_writer_open(&w, to, &contents, true, &err));
    for (size_t i = 0; i < n; i++) {
        const struct st_tensor *x = &f.tensors[of[i]];
        void *bytes = arena_alloc(&a, x->bytes + 1);
        CHECK(!st_read(&f, x, 0, x->elements, bytes, &err) &&
              !st_writer_put(&w, i, 0, bytes, x->bytes, &err));
    }
    CHECK(!st_writer_commit(&w, &err));
    st_writer_close(&w);
    st_close(&f);
    arena_release(&a);
}

/* Names that diffusers has, by its own classes. */
static void diffusers_names_are_right(void)
{
    static const struct {
        int version;
        const char *official, *diffusers;
    } names[] = {
        { 21, "encoder.conv1.weight", "encoder.conv_in.weight" },
        { 21, "encoder.downsamples.8.time_conv.bias", "encoder.down_blocks.8.time_conv.bias" },
        { 21, "encoder.downsamples.3.shortcut.weight", "encoder.down_blocks.3.conv_shortcut.weight" },
        { 21, "encoder.middle.1.to_qkv.weight", "encoder.mid_block.attentions.0.to_qkv.weight" },
        { 21, "encoder.middle.2.residual.3.gamma", "encoder.mid_block.resnets.1.norm2.gamma" },
        { 21, "encoder.head.0.gamma", "encoder.norm_out.gamma" },
        { 21, "conv1.bias", "quant_conv.bias" },
        { 21, "conv2.weight", "post_quant_conv.weight" },
        { 21, "decoder.upsamples.3.resample.1.weight", "decoder.up_blocks.0.upsamplers.0.resample.1.weight" },
        { 21, "decoder.upsamples.4.shortcut.bias", "decoder.up_blocks.1.resnets.0.conv_shortcut.bias" },
        { 21, "decoder.upsamples.14.residual.6.weight", "decoder.up_blocks.3.resnets.2.conv2.weight" },
        { 21, "decoder.head.2.bias", "decoder.conv_out.bias" },
        { 22, "encoder.downsamples.0.downsamples.1.residual.0.gamma",
          "encoder.down_blocks.0.resnets.1.norm1.gamma" },
        { 22, "encoder.downsamples.2.downsamples.2.time_conv.weight",
          "encoder.down_blocks.2.downsampler.time_conv.weight" },
        { 22, "decoder.upsamples.1.upsamples.3.resample.1.bias",
          "decoder.up_blocks.1.upsampler.resample.1.bias" },
        { 22, "decoder.upsamples.3.upsamples.0.shortcut.weight",
          "decoder.up_blocks.3.resnets.0.conv_shortcut.weight" },
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct vae *v = open_vae(&f32, names[i].version);
        REQUIRE(v);
        const struct param *p = params_find(&v->table.params, names[i].official);
        if (!p)
            CHECK_FAIL_("there is no %s", names[i].official);
        else
            CHECK_STR(v->table.tensors[p - v->table.params.list].diffusers, names[i].diffusers);
        vae_close(v);
    }
}

static void all_names_load_the_same(void)
{
    struct vae_size size = { 5, 32, 32 };
    struct vae_layout l = whole(&size, 2);
    for (size_t i = 0; i < 2; i++) {
        struct vae *v = open_vae(&f32, versions[i]), *other = NULL;
        struct cairn_error err = { 0 };
        REQUIRE(v);
        size_t n;
        float *want = encode(v, size, &l, &n);
        char root[256], path[300];
        snprintf(root, sizeof(root), "%s", new_folder());
        snprintf(path, sizeof(path), "%s/vae", root);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/vae/diffusion_pytorch_model.safetensors", root);
        rename_tensors(file_of(versions[i]), path, "", &v->table, NULL, NULL);
        struct vae_info info;
        CHECK(!vae_read_info(root, &info, &err) && info.diffusers && info.version == versions[i]);
        if (vae_open(&other, &f32, root, true, false, &err))
            CHECK_FAIL_("%s", err.msg);
        REQUIRE(other);
        CHECK(vae_weight_bytes(other) < vae_weight_bytes(v));
        float *got = encode(other, size, &l, &n);
        CHECK(!memcmp(got, want, n * sizeof(*got)));
        free(got);
        vae_close(other);
        other = NULL;
        snprintf(path, sizeof(path), "%s/prefixed.safetensors", root);
        rename_tensors(file_of(versions[i]), path, "first_stage_model.", NULL, NULL, NULL);
        if (vae_open(&other, &f32, path, true, true, &err))
            CHECK_FAIL_("%s", err.msg);
        REQUIRE(other);
        got = encode(other, size, &l, &n);
        CHECK(!memcmp(got, want, n * sizeof(*got)));
        free(got);
        free(want);
        vae_close(other);
        vae_close(v);
    }
}

static void wrong_files_are_named(void)
{
    struct vae *v = NULL;
    struct cairn_error err = { 0 };
    char path[256], folder[128];
    snprintf(folder, sizeof(folder), "%s", new_folder());
    snprintf(path, sizeof(path), "%s/a.safetensors", folder);
    CHECK(vae_open(&v, &f32, path, true, true, &err));
    CHECK_INT(err.code, CAIRN_EIO);
    CHECK(vae_open(&v, &f32, folder, true, true, &err));
    CHECK_INT(err.code, CAIRN_EUSAGE);
    rename_tensors(file_of(21), path, "", NULL, "encoder.middle.0.residual.2.weight",
                   "encoder.middle.0.residual.2.wieght");
    CHECK(vae_open(&v, &f32, folder, true, true, &err));
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK(strstr(err.msg, "encoder.middle.0.residual.2.weight") && strstr(err.msg, "nearest"));
    rename_tensors(file_of(21), path, "", NULL, "decoder.head.2.bias", NULL);
    CHECK(vae_open(&v, &f32, path, true, true, &err) && strstr(err.msg, "decoder.head.2.bias"));
    CHECK(!vae_open(&v, &f32, path, true, false, &err)); /* the encoder is whole */
    struct vae_size size = { 1, 16, 16 };
    struct vae_layout l = whole(&size, 1);
    CHECK(vae_layout_bytes(v, false, &size, &l, &err) && err.code == CAIRN_EUSAGE);
    vae_close(v);
    v = NULL;
    rename_tensors(file_of(21), path, "", NULL, "encoder.conv1.weight", NULL);
    CHECK(vae_open(&v, &f32, path, true, true, &err));
    CHECK_INT(err.code, CAIRN_EFORMAT);
    /* Cut in the middle. */
    size_t n;
    FILE *in = fopen(file_of(21), "r"), *out = fopen(path, "w");
    char *bytes = malloc(300000);
    n = fread(bytes, 1, 300000, in);
    fwrite(bytes, 1, n, out);
    fclose(in);
    fclose(out);
    free(bytes);
    CHECK(vae_open(&v, &f32, path, true, true, &err));
    CHECK(!v);
}

static void all(void)
{
    /* Chunks of other sizes are matmuls of other sizes, for which another library may be the fastest, with other sums. */
    struct cairn_error err = { 0 };
    CHECK(!blas_force(f32.blas, "cpu", &err) && !blas_force(bf16.blas, "cpu", &err));
    RUN(chunks_make_no_difference);
    RUN(trailing_frames_are_dropped);
    RUN(tiles_are_near_the_whole);
    RUN(shares_add_up);
    RUN(plans_are_what_is_used);
    RUN(plans_fit_their_budget);
    RUN(bf16_is_computed_in_f16);
    RUN(large_sums_are_no_overflow);
    RUN(nan_is_named);
    RUN(constant_latents_are_refused);
    RUN(diffusers_names_are_right);
    RUN(all_names_load_the_same);
    RUN(wrong_files_are_named);
}

int main(int argc, char **argv)
{
    data = argc > 1 ? argv[1] : ".";
    return run_on_cpu(all);
}

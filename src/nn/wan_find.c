/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_find.h"
#include "nn/wan_names.h"
#include "os/info.h"
#include "os/path.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 64, NAMES_SAID = 4 };

/* What a path leads to. */
struct place {
    const char *one;        /* a model that nothing in the layout of folders calls an expert */
    const char *low, *high; /* experts by the layout of folders */
};

/* ---- a folder of files ---- */

struct names {
    char **name;
    size_t n;
};

static int natural(const void *a, const void *b)
{
    return str_compare_natural(*(char *const *)a, *(char *const *)b);
}

static bool has_name(const struct names *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->name[i], name))
            return true;
    return false;
}

/* Whether a name stands for a model: an index, a single file, or the first shard where there is no index. */
static bool is_candidate(const struct names *all, struct arena *a, const char *name, bool torch)
{
    unsigned number, of;
    size_t at;
    if (torch)
        return str_ends(name, ".pth") || str_ends(name, ".pt");
    if (str_ends(name, ".safetensors.index.json"))
        return true;
    if (!str_ends(name, ".safetensors"))
        return false;
    if (!st_is_shard(name, &number, &of, &at))
        return true;
    const char *index = arena_printf(a, "%.*s.safetensors.index.json", (int)at - 1, name);
    return number == 1 && !has_name(all, index);
}

static bool is_wan(const char *path)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct wan_names names;
    struct cairn_error ignored;
    return !source_open_model(&s, path, &ignored) && !wan_names_find(&s, &a, &names, &ignored);
}

static void list_candidates(const char *dir, const struct names *all, struct arena *a, struct names *out)
{
    for (int torch = 0; torch < 2 && !out->n; torch++)
        for (size_t i = 0; i < all->n && out->n < MOST_CANDIDATES; i++)
            if (is_candidate(all, a, all->name[i], torch))
                *ARENA_PUSH(a, out->name, out->n) = arena_printf(a, "%s/%s", dir, all->name[i]);
    /* Beside the model there may be a VAE, a text encoder or a LoRA. */
    for (size_t i = 0; out->n > 1 && i < out->n;) {
        if (is_wan(out->name[i]))
            i++;
        else
            memmove(&out->name[i], &out->name[i + 1], (--out->n - i) * sizeof(*out->name));
    }
}

static int refuse_many(const char *dir, const struct names *found, struct cairn_error *err)
{
    CLEANUP(str_release) struct str list = { 0 };
    for (size_t i = 0; i < found->n && i < NAMES_SAID; i++)
        str_addf(&list, "%s%s", i ? ", " : "", path_name(found->name[i]));
    cairn_fail(err, CAIRN_EUSAGE, "%s has %zu Wan models: %.300s%s", dir, found->n, list.s,
               found->n > NAMES_SAID ? ", ..." : "");
    return cairn_hint(err, "set model.path to one file, and model.high_noise_path to the other expert");
}

/* A folder that has the files itself. */
static int find_flat(const char *dir, struct arena *a, struct place *out, struct cairn_error *err)
{
    struct names all = { 0 }, found = { 0 };
    if (file_names(dir, a, &all.name, &all.n))
        return cairn_fail_errno(err, "read folder %s", dir);
    if (all.n)
        qsort(all.name, all.n, sizeof(*all.name), natural);
    list_candidates(dir, &all, a, &found);
    if (found.n == 1) {
        out->one = found.name[0];
        return 0;
    }
    for (size_t i = 0; found.n == 2 && i < found.n; i++) {
        enum wan_expert e = wan_expert_by_name(found.name[i]);
        *(e == WAN_EXPERT_HIGH ? &out->high : e == WAN_EXPERT_LOW ? &out->low : &out->one) = found.name[i];
    }
    if (out->low && out->high)
        return 0;
    if (found.n)
        return refuse_many(dir, &found, err);
    cairn_fail(err, CAIRN_EUSAGE, "%s has no Wan transformer", dir);
    return cairn_hint(
        err, "set it to a .safetensors file, or to a folder as diffusers or Wan's authors publish it");
}

/* ---- folders of folders ---- */

/* How folders name the experts. */
static const struct {
    const char *low, *high;
    bool single; /* `high` alone is the whole model */
} layouts[] = {
    { "low_noise_model", "high_noise_model", false },
    { "transformer_2", "transformer", true },
};

/* The model in a folder below; NULL stays where there is no such folder. */
static int find_below(const char *dir, const char *name, struct arena *a, const char **out,
                      struct cairn_error *err)
{
    const char *below = arena_printf(a, "%s/%s", dir, name);
    struct place place = { 0 };
    if (!os_is_folder(below))
        return 0;
    if (find_flat(below, a, &place, err))
        return -1;
    *out = place.one;
    return place.one ? 0 : cairn_fail(err, CAIRN_EUSAGE, "%s has two models, expected one", below);
}

static int find_in_folder(const char *dir, struct arena *a, struct place *out, struct cairn_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        struct place found = { 0 };
        if (find_below(dir, layouts[i].low, a, &found.low, err) ||
            find_below(dir, layouts[i].high, a, &found.high, err))
            return -1;
        if (layouts[i].single && !found.low)
            found = (struct place){ .one = found.high };
        if (found.one || found.low || found.high) {
            *out = found;
            return 0;
        }
    }
    return find_flat(dir, a, out, err);
}

static int find_path(const char *path, const char *key, struct arena *a, struct place *out,
                     struct cairn_error *err)
{
    struct os_info info;
    *out = (struct place){ 0 };
    if (os_info(path, &info)) {
        if (errno != ENOENT)
            return cairn_fail_errno(err, "open %s", path);
        cairn_fail(err, CAIRN_EIO, "%s does not exist", path);
        return cairn_hint(err, "%s takes a Wan transformer: a .safetensors or .pth file, or a folder", key);
    }
    if (info.kind != OS_KIND_FOLDER) {
        out->one = arena_strdup(a, path);
        return 0;
    }
    size_t n = strlen(path);
    while (n > 1 && path_separator(path + n - 1) == path + n - 1)
        n--;
    return find_in_folder(arena_strndup(a, path, n), a, out, err);
}

/* ---- experts ---- */

/* The experts' files, and one that may be either; `told`: by settings, not by names. */
struct experts {
    struct place place;
    bool told;
};

static bool is_given(const char *setting)
{
    return setting && *setting;
}

int wan_lacks_files(const struct wan_request *r, struct cairn_error *err)
{
    enum wan_task task;
    struct cairn_error ignored;
    cairn_fail(err, CAIRN_EUSAGE, "model.path is not set");
    if (is_given(r->task) && !wan_task_parse(r->task, &task, &ignored))
        return cairn_hint(err, "set it to %s", wan_task_info(task)->files);
    return cairn_hint(
        err, "set it to a Wan transformer: a file, or a folder as diffusers or Wan's authors publish "
             "it");
}

static int find_experts(const struct wan_request *r, struct arena *a, struct experts *out,
                        struct cairn_error *err)
{
    struct place high;
    *out = (struct experts){ 0 };
    if (!is_given(r->path) && !is_given(r->high_noise_path))
        return wan_lacks_files(r, err);
    if (is_given(r->path) && find_path(r->path, "model.path", a, &out->place, err))
        return -1;
    if (!is_given(r->high_noise_path))
        return 0;
    if (find_path(r->high_noise_path, "model.high_noise_path", a, &high, err))
        return -1;
    out->told = true;
    if (!high.high && !high.one) {
        cairn_fail(err, CAIRN_EUSAGE, "%s has only the low-noise expert", r->high_noise_path);
        return cairn_hint(err, "model.high_noise_path takes the high-noise expert");
    }
    out->place.high = high.high ? high.high : high.one;
    if (!out->place.low)
        out->place.low = out->place.one;
    out->place.one = NULL;
    return 0;
}

static void warn(struct wan_files *f, const char *text)
{
    *ARENA_PUSH(&f->arena, f->warnings, f->n_warnings) = arena_strdup(&f->arena, text);
}

static void add_base(struct wan_files *f, const char *path, enum wan_expert e, enum wan_known by)
{
    f->bases[f->n++] = (struct wan_base_file){ .path = path, .kind = { .expert = e, .expert_by = by } };
}

/* One file alone: model.expert says which it is, or its name. */
static int use_one(const struct wan_request *r, const char *path, const char *want, struct wan_files *f,
                   struct cairn_error *err)
{
    if (!strcmp(want, "both")) {
        cairn_fail(err, CAIRN_EUSAGE, "model.expert is both, but %s is one model", r->path);
        return cairn_hint(err,
                          "set model.high_noise_path to the high-noise expert, or model.path to a folder "
                          "with both");
    }
    bool low = !strcmp(want, "low"), high = !strcmp(want, "high");
    enum wan_expert named = wan_expert_by_name(path);
    if (low || high)
        add_base(f, path, low ? WAN_EXPERT_LOW : WAN_EXPERT_HIGH, WAN_BY_SETTING);
    else
        add_base(f, path, named, named ? WAN_BY_NAME : WAN_BY_NOTHING);
    return 0;
}

static int refuse_expert(const struct wan_request *r, const char *lacks, struct cairn_error *err)
{
    bool low = !strcmp(lacks, "low");
    cairn_fail(err, CAIRN_EUSAGE, "model.expert is %s, but there is no file of the %s-noise expert",
               r->expert, lacks);
    return cairn_hint(err, "set %s to it, or leave model.expert out",
                      low ? "model.path" : "model.high_noise_path");
}

static int choose(const struct wan_request *r, const struct experts *e, struct wan_files *f,
                  struct cairn_error *err)
{
    const char *want = is_given(r->expert) ? r->expert : "auto";
    const struct place *p = &e->place;
    enum wan_known by = e->told ? WAN_BY_SETTING : WAN_BY_NAME;
    if (p->one)
        return use_one(r, p->one, want, f, err);
    bool low = strcmp(want, "high") != 0, high = strcmp(want, "low") != 0, all = !strcmp(want, "auto");
    if ((low && !all && !p->low) || (high && !all && !p->high))
        return refuse_expert(r, low && !p->low ? "low" : "high", err);
    if (low && p->low)
        add_base(f, p->low, WAN_EXPERT_LOW, by);
    if (high && p->high)
        add_base(f, p->high, WAN_EXPERT_HIGH, by);
    return 0;
}

/* Files whose names say something else than what they are used for. */
static void compare_names(struct wan_files *f)
{
    enum wan_expert named[WAN_EXPERTS] = { 0 };
    CLEANUP(str_release) struct str text = { 0 };
    for (size_t i = 0; i < f->n; i++)
        named[i] = wan_expert_by_name(f->bases[i].path);
    if (f->n == 2 && named[0] == WAN_EXPERT_HIGH && named[1] == WAN_EXPERT_LOW) {
        str_addf(
            &text,
            "the experts look swapped: %s is used for low noise and %s for high noise, but their names say "
            "the opposite",
            f->bases[0].path, f->bases[1].path);
        warn(f, text.s);
        return;
    }
    for (size_t i = 0; i < f->n; i++) {
        const struct wan_base_file *b = &f->bases[i];
        if (!named[i] || !b->kind.expert || named[i] == b->kind.expert)
            continue;
        str_addf(&text, "%s is used as the %s, but its name says %s", b->path,
                 wan_expert_name(b->kind.expert), wan_expert_name(named[i]));
        warn(f, text.s);
    }
}

/* ---- what they are ---- */

static int check_same_shape(const struct wan_files *f, struct cairn_error *err)
{
    const struct wan_base_file *low = &f->bases[0], *high = &f->bases[1];
    if (f->n < 2 || !memcmp(&low->info.shape, &high->info.shape, sizeof(low->info.shape)))
        return 0;
    cairn_fail(err, CAIRN_EFORMAT,
               "%s and %s are not experts of one model: %zu and %zu blocks, hidden size %zu and %zu, %zu and "
               "%zu input channels",
               low->path, high->path, low->info.shape.layers, high->info.shape.layers, low->info.shape.width,
               high->info.shape.width, low->info.shape.in, high->info.shape.in);
    return cairn_hint(err, "model.path and model.high_noise_path take the two experts of the same model");
}

static int find_kinds(const struct wan_request *r, struct wan_files *f, struct cairn_error *err)
{
    for (size_t i = 0; i < f->n; i++) {
        struct wan_base_file *b = &f->bases[i];
        CLEANUP(str_release) struct str warning = { 0 };
        struct wan_evidence e = { .path = b->path,
                                  .info = &b->info,
                                  .task = r->task,
                                  .expert = b->kind.expert,
                                  .expert_by = b->kind.expert_by,
                                  .both = f->n > 1 };
        if (b->info.control) {
            cairn_fail(err, CAIRN_EUSAGE,
                       "%s is a Fun-Control model of Wan, which is not supported: it takes %zu channels",
                       b->path, b->info.shape.in);
            return cairn_hint(err, "T2V, I2V and TI2V models can be trained");
        }
        if (wan_kind_of(&e, &b->kind, &warning, err))
            return -1;
        if (warning.len)
            warn(f, warning.s);
    }
    return 0;
}

int wan_find(const struct wan_request *r, struct wan_files *out, struct cairn_error *err)
{
    struct experts experts;
    *out = (struct wan_files){ 0 };
    if (find_experts(r, &out->arena, &experts, err) || choose(r, &experts, out, err))
        return -1;
    for (size_t i = 0; i < out->n; i++)
        if (wan_file_read_info(out->bases[i].path, r->heads, &out->bases[i].info, err))
            return -1;
    compare_names(out);
    return check_same_shape(out, err) || find_kinds(r, out, err) ? -1 : 0;
}

static void warn_of_missing(struct wan_files *f, const char *path, const char *title)
{
    struct os_info info;
    if (is_given(path) && os_info(path, &info))
        warn(f, arena_printf(&f->arena, "%s does not exist; the plan is that of %s", path, title));
}

/* "low", "high" or "both": a file that is not there says it by its name. */
static const char *assumed_expert(const struct wan_request *r)
{
    if (is_given(r->expert) && strcmp(r->expert, "auto"))
        return r->expert;
    if (is_given(r->high_noise_path))
        return is_given(r->path) ? "both" : "high";
    enum wan_expert e = is_given(r->path) ? wan_expert_by_name(r->path) : WAN_EXPERT_NONE;
    return e == WAN_EXPERT_LOW ? "low" : e == WAN_EXPERT_HIGH ? "high" : "both";
}

int wan_assume(const struct wan_request *r, struct wan_files *out, struct cairn_error *err)
{
    enum wan_task task;
    *out = (struct wan_files){ 0 };
    if (wan_task_parse(r->task, &task, err))
        return -1;
    const struct wan_task_info *t = wan_task_info(task);
    const char *want = assumed_expert(r);
    bool fp8 = is_given(r->path) && strstr(r->path, "fp8");
    struct wan_base_file base = {
        .info = { .shape = t->shape, .dtype = fp8 ? DTYPE_F8_E4M3 : DTYPE_BF16, .files = 1 },
        .kind = { .task = task, .by = WAN_BY_SETTING, .expert_by = WAN_BY_SETTING },
    };
    if (t->boundary > 0)
        base.kind.expert = strcmp(want, "high") ? WAN_EXPERT_LOW : WAN_EXPERT_HIGH;
    out->bases[out->n++] = base;
    if (t->boundary > 0 && !strcmp(want, "both")) {
        base.kind.expert = WAN_EXPERT_HIGH;
        out->bases[out->n++] = base;
    }
    warn_of_missing(out, r->path, t->title);
    warn_of_missing(out, r->high_noise_path, t->title);
    return 0;
}

void wan_files_release(struct wan_files *f)
{
    arena_release(&f->arena);
    *f = (struct wan_files){ 0 };
}

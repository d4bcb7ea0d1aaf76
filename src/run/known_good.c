/* SPDX-License-Identifier: Apache-2.0 */
#include "run/known_good.h"

#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "os/fault.h"
#include "rules/fix_names.h"
#include "rules/trainers.h"
#include "run/ladder.h"
#include "run/state_dir.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 20, MOST_ENTRIES = 64 };

/* The fields of a key, in the file and in the struct. */
static const struct {
    const char *name;
    size_t at;
} fields[] = {
    { "machine", offsetof(struct known_good_key, machine) },
    { "trainer", offsetof(struct known_good_key, trainer) },
    { "torch", offsetof(struct known_good_key, torch) },
    { "rocm", offsetof(struct known_good_key, rocm) },
    { "kernel", offsetof(struct known_good_key, kernel) },
    { "gfx", offsetof(struct known_good_key, gfx) },
};

static const char *field(const struct known_good_key *k, size_t i)
{
    return *(const char *const *)((const char *)k + fields[i].at);
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

void known_good_key_for(const struct facts *f, const struct gpu_facts *gpu, const char *trainer,
                        struct arena *a, struct known_good_key *out)
{
    const struct torch_facts *t = facts_torch(f);
    const char *rocm = t && t->hip.s ? t->hip.s : f->n_rocms ? f->rocms[0].version.s : NULL;
    *out = (struct known_good_key){
        .machine = or_empty(root_read(&f->root, a, "/etc/machine-id", NULL)),
        .trainer = trainer,
        .torch = or_empty(t ? t->version.s : NULL),
        .rocm = or_empty(rocm),
        .kernel = or_empty(f->host.kernel.s),
        .gfx = or_empty(gpu ? gpu->gfx.s : NULL),
    };
}

/* ---- the file ---- */

static const char file_name[] = "known-good.json", lock_name[] = "known-good.lock";

/* *out is NULL if there is no file or it is damaged: cairn will find the fix again.  Fails if the file
 * cannot be read, since it must not be overwritten then. */
static int load(const struct own_dir *d, struct json **out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    CLEANUP(fd_close) int fd = -1;
    struct cairn_error ignored = { 0 };
    struct stat st;
    *out = NULL;
    if (own_file_open(d, file_name, OS_READ, &fd, err))
        return errno == ENOENT ? 0 : -1;
    if (fstat(fd, &st))
        return cairn_fail_errno(err, "stat %s", file_name);
    size_t size = st.st_size < MOST_BYTES ? (size_t)st.st_size : MOST_BYTES;
    text = malloc(size + 1);
    if (!text)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: out of memory", file_name);
    if (file_read_at(fd, file_name, text, size, 0, err))
        return -1;
    if (json_parse(text, size, out, &ignored))
        *out = NULL;
    return 0;
}

static bool same_owner(const struct json *e, const struct known_good_key *k)
{
    return str_eq(json_text(json_get(e, "machine")), k->machine) &&
           (!k->trainer || str_eq(json_text(json_get(e, "trainer")), k->trainer));
}

static bool holds(const struct json *e, const struct known_good_key *k)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (field(k, i) && !str_eq(json_text(json_get(e, fields[i].name)), field(k, i)))
            return false;
    return true;
}

/* The file is not trusted: only changes that a fix of cairn makes are used. */
static bool is_text(const char *s)
{
    for (; s && *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return false;
    return s;
}

static void read_entry(const struct json *e, struct arena *a, struct known_good *out)
{
    const struct json *set = json_get(e, "set"), *unset = json_get(e, "unset");
    *out = (struct known_good){
        .trainer = arena_strdup(a, or_empty(json_text(json_get(e, "trainer")))),
        .date = arena_strdup(a, or_empty(json_text(json_get(e, "date")))),
        .class_id = arena_strdup(a, or_empty(json_text(json_get(e, "class")))),
    };
    for (struct json_member m = json_first(set); m.key; m = json_next(set, m))
        if (fix_name_is_set(m.key) && is_text(json_text(m.value)))
            *ARENA_PUSH(a, out->set, out->n_set) =
                (struct plan_var){ .name = arena_strdup(a, m.key),
                                   .value = arena_strdup(a, json_text(m.value)) };
    for (size_t i = 0; i < json_length(unset); i++)
        if (json_text(json_at(unset, i)) && fix_name_is_unset(json_text(json_at(unset, i))))
            *ARENA_PUSH(a, out->unset, out->n_unset) = arena_strdup(a, json_text(json_at(unset, i)));
}

size_t known_good_list(const char *state, const struct known_good_key *key, struct arena *a,
                       struct known_good **out)
{
    CLEANUP(json_cleanup) struct json *root = NULL;
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    struct cairn_error ignored = { 0 };
    size_t n = 0;
    *out = NULL;
    if (own_dir_open(&d, PLACE_STATE, state, NULL, false, &ignored) || load(&d, &root, &ignored))
        return 0;
    const struct json *entries = json_get(root, "entries");
    for (size_t i = 0; i < json_length(entries); i++)
        if (holds(json_at(entries, i), key))
            read_entry(json_at(entries, i), a, ARENA_PUSH(a, *out, n));
    return n;
}

static void add_entry(struct json *list, const struct known_good_key *k, const struct known_good *g)
{
    struct json *e = json_add_object(list, NULL);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        json_add_text(e, fields[i].name, field(k, i));
    json_add_text(e, "date", g->date);
    json_add_text(e, "class", g->class_id);
    struct json *set = json_add_object(e, "set"), *unset = json_add_array(e, "unset");
    for (size_t i = 0; i < g->n_set; i++)
        json_add_text(set, g->set[i].name, g->set[i].value);
    for (size_t i = 0; i < g->n_unset; i++)
        json_add_text(unset, NULL, g->unset[i]);
}

static void copy_entry(struct json *list, const struct json *e, struct arena *a)
{
    struct known_good g;
    struct known_good_key k = { 0 };
    read_entry(e, a, &g);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        *(const char **)((char *)&k + fields[i].at) = or_empty(json_text(json_get(e, fields[i].name)));
    add_entry(list, &k, &g);
}

static int write_json(const struct own_dir *d, const struct json *root, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = json_to_string(root);
    return own_file_write(d, file_name, text, strlen(text), err);
}

/* The old entries without that of this machine and trainer, then the new one (or NULL). */
static int replace(const char *state, const struct known_good_key *key, const struct known_good *entry,
                   struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(fd_close) int lock = -1;
    if (own_dir_open(&d, PLACE_STATE, state, NULL, true, err) ||
        own_file_open(&d, lock_name, OS_READ | OS_WRITE | OS_CREATE, &lock, err))
        return -1;
    if (fault_hit() || os_lock(lock, true))
        return cairn_fail_errno(err, "lock %s/%s", state, lock_name);
    CLEANUP(json_cleanup) struct json *old = NULL, *new = json_new_object();
    if (load(&d, &old, err))
        return -1;
    const struct json *entries = json_get(old, "entries");
    json_add_int(new, "schema", 1);
    struct json *list = json_add_array(new, "entries");
    size_t n = json_length(entries), first = n > MOST_ENTRIES ? n - MOST_ENTRIES : 0;
    for (size_t i = first; i < n; i++)
        if (!same_owner(json_at(entries, i), key))
            copy_entry(list, json_at(entries, i), &a);
    if (entry)
        add_entry(list, key, entry);
    return write_json(&d, new, err);
}

int known_good_keep(const char *state, const struct known_good_key *key, const struct known_good *entry,
                    struct cairn_error *err)
{
    char today[16];
    time_t now = time(NULL);
    struct tm tm;
    struct known_good dated = *entry;
    strftime(today, sizeof(today), "%Y-%m-%d", gmtime_r(&now, &tm));
    dated.date = today;
    return replace(state, key, &dated, err);
}

int known_good_forget(const char *state, const struct known_good_key *key, struct cairn_error *err)
{
    return replace(state, key, NULL, err);
}

const char *known_good_text(const struct known_good *g, struct arena *a)
{
    const struct diagnose_fix same = {
        .set = g->set, .n_set = g->n_set, .unset = g->unset, .n_unset = g->n_unset, .action = DIAGNOSE_ACT_ENV
    };
    return ladder_describe(&same, a);
}

/* ---- in a plan ---- */

/* --with NAME=VALUE or --keep NAME */
static bool asked_for(const struct plan_options *o, const char *name)
{
    size_t n = strlen(name);
    for (const char *const *w = o->with; w && *w; w++)
        if (!strncmp(*w, name, n) && (*w)[n] == '=')
            return true;
    for (const char *const *k = o->keep; k && *k; k++)
        if (!strcmp(*k, name))
            return true;
    return false;
}

static void take_out(struct plan_var *vars, size_t *n, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (strcmp(vars[i].name, name))
            vars[kept++] = vars[i];
    *n = kept;
}

void known_good_apply(const struct known_good *g, const struct facts *f, const struct plan_options *o,
                      struct arena *a, struct plan *p)
{
    const char *why = arena_printf(a, "%s worked with it here on %s%s%s", g->trainer, g->date,
                                   *g->class_id ? ", after " : "", g->class_id);
    static const char source[] = "known-good.json of cairn run";
    for (size_t i = 0; i < g->n_set; i++) {
        const char *name = g->set[i].name;
        if (asked_for(o, name))
            continue;
        take_out(p->set, &p->n_set, name);
        take_out(p->keep, &p->n_keep, name);
        *ARENA_PUSH(a, p->set, p->n_set) =
            (struct plan_var){ .name = name, .value = g->set[i].value, .why = why, .source = source };
    }
    for (size_t i = 0; i < g->n_unset; i++) {
        const char *name = g->unset[i], *value = facts_env(f, name);
        if (asked_for(o, name))
            continue;
        take_out(p->set, &p->n_set, name);
        take_out(p->keep, &p->n_keep, name);
        if (value && !plan_find(p->unset, p->n_unset, name))
            *ARENA_PUSH(a, p->unset, p->n_unset) =
                (struct plan_var){ .name = name, .value = value, .why = why, .source = source };
    }
}

void known_good_add(const struct facts *f, const struct plan_options *po, struct arena *a, struct plan *p)
{
    struct cairn_error why = { 0 };
    const char *state;
    struct known_good_key key;
    struct known_good *found;
    const struct trainer *t = po->trainer ? trainer_find(po->trainer) : NULL;
    if (po->windows)
        return;
    if (state_dir(f->env, a, &state, &why)) {
        if (str_env(f->env, "HOME"))
            problems_add(&p->warnings, a, "not using the variables that worked before: %s", why.msg);
        return;
    }
    known_good_key_for(f, p->gpu, t ? t->name : NULL, a, &key);
    size_t n = known_good_list(state, &key, a, &found);
    for (size_t i = 0; i < n; i++)
        if (t)
            known_good_apply(&found[i], f, po, a, p);
        else
            problems_add(&p->warnings, a, "on %s %s worked here with: %s", found[i].date, found[i].trainer,
                         known_good_text(&found[i], a));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "planning.h"

#include "base/str.h"
#include "host/wheels.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *data_path(struct planning *p, const char *relative)
{
    const char *dir = getenv("CAIRN_TEST_DATA");
    return arena_printf(&p->arena, "%s/%s", dir ? dir : "tests/data", relative);
}

static int is_capture(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

size_t planning_captures(size_t (*each)(const char *capture, void *context), void *context)
{
    static const char *const folders[] = { "sysfs", "sysfs-synthetic" };
    size_t sum = 0, captures = 0;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        CLEANUP(planning_release) struct planning p = { 0 };
        struct dirent **list;
        int n = scandir(data_path(&p, folders[i]), &list, is_capture, alphasort);
        for (int k = 0; k < n; k++) {
            char where[512];
            snprintf(where, sizeof(where), "%s/%s", folders[i], list[k]->d_name);
            sum += each(where, context);
            captures++;
            free(list[k]);
        }
        if (n >= 0)
            free(list);
    }
    printf("# %zu trials on %zu captures\n", sum, captures);
    return sum;
}

bool planning_open(struct planning *p, const char *capture)
{
    struct cairn_error err = { 0 };
    *p = (struct planning){ .options.gpu = -1 };
    struct facts_options o = { .root = data_path(p, capture ? capture : "env"),
                               .env = p->env,
                               .parts = FACTS_HARDWARE };
    if (facts_read(&p->facts, &o, &err)) {
        printf("# %s\n", err.msg);
        return false;
    }
    p->facts.env = p->env;
    return true;
}

void planning_release(struct planning *p)
{
    arena_release(&p->arena);
    facts_release(&p->facts);
}

static void make_rocm(struct torch_facts *t, struct arena *a, const char *rocm)
{
    t->build = TORCH_ROCM;
    t->hip = (struct text){ arena_printf(a, "%s.43484", rocm), "test" };
    version_parse(rocm, &t->hip_parsed);
    wheels_targets(a, t->version.s, &t->compiled);
    t->aotriton_version = wheels_aotriton(a, t->parsed);
    t->site = "/home/user/venv/lib/python3.11/site-packages";
    t->hip_library = (struct text){ arena_printf(a, "%s/torch/lib/libamdhip64.so", t->site), "test" };
}

void planning_torch(struct planning *p, const char *version)
{
    struct torch_facts *t = &p->torch;
    *t = (struct torch_facts){ .site = "/home/user/venv/lib/python3.11/site-packages", .how = "test" };
    p->facts.torches = t;
    p->facts.n_torches = version != NULL;
    if (!version)
        return;
    t->version = (struct text){ version, "test" };
    version_parse(version, &t->parsed);
    const char *rocm = strstr(version, "+rocm");
    if (rocm)
        make_rocm(t, &p->arena, rocm + strlen("+rocm"));
    else
        t->build = strstr(version, "+cu") ? TORCH_CUDA : TORCH_CPU;
}

void planning_targets(struct planning *p, const char *targets)
{
    p->torch.compiled = (struct targets){ .from = "test" };
    for (const char *at = targets; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        targets_add(&p->torch.compiled, &p->arena, at, n);
        at += n;
    }
}

void planning_env(struct planning *p, const char *assignment)
{
    if (p->n_env + 1 < MOST_ENV)
        p->env[p->n_env++] = assignment;
}

bool planning_env_file(struct planning *p, const char *name)
{
    char line[512];
    FILE *f = fopen(data_path(p, arena_printf(&p->arena, "env/%s", name)), "re");
    if (!f)
        return false;
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strchr(line, '='))
            planning_env(p, arena_strdup(&p->arena, line));
    }
    fclose(f);
    return true;
}

int planning_run(struct planning *p, struct cairn_error *err)
{
    p->plan = (struct plan){ 0 };
    return plan_build(&p->facts, &p->options, &p->arena, &p->plan, err);
}

const char *planning_set(const struct planning *p, const char *name)
{
    const struct plan_var *v = plan_find(p->plan.set, p->plan.n_set, name);
    return v ? v->value : NULL;
}

const char *planning_unset(const struct planning *p, const char *name)
{
    const struct plan_var *v = plan_find(p->plan.unset, p->plan.n_unset, name);
    return v ? v->why : NULL;
}

const char *planning_keep(const struct planning *p, const char *name)
{
    const struct plan_var *v = plan_find(p->plan.keep, p->plan.n_keep, name);
    return v ? v->why : NULL;
}

bool planning_warns(const struct planning *p, const char *part)
{
    for (size_t i = 0; i < p->plan.warnings.n; i++)
        if (strstr(p->plan.warnings.text[i], part))
            return true;
    return false;
}

/* SPDX-License-Identifier: Apache-2.0
 * Machines made by hand for the tests of the checks: healthy ones, in which a test spoils one thing.
 *
 * Everything is inside the struct or in its arena; machine_release frees it.  A machine must not be moved. */
#ifndef CAIRN_TESTS_MACHINE_H
#define CAIRN_TESTS_MACHINE_H

#include "rules/checks.h"

struct machine {
    struct arena arena;
    struct facts facts;
    struct plan plan;
    struct gpu_facts gpus[3];
    struct gpu_process processes[2];
    struct torch_facts torches[3];
    struct rocm_facts rocms[3];
    struct hip_runtime runtimes[1];
    struct disk_facts disks[2];
    struct module_param params[8];
    const char *env[16];
    struct plan_var set[8], unset[8], keep[16];
    const struct gpu_facts *visible[3];
    const char *warnings[2], *broken[2];
};

void machine_bare(struct machine *m); /* no GPU, no PyTorch; Debian */
void machine_card(struct machine *m); /* a discrete gfx1100 with a matching wheel; Debian */
void machine_halo(
    struct machine *m); /* an integrated gfx1151, 128 GB, kernel 7.0, a matching wheel; Fedora */
void machine_both(struct machine *m);  /* a gfx1100 and an integrated gfx1036, which the environment hides */
void machine_blank(struct machine *m); /* a captured gfx1151 of which nothing else is known */
void machine_release(struct machine *m);

struct num num_of(int64_t v);
struct text text_of(const char *s);
struct targets targets_of(struct machine *m, const char *names); /* separated by spaces */
void machine_env(struct machine *m, const char *assignment);     /* which the plan keeps */
void machine_param(struct machine *m, const char *module, const char *name, const char *value);
void machine_set(struct machine *m, const char *name, const char *value);
void machine_unset(struct machine *m, const char *name, const char *value);
void machine_fatal(struct machine *m, const char *name,
                   const char *value);          /* the same, and nothing works with it */
void machine_show(struct machine *m, size_t n); /* the first n GPUs */
/* Sets the version and all that is parsed from it: "2.9.1+rocm6.4". */
void machine_torch(struct machine *m, const char *version);
void machine_kernel(struct machine *m, const char *version);

/* A case: on this machine, spoiled like this, the check says so. */
struct check_case {
    const char *id;
    void (*make)(struct machine *m);
    void (*spoil)(struct machine *m); /* NULL: as it is */
    enum check_status want;
    const char *text; /* somewhere in fact, why or remedy; NULL: anything */
};
/* Both end with a row whose id is NULL. */
extern const struct check_case hardware_cases[];
extern const struct check_case software_cases[];

#define SPOIL(name) static void name(struct machine *m)

#endif

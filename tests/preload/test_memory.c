/* SPDX-License-Identifier: Apache-2.0
 * What the library to preload tells of memory, and refuses, where GPU and host share it. */
#include "trial.h"

/* Less than nothing: the kernel does not say. */
static char *meminfo(long total_mib, long available_mib)
{
    char *path = text("%s/meminfo", place);
    FILE *f = fopen(path, "w");
    CHECK(f);
    if (f) {
        fprintf(f, "MemTotal:       %ld kB\nMemFree:        1 kB\n", total_mib << 10);
        if (available_mib >= 0)
            fprintf(f, "MemAvailable:   %ld kB\n", available_mib << 10);
        fclose(f);
    }
    char *variable = text("CAIRN_PRELOAD_MEMINFO=%s", path);
    free(path);
    return variable;
}

static void refuses_what_would_starve_the_host(void)
{
    /* A fifth of 1000 MiB stays. */
    struct outcome o = TRY("allocate", "record,guard", .budget = true, .more = meminfo(1000, 239));
    CHECK_STR(o.out, "2 2 2 0 last 2 nowhere\n");
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.refused, 3);
    CHECK_INT(r->counts.refused_bytes, 120 << 20);
    CHECK_INT(r->call[1].code, 2);
    CHECK_INT(r->call[1].kind, RECORD_REFUSED);
    o = TRY("allocate", "record,guard", .budget = true, .more = meminfo(1000, 241));
    CHECK_STR(o.out, "0 0 0 0 last 0\n");
    r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 4); /* one of them calls another one itself */
    o = TRY("allocate", "guard", .budget = true,
            .more = meminfo(200 << 10, (16 << 10) + 39)); /* 16 GiB at most */
    CHECK_STR(o.out, "2 2 2 0 last 2 nowhere\n");
    o = TRY("allocate", "guard", .budget = true, .more = "CAIRN_PRELOAD_MEMINFO=/nonexistent");
    CHECK_STR(o.out, "0 0 0 0 last 0\n");
    o = TRY("allocate", "guard", .budget = true, .more = meminfo(1000, -1));
    CHECK_STR(o.out, "0 0 0 0 last 0\n");
    o = TRY("allocate", "guard", .budget = true, .more = meminfo(1000, 0)); /* nothing is left */
    CHECK_STR(o.out, "2 2 2 0 last 2 nowhere\n");
    o = TRY("allocate", "guard", .more = meminfo(1000, 239)); /* a card with memory of its own */
    CHECK_STR(o.out, "0 0 0 0 last 0\n");
    o = TRY("allocate", "record", .budget = true, .more = meminfo(1000, 239));
    CHECK_STR(o.out, "0 0 0 0 last 0\n");
    o = TRY("allocate", "record,guard", .budget = true,
            .fake = "memory=50000000"); /* the runtime's own refusal */
    CHECK_STR(o.out, "0 2 2 0 last 2\n");
    r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->call[2].code, 2);
    CHECK_INT(r->call[2].kind, 0);
}

static void tells_the_truth_about_memory(void)
{
    struct outcome bare = TRY("figures", NULL);
    CHECK_STR(bare.out, "122880 63488 122880 63488 63488 63488 5a 5a 5a 5a\n");
    char *env = meminfo(100000, 90000);
    struct outcome o = TRY("figures", "memory", .budget = true);
    CHECK_HAS(o.out, " 1024 1024 1024 1024 1024 5a 5a 5a 5a");
    CHECK_INT(atoi(o.out), 1024 - 64); /* what is taken counts */
    o = TRY("figures", "memory", .budget = true, .more = meminfo(1000, -1));
    CHECK_INT(atoi(o.out), 1024 - 64); /* the host does not say */
    o = TRY("figures", "memory", .budget = true, .more = meminfo(1000, 0));
    CHECK_HAS(o.out, "0 1024 0 1024");
    free(meminfo(100000, 90000));
    o = TRY("figures", "memory", .more = env); /* nobody told the budget */
    CHECK_STR(o.out, bare.out);
    o = TRY("figures", "record", .budget = true);
    CHECK_STR(o.out, bare.out);
    free(env);
}

/* A fifth of 1000 MiB stays. */
static void figures_are_of_this_moment(void)
{
    char *env = meminfo(1000, 300);
    struct outcome o = TRY("moment", "memory,guard", .budget = true, .more = env);
    CHECK_STR(o.out, "100 50 60 70 child 80 2 0\n");
    free(env);
}

static void what_others_were_allowed_counts(void)
{
    char *env = meminfo(1000, 300);
    struct outcome o = TRY("at-once", "guard", .budget = true, .more = env, .fake = "spends=1,late=300000");
    CHECK_STR(o.out, "2\n");
    free(env);
}

static void what_others_were_allowed_counts_once(void)
{
    char *env = meminfo(1000, 330);
    struct outcome o = TRY("in-turn", "guard", .budget = true, .more = env, .fake = "spends=1,late=300000");
    CHECK_STR(o.out, "0 2\n");
    free(env);
    env = meminfo(1000, 300);
    o = TRY("cancelled-take", "guard", .budget = true, .more = env, .fake = "late=300000");
    CHECK_STR(o.out, "0\n");
    free(env);
}

/* A fifth of 1000 MiB stays; what is in a pool is not asked of the host again. */
static void a_pool_may_give_what_it_has(void)
{
    static const char *const words[] = { "pool", "own-pool" };
    for (size_t i = 0; i < 2; i++) {
        char *env = meminfo(1000, 250);
        CHECK_STR(TRY(words[i], NULL, .more = env, .fake = "spends=1").out, "0 0 0 0 0 last 0\n");
        free(meminfo(1000, 250));
        struct outcome o = TRY(words[i], "record,guard", .budget = true, .more = env, .fake = "spends=1");
        CHECK_STR(o.out, "0 0 0 0 2 last 2\n");
        struct record *r = record_of(o.pid);
        REQUIRE(r);
        CHECK_INT(r->counts.refused, 1);
        free(env);
    }
    char *env = meminfo(1000, 0);
    CHECK_STR(TRY("graph-pool", "guard", .budget = true, .more = env).out, "0 0 2 last 2\n");
    free(env);
}

static void every_way_to_take_memory_counts(void)
{
    char *env = meminfo(1000, 239);
    CHECK_STR(TRY("allocate-more", "memory", .budget = true).out, "0 0 0 last 0 904\n");
    CHECK_STR(TRY("allocate-more", "guard", .budget = true, .more = env).out,
              "2 2 2 last 2 nowhere 122880\n");
    CHECK_STR(TRY("handles", "memory", .budget = true).out, "960 960 1024 960 1024\n");
    free(env);
}

static void counts_right_when_there_are_many(void)
{
    char *env = meminfo(100000, 90000);
    struct outcome o = TRY("crowd", "memory,stage", .budget = true, .more = env);
    CHECK_STR(o.out, "811 1024 0 pinned 0\n");
    /* Not all is known meanwhile. */
    o = TRY("crowd", "memory,stage", .budget = true, .more = env, .fake = "free=500");
    CHECK_STR(o.out, "500 1024 0 pinned 0\n");
    free(env);
}

static void knows_what_is_given_back(void)
{
    char *env = meminfo(100000, 90000);
    CHECK_STR(TRY("kept", "memory", .budget = true, .more = env, .fake = "nofree=1").out, "1 960 0 1024\n");
    CHECK_STR(TRY("freed-otherwise", "memory,stage", .budget = true, .more = env).out,
              "0 0 1 pinned 0 0 1024\n");
    free(env);
}

int main(int argc, char **argv)
{
    if (!trial_begin(argc, argv))
        return 2;
    RUN(refuses_what_would_starve_the_host);
    RUN(tells_the_truth_about_memory);
    RUN(figures_are_of_this_moment);
    RUN(what_others_were_allowed_counts);
    RUN(what_others_were_allowed_counts_once);
    RUN(a_pool_may_give_what_it_has);
    RUN(every_way_to_take_memory_counts);
    RUN(knows_what_is_given_back);
    RUN(counts_right_when_there_are_many);
    return trial_done();
}

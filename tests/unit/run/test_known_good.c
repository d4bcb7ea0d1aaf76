/* SPDX-License-Identifier: Apache-2.0 */
#include "run/known_good.h"

#include "check.h"
#include "scratch.h"
#include <sys/wait.h>

static const struct known_good_key key = { "machine-1", "musubi-tuner", "2.9.1", "6.4", "6.17", "gfx1031" };
static struct plan_var vars[] = { { .name = "HSA_OVERRIDE_GFX_VERSION", .value = "10.3.0" } };
static const char *names[] = { "PYTORCH_NO_HIP_MEMORY_CACHING" };
static const struct known_good entry = {
    .class_id = "no-kernel-image", .set = vars, .n_set = 1, .unset = names, .n_unset = 1
};

static size_t count(const struct known_good_key *k)
{
    struct arena a = { 0 };
    struct known_good *found;
    size_t n = known_good_list(scratch("state"), k, &a, &found);
    arena_release(&a);
    return n;
}

static void keeps_and_finds(void)
{
    struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct known_good *found;
    CHECK_INT(count(&key), 0);
    REQUIRE(!known_good_keep(scratch("state"), &key, &entry, &err));
    REQUIRE(!known_good_keep(scratch("state"), &key, &entry, &err)); /* replaces its own */
    REQUIRE(known_good_list(scratch("state"), &key, &a, &found) == 1);
    CHECK_STR(found->trainer, "musubi-tuner");
    CHECK_STR(found->class_id, "no-kernel-image");
    CHECK_INT(strlen(found->date), 10);
    CHECK_STR(known_good_text(found, &a),
              "HSA_OVERRIDE_GFX_VERSION=10.3.0, without PYTORCH_NO_HIP_MEMORY_CACHING");
    arena_release(&a);
}

static void expires_with_what_it_was_found_with(void)
{
    struct known_good_key other = key;
    other.torch = "2.10.0";
    CHECK_INT(count(&other), 0);
    other = key;
    other.rocm = "7.0";
    CHECK_INT(count(&other), 0);
    other = key;
    other.kernel = "6.18";
    CHECK_INT(count(&other), 0);
    other = key;
    other.gfx = "gfx1100";
    CHECK_INT(count(&other), 0);
    other = key;
    other.machine = "machine-2";
    CHECK_INT(count(&other), 0);
    other = key;
    other.trainer = NULL;
    CHECK_INT(count(&other), 1);
    CHECK_INT(count(&key), 1);
}

/* The file is anybody's text: no name that finds code, none that a shell would obey, none that no fix has. */
static void takes_only_what_a_fix_would_do(void)
{
    struct arena a = { 0 };
    struct known_good *found;
    scratch_file(
        "planted/known-good.json",
        "{\"schema\":1,\"entries\":[{\"machine\":\"m\",\"trainer\":\"t\",\"torch\":\"\",\"rocm\":\"\","
        "\"kernel\":\"\",\"gfx\":\"\",\"set\":{\"LD_PRELOAD\":\"/x.so\",\"PATH\":\"/x\",\"PYTHONPATH\":\"/x\","
        "\"PYTHONFAULTHANDLER\":\"1\",\"X=1;id;Y\":\"v\",\"BASH_ENV\":\"/x\",\"HSA_ENABLE_SDMA\":\"0\","
        "\"MIOPEN_FIND_MODE\":\"FAST\\u000aX\",\"ROCR_VISIBLE_DEVICES\":\"0\"},"
        "\"unset\":[\"HOME\",\"$(id)\",\"LD_LIBRARY_PATH\",\"PYTORCH_CUDA_ALLOC_CONF\"]}]}");
    const struct known_good_key k = { "m", "t", "", "", "", "" };
    REQUIRE(known_good_list(scratch("planted"), &k, &a, &found) == 1);
    CHECK_INT(found->n_set, 2);
    CHECK(plan_find(found->set, found->n_set, "HSA_ENABLE_SDMA") != NULL);
    CHECK(plan_find(found->set, found->n_set, "ROCR_VISIBLE_DEVICES") != NULL);
    REQUIRE(found->n_unset == 2);
    CHECK_STR(found->unset[0], "LD_LIBRARY_PATH");
    CHECK_STR(found->unset[1], "PYTORCH_CUDA_ALLOC_CONF");
    arena_release(&a);
}

static void a_file_of_another_is_not_read(void)
{
    struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct known_good *found;
    if (geteuid())
        SKIP("only root can give a file away");
    REQUIRE(!known_good_keep(scratch("theirs"), &key, &entry, &err));
    CHECK_INT(known_good_list(scratch("theirs"), &key, &a, &found), 1);
    CHECK(!chown(scratch("theirs/known-good.json"), 65534, 65534));
    CHECK_INT(known_good_list(scratch("theirs"), &key, &a, &found), 0);
    CHECK(known_good_keep(scratch("theirs"), &key, &entry, &err) == -1);
    CHECK(!chown(scratch("theirs/known-good.json"), 0, 0) && !chown(scratch("theirs"), 65534, 65534));
    CHECK_INT(known_good_list(scratch("theirs"), &key, &a, &found), 0);
    CHECK(known_good_keep(scratch("theirs"), &key, &entry, &err) == -1);
    arena_release(&a);
}

static void forgets(void)
{
    struct cairn_error err = { 0 };
    struct known_good_key other = key;
    other.trainer = "sd-scripts";
    CHECK(!known_good_keep(scratch("state"), &other, &entry, &err));
    CHECK(!known_good_forget(scratch("state"), &key, &err));
    CHECK_INT(count(&key), 0);
    CHECK_INT(count(&other), 1);
}

static void a_damaged_file_is_an_empty_one(void)
{
    struct cairn_error err = { 0 };
    scratch_file("state/known-good.json", "{\"entries\":[{\"machine\":7},");
    CHECK_INT(count(&key), 0);
    scratch_file("state/known-good.json", "{\"entries\":[7,{\"machine\":\"machine-1\"},{\"set\":[1]}]}");
    CHECK_INT(count(&key), 0);
    CHECK(!known_good_keep(scratch("state"), &key, &entry, &err));
    CHECK_INT(count(&key), 1);
}

static void writers_do_not_lose_each_other(void)
{
    enum { WRITERS = 8 };
    struct known_good_key mine = key;
    char name[32];
    for (int i = 0; i < WRITERS; i++) {
        if (fork())
            continue;
        struct cairn_error err = { 0 };
        snprintf(name, sizeof(name), "trainer-%d", i);
        mine.trainer = name;
        _exit(known_good_keep(scratch("state"), &mine, &entry, &err) != 0);
    }
    int status, failed = 0;
    for (int i = 0; i < WRITERS; i++)
        failed += wait(&status) < 0 || status != 0;
    CHECK_INT(failed, 0);
    for (int i = 0; i < WRITERS; i++) {
        snprintf(name, sizeof(name), "trainer-%d", i);
        mine.trainer = name;
        CHECK_INT(count(&mine), 1);
    }
}

static void becomes_part_of_a_plan(void)
{
    static const char *const env[] = { "PYTORCH_NO_HIP_MEMORY_CACHING=1", NULL };
    static const char *const with[] = { "HSA_OVERRIDE_GFX_VERSION=11.0.0", NULL };
    struct arena a = { 0 };
    struct facts f = { .env = env };
    struct plan p = { 0 };
    struct plan_options o = { .gpu = -1 };
    struct known_good g = entry;
    g.trainer = "musubi-tuner";
    g.date = "2026-11-15";
    *ARENA_PUSH(&a, p.set, p.n_set) =
        (struct plan_var){ .name = "HSA_OVERRIDE_GFX_VERSION", .value = "10.3.1" };
    *ARENA_PUSH(&a, p.keep, p.n_keep) =
        (struct plan_var){ .name = "PYTORCH_NO_HIP_MEMORY_CACHING", .value = "1" };
    known_good_apply(&g, &f, &o, &a, &p);
    CHECK_INT(p.n_set, 1);
    CHECK_STR(p.set[0].value, "10.3.0");
    CHECK_HAS(p.set[0].why, "2026-11-15");
    CHECK_INT(p.n_keep, 0);
    CHECK_INT(p.n_unset, 1);
    o.with = with;
    p.set[0].value = "11.0.0";
    known_good_apply(&g, &f, &o, &a, &p);
    CHECK_STR(p.set[0].value, "11.0.0");
    arena_release(&a);
}

int main(void)
{
    RUN(keeps_and_finds);
    RUN(expires_with_what_it_was_found_with);
    RUN(takes_only_what_a_fix_would_do);
    RUN(a_file_of_another_is_not_read);
    RUN(forgets);
    RUN(a_damaged_file_is_an_empty_one);
    RUN(writers_do_not_lose_each_other);
    RUN(becomes_part_of_a_plan);
    return check_done();
}

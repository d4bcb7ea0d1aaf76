/* SPDX-License-Identifier: Apache-2.0 */
#include "run/outputs.h"

#include "check.h"
#include "scratch.h"
#include <fcntl.h>

/* One F32 tensor of four values. */
static void make_file(const char *name, const float *values)
{
    static const char header[] =
        "{\"latents_1x2x2_float32\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
    uint64_t n = sizeof(header) - 1;
    const char *path = scratch_file(name, "");
    FILE *f = fopen(path, "we");
    fwrite(&n, 8, 1, f);
    fwrite(header, 1, n, f);
    fwrite(values, 4, 4, f);
    fclose(f);
}

static const float good[] = { 0.5f, -1.25f, 0.125f, 2.0f }, zero[4] = { 0 };

static struct outputs check(const char *command, time_t since, bool all, struct arena *a)
{
    struct outputs o;
    const struct outputs_options oo = { .argv = scratch_command(command),
                                        .since = { .tv_sec = since },
                                        .all = all };
    outputs_check(&oo, a, &o);
    return o;
}

static void finds_caches_without_numbers(void)
{
    struct arena a = { 0 };
    make_file("work/cache/a_wan.safetensors", good);
    make_file("work/cache/b_wan.safetensors", zero);
    make_file("work/models/c.safetensors", zero);
    REQUIRE(!chdir(scratch("work")));
    struct outputs o = check("t", 0, false, &a);
    CHECK_INT(o.n_files, 2);
    REQUIRE(o.n_damaged == 1);
    CHECK_HAS(o.damaged[0].path, "/cache/b_wan.safetensors");
    CHECK_STR(o.damaged[0].verdict, "all-zero");
    o = check("t", 0, true, &a);
    CHECK_INT(o.n_files, 3);
    arena_release(&a);
}

static bool stop_at_once(void *context)
{
    ++*(int *)context;
    return true;
}

/* A file that is too large to be read by the way, and a user who does not wait. */
static void does_not_take_for_ever(void)
{
    struct arena a = { 0 };
    struct outputs o;
    int asked = 0;
    make_file("large/cache/a.safetensors", good);
    make_file("large/cache/b.safetensors", good);
    REQUIRE(!truncate(scratch("large/cache/b.safetensors"), (off_t)outputs_most_bytes + 1));
    REQUIRE(!chdir(scratch("large")));
    o = check("t", 0, false, &a);
    CHECK_INT(o.n_files, 1);
    CHECK_INT(o.n_left, 1);
    CHECK_INT(o.n_damaged, 0);
    const struct outputs_options stopped = {
        .argv = scratch_command("t"), .all = true, .stopped = stop_at_once, .context = &asked
    };
    outputs_check(&stopped, &a, &o);
    CHECK_INT(o.n_files, 0);
    CHECK_INT(o.n_left, 2);
    CHECK_INT(o.n_damaged, 0);
    CHECK(asked > 0);
    REQUIRE(!chdir(scratch("work")));
    arena_release(&a);
}

static void looks_where_the_command_says(void)
{
    struct arena a = { 0 };
    char command[512];
    make_file("elsewhere/lora.safetensors", good);
    snprintf(command, sizeof(command), "t --output_dir %s", scratch("elsewhere"));
    REQUIRE(!chdir(scratch("work/models")));
    CHECK_INT(check(command, 0, true, &a).n_files, 2);
    CHECK_INT(check(command, 0, false, &a).n_files, 0);
    arena_release(&a);
}

static void looks_where_the_job_s_file_says(void)
{
    struct arena a = { 0 };
    char text[1024], command[512];
    make_file("media/kept/x.safetensors", zero);
    make_file("media/_latent_cache/y.safetensors", zero);
    make_file("media/lora.safetensors", good);
    mkdir(scratch("empty"), 0700);
    REQUIRE(!chdir(scratch("empty")));
    snprintf(text, sizeof(text), "[[datasets]]\nvideo_directory = '/none'\ncache_directory = '%s'\n",
             scratch("media/kept"));
    snprintf(command, sizeof(command), "t --dataset_config %s", scratch_file("set.toml", text));
    CHECK_INT(check(command, 0, false, &a).n_damaged, 1);
    snprintf(text, sizeof(text),
             "job: extension\nconfig:\n  process:\n    - datasets:\n        - folder_path: %s\n",
             scratch("media"));
    snprintf(command, sizeof(command), "python run.py %s", scratch_file("job.yaml", text));
    struct outputs o = check(command, 0, false, &a);
    REQUIRE(o.n_files == 1 && o.n_damaged == 1);
    CHECK_HAS(o.damaged[0].path, "_latent_cache/y.safetensors");
    arena_release(&a);
}

static void knows_caches_by_their_names(void)
{
    struct arena a = { 0 };
    make_file("plain/clip_00000-025_0832x0480_wan.safetensors", zero);
    make_file("plain/still_0832x0480_fk.safetensors", zero);
    make_file("plain/still_wan_te.safetensors", zero);
    make_file("plain/model_832x480_fk.safetensors", zero);
    make_file("plain/0832x0480_fk.safetensors", zero);
    make_file("plain/lora.safetensors", zero);
    make_file("plain/_.safetensors", zero);
    REQUIRE(!chdir(scratch("plain")));
    CHECK_INT(check("t", 0, false, &a).n_files, 3);
    arena_release(&a);
}

static void old_files_are_not_its_work(void)
{
    struct arena a = { 0 };
    REQUIRE(!chdir(scratch("work")));
    CHECK_INT(check("t", time(NULL) + 1000, true, &a).n_files, 0);
    arena_release(&a);
}

static void does_not_follow_links(void)
{
    struct arena a = { 0 };
    make_file("outside/cache/x.safetensors", zero);
    mkdir(scratch("inside"), 0700);
    REQUIRE(!symlink(scratch("outside"), scratch("inside/link")));
    REQUIRE(!symlink(scratch("outside/cache/x.safetensors"), scratch("inside/y.safetensors")));
    REQUIRE(!chdir(scratch("inside")));
    CHECK_INT(check("t", 0, true, &a).n_files, 0);
    arena_release(&a);
}

static void a_broken_file_is_damaged(void)
{
    struct arena a = { 0 };
    scratch_file("broken/cut.safetensors", "nonsense");
    REQUIRE(!chdir(scratch("broken")));
    struct outputs o = check("t", 0, true, &a);
    CHECK_INT(o.n_damaged, 1);
    arena_release(&a);
}

int main(void)
{
    RUN(finds_caches_without_numbers);
    RUN(does_not_take_for_ever);
    RUN(looks_where_the_command_says);
    RUN(looks_where_the_job_s_file_says);
    RUN(knows_caches_by_their_names);
    RUN(old_files_are_not_its_work);
    RUN(does_not_follow_links);
    RUN(a_broken_file_is_damaged);
    return check_done();
}

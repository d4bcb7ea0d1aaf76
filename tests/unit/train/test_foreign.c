/* SPDX-License-Identifier: Apache-2.0 */
#include "train/foreign.h"

#include "train/task_wan.h"
#include "check.h"

static struct arena arena;
static struct cairn_error err;

static struct foreign_job small_job(void)
{
    static const char *const prompts[] = { "[trigger], a \"cat\"", "- two" };
    struct foreign_job j = { .program = "ai-toolkit", .file = "job.yaml" };
    foreign_add(&j, &arena, "train.lr", "2e-4", "job.yaml:9:5", "train.lr");
    foreign_add(&j, &arena, "train.lr", "1e-4", "job.yaml:10:5", "train.unet_lr");
    foreign_add(&j, &arena, "model.task", "t2v-A14B", "job.yaml:3:1", "model.arch");
    foreign_add(&j, &arena, "sample.negative", "[bad]: #1", "job.yaml:12:5", "sample.neg");
    foreign_add_list(&j, &arena, "sample.prompts", prompts, 2, "job.yaml:13:5", "sample.prompts");
    foreign_add(&j, &arena, "train.eps", "1e-6", NULL, NULL);
    foreign_add(&j, &arena, "save.dtype", "f16", "job.yaml:15:5", "save.dtype");
    foreign_add(&j, &arena, "model.kind", "wan", NULL, NULL);
    foreign_note(&j, &arena, "ignored: %s", "logging");
    return j;
}

static void check_values(const struct job_config *c)
{
    CHECK_INT(config_kinds[c->model.kind][0], 'w');
    CHECK(c->train.lr == 1e-4 && c->train.eps == 1e-6);
    CHECK_STR(wan_keys(c)->model.task, "t2v-A14B");
    CHECK_STR(wan_keys(c)->sample.negative, "[bad]: #1");
    CHECK_INT(wan_keys(c)->sample.prompts.n, 2);
    CHECK_STR(wan_keys(c)->sample.prompts.item[0], "[trigger], a \"cat\"");
    CHECK_INT(wan_keys(c)->save.dtype, WAN_SAVE_F16);
}

static void keys_are_applied_and_the_kind_first(void)
{
    struct foreign_job j = small_job();
    struct job_config c;
    CHECK_INT(j.n_keys, 7);
    config_init(&c, &arena);
    CHECK(!foreign_apply(&c, &j, &err));
    check_values(&c);
    CHECK(strstr(config_place(&c, "train.lr"), "job.yaml:10:5"));
    CHECK_STR(c.file, "job.yaml");
}

static void a_written_file_reads_as_the_same_job(void)
{
    struct foreign_job j = small_job();
    CLEANUP(str_release) struct str yaml = { 0 };
    struct job_config c;
    foreign_write(&j, &yaml);
    config_init(&c, &arena);
    CHECK(!config_read_text(&c, "converted.yaml", yaml.s, yaml.len, &err));
    check_values(&c);
    CHECK(strstr(yaml.s, "train.unet_lr"));
}

static void an_error_names_the_place_and_the_foreign_key(void)
{
    struct foreign_job j = { .program = "ai-toolkit" };
    struct job_config c;
    foreign_add(&j, &arena, "train.steps", "many", "job.yaml:9:5", "train.max_steps");
    config_init(&c, &arena);
    CHECK(foreign_apply(&c, &j, &err));
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK(strstr(err.msg, "job.yaml:9:5") && strstr(err.msg, "train.max_steps"));
}

int main(void)
{
    RUN(keys_are_applied_and_the_kind_first);
    RUN(a_written_file_reads_as_the_same_job);
    RUN(an_error_names_the_place_and_the_foreign_key);
    arena_release(&arena);
    return check_done();
}

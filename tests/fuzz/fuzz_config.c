/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a job's file, and as the argument of --set: what is taken can be written and read again. */
#include "train/config.h"

#include "train/task_gpt.h"
#include "base/cleanup.h"
#include "fuzz.h"

static void check_written(const struct job_config *c)
{
    CLEANUP(str_release) struct str first = { 0 };
    CLEANUP(str_release) struct str second = { 0 };
    struct cairn_error err;
    struct job_config again;
    config_write(c, &first);
    config_init(&again, c->arena);
    FUZZ_REQUIRE(config_read_text(&again, "again", first.s, first.len, &err) == 0);
    config_write(&again, &second);
    FUZZ_REQUIRE(!strcmp(first.s, second.s));
}

/* A shape that was checked divides as it must. */
static void check_filled(struct job_config *c)
{
    struct cairn_error err = { 0 };
    if (config_check(c, &err) || config_fill(c, &err)) {
        FUZZ_REQUIRE(err.msg[0]);
        return;
    }
    FUZZ_REQUIRE(gpt_keys(c)->model.width % gpt_keys(c)->model.heads == 0 &&
                 gpt_keys(c)->model.heads % gpt_keys(c)->model.kv_heads == 0);
    FUZZ_REQUIRE(gpt_keys(c)->model.ffn > 0 && gpt_keys(c)->train.seq > 0 &&
                 gpt_keys(c)->train.seq <= gpt_keys(c)->model.context);
    FUZZ_REQUIRE(c->train.warmup <= c->train.steps && gpt_keys(c)->data.path.n);
    check_written(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct cairn_error err = { 0 };
    struct job_config c;
    config_init(&c, &arena);
    if (config_read_text(&c, "job.yaml", text, size, &err)) {
        FUZZ_REQUIRE(!strncmp(err.msg, "job.yaml:", 9));
    } else if (size < 100000) { /* written, texts may be longer than a file can be */
        check_written(&c);
        check_filled(&c);
    }
    config_init(&c, &arena);
    if (config_set_pair(&c, text, &err))
        FUZZ_REQUIRE(!strncmp(err.msg, "--set ", 6));
    else if (size < 100000)
        check_written(&c);
    return 0;
}

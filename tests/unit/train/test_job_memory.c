/* SPDX-License-Identifier: Apache-2.0
 * What a job says of memory, and what gives way, without training. */
#include "check.h"
#include "train/job.h"
#include "train/task_gpt.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cairn_error err;
static struct arena arena;
static uint64_t there;

static uint64_t host_available(void)
{
    return there;
}

/* What was said since the last call. */
static const char *said(FILE *talk)
{
    static char text[4096];
    fflush(talk);
    rewind(talk);
    size_t n = fread(text, 1, sizeof(text) - 1, talk);
    text[n] = 0;
    rewind(talk);
    CHECK(!ftruncate(fileno(talk), 0));
    return text;
}

/* Some text to learn from. */
static const char *text_file(void)
{
    static char path[] = "/tmp/cairn-test-XXXXXX";
    static char text[20000];
    static bool is_there;
    if (!is_there) {
        int fd = mkstemp(path);
        memset(text, 'a', sizeof(text));
        CHECK(fd >= 0 && write(fd, text, sizeof(text)) == sizeof(text) && !close(fd));
        is_there = true;
    }
    return path;
}

struct setup {
    struct job_config config;
    struct train_options o;
    struct job j;
};

static void open_setup(struct setup *s)
{
    *s = (struct setup){ 0 };
    config_init(&s->config, &arena);
    CHECK(!config_set(&s->config, "test", "model.layers", "2", &err));
    CHECK(!config_set(&s->config, "test", "model.width", "64", &err));
    CHECK(!config_set(&s->config, "test", "model.heads", "4", &err));
    CHECK(!config_set(&s->config, "test", "model.context", "512", &err));
    CHECK(!config_set(&s->config, "test", "data.path", text_file(), &err));
    CHECK(!config_fill(&s->config, &err));
    s->o = (struct train_options){
        .config = &s->config, .dir = "", .talk = tmpfile(), .host_available = host_available
    };
    if (gpu_open("cpu", &s->o.g, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    s->j = (struct job){ .o = &s->o, .c = &s->config };
    job_set_start(&s->j);
    CHECK(!job_open_task(&s->j, &err));
}

static void close_setup(struct setup *s)
{
    job_close(&s->j);
    gpu_close(s->o.g);
    fclose(s->o.talk);
}

static void a_host_that_runs_short_is_told_once(void)
{
    struct setup s;
    open_setup(&s);
    there = (uint64_t)1 << 40;
    CHECK(!job_host_is_short(&s.j));
    there = 1 << 20;
    CHECK(!job_host_is_short(&s.j)); /* it looks once a second */
    s.j.memory.host_checked_s = 0;
    CHECK(job_host_is_short(&s.j) && said(s.o.talk)[0]);
    CHECK(s.j.event && !strcmp(s.j.event, "host-memory"));
    s.j.memory.host_checked_s = 0;
    CHECK(!job_host_is_short(&s.j)); /* nor again and again */
    there = (uint64_t)1 << 40;
    s.j.memory.host_checked_s = 0;
    CHECK(!job_host_is_short(&s.j));
    there = 1 << 20;
    s.j.memory.host_checked_s = 0;
    CHECK(job_host_is_short(&s.j)); /* but when it happens anew */
    close_setup(&s);
}

/* On the CPU nothing can go elsewhere. */
static void the_cpu_makes_its_batches_smaller(void)
{
    struct setup s;
    struct memory_plan whole;
    open_setup(&s);
    memory_plan(&s.j.memory.job, &s.j.state.layout, &whole);
    s.o.budget_bytes = memory_plan_bound(&s.j.memory.job, &whole) * 2 / 3;
    CHECK(!job_fit(&s.j, &err));
    CHECK(s.j.state.layout.micro < (uint64_t)s.config.train.batch && !s.j.state.layout.recompute &&
          !s.j.state.layout.optim_on_host);
    CHECK(memory_plan_bound(&s.j.memory.job, &s.j.memory.plan) <= s.o.budget_bytes);
    CHECK(s.j.memory.n_fallbacks > 0 && strstr(said(s.o.talk), s.j.memory.fallbacks[0]));
    s.o.budget_bytes = 1 << 20;
    CHECK_INT(job_fit(&s.j, &err), -1);
    CHECK_INT(err.code, CAIRN_ENOMEM);
    CHECK(s.j.state.layout.recompute && s.j.state.layout.micro == 1 &&
          strstr(err.hint, task_gpt.shrink_hint));
    close_setup(&s);
}

static void without_a_budget_all_fits(void)
{
    struct setup s;
    open_setup(&s);
    CHECK(!job_fit(&s.j, &err));
    CHECK_INT(s.j.state.layout.micro, s.config.train.batch);
    CHECK_INT(s.j.memory.n_fallbacks, 0);
    close_setup(&s);
}

int main(void)
{
    RUN(a_host_that_runs_short_is_told_once);
    RUN(the_cpu_makes_its_batches_smaller);
    RUN(without_a_budget_all_fits);
    unlink(text_file());
    arena_release(&arena);
    return check_done();
}

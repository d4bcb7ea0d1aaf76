/* SPDX-License-Identifier: Apache-2.0
 * What a job says of memory, and what gives way, without training. */
#include "check.h"
#include "train/job.h"
#include <stdlib.h>
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

struct setup {
    struct job_config config;
    struct train_options o;
    struct job j;
};

static void open_setup(struct setup *s)
{
    *s = (struct setup){ 0 };
    config_init(&s->config, &arena);
    s->config.model.vocab = 256;
    CHECK(!config_set(&s->config, "test", "model.layers", "2", &err));
    CHECK(!config_set(&s->config, "test", "model.width", "64", &err));
    CHECK(!config_set(&s->config, "test", "model.heads", "4", &err));
    CHECK(!config_set(&s->config, "test", "model.context", "512", &err));
    CHECK(!config_fill(&s->config, &err));
    s->o =
        (struct train_options){ .config = &s->config, .talk = tmpfile(), .host_available = host_available };
    if (gpu_open("cpu", &s->o.g, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    s->j = (struct job){ .o = &s->o, .c = &s->config };
    job_set_start(&s->j);
    CHECK(!job_new_network(&s->j, &err));
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
    s.j.looked_s = 0;
    CHECK(job_host_is_short(&s.j) && strstr(said(s.o.talk), "1.0 MiB of memory left"));
    CHECK(s.j.event && !strcmp(s.j.event, "host-memory"));
    s.j.looked_s = 0;
    CHECK(!job_host_is_short(&s.j)); /* nor again and again */
    there = (uint64_t)1 << 40;
    s.j.looked_s = 0;
    CHECK(!job_host_is_short(&s.j));
    there = 1 << 20;
    s.j.looked_s = 0;
    CHECK(job_host_is_short(&s.j)); /* but when it happens anew */
    close_setup(&s);
}

/* On the CPU nothing can go elsewhere. */
static void the_cpu_makes_its_batches_smaller(void)
{
    struct setup s;
    struct job_plan whole;
    open_setup(&s);
    job_plan(&s.j, &whole);
    s.o.budget_bytes = job_plan_bound(&s.j, &whole) * 2 / 3;
    CHECK(!job_fit(&s.j, &err));
    CHECK(s.j.state.micro < (uint64_t)s.config.train.batch && !s.j.state.recompute &&
          !s.j.state.optim_on_host);
    CHECK(job_plan_bound(&s.j, &s.j.plan) <= s.o.budget_bytes);
    CHECK(strstr(said(s.o.talk), "are planned"));
    s.o.budget_bytes = 1 << 20;
    CHECK_INT(job_fit(&s.j, &err), -1);
    CHECK_INT(err.code, CAIRN_ENOMEM);
    CHECK(s.j.state.recompute && s.j.state.micro == 1 && strstr(err.hint, "train.seq"));
    close_setup(&s);
}

static void without_a_budget_all_fits(void)
{
    struct setup s;
    open_setup(&s);
    CHECK(!job_fit(&s.j, &err));
    CHECK_INT(s.j.state.micro, s.config.train.batch);
    CHECK_INT(s.j.n_given_way, 0);
    close_setup(&s);
}

int main(void)
{
    RUN(a_host_that_runs_short_is_told_once);
    RUN(the_cpu_makes_its_batches_smaller);
    RUN(without_a_budget_all_fits);
    arena_release(&arena);
    return check_done();
}

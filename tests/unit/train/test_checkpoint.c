/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints to the disk and back, and with each outside call failing once. */
#include "train/checkpoint.h"

#include "os/fault.h"
#include "nn/gpt_file.h"
#include "train/checkpoint_file.h"
#include "unit/nn/models.h"
#include <errno.h>

static struct gpt *model;
static struct optim *optim;

static const struct optim_options options = {
    .kind = OPTIM_ADAMW, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .master = true, .ema = 0.9
};

static void open_both(struct nn *nn, struct gpt **m, struct optim **o)
{
    struct cairn_error err = { 0 };
    *m = open_model(nn, &kinds[0].shape, NULL);
    if (optim_open(cpu, model_trained(&(*m)->model, 0), model_trained_weights(&(*m)->model, 0), &options, o,
                   &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
}

static int save(struct checkpoints *c, uint64_t step, struct cairn_error *err)
{
    struct checkpoint_model m = { .model = &model->model, .base = "", .optim = { optim } };
    struct checkpoint_state s = {
        .step = step, .applied = { step }, .attempted = { step + 1 }, .loss_scale = 8, .layout.micro = 4
    };
    return checkpoints_save(c, &m, &s, err) || checkpoints_wait(c, NULL, err) ? -1 : 0;
}

static void count_skipped(void *to, const char *path, const char *why)
{
    CHECK(path[0] && why[0]);
    ++*(int *)to;
}

/* The step of the newest whole one; 0: none. */
static uint64_t newest(const char *dir, int *skipped)
{
    struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct checkpoint_state s = { 0 };
    char *path;
    *skipped = 0;
    int r = checkpoints_newest(dir, &a, &path, &s, count_skipped, skipped, &err);
    arena_release(&a);
    return r ? 0 : s.step;
}

static const char *step_path(const char *dir, uint64_t step)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/checkpoints/step-%d", dir, (int)step);
    return path;
}

static bool is_whole(const char *dir, uint64_t step)
{
    struct cairn_error err = { 0 };
    struct checkpoint_state s;
    return !checkpoint_state_read(step_path(dir, step), &s, &err) && s.step == step;
}

/* Files that are none of a checkpoint and not `latest`. */
static int left_over(const char *dir)
{
    DIR *d = opendir(in_folder(dir, "checkpoints"));
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        closedir(d);
    return n;
}

static void check_arrays(const struct optim *a, const struct optim *b)
{
    size_t n, m;
    const struct optim_array *x = optim_arrays(a, &n), *y = optim_arrays(b, &m);
    CHECK(n == m && n > 4);
    for (size_t i = 0; i < n && i < m; i++) /* on the CPU the device's memory is the process's own */
        if (memcmp(x[i].at, y[i].at, x[i].n * dtype_size(x[i].dtype)))
            CHECK_FAIL_("%s differs", x[i].name);
}

/* Biases that bf16 cannot hold, too. */
static void comes_back_bit_for_bit(void)
{
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    struct checkpoint_state s;
    struct gpt *again;
    struct optim *other;
    size_t n;
    const char *dir = new_folder();
    const struct params *p = &model->params;
    for (size_t i = 0; i < p->numbers[PARAM_VECTOR]; i++)
        model->weights.vectors[i] *= 1.001f;
    const struct optim_array *arrays = optim_arrays(optim, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 50 && arrays[i].at != model->weights.vectors; k++)
            ((float *)arrays[i].at)[k] += (float)(k + i) / 3;
    REQUIRE(!checkpoints_open(dir, 0, true, &c, &err));
    CHECK(!save(c, 5, &err));
    open_both(&bf16, &again, &other);
    struct checkpoint_model m = { .model = &again->model, .base = "", .optim = { other } };
    CHECK(!checkpoint_state_read(step_path(dir, 5), &s, &err));
    CHECK(!checkpoints_load(step_path(dir, 5), &m, &s, &err));
    CHECK(s.applied[0] == 5 && s.attempted[0] == 6 && s.loss_scale == 8 && s.layout.micro == 4 &&
          !s.layout.recompute);
    CHECK(optim_applied(other) == 5 && optim_attempted(other) == 6);
    check_same(p, &model->weights, &again->weights);
    check_arrays(optim, other);
    checkpoints_close(c);
    optim_close(other);
    gpt_close(again);
}

/* The running mean is a model of its own: what was put into the optimizer's arrays comes back as weights. */
static void the_average_is_a_model(void)
{
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    struct param_report report = { 0 };
    struct gpt *again = open_model(&bf16, &kinds[0].shape, NULL);
    const char *dir = new_folder();
    const struct params *p = &model->params;
    char path[300];
    size_t n, found = 0;
    const struct optim_array *arrays = optim_arrays(optim, &n);
    for (size_t i = 0; i < n; i++) {
        if (!strstr(arrays[i].name, ".ema"))
            continue;
        found++;
        for (size_t k = 0; k < arrays[i].n; k++)
            ((float *)arrays[i].at)[k] = (float)(k % 128); /* which bf16 can hold */
    }
    CHECK_INT(found, 2);
    REQUIRE(!checkpoints_open(dir, 0, true, &c, &err));
    CHECK(!save(c, 5, &err));
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_MODEL_EMA, step_path(dir, 5));
    if (gpt_file_load(again, path, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    param_report_release(&report);
    for (size_t i = 0; i < p->n; i++) {
        float *numbers = calloc(p->list[i].rows * p->list[i].columns, sizeof(float));
        CHECK(!weights_get(&again->weights, &p->list[i], numbers, &err));
        for (size_t k = 0; k < p->list[i].rows * p->list[i].columns; k++)
            if (numbers[k] != (float)((p->list[i].at + k) % 128))
                CHECK_FAIL_("%s: number %zu is %g", p->list[i].name, k, (double)numbers[k]);
        free(numbers);
    }
    checkpoints_close(c);
    gpt_close(again);
}

static void fail_in_turn(bool async)
{
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    char dir[128];
    int failed = 0, skipped;
    snprintf(dir, sizeof(dir), "%s", new_folder());
    REQUIRE(!checkpoints_open(dir, 2, async, &c, &err));
    REQUIRE(!save(c, 1, &err));
    for (int nth = 1;; nth++) {
        err = (struct cairn_error){ 0 };
        fault_arm(nth, ENOSPC);
        int r = save(c, 2, &err);
        if (!fault_disarm()) {
            CHECK_INT(r, 0);
            break;
        }
        failed += r != 0;
        CHECK(!r || err.msg[0]);
        CHECK(is_whole(dir, 1));
        uint64_t step = newest(dir, &skipped);
        CHECK(step == 1 || step == 2);
        CHECK(r || step == 2);
        CHECK_INT(skipped, 0);
        if (left_over(dir))
            CHECK_FAIL_("call %d: something is left", nth);
        CHECK(!save(c, 2, &err));
        CHECK(newest(dir, &skipped) == 2);
        CHECK(!checkpoint_remove(step_path(dir, 2), &err));
    }
    CHECK(failed > 10);
    checkpoints_close(c);
}

static void a_save_that_fails_leaves_the_older_one(void)
{
    fail_in_turn(false);
}

static void the_same_step_again_leaves_one_of_both(void)
{
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    char dir[128];
    int skipped;
    bool more = true;
    snprintf(dir, sizeof(dir), "%s", new_folder());
    REQUIRE(!checkpoints_open(dir, 1, false, &c, &err));
    REQUIRE(!save(c, 1, &err));
    for (int nth = 1; more; nth++) {
        fault_arm(nth, ENOSPC);
        int r = save(c, 1, &err);
        more = fault_disarm();
        CHECK(more || !r);
        if (newest(dir, &skipped) != 1 || skipped || left_over(dir))
            CHECK_FAIL_("call %d: it is not whole, or something is left", nth);
    }
    checkpoints_close(c);
}

static void a_thread_that_fails_leaves_the_older_one(void)
{
    fail_in_turn(true);
}

static void tear(const char *dir, uint64_t step)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_OPTIM, step_path(dir, step));
    CHECK(!truncate(path, 1000));
}

static void keeps_the_newest_whole_ones(void)
{
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    char dir[128];
    int skipped;
    snprintf(dir, sizeof(dir), "%s", new_folder());
    REQUIRE(!checkpoints_open(dir, 2, false, &c, &err));
    for (uint64_t step = 8; step <= 11; step++)
        CHECK(!save(c, step, &err));
    CHECK_INT(tree_count(in_folder(dir, "checkpoints")), 3); /* with `latest` */
    CHECK(is_whole(dir, 10) && is_whole(dir, 11));
    tear(dir, 11);
    CHECK_INT(newest(dir, &skipped), 10);
    CHECK_INT(skipped, 1);
    checkpoints_close(c);
    REQUIRE(!checkpoints_open(dir, 1, false, &c, &err));
    CHECK(!save(c, 10, &err)); /* the torn one is of a later step */
    CHECK_INT(newest(dir, &skipped), 10);
    CHECK_INT(tree_count(in_folder(dir, "checkpoints")), 2);
    checkpoints_close(c);
}

/* A run may be seeded by a link to a checkpoint of another, and come from somebody else with links in it. */
static void links_are_removed_and_not_followed(void)
{
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    char dir[128], other[128], link[256];
    int skipped;
    snprintf(other, sizeof(other), "%s", new_folder());
    REQUIRE(!checkpoints_open(other, 0, false, &c, &err));
    CHECK(!save(c, 3, &err));
    checkpoints_close(c);
    snprintf(dir, sizeof(dir), "%s", new_folder());
    REQUIRE(!mkdir(in_folder(dir, "checkpoints"), 0700));
    snprintf(link, sizeof(link), "%s", step_path(dir, 3));
    CHECK(!symlink(step_path(other, 3), link));
    CHECK(!symlink(step_path(other, 3), in_folder(dir, "checkpoints/.old-x")));
    CHECK_INT(newest(dir, &skipped), 3);
    REQUIRE(!checkpoints_open(dir, 1, false, &c, &err));
    CHECK_INT(left_over(dir), 0);
    CHECK(!save(c, 4, &err));
    CHECK(access(link, F_OK) != 0);
    CHECK(is_whole(dir, 4) && is_whole(other, 3));
    checkpoints_close(c);
}

static const char *state_path(const char *dir, uint64_t step)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/" CHECKPOINT_STATE, step_path(dir, step));
    return path;
}

static void put_state(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "we");
    REQUIRE(f && fwrite(text, 1, n, f) == n && !fclose(f));
}

/* Any bit of it decides how the run goes on. */
static void every_bit_of_the_state_counts(void)
{
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    char dir[128], text[4096];
    snprintf(dir, sizeof(dir), "%s", new_folder());
    REQUIRE(!checkpoints_open(dir, 0, false, &c, &err));
    CHECK(!save(c, 30, &err));
    checkpoints_close(c);
    FILE *f = fopen(state_path(dir, 30), "re");
    size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
    REQUIRE(f && !fclose(f) && n > 100 && n < sizeof(text));
    for (size_t bit = 0; bit < 8 * n; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        put_state(state_path(dir, 30), text, n);
        if (is_whole(dir, 30))
            CHECK_FAIL_("a change of bit %zu goes unnoticed", bit);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    put_state(state_path(dir, 30), text, n);
    CHECK(is_whole(dir, 30));
}

/* As earlier versions wrote it: what can be known is checked. */
static void a_state_without_a_sum_is_read(void)
{
    static const struct {
        const char *from, *to;
    } odd[] = {
        { "\"step\":30", "\"step\":3" },          { "\"step\":30", "\"step\":\"x\"" },
        { "\"moves\":", "\"movet\":" },           { "\"micro_batch\":4", "\"micro_batch\":0" },
        { "\"loss_scale\":", "\"loss_scald\":" }, { "\"recompute\":false", "\"recompute\":0" },
    };
    struct cairn_error err = { 0 };
    struct checkpoints *c = NULL;
    char dir[128], text[4096] = "", changed[4096];
    snprintf(dir, sizeof(dir), "%s", new_folder());
    REQUIRE(!checkpoints_open(dir, 0, false, &c, &err));
    CHECK(!save(c, 30, &err));
    checkpoints_close(c);
    FILE *f = fopen(state_path(dir, 30), "re");
    REQUIRE(f && fread(text, 1, sizeof(text) - 1, f) > 100 && !fclose(f));
    char *sum = strstr(text, ",\"sum\"");
    REQUIRE(sum);
    strcpy(sum, "}");
    put_state(state_path(dir, 30), text, strlen(text));
    CHECK(is_whole(dir, 30));
    char *newer = strstr(text, ",\"blocks_streamed\""), *rest = strstr(text, ",\"waited\"");
    REQUIRE(newer && rest && newer < rest); /* keys that earlier versions did not have */
    snprintf(changed, sizeof(changed), "%.*s%s", (int)(newer - text), text, rest);
    put_state(state_path(dir, 30), changed, strlen(changed));
    CHECK(is_whole(dir, 30));
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        char *at = strstr(text, odd[i].from);
        REQUIRE(at);
        snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, odd[i].to,
                 at + strlen(odd[i].from));
        put_state(state_path(dir, 30), changed, strlen(changed));
        if (is_whole(dir, 30))
            CHECK_FAIL_("%s is taken", odd[i].to);
    }
}

static void none_is_an_answer(void)
{
    int skipped;
    CHECK_INT(newest(new_folder(), &skipped), 0);
    CHECK_INT(checkpoint_step_of("step-120"), 120);
    CHECK_INT(checkpoint_step_of("step-012"), 0);
    CHECK_INT(checkpoint_step_of("step-12x"), 0);
    CHECK_INT(checkpoint_step_of("latest"), 0);
}

static void all(void)
{
    open_both(&bf16, &model, &optim);
    fill(&model->params, &model->weights);
    RUN(comes_back_bit_for_bit);
    RUN(the_average_is_a_model);
    RUN(a_save_that_fails_leaves_the_older_one);
    RUN(the_same_step_again_leaves_one_of_both);
    RUN(a_thread_that_fails_leaves_the_older_one);
    RUN(keeps_the_newest_whole_ones);
    RUN(links_are_removed_and_not_followed);
    RUN(every_bit_of_the_state_counts);
    RUN(a_state_without_a_sum_is_read);
    RUN(none_is_an_answer);
    optim_close(optim);
    gpt_close(model);
}

int main(void)
{
    return run_on_cpu(all);
}

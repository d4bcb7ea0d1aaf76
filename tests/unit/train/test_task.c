/* SPDX-License-Identifier: Apache-2.0
 * A second kind of task trains through the engine: two experts, one LoRA or two, clips of two sizes, a helper network. */
#include "toy_jobs.h"
#include "train/loaded_model.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* ---- configuration ---- */

static int read_text(struct job_config *c, struct arena *a, const char *text)
{
    config_init(c, a);
    err = (struct cairn_error){ 0 };
    return config_read_text(c, "job.yaml", text, strlen(text), &err);
}

static void its_keys_and_presets_are_its_own(void)
{
    struct arena a = { 0 };
    struct job_config c;
    CHECK(!read_text(
        &c, &a,
        "cache: {scale: 2}\ntrain: {steps: 5}\nlora: {experts: each}\nmodel: {width: 16, kind: toy}\n"));
    const struct toy_keys *k = c.own;
    CHECK_STR(c.schema->kind, "toy");
    CHECK(k->cache.scale == 2 && k->lora.experts == TOY_LORA_EACH && k->model.width == 16);
    CHECK_INT(c.train.batch, 1);
    CHECK_INT(c.train.schedule, CONFIG_SCHEDULE_CONSTANT);
    CHECK(c.train.beta1 == 0.9 && c.train.beta2 == 0.999 && c.train.weight_decay == 0.01);
    CHECK_INT(c.lora.rank, 4);
    CHECK(!config_check(&c, &err) && !config_fill(&c, &err));
    CHECK_INT(k->model.ffn, 64);
    CHECK(!read_text(&c, &a, "train: {batch: 3, beta2: 0.5}\nmodel: {kind: toy}\n"));
    CHECK(c.train.batch == 3 && c.train.beta2 == 0.5); /* what is said wins */
    CHECK(!read_text(&c, &a, "train: {steps: 5}\n"));
    CHECK(c.train.batch == 8 && c.train.beta2 == 0.95); /* a GPT is as it was */
    arena_release(&a);
}

static void what_it_does_not_know_is_refused(void)
{
    static const char *const wrong[] = {
        "model: {kind: toy, heads: 4}",          "model: {kind: toy}\ndata: {tokenizer: bytes}",
        "model: {kind: toy}\ncache: {scal: 1}",  "model: {kind: toy}\nsample: {tokens: 5}",
        "model: {kind: gpt}\ncache: {scale: 1}", "model: {kind: toyy}",
    };
    struct arena a = { 0 };
    struct job_config c;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_INT(read_text(&c, &a, wrong[i]), -1);
        CHECK_INT(err.code, CAIRN_EUSAGE);
    }
    CHECK(!read_text(&c, &a, "model: {kind: toy}\nlora: {rank: 0}"));
    CHECK_INT(config_check(&c, &err), -1);
    CHECK(!read_text(&c, &a, "model: {kind: toy}\ndata: {small: 9, large: 3}"));
    CHECK_INT(config_check(&c, &err), -1);
    arena_release(&a);
}

static void its_file_and_its_tables_are_written(void)
{
    struct arena a = { 0 };
    struct job_config c, again;
    CLEANUP(str_release) struct str text = { 0 }, other = { 0 }, tables = { 0 };
    CHECK(!read_text(&c, &a, "model: {kind: toy, layers: 2}\nsample: {count: 3}\n") &&
          !config_fill(&c, &err));
    config_write(&c, &text);
    CHECK(!read_text(&again, &a, text.s));
    config_write(&again, &other);
    CHECK_STR(other.s, text.s);
    config_write_markdown(&tables);
    CHECK_HAS(tables.s, "`cache.scale`");
    CHECK_HAS(tables.s, "`model.boundary`");
    CHECK_HAS(tables.s, "### `cache`");
    arena_release(&a);
}

/* ---- training ---- */

static double mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

static void learns(const char *experts, bool one)
{
    double losses[MOST_STEPS], speeds[MOST_STEPS];
    int steps = steps_here(48, 16), some = steps / 4;
    const char *dir = train(KEYS(experts, steps_key(steps), "checkpoint.every=20"));
    REQUIRE((int)logged(dir, "loss", losses) == steps);
    if (!(mean(losses + steps - some, (size_t)some) < 0.9 * mean(losses, (size_t)some)))
        CHECK_FAIL_("%s: %g at the start, %g at the end", experts, mean(losses, (size_t)some),
                    mean(losses + steps - some, (size_t)some));
    CHECK_INT(logged(dir, "s_per_it", speeds), steps);
    CHECK(exists(dir, "checkpoints/latest/lora.safetensors") == one);
    CHECK(exists(dir, "checkpoints/latest/lora_high.safetensors") == !one);
    CHECK(exists(dir, "checkpoints/latest/lora_low.safetensors") == !one);
    CHECK(exists(dir, "latents.raw"));
    CLEANUP(json_cleanup) struct json *state = NULL;
    REQUIRE(!json_read_object(in(dir, "checkpoints/latest/state.json"), &state, &err));
    CHECK_INT(json_int(json_get(state, "moves"), 0), one ? steps : steps / 2);
    CHECK_INT(json_int(json_get(state, "moves_1"), 0), one ? 0 : steps / 2);
}

static void one_lora_learns(void)
{
    learns("lora.experts=shared", true);
}

static void two_loras_learn(void)
{
    learns("lora.experts=each", false);
}

static void a_quantized_base_learns(void)
{
    double losses[MOST_STEPS];
    const char *dir = train(KEYS("model.quantize=int8", "train.steps=16"));
    REQUIRE(logged(dir, "loss", losses) == 16);
    CHECK(mean(losses + 12, 4) < mean(losses, 4));
}

static void the_file_of_a_run_is_read_back(void)
{
    struct arena a = { 0 };
    struct job_config c;
    const char *dir = train(KEYS("lora.experts=each", "cache.scale=0.25", "train.steps=2"));
    config_init(&c, &a);
    CHECK(!config_read(&c, in(dir, "config.yaml"), &err) && !config_check(&c, &err));
    const struct toy_keys *k = c.own;
    CHECK_STR(c.schema->kind, "toy");
    CHECK(k->lora.experts == TOY_LORA_EACH && k->cache.scale == 0.25 && k->model.ffn == 32);
    CHECK(c.train.steps == 2 && c.train.beta2 == 0.999);
    arena_release(&a);
}

/* With a rate that changes nothing each evaluation finds the same loss, and the second is not better. */
static void evaluations_are_alike(void)
{
    double found[MOST_STEPS];
    const char *dir = train(KEYS("train.lr=1e-30", "train.steps=12", "eval.every=2", "train.patience=1"));
    CHECK_INT(logged(dir, "val_loss", found), 2);
    CHECK(found[0] == found[1]);
    dir = train(KEYS("train.lr=1e-30", "eval.every=2", "train.patience=1", "data.val_clips=0"));
    CHECK_INT(logged(dir, "val_loss", found), 0);
    CHECK_INT(last_logged(dir, "step"), 4); /* nothing to stop for */
}

/* ---- killed ---- */

static pid_t start_process(const char *dir, const char *const *pairs)
{
    const char *args[32] = { "test_task", device, "train", dir };
    size_t n = 4;
    for (size_t i = 0; pairs[i]; i++)
        args[n++] = pairs[i];
    fflush(stdout);
    pid_t pid = fork();
    if (pid)
        return pid;
    execv("/proc/self/exe", (char *const *)(void *)args);
    _exit(98);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_s(double s)
{
    struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };
    nanosleep(&t, NULL);
}

static bool is_begun(const char *dir, const char *last)
{
    return exists(dir, "checkpoints/latest") && !exists(dir, last);
}

/* Killed until it comes to its end.  How often it went on from a checkpoint. */
static int kill_until_done(const char *dir, double whole_s, const char *last, const char *const *pairs)
{
    int resumed = 0, status = 0;
    for (int i = 0; i < 40; i++) {
        pid_t pid = start_process(dir, pairs);
        if (i < 12) { /* in the end it may finish */
            sleep_s(whole_s * (double)rand() / RAND_MAX);
            kill(pid, SIGKILL);
        }
        waitpid(pid, &status, 0);
        if (WIFEXITED(status)) {
            CHECK_INT(WEXITSTATUS(status), 0);
            return resumed;
        }
        resumed += is_begun(dir, last);
    }
    CHECK(!"it never ends");
    return resumed;
}

/* At step 1 the second set has not been trained yet. */
static void a_finished_run_can_be_made_longer(void)
{
    const char *whole = train(KEYS("lora.experts=each"));
    const char *dir = train(KEYS("lora.experts=each", "train.steps=1"));
    CHECK(exists(dir, "checkpoints/step-1/lora_low.safetensors"));
    for (int steps = 2; steps <= 4; steps++)
        if (try_to_train(dir, true, 0, KEYS("lora.experts=each", steps_key(steps))))
            CHECK_FAIL_("%s", err.msg);
    check_same_run(dir, whole, 4);
}

/* The file of one LoRA is not one of two. */
static void a_run_is_not_resumed_as_another_kind(void)
{
    const char *dir = train(KEYS("lora.experts=shared", "train.steps=2"));
    CHECK_INT(try_to_train(dir, true, 0, KEYS("lora.experts=each")), -1);
    CHECK(err.msg[0]);
}

static void a_killed_run_makes_the_same_bits(void)
{
    int steps = steps_here(40, 8), rounds = steps_here(3, 1);
    const char *jobs[][7] = {
        { steps_key(steps), "lora.experts=each", "train.ema=0.9", "lora.dropout=0.1", "train.accumulate=2",
          on_gpu() ? "train.dtype=f32" : "train.dtype=f16" },
        { steps_key(steps), "lora.experts=shared", "model.quantize=int8", "eval.every=5",
          on_gpu() ? "train.dtype=f32" : "train.dtype=bf16" },
    };
    char last[32];
    snprintf(last, sizeof(last), "checkpoints/step-%d", steps);
    unsigned seed = (unsigned)time(NULL) ^ (unsigned)getpid();
    int resumed = 0;
    printf("# killed at random moments, seed %u\n", seed);
    srand(seed);
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        int status = -1;
        const char *whole = new_dir();
        double begin = seconds();
        pid_t pid = start_process(whole, jobs[i]);
        waitpid(pid, &status, 0);
        REQUIRE(!status);
        double whole_s = seconds() - begin;
        for (int round = 0; round < rounds || (!resumed && round < 20); round++) {
            const char *dir = new_dir();
            resumed += kill_until_done(dir, whole_s, last, jobs[i]);
            check_same_run(dir, whole, steps);
        }
    }
    printf("# resumed %d times\n", resumed);
    CHECK(resumed > 0);
}

/* ---- samples and saved models ---- */

static void samples_are_written_and_the_helper_is_freed(void)
{
    struct setup s;
    CLEANUP(str_release) struct str text = { 0 };
    const char *dir = train(KEYS("sample.every=2", "sample.count=2", "train.steps=4"));
    for (int step = 0; step <= 4; step += 2)
        for (int i = 0; i < 2; i++) {
            char name[64];
            snprintf(name, sizeof(name), "samples/step-%d-%d.raw", step, i);
            CHECK(exists(dir, name));
        }
    CHECK(!same_file(in(dir, "samples/step-0-0.raw"), in(dir, "samples/step-4-0.raw")));
    open_setup(&s, dir, KEYS("lora.experts=each"));
    job_set_start(&s.j);
    CHECK(!job_resolve(&s.j, &err));
    REQUIRE(!job_open_task(&s.j, &err));
    CHECK_INT(gpu_allocated(s.o.g).bytes,
              s.j.memory.job.fixed_bytes + s.j.memory.job.reserved.packed); /* the data are prepared */
    CHECK(!job_fit(&s.j, &err) && !job_load(&s.j, NULL, &err) && !job_open_work(&s.j, &err));
    uint64_t before = gpu_allocated(s.o.g).bytes;
    CHECK(!s.j.task->ops->sample(s.j.task, dir, 9, &text, &err));
    CHECK_INT(gpu_allocated(s.o.g).bytes, before);
    check_near("a sample", (double)s.j.task->ops->sample_bytes(s.j.task).own,
               (double)(gpu_allocated(s.o.g).most_bytes - before));
    CHECK(exists(dir, "step-9-0.raw") && text.len);
    close_setup(&s);
}

/* Whether a set of an open model holds what a checkpoint's file does. */
static void check_set(struct loaded_model *t, size_t set, const char *file)
{
    struct model *m = t->job.task->model;
    char path[512];
    struct model_save save = { .set = set, .dir = tmp.dir, .dtype = storage_dtype(m->nn->storage) };
    CHECK(!m->ops->save(m, &save, &err));
    snprintf(path, sizeof(path), "%s/%s", tmp.dir, m->ops->file_name(m, set, false));
    CHECK(same_file(path, file));
}

static struct gpu *g;

static int open_saved(struct loaded_model *t, const struct loaded_model_options *o)
{
    if (loaded_model_find(t, o, &err))
        return -1;
    t->options.g = g;
    return loaded_model_open(t, &err);
}

static void a_saved_model_has_all_its_sets(void)
{
    const char *dir = train(KEYS("lora.experts=each"));
    const char *names[] = { "checkpoints/step-4/lora_high.safetensors",
                            "checkpoints/step-4/lora_low.safetensors" };
    const char *what = dir;
    struct loaded_model_options o = { .what = &what, .n_what = 1, .talk = tmpfile() };
    struct loaded_model t;
    CLEANUP(str_release) struct str text = { 0 };
    REQUIRE(!gpu_open(device, &g, &err));
    if (open_saved(&t, &o))
        CHECK_FAIL_("%s", err.msg);
    else {
        CHECK_INT(t.step, 4);
        check_set(&t, 0, in(dir, names[0]));
        check_set(&t, 1, in(dir, names[1]));
        CHECK(!t.job.task->ops->sample(t.job.task, dir, 77, &text, &err) && exists(dir, "step-77-0.raw"));
    }
    loaded_model_close(&t);
    what = in(dir, "checkpoints/step-2/lora_low.safetensors"); /* the other comes from beside it */
    if (open_saved(&t, &o))
        CHECK_FAIL_("%s", err.msg);
    else {
        check_set(&t, 0, in(dir, "checkpoints/step-2/lora_high.safetensors"));
        check_set(&t, 1, in(dir, "checkpoints/step-2/lora_low.safetensors"));
    }
    loaded_model_close(&t);
    what = dir;
    o.average = true;
    CHECK_INT(open_saved(&t, &o), -1); /* the run kept none */
    CHECK_INT(err.code, CAIRN_EUSAGE);
    loaded_model_close(&t);
    gpu_close(g);
    fclose(o.talk);
}

static void run_all(void)
{
    RUN(its_keys_and_presets_are_its_own);
    RUN(what_it_does_not_know_is_refused);
    RUN(its_file_and_its_tables_are_written);
    RUN(one_lora_learns);
    RUN(two_loras_learn);
    RUN(a_quantized_base_learns);
    RUN(the_file_of_a_run_is_read_back);
    RUN(evaluations_are_alike);
    RUN(a_finished_run_can_be_made_longer);
    RUN(a_run_is_not_resumed_as_another_kind);
    RUN(a_killed_run_makes_the_same_bits);
    RUN(samples_are_written_and_the_helper_is_freed);
    RUN(a_saved_model_has_all_its_sets);
}

int main(int argc, char **argv)
{
    return run_in_folder(argc, argv, run_all);
}

/* SPDX-License-Identifier: Apache-2.0
 * Lines that trainers print, and what they say about the training. */
#include "job/progress.h"

#include "../run/scratch.h"
#include "base/str.h"
#include "check.h"
#include "job/job_dir.h"
#include <math.h>

#define NONE -1
#define NO_LOSS -1e9

struct line {
    const char *text;
    int64_t step, steps;
    double loss, s_per_it, eta_s;
};

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-9 * fabs(b);
}

static void check_line(const struct line *c)
{
    struct job_progress p;
    job_progress_of_text(c->text, strlen(c->text), &p);
    if (p.step != c->step || p.steps != c->steps || !same(p.s_per_it, c->s_per_it) ||
        !same(p.eta_s, c->eta_s) || p.has_loss != (c->loss != NO_LOSS) ||
        (p.has_loss && !same(p.loss, c->loss)))
        CHECK_FAIL_("%s: %lld/%lld, loss %g, %g s/it, ETA %g", c->text, (long long)p.step, (long long)p.steps,
                    p.has_loss ? p.loss : NO_LOSS, p.s_per_it, p.eta_s);
    CHECK_INT(p.mem_bytes, -1);
}

static void bars_of_trainers_are_read(void)
{
    static const struct line lines[] = {
        /* ai-toolkit: its title is the name of the job */
        { "my_lora_v1:  12%|#2   | 250/2000 [10:12<1:11:24,  2.45s/it, lr: 1.0e-04 loss: 3.412e-01]", 250,
          2000, 0.3412, 2.45, 4284 },
        { "EC Style:   0%|        | 0/4000 [00:00<?, ?it/s]Error running job: cannot pickle", 0, 4000,
          NO_LOSS, NONE, NONE },
        /* musubi-tuner, sd-scripts */
        { "steps:   6%|6         | 356/5820 [1:12:10<18:27:50, 12.17s/it, avr_loss=0.0629]INFO: warm-up", 356,
          5820, 0.0629, 12.17, 66470 },
        { "steps:   0%|          | 0/1600 [00:00<?, ?it/s]", 0, 1600, NO_LOSS, NONE, NONE },
        { "steps: 100%|##########| 1500/1500 [20:23<00:00,  1.23it/s, loss=0.0729]save trained model to x",
          1500, 1500, 0.0729, 1 / 1.23, 0 },
        { "steps:   1%|1         | 20/2000 [01:01<1:41:01,  3.06s/it, avr_loss=nan]", 20, 2000, NAN, 3.06,
          6061 },
        /* Hugging Face's Trainer, accelerate */
        { " 14%|#4        | 381/2724 [14:04:45<85:52:52, 131.96s/it]", 381, 2724, NO_LOSS, 131.96, 309172 },
        { "{'loss': 0.5213, 'grad_norm': 1.5, 'learning_rate': 2e-05}\n 10%|#   | 100/990 [06:01<52:11,  3.52s/it]",
          100, 990, 0.5213, 3.52, 3131 },
        { "Training steps:   5%|3  | 1/20 [02:06<40:10, 126.89s/it, loss=0.462, lr=2e-7]12/24/2024 16:49:44 - DEBUG",
          1, 20, 0.462, 126.89, 2410 },
        { "Epoch 1/10, Steps:   0%|   | 1/1000 [00:41<11:29:40, 41.42s/it, lr=1e-5, step_loss=0.118]", 1,
          1000, 0.118, 41.42, 41380 },
        { " 12%|#2        | 812/6542 [10:12<1:12:10, 1.32it/s, train_loss=412]", 812, 6542, 412, 1 / 1.32,
          4330 },
        /* Keras */
        { "30/89 [=========>....................] - ETA: 24s - loss: nan - accuracy: 0.6652", 30, 89, NAN,
          NONE, NONE },
        { "200/200 [====] - 3s 12ms/step - loss: 1.3190 - accuracy: 0.3420 - val_loss: 9.5", 200, 200, 1.319,
          NONE, NONE },
        /* no bar */
        { "[2020-07-04 15:41:57,821 INFO] Step 85700/300000; acc:  69.58; loss: 141.93; lr: 0.00100", 85700,
          300000, 141.93, NONE, NONE },
        { "iteration       50/    1000 | total loss 1.321E-01 | loss 1.321E-01 | loss scale 67108864.0 |", 50,
          1000, 0.1321, NONE, NONE },
        { "iter 10: loss 3.2202, time 893.76ms", NONE, NONE, 3.2202, NONE, NONE },
        { "step 250: train loss 1.5440, val loss 1.7220", NONE, NONE, 1.544, NONE, NONE },
        { "a half at the end: 5%|5 | 1/20 [00:14<04:3", 1, 20, NO_LOSS, NONE, 243 },
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        check_line(&lines[i]);
}

/* They come before the training, in between, and after it. */
static void other_bars_do_not_count(void)
{
    static const struct line lines[] = {
        { "Loading checkpoint shards: 100%|##########| 2/2 [00:46<00:00, 23.21s/it]", NONE, NONE, NO_LOSS,
          NONE, NONE },
        { "Fetching 11 files: 100%|##########| 11/11 [00:40<00:00,  3.66s/it]", NONE, NONE, NO_LOSS, NONE,
          NONE },
        { "Caching latents to disk: 100%|###| 33/33 [00:00<?, ?it/s]", NONE, NONE, NO_LOSS, NONE, NONE },
        { "lora:   1%|  | 250/2000 [10:00<1:10:00, 2.4s/it, lr: 1e-4 loss: 0.3]\n"
          "Generating Images:  50%|##### | 5/10 [00:20<00:20,  4.0s/it]",
          250, 2000, 0.3, 2.4, 4200 },
        { "steps:   1%|  | 250/2000 [10:00<1:10:00, 2.4s/it, avr_loss=0.3]\r100%|####| 20/20 [00:22<00:00,  1.14s/it]",
          250, 2000, 0.3, 2.4, 4200 },
        /* an evaluation inside, without a title */
        { " 10%|#  | 100/990 [06:01<52:11,  3.52s/it]\n 40%|####  | 12/30 [00:10<00:15,  1.2it/s]", 100, 990,
          NO_LOSS, 3.52, 3131 },
        { "100%|####| 1000/1000 [00:01<00:00, 900it/s]\n  5%|5  | 1/20 [00:14<04:39, 14.71s/it]", 1, 20,
          NO_LOSS, 14.71, 279 },
        { "Saving Snapshot:  25%|##  | 1/4 [00:00<00:00, 8112.77it/s]", NONE, NONE, NO_LOSS, NONE, NONE },
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        check_line(&lines[i]);
}

static void what_is_no_progress_is_none(void)
{
    static const char *const lines[] = {
        "",
        "\n\n\r\r",
        "/",
        "1/2",
        "1/2 [",
        "1/0 [00:00<00:01, 1s/it]",
        "/5 [00:00<",
        "12/24/2024 16:49:44 - DEBUG",
        "/home/user/train_network.py:12",
        "99999999999999999999/5 [x",
        "5/99999999999999999999 [x",
        "a/b [c<d, es/it]",
        "loss",
        "loss:",
        "loss scale",
        "loss_scale: 8192.0",
        "aux_loss: 0.1",
        "glossary: 5",
        "loss: none",
        "loss: nano",
        "val loss 2",
        "Accuracy: 9901/10000 (99%)",
        "step 5/3",
        "reducing loss scale to 32768.0",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct job_progress p;
        job_progress_of_text(lines[i], strlen(lines[i]), &p);
        if (p.step != -1 || p.steps != -1 || p.has_loss || p.eta_s >= 0 || p.s_per_it >= 0)
            CHECK_FAIL_("\"%s\": %lld/%lld", lines[i], (long long)p.step, (long long)p.steps);
    }
}

/* ---- of a job ---- */

static struct arena arena;

static void what_was_reached_is_kept_in_the_row(void)
{
    const char *state = scratch("state");
    struct job_row row = { .uid = "aaaaaaaaaaaaaaaa",
                           .kind = JOB_RUN,
                           .state = JOB_ACTIVE,
                           .attempt = 2,
                           .options = "{\"retries\":1,\"last\":{\"step\":1}}" };
    struct job_progress p;
    scratch_file("state/jobs/aaaaaaaaaaaaaaaa/attempt-2/log",
                 "steps:  31%|###  | 620/2000 [1:20:11<2:58:20,  7.75s/it, avr_loss=0.101]");
    job_progress_read(state, &row, &p);
    CHECK(p.step == 620 && p.steps == 2000 && p.loss == 0.101 && p.eta_s == 10700);
    row.options = job_progress_keep(state, &row, NULL, &arena);
    CHECK_HAS(row.options, "\"retries\":1");
    row.state = JOB_STOPPED;
    row.attempt = 9; /* no file is read */
    job_progress_read(state, &row, &p);
    CHECK(p.step == 620 && p.steps == 2000 && p.has_loss && p.loss == 0.101 && p.s_per_it == 7.75 &&
          p.eta_s < 0);
    row.options = job_progress_keep(state, &row, NULL, &arena);
    CHECK_STR(row.options, "{\"retries\":1}");
}

static void native_training_is_read_from_its_folder(void)
{
    struct job_progress p;
    scratch_file("run/run.json", "{\"schema\":1,\"state\":\"running\",\"steps\":100}");
    job_progress_of_run(scratch("run"), &p);
    CHECK(p.step == -1 && p.steps == 100 && !p.has_loss);
    scratch_file("run/log.jsonl",
                 "{\"step\":1,\"loss\":5.5,\"elapsed_s\":1.0,\"mem_bytes\":7}\n"
                 "{\"step\":2,\"loss\":5.25,\"elapsed_s\":3.0,\"mem_bytes\":9}\n{\"step\":3,\"lo");
    job_progress_of_run(scratch("run"), &p);
    CHECK(p.step == 2 && p.steps == 100 && p.loss == 5.25 && p.mem_bytes == 9 && p.s_per_it == 2 &&
          p.eta_s == 196);
    job_progress_of_run(scratch("nowhere"), &p);
    CHECK(p.step == -1 && p.steps == -1 && !p.has_loss);
}

int main(void)
{
    RUN(bars_of_trainers_are_read);
    RUN(other_bars_do_not_count);
    RUN(what_is_no_progress_is_none);
    RUN(what_was_reached_is_kept_in_the_row);
    RUN(native_training_is_read_from_its_folder);
    arena_release(&arena);
    return check_done();
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "run/resume.h"

#include "check.h"
#include "scratch.h"
#include <fcntl.h>

static void make_state(const char *name, const char *const *files, size_t n, int age_s)
{
    for (size_t i = 0; i < n; i++) {
        char path[256];
        snprintf(path, sizeof(path), "out/%s/%s", name, files[i]);
        const char *at = scratch_file(path, "bytes");
        struct timespec when[2] = { { .tv_sec = 2000000000 - age_s }, { .tv_sec = 2000000000 - age_s } };
        utimensat(AT_FDCWD, at, when, 0);
    }
}

static void knows_trainers_by_their_commands(void)
{
    static const struct {
        const char *command, *trainer;
    } cases[] = {
        { "python /home/a/ai-toolkit/run.py config/lora.yaml", "ai-toolkit" },
        { "accelerate launch --num_cpu_threads_per_process 1 src/musubi_tuner/wan_train_network.py --task t2v",
          "musubi-tuner" },
        { "torchrun --nproc_per_node 2 train.py --output_dir /data/ai-toolkit/run.py", NULL },
        { "python -m accelerate.commands.launch -m musubi_tuner.wan_train_network", "musubi-tuner" },
        { "accelerate launch src/musubi_tuner/wan_train_network.py --task t2v", "musubi-tuner" },
        { "python wan_train_network.py", "musubi-tuner" },
        { "python sdxl_train_network.py --output_dir x", "sd-scripts" },
        { "python train_dreambooth_lora_sdxl.py", "accelerate" },
        { "python train.py", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(resume_trainer(scratch_command(cases[i].command)), cases[i].trainer);
}

static void reads_and_writes_options(void)
{
    struct arena a = { 0 };
    CHECK_STR(resume_option(scratch_command("t --output_dir x"), "--output_dir"), "x");
    CHECK_STR(resume_option(scratch_command("t --output_dir=y"), "--output_dir"), "y");
    CHECK_STR(resume_option(scratch_command("t --output_dir"), "--output_dir"), NULL);
    CHECK_STR(resume_option(scratch_command("t --output_dirs x"), "--output_dir"), NULL);
    char **argv = resume_with_option(scratch_command("t --resume old -v"), "--resume", "new", &a);
    CHECK_STR(argv[2], "new");
    CHECK_STR(argv[3], "-v");
    argv = resume_with_option(scratch_command("t --resume=old"), "--resume", "new", &a);
    CHECK_STR(argv[1], "--resume=new");
    argv = resume_with_option(scratch_command("t -v"), "--resume", "new", &a);
    CHECK_STR(argv[2], "--resume");
    CHECK_STR(argv[3], "new");
    CHECK(argv[4] == NULL);
    arena_release(&a);
}

static void takes_the_newest_whole_state(void)
{
    static const char *const whole[] = { "optimizer.bin", "random_states_0.pkl" };
    struct arena a = { 0 };
    struct resume r;
    char text[512];
    make_state("lora-000001-state", whole, 2, 300);
    make_state("lora-000002-state", whole, 2, 200);
    make_state("lora-000003-state", whole, 1, 100); /* cut short */
    make_state("lora-000004", whole, 2, 50);        /* no state */
    snprintf(text, sizeof(text), "python wan_train_network.py --output_dir %s", scratch("out"));
    resume_find(scratch_command(text), NULL, NULL, &a, &r);
    CHECK_INT(r.way, RESUME_STATE);
    CHECK_STR(r.from, scratch("out/lora-000002-state"));
    CHECK_STR(r.argv[4], "--resume");
    CHECK_STR(r.argv[5], scratch("out/lora-000002-state"));
    arena_release(&a);
}

static void an_empty_file_is_no_state(void)
{
    struct arena a = { 0 };
    struct resume r;
    char text[512];
    scratch_file("empty/lora-state/optimizer.bin", "x");
    scratch_file("empty/lora-state/random_states_0.pkl", "");
    snprintf(text, sizeof(text), "python wan_train_network.py --output_dir=%s", scratch("empty"));
    resume_find(scratch_command(text), NULL, NULL, &a, &r);
    CHECK_INT(r.way, RESUME_UNKNOWN);
    CHECK_HAS(r.why, "--save_state");
    arena_release(&a);
}

static void transformers_and_diffusers_resume_from_checkpoints(void)
{
    static const char *const trainer_files[] = { "optimizer.pt", "trainer_state.json" };
    struct arena a = { 0 };
    struct resume r;
    char text[512];
    make_state("checkpoint-500", trainer_files, 2, 10);
    make_state("checkpoint-1000", trainer_files, 1, 5);
    snprintf(text, sizeof(text), "python run_clm.py --output_dir %s --resume_from_checkpoint old",
             scratch("out"));
    resume_find(scratch_command(text), NULL, NULL, &a, &r);
    CHECK_INT(r.way, RESUME_STATE);
    CHECK_STR(r.argv[4], "--resume_from_checkpoint");
    CHECK_STR(r.argv[5], scratch("out/checkpoint-500"));
    arena_release(&a);
}

static void others_say_themselves_or_have_to_be_told(void)
{
    struct arena a = { 0 };
    struct resume r;
    char **same = scratch_command("python train.py");
    resume_find(same, "ostris", NULL, &a, &r);
    CHECK_INT(r.way, RESUME_ITSELF);
    CHECK(r.argv == same);
    resume_find(scratch_command("python train.py"), NULL, NULL, &a, &r);
    CHECK_INT(r.way, RESUME_UNKNOWN);
    CHECK_HAS(r.why, "--resume-cmd");
    resume_find(scratch_command("python train.py"), "onetrainer", NULL, &a, &r);
    CHECK_INT(r.way, RESUME_UNKNOWN);
    CHECK_HAS(r.why, "onetrainer");
    resume_find(scratch_command("python train.py"), NULL, "python train.py --continue", &a, &r);
    CHECK_INT(r.way, RESUME_COMMAND);
    CHECK_STR(r.argv[2], "python train.py --continue");
    resume_find(scratch_command("python wan_train_network.py"), NULL, NULL, &a, &r);
    CHECK_INT(r.way, RESUME_UNKNOWN);
    CHECK_HAS(r.why, "--output_dir");
    arena_release(&a);
}

int main(void)
{
    RUN(knows_trainers_by_their_commands);
    RUN(reads_and_writes_options);
    RUN(takes_the_newest_whole_state);
    RUN(an_empty_file_is_no_state);
    RUN(transformers_and_diffusers_resume_from_checkpoints);
    RUN(others_say_themselves_or_have_to_be_told);
    return check_done();
}

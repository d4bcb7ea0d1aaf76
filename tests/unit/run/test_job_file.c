/* SPDX-License-Identifier: Apache-2.0 */
#include "run/job_file.h"

#include "check.h"
#include "scratch.h"

static struct arena arena;

static const char ai_toolkit[] = "---\n"
                                 "job: extension\n"
                                 "config:\n"
                                 "  name: mine\n"
                                 "  process:\n"
                                 "    - type: 'diffusion_trainer'\n"
                                 "      training_folder: out\n"
                                 "      datasets:\n"
                                 "        - folder_path: /data/[name]/clips\n"
                                 "        - folder_path: /data/more\n"
                                 "      train:\n"
                                 "        optimizer: AdamW8bit\n"
                                 "      model:\n"
                                 "        low_vram: true\n"
                                 "meta:\n"
                                 "  version: '1.0'\n";

static bool has_folder(const struct job_file *f, const char *path, bool is_cache)
{
    for (size_t i = 0; i < f->n_folders; i++)
        if (!strcmp(f->folder[i].path, path) && f->folder[i].is_cache == is_cache)
            return true;
    return false;
}

static void jobs_of_ai_toolkit(void)
{
    struct job_file f;
    REQUIRE(job_file_read(scratch_file("a b/job.yaml", ai_toolkit), &arena, &f));
    CHECK_STR(f.trainer, "ai-toolkit");
    CHECK(!f.is_dataset);
    CHECK_STR(f.optimizer.value, "AdamW8bit");
    CHECK_STR(f.optimizer.key, "config.process[0].train.optimizer");
    CHECK_INT(f.optimizer.line, 12);
    CHECK_STR(f.low_vram.value, "true");
    CHECK(!f.offloading.value);
    CHECK(has_folder(&f, "/data/mine/clips", false) && has_folder(&f, "/data/more", false));
    CHECK_HAS(job_file_command(&f, &arena), "cairn run -- python run.py '");
    CHECK_HAS(job_file_optimizer(&f, &arena), "train.optimizer: adamw ");
    CHECK(job_file_read(
        scratch_file("job.json",
                     "{\"job\": \"extension\", \"config\": {\"name\": \"n\", \"process\": "
                     "[{\"type\": \"sd_trainer\", \"train\": {\"optimizer\": \"prodigy8bit\"}}]}}"),
        &arena, &f));
    CHECK_STR(f.trainer, "ai-toolkit");
    CHECK(!job_file_optimizer(&f, &arena)); /* its own */
}

static void datasets_of_musubi(void)
{
    struct job_file f;
    REQUIRE(job_file_read(
        scratch_file("d.toml", "[general]\nresolution = [960, 544]\n"
                               "[[datasets]]\nvideo_directory = '/v'\ncache_directory = '/c'\n"
                               "[[datasets]]\nimage_directory = '/i'\n"
                               "[[datasets]]\nimage_jsonl_file = '/l.jsonl'\ncache_directory = '/k'\n"),
        &arena, &f));
    CHECK_STR(f.trainer, "musubi-tuner");
    CHECK(f.is_dataset);
    CHECK_INT(f.n_folders, 3);
    CHECK(has_folder(&f, "/c", true) && has_folder(&f, "/i", true) && has_folder(&f, "/k", true));
    CHECK_HAS(job_file_command(&f, &arena), "--dataset_config /");
}

static void options_in_files(void)
{
    struct job_file f, *all;
    char text[1024], command[1024];
    scratch_file("set.toml", "[[datasets]]\n  [[datasets.subsets]]\n  image_dir = '/pics'\n");
    REQUIRE(job_file_read(scratch("set.toml"), &arena, &f));
    CHECK_STR(f.trainer, "sd-scripts");
    snprintf(
        text, sizeof(text),
        "[model]\ndit = 'wan.safetensors'\n[train]\noptimizer_type = 'AdamW8bit'\ndataset_config = '%s'\n"
        "output_dir = '/out'\n",
        scratch("set.toml"));
    REQUIRE(job_file_read(scratch_file("options.toml", text), &arena, &f));
    CHECK_STR(f.trainer, "musubi-tuner");
    CHECK_STR(f.optimizer.key, "optimizer_type");
    CHECK_HAS(job_file_command(&f, &arena), "--config_file /");
    snprintf(command, sizeof(command), "accelerate launch t.py --config_file %s", scratch("options.toml"));
    CHECK_INT(job_files_of(scratch_command(command), &arena, &all), 2); /* and the datasets that it names */
    CHECK_STR(all[1].path, scratch("set.toml"));
    snprintf(command, sizeof(command), "accelerate launch --config_file %s t.py --config_file=%s",
             scratch_file("accelerate.yaml", "num_processes: 1\n"), scratch("options.toml"));
    CHECK_INT(job_files_of(scratch_command(command), &arena, &all), 2);
    REQUIRE(job_file_read(
        scratch_file("pipe.toml", "output_dir = '/o'\n[model]\ntype = 'wan'\n[optimizer]\ntype = 'adamw'\n"),
        &arena, &f));
    CHECK_STR(f.trainer, "diffusion-pipe");
}

static void what_is_none_of_them(void)
{
    struct job_file f, *all;
    CHECK(!job_file_read(scratch_file("own.yaml", "model:\n  layers: 2\ndata:\n  path: x\n"), &arena, &f));
    CHECK(!job_file_read(scratch_file("list.yaml", "- a\n- b\n"), &arena, &f));
    CHECK(!job_file_read(scratch_file("odd.yaml", "job: x\nconfig: 3\n"), &arena, &f));
    CHECK(!job_file_read(scratch_file("broken.toml", "[[datasets\n"), &arena, &f));
    CHECK(!job_file_read(scratch_file("empty.toml", ""), &arena, &f));
    CHECK(!job_file_read(scratch_file("odd.toml", "datasets = [1, 2]\n"), &arena, &f));
    CHECK(!job_file_read(scratch("not-there.yaml"), &arena, &f));
    CHECK_INT(job_files_of(scratch_command("python run.py not-there.yaml --config x.toml"), &arena, &all), 0);
}

int main(void)
{
    RUN(jobs_of_ai_toolkit);
    RUN(datasets_of_musubi);
    RUN(options_in_files);
    RUN(what_is_none_of_them);
    arena_release(&arena);
    return check_done();
}

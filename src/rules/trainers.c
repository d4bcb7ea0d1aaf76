/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/trainers.h"

#include "base/str.h"
#include "rules/env_names.h"
#include "rules/env_sources.h"
#include <string.h>
#include <strings.h>

static const struct trainer trainers[] = {
    { "ai-toolkit", "aitoolkit ostris" },
    { "musubi-tuner", "musubi" },
    { "sd-scripts", "sdscripts" },
    { "kohya_ss", "kohya kohya-ss" },
    { "onetrainer", "ot" },
    { "simpletuner", "simple-tuner" },
    { "diffusion-pipe", "diffusionpipe" },
    { "unsloth", NULL },
    { "comfyui", "comfy" },
    { "accelerate", "diffusers transformers" },
};

/* clang-format off */
static const struct env_note notes[] = {
    { .when = { .trainer = "ai-toolkit" }, .source = "https://github.com/ostris/ai-toolkit/pull/563",
      .text = "ai-toolkit sets nothing for ROCm, and its web pages query nvidia-smi, so they show no GPU "
              "unless you start them with `cairn run --with-smi`; jobs started from the command line train "
              "anyway" },
    { .when = { .trainer = "ai-toolkit", .unified = TRI_YES }, .source = "https://github.com/ostris/ai-toolkit",
      .text = "layer offload copies memory to itself on this machine: leave it off" },
    { .when = { .trainer = "musubi-tuner", .unified = TRI_YES },
      .source = "https://github.com/huggingface/transformers/pull/44791",
      .text = "memory-mapped weights take memory twice here (file cache and GPU): give musubi-tuner its "
              "options against mapping (--disable_numpy_memmap where available), and no --blocks_to_swap" },
    { .when = { .trainer = "musubi-tuner", .family = "RDNA3 RDNA3.5 RDNA4" },
      .source = "https://github.com/kohya-ss/musubi-tuner/pull/592",
      .text = "caching latents uses many shapes, and MIOpen searches for each: try --with "
              "MIOPEN_FIND_MODE=FAST for that step" },
    { .when = { .trainer = "sd-scripts", .unified = TRI_YES }, .source = "https://github.com/kohya-ss/sd-scripts",
      .text = "block swap copies memory to itself on this machine: leave it off" },
    { .when = { .trainer = "kohya_ss" }, .source = "https://github.com/bmaltais/kohya_ss/issues/3470",
      .text = "install from kohya_ss' ROCm requirements file; the default one installs CUDA wheels" },
    { .when = { .trainer = "onetrainer" }, .source = "https://github.com/Nerogar/OneTrainer",
      .text = "OneTrainer's installer looks for NVIDIA first; OT_PLATFORM_REQUIREMENTS selects the ROCm "
              "list, which has no 8-bit optimizers" },
    { .when = { .trainer = "simpletuner" }, .source = SRC_TORCH_TUNABLE,
      .text = "SimpleTuner sets PYTORCH_TUNABLEOP_ENABLED=1 itself: the first steps benchmark matmuls, and "
              "any upgrade invalidates the results" },
    { .when = { .trainer = "diffusion-pipe" }, .source = "https://github.com/tdrussell/diffusion-pipe",
      .text = "diffusion-pipe needs nvcc and DeepSpeed; build DeepSpeed for ROCm" },
    { .when = { .trainer = "diffusion-pipe", .unified = TRI_YES },
      .source = "https://github.com/tdrussell/diffusion-pipe",
      .text = "block swap copies memory to itself on this machine: leave it off" },
    { .when = { .trainer = "unsloth" }, .source = "https://github.com/unslothai/unsloth/pull/8821",
      .text = "unsloth sets the AOTriton flag on import and limits its own memory fraction" },
    { .when = { .trainer = "comfyui", .family = "RDNA3 RDNA3.5 RDNA4" }, .source = SRC_COMFY,
      .text = "ComfyUI disables MIOpen on this chip; COMFYUI_ENABLE_MIOPEN=1 keeps it" },
    { .when = { .trainer = "accelerate" }, .source = SRC_ACCELERATE,
      .text = "Accelerate forces fp32 communication for DeepSpeed with bf16 on ROCm, to avoid NaN weights" },
    { .text = NULL },
};
/* clang-format on */

const struct trainer *trainer_at(size_t i)
{
    return i < ARRAY_LEN(trainers) ? &trainers[i] : NULL;
}

const struct env_note *trainer_notes(void)
{
    return notes;
}

static bool has_alias(const struct trainer *t, const char *name)
{
    char lower[64];
    size_t n = strlen(name);
    if (!t->aliases || n >= sizeof(lower))
        return false;
    for (size_t i = 0; i <= n; i++)
        lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 'a' - 'A') : name[i];
    return str_list_has(t->aliases, ' ', lower);
}

const struct trainer *trainer_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(trainers); i++)
        if (!strcasecmp(trainers[i].name, name) || has_alias(&trainers[i], name))
            return &trainers[i];
    return NULL;
}

const char *trainer_nearest(const char *name)
{
    const char *best = NULL;
    size_t least = strlen(name) / 2 + 1;
    for (size_t i = 0; i < ARRAY_LEN(trainers); i++) {
        size_t d = env_name_distance(name, trainers[i].name);
        if (d < least) {
            least = d;
            best = trainers[i].name;
        }
    }
    return best;
}

/* SPDX-License-Identifier: Apache-2.0
 * The task that trains a LoRA for a Wan video model, from caches of latents and captions. */
#ifndef CAIRN_TRAIN_TASK_WAN_H
#define CAIRN_TRAIN_TASK_WAN_H

#include "nn/wan_find.h"
#include "tensor/lora_names.h"
#include "train/lora_files.h"
#include "train/task.h"
#include "video/flow_time.h"

enum wan_experts { WAN_TRAIN_AUTO, WAN_TRAIN_LOW, WAN_TRAIN_HIGH, WAN_TRAIN_BOTH };
extern const char *const wan_experts_words[];
enum wan_lora_experts { WAN_LORA_ONE, WAN_LORA_TWO };
enum wan_save_dtype { WAN_SAVE_BF16, WAN_SAVE_F16, WAN_SAVE_F32 };
enum wan_encoder_device { WAN_ENCODER_AUTO, WAN_ENCODER_CPU };
enum wan_sample_solver { WAN_SAMPLE_UNIPC, WAN_SAMPLE_EULER };
enum wan_sample_format { WAN_SAMPLE_AUTO, WAN_SAMPLE_PNG, WAN_SAMPLE_JPEG, WAN_SAMPLE_WEBP, WAN_SAMPLE_MP4 };
enum wan_save_format { WAN_SAVE_COMFY, WAN_SAVE_MUSUBI, WAN_SAVE_DIFFUSERS };

/* The keys that model.kind: wan adds. */
struct wan_keys {
    struct {
        const char *high_noise_path;
        const char *task; /* "": by the files */
        enum wan_experts expert;
        int64_t heads;
        double boundary; /* 0: the task's */
        const char *vae_path, *text_encoder_path, *tokenizer_path;
    } model;
    struct {
        enum wan_lora_experts experts;
        const char *high_noise_path; /* "": lora.path has both */
    } lora;
    struct {
        struct config_list path;
        double val_split;
        const char *size; /* "": by the caches */
        struct config_list resolution, frames;
        double fps;
        const char *extraction; /* "": from the start, as many as fit */
        const char *caption_extension, *caption_default, *trigger;
        double caption_dropout;
        bool buckets, upscale, flip;
        int64_t repeats;
    } data;
    struct {
        const char *dir;
        enum wan_save_dtype dtype;
        bool repair;
    } cache;
    struct {
        enum wan_encoder_device device;
    } text_encoder, vae;
    struct {
        bool first; /* before the first step too */
        struct config_list prompts;
        const char *file; /* of prompts; "": none */
        const char *negative;
        const char *size; /* "": the largest of the data */
        double fps;       /* 0: the model's */
        int64_t steps;
        double cfg, cfg_high, shift; /* 0: the task's */
        enum wan_sample_solver solver;
        int64_t seed;
        bool walk_seed;
        struct config_list loras; /* "FILE" or "FILE:STRENGTH" */
        enum wan_sample_format format;
    } sample;
    struct {
        enum flow_recipe recipe;
        const char *timesteps; /* "": the recipe's */
        double shift;          /* 0: the task's */
        double sigmoid_scale, logit_mean, logit_std, mode_scale;
        const char *weighting;
        double min_timestep, max_timestep;
        bool preserve_distribution_shape;
        int64_t timestep_buckets;
        const char *content_or_style;
        int64_t switch_every;
        bool clean_first_frame;
    } train;
    struct {
        enum wan_save_format format;
        enum wan_save_dtype dtype;
        enum lora_files_style files;
        const char *name; /* "": the run's */
        bool split;
        int64_t epochs;          /* 0: none */
        struct config_list meta; /* "KEY=VALUE" */
    } save;
};
/* A clip as people see it. */
struct wan_pixels {
    size_t width, height, frames;
};
/* "832x480x81", or "832x480" for an image.  CAIRN_EUSAGE says the form. */
int wan_pixels_parse(const char *text, struct wan_pixels *out, struct cairn_error *err);
extern const struct config_schema wan_schema;
const struct wan_keys *wan_keys(const struct job_config *c);
/* Of keys that the recipe does not use. */
void wan_keys_warn(const struct job_config *c, const struct message_sink *sink);

extern const struct task_ops task_wan;

#endif

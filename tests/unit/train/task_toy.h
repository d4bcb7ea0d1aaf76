/* SPDX-License-Identifier: Apache-2.0
 * A task with the shape of a video LoRA, for tests of the training engine: model.kind is toy.
 *
 * Clips come in two sizes.  A helper network, as a VAE is one, makes latents of them on the device before the model is
 * there, is freed, and comes back to decode samples.  Steps train the two experts of the model in turn, several in a row each. */
#ifndef CAIRN_TESTS_UNIT_TRAIN_TASK_TOY_H
#define CAIRN_TESTS_UNIT_TRAIN_TASK_TOY_H

#include "toy_model.h"
#include "train/task.h"

enum toy_experts_word { TOY_LORA_SHARED, TOY_LORA_EACH };

/* The keys that model.kind: toy adds. */
struct toy_keys {
    struct {
        int64_t layers, width, ffn, switch_every;
        double boundary;
    } model;
    struct {
        enum toy_experts_word experts;
    } lora;
    struct {
        int64_t clips, val_clips, channels, small, large;
    } data;
    struct {
        int64_t count;
        bool alone;
    } sample;
    struct {
        double scale;
    } cache;
};

extern const struct task_ops task_toy;

#endif

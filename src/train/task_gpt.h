/* SPDX-License-Identifier: Apache-2.0
 * The task that trains a GPT on text. */
#ifndef CAIRN_TRAIN_TASK_GPT_H
#define CAIRN_TRAIN_TASK_GPT_H

#include "nn/gpt.h"
#include "text/tokenizer.h"
#include "train/sample.h"
#include "train/task.h"

enum gpt_norm_word { GPT_NORM_LAYER, GPT_NORM_RMS };
enum gpt_position { GPT_POSITION_LEARNED, GPT_POSITION_ROPE };
enum gpt_mlp { GPT_MLP_GELU, GPT_MLP_SWIGLU };

struct gpt_model_keys {
    int64_t layers, heads, kv_heads, width, ffn, context;
    int64_t vocab; /* 0 until the tokenizer is known */
    enum gpt_norm_word norm;
    double norm_eps;
    enum gpt_position position;
    double rope_theta;
    enum gpt_mlp mlp;
    bool bias, tied;
    double dropout, init_std;
};
struct gpt_data {
    struct config_list path;
    const char *text_key;
    const char *tokenizer; /* "bytes", "bpe", or a file */
    int64_t vocab;
    const char *val_path; /* "": val_split decides */
    double val_split;
};
/* The keys that model.kind: gpt adds. */
struct gpt_keys {
    struct gpt_model_keys model;
    struct gpt_data data;
    struct {
        int64_t seq;
        double label_smoothing;
    } train;
    struct {
        int64_t tokens;
        double temperature;
        int64_t top_k;
        struct config_list prompts;
    } sample;
};
extern const struct config_schema gpt_schema;
const struct gpt_keys *gpt_keys(const struct job_config *c);

extern const struct task_ops task_gpt;

/* The sampler of a task whose model has its weights; it belongs to the task. */
int task_gpt_sampler(struct task *t, struct sampler **out, struct cairn_error *err);

#endif

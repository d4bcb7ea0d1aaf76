/* SPDX-License-Identifier: Apache-2.0
 * The keys that every job has.  A kind of job adds its own (task_gpt_keys.c). */
#include "train/config_rows.h"

/* clang-format off */
static const char *const quantizes[] = { [CONFIG_QUANTIZE_NONE] = "none", [CONFIG_QUANTIZE_INT8] = "int8",
    [CONFIG_QUANTIZE_FP8] = "fp8", NULL };
static const char *const schedules[] = { [CONFIG_SCHEDULE_COSINE] = "cosine", [CONFIG_SCHEDULE_LINEAR] = "linear",
    [CONFIG_SCHEDULE_CONSTANT] = "constant",
    [CONFIG_SCHEDULE_RESTARTS] = "restarts", [CONFIG_SCHEDULE_POLYNOMIAL] = "polynomial", [CONFIG_SCHEDULE_REX] = "rex", NULL };
static const char *const dtypes[] = { [CONFIG_DTYPE_AUTO] = "auto", [CONFIG_DTYPE_F32] = "f32",
    [CONFIG_DTYPE_BF16] = "bf16", [CONFIG_DTYPE_F16] = "f16", NULL };
static const char *const masters[] = { [CONFIG_MASTER_F32] = "f32", [CONFIG_MASTER_NONE] = "none",
    [CONFIG_MASTER_STOCHASTIC] = "stochastic", NULL };
static const char *const recomputes[] = { [CONFIG_RECOMPUTE_NONE] = "none", [CONFIG_RECOMPUTE_BLOCKS] = "blocks", NULL };
static const char *const reduces[] = { [CONFIG_REDUCE_FAST] = "fast", [CONFIG_REDUCE_EXACT] = "exact", NULL };
static const char *const places[] = { [CONFIG_PLACE_AUTO] = "auto", [CONFIG_PLACE_DEVICE] = "device",
    [CONFIG_PLACE_HOST] = "host", NULL };
static const char *const idle_places[] = { [CONFIG_PLACE_AUTO] = "auto", [CONFIG_PLACE_DEVICE] = "device",
    [CONFIG_PLACE_HOST] = "host", [CONFIG_PLACE_FILE] = "file", NULL };

const struct config_section config_sections[] = {
    { "model", "the network and its starting weights" },
    { "lora", "low-rank adapters, trained while the model's own weights stay frozen" },
    { "data", "training and validation data" },
    { "train", "batches, optimizer, learning rate and number formats" },
    { "memory", "limits, and what is offloaded when memory is short" },
    { "eval", "loss on the validation data" },
    { "sample", "samples generated during training" },
    { "checkpoint", "what --resume continues from" },
    { "dist", "several processes that train together (docs/ranks.md)" },
    { "run", "where the run's files are written" },
};
const size_t n_config_sections = ARRAY_LEN(config_sections);

#define KEY(...) CONFIG_KEY(struct job_config, __VA_ARGS__)

const struct config_key config_keys[] = {
    KEY(model.kind, "gpt", "kind of model", .words = config_kinds),
    KEY(model.path, "", "pretrained model: a folder, a .safetensors file or a run; empty: new random weights", IS_PATH),
    KEY(model.quantize, "none", "format of the frozen weights; needs lora.rank", .words = quantizes),

    KEY(lora.rank, "0", "rank of the adapters; 0: no LoRA, train all weights", FROM(0, 65536)),
    KEY(lora.alpha, "0", "adapter output is scaled by alpha / rank; 0: same as rank", FROM(0, 1000000)),
    KEY(lora.dropout, "0", "dropout on the adapters' input during training", UNIT("share"), SHARE),
    KEY(lora.targets, "[]", "names of linear layers, with * and ?; []: every linear layer of the blocks"),
    KEY(lora.plus, "1", "LoRA+: learning rate of the B matrices divided by that of A; 16 is usual, 1 is off",
        ABOVE_0(1000000)),
    KEY(lora.path, "", "LoRA to start from: a file, a PEFT folder or a run; it gives rank and alpha if they are not set", IS_PATH),

    KEY(train.steps, "1000", "optimizer steps", UNIT("steps"), FROM(1, MANY)),
    KEY(train.batch, "8", "samples per forward pass", UNIT("samples"), FROM(1, 1000000)),
    KEY(train.accumulate, "1", "gradient accumulation: batches per optimizer step", UNIT("batches"), FROM(1, 1000000)),
    KEY(train.lr, "3e-4", "peak learning rate; prodigy multiplies its own estimate by it and defaults to 1",
        ABOVE_0(100)),
    KEY(train.min_lr, "0.1", "final learning rate as a share of lr; not used with constant", UNIT("share"), FROM(0, 1)),
    KEY(train.warmup, "100", "warmup, in steps; if not set, at most a tenth of train.steps", UNIT("steps"),
        FROM(0, MANY)),
    KEY(train.schedule, "cosine", "learning rate schedule after the warmup; restarts: cosine with hard restarts", .words = schedules),
    KEY(train.cycles, "1", "schedule restarts: how often the cosine is gone through", FROM(1, 1000000)),
    KEY(train.power, "1", "schedule polynomial: its exponent", ABOVE_0(1000)),
    KEY(train.optimizer, "adamw", "adamw8 has 8-bit state, adafactor has almost none; prodigy estimates its own learning rate",
        .words = optim_names),
    KEY(train.beta1, "0.9", "decay of the first moment (mean of the gradient)", SHARE),
    KEY(train.beta2, "0.95", "decay of the second moment (mean square of the gradient)", SHARE),
    KEY(train.eps, "1e-8", "added to the optimizer's denominators for stability", ABOVE_0(1)),
    KEY(train.weight_decay, "0.1", "weight decay; not applied to norms and biases", FROM(0, 10)),
    KEY(train.clip, "1.0", "gradient clipping: largest gradient norm; 0: no clipping", FROM(0, 1000000)),
    KEY(train.relative_step, "false", "adafactor: use 1 / sqrt(step), at most 0.01, instead of lr"),
    KEY(train.scale_parameter, "false", "adafactor: scale updates by the RMS of the weights"),
    KEY(train.d0, "1e-6", "prodigy: initial estimate of the learning rate", ABOVE_0(1)),
    KEY(train.d_coef, "1", "prodigy: factor on the estimate", ABOVE_0(1000)),
    KEY(train.growth_rate, "0", "prodigy: largest growth of the estimate per step, e.g. 1.02; 0: no limit",
        FROM(0, 1000000)),
    KEY(train.safeguard_warmup, "false", "prodigy: leave the warmup out of the estimate"),
    KEY(train.bias_correction, "false", "prodigy: Adam's bias correction"),
    KEY(train.seed, "1", "random seed for new weights, data order, dropout and samples", FROM(0, 9007199254740992)),
    KEY(train.dtype, "auto", "number format of weights and activations; auto: the best one for the device", .words = dtypes),
    KEY(train.master, "f32", "master copy of 16-bit weights: f32, none, or none with stochastic rounding", .words = masters),
    KEY(train.recompute, "none", "blocks: gradient checkpointing, saves only each block's input",
        .words = recomputes),
    KEY(train.ema, "0", "decay of the moving average (EMA) of the weights, which samples show and each checkpoint has too; 0: none", SHARE),
    KEY(train.patience, "0", "early stopping: evaluations without a better validation loss; 0: never stop early", UNIT("evaluations"),
        FROM(0, MANY)),
    KEY(train.device, "auto", "device to train on: auto, cpu, hip:N or cuda:N"),
    KEY(train.allow_cpu, "false", "fall back to the CPU if the GPU is missing or fails"),

    KEY(memory.limit, "0", "device memory to use, or host memory when training on the CPU; 0: all that is available", UNIT("GiB"), FROM(0, 1048576)),
    KEY(memory.low_vram, "false", "use as little device memory as possible: optimizer, blocks and their inputs in host memory, gradient checkpointing"),
    KEY(memory.optimizer, "auto", "where the optimizer state lives; auto: on the device, offloaded to the host if memory is short", .words = places),
    KEY(memory.blocks, "auto", "where the frozen weights of a LoRA job live; auto: as many blocks in host memory as do not fit on the device; a number: so many", .words = places, FROM(0, 100000)),
    KEY(memory.inputs, "auto", "where the inputs of the blocks wait for the backward pass; auto: as for memory.optimizer; not with gpt", .words = places),
    KEY(memory.idle, "auto", "of a model with two experts, where the frozen weights of the one that is not in use live; file: nowhere, they are read again", .words = idle_places),

    KEY(eval.every, "100", "steps between evaluations; 0: none", UNIT("steps"), FROM(0, MANY)),
    KEY(eval.batches, "20", "batches per evaluation", UNIT("batches"), FROM(1, 1000000)),

    KEY(sample.every, "0", "steps between samples; 0: none", UNIT("steps"), FROM(0, MANY)),

    KEY(checkpoint.every, "100", "steps between checkpoints; 0: only one at the end", UNIT("steps"), FROM(0, MANY)),
    KEY(checkpoint.keep, "3", "newest checkpoints to keep; 0: all", FROM(0, 1000000)),
    KEY(checkpoint.async, "true", "write checkpoints in the background while training goes on"),

    KEY(dist.reduce, "fast", "exact: sum gradients in a fixed binary tree, so that 1, 2, 4, 8 ... ranks compute the same bits", .words = reduces),
    KEY(dist.timeout, "600", "how long a step waits for another rank before the job ends", UNIT("seconds"), FROM(1, 1000000)),

    KEY(run.dir, "", "folder of the run; empty: create a new one", IS_PATH),
    KEY(run.name, "", "name of the run in lists and plots; empty: the name of the configuration file"),
};
const size_t n_config_keys = ARRAY_LEN(config_keys);
/* clang-format on */

/* SPDX-License-Identifier: Apache-2.0
 * The keys that every job has.  A kind of job adds its own (task_gpt_keys.c). */
#include "train/config_rows.h"

/* clang-format off */
static const char *const quantizes[] = { [CONFIG_QUANTIZE_NONE] = "none", [CONFIG_QUANTIZE_INT8] = "int8",
    [CONFIG_QUANTIZE_FP8] = "fp8", NULL };
static const char *const schedules[] = { [CONFIG_SCHEDULE_COSINE] = "cosine", [CONFIG_SCHEDULE_LINEAR] = "linear",
    [CONFIG_SCHEDULE_CONSTANT] = "constant", NULL };
static const char *const dtypes[] = { [CONFIG_DTYPE_AUTO] = "auto", [CONFIG_DTYPE_F32] = "f32",
    [CONFIG_DTYPE_BF16] = "bf16", [CONFIG_DTYPE_F16] = "f16", NULL };
static const char *const masters[] = { [CONFIG_MASTER_F32] = "f32", [CONFIG_MASTER_NONE] = "none",
    [CONFIG_MASTER_STOCHASTIC] = "stochastic", NULL };
static const char *const recomputes[] = { [CONFIG_RECOMPUTE_NONE] = "none", [CONFIG_RECOMPUTE_BLOCKS] = "blocks", NULL };
static const char *const places[] = { [CONFIG_PLACE_AUTO] = "auto", [CONFIG_PLACE_DEVICE] = "device",
    [CONFIG_PLACE_HOST] = "host", NULL };

const struct config_section config_sections[] = {
    { "model", "the network" },
    { "lora", "small matrices that are trained instead of the network" },
    { "data", "what it learns from" },
    { "train", "how it learns" },
    { "memory", "what may be used of it, and what gives way when it is short" },
    { "eval", "the loss on text that it does not learn from" },
    { "sample", "text that it writes now and then" },
    { "checkpoint", "what a run can be taken up from again" },
    { "run", "where it all goes" },
};
const size_t n_config_sections = ARRAY_LEN(config_sections);

#define KEY(...) CONFIG_KEY(struct job_config, __VA_ARGS__)

const struct config_key config_keys[] = {
    KEY(model.kind, "gpt", "what kind of network", .words = config_kinds),
    KEY(model.path, "", "folder or .safetensors file to start from, or a run; empty: new weights"),
    KEY(model.quantize, "none", "how the weights that are not trained are kept; needs lora.rank", .words = quantizes),

    KEY(lora.rank, "0", "rank of the matrices; 0: no LoRA, all weights are trained", FROM(0, 65536)),
    KEY(lora.alpha, "0", "their product is scaled by alpha / rank; 0: alpha is the rank", FROM(0, 1000000)),
    KEY(lora.dropout, "0", "share of a LoRA's input that is dropped in training", UNIT("share"), SHARE),
    KEY(lora.targets, "[]", "names of linears, with * and ?; none: every linear of the blocks"),

    KEY(train.steps, "1000", "steps of the optimizer", UNIT("steps"), FROM(1, MANY)),
    KEY(train.batch, "8", "sequences that go through the network at once", UNIT("sequences"), FROM(1, 1000000)),
    KEY(train.accumulate, "1", "batches whose gradients make one step", UNIT("batches"), FROM(1, 1000000)),
    KEY(train.lr, "3e-4", "learning rate, at its highest; not given: 1 for prodigy, which multiplies its own by it",
        ABOVE_0(100)),
    KEY(train.min_lr, "0.1", "learning rate at the end, as a share of lr; not for constant", UNIT("share"), FROM(0, 1)),
    KEY(train.warmup, "100", "steps in which the rate rises to lr; not given: at most a tenth of steps", UNIT("steps"),
        FROM(0, MANY)),
    KEY(train.schedule, "cosine", "how the rate falls after that", .words = schedules),
    KEY(train.optimizer, "adamw", "adamw8 keeps its state in 8 bits, adafactor nearly none; prodigy finds its rate itself",
        .words = optim_names),
    KEY(train.beta1, "0.9", "decay of the mean gradient", SHARE),
    KEY(train.beta2, "0.95", "decay of the mean square of the gradient", SHARE),
    KEY(train.eps, "1e-8", "what the optimizer adds to a denominator", ABOVE_0(1)),
    KEY(train.weight_decay, "0.1", "how strongly weights are drawn to 0; not norms and biases", FROM(0, 10)),
    KEY(train.clip, "1.0", "largest norm of the gradient; 0: any", FROM(0, 1000000)),
    KEY(train.relative_step, "false", "adafactor: the rate is 1 / sqrt(step), at most 0.01, instead of lr"),
    KEY(train.scale_parameter, "false", "adafactor: steps in proportion to the size of the weights"),
    KEY(train.d0, "1e-6", "prodigy: its first estimate of the rate", ABOVE_0(1)),
    KEY(train.d_coef, "1", "prodigy: what its estimate is multiplied by", ABOVE_0(1000)),
    KEY(train.growth_rate, "0", "prodigy: how much the estimate may grow in a step, 1.02 is slow; 0: as it likes",
        FROM(0, 1000000)),
    KEY(train.safeguard_warmup, "false", "prodigy: the estimate does not follow a rate that is still rising"),
    KEY(train.bias_correction, "false", "prodigy: Adam's correction of the first steps"),
    KEY(train.seed, "1", "of new weights, the order of the data, dropout and samples", FROM(0, 9007199254740992)),
    KEY(train.dtype, "auto", "format of weights and activations; auto: what the device is best at", .words = dtypes),
    KEY(train.master, "f32", "beside 16-bit weights: a copy in f32; none; or none with stochastic rounding", .words = masters),
    KEY(train.recompute, "none", "blocks: keep their inputs only and compute them again, for less memory",
        .words = recomputes),
    KEY(train.ema, "0", "decay of a running mean of the weights, which is saved beside them; 0: none", SHARE),
    KEY(train.patience, "0", "stop after so many evaluations without a better loss; 0: never", UNIT("evaluations"),
        FROM(0, MANY)),
    KEY(train.device, "auto", "auto, cpu, hip:N or cuda:N"),
    KEY(train.allow_cpu, "false", "go on with the CPU where the GPU that device names is not there, or any GPU fails"),

    KEY(memory.limit, "0", "of the device's memory, or of the host's for the CPU; 0: what there is", UNIT("GiB"), FROM(0, 1048576)),
    KEY(memory.low_vram, "false", "with as little as can be: optimizer and blocks on the host, and recompute"),
    KEY(memory.optimizer, "auto", "where its state lives; auto: on the device, on the host when memory is short", .words = places),
    KEY(memory.blocks, "auto", "the same for the weights that LoRA leaves as they are", .words = places),

    KEY(eval.every, "100", "steps between evaluations; 0: none", UNIT("steps"), FROM(0, MANY)),
    KEY(eval.batches, "20", "batches of an evaluation", UNIT("batches"), FROM(1, 1000000)),

    KEY(sample.every, "0", "steps between samples; 0: none", UNIT("steps"), FROM(0, MANY)),

    KEY(checkpoint.every, "100", "steps between checkpoints; 0: only at the end", UNIT("steps"), FROM(0, MANY)),
    KEY(checkpoint.keep, "3", "how many of the latest are kept; 0: all", FROM(0, 1000000)),
    KEY(checkpoint.async, "true", "write them beside the training"),

    KEY(run.dir, "", "folder of the run; empty: a new one"),
    KEY(run.name, "", "what the run is called in lists and plots; empty: after its file"),
};
const size_t n_config_keys = ARRAY_LEN(config_keys);
/* clang-format on */

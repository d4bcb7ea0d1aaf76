/* SPDX-License-Identifier: Apache-2.0
 * Every option of wan_train_network.py, and what becomes of it. */
#include "train/foreign_musubi_inside.h"

#define KEY(option, type, key)                             \
    {                                                      \
        option, MUSUBI_##type, MUSUBI_KEY, key, NULL, NULL \
    }
#define OWN(option, type)                                   \
    {                                                       \
        option, MUSUBI_##type, MUSUBI_OWN, NULL, NULL, NULL \
    }
#define NOTED(option, type)                                   \
    {                                                         \
        option, MUSUBI_##type, MUSUBI_NOTED, NULL, NULL, NULL \
    }
#define WORD(option, use, key, words)                       \
    {                                                       \
        option, MUSUBI_WORD, MUSUBI_##use, key, words, NULL \
    }
#define REFUSED(option, type, why, remedy)                       \
    {                                                            \
        option, MUSUBI_##type, MUSUBI_REFUSED, why, NULL, remedy \
    }

/* clang-format off */
const struct musubi_option musubi_options[] = {
    /* model */
    WORD("task", OWN, NULL, "t2v-1.3B t2v-14B i2v-14B t2i-14B flf2v-14B t2v-1.3B-FC t2v-14B-FC i2v-14B-FC t2v-A14B i2v-A14B"),
    OWN("dit", TEXT),
    KEY("dit_high_noise", TEXT, "model.high_noise_path"),
    KEY("vae", TEXT, "model.vae_path"),
    KEY("t5", TEXT, "model.text_encoder_path"),
    NOTED("clip", TEXT),
    OWN("timestep_boundary", REAL),
    OWN("offload_inactive_dit", FLAG),
    NOTED("force_v2_1_time_embedding", FLAG), /* the same numbers, with less memory */
    OWN("fp8_base", FLAG),
    OWN("fp8_scaled", FLAG),
    NOTED("fp8_t5", FLAG),
    NOTED("vae_dtype", TEXT),
    NOTED("vae_cache_cpu", FLAG),
    REFUSED("one_frame", FLAG, "cairn has no one-frame mode", "remove it"),

    /* data */
    OWN("config_file", TEXT),
    OWN("dataset_config", TEXT),
    NOTED("max_data_loader_n_workers", INT),
    NOTED("persistent_data_loader_workers", FLAG),

    /* attention, compilation */
    NOTED("sdpa", FLAG),
    NOTED("flash_attn", FLAG),
    NOTED("flash3", FLAG),
    NOTED("sage_attn", FLAG),
    NOTED("xformers", FLAG),
    NOTED("split_attn", FLAG),
    NOTED("compile", FLAG),
    NOTED("compile_backend", TEXT),
    NOTED("compile_mode", TEXT),
    NOTED("compile_dynamic", TEXT),
    NOTED("compile_fullgraph", FLAG),
    NOTED("compile_cache_size_limit", INT),
    NOTED("cuda_allow_tf32", FLAG),
    NOTED("cuda_cudnn_benchmark", FLAG),
    NOTED("dynamo_backend", TEXT),
    NOTED("dynamo_mode", TEXT),
    NOTED("dynamo_fullgraph", FLAG),
    NOTED("dynamo_dynamic", FLAG),

    /* training */
    OWN("max_train_steps", INT),
    OWN("max_train_epochs", INT),
    KEY("seed", INT, "train.seed"),
    OWN("gradient_checkpointing", FLAG),
    OWN("gradient_checkpointing_cpu_offload", FLAG),
    KEY("gradient_accumulation_steps", INT, "train.accumulate"),
    WORD("mixed_precision", OWN, NULL, "no fp16 bf16"),
    OWN("optimizer_type", TEXT),
    OWN("optimizer_args", LIST),
    OWN("learning_rate", REAL),
    KEY("max_grad_norm", REAL, "train.clip"),
    OWN("lr_scheduler", TEXT),
    OWN("lr_warmup_steps", SHARE),
    OWN("lr_decay_steps", SHARE),
    OWN("lr_scheduler_num_cycles", INT),
    OWN("lr_scheduler_power", REAL),
    OWN("lr_scheduler_min_lr_ratio", REAL),
    OWN("lr_scheduler_timescale", INT),
    REFUSED("lr_scheduler_type", TEXT, "cairn cannot load a scheduler of Python", "use --lr_scheduler"),
    REFUSED("lr_scheduler_args", LIST, "cairn cannot load a scheduler of Python", "use --lr_scheduler"),

    /* memory */
    KEY("blocks_to_swap", INT, "memory.blocks"),
    NOTED("use_pinned_memory_for_block_swap", FLAG),
    NOTED("block_swap_h2d_only", FLAG),
    NOTED("block_swap_ring_size", INT),
    NOTED("img_in_txt_in_offloading", FLAG),
    NOTED("disable_numpy_memmap", FLAG),

    /* timesteps */
    WORD("timestep_sampling", OWN, NULL, "sigma uniform sigmoid shift flux_shift qwen_shift logsnr qinglong_flux qinglong_qwen"),
    OWN("discrete_flow_shift", REAL),
    KEY("sigmoid_scale", REAL, "train.sigmoid_scale"),
    WORD("weighting_scheme", KEY, "train.weighting", "none logit_normal mode cosmap sigma_sqrt"),
    KEY("logit_mean", REAL, "train.logit_mean"),
    KEY("logit_std", REAL, "train.logit_std"),
    KEY("mode_scale", REAL, "train.mode_scale"),
    KEY("min_timestep", INT, "train.min_timestep"),
    KEY("max_timestep", INT, "train.max_timestep"),
    KEY("preserve_distribution_shape", FLAG, "train.preserve_distribution_shape"),
    KEY("num_timestep_buckets", INT, "train.timestep_buckets"),
    NOTED("guidance_scale", REAL), /* of HunyuanVideo */
    REFUSED("show_timesteps", TEXT, "it shows the timesteps and trains nothing", "remove it"),

    /* LoRA */
    OWN("network_module", TEXT),
    OWN("network_dim", INT),
    OWN("network_alpha", REAL),
    OWN("network_dropout", REAL),
    OWN("network_args", LIST),
    KEY("network_weights", TEXT, "lora.path"),
    OWN("dim_from_weights", FLAG),
    REFUSED("base_weights", LIST, "cairn does not merge LoRAs into the model before it trains",
            "merge them into the file of the model, and name that with --dit"),
    REFUSED("base_weights_multiplier", LIST, "cairn does not merge LoRAs into the model before it trains",
            "merge them into the file of the model, and name that with --dit"),
    REFUSED("scale_weight_norms", REAL, "cairn does not limit the norm of the LoRA's weights",
            "remove it; a lower --learning_rate or --max_grad_norm keeps them small"),

    /* files */
    OWN("output_dir", TEXT),
    OWN("output_name", TEXT),
    OWN("save_every_n_epochs", INT),
    OWN("save_every_n_steps", INT),
    OWN("save_last_n_epochs", INT),
    OWN("save_last_n_steps", INT),
    NOTED("save_last_n_epochs_state", INT),
    NOTED("save_last_n_steps_state", INT),
    NOTED("save_state", FLAG), /* checkpoints always have it */
    NOTED("save_state_on_train_end", FLAG),
    WORD("save_precision", OWN, NULL, "float fp32 fp16 bf16"),
    REFUSED("resume", TEXT, "cairn cannot read the optimizer state of musubi-tuner",
            "--network_weights FILE starts from a LoRA; `cairn train --resume` continues a run of cairn"),
    NOTED("no_metadata", FLAG),
    OWN("training_comment", TEXT),
    OWN("metadata_title", TEXT),
    OWN("metadata_author", TEXT),
    OWN("metadata_description", TEXT),
    OWN("metadata_license", TEXT),
    OWN("metadata_tags", TEXT),
    OWN("metadata_reso", TEXT),
    OWN("metadata_arch", TEXT),

    /* samples */
    OWN("sample_prompts", TEXT),
    OWN("sample_every_n_steps", INT),
    OWN("sample_every_n_epochs", INT),
    OWN("sample_at_first", FLAG),

    /* logs, several machines, uploads */
    NOTED("logging_dir", TEXT),
    NOTED("log_with", TEXT),
    NOTED("log_prefix", TEXT),
    NOTED("log_tracker_name", TEXT),
    NOTED("log_tracker_config", TEXT),
    NOTED("log_config", FLAG),
    NOTED("wandb_run_name", TEXT),
    NOTED("wandb_api_key", TEXT),
    NOTED("ddp_timeout", INT),
    NOTED("ddp_gradient_as_bucket_view", FLAG),
    NOTED("ddp_static_graph", FLAG),
    NOTED("huggingface_repo_id", TEXT),
    NOTED("huggingface_repo_type", TEXT),
    NOTED("huggingface_path_in_repo", TEXT),
    NOTED("huggingface_token", TEXT),
    NOTED("huggingface_repo_visibility", TEXT),
    NOTED("save_state_to_huggingface", FLAG),
    REFUSED("resume_from_huggingface", FLAG, "cairn cannot read the optimizer state of musubi-tuner", "remove it"),
    NOTED("async_upload", FLAG),
};
/* clang-format on */
const size_t n_musubi_options = ARRAY_LEN(musubi_options);

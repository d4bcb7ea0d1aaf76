#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs of ai-toolkit: train, plan, cache and config convert.
. "$(dirname "$0")/lib.sh"

export TOOLKIT_DATA=/nowhere HF_HUB_CACHE=$tmp/hub
jobs=$data/toolkit

published_jobs_are_planned_or_refused()
{
    for job in "$jobs"/ok-*; do
        run plan "$job" --gfx gfx1151 --memory 128 --json
        status_is 0
    done
    for job in "$jobs"/no-*; do
        run plan "$job" --gfx gfx1151 --memory 128
        status_is 2
        err_has "$job:"
    done
}
it published_jobs_are_planned_or_refused

a_converted_job_plans_the_same()
{
    for job in ok-wan22-14b.yaml ok-filters.yaml ok-both.json ok-wan22-5b.yaml; do
        run config convert "$jobs/$job" -o converted.yaml
        status_is 0
        run plan "$jobs/$job" --gfx gfx1201 --memory 32 --json
        cp "$out" first.json
        run plan converted.yaml --gfx gfx1201 --memory 32 --json
        cmp -s first.json "$out" || fail "$job: the plans differ"
    done
}
it a_converted_job_plans_the_same

convert_refuses_what_is_no_job()
{
    run config convert "$jobs/no-lokr.yaml"
    status_is 2
    err_has no-lokr.yaml:9: network.type
    run config convert no-such-job.yaml
    status_is 1
    err_has no-such-job.yaml 'No such file'
    echo 'train: {steps: 3}' >own.yaml
    run config convert own.yaml
    status_is 2
    err_has own.yaml
    run config
    status_is 2
    run config convert
    status_is 2
    run config convert own.yaml --json
    status_is 2
    err_has --json
}
it convert_refuses_what_is_no_job

weights_that_are_not_here_are_named()
{
    run train "$jobs/ok-wan22-14b.yaml"
    status_is 2
    err_has ok-wan22-14b.yaml:29: model.name_or_path ai-toolkit/Wan2.2-T2V-A14B-Diffusers-bf16 "$tmp/hub"
    mkdir -p media
    cp "$data/media/still.png" media
    cp "$jobs/ok-wan22-14b.yaml" job.yaml
    run cache job.yaml
    status_is 2
    err_has job.yaml:29: model.name_or_path ai-toolkit/Wan2.2-T2V-A14B-Diffusers-bf16
}
it weights_that_are_not_here_are_named

snapshot=hub/models--Wan-AI--Wan2.1-T2V-1.3B-Diffusers/snapshots/0123abcd
make_hub()
{
    mkdir -p "$snapshot/transformer" "$snapshot/../../refs"
    printf 0123abcd >"$snapshot/../../refs/main"
    cp "$data/wan/tiny.safetensors" "$snapshot/transformer/diffusion_pytorch_model.safetensors"
    echo '{"num_attention_heads": 1}' >"$snapshot/transformer/config.json"
}

the_hubs_cache_is_searched()
{
    make_hub
    run config convert "$jobs/ok-wan21-1b.yaml"
    status_is 0
    out_has "$tmp/$snapshot"
    run plan "$jobs/ok-wan21-1b.yaml" --device cpu --json --set lora.rank=4
    status_is 0
    json_is 'd["parameters"] < 1e6'
    mkdir -p home .cache/huggingface
    cp -r hub home/hub
    HF_HUB_CACHE='' HF_HOME=$tmp/home run config convert "$jobs/ok-wan21-1b.yaml"
    out_has "$tmp/home/$snapshot"
    mv home/hub .cache/huggingface/hub
    HF_HUB_CACHE='' run config convert "$jobs/ok-wan21-1b.yaml"
    out_has "$tmp/.cache/huggingface/$snapshot"
    rm -r "$snapshot/../../refs"
    run config convert "$jobs/ok-wan21-1b.yaml"
    out_has "$tmp/$snapshot"
}
it the_hubs_cache_is_searched

a_missing_shard_is_an_error_of_the_key()
{
    make_hub
    rm "$snapshot/transformer/diffusion_pytorch_model.safetensors"
    echo '{"weight_map": {"patch_embedding.weight": "a-00001-of-00002.safetensors"}}' \
        >"$snapshot/transformer/diffusion_pytorch_model.safetensors.index.json"
    run plan "$jobs/ok-wan21-1b.yaml" --device cpu
    status_is 2
    err_has ok-wan21-1b.yaml:28: model.name_or_path a-00001-of-00002.safetensors
    rm "$snapshot/transformer/diffusion_pytorch_model.safetensors.index.json"
}
it a_missing_shard_is_an_error_of_the_key

a_job_that_is_started_again_goes_on()
{
    make_hub
    mkdir -p output/person_1b
    echo x >output/person_1b/x
    run train "$jobs/ok-wan21-1b.yaml" --device cpu
    status_is 2
    err_has output/person_1b 'not empty'
    mkdir -p output/person_1b/checkpoints
    run train "$jobs/ok-wan21-1b.yaml" --device cpu
    ! grep -q 'not empty' "$err" || fail 'it does not go on'
}
it a_job_that_is_started_again_goes_on

a_job_trains_samples_and_goes_on()
{
    small=$data/../../demo/models
    mkdir -p m/transformer m/vae m/text_encoder m/tokenizer media
    cp "$small/wan.safetensors" m/transformer/diffusion_pytorch_model.safetensors
    echo '{"num_attention_heads": 4}' >m/transformer/config.json
    cp "$small/vae.safetensors" m/vae/diffusion_pytorch_model.safetensors
    cp "$small/text_encoder.safetensors" m/text_encoder/model.safetensors
    cp "$small/tokenizer.json" m/tokenizer
    cp "$data/media/still.png" "$data/media/clip.mp4" media
    echo 'a red thing' >media/still.txt
    echo '[trigger] moves' >media/clip.txt
    cat >job.yaml <<'YAML'
job: extension
config:
  name: small
  process:
    - type: sd_trainer
      training_folder: runs
      device: cpu
      trigger_word: zqx
      network: {type: lora, linear: 4, linear_alpha: 4}
      save: {dtype: float16, save_every: 2}
      datasets:
        - {folder_path: media, caption_dropout_rate: 0.1, num_frames: 5, resolution: [32], num_repeats: 2}
      train: {steps: 2, optimizer: adamw8bit, lr: 1e-4, timestep_type: sigmoid, dtype: fp32}
      model: {name_or_path: m, arch: wan21}
      sample: {sample_every: 2, width: 32, height: 32, num_frames: 5, prompts: ["a [trigger] ball"], sample_steps: 2}
YAML
    run train job.yaml
    status_is 0
    [ -f runs/small/small.safetensors ] || fail 'no LoRA with the name of the job'
    grep -q '"a zqx ball"' runs/small/samples/index.jsonl || fail 'no sample with the trigger word'
    sed -i 's/steps: 2, opt/steps: 4, opt/' job.yaml
    run train job.yaml
    status_is 0
    err_has checkpoints/step-2
    [ "$(wc -l <runs/small/log.jsonl)" = 4 ] || fail 'it did not go on from step 2'
}
it a_job_trains_samples_and_goes_on

finish

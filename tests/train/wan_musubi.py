# SPDX-License-Identifier: Apache-2.0
"""Commands and files of musubi-tuner: `cairn train --from-musubi`, `cairn train FILE.toml`, `cairn config convert FILE.toml`."""
import json
import os
import shlex

import tap
from training import CAIRN
from wanjobs import T2V, read_tensors
from wanmedia import SIDE, UMT5, VAE, MediaHome, write_png

LAUNCH = 'accelerate launch --num_cpu_threads_per_process 1 --mixed_precision bf16 src/musubi_tuner/wan_train_network.py'
DATA = '--dataset_config d.toml --sdpa --mixed_precision bf16 --max_data_loader_n_workers 2 --persistent_data_loader_workers'
LORA = '--network_module networks.lora_wan --network_dim 32'
OUT = '--output_dir out --output_name lora'
EXPERTS = '--task t2v-A14B --dit low_noise.safetensors --dit_high_noise high_noise.safetensors'
# As the documentation and guides of musubi-tuner write them.
COMMANDS = [
    f'{LAUNCH} --task t2v-1.3B --dit DIT {DATA} --fp8_base --optimizer_type adamw8bit --learning_rate 2e-4 --gradient_checkpointing {LORA} '
    f'--timestep_sampling shift --discrete_flow_shift 3.0 --max_train_epochs 16 --save_every_n_epochs 1 --seed 42 {OUT}',
    f'{LAUNCH} --task t2v-14B --dit DIT {DATA} --fp8_base --fp8_scaled --fp8_t5 --optimizer_type adamw --optimizer_args weight_decay=0.1 '
    f'--learning_rate 1e-4 --lr_scheduler cosine --lr_warmup_steps 100 --gradient_checkpointing {LORA} --network_alpha 16 '
    f'--max_train_steps 2000 --save_every_n_steps 500 --save_last_n_steps 1000 --save_state {OUT}',
    f'{LAUNCH} {EXPERTS} {DATA} --fp8_base --fp8_scaled --offload_inactive_dit --force_v2_1_time_embedding --timestep_boundary 875 {LORA} '
    f'--preserve_distribution_shape --timestep_sampling shift --discrete_flow_shift 12.0 --learning_rate 2e-4 --gradient_checkpointing {OUT}',
    f'{LAUNCH} --task t2v-A14B --dit low_noise.safetensors {DATA} {LORA} --min_timestep 0 --max_timestep 875 --preserve_distribution_shape '
    f'--timestep_sampling shift --discrete_flow_shift 5 --optimizer_type adamw8bit --learning_rate 1e-4 {OUT}',
    f'{LAUNCH} --task t2v-A14B --dit high_noise.safetensors {DATA} {LORA} --min_timestep 875 --max_timestep 1000 '
    f'--preserve_distribution_shape --timestep_sampling logsnr --logit_mean 0.5 --logit_std 1.0 {OUT}',
    f'uv run --extra cu128 {LAUNCH} --task t2v-14B --dit DIT {DATA} {LORA} --optimizer_type prodigyopt.Prodigy --learning_rate 1.0 '
    f'--optimizer_args decouple=True weight_decay=0.01 d_coef=2 use_bias_correction=True safeguard_warmup=True {OUT}',
    f'CUDA_VISIBLE_DEVICES=0 python src/musubi_tuner/wan_train_network.py --task t2v-14B --dit DIT {DATA} {LORA} --optimizer_type Adafactor '
    f'--optimizer_args relative_step=False scale_parameter=False warmup_init=False --lr_scheduler constant_with_warmup --lr_warmup_steps 5% {OUT}',
    f'{LAUNCH} --task t2v-14B --dit DIT {DATA} {LORA} --blocks_to_swap 1 --gradient_checkpointing --gradient_checkpointing_cpu_offload '
    f'--lr_scheduler cosine_with_restarts --lr_scheduler_num_cycles 4 --network_args loraplus_lr_ratio=4 --gradient_accumulation_steps 2 {OUT}',
    f'{LAUNCH} --task t2v-14B --dit DIT {DATA} {LORA} --timestep_sampling qinglong_flux --num_timestep_buckets 10 --network_dropout 0.1 '
    f'--network_args "exclude_patterns=[r\'.*ffn.*\']" --lr_scheduler rex --log_with tensorboard --logging_dir logs {OUT}',
    f'{LAUNCH} --config_file job.toml --learning_rate 5e-5',
]
TOML = f"""[model]
task = "t2v-14B"
dit = "{T2V}"
vae = "{VAE}"
t5 = "{UMT5}"
[data]
dataset_config = "d.toml"
[train]
learning_rate = 1e-3
max_train_epochs = 2
save_every_n_epochs = 1
timestep_sampling = "shift"
discrete_flow_shift = 3.0
network_dim = 4
sdpa = true
output_dir = "out"
output_name = "stone"
"""
KEYS = ['--set=model.heads=3', '--set=model.tokenizer_path=tokenizer.json', '--device=cpu']


class MusubiHome(MediaHome):
    """Three pictures, in two buckets, each twice in an epoch: 2 + 1 batches of 2, 3 of them."""

    def __enter__(self):
        super().__enter__()
        write_png(self.path + '/media/wide.png', 2 * SIDE, SIDE // 2 * 2, 5)
        with open(self.path + '/media/wide.txt', 'w', encoding='utf-8') as f:
            f.write('wide')
        for name, text in (('d', f'[general]\nresolution = [{2 * SIDE}, {2 * SIDE}]\nenable_bucket = true\nbatch_size = 2\ncaption_extension = ".txt"\n'
                            'num_repeats = 2\n[[datasets]]\nimage_directory = "media"\ncache_directory = "cache"\n'), ('job', TOML)):
            with open(f'{self.path}/{name}.toml', 'w', encoding='utf-8') as f:
                f.write(text)
        self.experts()
        return self

    def musubi(self, command, *options):
        return self.process([CAIRN, 'train', '--from-musubi', *KEYS, *options, '--', *shlex.split(command)], None)


def ten_commands_plan():
    with MusubiHome() as home:
        for command in COMMANDS:
            done = home.musubi(command.replace('DIT', T2V), '--dry-run')
            if done.returncode:
                yield f'{command}: exit {done.returncode}: {done.stderr}'


def a_file_trains():
    with MusubiHome() as home:
        done = home.process([CAIRN, 'train', 'job.toml', *KEYS], None)
        found = sorted(name for name in (os.listdir(home.path + '/out/stone') if not done.returncode else []) if name.endswith('.safetensors'))
        if done.returncode or len(home.losses('out/stone')) != 6:
            yield f'exit {done.returncode}: {done.stderr}'
            return
        if 'stone.safetensors' not in found or 'stone-000001.safetensors' not in found:
            yield f'{found}'
            return
        tensors, meta = read_tensors(home.path + '/out/stone/stone.safetensors')
        if not all(name.startswith('lora_unet_') for name in tensors) or meta.get('ss_network_dim') != '4':
            yield f'{list(tensors)[:3]} {meta}'
        again = home.process([CAIRN, 'train', 'job.toml', *KEYS], None)
        if again.returncode != 2:
            yield f'again: exit {again.returncode}: {again.stderr}'


def epochs_have_samples():
    with MusubiHome() as home:
        with open(home.path + '/prompts.txt', 'w', encoding='utf-8') as f:
            f.write(f'a stone --w {SIDE} --h {SIDE} --f 1 --d 1 --s 2 --l 1 --fs 3\n')
        with open(home.path + '/job.toml', 'a', encoding='utf-8') as f:
            f.write('sample_prompts = "prompts.txt"\nsample_every_n_epochs = 1\nsample_at_first = true\n')
        done = home.process([CAIRN, 'train', 'job.toml', *KEYS], None)
        found = []
        if not done.returncode:
            with open(home.path + '/out/stone/samples/index.jsonl', encoding='utf-8') as f:
                found = [json.loads(line)['step'] for line in f]
        if found != [0, 3, 6]:
            yield f'{found}: exit {done.returncode}: {done.stderr}'


def the_converted_file_is_the_same_job():
    with MusubiHome() as home:
        done = home.process([CAIRN, 'config', 'convert', 'job.toml'], None)
        with open(home.path + '/own.yaml', 'w', encoding='utf-8') as f:
            f.write(done.stdout)
        first = home.process([CAIRN, 'train', 'job.toml', *KEYS], None)
        second = home.process([CAIRN, 'train', 'own.yaml', *KEYS, '--set=run.dir=second'], None)
        if done.returncode or first.returncode or second.returncode:
            yield f'{done.stderr} {first.stderr} {second.stderr}'
        elif home.losses('out/stone') != home.losses('second'):
            yield f'{home.losses("out/stone")} and {home.losses("second")}'


def errors():
    with MusubiHome() as home:
        rows = ((f'{COMMANDS[0]} --scale_weight_norms 1', '--scale_weight_norms'), (f'{COMMANDS[0]} --learning_rate fast', '--learning_rate'),
                (f'{COMMANDS[0]} --sampel_prompts x', '--sample_prompts'), (f'{COMMANDS[0]} --dataset_config none.toml', 'none.toml'),
                (f'{COMMANDS[0]} --network_dim=-1', '--network_dim'), ('accelerate launch', 'wan_train_network.py'),
                (COMMANDS[1], 'none.safetensors'))
        for command, named in rows:
            done = home.musubi(command.replace('DIT', 'none.safetensors' if named == 'none.safetensors' else T2V))
            if done.returncode not in (1, 2) or named not in done.stderr:
                yield f'{command}: exit {done.returncode}: {done.stderr}'
        if home.process([CAIRN, 'train', '--from-musubi'], None).returncode != 2:
            yield 'no command'
        with open(home.path + '/job.toml', 'w', encoding='utf-8') as f:
            f.write(TOML.replace('network_dim = 4', 'network_dim = "four"'))
        done = home.process([CAIRN, 'train', 'job.toml', *KEYS], None)
        if done.returncode not in (1, 2) or 'job.toml:14:1' not in done.stderr or 'network_dim' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'


tap.run([ten_commands_plan, a_file_trains, epochs_have_samples, the_converted_file_is_the_same_job, errors])

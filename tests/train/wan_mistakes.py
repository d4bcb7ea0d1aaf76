# SPDX-License-Identifier: Apache-2.0
"""Mistakes in a Wan job: each message names the file, the line and the key where it was made, and what to do."""
import os
import shutil
import subprocess
import sys

import tap
from training import CAIRN, PATIENCE, Home
from wanjobs import write_model

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../demo')
sys.path.insert(0, DEMO)
import shapes  # noqa: E402, of the demo

OWN = """model:
  kind: wan
  path: models/wan.safetensors
  vae_path: models/vae.safetensors
  text_encoder_path: models/text_encoder.safetensors
  tokenizer_path: models/tokenizer.json
  heads: 4
data:
  path: clips
  resolution: 32
  frames: 5
lora:
  rank: 4
train:
  steps: 1
  device: cpu
"""
TOOLKIT = """job: extension
config:
  name: star
  process:
    - type: sd_trainer
      training_folder: out
      device: cpu
      network: {type: lora, linear: 4}
      datasets:
        - folder_path: clips
          resolution: [32]
          num_frames: 5
      train:
        steps: 1
      model:
        name_or_path: wan
        arch: wan21
"""
DATASET = """[general]
resolution = [32, 32]
caption_extension = ".txt"

[[datasets]]
video_directory = "clips"
target_frames = [5]
"""
MUSUBI = """dit = "models/wan.safetensors"
vae = "models/vae.safetensors"
t5 = "models/text_encoder.safetensors"
task = "t2v-1.3B"
dataset_config = "dataset.toml"
output_dir = "out"
max_train_steps = 1
"""
SHARD = 'diffusion_pytorch_model-00001-of-00002.safetensors'


class UserHome(Home):
    """A folder with clips, the small models as files and as a folder of diffusers, and a job of each kind."""

    def __enter__(self):
        super().__enter__()
        if not os.path.exists(os.path.dirname(CAIRN) + '/cairn-media'):
            raise tap.Skip('cairn-media is not built')
        shapes.write_clip(self.path + '/clips', 'star', 'star', 'red', 'left', shapes.random.Random(1))
        os.makedirs(self.path + '/silent')
        shutil.copy(self.path + '/clips/star.avi', self.path + '/silent')
        os.makedirs(self.path + '/empty')
        shutil.copytree(DEMO + '/models', self.path + '/models')
        for part, file in (('transformer', 'wan'), ('vae', 'vae'), ('text_encoder', 'text_encoder')):
            os.makedirs(f'{self.path}/wan/{part}')
            shutil.copy(f'{DEMO}/models/{file}.safetensors', f'{self.path}/wan/{part}/diffusion_pytorch_model.safetensors')
        self.write('wan/transformer/config.json', '{"num_attention_heads": 4}')
        os.makedirs(self.path + '/wan/tokenizer')
        shutil.copy(f'{DEMO}/models/tokenizer.json', self.path + '/wan/tokenizer')
        self.write('model.gguf', 'GGUF' + 40 * '\0')
        self.write('dataset.toml', DATASET)
        write_model(self.path + '/control.safetensors', width=128, image_channels=32)
        return self

    def write(self, name, text):
        with open(f'{self.path}/{name}', 'w', encoding='utf-8') as f:
            f.write(text)

    def says(self, *command):
        done = subprocess.run([CAIRN, *command], env=self.environment(None), cwd=self.path, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors='replace', timeout=PATIENCE, check=False)
        return done.returncode, done.stdout

    def refuses(self, command, *words):
        """A status of an error, these words, and a remedy in a line of its own after the message."""
        status, said = self.says(*command)
        lines = said.splitlines()
        last = max((i for i, line in enumerate(lines) if line.startswith('cairn: ')), default=None)
        has_remedy = last is not None and any(line.startswith('  ') for line in lines[last + 1:])
        missing = [word for word in words if word not in said]
        if status not in (1, 2) or missing or not has_remedy:
            yield f'{command}: exit {status}, without {missing}, {"with" if has_remedy else "no"} remedy: {said}'

    def try_rows(self, name, text, command, rows):
        """rows: what is written wrong, instead of what, and what must be said."""
        for before, after, *words in rows:
            if before not in text:
                yield f'{name} has no {before}'
            self.write(name, text.replace(before, after, 1))
            yield from self.refuses(command, *words)


def a_configuration():
    with UserHome() as home:
        yield from home.try_rows('job.yaml', OWN, ['train', 'job.yaml'], [
            ('wan.saf', 'gone.saf', 'job.yaml:3:9: model.path: models/gone.safetensors does not exist'),
            ('models/wan.saf', 'models/vae.saf', 'job.yaml:3:9: model.path:', 'is a VAE'),
            ('models/wan.safetensors', 'models/tokenizer.json', 'job.yaml:3:9: model.path:', 'not a safetensors file'),
            ('models/wan.safetensors', 'clips', 'job.yaml:3:9: model.path: clips has no Wan transformer'),
            ('models/wan.safetensors', 'model.gguf', 'job.yaml:3:9: model.path: model.gguf is a GGUF file', '.safetensors'),
            ('models/wan.safetensors', 'control.safetensors', 'job.yaml:3:9: model.path: control.safetensors is a Fun-Control model'),
            ('vae.saf', 'gone.saf', 'job.yaml:4:13: model.vae_path: models/gone.safetensors'),
            ('vae.saf', 'wan.saf', 'job.yaml:4:13: model.vae_path: models/wan.safetensors is a Wan transformer, not a VAE'),
            ('text_encoder.saf', 'gone.saf', 'job.yaml:5:22: model.text_encoder_path:', 'models/gone.safetensors'),
            ('text_encoder.saf', 'vae.saf', 'job.yaml:5:22: model.text_encoder_path: models/vae.safetensors is a VAE'),
            ('tokenizer.json', 'gone.json', 'job.yaml:6:19: model.tokenizer_path: models/gone.json'),
            ('tokenizer.json', 'wan.safetensors', 'models/wan.safetensors', 'tokenizer.json or spiece.model'),
            ('path: clips', 'path: gone', 'job.yaml:9:9: data.path:', 'gone: No such file'),
            ('path: clips', 'path: empty', 'job.yaml:9:9: data.path: empty: no images or clips'),
            ('path: clips', 'path: clips/star.avi', 'job.yaml:9:9: data.path: clips/star.avi is one image or clip', 'folder'),
            ('path: clips', 'path: silent', 'silent/star.avi: no caption: silent/star.txt does not exist', 'NAME.txt'),
            ('path: clips', 'path: models/wan.safetensors', 'data.path:'),
            ('frames: 5', 'frames: 5\n  extraction: zig', 'job.yaml:12:15: data.extraction: the extraction "zig" is unknown', 'use head, chunk'),
            ('rank: 4', 'rank: 4\n  path: gone', 'job.yaml:14:9: lora.path:', 'gone'),
            ('rank: 4', 'rank: 4\n  path: models/vae.safetensors', 'job.yaml:14:9: lora.path: models/vae.safetensors'),
            ('rank:', 'rnak:', 'job.yaml:13:3: unknown key lora.rnak; did you mean lora.rank?'),
        ])
        home.write('job.yaml', OWN)
        yield from home.refuses(['train', 'job.yaml', '--set', 'model.path=gone'], '--set model.path=gone: gone does not exist')


def what_is_no_configuration():
    with UserHome() as home:
        for command, *words in ((['train', 'gone.yaml'], 'gone.yaml', '--example'), (['train', 'clips'], 'clips', 'data.path', '--example'),
                                (['train', 'models/wan.safetensors'], 'wan.safetensors', 'model.path'), (['plan', 'clips'], 'data.path'),
                                (['cache', 'gone'], 'gone'), (['cache', 'empty'], 'empty', 'images'), (['cache', 'clips'], 'model.vae_path', '--vae'),
                                (['config', 'convert', 'dataset.toml'], 'dataset.toml', 'cairn cache'), (['config', 'convert', 'gone'], 'gone'),
                                (['decode', 'clips/star.avi', '--vae', 'models/vae.safetensors', '-o', 'x.png'], 'clips/star.avi', '_wan.safetensors')):
            yield from home.refuses(command, *words)


def a_job_of_ai_toolkit():
    with UserHome() as home:
        command = ['train', 'job.yaml']
        yield from home.try_rows('job.yaml', TOOLKIT, command, [
            ('path: wan', 'path: gone', 'job.yaml:16:23: model.name_or_path: gone does not exist'),
            ('path: wan', 'path: Wan-AI/Gone', 'job.yaml:16:23: model.name_or_path: Wan-AI/Gone', 'hf download Wan-AI/Gone'),
            ('path: wan', 'path: clips', 'job.yaml:16:23: model.name_or_path: clips has no Wan transformer'),
            ('path: wan', 'path: model.gguf', 'job.yaml:16:23: model.name_or_path: model.gguf is a GGUF file'),
            ('path: clips', 'path: gone', 'job.yaml:10:24: folder_path:', 'gone'),
            ('path: clips', 'path: empty', 'job.yaml:10:24: folder_path: no images or clips in empty'),
            ('num_frames: 5', 'num_frames: 1', 'job.yaml:10:24: folder_path: no images in clips', 'set num_frames above 1, such as to 81'),
            ('num_frames: 5', 'num_frames: 5\n          mask_path: gone', 'job.yaml:13:22: mask_path: cairn cannot train with it'),
            ('num_frames: 5', 'num_frames: 5\n          network_weight: 2', 'job.yaml:13:27: network_weight: cairn cannot train with it'),
            ('num_frames: 5', 'num_frames: 5\n          loss_multiplier: -1', 'job.yaml:13:28: loss_multiplier: expected a number from 0 on'),
            ('num_frames: 5', 'num_frames: 5\n          caption_dropout_rate: 5', 'job.yaml:13:33: caption_dropout_rate: expected a number from 0 to 1'),
            ('type: sd_trainer', 'type: [sd_trainer]', 'job.yaml:5:13: type is not a text'),
            ('steps: 1', 'max_denoising_steps: 0', 'job.yaml:14:30: train.max_denoising_steps: no timestep is left'),
            ('model:', 'sample: {neg: [ugly], prompts: [a star]}\n      model:', 'job.yaml:15:21: sample.neg is a list'),
            ('steps: 1', 'stepz: 1', 'job.yaml:14:9: train.stepz: unknown key', 'did you mean train.steps?'),
            ('type: lora', 'type: lokr', 'job.yaml:8:23: network.type: cairn cannot do lokr', 'cairn run -- python run.py'),
            ('type: lora', 'type: lora, network_kwargs: {use_dora: true}', 'job.yaml:8:', 'network.network_kwargs.use_dora', 'DoRA'),
            ('steps: 1', 'diff_output_preservation: true', 'job.yaml:14:', 'train.diff_output_preservation', 'is_reg'),
            ('steps: 1', 'steps: none', 'job.yaml:14:16: train.steps is none'),
        ])
        home.write('job.yaml', TOOLKIT.replace('steps: 1', 'steps: many'))
        if 'run.py' in home.says(*command)[1]:
            yield 'ai-toolkit would not take that either'
        for part in 'transformer', 'text_encoder':
            folder = f'{home.path}/wan/{part}'
            os.rename(f'{folder}/diffusion_pytorch_model.safetensors', f'{home.path}/away')
            home.write(f'wan/{part}/diffusion_pytorch_model.safetensors.index.json', f'{{"weight_map": {{"shared.weight": "{SHARD}"}}}}')
            home.write('job.yaml', TOOLKIT)
            yield from home.refuses(command, 'job.yaml:16:23: model.name_or_path:', f'wan/{part}/{SHARD}', 'again')
            os.remove(f'{folder}/diffusion_pytorch_model.safetensors.index.json')
            os.rename(f'{home.path}/away', f'{folder}/diffusion_pytorch_model.safetensors')
        os.rename(home.path + '/wan/tokenizer', home.path + '/away')
        yield from home.refuses(command, 'wan/text_encoder', 'model.tokenizer_path')


def captions_that_are_not_found():
    """ai-toolkit trains with the empty prompt; so does cairn, but it says so."""
    with UserHome() as home:
        home.write('job.yaml', TOOLKIT.replace('num_frames: 5', 'num_frames: 5\n          caption_ext: caption'))
        status, said = home.says('train', 'job.yaml')
        if status or 'warning: 1 file has no caption, such as clips/star.avi; the empty one is used' not in said:
            yield f'exit {status}: {said}'


def files_of_musubi_tuner():
    with UserHome() as home:
        command = ['train', 'job.toml', '--set', 'model.heads=4']
        yield from home.try_rows('job.toml', MUSUBI, command, [
            ('wan.saf', 'gone.saf', 'job.toml:1:1: dit: models/gone.safetensors does not exist'),
            ('models/wan.safetensors', 'model.gguf', 'job.toml:1:1: dit: model.gguf is a GGUF file'),
            ('"models/wan.safetensors"', '["models/wan.safetensors"]', 'job.toml:1:1: dit:'),
            ('"models/wan.safetensors"', '""', 'job.toml:1:1: dit: it is missing'),
            ('dit = "models/wan.safetensors"\n', '', 'job.toml: dit: it is missing'),
            ('vae.saf', 'gone.saf', 'job.toml:2:1: vae: models/gone.safetensors'),
            ('text_encoder.saf', 'gone.saf', 'job.toml:3:1: t5:', 'models/gone.safetensors'),
            ('t2v-1.3B', 't2v-14B-FC', 'job.toml:4:1: task: cairn cannot train t2v-14B-FC'),
            ('dataset.toml', 'gone.toml', 'job.toml:5:1: dataset_config:', 'gone.toml'),
            ('max_train_steps = 1', 'max_train_steps = "1"', 'job.toml:7:1: max_train_steps:', 'without quotes'),
            ('max_train_steps', 'max_train_stepz', 'job.toml:7:1: max_train_stepz:', 'did you mean max_train_steps?'),
            ('max_train_steps = 1', 'network_module = "networks.lokr"', 'job.toml:7:1: network_module: cairn cannot train networks.lokr'),
            ('max_train_steps = 1', 'network_weights = "gone"', 'job.toml:7:1: network_weights:', 'gone'),
            ('max_train_steps = 1', 'network_args = ["use_dora=True"]', 'job.toml:7:1: network_args:', 'use_dora', 'DoRA'),
        ])
        home.write('job.toml', MUSUBI)
        yield from home.try_rows('dataset.toml', DATASET, command, [
            ('"clips"', '"gone"', 'dataset.toml:6:19: video_directory:', 'gone'),
            ('"clips"', '"empty"', 'dataset.toml:6:19: video_directory: no clips in empty'),
            ('video_directory = "clips"\ntarget_frames = [5]', 'image_directory = "clips"', 'dataset.toml:6:19: image_directory: no images in clips', 'set video_directory instead'),
            ('"clips"', '"silent"', 'dataset.toml:6:19: video_directory:', 'silent/star.txt does not exist', 'NAME.txt'),
            ('video_directory', 'vidoe_directory', 'dataset.toml:6:1: the key vidoe_directory is unknown', 'did you mean video_directory?'),
            ('".txt"', '5', 'dataset.toml:3:21: caption_extension:', 'quotes'),
            ('[5]', '["five"]', 'dataset.toml:7:17: target_frames:'),
        ])
        home.write('dataset.toml', DATASET)
        for option, value, *words in (('--dit', 'gone', '--dit: gone does not exist'), ('--vae', 'gone', '--vae: gone'), ('--t5', 'gone', '--t5:', 'gone'),
                                      ('--config_file', 'gone', '--config_file:', 'gone.toml'), ('--sample_prompts', 'gone', '--sample_prompts: gone')):
            yield from home.refuses(['train', '--from-musubi', '--set', 'model.heads=4', '--', 'wan_train_network.py', '--config_file',
                                     'job.toml', option, value], *words)


tap.run([a_configuration, what_is_no_configuration, a_job_of_ai_toolkit, captions_that_are_not_found, files_of_musubi_tuner])

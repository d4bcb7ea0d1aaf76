# SPDX-License-Identifier: Apache-2.0
"""Several CPU ranks train one job: the bits of one rank where sums are exact, sums of their own else, whoever launched them."""
import os
import sys

import tap
from launch import any_launcher, check, finish, launcher, train
from training import FAKE, Home, differences
from wanjobs import WanHome, write_model

STEPS = 7
# Six micro-batches are three pairs: leaves of a tree that two ranks share.
KINDS = {
    'plain': {'train__accumulate': 8, 'train__batch': 1},
    'in_leaves_of_three': {'train__accumulate': 6, 'train__batch': 1},
    'lora_on_int8': {'train__accumulate': 4, 'lora__rank': 2, 'lora__dropout': 0.1, 'model__quantize': 'int8'},
    'dropout_and_average': {'train__accumulate': 4, 'model__dropout': 0.1, 'train__ema': 0.9},
    'prodigy_in_bf16': {'train__accumulate': 4, 'train__optimizer': 'prodigy', 'train__lr': 1, 'train__dtype': 'bf16'},
    'adamw8_in_f16': {'train__accumulate': 4, 'train__optimizer': 'adamw8', 'train__dtype': 'f16'},
}
EXACT = {'dist__reduce': 'exact', 'train__steps': STEPS, 'eval__every': 3, 'data__val_split': 0.2}


def told(done, what):
    return f'{what}: exit {done.returncode}\n{done.stdout[-800:]}{done.stderr[-1500:]}'


def calls_under(name):
    by = launcher(name)
    with Home() as home:
        for n in 2, 3, 4, 5:
            done = finish(check(n, by=by), home)
            if done.returncode or 'right' not in done.stdout:
                yield told(done, f'{n} ranks')


def open_mpi_gathers_and_sums():
    return calls_under('open_mpi')


def mpich_gathers_and_sums():
    return calls_under('mpich')


def exact_case(kind, keys):
    def case():
        micros = keys['train__accumulate']
        with Home() as home:
            done = train(home, 1, 'one', **EXACT, **keys)
            if done.returncode:
                yield told(done, 'one rank')
                return
            for n in (n for n in (2, 4) if micros % n == 0):
                done = train(home, n, f'with{n}', **EXACT, **keys)
                if done.returncode:
                    yield told(done, f'{n} ranks')
                    continue
                yield from differences(home, f'with{n}', 'one', STEPS)
                for key in 'loss', 'val_loss':
                    got, want = ([line[key] for line in home.log(run) if key in line] for run in (f'with{n}', 'one'))
                    if got != want or not want:
                        yield f'{n} ranks: {key} {got}, one rank {want}'
    case.__name__ = f'exact_sums_{kind}'
    return case


def a_lora_for_both_experts_of_wan():
    keys = {'train__accumulate': 4, 'train__steps': STEPS, 'dist__reduce': 'exact', 'train__switch_every': 2,
            'train__recipe': 'ai-toolkit', 'model__heads': 2, 'data__val_split': 0.3, 'eval__every': 3}
    with WanHome() as home:
        model = write_model(home.path + '/model.safetensors')
        for experts in 'one', 'two':
            more = {**keys, 'model__path': model, **home.experts(model), 'lora__experts': experts}
            for n in 1, 2:
                done = train(home, n, f'{experts}{n}', **more)
                if done.returncode:
                    yield told(done, f'{experts} LoRA, {n} ranks')
                    return
            yield from differences(home, f'{experts}2', f'{experts}1', STEPS)


def every_launcher_computes_the_same():
    keys = {**EXACT, **KINDS['plain']}
    with Home() as home:
        for name in 'open_mpi', 'mpich':
            done = train(home, 2, name, by=launcher(name), **keys)
            if done.returncode:
                yield told(done, name)
                return
        yield from differences(home, 'mpich', 'open_mpi', STEPS)


def fast_sums_repeat_and_are_close():
    keys = {'train__steps': STEPS, 'train__accumulate': 6, 'train__batch': 1}
    with Home() as home:
        for n, run in (1, 'one'), (2, 'two'), (2, 'again'), (3, 'three'):
            done = train(home, n, run, **keys)
            if done.returncode:
                yield told(done, run)
                return
        yield from differences(home, 'again', 'two', STEPS)
        want = home.losses('one')
        for run in 'two', 'three':
            if any(abs(a - b) > 1e-4 for a, b in zip(home.losses(run), want, strict=True)):
                yield f'{run}: {home.losses(run)}, one rank: {want}'


def a_run_goes_on_with_other_ranks():
    keys = {**EXACT, **KINDS['plain'], 'train__warmup': 0, 'train__schedule': 'constant'}
    with Home() as home:
        for n, run, last in (1, 'whole', 9), (2, 'run', 3), (1, 'run', 5), (4, 'run', 9):
            done = train(home, n, run, '--resume', **{**keys, 'train__steps': last})
            if done.returncode:
                yield told(done, f'{n} ranks to step {last}')
                return
        yield from differences(home, 'run', 'whole', 9)
        done = train(home, 2, 'run', '--resume', **{**keys, 'train__steps': 9})
        if done.returncode or 'already finished' not in done.stderr:
            yield told(done, 'a finished run')
        # The same samples in batches that two ranks can share: those of the checkpoint cannot be.
        for n, batch in (1, 2), (2, 1), (1, 2):
            done = train(home, n, 'other', '--resume', train__batch=batch, train__accumulate=2 // batch,
                         train__steps=max(home.steps('other'), default=0) + 3)
            if done.returncode:
                yield told(done, f'{n} ranks, batches of {batch}')


def the_first_rank_alone_speaks():
    with Home() as home:
        done = train(home, 2, 'run', train__steps=3, train__accumulate=2)
        if done.stderr.count('ranks     2 by') != 1 or done.stderr.count('finished at step 3') != 1 or done.stdout:
            yield told(done, 'two ranks')


def cairn_starts_ranks_itself():
    any_launcher()
    keys = {**EXACT, **KINDS['plain']}
    with Home() as home:
        done = finish(home.command('run', '--ranks', '2', **keys), home)
        one = train(home, 1, 'one', **keys)
        if done.returncode or one.returncode:
            yield told(done, '--ranks 2')
            return
        yield from differences(home, 'run', 'one', STEPS)
        done = finish(home.command('run', '--ranks', '2', **keys), home, {'PATH': home.path})
        if done.returncode != 3 or 'no mpirun' not in done.stderr:
            yield told(done, 'without mpirun')
        done = finish([*any_launcher(), '-n', '2', *home.command('other', '--ranks', '2', **keys)], home)
        if done.returncode != 2 or 'has started 2 ranks already' not in done.stderr:
            yield told(done, '--ranks under mpirun')


def plans_and_profiles_work_too():
    keys = {'train__accumulate': 2, 'train__steps': 3}
    with Home() as home:
        done = train(home, 2, 'run', '--dry-run', **keys)
        if done.returncode or done.stdout.count('on each rank') != 1 or os.path.exists(home.path + '/run'):
            yield told(done, '--dry-run')
        done = train(home, 2, 'run', '--profile', 'trace.json', **keys)
        if done.returncode or done.stderr.count('CALLS') != 1 or not os.path.exists(home.path + '/trace.json'):
            yield told(done, '--profile')
        done = train(home, 2, 'run', '--fit', **keys)
        if done.returncode != 2 or '--fit chooses for one process' not in done.stderr:
            yield told(done, '--fit')


def devices_of_one_kind_are_needed():
    with Home() as home:
        keys = {'train__accumulate': 2, 'train__steps': 3, 'train__dtype': 'auto'}
        command = home.command('run', **keys)
        other = ['env', f'LD_LIBRARY_PATH={FAKE}', 'FAKE_GFX=gfx1100', *command]
        if not os.path.exists(FAKE + '/libamdhip64.so.7'):
            raise tap.Skip('the fake HIP is not built')
        command, other = ([w for w in words if 'train.device' not in w] for words in (command, other))
        done = finish([*any_launcher(), '-n', '1', *command, ':', '-n', '1', *other], home)
        if done.returncode != 2 or 'rank 1 on ' not in done.stderr or 'computes on gfx1100 in bf16, rank 0 on' not in done.stderr:
            yield told(done, 'a CPU and a GPU')


def what_cannot_be_shared_is_refused():
    cases = (
        (2, {}, 'which 2 ranks cannot share', '--set train.accumulate=2 --set train.batch=1'),
        (3, {'train__batch': 1}, 'which 3 ranks cannot share', '--set train.accumulate=3'),
        (3, {'dist__reduce': 'exact', 'train__accumulate': 3}, 'needs 2, 4, 8', ''),
    )
    with Home() as home:
        for n, keys, *words in cases:
            done = train(home, n, 'run', train__steps=3, **keys)
            if done.returncode != 2 or any(w not in done.stderr for w in words):
                yield told(done, f'{n} ranks, {keys}')
            if os.path.exists(home.path + '/run/checkpoints'):
                yield f'{n} ranks, {keys}: there is a checkpoint'


def ranks_that_differ_are_named():
    with Home() as home:
        with open(home.path + '/other.txt', 'w', encoding='utf-8') as f:
            f.write('another text, ' * 300)
        keys = {'train__steps': 3, 'train__accumulate': 2}
        first = home.command('run', **keys)
        for other, what in (home.command('run', **{**keys, 'train__lr': 0.5}), 'has another configuration'), \
                ([*first, '--set=data.path=[other.txt]'], 'configuration'):
            done = finish([*any_launcher(), '-n', '1', *first, ':', '-n', '1', *other], home)
            if done.returncode != 2 or what not in done.stderr or 'rank 1 on ' not in done.stderr:
                yield told(done, what)
        # The same words, another file: as on a machine with an old copy.
        os.mkdir(home.path + '/old')
        os.rename(home.path + '/other.txt', home.path + '/old/text.txt')
        there = ['env', '--chdir=' + home.path + '/old', *first]
        os.link(home.path + '/job.yaml', home.path + '/old/job.yaml')
        done = finish([*any_launcher(), '-n', '1', *first, ':', '-n', '1', *there], home)
        if done.returncode != 2 or 'other training data than rank 0' not in done.stderr:
            yield told(done, 'other data')


def launchers_that_do_not_match_are_told():
    cases = (
        ({'OMPI_COMM_WORLD_RANK': '0', 'OMPI_COMM_WORLD_SIZE': '2'}, 'Open MPI says that this is rank 0 of 2', 2),
        ({'OMPI_COMM_WORLD_RANK': '2', 'OMPI_COMM_WORLD_SIZE': '2'}, 'OMPI_COMM_WORLD_RANK is 2', 2),
        ({'OMPI_COMM_WORLD_RANK': 'x', 'OMPI_COMM_WORLD_SIZE': '2'}, 'OMPI_COMM_WORLD_RANK is "x"', 2),
        ({'RANK': '0', 'WORLD_SIZE': '4', 'LOCAL_RANK': '0'}, 'torchrun started 4 ranks', 3),
    )
    launcher('open_mpi')
    with Home() as home:
        for env, words, code in cases:
            done = train(home, 1, 'run', env=env, train__steps=2)
            if done.returncode != code or words not in done.stderr:
                yield told(done, str(env))
        # The variables of a batch script, in which nothing has started ranks.
        done = train(home, 1, 'run', env={'SLURM_NTASKS': '4', 'SLURM_PROCID': '0', 'SLURM_JOB_ID': '7'}, train__steps=2)
        if done.returncode:
            yield told(done, 'a batch script')


if __name__ == '__main__':
    tap.only([open_mpi_gathers_and_sums, mpich_gathers_and_sums, *(exact_case(k, v) for k, v in KINDS.items()),
              a_lora_for_both_experts_of_wan, every_launcher_computes_the_same, fast_sums_repeat_and_are_close, a_run_goes_on_with_other_ranks,
              the_first_rank_alone_speaks, cairn_starts_ranks_itself, plans_and_profiles_work_too, devices_of_one_kind_are_needed, what_cannot_be_shared_is_refused,
              ranks_that_differ_are_named, launchers_that_do_not_match_are_told], sys.argv[1:])

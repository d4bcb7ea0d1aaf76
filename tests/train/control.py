# SPDX-License-Identifier: Apache-2.0
"""control.json: a run that goes on is asked for a checkpoint, a sample, and to stop.  What it computes stays the same."""
import json
import os

import tap
from training import AHEAD, Home, differences

STOPPED = 130
KEYS = {'train__steps': 260, 'checkpoint__every': 0, 'checkpoint__async': 'false', 'sample__every': 1000, 'sample__tokens': 4,
        'model__dropout': 0.1, 'train__ema': 0.9}


def ask(home, run, **order):
    os.makedirs(f'{home.path}/{run}', exist_ok=True)
    path = f'{home.path}/{run}/control.json'
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write(order.get('text') or json.dumps(order))
    os.replace(path + '.new', path)


def told(home, run):
    with open(f'{home.path}/{run}/run.json', encoding='utf-8') as f:
        return json.load(f)


def events(home, run, event='control'):
    return [(line['step'], line['note']) for line in home.log(run) if line.get('event') == event]


def wait_for(run, event):
    """The line of the event, among those of --json-events."""
    for line in run.events:
        line = json.loads(line)
        if line.get('event') == event:
            return line
    raise AssertionError(f'no event {event}: {run.said()}')


def expect(what, got, want):
    if got != want:
        yield f'{what}: {got}, not {want}'


def asked_and_undisturbed():
    """A checkpoint and a sample in between, a stop, and in the end the same bits as a run that nobody asked anything."""
    with Home() as home:
        whole = home.train('whole', **KEYS)
        if whole.returncode:
            yield whole.stderr
            return
        run = home.start('asked', **KEYS)
        run.reach(5)
        ask(home, 'asked', seq=1, save=True, sample=True)
        line = wait_for(run, 'control')
        step = line['step']
        yield from expect('note', line['note'], 'order 1: save, sample')
        yield from expect('checkpoints', home.steps('asked'), [step])
        if not os.path.exists(f'{home.path}/asked/samples/step-{step}.txt'):
            yield f'there is no sample of step {step}'
        yield from expect('run.json', [told(home, 'asked')[key] for key in ('control_seq', 'stop_at_step', 'state')],
                          [1, None, 'running'])
        end = step + AHEAD + 20
        ask(home, 'asked', seq=2, save=False, sample=False, stop_at_step=end)
        yield from expect('note', wait_for(run, 'control')['note'], f'order 2: stop at step {end}')
        yield from expect('run.json', told(home, 'asked')['stop_at_step'], end)
        yield from expect('exit status', run.end(), STOPPED)
        yield from expect('run.json', [told(home, 'asked')[key] for key in ('control_seq', 'stop_at_step', 'state')],
                          [2, None, 'stopped'])
        yield from expect('checkpoints', home.steps('asked'), [step, end])
        yield from expect('steps', len(home.losses('asked')), end)
        if 'to resume: cairn train --resume=' not in run.said():
            yield run.said()
        done = home.train('asked', '--resume', **KEYS)
        yield from expect('exit status', done.returncode, 0)
        yield from expect('events', len(events(home, 'asked')), 2)  # the old order is still there
        yield from expect('state', told(home, 'asked')['state'], 'finished')
        yield from differences(home, 'asked', 'whole', KEYS['train__steps'])
        if home.losses('asked') != home.losses('whole'):
            yield 'the losses differ'


def a_step_that_is_done_is_this_one():
    with Home() as home:
        run = home.start('now', **KEYS)
        run.reach(3)
        ask(home, 'now', seq=9, stop_at_step=1)
        line = wait_for(run, 'control')
        yield from expect('note', line['note'], 'order 9: stop')
        yield from expect('exit status', run.end(), STOPPED)
        yield from expect('checkpoints', home.steps('now'), [line['step']])
        yield from expect('steps', len(home.losses('now')), line['step'])


def wrong_files_are_told_once():
    with Home() as home:
        run = home.start('wrong', **{**KEYS, 'sample__every': 0})
        run.reach(2)
        ask(home, 'wrong', text='{"seq": 1, "save": tru')
        wait_for(run, 'control-ignored')
        ask(home, 'wrong', text='{"seq": 1, "save": "yes"}')
        run.reach(60)
        ask(home, 'wrong', seq=5, sample=True, pause=True)
        yield from expect('note', wait_for(run, 'control')['note'], 'order 5: nothing')
        ask(home, 'wrong', seq=4, stop_at_step=0)
        wait_for(run, 'control-ignored')
        yield from expect('exit status', run.end(), 0)
        for words, times in (('the file is ignored', 2), ('key "pause" is not known', 1), ('sample.every is 0', 1),
                             ('"seq" is 4, but the last order had 5', 1)):
            yield from expect(words, run.said().count(words), times)
        yield from expect('events', len(events(home, 'wrong', 'control-ignored')), 2)


def a_stop_survives_a_kill():
    keys = {**KEYS, 'checkpoint__every': 3}
    with Home() as home:
        run = home.start('killed', **keys)
        run.reach(4)
        ask(home, 'killed', seq=1, sample=True, stop_at_step=200)
        wait_for(run, 'control')
        run.reach(60)
        run.kill()
        samples = len(os.listdir(f'{home.path}/killed/samples'))
        done = home.train('killed', '--resume', **keys)
        yield from expect('exit status', done.returncode, STOPPED)
        yield from expect('steps', max(home.steps('killed')), 200)
        yield from expect('samples', len(os.listdir(f'{home.path}/killed/samples')), samples)
        if 'asked the run to stop at step 200' not in done.stderr:
            yield done.stderr
        ask(home, 'killed', seq=2, stop_at_step=230)
        run = home.start('killed', '--resume', **keys)
        wait_for(run, 'control')
        ask(home, 'killed', seq=3, stop_at_step=None)  # called off, maybe too late
        yield from expect('exit status', run.end(), 0 if events(home, 'killed')[-1][1] == 'order 3: do not stop' else STOPPED)


def an_order_may_come_before_the_run():
    with Home() as home:
        ask(home, 'early', seq=1, stop_at_step=3)
        done = home.train('early', **KEYS)
        yield from expect('exit status', done.returncode, STOPPED)
        yield from expect('checkpoints', home.steps('early'), [3])
        done = home.train('early', **KEYS)
        if done.returncode != 2 or 'is not empty' not in done.stderr:
            yield f'exit {done.returncode}: {done.stderr}'


def a_stop_at_the_end_is_the_end():
    with Home() as home:
        ask(home, 'end', seq=1, stop_at_step=20)
        done = home.train('end', **{**KEYS, 'train__steps': 20})
        yield from expect('exit status', done.returncode, 0)
        yield from expect('state', told(home, 'end')['state'], 'finished')


tap.run([asked_and_undisturbed, a_step_that_is_done_is_this_one, wrong_files_are_told_once, a_stop_survives_a_kill,
         an_order_may_come_before_the_run, a_stop_at_the_end_is_the_end])

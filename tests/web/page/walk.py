# SPDX-License-Identifier: Apache-2.0
"""What somebody new does in the first minutes: one command, its link, a preset, a curve that moves; then what goes wrong.

Everything is real: the presets of configs/, the server, a GPT that trains on the CPU.
"""
import json
import os
import re
import struct
import sys
import zlib

import tap
from browser import KEYS, MACHINE, Browser, Server, link_of

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', '..')
LONG = 'a name of which nobody thought how long it would become, with everything in it and ' + 'x' * 36

server = Server('--root', MACHINE, '--allow-root')
with open(os.path.join(server.home, 'words.txt'), 'w', encoding='utf-8') as words:
    words.write('the quick brown fox jumps over the lazy dog and then it sleeps. ' * 400)
page = Browser(server).__enter__()
uids = {}


def job(name):
    return next(j for j in json.loads(server.cairn('job', 'list', '--json').stdout)['jobs'] if j['name'] == name)


def text():
    return page.js('return document.querySelector(".editor textarea").value')


def write_text(new):
    page.js('const a = document.querySelector(".editor textarea"); a.focus(); a.value = arguments[0]; a.dispatchEvent(new Event("input"))', new)


def choose(selector, value):
    page.js('const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event("change"))', selector, value)


def preset(name):
    with open(os.path.join(TOP, 'configs', f'{name}.yaml'), encoding='utf-8') as f:
        return f.read()


def fetched(selector):
    """Status and length of what a link leads to."""
    return page.js('return fetch(document.querySelector(arguments[0]).href).then(async (r) => [r.status, (await r.blob()).size])', selector)


# ---- from the link to a run that is compared ----

def a_preset_becomes_a_running_job():
    findings = []
    page.see('.empty', 'No jobs yet')
    page.click('.empty a', 'New job')
    page.see('h1', 'New job')
    page.click('.save .primary')
    page.see('.toast.error', 'Choose a preset')
    shown = {e.text for e in page.all('.presets .chip')}
    have = {name[:-5] for name in os.listdir(os.path.join(TOP, 'configs')) if name.endswith('.yaml')}
    if shown != have:
        findings.append(f'presets: {sorted(shown ^ have)} are on one side only')
    page.click('.presets .chip', 'gpt-tiny')
    page.see('.fine')
    if text() != preset('gpt-tiny'):
        findings.append('the text is not the preset')
    choose('#job-gpu', 'cpu')
    page.see('.fit .notice', 'docs')
    page.see('#f-data-path[aria-invalid=true]')  # there is no folder docs beside this server
    page.type('#f-train-batch', 'many')
    page.see('.findings .bad', 'batch')
    page.see('.field.wrong, .field.bad, .field [aria-invalid=true]')
    page.see('.fit', 'error')
    page.type('#f-train-batch', '4')
    page.type('#f-train-steps', '100000')
    page.type('#f-data-path', 'words.txt')
    page.see('.fine')
    page.see('.fit-word', 'It fits')
    page.gone('#f-data-path[aria-invalid=true]')
    if text() != preset('gpt-tiny').replace('batch: 24', 'batch: 4').replace('steps: 60', 'steps: 100000').replace('path: docs', 'path: words.txt'):
        findings.append(f'the form wrote: {text()}')
    page.click('.save .primary')
    page.see('article.run', 'gpt-tiny')
    uids['first'] = job('gpt-tiny')['uid']
    return findings + page.trouble(allowed=['api/v1/plan'])  # it refuses half a path


def points():
    """How many points the server has for the curve."""
    return page.js('return fetch(`api/v1/jobs/${arguments[0]}/series?metrics=loss`).then((r) => r.json()).then((s) => s.step.length)', uids['first'])


def the_curve_moves():
    page.go(f'#/job/{uids["first"]}')
    page.see('.tall .chart canvas')
    picture = 'return document.querySelector(".tall .chart canvas").toDataURL()'
    before = page.js(picture)
    page.wait(lambda: page.js(picture) != before, 'another picture of the curve')
    page.go(f'#/job/{uids["first"]}/chart')
    page.see('.legend', 'gpt-tiny')
    before, drawn = page.js('return document.querySelector(".chart canvas").toDataURL()'), points()
    page.wait(lambda: points() > drawn and page.js('return document.querySelector(".chart canvas").toDataURL()') != before, 'a curve that goes on')
    return page.trouble()


def stop_and_resume_make_one_curve():
    findings = []
    page.go(f'#/job/{uids["first"]}')
    page.click('.job-head .button', 'Stop')
    page.see('.job-head .badge', 'Stopped')
    stopped = job('gpt-tiny')['step']
    page.click('.job-head .button', 'Resume')
    page.see('.job-head .badge', 'Running')
    page.wait(lambda: (job('gpt-tiny')['step'] or 0) > stopped, f'a step beyond {stopped}')
    series = page.js('return fetch(`api/v1/jobs/${arguments[0]}/series?metrics=loss`).then((r) => r.json())', uids['first'])
    if series['step'][0] > 1 or series['step'][-1] <= stopped or series['step'] != sorted(set(series['step'])):
        findings.append(f'steps {series["step"][:3]} to {series["step"][-3:]} after a stop at {stopped}')
    page.click('.job-head .button', 'Stop')
    page.see('.job-head .badge', 'Stopped')
    return findings + page.trouble()


def a_clone_is_compared_with_its_parent():
    findings = []
    page.press('c')
    page.see('h1', 'Edit job')
    page.type('#job-name', 'faster')
    page.type('#f-train-lr', '4e-3')
    page.see('.fine')
    page.click('.save .primary')
    page.see('article.run', 'faster')
    uid = uids['second'] = job('faster')['uid']
    page.wait(lambda: (job('faster')['step'] or 0) > 3, 'steps of the clone')
    page.go(f'#/job/{uid}/chart')
    page.see('.legend', 'faster')
    choose('.legend .add select', uids['first'])
    page.wait(lambda: len(page.all('.legend .dot')) == 2, 'two curves')
    if uids['first'] not in page.js('return location.hash'):
        findings.append('the view of two runs is no link')
    page.click('.toolbar .button', 'Table')
    heads = page.js('return [...document.querySelectorAll(".table-box thead th")].map((e) => e.textContent)')
    if heads[1:] != ['faster', 'gpt-tiny']:
        findings.append(f'the table has {heads}')
    page.go(f'#/job/{uid}/config')
    page.see('.diff ins', '4e-3')
    page.see('.diff del', '2e-3')
    changed = page.js('return document.querySelectorAll(".diff ins, .diff del").length')
    return findings + ([] if changed == 2 else [f'{changed} lines differ']) + page.trouble()


def log_and_files_can_be_taken_along():
    findings = []
    uid = uids['first']
    page.go(f'#/job/{uid}/log')
    page.see('.log', 'step')  # of the second attempt: the first has a log of its own
    page.type('.toolbar input[type=search]', 'checkpoint')
    page.see('.log .hit')
    for route, selector in ((f'#/job/{uid}/log', '.toolbar a[download]'), (f'#/job/{uid}/files', '.files a[download]')):
        page.go(route)
        page.see(selector)
        status, size = fetched(selector)
        if status != 200 or size < 10:
            findings.append(f'{route}: the first link gives status {status}, {size} bytes')
    page.see('.files', 'Checkpoint of step')
    return findings + page.trouble()


def texts_that_a_model_wrote_can_be_read():
    assert server.cairn('job', 'stop', uids['second']).returncode == 0
    page.go(f'#/job/{uids["first"]}')
    page.see('.job-head .badge', 'Stopped')
    page.press('c')
    page.see('h1', 'Edit job')
    page.type('#job-name', 'writer')
    page.click('[role=tab]', 'YAML')
    page.see('.fine')
    write_text(text().replace('steps: 100000', 'steps: 40') + '\nsample:\n  every: 20\n  tokens: 40\n')
    page.see('.fine')
    page.click('.save .primary')
    page.see('.history .item', 'Finished')
    uid = job('writer')['uid']
    page.go(f'#/job/{uid}')
    page.see('.said')
    page.go(f'#/job/{uid}/samples')
    page.see('.job-body h2', 'step 40')
    said = page.see('.said').text
    return ([] if len(said) > 20 else [f'the sample is {said!r}']) + page.trouble(allowed=['api/v1/plan'])


def png(red, green, blue):
    """A picture of 32 × 32 pixels of one colour."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    rows = (b'\0' + bytes((red, green, blue)) * 32) * 32
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 32, 32, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')


def pictures_are_shown_by_step_and_prompt():
    """What a video model would have written beside the texts: a step of two prompts, and one that lacks the second."""
    findings = []
    uid = job('writer')['uid']
    folder = os.path.join(job('writer')['run_dir'], 'samples')
    rows = []
    for step, index in ((20, 0), (40, 0), (40, 1)):
        name = f'step-{step:06}_{index:02}.png'
        with open(os.path.join(folder, name), 'wb') as f:
            f.write(png(step * 5, 80, index * 200))
        rows.append({'step': step, 'index': index, 'prompt': f'prompt {index}', 'seed': 1, 'file': name, 'width': 32, 'height': 32, 'frames': 1, 'fps': 16})
    with open(os.path.join(folder, 'index.jsonl'), 'w', encoding='utf-8') as f:
        f.writelines(json.dumps(row) + '\n' for row in rows)
    page.go(f'#/job/{uid}')
    page.see('.picture img')
    page.go(f'#/job/{uid}/samples')
    page.see('.samples .thumb')
    page.wait(lambda: page.js('return [...document.querySelectorAll(".thumb img")].map((i) => i.naturalWidth)') == [32, 32, 32], 'three pictures')
    shown = page.js('return [...document.querySelectorAll(".samples tbody tr")].map((row) => [row.cells[0].innerText, row.querySelectorAll("img").length, row.querySelectorAll(".gap").length])')
    if shown != [['40', 2, 0], ['20', 1, 1]]:
        findings.append(f'the grid is {shown}')
    page.click('.thumb')
    page.see('.viewer h2', 'step 40')
    page.press(KEYS.ARROW_DOWN)
    page.see('.viewer .muted', 'prompt 1')
    page.press(KEYS.ARROW_UP)
    page.click('.viewer .button', 'Pin')
    page.press(KEYS.ARROW_LEFT)
    page.see('.viewer h2', 'step 20')
    page.wait(lambda: len(page.all('.stage img')) == 2, 'two pictures side by side')
    page.press(KEYS.ESCAPE)
    page.gone('dialog')
    return findings + page.trouble()


# ---- what goes wrong ----

def an_error_is_shown_at_its_line():
    page.go('#/new')
    page.click('[role=tab]', 'YAML')
    write_text(preset('gpt-tiny').replace('  heads: 4', '  heads: 4\n   width: 64'))
    page.see('.findings .bad', 'Line ')
    line = int(re.search(r'Line (\d+)', page.text('.findings .bad')).group(1))
    marked = page.js('return [...document.querySelectorAll(".gutter .bad")].map((e) => Number(e.textContent))')
    page.click('.save .primary')
    page.see('.toast.error', 'Correct')
    return ([] if marked == [line] and line in (5, 6) else [f'line {line}, marked {marked}']) + page.trouble()


def five_megabytes_do_not_stop_the_page():
    huge = preset('gpt-tiny') + '# a line that somebody pasted\n' * 175000
    write_text(huge)
    page.see('.findings .bad', '5.0 MiB')
    shown = page.js('return [document.querySelector(".editor").classList.contains("plain"), document.querySelectorAll(".editor *").length]')
    page.click('.save .primary')
    page.see('.toast.error', 'Correct')
    page.click('[role=tab]', 'Form')
    page.see('#f-train-steps')
    write_text(preset('gpt-tiny'))
    page.see('.fine')
    page.click('[role=tab]', 'YAML')
    lines = page.js('return [document.querySelector(".editor").classList.contains("plain"), document.querySelectorAll(".gutter span").length]')
    return ([] if shown[0] and shown[1] < 50 else [f'five megabytes are shown by {shown[1]} elements']) + ([] if lines == [False, preset('gpt-tiny').count('\n') + 1] else [f'afterwards: {lines}']) + page.trouble()


def a_long_name_breaks_nothing():
    findings = []
    page.type('#job-name', LONG)
    page.click('.save .button:not(.primary)')
    page.see('h1', LONG)
    uid = uids['long'] = job(LONG)['uid']
    for width in (360, 1440):
        page.resize(width, 800)
        for route in ('#/', f'#/job/{uid}', f'#/job/{uid}/config', f'#/job/{uid}/edit'):
            page.go(route)
            page.settled()
            if page.overflow() > 0:
                findings.append(f'{route} is {page.overflow()} pixels wider than {width}')
    return findings + page.trouble(allowed=['api/v1/plan'])  # there is no folder docs


def a_job_without_its_files_says_so():
    """The queue keeps the text; what a user deletes by hand is missed, not fatal."""
    findings = []
    uid = uids['long']
    folder = os.path.join(server.home, 'state', 'cairn', 'jobs', uid)
    os.remove(os.path.join(folder, 'config.yaml'))
    page.go(f'#/job/{uid}/config')
    page.see('.code-box', 'A GPT that two CPU cores train')
    page.click('.job-head .button', 'Add to the queue')
    page.wait(lambda: job(LONG)['state'] in ('finished', 'failed'), 'the end of that job')
    ended = job(LONG)
    for tab in ('', '/chart', '/samples', '/log', '/files', '/config', '/verdict'):
        page.go(f'#/job/{uid}{tab}')
        page.settled()
        if not page.text('.job-body').strip():
            findings.append(f'{tab or "/overview"} is empty')
    if not ended['cause'] and ended['state'] == 'failed':
        findings.append('no cause is given')
    return findings + page.trouble(allowed=['api/v1/plan'])  # of the last case


def a_verdict_names_the_cause():
    """A native run that fails: its data is not there."""
    path = os.path.join(server.home, 'broken.yaml')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(preset('gpt-tiny').replace('path: docs', 'path: no-such-file.txt'))
    done = server.cairn('job', 'add', '--gpu', 'cpu', '--name', 'broken', path)
    assert done.returncode == 0, done.stderr
    page.go('#/')
    page.see('.history .item', 'broken')
    page.wait(lambda: job('broken')['state'] == 'failed', 'that it failed')
    page.go(f'#/job/{job("broken")["uid"]}')
    page.see('.notice.error', 'no-such-file.txt')
    page.click('.notice .button', 'What')
    page.see('.job-body')
    page.settled()
    said = page.text('.job-body')
    return ([] if 'no-such-file.txt' in said else [f'the verdict says: {said[:300]}']) + page.trouble()


def without_scripts_the_commands_are_listed():
    page.resize(1440, 900)
    page.driver.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': True})
    page.driver.get(link_of(server))
    page.see('h1', 'cairn')
    said = page.see('dl', 'cairn job list').text
    page.driver.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': False})
    findings = []
    words = set(re.findall(r'cairn job (\w+)', said)) | {'pause', 'edit', 'move', 'rm'}
    for word in sorted(words):
        done = server.cairn('job', word, '--help')
        if done.returncode:
            findings.append(f'cairn job {word} --help: {done.stderr}')
    page.driver.get(link_of(server))
    page.see('.history .item')
    return findings + ([] if len(words) >= 9 else [f'named: {sorted(words)}']) + page.trouble()


CASES = [
    a_preset_becomes_a_running_job, the_curve_moves, stop_and_resume_make_one_curve, a_clone_is_compared_with_its_parent, log_and_files_can_be_taken_along,
    texts_that_a_model_wrote_can_be_read, pictures_are_shown_by_step_and_prompt, an_error_is_shown_at_its_line, five_megabytes_do_not_stop_the_page, a_long_name_breaks_nothing, a_job_without_its_files_says_so,
    a_verdict_names_the_cause, without_scripts_the_commands_are_listed,
]
try:
    tap.only(CASES, sys.argv[1:])
finally:
    page.__exit__()
    server.__exit__()

# SPDX-License-Identifier: Apache-2.0
"""Controls that people reach for with a mouse: drag, wheel, menus, search, selections.  Nothing here trains for long."""
import json
import os
import sys

import tap
from browser import KEYS, MACHINE, Browser, Server

CONFIG = '''model: {layers: 1, heads: 2, width: 32, context: 32}
data: {path: words.txt}
train: {steps: STEPS, batch: 4, allow_cpu: true}
checkpoint: {every: 25}
eval: {every: 0}
'''
NOISY = r'''echo 'Loading weights'; for i in 1 2 3 4 5 6; do echo "steps: 10%|#  | $i/60 [00:01<00:09, 5it/s]"; done; echo 'warning: slow disk'; echo 'done'; sleep 600'''

server = Server('--root', MACHINE, '--allow-root')
with open(os.path.join(server.home, 'words.txt'), 'w', encoding='utf-8') as words:
    words.write('the quick brown fox jumps over the lazy dog. ' * 400)
page = Browser(server).__enter__()


def jobs():
    return json.loads(server.cairn('job', 'list', '--json').stdout)['jobs']


def job(name):
    return next((j for j in jobs() if j['name'] == name), None)


def add(name, *arguments, steps=60, command=None):
    path = os.path.join(server.home, 'job.yaml')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(CONFIG.replace('STEPS', str(steps)))
    done = server.cairn('job', 'add', '--gpu', 'cpu', '--name', name, *arguments, *(['--', *command] if command else [path]))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def choose(selector, value):
    page.js('const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event("change"))', selector, value)


def names(selector):
    return page.js('return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)', selector)


# ---- a command of another trainer ----

def a_command_is_written_and_run():
    findings = []
    page.go('#/new')
    page.click('[role=tab]', 'Command')
    page.type('#cmd', 'sh -c "echo it\'s here')
    page.see('.words .wrong')
    page.click('.save .primary')
    page.see('.toast.error', 'quote')
    page.type('#cmd', f"sh -c '{NOISY.replace(chr(39), chr(34))}'")
    page.wait(lambda: names('.words code')[:2] == ['sh', '-c'], 'the words of the command')
    page.see('h2', 'Environment')
    choose('#job-gpu', 'cpu')
    page.type('#job-name', 'noisy')
    page.click('.save .primary')
    page.see('article.run', 'noisy')
    kept = job('noisy')
    if kept['kind'] != 'run' or kept['gpu'] != 'cpu':
        findings.append(f'the job is {kept["kind"]} on {kept["gpu"]}')
    return findings + page.trouble()


def its_log_is_folded_followed_and_searched():
    findings = []
    page.go(f'#/job/{job("noisy")["uid"]}/log')
    page.see('.log', 'done')

    def bars():
        return page.js('return [...document.querySelectorAll(".log .bar-line")].filter((e) => e.offsetHeight).length')
    before = bars()
    page.click('.toolbar .toggle', 'Fold')
    after = bars()
    if (before, after) != (6, 1):
        findings.append(f'{before} lines of progress, {after} when folded')
    page.see('.log .warn', 'slow disk')
    followed = 'return document.querySelectorAll(".toolbar input[type=checkbox]")[1].checked'
    page.js('document.activeElement.blur()')
    was = page.js(followed)
    page.press('f')
    if page.js(followed) == was:
        findings.append('f does not change whether the log is followed')
    page.press('/')
    page.press('weights', KEYS.ENTER)
    page.see('.log .hit', 'Loading weights')
    page.see('.toolbar .muted', '1 of 1')
    return findings + page.trouble()


def a_job_that_does_not_stop_is_ended_by_force():
    page.go('#/')
    page.click('article.run [aria-haspopup]')
    page.click('.menu .entry', 'Force stop')
    page.see('dialog', 'noisy')
    page.press(KEYS.ESCAPE)
    page.gone('dialog')
    alive = job('noisy')['alive']
    page.click('article.run [aria-haspopup]')
    page.click('.menu .entry', 'Force stop')
    page.click('dialog .danger', 'Force stop')
    page.gone('article.run')
    page.see('.history .item', 'noisy')
    return ([] if alive else ['a question that was not answered ended it']) + page.trouble()


# ---- the queue and the history ----

def the_queue_is_ordered_by_hand():
    server.cairn('job', 'queue', 'pause')
    for name in ('one', 'two', 'three'):
        add(name)
    page.go('#/')
    page.see('.queue .item', 'three')
    page.wait(lambda: names('.queue .item-link') == ['one', 'two', 'three'], 'the queue')
    rows = page.all('.queue .item')
    handle = page.all('.queue .handle')[2]
    height = rows[0].size['height']
    chain = page.chain().click_and_hold(handle)
    for _ in range(8):
        chain = chain.move_by_offset(0, -int(height / 4))
    chain.release().perform()
    page.wait(lambda: names('.queue .item-link') == ['three', 'one', 'two'], 'three in front')
    page.wait(lambda: [j['name'] for j in sorted((j for j in jobs() if j['state'] == 'queued'), key=lambda j: j['position'])] == ['three', 'one', 'two'], 'that order on the server')
    page.reload()
    page.wait(lambda: names('.queue .item-link') == ['three', 'one', 'two'], 'that order after a reload')
    return page.trouble()


def the_history_is_searched_and_filtered():
    findings = []
    server.cairn('job', 'queue', 'go')
    page.wait(lambda: all(job(name)['state'] == 'finished' for name in ('one', 'two', 'three')), 'three finished jobs')
    add('a draft', '--draft')
    page.wait(lambda: set(names('.history .item-link')) == {'one', 'two', 'three', 'noisy', 'a draft'}, 'all jobs')
    page.type('.section-head input[type=search]', 'thr')
    page.wait(lambda: names('.history .item-link') == ['three'], 'what was searched for')
    page.type('.section-head input[type=search]', 'no such job')
    page.see('p', 'No job fits this search')
    page.js('const e = document.querySelector(".section-head input[type=search]"); e.value = ""; e.dispatchEvent(new Event("input"))')
    for word, want in (('Drafts', {'a draft'}), ('Finished', {'one', 'two', 'three'}), ('All', {'one', 'two', 'three', 'noisy', 'a draft'})):
        page.click('.choice button', word)
        page.wait(lambda w=want: set(names('.history .item-link')) == w, word)
    return findings + page.trouble()


def selected_jobs_are_compared_and_deleted():
    page.js('for (const row of document.querySelectorAll(".history .item")) if (["one", "two"].includes(row.querySelector(".item-link").textContent)) row.querySelector(".pick").click()')
    page.see('.bulk', '2 selected')
    page.click('.bulk .button', 'Compare')
    page.wait(lambda: len(page.all('.legend .dot')) == 2, 'two curves')
    page.go('#/')
    page.see('.history .item', 'one')
    page.js('for (const row of document.querySelectorAll(".history .item")) if (["noisy", "a draft"].includes(row.querySelector(".item-link").textContent)) row.querySelector(".pick").click()')
    page.click('.bulk .button', 'Delete')
    page.see('dialog h2', '2 jobs')
    page.click('dialog .danger')
    page.wait(lambda: set(names('.history .item-link')) == {'one', 'two', 'three'}, 'that two are gone')
    page.reload()  # leaving the page deletes at once
    page.wait(lambda: {j['name'] for j in jobs()} == {'one', 'two', 'three'}, 'that two are deleted')
    return page.trouble()


# ---- the chart ----

def first_and_last_step():
    steps = names('.table-box tbody th') or ['0']
    return int(steps[0].replace(',', '')), int(steps[-1].replace(',', ''))


def a_curve_is_zoomed_by_drag_and_wheel():
    findings = []
    page.go(f'#/job/{job("three")["uid"]}/chart')
    page.wait(lambda: first_and_last_step() == (1, 60), 'the whole curve')
    chart = page.see('.chart')
    page.js('arguments[0].scrollIntoView({ block: "center" })', chart)
    page.chain().move_to_element_with_offset(chart, -100, 0).click_and_hold().move_by_offset(60, 0).move_by_offset(140, 0).release().perform()
    page.see('.toolbar .button', 'Show all')
    page.wait(lambda: first_and_last_step()[0] > 5 and first_and_last_step()[1] < 55, 'a part of it')
    low, high = first_and_last_step()
    page.js('''const c = document.querySelector(".chart"); c.focus(); const r = c.getBoundingClientRect();
               c.dispatchEvent(new WheelEvent("wheel", { deltaY: 100, clientX: r.left + r.width / 2, bubbles: true, cancelable: true }))''')
    page.wait(lambda: first_and_last_step()[1] - first_and_last_step()[0] > high - low, 'a wider part')
    page.click('.toolbar .button', 'Show all')
    page.wait(lambda: first_and_last_step() == (1, 60), 'the whole curve again')
    return findings + page.trouble()


def its_axes_and_its_table_can_be_chosen():
    findings = []
    canvas = 'return document.querySelector(".chart canvas").toDataURL()'
    for text in ('Log scale', 'Cut outliers'):
        before = page.js(canvas)
        page.click('.toolbar .toggle', text)
        if text == 'Log scale':
            page.wait(lambda b=before: page.js(canvas) != b, f'another picture with {text}')
        page.click('.toolbar .toggle', text)
    before = page.js(canvas)
    page.js('const e = document.querySelector(".toolbar input[type=range]"); e.value = 0; e.dispatchEvent(new Event("input"))')
    page.wait(lambda: page.js(canvas) != before, 'another picture without smoothing')
    page.click('.choice button', 'Time')
    page.wait(lambda: names('.table-box thead th')[0] == 'Time' and names('.table-box tbody th')[-1].endswith('s'), 'a table by time')
    page.click('.choice button', 'Step')
    metrics = names('.toolbar select option')
    if not {'Loss', 'Learning rate', 'Gradient norm'} <= set(metrics):
        findings.append(f'values to choose from: {metrics}')
    choose('.toolbar select', 'lr')
    page.see('.chart-box')
    page.wait(lambda: 'Learning rate' in names('.table-box caption')[0], 'the learning rate')
    page.js('''const make = URL.createObjectURL;
               URL.createObjectURL = (blob) => { blob.text().then((text) => { window.text = text; }); return make.call(URL, blob); };
               HTMLAnchorElement.prototype.click = function () { window.file = this.download; }''')
    page.click('.toolbar .button', 'CSV')
    name, text = page.wait(lambda: page.js('return window.text && [window.file, window.text]'), 'a file')
    lines = text.splitlines()
    if name != 'three-lr.csv' or lines[0] != 'run,step,lr_min,lr_mean,lr_max' or len(lines) != 61 or not lines[-1].startswith('"three",60,'):
        findings.append(f'{name} has {len(lines)} lines: {lines[:2]} … {lines[-1]}')
    return findings + page.trouble()


CASES = [
    a_command_is_written_and_run, its_log_is_folded_followed_and_searched, a_job_that_does_not_stop_is_ended_by_force, the_queue_is_ordered_by_hand,
    the_history_is_searched_and_filtered, selected_jobs_are_compared_and_deleted, a_curve_is_zoomed_by_drag_and_wheel, its_axes_and_its_table_can_be_chosen,
]
try:
    tap.only(CASES, sys.argv[1:])
finally:
    page.__exit__()
    server.__exit__()

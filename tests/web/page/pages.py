# SPDX-License-Identifier: Apache-2.0
"""The page in a browser, with a real server and real jobs on the CPU.

The cases go on from one another: a job is written, watched, stopped, resumed, cloned and compared.
"""
import json
import os
import posixpath
import re
import signal
import sys

import tap
from browser import KEYS, MACHINE, Browser, Server, link_of

WORDS = 'the quick brown fox jumps over the lazy dog and then it sleeps. ' * 400
# Small enough for a step in milliseconds, long enough that nobody sees its end.
CONFIG = '''# what this is
model:
  layers: 1
  heads: 2
  width: 32
  context: 32
data:
  path: words.txt   # beside the server
train:
  steps: {steps}
  batch: 4
  lr: 1e-3
  allow_cpu: true
eval:
  every: 0
checkpoint:
  every: 50
'''
ASSETS = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', '..', 'src', 'web', 'assets')
EVIL = '<img src=x onerror="document.title=1">&amp;"\''

server = Server('--root', MACHINE, '--allow-root')
with open(os.path.join(server.home, 'words.txt'), 'w', encoding='utf-8') as words:
    words.write(WORDS)
page = Browser(server).__enter__()


def jobs():
    return json.loads(server.cairn('job', 'list', '--json').stdout)['jobs']


def job(name):
    return next(j for j in jobs() if j['name'] == name)


def add(name, *arguments, command=None):
    """With the command line, as another terminal would."""
    path = os.path.join(server.home, 'job.yaml')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(CONFIG.format(steps=1000000))
    done = server.cairn('job', 'add', '--gpu', 'cpu', '--name', name, *arguments, *(['--', *command] if command else [path]))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def write_text(text):
    page.js('''const area = document.querySelector(".editor textarea"); area.focus(); area.value = arguments[0];
               area.dispatchEvent(new Event("input"))''', text)


def choose(selector, value):
    page.js('const e = document.querySelector(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event("change"))', selector, value)


def step_shown():
    """The step that the page shows, or -1."""
    note = page.text('.stat .note').split(' ')[0].replace(',', '')
    return int(note) if note.isdigit() else -1


# ---- a job's life ----

def an_empty_list_says_what_to_do():
    page.see('.empty', 'No jobs yet')
    page.see('.empty a', 'New job')
    return page.trouble()


def errors_are_marked_at_their_line_as_one_types():
    page.go('#/new')
    page.click('[role=tab]', 'YAML')
    write_text(CONFIG.format(steps=10).replace('steps:', 'stepz:'))
    page.see('.findings .bad', 'stepz')
    marked = page.js('return [...document.querySelectorAll(".gutter .bad")].map((e) => e.textContent)')
    page.click('.findings .link')
    line = page.js('const a = document.activeElement; return a.value.slice(a.selectionStart, a.selectionEnd)')
    return ([] if marked == ['10'] else [f'marked lines: {marked}']) + ([] if 'stepz' in line else [f'selected: {line}']) + page.trouble()


def the_form_edits_lines_and_keeps_comments():
    write_text(CONFIG.format(steps=1000000))
    page.click('[role=tab]', 'Form')
    page.type('#f-train-batch', '8')
    page.wait(lambda: 'batch: 8' in page.js('return document.querySelector(".editor textarea").value'), 'batch: 8 in the text')
    page.see('.field.set label', 'Batch')
    text = page.js('return document.querySelector(".editor textarea").value')
    want = CONFIG.format(steps=1000000).replace('batch: 4', 'batch: 8')
    return ([] if text == want else [f'the text is now: {text}']) + page.trouble()


def keys_are_suggested():
    page.click('[role=tab]', 'YAML')
    page.js('const a = document.querySelector(".editor textarea"); a.focus(); a.setSelectionRange(a.value.length, a.value.length)')
    page.press('sam')
    page.see('.suggest li', 'sample')
    page.press(KEYS.TAB)
    page.wait(lambda: page.js('return document.activeElement.value.endsWith("sample:\\n  ")'), 'the section, completed')
    page.press('ev')
    page.see('.suggest li', 'every')
    page.press(KEYS.ENTER, '100')
    return ([] if page.js('return document.activeElement.value').endswith('sample:\n  every: 100') else ['the key was not completed']) + page.trouble(('api/v1/plan',))  # it refuses half a word


def a_job_is_planned_and_added():
    write_text(CONFIG.format(steps=1000000))
    choose('#job-gpu', 'cpu')
    page.type('#job-name', 'first')
    page.see('.fine')
    page.see('.fit-word', 'It fits')
    page.click('.save .primary')
    page.see('article.run', 'first')
    page.wait(lambda: step_shown() > 0, 'a step')
    return page.trouble()


def the_job_is_watched():
    findings = []
    uid = job('first')['uid']
    page.go(f'#/job/{uid}')
    page.see('.tall .chart canvas')
    before = step_shown()
    page.wait(lambda: step_shown() > max(before, 50), 'further steps')
    page.go(f'#/job/{uid}/chart')
    page.click('.toolbar .button', 'Table')
    page.see('.table-box caption')
    cells = page.js('return [...document.querySelectorAll(".table-box td")].map((e) => e.innerText)')
    first, last = float(cells[0]), float(cells[-1].replace('−', '-'))
    if not first > last:
        findings.append(f'the loss went from {first} to {last}')
    page.js('document.querySelector(".chart").focus()')
    page.press(KEYS.ARROW_RIGHT, KEYS.ARROW_RIGHT, '+')
    page.see('.toolbar .button', 'Show all')
    page.see('.tip', 'step')
    page.press('0')
    page.gone('.toolbar .button', 'Show all')
    page.go(f'#/job/{uid}/log')
    page.see('.log', 'step 1/')
    page.go(f'#/job/{uid}/files')
    page.see('.files', 'log.jsonl')
    return findings + page.trouble()


def it_stops_with_a_checkpoint_and_resumes():
    uid = job('first')['uid']
    page.go(f'#/job/{uid}')
    page.click('.job-head .button', 'Stop')
    page.see('.job-head .badge', 'Stopped')
    stopped = job('first')
    page.click('.job-head .button', 'Resume')
    page.see('.job-head .badge', 'Running')
    page.wait(lambda: step_shown() > stopped['step'], f'a step beyond {stopped["step"]}')
    page.click('.job-head .button', 'Pause')
    page.see('.job-head .badge', 'Paused')
    page.go('#/')
    page.see('.queue .item', 'first')
    return page.trouble()


def a_clone_shows_what_changed():
    uid = job('first')['uid']
    page.go(f'#/job/{uid}')
    page.click('.job-head [aria-haspopup]')
    page.click('.menu .entry', 'Clone')
    page.see('h1', 'Edit job')
    page.click('[role=tab]', 'YAML')
    write_text(CONFIG.format(steps=1000000).replace('1e-3', '2e-3'))
    page.type('#job-name', 'second')
    page.click('.save .button:not(.primary)')
    page.see('h1', 'second')
    second = job('second')
    page.go(f'#/job/{second["uid"]}/config')
    page.see('.diff ins', '2e-3')
    page.see('.diff del', '1e-3')
    page.click('.job-head .button', 'Add to the queue')
    page.see('.job-head .badge', 'Running')
    page.wait(lambda: (job('second')['step'] or 0) > 5, 'steps of the second')
    page.go(f'#/job/{second["uid"]}/chart?with={uid}')
    page.wait(lambda: len(page.all('.legend .dot')) == 2, 'two curves')
    page.see('.legend', 'first')
    return page.trouble()


def a_change_of_another_tab_is_not_overwritten():
    """The version of the text decides."""
    uid = job('first')['uid']
    page.go(f'#/job/{uid}/edit')
    page.see('h1', 'Edit job')
    server.cairn('job', 'edit', '--note', 'from elsewhere', uid)
    page.click('.save .button', 'Save')
    page.see('.toast.error')
    return page.trouble(allowed=['412'])


def remove(uid, name):
    """Once nothing of its page is asked for any more: that would be a 404."""
    page.go('#/')
    page.see('.history .item', name)
    server.cairn('job', 'rm', uid)


def a_curve_has_the_last_steps_of_a_job_that_ended():
    """However soon they came after the others."""
    uid = add('short curve', '--draft', '--steps', '60')
    page.go(f'#/job/{uid}/chart')
    page.see('.job-body .empty')
    page.click('.job-head .button', 'Add to the queue')
    page.see('.job-head .badge', 'Finished')
    page.wait(lambda: page.js('return [...document.querySelectorAll(".table-box tbody th")].at(-1)?.textContent') == '60', 'the last step in the table')
    remove(uid, 'short curve')
    return page.trouble()


def what_the_command_line_set_is_part_of_the_text_to_edit():
    """It would win over a field that is changed here."""
    findings = []
    uid = add('with set', '--draft', '--steps', '77', '--set', 'train.lr=5e-3')
    page.go(f'#/job/{uid}/config')
    page.see('.words code', 'train.lr: 5e-3')
    page.go(f'#/job/{uid}/edit')
    page.wait(lambda: page.js('return document.querySelector("#f-train-steps")?.value') == '77', 'the steps of the command line')
    page.type('#f-train-lr', '6e-3')
    page.see('.fine')
    page.click('.save .button:not(.primary)')
    page.see('h1', 'with set')
    now = job_shown(uid)
    want = CONFIG.format(steps=77).replace('1e-3', '6e-3')
    if now['config'] != want or 'set' in now['options'] or 'steps' in now['options']:
        findings.append(f'kept: {now["options"]}, {now["config"]}')
    remove(uid, 'with set')
    return findings + page.trouble()


def job_shown(uid):
    answer = json.loads(server.cairn('job', 'show', '--json', uid).stdout)
    return answer.get('job', answer)


# ---- the queue, by keys alone ----

def the_queue_is_ordered_by_keys():
    page.go('#/')
    page.see('article.run', 'second')
    for name in ('a', 'b', 'c'):
        add(name)
    page.see('.queue .item', 'c')
    names = [e.text for e in page.all('.queue .item-link')]
    page.js('[...document.querySelectorAll(".queue .item-link")].find((e) => e.textContent === "c").focus()')
    page.press(KEYS.ARROW_UP, alt=True)
    page.press(KEYS.ARROW_UP, alt=True)
    page.wait(lambda: [e.text for e in page.all('.queue .item-link')].index('c') == len(names) - 3, 'that c moved')
    focused = page.focused()

    def order():
        return [j['name'] for j in sorted((j for j in jobs() if j['position'] is not None), key=lambda j: j['position'])]
    page.wait(lambda: order().index('c') < order().index('a'), 'the order of the queue')
    page.reload()
    page.see('.queue .item', 'c')
    again = [e.text for e in page.all('.queue .item-link')]
    return ([] if focused == 'c' else [f'the focus went to {focused}']) + ([] if again.index('c') < again.index('a') < again.index('b') else [f'after a reload: {again}']) + page.trouble()


def the_queue_pauses_and_goes_on():
    page.click('.section-head .button', 'Pause the queue')
    page.see('.notice', 'paused')
    page.click('.section-head .button', 'Resume the queue')
    page.gone('section > .notice')
    return page.trouble()


def keys_work_and_can_be_switched_off():
    findings = []
    page.go('#/')
    page.see('article.run')
    page.js('document.body.focus()')
    page.press('?')
    page.see('dialog.keys', 'new job')
    page.press(KEYS.ESCAPE)
    page.gone('dialog')
    page.press('j')
    page.press('g', 'm')
    page.see('h1', 'Machine')
    page.press('n')
    page.see('h1', 'New job')
    page.go('#/settings')
    page.click('.toggle', 'Single keys')
    page.js('document.activeElement.blur()')
    page.press('n')
    if page.js('return location.hash') != '#/settings':  # a key acts before press() returns
        findings.append('a key acted though they are switched off')
    page.click('.toggle', 'Single keys')
    return findings + page.trouble()


# ---- failures ----

def a_failure_is_explained_and_tried_again():
    server.cairn('job', 'queue', 'pause')
    for each in jobs():
        if each['alive']:
            server.cairn('job', 'kill', each['uid'])
    page.wait(lambda: not any(j['alive'] for j in jobs()), 'that nothing runs')
    for each in jobs():
        server.cairn('job', 'rm', each['uid'])
    server.cairn('job', 'queue', 'go')
    add('broken', '--retries', '0', command=['sh', '-c', 'echo "torch 2.9.1+rocm6.4, AMD Radeon RX 6750 XT gfx1031"; echo "RuntimeError: HIP error: invalid device function"; exit 1'])
    page.go('#/')
    page.see('.history .item', 'Failed')
    uid = job('broken')['uid']
    page.go(f'#/job/{uid}')
    page.see('.notice.error', 'It failed')
    page.click('.notice .button', 'The error in the log')
    page.see('.log .first-error', 'invalid device function')
    page.go(f'#/job/{uid}/verdict')
    page.see('.verdict', 'no-kernel-image')
    page.click('.fixes .button', 'Try again with this')
    page.see('h1', 'broken (with a fix)')
    env = job_shown(job('broken (with a fix)')['uid'])['env']
    return ([] if 'HSA_OVERRIDE_GFX_VERSION' in env else [f'the new job has not the fix: {env}']) + page.trouble()


def deleting_can_be_undone():
    page.go('#/')
    count = len(jobs())
    page.wait(lambda: len(page.all('.history .item')) == count, 'that every job is over')
    page.js('document.querySelector(".history .item-link").focus()')
    page.press(KEYS.DELETE)
    page.see('dialog', 'Delete')
    page.click('dialog .danger')
    page.wait(lambda: len(page.all('.history .item')) == count - 1, 'that a row is gone')
    page.click('.toast .button', 'Undo')
    page.wait(lambda: len(page.all('.history .item')) == count, 'that the row is back')
    findings = [] if len(jobs()) == count else ['it was deleted though it was undone']
    page.js('document.querySelector(".history .item-link").focus()')
    page.press(KEYS.DELETE)
    page.click('dialog .danger')
    page.see('.toast', 'deleted')
    page.reload()  # leaving the page deletes at once
    page.wait(lambda: len(jobs()) == count - 1, 'that the job is deleted')
    return findings + page.trouble()


def names_are_never_markup():
    uid = add(EVIL, '--draft')
    page.go('#/')
    page.see('.history .item', EVIL)
    page.go(f'#/job/{uid}')
    page.see('h1', EVIL)
    found = page.js('return document.querySelectorAll("main img").length')
    return ([] if not found else ['a name became an element']) + page.trouble()


def the_end_of_a_job_is_told_to_who_looks_elsewhere():
    page.go('#/')
    page.see('.history .item', EVIL)
    page.js('''app.save({ notify: true });
        window.told = [];
        window.Notification = class { static permission = "granted"; constructor(title) { told.push(title); } };
        Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
        document.dispatchEvent(new Event("visibilitychange"))''')
    uid = add('short', '--steps', '20')
    told = page.wait(lambda: page.js('return told'), 'a notification')
    title = page.js('return document.title')
    page.js('delete document.hidden; document.dispatchEvent(new Event("visibilitychange")); app.save({ notify: false })')
    page.see('.history .item', 'short')
    after = page.js('return document.title')
    server.cairn('job', 'rm', uid)
    return ([] if told == ['short is finished'] and title.startswith('✓') and not after.startswith('✓') else [f'told: {told}; title {title!r}, later {after!r}']) + page.trouble()


# ---- machine, doctor, settings ----

def the_machine_and_the_doctor_are_shown():
    page.go('#/machine')
    page.see('.gpu h2', 'AMD Radeon 8060S')
    page.see('.gpu .facts', '112 GiB')
    page.go('#/doctor')
    page.see('.verdict')
    page.click('summary', 'could not be made')
    page.see('.finding code')
    return page.trouble()


def gpus_without_a_number_are_told_apart():
    """Without /sys/class/kfd a GPU has no number."""
    page.go('#/machine')
    page.see('.gpu h2')
    shown = page.driver.execute_async_script('''const done = arguments[0];
        import(new URL("events.js", location.href)).then(({ machine, emit }) => {
          const before = machine.gpus;
          machine.gpus = ["0000:03:00.0", "0000:0a:00.0"].map((pci) => ({ ...before[0], index: null, pci, busy_percent: 7 }));
          for (let i = 0; i < 3; i++) emit("gpus", machine);
          done([document.querySelectorAll(".gpus li").length, document.querySelectorAll(".card.gpu").length]);
          machine.gpus = before;
          emit("gpus", machine);
        })''')
    return ([] if shown == [2, 2] else [f'two GPUs are shown as {shown}']) + page.trouble()


def the_theme_follows_the_system_or_the_setting():
    findings = []
    colour = 'return getComputedStyle(document.body).backgroundColor'
    page.go('#/settings')
    page.theme(True)
    dark = page.js(colour)
    page.theme(False)
    light = page.js(colour)
    if dark == light:
        findings.append('the theme does not follow the system')
    page.click('.choice button', 'Dark')
    if page.js(colour) != dark:
        findings.append('the setting does not win over the system')
    page.wait(lambda: server_setting('ui.theme') == 'dark', 'the setting on the server')
    page.reload()
    if page.js(colour) != dark:
        findings.append('the setting is lost by a reload')
    page.click('.choice button', 'System')
    page.wait(lambda: server_setting('ui.theme') == 'system', 'the setting on the server')
    page.theme(True)
    return findings + page.trouble()


def server_setting(key):
    return page.js('return fetch("api/v1/settings").then((r) => r.json()).then((v) => v.settings[arguments[0]])', key)


# ---- the window ----

def nothing_is_wider_than_a_phone():
    findings = []
    uid = job(EVIL)['uid']
    add('a name of which nobody thought how long it would become, with everything in it ' + 'x' * 60, '--draft')
    page.resize(360, 740)
    for route in ['#/', '#/new', '#/new?view=yaml', '#/new?view=command', '#/machine', '#/doctor', '#/settings', *(f'#/job/{uid}{tab}' for tab in ('', '/chart', '/log', '/samples', '/files', '/config', '/edit'))]:
        page.go(route)
        page.settled()
        if page.overflow() > 0:
            findings.append(f'{route} is {page.overflow()} pixels too wide')
    page.go('#/')
    page.see('.history .pick')
    page.js('[...document.querySelectorAll(".history .pick")].slice(0, 2).forEach((box) => box.click())')
    page.see('.bulk .button', 'Delete')
    if page.overflow() > 0:
        findings.append(f'with jobs selected the list is {page.overflow()} pixels too wide')
    page.click('.bulk .button', 'Clear')
    page.gone('.bulk')
    page.resize(1440, 900)
    return findings + page.trouble()


def the_keyboard_reaches_the_content_first():
    page.go('#/')
    page.reload()
    page.press(KEYS.TAB)
    first = page.focused()
    page.press(KEYS.ENTER)
    where = page.js('return document.activeElement.id')
    return ([] if 'Skip' in first else [f'the first stop is {first}']) + ([] if where == 'main' else [f'skipping leads to {where}'])


def needed_at_once():
    """What index.html names, and what its script imports: the files that the server sends are asked, not the sources."""
    text = server.get('/').body.decode()
    todo, seen = re.findall(r'(?:src|href)="([\w./-]+)"', text), {''}
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.endswith('.js'):
            found = re.findall(r"""(?:^|[;\n])import\b[^;'"(]*['"](\.[^'"]+)['"]""", server.get(f'/{name}').body.decode())
            todo += [posixpath.normpath(posixpath.join(posixpath.dirname(name), each)) for each in found]
    return seen


def the_first_paint_waits_for_few_requests():
    """With all other requests refused, the frame is painted nevertheless.  That says the same on any machine, however slow."""
    server.login(link_of(server))
    needed = needed_at_once()
    every = [os.path.relpath(os.path.join(folder, name), ASSETS) for folder, _, names in os.walk(ASSETS) for name in names if name != 'meson.build']
    refused = [f'*/{name}*' for name in every if name not in needed and name != 'index.html'] + ['*/api/*']
    page.driver.execute_cdp_cmd('Network.enable', {})
    page.driver.execute_cdp_cmd('Network.setCacheDisabled', {'cacheDisabled': True})
    page.driver.execute_cdp_cmd('Network.setBlockedURLs', {'urls': refused})
    page.driver.refresh()
    page.see('nav.main a', 'Machine')
    page.wait(lambda: page.js('return performance.getEntriesByName("first-contentful-paint").length'), 'the first paint')
    page.see('.banner.offline')  # the page's own module was asked for, and refused
    came = page.js("""const base = new URL(".", location.href).href;
        return performance.getEntriesByType("resource").filter((e) => e.responseStatus === 200).map((e) => e.name.slice(base.length).split("#")[0])""")
    findings = [f'not refused: {name}' for name in came if name not in needed] + [f'not asked for: {name}' for name in needed - {'', *came}]
    page.driver.execute_cdp_cmd('Network.setBlockedURLs', {'urls': []})
    page.reload()
    ms = page.wait(lambda: page.js('return performance.getEntriesByName("first-contentful-paint")[0]?.startTime'), 'the first paint')
    page.driver.execute_cdp_cmd('Network.setCacheDisabled', {'cacheDisabled': False})
    print(f'# first paint after {ms:.0f} ms, {len(needed)} requests')
    return findings + ([] if len(needed) <= 8 else [f'{len(needed)} requests before the first paint: {sorted(needed)}']) + page.trouble(allowed=['ERR_BLOCKED_BY_CLIENT'])


def a_server_that_goes_away_and_comes_back():
    page.go('#/')
    port = server.port
    server.stop(signal.SIGKILL)
    page.see('.banner.offline', 'does not answer')
    drawn = page.js('return document.querySelector(".banner .icon").getBBox().width')
    server.port = port
    server.start()
    page.gone('.banner.offline', seconds=120)
    page.see('.history .item', EVIL)
    return ([] if drawn > 0 else ['the icon of the message is missing']) + page.trouble(allowed=['Failed to load resource', 'ERR_', 'EventSource'])


def a_read_only_link_shows_no_button_that_changes():
    link = json.loads(server.cairn('ui', '--url', '--read-only', '--json').stdout)['link']
    page.driver.delete_all_cookies()
    page.driver.get(link)
    page.see('.history .item', EVIL)
    shown = [e.text for e in page.all('.primary')] + [e.get_attribute('aria-label') for e in page.all('.item [aria-haspopup]')]
    return ([] if not shown else [f'shown: {shown}']) + page.trouble()


def a_session_that_ended_says_how_to_get_a_link():
    page.driver.delete_all_cookies()
    page.js('location.hash = "#/doctor"')
    page.see('.banner.signed-out', 'cairn ui --url')
    page.driver.get(link_of(server))
    page.see('.history .item')
    return page.trouble(allowed=['401', 'MIME type'])


CASES = [
    an_empty_list_says_what_to_do, a_curve_has_the_last_steps_of_a_job_that_ended, errors_are_marked_at_their_line_as_one_types, the_form_edits_lines_and_keeps_comments, keys_are_suggested,
    a_job_is_planned_and_added, the_job_is_watched, it_stops_with_a_checkpoint_and_resumes, a_clone_shows_what_changed,
    a_change_of_another_tab_is_not_overwritten, what_the_command_line_set_is_part_of_the_text_to_edit, the_queue_is_ordered_by_keys, the_queue_pauses_and_goes_on, keys_work_and_can_be_switched_off,
    a_failure_is_explained_and_tried_again, deleting_can_be_undone, names_are_never_markup,
    the_end_of_a_job_is_told_to_who_looks_elsewhere, the_machine_and_the_doctor_are_shown, gpus_without_a_number_are_told_apart,
    the_theme_follows_the_system_or_the_setting, nothing_is_wider_than_a_phone, the_keyboard_reaches_the_content_first,
    the_first_paint_waits_for_few_requests, a_server_that_goes_away_and_comes_back, a_read_only_link_shows_no_button_that_changes,
    a_session_that_ended_says_how_to_get_a_link,
]
try:
    tap.only(CASES, sys.argv[1:])
finally:
    page.__exit__()
    server.__exit__()

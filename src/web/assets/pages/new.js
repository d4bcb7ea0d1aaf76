// SPDX-License-Identifier: Apache-2.0
// A new job, or another text for one that does not run.  Form and YAML are two views of one text.
import { h, t, icon, fill, put, attr, settle } from '../dom.js';
import { get, post, patch, session, Problem } from '../api.js';
import { emit, loadMachine, machine } from '../events.js';
import { ask, busyButton, copyButton, loading, problemBox, toast } from '../ui.js';
import { bytes } from '../format.js';
import { Editor } from '../editor.js';
import { form, showFit } from '../form.js';
import { isForeign, joinCommand, overrides, scan, splitCommand, withOverrides } from '../yaml.js';

const KEPT = 'cairn.new';
const LONGEST = 512 * 1024; // bytes of a configuration: written as JSON, it must fit into 1 MiB

export function open(root, { uid, query }) {
  const page = { job: null, text: '', view: 'form', table: { kinds: {}, presets: [] }, errors: [] };
  let over = false;
  app.title(t(uid ? 'edit.title' : 'new.title'));
  fill(root, loading());
  prepare().catch((problem) => fill(root, problemBox(problem, () => open(root, { uid, query }))));

  async function prepare() {
    await app.ready;
    const [table, job] = await Promise.all([get('config'), uid ? get(`jobs/${uid}`) : null, loadMachine().catch(() => {})]);
    if (over) return;
    Object.assign(page, { table, job });
    const kept = uid ? null : restore();
    page.text = job?.config ? wholeText(job, table) : kept?.text ?? '';
    page.view = (job ? job.kind === 'run' : kept?.view === 'command') ? 'command' : query.get('view') ?? kept?.view ?? 'form';
    fill(root, layout(page, kept));
  }

  const close = () => {
    over = true;
    page.stop?.();
  };
  return close;
}

// What was set on the command line becomes part of the text: it would win over a field that is edited here.
const isWhole = (job) => Boolean(job.config) && overrides(job.options).length > 0 && !isForeign(job.config);

function wholeText(job, table) {
  const types = new Map(Object.values(table.kinds).flat().map((key) => [key.name, key.type]));
  return isWhole(job) ? withOverrides(job.config, job.options, (key) => ['text', 'list'].includes(types.get(key))) : job.config;
}

function restore() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT));
  } catch {
    return null;
  }
}

function layout(page, kept) {
  const { job, table } = page;
  const name = h('input.wide', { id: 'job-name', value: job?.name ?? kept?.name ?? '', maxlength: 120, placeholder: t('new.name.hint'), autocomplete: 'off', oninput: () => keep() });
  const gpu = h('select.wide', { id: 'job-gpu', onchange: () => planSoon() }, [['auto', t(machine.gpus.length ? 'gpu.auto.long' : 'gpu.auto.none')], ...machine.gpus.filter((g) => Number.isInteger(g.index)).map((g) => [String(g.index), `${t('gpu.n', { n: g.index })} · ${g.name ?? g.gfx ?? ''}`]), ['cpu', t('cpu')]].map(([v, label]) => h('option', { value: v, selected: v === (job?.gpu ?? 'auto') }, label)));
  const editor = new Editor({ label: t('new.yaml'), keys: () => table.kinds[scan(page.text).keys.get('model.kind')?.value || 'gpt'] ?? [], changed: (text) => setText(text, editor) });
  const fields = form({ table: () => table, changed: (text) => setText(text, fields) });
  const folder = h('input.wide', { id: 'job-cwd', value: job?.cwd ?? kept?.cwd ?? '', readOnly: Boolean(job), spellcheck: false, placeholder: t('new.cwd.hint'), oninput: () => { keep(); planSoon(); } });
  const cwd = () => folder.value.trim() || undefined;
  const cmd = commandView(job, () => keep());
  const report = h('div.report', { role: 'status' });
  const fit = h('div.fit');
  const panel = (id, ...body) => h('div', { id: `view-${id}`, role: 'tabpanel', 'aria-labelledby': `tab-${id}` }, body);
  const views = { form: panel('form', fields), yaml: panel('yaml', editor.node, dropHint()), command: panel('command', cmd.node) };
  const nav = h('div.tabs', { role: 'tablist', 'aria-label': t('new.views') });
  const fitCard = h('section.card', h('h2', t('fit.title')), fit);
  const titleText = job ? t('edit.title') : t('new.title');

  function setText(text, from) {
    page.text = text;
    showPreset();
    if (from !== editor) editor.set(text);
    if (from === editor && page.view === 'form') fields.show(text);
    if (from === fields) fields.show(text);
    keep();
    checkSoon();
  }

  function show(view) {
    page.view = view;
    const ids = job ? (job.kind === 'run' ? ['command'] : ['form', 'yaml']) : session.run_allowed ? ['form', 'yaml', 'command'] : ['form', 'yaml'];
    fill(nav, ids.map((id) => h('button.tab', { role: 'tab', id: `tab-${id}`, 'aria-selected': String(id === view), 'aria-controls': `view-${id}`, tabindex: id === view ? 0 : -1, onclick: () => show(id), onkeydown: arrows }, t(`new.view.${id}`))));
    for (const id in views) views[id].hidden = id !== view;
    presets.hidden = view === 'command' || Boolean(job);
    fitCard.hidden = view === 'command';
    report.hidden = view === 'command';
    if (view === 'form') fields.show(page.text);
    if (view === 'form') fields.mark(page.errors);
    if (view === 'yaml') editor.paint();
    if (view === 'command') cmd.preview();
    keep();
  }

  function arrows(e) {
    const all = [...nav.children];
    const to = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!to) return;
    all.at((all.indexOf(e.target) + to) % all.length).click();
    nav.querySelector('[aria-selected=true]').focus();
  }

  const keep = () => {
    if (job) return;
    try {
      sessionStorage.setItem(KEPT, JSON.stringify({ text: page.text, name: name.value, view: page.view, command: cmd.text(), cwd: folder.value }));
    } catch { /* not kept then */ }
  };

  let checked = 0;
  const check = async () => {
    const mine = ++checked;
    if (!page.text.trim()) {
      page.errors = [];
      fill(report);
      return plan();
    }
    const size = new Blob([page.text]).size;
    if (size > LONGEST) {
      page.errors = [{ line: 0, message: t('check.long', { size: bytes(size), most: bytes(LONGEST) }), hint: t('check.long.hint') }];
      showReport({});
      return plan();
    }
    try {
      const answer = await post('check', { config: page.text });
      if (mine !== checked) return;
      page.errors = answer.errors ?? [];
      showReport(answer);
      planSoon();
    } catch (problem) {
      fill(report, problemBox(problem));
    }
  };
  const checkSoon = settle(250, check);

  function showReport(answer) {
    editor.mark(page.errors);
    fields.mark(page.errors);
    const line = (e, kind) => h('li', { class: kind }, icon(kind === 'bad' ? 'failed' : 'info'), h('div', e.line > 0 && h('button.link', { onclick: () => { show('yaml'); editor.goTo(e.line); } }, t('check.line', { n: e.line })), e.line > 0 && ' ', h('span', e.message ?? e), e.hint && h('p.muted', e.hint)));
    fill(report, page.errors.length ? h('ul.findings', page.errors.map((e) => line(e, 'bad'))) : null, (answer.notes ?? []).length ? h('ul.findings', answer.notes.map((n) => line(n, 'note'))) : null,
      !page.errors.length && h('p.fine', icon('ok'), t('check.ok')));
  }

  let planned = 0;
  const plan = async () => {
    const mine = ++planned;
    if (page.view === 'command') return;
    if (!page.text.trim() || page.errors.length) return fill(fit, h('p.muted', t(page.errors.length ? 'fit.errors' : 'fit.empty')));
    fit.classList.add('stale');
    try {
      const answer = await post('plan', { config: page.text, device: /^\d/.test(gpu.value) ? `hip:${gpu.value}` : gpu.value, cwd: cwd() });
      if (mine !== planned) return;
      showFit(fit, answer);
      editor.mark([]);
      fields.mark([]);
    } catch (problem) {
      if (mine === planned) showDoubt(problem);
    }
    if (mine === planned) fit.classList.remove('stale');
  };
  const planSoon = settle(400, plan);

  // What a plan stumbles over, such as a file that is not there, often has a key: then its field and its line are marked.
  function showDoubt(problem) {
    fill(fit, h('div.notice', icon('warn'), h('div', h('p', problem.message), problem.hint && h('p.muted', problem.hint))));
    const [, key, message] = /^(\w+\.\w+): (.*)/s.exec(problem.message) ?? [];
    if (!key) return;
    const doubt = { key, message, line: (scan(page.text).keys.get(key)?.line ?? -1) + 1 };
    editor.mark([doubt]);
    fields.mark([doubt]);
  }
  page.stop = () => [checkSoon, planSoon].forEach((work) => work.cancel());

  const presetAbout = h('p.about');
  const chips = table.presets.map((p) => h('button.chip', { title: aboutOf(p.text), onclick: async () => {
    if (page.text.trim() && !table.presets.some((q) => q.text === page.text) && !await ask({ title: t('new.replace'), text: t('new.replace.text'), yes: t('new.replace.yes') })) return;
    if (!name.value || table.presets.some((q) => q.name === name.value)) name.value = p.name;
    setText(p.text, null);
    if (page.view === 'form') fields.show(p.text);
  } }, p.name));
  const presets = h('div.presets', { role: 'group', 'aria-label': t('new.presets') }, h('span.muted', t('new.presets')), chips, presetAbout);

  // The preset that was taken last, what it is for, and whether it is changed since.
  function showPreset() {
    const at = table.presets.findIndex((p) => p.text === page.text);
    chips.forEach((chip, i) => attr(chip, 'aria-pressed', String(i === at)));
    put(presetAbout, at < 0 ? '' : aboutOf(table.presets[at].text));
    presetAbout.hidden = at < 0;
  }

  function dropHint() {
    const file = h('input', { type: 'file', accept: '.yaml,.yml,.json,.toml,.txt', hidden: true, onchange: () => file.files[0]?.text().then((text) => setText(text, null)) });
    editor.node.addEventListener('dragover', (e) => e.preventDefault());
    editor.node.addEventListener('drop', (e) => {
      const dropped = e.dataTransfer?.files[0];
      if (!dropped) return;
      e.preventDefault();
      dropped.text().then((text) => setText(text, null));
    });
    return h('div.row.under', file, h('button.button.small', { onclick: () => file.click() }, icon('file'), t('new.file')), copyButton(() => page.text), h('span.muted', t('new.drop')));
  }

  // --- saving ---

  const body = () => (page.view === 'command' ? { kind: 'run', argv: splitCommand(cmd.text()) } : { kind: job?.kind ?? 'train', config: page.text });

  async function save(start) {
    if (page.view !== 'command') {
      if (!page.text.trim()) throw new Problem(422, { detail: t('new.no.text') });
      await check();
      if (page.errors.length && start) throw new Problem(422, { detail: t('new.fix.first', { n: page.errors.length }) });
    } else if (!splitCommand(cmd.text())?.length) throw new Problem(422, { detail: t(splitCommand(cmd.text()) ? 'new.no.command' : 'cmd.quote') });
    const values = { ...body(), name: name.value.trim() || guess(), gpu: gpu.value };
    let answer;
    if (job) {
      const { kind, ...changes } = values;
      if (isWhole(job)) changes.options = { ...job.options, set: undefined, steps: undefined };
      answer = await patch(`jobs/${job.uid}`, changes, job.version);
      if (start) answer = await post(`jobs/${job.uid}/start`);
    } else {
      page.key ??= `${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`;
      answer = await post('jobs', { ...values, cwd: cwd(), start }, { 'Idempotency-Key': page.key });
      sessionStorage.removeItem(KEPT);
    }
    if (answer?.uid) emit('job', answer);
    toast(t(start ? 'did.enqueue' : 'did.saved', { name: values.name }), { kind: 'good' });
    location.hash = start ? '#/' : `#/job/${answer?.uid ?? job?.uid}`;
  }

  const guess = () => (page.view === 'command' ? splitCommand(cmd.text()).slice(0, 3).join(' ') : scan(page.text).keys.get('run.name')?.value || t('new.unnamed'));
  const canStart = !job || !['queued', 'paused'].includes(job.state);
  const buttons = h('div.save', canStart && busyButton(t(job ? 'edit.start' : 'new.start'), 'play', () => save(true), { class: 'primary' }), busyButton(t(job ? 'edit.save' : 'new.draft'), null, () => save(false), { class: canStart ? '' : 'primary' }));

  editor.set(page.text);
  showPreset();
  show(page.view);
  if (kept?.command) cmd.set(kept.command);
  checkSoon();
  if (!page.text.trim()) plan();
  if (job?.parent && job.state === 'draft') setTimeout(() => name.select()); // a clone has the name of its original
  return [job && h('a.back', { href: `#/job/${job.uid}` }, icon('back'), job.name), h('div.page-head', h('h1', { tabindex: -1 }, titleText)), nav,
    h('div.columns.new', h('div.stack', presets, Object.values(views)), h('div.stack.aside', h('section.card', h('div.field', h('label', { for: 'job-name' }, t('job.name')), name), h('div.field', h('label', { for: 'job-gpu' }, t('fact.gpu')), gpu), h('div.field', h('label', { for: 'job-cwd' }, t('new.cwd')), folder, h('p.about', t('new.cwd.about'))), buttons), report, fitCard))];
}

// The comment at the head of a preset says what it is for; what is indented there is a command.
const aboutOf = (text) => text.split('\n').filter((line) => /^# \S/.test(line)).map((line) => line.slice(2)).join(' ');

// --- commands of other trainers -----------------------------------------------------------------------------------

function commandView(job, changed) {
  const line = h('textarea.code', { id: 'cmd', rows: 3, spellcheck: false, placeholder: 'python train.py --config my.yaml', value: job?.argv ? joinCommand(job.argv) : '', oninput: () => { parts(); changed(); } });
  const words = h('div.words');
  const env = h('div');
  const parts = () => {
    const list = splitCommand(line.value);
    fill(words, list ? list.map((word) => h('code', word)) : h('p.wrong', t('cmd.quote')));
  };
  parts();
  async function preview() {
    try {
      const answer = await post('env', {});
      const row = (v, kind) => h('li', h('code', kind === 'unset' ? `unset ${v.name}` : `${v.name}=${v.value}`), h('p.muted', v.why));
      const lists = ['set', 'unset'].flatMap((kind) => (answer[kind] ?? []).map((v) => row(v, kind)));
      fill(env, lists.length ? h('ul.env', lists) : h('p.muted', t('cmd.env.none')), (answer.warnings ?? []).length > 0 && h('ul.env', answer.warnings.map((w) => h('li.muted', w))));
    } catch (problem) {
      fill(env, h('p.muted', problem.message));
    }
  }
  const node = h('div.stack', h('section.card', h('div.field', h('label', { for: 'cmd' }, t('cmd.label')), line, h('p.about', t('cmd.about')), words)), h('section.card', h('h2', t('cmd.env')), h('p.muted', t('cmd.env.about')), env));
  return { node, preview, text: () => line.value, set: (text) => { line.value = text; parts(); } };
}

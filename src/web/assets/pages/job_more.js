// SPDX-License-Identifier: Apache-2.0
// The quieter views of a job: files, text, verdict.
import { h, t, icon, fill } from '../dom.js';
import { get, post, fileUrl, session } from '../api.js';
import { on, emit } from '../events.js';
import { actionsOf } from '../actions.js';
import { busyButton, command, copyButton, empty, loading, problemBox, toast } from '../ui.js';
import { ago, bytes, count } from '../format.js';
import { diff, joinCommand, overrides, withOverrides } from '../yaml.js';
import { highlight } from '../editor.js';

// What the run wrote: checkpoints by step, then the rest.

export function files(root, { uid }) {
  const box = h('div', loading());
  root.append(box);
  const load = async () => {
    try {
      const { files } = await get(`jobs/${uid}/files`);
      fill(box, files.length ? groups(files) : empty('file', t('files.none.title'), t('files.none.text')));
    } catch (problem) {
      fill(box, problemBox(problem, load));
    }
  };
  load();
  return on('checkpoint', (e) => e.uid === uid && load());
}

const sizeOf = (file) => file.size_bytes ?? file.size;

function groups(files) {
  const steps = [...new Set(files.filter((f) => f.step > 0 && /checkpoint/.test(f.path)).map((f) => f.step))].sort((a, b) => b - a);
  const inOrder = (list) => list.sort((a, b) => a.path.localeCompare(b.path, 'en', { numeric: true }));
  const isSample = (f) => f.path.startsWith('samples/');
  const samples = inOrder(files.filter(isSample));
  const rest = inOrder(files.filter((f) => !isSample(f) && (!steps.includes(f.step) || !/checkpoint/.test(f.path))));
  const total = files.reduce((sum, f) => sum + (sizeOf(f) ?? 0), 0);
  return [h('p.muted.total', t('files.total', { n: files.length, size: bytes(total) })),
    steps.map((step, i) => group(t('files.checkpoint', { step: count(step) }), inOrder(files.filter((f) => f.step === step && /checkpoint/.test(f.path))), i === 0)),
    samples.length > 0 && group(t('tab.samples'), samples, false), rest.length > 0 && group(t('files.rest'), rest, true)];
}

const group = (title, files, shown) => h('details.card.files', { open: shown }, h('summary', h('span.grow', title), h('span.muted', bytes(files.reduce((sum, f) => sum + (sizeOf(f) ?? 0), 0)))),
  h('ul', files.map((f) => h('li', icon('file'), h('a.grow.clip', { href: fileUrl('files', f.folder, f.path), download: f.path.split('/').at(-1), title: f.path }, f.path.split('/').slice(f.step > 0 ? -1 : 1).join('/') || f.path), h('span.muted', f.time ? ago(f.time) : ''), h('span.size', bytes(sizeOf(f)))))));

// The text of a job as it was typed, and what its clone changed.

export function config(root, { job }) {
  const j = job();
  const edit = actionsOf(j).find((a) => a.name === 'edit') ?? actionsOf(j).find((a) => a.name === 'clone');
  const changes = h('section', { hidden: true });
  const text = j.config;
  root.append(changes,
    text ? h('section.card', h('div.section-head', h('h2', t('config.title')), h('span.grow'), edit && h('button.button.small', { onclick: edit.run }, icon(edit.icon), edit.label), download(j), copyButton(text)), h('pre.code-box', { tabindex: 0, 'aria-label': t('config.title') }, highlight(text)), over(j)) : '',
    j.argv ? h('section.card', h('h2', t('cmd.label')), command(joinCommand(j.argv)), h('dl.facts', h('div', h('dt', t('new.cwd')), h('dd', h('code', j.cwd))))) : '',
    Object.keys(j.env ?? {}).length ? h('section.card', h('h2', t('config.env')), h('ul.env', Object.entries(j.env).map(([k, v]) => h('li', h('code', `${k}=${v}`))))) : '');
  if (j.parent && text) compare(changes, j);
}

// What is stronger than the text.
const over = (j) => overrides(j.options).length > 0 && [h('p.muted.above', t('config.over')), h('div.words', overrides(j.options).map(([key, value]) => h('code', `${key}: ${value}`)))];

const download = (j) => h('a.button.small', { href: URL.createObjectURL(new Blob([j.config])), download: `${j.name}.yaml` }, icon('save'), t('log.download'));

async function compare(box, job) {
  const parent = await get(`jobs/${job.parent}`).catch(() => null);
  if (!parent?.config) return;
  const lines = diff(withOverrides(parent.config, parent.options), withOverrides(job.config, job.options));
  const near = (i) => lines.slice(Math.max(0, i - 2), i + 3).some(([mark]) => mark !== ' ');
  const shown = lines.filter((_, i) => near(i));
  box.hidden = false;
  fill(box, h('div.card', h('div.section-head', h('h2', t('config.diff')), h('a.clip', { href: `#/job/${parent.uid}` }, parent.name)), shown.length ? h('pre.code-box.diff', { tabindex: 0, 'aria-label': t('config.diff') }, shown.map(([mark, line]) => h(mark === '+' ? 'ins' : mark === '-' ? 'del' : 'span', `${mark} ${line}\n`))) : h('p.muted', t('config.same'))));
}

// Why it failed, by the log, and what to try; a fix that cairn can make is one click.

export function verdict(root, context) {
  const box = h('div', loading());
  root.append(box);
  const load = async () => {
    const job = context.job();
    try {
      fill(box, report(await get(`jobs/${context.uid}/verdict`), job));
    } catch (problem) {
      fill(box, problem.status === 404 ? empty('doctor', t('verdict.none.title'), t('verdict.none.text')) : problemBox(problem, load));
    }
  };
  load();
}

function report(d, job) {
  const sure = d.confidence > 0 ? t('verdict.sure', { n: Math.round(d.confidence * 100) }) : '';
  const failed = job.state === 'failed';
  if (d.severity === 'none' && !failed) return empty('doctor', t('verdict.healthy'));
  if (d.class === 'unknown' || d.severity === 'none') return unknown(failed && job.cause ? job.cause : d.cause, job);
  return h('div.stack.narrow', h('section.card.verdict.edge-fail', h('div.row.wrap', h('code', d.class), h('span.muted', sure)), h('p.big-text', d.cause),
    (d.evidence ?? []).length > 0 && h('div.evidence', d.evidence.map((e) => h('code', e.text ?? e))), h('a', { href: `#/job/${job.uid}/log?error` }, t('failed.log'))),
  h('h2', t('verdict.fixes')), h('ol.stack.tight.fixes', (d.fix ?? []).map((fix, i) => h('li.card.finding', h('span.number', i + 1), h('div.stack.tight', fixText(fix), retry(fix, job))))),
  (d.also ?? []).length > 0 && h('p.muted', t('verdict.also', { list: d.also.map((a) => a.class).join(', ') })));
}

// No rule knows it: what the trainer itself said, and where to go on.
function unknown(cause, job) {
  const next = actionsOf(job).filter((a) => a.name === 'edit').map((a) => h('button.button.small', { onclick: a.run }, icon(a.icon), a.label));
  return h('section.card.verdict.edge-fail.narrow', h('p.big-text', cause), h('p.muted', t('verdict.unknown')),
    h('div.row.wrap', h('a.button.small', { href: `#/job/${job.uid}/log?error` }, icon('jobs'), t('failed.log')), next));
}

// The first line says what; the others are to be typed.
function fixText(fix) {
  const [first, ...rest] = fix.text.split('\n');
  return [h('p', first), rest.length > 0 && command(rest.join('\n'))];
}

function retry(fix, job) {
  const set = Object.entries(fix.set ?? {});
  const can = fix.auto && !session.read_only && (set.length || fix.action === 'cpu');
  return [set.length > 0 && h('p', set.map(([k, v]) => h('code.var', `${k}=${v}`))), can && h('div.row', busyButton(t('verdict.retry'), 'play', async () => {
    // Values that the server does not tell are its own; it adds them again.
    const env = { ...Object.fromEntries(Object.entries(job.env ?? {}).filter(([, v]) => v !== '(hidden)')), ...fix.set };
    for (const name of fix.unset ?? []) delete env[name];
    const { name, kind, config, argv, cwd, options } = job;
    const body = { name: t('verdict.name', { name }), kind, cwd, env, options, gpu: fix.action === 'cpu' ? 'cpu' : job.gpu, start: true, ...(argv ? { argv } : { config }) };
    const answer = await post('jobs', body);
    emit('job', answer);
    toast(t('did.enqueue', { name: body.name }), { kind: 'good' });
    location.hash = `#/job/${answer.uid}`;
  }, { class: 'small' }))];
}

// SPDX-License-Identifier: Apache-2.0
// The first look at a job: what it does or why it stopped, the curve, the newest sample, the end of the log.
import { h, t, icon, put, fill, settle } from '../dom.js';
import { get, getText, session } from '../api.js';
import { on, throttle } from '../events.js';
import { isLive, stateOf, actionsOf } from '../actions.js';
import { badge, busyButton, meter } from '../ui.js';
import { count, moment } from '../format.js';
import { Chart, toRun } from '../chart.js';
import { clean } from '../log_line.js';
import { newestSample, numbers, placeOf, sayWait, shareOf, still } from '../run_card.js';

export function open(root, { uid, job, patch }) {
  const say = h('div');
  const figures = numbers();
  const bar = meter(NaN, t('stat.progress'));
  const chart = new Chart(t('chart.label'), t('chart.hint'));
  const tail = h('pre.tail', { tabindex: 0, 'aria-label': t('log.tail') });
  const card = (title, tab, more, ...body) => h('section.card', { hidden: true }, h('div.section-head', h('h2', t(title)), h('span.grow'), h('a', { href: `#/job/${uid}/${tab}` }, t(more))), body);
  const curve = card('stat.curve', 'chart', 'open.chart', chart.node);
  const log = card('log.tail', 'log', 'open.log', tail);
  const picture = h('div');
  const sample = card('sample.newest', 'samples', 'open.samples', picture);
  const facts = h('dl.facts');
  const note = h('textarea', { rows: 2, placeholder: t('note.hint'), 'aria-label': t('note'), readOnly: session.read_only, value: job().note ?? '', onchange: () => patch({ note: note.value }) });
  const main = h('section.card', figures, bar);
  curve.classList.add('tall');
  const plan = card('config.title', 'config', 'open.config');
  root.append(h('div.columns', h('div.stack', say, main, curve, log, plan), h('div.stack', sample, h('section.card', h('h2', t('facts')), facts, note))));

  let works = [];
  let shown = job().state;
  const update = () => {
    const j = job();
    if (shown !== j.state) works.forEach((work) => work());
    shown = j.state;
    main.hidden = !(j.step > 0) && !isLive(j);
    figures.update(j);
    bar.set(shareOf(j));
    bar.hidden = !Number.isFinite(shareOf(j));
    plan.hidden ||= isLive(j);
    explain(say, j);
    showFacts(facts, j);
  };
  const drawCurve = async () => {
    const series = await get(`jobs/${uid}/series?metrics=loss&points=800`).catch(() => null);
    const run = series && toRun(series, 'loss', false, { name: job().name, color: 0 });
    curve.hidden = !(run?.xs.length > 1);
    if (!curve.hidden) chart.set([run], { smooth: app.settings.smoothing * 100 });
  };
  const drawTail = async () => {
    const { text } = await getText(`jobs/${uid}/log?tail=3000`).catch(() => ({ text: '' }));
    const lines = text.split('\n').map(clean).filter((line) => line.trim()).slice(-9);
    log.hidden = !lines.length;
    put(tail, lines.join('\n'));
  };
  const drawSample = async () => {
    const s = await newestSample(uid);
    const [text] = s || job().kind !== 'train' ? [] : await import('./job_samples.js').then((m) => m.textSamples(uid, 1)).catch(() => []);
    sample.hidden = !s && !text;
    if (text) fill(picture, h('p.said.short', text.text), h('p.muted.two-lines', t('sample.at', { step: count(text.step) })));
    if (s) fill(picture, h('a.picture', { href: `#/job/${uid}/samples` }, still(s)), h('p.muted.two-lines', [t('sample.at', { step: count(s.step) }), s.prompt].filter(Boolean).join(' · ')));
  };

  update();
  // Before the first step, what it will do.
  const drawPlan = async () => {
    const j = job();
    if (!j.config || j.step > 0 || !['queued', 'draft'].includes(j.state)) return;
    const { highlight } = await import('../editor.js');
    plan.hidden = false;
    plan.append(h('pre.code-box', { tabindex: 0, 'aria-label': t('config.title') }, highlight(j.config)));
  };
  [drawCurve, drawTail, drawSample, drawPlan].forEach((draw) => draw());
  const mine = (work) => (e) => e.uid === uid && work();
  works = [throttle(2000, drawCurve), throttle(1000, drawTail), settle(300, drawSample)];
  const off = ['series', 'log', 'sample'].map((kind, i) => on(kind, mine(works[i])));
  off.push(on('checkpoint', mine(works[2])), on('opened', () => works.forEach((work) => work())));
  const close = () => {
    off.forEach((undo) => undo());
    works.forEach((work) => work.cancel());
    chart.close();
  };
  close.update = update;
  return close;
}

// A panel that says what is the matter and what to do, for every state that is not plain running or finished.
function explain(box, job) {
  const name = stateOf(job);
  const step = count(job.step ?? 0);
  const text = { failed: job.cause ?? t('failed.text'), lost: [t('lost.text', { step }), job.resumable && t('lost.resume')].filter(Boolean).join(' '), paused: t('paused.text', { step }), queued: t('queued.text'), draft: t('draft.text') }[name] ?? sayWait(job);
  box.hidden = !text;
  if (!text || box.dataset.text === name + text) return;
  box.dataset.text = name + text;
  const resume = (name === 'lost' || name === 'paused') && actionsOf(job).find((a) => a.name === 'resume');
  const tone = { failed: 'error', queued: 'calm', draft: 'calm', starting: 'calm' }[name] ?? '';
  fill(box, h('div.notice.big', { class: tone, role: 'status' }, icon(name), h('div.grow', name === 'failed' && h('h2', t('failed.title')), h('p', text),
    name === 'failed' && h('div.row.wrap', h('a.button.small', { href: `#/job/${job.uid}/verdict` }, icon('doctor'), t('failed.what')), h('a.button.small', { href: `#/job/${job.uid}/log?error` }, icon('jobs'), t('failed.log'))),
    resume && h('div.row', busyButton(resume.label, resume.icon, resume.run, { class: 'small' })))));
}

function showFacts(list, job) {
  const key = JSON.stringify([stateOf(job), job.started, job.finished, job.version, job.attempt, job.run_dir]);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  const rows = [['state', badge(stateOf(job))], ['kind', t(`kind.${job.kind}`)], ['gpu', placeOf(job)], ['created', moment(job.created)], ['started', job.started && moment(job.started)], ['finished', job.finished && moment(job.finished)],
    ['attempt', job.attempt > 1 && count(job.attempt)], ['exit', job.exit_code], ['folder', job.run_dir && h('code', job.run_dir)],
    ['parent', job.parent && h('a', { href: `#/job/${job.parent}` }, t('fact.parent.link'))], ['id', h('code', job.uid)]];
  fill(list, rows.filter(([, value]) => value !== null && value !== undefined && value !== false && value !== 0).map(([name, value]) => h('div', h('dt', t(`fact.${name}`)), h('dd', value))));
}

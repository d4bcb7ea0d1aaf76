// SPDX-License-Identifier: Apache-2.0
// A job that runs, with what one wants to know first: how far, how well, how long still.
import { h, t, put, attr, fill } from './dom.js';
import { get, fileUrl } from './api.js';
import { on } from './events.js';
import { actionsOf, buttonsOf, isLive, stateOf } from './actions.js';
import { badge, busyButton, menuButton, meter, spark, stat } from './ui.js';
import { ago, bytes, count, duration, loss, now, percent, speed, until, NONE } from './format.js';

// The figures of a job; update(job) renews them, trend(text) is a word beside the loss.
export function numbers() {
  const parts = {};
  for (const name of ['progress', 'loss', 'left', 'speed', 'memory', 'took']) parts[name] = stat(t(`stat.${name}`));
  const node = h('dl.stats', Object.values(parts));
  const set = (name, value, note = '') => {
    put(parts[name].value, value);
    if (name !== 'loss') put(parts[name].note, note);
    parts[name].hidden = value === NONE && name !== 'loss';
  };
  node.trend = (text) => put(parts.loss.note, text);
  node.update = (job) => {
    const live = isLive(job);
    const share = shareOf(job);
    const known = Number.isFinite(share);
    set('progress', known ? percent(share) : count(job.step ?? 0), known ? t('of', { a: count(job.step ?? 0), b: count(job.steps) }) : t('steps.word', { n: job.step }));
    set('loss', loss(job.loss));
    set('left', live ? duration(job.eta_s) : NONE, job.eta_s > 0 ? t('ends', { at: until(now() + job.eta_s) }) : '');
    set('speed', speed(job));
    set('memory', bytes(job.mem_bytes));
    set('took', job.started ? duration((live ? now() : job.finished ?? now()) - job.started) : NONE, job.attempt > 1 ? t('attempt', { n: job.attempt }) : '');
  };
  return node;
}

// A run that went on with a text of fewer steps is whole.
export const shareOf = (job) => (job.steps > 0 ? Math.min(1, (job.step ?? 0) / job.steps) : NaN);
export const placeOf = (job) => {
  const gpu = job.gpu_used ?? job.gpu;
  return gpu === 'cpu' ? t('cpu') : gpu === 'auto' ? t('gpu.auto') : t('gpu.n', { n: gpu });
};

// The newest sample of a job, or undefined.
export async function newestSample(uid) {
  const { samples } = await get(`jobs/${uid}/samples`).catch(() => ({ samples: [] }));
  const step = Math.max(...samples.map((s) => s.step));
  return samples.find((s) => s.step === step);
}

// A sample where it is not to be played.
export function still(s, alt = s.prompt ?? '') {
  const src = fileUrl('files', s.folder, s.path);
  return isVideo(s) ? h('video', { src, preload: 'metadata', muted: true, 'aria-label': alt }) : h('img', { src, alt, loading: 'lazy' });
}

export const isVideo = (s) => /\.(mp4|webm)$/i.test(s.path);

const BUTTONS = ['pause', 'stop', 'kill'];

export function runCard(first) {
  let job = first;
  let shown = [];
  let history = null;
  const link = h('a.item-link');
  const about = h('p.muted.clip');
  const state = h('span');
  const figures = numbers();
  const curve = spark(t('stat.curve'));
  const bar = meter(0, t('stat.progress'));
  const picture = h('a.last-sample', { hidden: true });
  const buttons = h('div.row');
  const note = h('p.notice', { hidden: true });
  const node = h('article.card.run.item',
    h('div.run-main', h('header.row', state, h('h2.grow.clip', link), buttons, menuButton(t('more'), () => actionsOf(job).filter((a) => !shown.includes(a.name)))), about, note, figures, curve), picture, bar);

  node.update = (j) => {
    job = node.job = j;
    const name = stateOf(job);
    if (state.dataset.state !== name) showState(name);
    attr(link, 'href', `#/job/${job.uid}`);
    attr(link, 'title', job.name);
    put(link, job.name);
    put(about, [placeOf(job), t(`kind.${job.kind}`), job.started && t('started', { ago: ago(job.started) }), job.attempt > 1 && t('attempt', { n: job.attempt }), job.adopted && t('adopted')].filter(Boolean).join(' · '));
    const text = sayWait(job);
    note.hidden = !text;
    put(note, text ?? '');
    figures.update(job);
    bar.set(shareOf(job));
    if (!history || !(job.step > history.last) || !Number.isFinite(job.loss)) return;
    history.last = job.step;
    history.values.push(job.loss);
    draw();
  };

  function showState(name) {
    state.dataset.state = name;
    fill(state, badge(name));
    const chosen = buttonsOf(job, BUTTONS);
    shown = chosen.map((a) => a.name);
    fill(buttons, chosen.map((a) => busyButton(a.label, a.icon, a.run, { class: 'small' })));
  }

  function draw() {
    const values = smooth(history.values);
    curve.draw(values);
    figures.trend(trend(history.values));
  }

  // The curve is asked for once; afterwards each new step is added to it.
  async function load() {
    const series = await get(`jobs/${job.uid}/series?metrics=loss&points=300`).catch(() => null);
    history = { values: (series?.metrics.loss?.mean ?? []).map((v) => v ?? NaN), last: series?.last_step ?? 0 };
    if (history.values.length) draw();
    showSample();
  }

  async function showSample() {
    const s = await newestSample(job.uid);
    picture.hidden = !s;
    if (!s) return;
    attr(picture, 'href', `#/job/${job.uid}/samples`);
    fill(picture, still(s), h('span', t('sample.at', { step: count(s.step) })));
  }
  load();
  const off = on('sample', (e) => (node.isConnected ? e.uid === job.uid && showSample() : off()));
  return node;
}

// What a job that is about to end, or has not begun, waits for.
export function sayWait(job) {
  const name = stateOf(job);
  if (name === 'starting') return job.cause ?? undefined;
  return name === 'stopping' || name === 'pausing' ? t(`${name}.${job.stopping_s > 0 ? 'wait' : 'text'}`, { s: duration(job.stopping_s) }) : undefined;
}

// The last fifth of the run against the one before: noise is no news.
function trend(values) {
  const n = Math.floor(values.length / 5);
  const mean = (part) => part.filter(Number.isFinite).reduce((sum, v, _, all) => sum + v / all.length, 0);
  const [before, after] = [mean(values.slice(-2 * n, -n)), mean(values.slice(-n))];
  const change = (after - before) / Math.abs(before);
  return n < 4 || !Number.isFinite(change) ? '' : t(change < -0.01 ? 'trend.down' : change > 0.05 ? 'trend.up' : 'trend.level');
}

function smooth(values, keep = 0.9) {
  let mean = 0;
  let weight = 0;
  return values.map((v) => {
    if (Number.isFinite(v)) {
      mean = keep * mean + (1 - keep) * v;
      weight = keep * weight + 1 - keep;
    }
    return weight ? mean / weight : NaN;
  });
}

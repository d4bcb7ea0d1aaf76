// SPDX-License-Identifier: Apache-2.0
// Curves of a run beside those of others.
import { h, t, has, icon, fill, settle } from '../dom.js';
import { get, query as ask } from '../api.js';
import { on, jobs, throttle } from '../events.js';
import { choice, empty, problemBox, select, toggle } from '../ui.js';
import { count, duration, figure } from '../format.js';
import { Chart, nearest, toRun } from '../chart.js';

const kept = { metric: 'loss', log: false, clip: false };
const saveSmooth = settle(800, (smoothing) => app.save({ smoothing }));

export function open(root, { uid, job, query }) {
  Object.assign(kept, { smooth: app.settings.smoothing * 100, time: app.settings.axis === 'time' });
  const chart = new Chart(t('chart.label'), t('chart.hint'));
  const data = new Map();
  let asked = 0;
  const legend = h('ul.legend');
  const table = h('div.table-box.hidden', { tabindex: 0, role: 'region', 'aria-label': t('chart.table') });
  const slot = h('div');
  const reset = h('button.button.small', { hidden: true, onclick: () => chart.zoom(null) }, icon('again'), t('chart.all'));
  const metrics = h('span');
  const slider = h('input', { type: 'range', min: 0, max: 100, value: kept.smooth, 'aria-label': t('chart.smooth'), oninput: () => { set('smooth', Number(slider.value)); saveSmooth(Math.min(0.99, slider.value / 100)); } });
  const tableButton = h('button.button.small', { 'aria-expanded': 'false', onclick: () => tableButton.setAttribute('aria-expanded', String(!table.classList.toggle('hidden'))) }, t('chart.table'));
  root.append(h('div.toolbar', metrics, choice(t('chart.axis'), [[false, t('chart.axis.step')], [true, t('chart.axis.time')]], kept.time, (v) => { chart.view = null; app.save({ axis: v ? 'time' : 'step' }); set('time', v); }),
    h('label.toggle', t('chart.smooth'), slider), toggle(t('chart.log'), kept.log, (v) => set('log', v)), toggle(t('chart.clip'), kept.clip, (v) => set('clip', v)),
    h('span.grow'), reset, tableButton, h('button.button.small', { onclick: csv }, icon('save'), t('chart.csv'))),
  slot, h('div.chart-box.card', chart.node, legend), table);

  const others = () => (query().get('with') ?? '').split(',').filter(Boolean);
  const all = () => [uid, ...others().filter((id) => id !== uid)].slice(0, 8);
  const nameOf = (id) => (id === uid ? job().name : jobs.get(id)?.name ?? data.get(id)?.name ?? id);

  function set(name, value) {
    kept[name] = value;
    show();
  }

  async function load() {
    const mine = ++asked;
    const view = kept.time ? null : chart.view;
    const part = view ? { from: Math.max(0, Math.floor(view.low)), to: Math.ceil(view.high) } : {};
    const answers = await Promise.allSettled(all().map(async (id) => {
      if (!jobs.has(id)) jobs.set(id, await get(`jobs/${id}`));
      return [id, await get(`jobs/${id}/series${ask({ points: 2000, ...part })}`)];
    }));
    if (mine !== asked) return;
    fill(slot, answers.filter((a) => a.status === 'rejected').map((a) => problemBox(a.reason, load)));
    for (const a of answers) if (a.status === 'fulfilled') data.set(a.value[0], a.value[1]);
    if (!view) chart.all = null;
    show();
    if (!view) chart.all = chart.extent();
  }

  function show() {
    const names = [...new Set(all().flatMap((id) => Object.keys(data.get(id)?.metrics ?? {})))].filter((name) => name !== 'elapsed_s');
    if (names.length && !names.includes(kept.metric)) kept.metric = names[0];
    if (metrics.dataset.names !== names.join()) {
      metrics.dataset.names = names.join();
      fill(metrics, names.length > 0 && select(t('chart.metric'), names.map((name) => [name, label(name)]), kept.metric, (v) => set('metric', v)));
    }
    const runs = all().map((id, color) => data.has(id) && toRun(data.get(id), kept.metric, kept.time, { name: nameOf(id), color, id })).filter(Boolean);
    const nothing = data.size > 0 && !runs.some((run) => run.xs.length);
    if (nothing) fill(slot, empty('chart', t('chart.none.title'), t('chart.none.text')));
    chart.node.parentNode.hidden = nothing;
    chart.set(runs, kept);
    reset.hidden = !chart.view;
    showLegend(runs);
    showTable();
  }

  function showLegend(runs) {
    const add = select(t('chart.add'), [['', t('chart.add')], ...[...jobs.values()].filter((j) => !all().includes(j.uid) && j.step > 0).slice(0, 100).map((j) => [j.uid, j.name])], '', (id) => id && go([...others(), id]));
    fill(legend, runs.map((run) => {
      const last = run.line?.at(-1);
      const least = run.mean.reduce((a, v, i) => (v < run.mean[a] ? i : a), 0);
      return h('li', h('i.dot', { class: `c${run.color}` }), h('a.clip', { href: `#/job/${run.id}`, title: run.name }, run.name), h('span.muted', run.xs.length ? t('chart.sum', { last: figure(last), least: figure(run.mean[least]), at: place(run.xs[least]) }) : t('chart.nothing')),
        run.id !== uid && h('button.quiet', { 'aria-label': t('chart.remove', { name: run.name }), onclick: () => go(others().filter((id) => id !== run.id)) }, icon('close')));
    }), all().length < 8 && h('li.add', add));
  }

  const place = (x) => (kept.time ? duration(x) : count(Math.round(x)));
  const label = (name) => (has(`metric.${name}`) ? t(`metric.${name}`) : name);
  const go = (ids) => { location.hash = `#/job/${uid}/chart${ids.length ? `?with=${ids.join(',')}` : ''}`; };

  // At most fifty rows: what the curve shows, in numbers.
  function showTable() {
    const { low, high } = chart.view ?? chart.extent();
    const rows = Array.from({ length: 51 }, (_, i) => low + ((high - low) * i) / 50);
    const cell = (run, x) => (run.xs.length && x <= run.xs.at(-1) ? figure(run.mean[nearest(run.xs, x)]) : '');
    fill(table, h('table', h('caption', t('chart.caption', { metric: label(kept.metric) })), h('thead', h('tr', h('th', { scope: 'col' }, t(kept.time ? 'chart.axis.time' : 'chart.axis.step')), chart.runs.map((run) => h('th', { scope: 'col' }, run.name)))),
      h('tbody', rows.map((x) => h('tr', h('th', { scope: 'row' }, place(x)), chart.runs.map((run) => h('td', cell(run, x))))))));
  }

  function csv() {
    const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const lines = [`run,${kept.time ? 'seconds' : 'step'},${['min', 'mean', 'max'].map((x) => `${kept.metric}_${x}`)}`];
    for (const run of chart.runs) run.xs.forEach((x, i) => lines.push([quote(run.name), x, run.min[i], run.mean[i], run.max[i]].join()));
    const link = h('a', { href: URL.createObjectURL(new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' })), download: `${job().name}-${kept.metric}.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // A closer look asks for more points.
  chart.onview = settle(200, () => { reset.hidden = !chart.view; load(); });
  const renew = throttle(3000, () => chart.view || load());
  // A short job may begin and end between two looks of the server at its steps.
  const states = new Map();
  const off = [on('series', (e) => all().includes(e.uid) && renew()), on('job', (j) => {
    if (!all().includes(j.uid) || states.get(j.uid) === j.state) return;
    states.set(j.uid, j.state);
    renew();
  }), on('opened', renew)];
  load();
  const close = () => {
    off.forEach((undo) => undo());
    chart.onview.cancel();
    renew.cancel();
    chart.close();
  };
  close.go = () => {
    chart.view = null;
    load();
    return true;
  };
  return close;
}

// SPDX-License-Identifier: Apache-2.0
// The GPUs and the host, now and over the last ten minutes.
import { h, t, icon, put, fill, keyed } from '../dom.js';
import { get } from '../api.js';
import { on, machine, loadMachine } from '../events.js';
import { empty, loading, problemBox, spark } from '../ui.js';
import { bytes, count, NONE } from '../format.js';

const KEEP = 600;
// name, unit, the top of its curve where that is fixed
const GAUGES = [['busy_percent', '%', 100], ['temperature_c', '°C', 100], ['power_w', 'W'], ['clock_mhz', 'MHz'], ['fan_rpm', 'rpm']];

export function open(root) {
  app.title(t('nav.machine'));
  const list = h('div.stack', loading());
  const cards = h('div.stack');
  const host = h('section.card', { hidden: true });
  const past = [];
  root.append(h('div.page-head', h('h1', { tabindex: -1 }, t('nav.machine'))), h('div.stack', list, host));

  const show = () => {
    machine.gpus.forEach((gpu, i) => {
      const values = past[i] ??= {};
      for (const [name] of GAUGES) push(values[name] ??= [], gpu[name]);
      push(values.memory ??= [], memoryOf(gpu).used);
    });
    keyed(cards, machine.gpus.map((gpu, at) => ({ gpu, at, values: past[at] })), ({ at }) => at, ({ gpu }) => gpuCard(gpu));
    if (machine.gpus.length) list.firstChild === cards || fill(list, cards);
    else fill(list, empty('machine', t('machine.none.title'), t('machine.none.text'), h('a.button', { href: '#/doctor' }, icon('doctor'), t('jobs.empty.doctor'))));
    showHost(host, machine);
  };
  const load = async () => {
    try {
      const history = await get(`machine/history?seconds=${KEEP}`).catch(() => ({ gpus: [] }));
      history.gpus.forEach((gpu, i) => {
        past[i] = Object.fromEntries(GAUGES.map(([name]) => [name, (gpu[name] ?? []).map((v) => v ?? NaN)]));
        past[i].memory = ((machine.gpus[i]?.unified_memory ? gpu.gtt_used_bytes : gpu.vram_used_bytes) ?? []).map((v) => v ?? NaN);
      });
      await loadMachine();
    } catch (problem) {
      fill(list, problemBox(problem, load));
    }
  };
  const off = on('gpus', show);
  load();
  return off;
}

function push(values, value) {
  values.push(value ?? NaN);
  if (values.length > KEEP) values.shift();
}

// On a machine whose GPU shares the host's memory, what counts is GTT; the carve-out does not add to it.
function memoryOf(gpu) {
  if (gpu.unified_memory) return { used: gpu.gtt_used_bytes, total: gpu.usable_bytes ?? gpu.gtt_total_bytes };
  return { used: gpu.vram_used_bytes, total: gpu.vram_total_bytes ?? gpu.usable_bytes };
}

function gpuCard(first) {
  const gauges = GAUGES.map(([name, unit, top]) => gauge(t(`gauge.${name}`), (x) => (name === 'clock_mhz' || name === 'fan_rpm' ? count(x) : Math.round(x)) + ` ${unit}`, top));
  const memory = gauge(t('gauge.memory'), bytes);
  const users = h('div');
  const rest = h('div');
  const asleep = h('p.notice', { hidden: true }, icon('paused'), h('span', t('gpu.asleep')));
  const node = h('section.card.gpu', h('header', h('div', h('h2', t('gpu.n', { n: first.index }), ' · ', first.name ?? t('gpu.unknown')), h('p.muted', aboutGpu(first)))), asleep, h('div.gauges', memory.node, gauges.map((g) => g.node)), users, rest);
  let key = '';
  node.update = ({ gpu, values }) => {
    const { used, total } = memoryOf(gpu);
    memory.show(used, values.memory, total);
    memory.note(total ? t('gauge.of', { total: bytes(total) }) : '');
    gauges.forEach((g, i) => g.show(gpu[GAUGES[i][0]], values[GAUGES[i][0]]));
    asleep.hidden = !gpu.asleep;
    const next = JSON.stringify([gpu.processes, gpu.problems]);
    if (next === key) return;
    key = next;
    fill(users, (gpu.processes ?? []).length > 0 && [h('h3', t('gpu.users')), h('ul.users', gpu.processes.map((p) => h('li', h('span.grow.clip', p.name ?? t('gpu.process')), h('code.muted', p.pid), h('span', bytes(p.vram_bytes)))))]);
    fill(rest, (gpu.problems ?? []).map((text) => h('p.notice', icon('warn'), h('span', text))), details(gpu));
  };
  return node;
}

const aboutGpu = (gpu) => [gpu.gfx, gpu.codename, gpu.family, gpu.kind && t(`gpu.kind.${gpu.kind}`), gpu.compute_units && t('gpu.units', { n: gpu.compute_units })].filter(Boolean).join(' · ');

function gauge(label, format, top) {
  const value = h('span.value', NONE);
  const note = h('span.note');
  const line = spark(label);
  const node = h('div.gauge', h('p.muted', label), h('p', value, ' ', note), line);
  return {
    node,
    note: (text) => put(note, text),
    show(x, values, high) {
      const known = Number.isFinite(x);
      node.classList.toggle('unknown', !known && !values.some(Number.isFinite));
      put(value, known ? format(x) : NONE);
      line.draw(values, 0, high ?? top ?? Math.max(1, ...values.filter(Number.isFinite)) * 1.1);
    },
  };
}

function details(gpu) {
  const rows = [['usable', gpu.usable_bytes && `${bytes(gpu.usable_bytes)}${gpu.usable_reason ? ` (${gpu.usable_reason})` : ''}`], ['vram', gpu.vram_total_bytes && bytes(gpu.vram_total_bytes)], ['gtt', gpu.gtt_total_bytes && bytes(gpu.gtt_total_bytes)], ['bf16', gpu.bf16], ['matrix', gpu.matrix_core], ['fp8', gpu.fp8],
    ['driver', gpu.driver], ['pci', gpu.pci], ['render', gpu.render_node]];
  // Where nothing is measured, as on a captured machine, what the GPU is.
  return h('details', { open: gpu.busy_percent === null && !gpu.asleep }, h('summary', t('gpu.more')), h('dl.facts.pairs', rows.filter(([, v]) => v).map(([name, v]) => h('div', h('dt', t(`gpu.fact.${name}`)), h('dd', v)))));
}

function showHost(box, { host, problems }) {
  const rows = [['memory', host?.memory_total_bytes && (host.memory_available_bytes ? t('host.memory.of', { free: bytes(host.memory_available_bytes), total: bytes(host.memory_total_bytes) }) : bytes(host.memory_total_bytes))], ['kernel', host?.kernel], ['amdgpu', host?.amdgpu_version], ['container', host?.container]].filter(([, v]) => v);
  box.hidden = !rows.length && !problems?.length;
  const key = JSON.stringify([rows, problems]);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  fill(box, h('h2', t('host.title')), h('dl.facts.pairs', rows.map(([name, v]) => h('div', h('dt', t(`host.${name}`)), h('dd', v)))), (problems ?? []).map((text) => h('p.notice', icon('warn'), h('span', text))));
}

// SPDX-License-Identifier: Apache-2.0
// What the pages are put together from.
import { h, t, icon, svg, fill, put, attr } from './dom.js';
import { NONE } from './format.js';

// --- messages ---------------------------------------------------------------------------------------------------

// A line at the bottom; options: kind (error, good), action {label, run}, seconds.  Returns a function that removes it.
export function toast(message, options = {}) {
  const close = () => {
    clearTimeout(timer);
    box.remove();
  };
  const box = h('div.toast', { class: options.kind ?? '' },
    icon(options.kind === 'error' ? 'failed' : 'info'),
    h('div.grow', h('p', message), options.hint && h('p.muted', options.hint)),
    options.action && h('button.button.small', { onclick: () => { close(); options.action.run(); } }, options.action.label),
    h('button.quiet', { onclick: close, 'aria-label': t('close') }, icon('close')));
  const timer = setTimeout(close, 1000 * (options.seconds ?? (options.kind === 'error' ? 20 : 5)));
  document.getElementById('toasts').append(box);
  return close;
}

export const complain = (problem) => toast(problem.message, { kind: 'error', hint: problem.hint });

// Says something to screen readers alone.
export function announce(text) {
  put(document.getElementById('spoken'), text);
}

// A question with a yes; resolves to the value of extra() or true, or null for no.
export function ask({ title, text, yes, danger, extra, value }) {
  return new Promise((resolve) => {
    const done = (result) => {
      box.close();
      box.remove();
      resolve(result);
    };
    const box = h('dialog.ask', { 'aria-labelledby': 'ask-title', oncancel: (e) => { e.preventDefault(); done(null); } },
      h('h2', { id: 'ask-title' }, title), text && h('p', text), extra,
      h('div.row.end', h('button.button', { autofocus: danger, onclick: () => done(null) }, t('cancel')),
        h('button.button.primary', { class: danger ? 'danger' : '', autofocus: !danger && !extra, onclick: () => done(value ? value() : true) }, yes)));
    document.body.append(box);
    box.showModal();
  });
}

// --- menus ------------------------------------------------------------------------------------------------------

// items() gives [{label, icon, run, danger, keys}] at the time of the click; null is a line between.
export function menuButton(label, items, content = icon('more')) {
  const button = h('button.quiet', {
    'aria-label': label, 'aria-haspopup': 'menu', 'aria-expanded': 'false', title: label,
    onclick: (e) => { e.preventDefault(); e.stopPropagation(); openMenu(button, items()); },
  }, content);
  return button;
}

function openMenu(button, items) {
  const close = (back) => {
    box.remove();
    attr(button, 'aria-expanded', 'false');
    removeEventListener('pointerdown', outside, true);
    removeEventListener('scroll', outside, true);
    if (back) button.focus();
  };
  const outside = (e) => box.contains(e.target) || close(false);
  const entry = (item) => item ? h('button.entry', { role: 'menuitem', class: item.danger ? 'danger' : '', tabindex: -1,
    onclick: () => { close(true); item.run(); } }, icon(item.icon), h('span.grow', item.label), item.keys && h('kbd', item.keys))
    : h('hr');
  const box = h('div.menu', { role: 'menu', onkeydown: keys }, items.map(entry));
  function keys(e) {
    const all = [...box.querySelectorAll('button')];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[e.key];
    if (to !== undefined) all.at(to % all.length).focus();
    else if (e.key === 'Escape' || e.key === 'Tab') close(true);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
  document.getElementById('main').append(box);
  const r = button.getBoundingClientRect();
  box.style.top = `${Math.min(r.bottom + 4, Math.max(8, innerHeight - box.offsetHeight - 8))}px`;
  box.style.left = `${Math.max(8, Math.min(r.right - box.offsetWidth, innerWidth - box.offsetWidth - 8))}px`;
  attr(button, 'aria-expanded', 'true');
  box.querySelector('button')?.focus();
  setTimeout(() => {
    addEventListener('pointerdown', outside, true);
    addEventListener('scroll', outside, true);
  });
}

// --- small parts ------------------------------------------------------------------------------------------------

export function button(label, iconName, run, extra = {}) {
  return h('button.button', { onclick: run, ...extra }, iconName && icon(iconName), h('span', label));
}

// A button that says that it works, and tells what went wrong.
export function busyButton(label, iconName, work, extra = {}) {
  const node = button(label, iconName, async () => {
    if (node.classList.contains('busy')) return;
    node.classList.add('busy');
    attr(node, 'aria-busy', 'true');
    try {
      await work();
    } catch (problem) {
      complain(problem);
    }
    node.classList.remove('busy');
    attr(node, 'aria-busy', null);
  }, extra);
  return node;
}

export function copyButton(text, label = t('copy')) {
  const word = h('span', label);
  return h('button.button.small.copy', { onclick: async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
      put(word, t('copied'));
      announce(t('copied'));
    } catch {
      put(word, t('copy.failed'));
    }
    setTimeout(() => put(word, label), 2000);
  } }, icon('copy'), word);
}

export const command = (text) => h('div.command', h('code', text), copyButton(text));

export function badge(state) {
  return h('span.badge', { class: `is-${state}` }, icon(state), h('span', t(`state.${state}`)));
}

export const empty = (iconName, title, text, ...more) =>
  h('div.empty', icon(iconName), h('h2', title), text && h('p', text), more);

export const problemBox = (problem, again) => h('div.notice.error', { role: 'alert' }, icon('failed'),
  h('div.grow', h('p.strong', problem.message), problem.hint && h('p', problem.hint)),
  again && h('button.button.small', { onclick: again }, t('again')));

export const loading = () => h('div.loading', { role: 'status' }, h('span.hidden', t('loading')));

// A number with its name; update it with put(stat.value, …).
export function stat(label, value = NONE, note = '') {
  const node = h('div.stat', h('dt', label), h('dd', h('span.value', value), h('span.note', note)));
  node.value = node.querySelector('.value');
  node.note = node.querySelector('.note');
  return node;
}

export function meter(share, label, extra = '') {
  const bar = h('div.bar');
  const node = h('div.meter', { class: extra, role: 'progressbar', 'aria-label': label, 'aria-valuemin': 0, 'aria-valuemax': 100 }, bar);
  node.set = (x) => {
    const known = Number.isFinite(x);
    bar.style.transform = `scaleX(${known ? Math.min(1, Math.max(0, x)) : 0})`;
    attr(node, 'aria-valuenow', known ? Math.round(x * 100) : null);
  };
  node.set(share);
  return node;
}

// Values as a line in a box of 100 × 30 that stretches; the range is that of the values, or given.
export function spark(label) {
  const area = svg('path', { class: 'area' });
  const line = svg('path', { class: 'line', 'vector-effect': 'non-scaling-stroke' });
  const node = svg('svg', { class: 'spark', viewBox: '0 0 100 30', preserveAspectRatio: 'none', role: 'img', 'aria-label': label }, area, line);
  node.draw = (values, low, high) => {
    const good = values.filter(Number.isFinite);
    low ??= Math.min(...good);
    high ??= Math.max(...good);
    const x = (i) => ((i / Math.max(1, values.length - 1)) * 100).toFixed(2);
    const y = (v) => (28.5 - 27 * (high > low ? (Math.min(high, Math.max(low, v)) - low) / (high - low) : 0.5)).toFixed(2);
    let path = '';
    values.forEach((v, i) => { if (Number.isFinite(v)) path += `${path ? 'L' : 'M'}${x(i)} ${y(v)}`; });
    line.setAttribute('d', path);
    area.setAttribute('d', path && `${path}L${x(values.findLastIndex(Number.isFinite))} 30L${x(values.findIndex(Number.isFinite))} 30Z`);
    node.classList.toggle('blank', good.length < 2);
  };
  return node;
}

// Links that look like tabs; each is a view of its own.
export function tabs(label, items) {
  const nav = h('nav.tabs', { 'aria-label': label });
  nav.show = (current) => {
    fill(nav, items().map((item) => h('a.tab', { href: item.href, 'aria-current': item.id === current ? 'page' : null },
      item.label, item.mark && h('span.count', item.mark))));
    nav.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  return nav;
}

// One of several: [[value, label]…].
export function choice(label, options, value, change) {
  const buttons = options.map(([v, text]) => h('button', { 'aria-pressed': String(v === value), onclick: () => node.set(v, true) }, text));
  const node = h('div.choice', { role: 'group', 'aria-label': label }, buttons);
  node.set = (v, tell) => {
    options.forEach(([o], i) => attr(buttons[i], 'aria-pressed', String(o === v)));
    if (tell) change(v);
  };
  return node;
}

export const select = (label, options, value, change) =>
  h('select', { 'aria-label': label, onchange: (e) => change(e.target.value) },
    options.map(([v, text]) => h('option', { value: v, selected: v === value }, text)));

export const toggle = (label, value, change) => h('label.toggle', h('input', { type: 'checkbox', checked: value, onchange: (e) => change(e.target.checked) }), h('span', label));

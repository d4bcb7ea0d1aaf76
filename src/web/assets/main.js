// SPDX-License-Identifier: Apache-2.0
// The frame around the pages: navigation, keys, theme, connection, notifications.
import { h, t, icon, svg, fill, put, attr, keyed } from './dom.js';
import { get, replace, session, signIn, link } from './api.js';
import { on, watch, jobs, loadJobs, loadMachine, options } from './events.js';

const PAGES = [
  [/^\/$/, 'jobs', []],
  [/^\/new$/, 'new', []],
  [/^\/job\/([0-9a-z]+)\/edit$/, 'new', ['uid']],
  [/^\/job\/([0-9a-z]+)(?:\/(\w+))?$/, 'job', ['uid', 'tab']],
  [/^\/(machine|doctor|settings)$/, null, ['page']],
];
const NAV = [['#/', 'jobs', 'g j'], ['#/machine', 'machine', 'g m'], ['#/doctor', 'doctor', 'g d'], ['#/settings', 'settings', 'g s']];

// Settings live on the server; this browser keeps a copy, so that the theme is right before the first answer.
export const app = { settings: { theme: 'system', notify: false, smoothing: 0.35, axis: 'step', keys: true, ...stored() } };
const SHARED = ['theme', 'notify', 'smoothing', 'axis'];
globalThis.app = app;

function stored() {
  try {
    return JSON.parse(localStorage.getItem('cairn') ?? '{}');
  } catch {
    return {};
  }
}

app.save = (changes) => {
  keep(changes);
  const shared = Object.entries(changes).filter(([name]) => SHARED.includes(name)).map(([name, value]) => [`ui.${name}`, value]);
  if (shared.length && !session.read_only) replace('settings', Object.fromEntries(shared)).catch(() => {});
};

function keep(changes) {
  Object.assign(app.settings, changes);
  try {
    localStorage.setItem('cairn', JSON.stringify(app.settings));
  } catch { /* a private window: kept until it is closed */ }
  applySettings();
}

async function loadSettings() {
  const { settings } = await get('settings');
  keep(Object.fromEntries(SHARED.filter((name) => `ui.${name}` in settings).map((name) => [name, settings[`ui.${name}`]])));
}

function applySettings() {
  attr(document.documentElement, 'data-theme', app.settings.theme === 'system' ? null : app.settings.theme);
  options.whileHidden = app.settings.notify;
  dispatchEvent(new Event('themechange'));
}

// --- the frame --------------------------------------------------------------------------------------------------

const root = h('main', { id: 'main', tabindex: -1 });
const gpus = h('ul.gpus', { 'aria-label': t('nav.gpus') });
const banner = h('div.banner', { role: 'status', hidden: true });
const links = NAV.map(([href, name, keys]) => h('a.nav', { href, title: `${t(`nav.${name}`)} (${keys})` }, icon(name), h('span', t(`nav.${name}`)), h('span.count')));

function frame() {
  const make = (extra) => h('a.button.primary', { class: extra, href: '#/new', title: `${t('nav.new')} (n)` }, icon('plus'), h('span', t('nav.new')));
  document.body.prepend(
    h('button.skip', { onclick: () => root.focus() }, t('nav.skip')),
    h('header.side', h('a.brand', { href: '#/', 'aria-label': t('nav.home') }, icon('logo'), h('span', 'cairn')),
      make('wide'), h('nav.main', { 'aria-label': t('nav.label') }, links), gpus,
      h('button.quiet.help', { onclick: () => showKeys(), title: `${t('keys.title')} (?)`, 'aria-label': t('keys.title') }, icon('help')), make('phone')),
    h('div.page', banner, root));
}

// The icons become part of the page: asked for one by one, they would be missing once the server or the session is gone.
function loadIcons() {
  const ask = new XMLHttpRequest();
  ask.responseType = 'document';
  ask.onload = () => {
    const symbols = [...ask.responseXML?.querySelectorAll('symbol') ?? []];
    for (const symbol of symbols) symbol.id = `i-${symbol.id}`;
    document.body.append(svg('svg', { hidden: '' }, ...symbols));
  };
  ask.open('GET', 'icons.svg');
  ask.send();
}

function showSession() {
  document.documentElement.classList.toggle('read-only', session.read_only);
  for (const node of document.querySelectorAll('.side .primary')) node.hidden = session.read_only;
}

function showBanner(kind, title, text, command) {
  banner.hidden = !kind;
  banner.className = `banner ${kind}`;
  if (kind) fill(banner, icon(kind === 'offline' ? 'lost' : 'info'), h('p', h('strong', title), ' ', text, command && [' ', h('code', command)]));
}

link.lost = () => showBanner('offline', t('offline.title'), t('offline.text'), 'cairn ui');
link.back = () => /offline|old/.test(banner.className) && showBanner('');
link.signedOut = () => showBanner('signed-out', t('signedout.title'), t('signedout.text'), 'cairn ui --url');

function showCounts() {
  let live = 0;
  let waiting = 0;
  let share = null;
  for (const job of jobs.values()) {
    if (job.state === 'queued') waiting++;
    if (job.state !== 'active' && job.state !== 'starting') continue;
    live++;
    if (job.steps > 0) share = job.step / job.steps;
  }
  const mark = links[0].querySelector('.count');
  put(mark, live ? `${live}${waiting ? ` + ${waiting}` : ''}` : '');
  attr(mark, 'title', t('nav.counts', { live, waiting }));
  app.progress = live === 1 && share !== null ? `${Math.floor(share * 100)} % · ` : live > 1 ? `(${live}) ` : '';
  showTitle();
}

app.title = (text) => {
  app.page = text;
  showTitle();
};

function showTitle() {
  document.title = `${app.mark ?? ''}${app.progress ?? ''}${app.page ? `${app.page} · ` : ''}cairn`;
}

function showMachine(machine) {
  const known = machine.gpus.filter((gpu) => gpu.busy_percent !== null || gpu.usable_bytes);
  keyed(gpus, known.slice(0, 8), (gpu) => gpu.index ?? gpu.pci, (gpu) => {
    const bar = h('div.bar');
    const facts = h('span.facts');
    const meter = h('div.meter', { 'aria-hidden': 'true' }, bar);
    const node = h('li', h('a', { href: '#/machine' }, h('span.name', t('gpu.n', { n: gpu.index })), facts, meter));
    node.update = (g) => {
      const total = g.unified_memory ? g.usable_bytes : g.vram_total_bytes ?? g.usable_bytes;
      const used = g.unified_memory ? g.gtt_used_bytes : g.vram_used_bytes;
      meter.hidden = !total || !Number.isFinite(used);
      bar.style.transform = `scaleX(${meter.hidden ? 0 : Math.min(1, used / total)})`;
      const parts = [g.busy_percent !== null && `${g.busy_percent} %`, g.temperature_c !== null && `${Math.round(g.temperature_c)} °C`];
      put(facts, parts.filter(Boolean).join(' · ') || g.gfx || '');
    };
    return node;
  });
}

// --- pages ------------------------------------------------------------------------------------------------------

let current = null;
let going = 0;

function find(path) {
  for (const [pattern, module, names] of PAGES) {
    const found = pattern.exec(path);
    if (!found) continue;
    const params = {};
    names.forEach((name, i) => { params[name] = found[i + 1]; });
    return { module: module ?? params.page, params };
  }
  return { module: 'jobs', params: {} };
}

const styles = new Map();

// Resolves when the style sheet applies.
function style(href) {
  if (!styles.has(href)) styles.set(href, new Promise((done, fail) => {
    const link = h('link', { rel: 'stylesheet', href, onload: done, onerror: () => { styles.delete(href); link.remove(); fail(new Error(href)); } });
    document.head.append(link);
  }));
  return styles.get(href);
}

async function go() {
  const [path, search] = (location.hash.slice(1) || '/').split('?');
  const { module, params } = find(path);
  params.query = new URLSearchParams(search);
  for (const node of links) attr(node, 'aria-current', isHere(node.getAttribute('href'), module) ? 'page' : null);
  document.getElementById('toasts').querySelector('.error')?.remove();
  // A page that stays may take new parameters itself, such as another tab.
  if (current?.module === module && current.close.go?.(params)) return;
  const mine = ++going;
  let page;
  try {
    [page] = await Promise.all([import(`./pages/${module}.js`), module === 'jobs' || style('pages.css')]);
  } catch {
    // No answer, no session any more, or another server with other files.
    return void get('session').then(() => showBanner('old', t('old.title'), t('old.text')), () => {});
  }
  if (mine !== going) return;
  current?.close();
  fill(root);
  scrollTo(0, 0);
  const first = !current;
  current = { module, close: page.open(root, params) ?? (() => {}) };
  if (!first) root.querySelector('h1')?.focus();
}

const isHere = (href, module) => (href === '#/' ? ['jobs', 'job', 'new'].includes(module) : href === `#/${module}`);

// --- keys -------------------------------------------------------------------------------------------------------

let pending = '';

addEventListener('keydown', (e) => {
  const typing = e.target.closest?.('input:not([type=checkbox]), textarea, select, [contenteditable], dialog, .menu');
  if (typing || e.ctrlKey || e.metaKey || e.altKey || !app.settings.keys || e.defaultPrevented) return;
  const key = pending ? `${pending} ${e.key}` : e.key;
  pending = '';
  const place = NAV.find(([, , keys]) => keys === key);
  if (key === 'g') {
    pending = 'g';
    setTimeout(() => { pending = ''; }, 1500);
  } else if (place) location.hash = place[0];
  else if (key === '?') showKeys();
  else if (key === 'n' && !session.read_only) location.hash = '#/new';
  else if (current?.close.keys?.(key, e) !== true) return;
  e.preventDefault();
});

function showKeys() {
  const groups = t('keys.table').split('\n\n').map((group) => group.split('\n'));
  const row = ([keys, what]) => h('div', h('dt', keys.split(' ').map((key) => h('kbd', key))), h('dd', what));
  const box = h('dialog.keys', { 'aria-labelledby': 'keys-title', onclose: () => box.remove(), onclick: (e) => e.target === box && box.close() },
    h('h2', { id: 'keys-title' }, t('keys.title')),
    h('div.key-lists', groups.map(([title, ...rows]) => h('section', h('h3', title), h('dl', rows.map((line) => row(line.split('  '))))))),
    h('div.row.end', h('button.button', { onclick: () => box.close(), autofocus: true }, t('close'))));
  document.body.append(box);
  box.showModal();
}

// --- notifications ----------------------------------------------------------------------------------------------

const ENDED = ['finished', 'failed', 'lost'];
const before = new Map();

function notify(job) {
  const was = before.get(job.uid);
  before.set(job.uid, job.state);
  // A short job may begin and end between two looks.
  const fresh = was ? !ENDED.includes(was) : Date.now() / 1000 - job.finished < 30;
  if (!ENDED.includes(job.state) || !fresh || !document.hidden) return;
  app.mark = job.state === 'finished' ? '✓ ' : '✗ ';
  showTitle();
  if (!app.settings.notify || globalThis.Notification?.permission !== 'granted') return;
  const note = new Notification(t(`notify.${job.state}`, { name: job.name }), { body: job.cause ?? '', tag: job.uid, icon: 'icons.svg' });
  note.onclick = () => {
    window.focus();
    location.hash = `#/job/${job.uid}`;
  };
}

// --- start ------------------------------------------------------------------------------------------------------

// The frame comes first; a page's own modules are asked for once it is painted, or at once in a tab that nobody sees.
const painted = () => new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
  setTimeout(done, document.hidden ? 0 : 1000);
});

async function start() {
  applySettings();
  loadIcons();
  frame();
  document.documentElement.classList.add('ready');
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return;
    app.mark = '';
    showTitle();
  });
  const begun = Promise.allSettled([signIn().then(showSession), loadJobs()]);
  app.ready = begun;
  await painted();
  addEventListener('hashchange', go);
  go();
  await begun;
  for (const job of jobs.values()) before.set(job.uid, job.state);
  showCounts();
  on('job', notify);
  on('jobs', showCounts);
  on('gpus', showMachine);
  on('reset', () => loadJobs().catch(() => {}));
  on('notice', async (notice) => (await import('./ui.js')).toast(notice.text ?? notice.title ?? ''));
  watch('jobs');
  watch('machine');
  loadMachine().catch(() => {});
  loadSettings().catch(() => {});
}

start();

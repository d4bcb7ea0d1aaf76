// SPDX-License-Identifier: Apache-2.0
// What runs, what waits, what was.
import { h, t, icon, put, attr, fill, keyed, settle } from '../dom.js';
import { get, replace, query, session } from '../api.js';
import { on, jobs, queue, loadJobs, emit, every } from '../events.js';
import { actionsOf, actByKey, discard, isLive, isWaiting, isOver, stateOf } from '../actions.js';
import { badge, busyButton, choice, complain, empty, loading, menuButton, problemBox } from '../ui.js';
import { ago, count, duration, loss, moment, now, until } from '../format.js';
import { chooser, sortable, step } from '../list.js';
import { placeOf, runCard } from '../run_card.js';

const FILTERS = ['all', 'finished', 'failed', 'stopped', 'draft'];

let fresh = true;

export function open(root) {
  app.title('');
  const page = build();
  root.append(page.node);
  let stop = [];
  const begin = () => {
    if (!stop) return;
    page.show();
    stop.push(on('jobs', page.show), every(30000, () => loadJobs().catch(() => {})));
  };
  // Jobs that a terminal deleted are not told of: the list is asked for anew.
  (fresh ? app.ready : loadJobs().catch(() => {})).then(begin);
  fresh = false;
  const close = () => {
    stop.forEach((off) => off());
    stop = null;
  };
  close.keys = (key) => {
    const row = document.activeElement.closest('.item');
    if (key === 'j' || key === 'ArrowDown') step(page.node, 1);
    else if (key === 'k' || key === 'ArrowUp') step(page.node, -1);
    else if (key === '/') page.search.focus();
    else if (key === 'x' && row?.querySelector('.pick')) row.querySelector('.pick').click();
    else if (row && 'psceDelete'.includes(key)) actByKey(jobs.get(row.itemKey) ?? row.job, key);
    else return false;
    return true;
  };
  return close;
}

function build() {
  const summary = h('p.muted');
  const live = h('div.run-cards');
  const waiting = h('ol.rows.queue');
  const held = h('div.notice', { hidden: true });
  const past = historyPart();
  const pause = busyButton('', 'paused', async () => {
    await replace('queue', { paused: !queue.paused });
    queue.paused = !queue.paused;
    emit('jobs');
  }, { class: 'small' });
  const queueHead = h('div.section-head', h('h2', t('queue.title')), h('span.count'), h('span.grow'), pause);
  const queuePart = h('section', queueHead, held, waiting);
  const livePart = h('section', { 'aria-label': t('running.title') }, live);
  const first = h('div', loading());
  // The order that the user made holds until the server has it: what it tells meanwhile is older.
  let order = null;
  let sending = false;
  sortable(waiting, async (keys) => {
    order = keys;
    if (sending) return;
    sending = true;
    for (let sent = null; sent !== order;) {
      sent = order;
      await replace('queue', { order }).then(() => loadJobs(), complain).catch(() => {});
    }
    sending = false;
    order = null;
    loadJobs().catch(() => {});
  });
  const place = (job) => (order?.includes(job.uid) ? order.indexOf(job.uid) - order.length : job.position ?? 0);
  const node = h('div.jobs', h('div.page-head', h('h1', { tabindex: -1 }, t('jobs.title')), summary), first, livePart, queuePart, past.node);

  function show() {
    const all = [...jobs.values()];
    const on_ = all.filter(isLive).sort((a, b) => (a.started ?? 0) - (b.started ?? 0));
    const next = all.filter(isWaiting).sort((a, b) => place(a) - place(b));
    keyed(live, on_, (job) => job.uid, runCard);
    if (!waiting.querySelector('.moving')) keyed(waiting, next.map((job, at) => ({ job, at })), ({ job }) => job.uid, () => queueRow(waiting));
    livePart.hidden = !on_.length;
    queuePart.hidden = !next.length && !queue.paused;
    put(queueHead.querySelector('.count'), next.length || '');
    put(pause.querySelector('span'), t(queue.paused ? 'queue.go' : 'queue.pause'));
    attr(pause.querySelector('use'), 'href', queue.paused ? '#i-play' : '#i-paused');
    pause.hidden = session.read_only;
    held.hidden = !queue.paused && !queue.reason;
    if (!held.hidden) held.replaceChildren(icon(queue.paused ? 'paused' : 'clock'), h('p', queue.paused ? t('queue.paused') : queue.reason));
    put(summary, all.length ? sentence(on_, next) : '');
    past.show(all.filter(isOver));
    showFirst(all.length);
  }

  // Before there is anything: a welcome, or why the list cannot be read.
  async function showFirst(any) {
    const [, list] = await app.ready;
    const problem = queue.loaded ? null : list.reason;
    first.hidden = !problem && (any > 0 || past.searching());
    past.node.hidden = !past.any() && !past.searching();
    if (problem) fill(first, problemBox(problem, () => loadJobs().catch(complain)));
    else fill(first, !any && welcome());
  }
  return { node, show, search: past.search };
}

const welcome = () => empty('logo', t('jobs.empty.title'), t('jobs.empty.text'),
  h('div.row.center', !session.read_only && h('a.button.primary', { href: '#/new' }, icon('plus'), t('nav.new')), h('a.button', { href: '#/doctor' }, icon('doctor'), t('jobs.empty.doctor'))),
  h('p.muted', t('jobs.empty.terminal'), ' ', h('code', 'cairn job add CONFIG.yaml')));

// "1 running, 3 waiting; this one ends at 16:40."
function sentence(live, waiting) {
  const parts = [];
  if (live.length) parts.push(t('jobs.live', { n: live.length }));
  if (waiting.length) parts.push(t('jobs.waiting', { n: waiting.length }));
  const ends = live.map((job) => job.eta_s).filter((s) => s > 0);
  if (ends.length) parts.push(t(live.length > 1 ? 'jobs.ends.first' : 'jobs.ends', { at: until(now() + Math.min(...ends)) }));
  return parts.join(' · ') || t('jobs.idle');
}

// --- queue ------------------------------------------------------------------------------------------------------

function queueRow(list) {
  let job = {};
  const link = h('a.item-link');
  const about = h('span.about');
  const state = h('span');
  const number = h('span.number');
  const move = (by) => ({ label: t(by < 0 ? 'queue.up' : 'queue.down'), icon: by < 0 ? 'up' : 'down', keys: by < 0 ? 'Alt ↑' : 'Alt ↓', run: () => list.sort(node, by) });
  const handle = h('button.handle.quiet', { title: t('queue.handle.hint') }, icon('handle'));
  const resume = busyButton(t('do.resume'), 'play', () => actionsOf(job).find((a) => a.name === 'resume')?.run(), { class: 'small' });
  const node = h('li.item.row', handle, number, h('div.grow.clip', link, about), state, resume, menuButton(t('more'), () => [move(-1), move(1), null, ...actionsOf(job)]));
  node.update = ({ job: j, at }) => {
    job = j;
    attr(link, 'href', `#/job/${job.uid}`);
    attr(link, 'title', job.name);
    put(link, job.name);
    put(number, at + 1);
    attr(handle, 'aria-label', t('queue.handle', { name: job.name }));
    put(about, [t(`kind.${job.kind}`), placeOf(job), job.steps > 0 && t('steps', { n: count(job.steps) }), job.wait_reason].filter(Boolean).join(' · '));
    state.replaceChildren(...(job.state === 'paused' ? [badge('paused')] : []));
    resume.hidden = job.state !== 'paused' || session.read_only;
    handle.hidden = session.read_only;
  };
  return node;
}

// --- history ----------------------------------------------------------------------------------------------------

function historyPart() {
  let list = [];
  let filter = 'all';
  let found = null;
  const rows = h('div.rows.history');
  const pick = chooser(() => showBulk());
  const search = h('input', { type: 'search', placeholder: t('history.search'), 'aria-label': t('history.search'), oninput: settle(200, look) });
  const filters = choice(t('history.filter'), FILTERS.map((name) => [name, t(`history.${name}`)]), 'all', (name) => { filter = name; draw(); });
  const more = busyButton(t('history.more'), null, loadMore);
  const none = h('p.muted.center');
  const bulk = h('div.bulk', { hidden: true, role: 'region', 'aria-label': t('bulk.label') });
  const head = h('div.head', { 'aria-hidden': 'true' }, h('span.grow'), ['loss', 'step', 'took', 'when'].map((name) => h('span.cell', { class: name }, t(`column.${name}`))));
  const node = h('section', h('div.section-head', h('h2', t('history.title')), h('span.grow'), filters, search), head, rows, none, h('div.center', more), bulk);

  async function look() {
    const q = search.value.trim();
    if (!q) found = null;
    else {
      try {
        found = (await get(`jobs${query({ q, limit: 100 })}`)).jobs.filter(isOver);
      } catch (problem) {
        complain(problem);
      }
    }
    draw();
  }

  async function loadMore() {
    const answer = await get(`jobs${query({ before: queue.next, limit: 100 })}`);
    queue.next = answer.next;
    for (const job of answer.jobs) jobs.set(job.uid, job);
    emit('jobs');
  }

  function draw() {
    const wanted = (found ?? list).filter((job) => filter === 'all' || job.state === filter || (filter === 'failed' && job.state === 'lost'));
    wanted.sort((a, b) => (b.finished ?? b.created ?? 0) - (a.finished ?? a.created ?? 0));
    keyed(rows, wanted, (job) => job.uid, (job) => historyRow(job, pick));
    none.hidden = wanted.length > 0;
    head.hidden = !wanted.length;
    put(none, t(found ? 'history.nothing' : 'history.none'));
    more.hidden = !queue.next || found !== null;
  }

  function showBulk() {
    const chosen = [...pick.chosen].map((uid) => jobs.get(uid) ?? found?.find((job) => job.uid === uid)).filter(Boolean);
    bulk.hidden = !chosen.length;
    if (!chosen.length) return;
    const clear = () => pick.clear(rows);
    const [one, ...others] = chosen;
    bulk.replaceChildren(h('span', t('bulk.chosen', { n: chosen.length })), h('span.grow'),
      h('a.button.small', { href: `#/job/${one.uid}/chart${others.length ? `?with=${others.map((job) => job.uid).join(',')}` : ''}` }, icon('chart'), t('bulk.compare')),
      ...session.read_only ? [] : [h('button.button.small', { onclick: () => { clear(); discard(chosen); } }, icon('trash'), t('do.delete'))],
      h('button.button.small', { onclick: clear }, t('bulk.clear')));
  }

  const show = (over) => {
    list = over;
    draw();
  };
  return { node, show, search, searching: () => found !== null, any: () => list.length > 0 };
}

function historyRow(first, pick) {
  let job = first;
  const link = h('a.item-link');
  const cause = h('p.cause.clip');
  const mark = h('span.mark');
  const cells = ['loss', 'step', 'took', 'when'].map((name) => h('span.cell', { class: name }));
  const node = h('div.item.row', pick.box(first.uid, t('history.pick', { name: first.name })), mark, h('div.grow.clip', link, cause), cells, menuButton(t('more'), () => actionsOf(job)));
  node.update = (j) => {
    job = node.job = j;
    const state = stateOf(job);
    if (mark.dataset.state !== state) mark.replaceChildren(badge(state));
    mark.dataset.state = state;
    attr(link, 'href', `#/job/${job.uid}`);
    attr(link, 'title', job.name);
    put(link, job.name);
    put(cause, job.cause ?? (job.state === 'lost' ? t('lost.short') : ''));
    attr(cause, 'title', job.cause);
    cause.hidden = !cause.textContent;
    put(cells[0], Number.isFinite(job.loss) ? loss(job.loss) : '');
    put(cells[1], job.step > 0 ? count(job.step) : '');
    put(cells[2], job.started && job.finished ? duration(job.finished - job.started) : '');
    put(cells[3], ago(job.finished ?? job.created));
    attr(cells[3], 'title', moment(job.finished ?? job.created));
  };
  return node;
}

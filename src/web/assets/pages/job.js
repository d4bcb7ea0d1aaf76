// SPDX-License-Identifier: Apache-2.0
// One job: a head with what can be done, and its views as tabs.
import { h, t, icon, put, fill } from '../dom.js';
import { get, patch, session } from '../api.js';
import { on, watch, jobs, emit } from '../events.js';
import { actionsOf, actByKey, buttonsOf, isLive, stateOf } from '../actions.js';
import { ask, badge, busyButton, complain, empty, loading, menuButton, problemBox, tabs } from '../ui.js';

const TABS = ['overview', 'chart', 'samples', 'log', 'files', 'config', 'verdict'];
const MORE = new Set(['files', 'config', 'verdict']);
const FIRST = ['resume', 'pause', 'stop', 'kill', 'enqueue', 'again', 'edit', 'clone'];

export function open(root, params) {
  let job = jobs.get(params.uid) ?? null;
  let { tab = 'overview', query } = params;
  let view = null;
  let turn = 0;
  const { uid } = params;
  const back = h('a.back', { href: '#/' }, icon('back'), t('jobs.title'));
  const title = h('h1', { tabindex: -1 });
  const state = h('span');
  const buttons = h('div.row.wrap');
  const nav = tabs(t('job.views'), () => shownTabs().map((id) => ({ id, label: t(`tab.${id}`), href: `#/job/${uid}${id === 'overview' ? '' : `/${id}`}`, mark: id === 'verdict' && job?.class ? '!' : '' })));
  const body = h('div.job-body', loading());
  const head = h('div.page-head.job-head', { hidden: true }, h('div.row.wrap.grow', title, rename(), state), buttons);
  root.append(back, head, nav, body);

  const shownTabs = () => TABS.filter((id) => id !== 'verdict' || tab === 'verdict' || job?.class || job?.state === 'failed');
  const context = { uid, job: () => job, query: () => query };

  function rename() {
    return session.read_only || job?.adopted ? null : h('button.quiet', { title: t('job.rename'), 'aria-label': t('job.rename'), onclick: async () => {
      const input = h('input.wide', { value: job.name, maxlength: 120, 'aria-label': t('job.name') });
      const name = await ask({ title: t('job.rename'), extra: input, yes: t('save'), value: () => input.value.trim() });
      if (name && name !== job.name) context.patch({ name });
    } }, icon('edit'));
  }

  context.patch = async (changes) => {
    try {
      emit('job', await patch(`jobs/${uid}`, changes, job.version));
    } catch (problem) {
      complain(problem);
    }
  };

  function showHead() {
    head.hidden = false;
    put(title, job.name);
    app.title(job.name);
    const name = stateOf(job);
    const key = `${name} ${job.kind} ${job.resumable}`;
    if (state.dataset.key === key) return;
    state.dataset.key = key;
    fill(state, badge(name));
    const all = actionsOf(job);
    const first = buttonsOf(job, FIRST);
    fill(buttons, first.map((a, i) => busyButton(a.label, a.icon, a.run, { class: i || isLive(job) || name === 'failed' ? '' : 'primary' })),
      all.length > first.length && menuButton(t('more'), () => actionsOf(job).filter((a) => !first.some((b) => b.name === a.name))));
    nav.show(tab);
  }

  async function showTab() {
    const mine = ++turn;
    nav.show(tab);
    const module = await import(`./job_${MORE.has(tab) ? 'more' : tab}.js`);
    if (mine !== turn) return;
    view?.();
    fill(body);
    view = (module[tab] ?? module.open)(body, context) ?? (() => {});
  }

  async function start() {
    try {
      job = await get(`jobs/${uid}`);
      jobs.set(uid, { ...jobs.get(uid), ...job });
    } catch (problem) {
      fill(body, problem.status === 404 ? empty('search', t('job.none.title'), t('job.none.text'), h('a.button', { href: '#/' }, t('job.none.back'))) : problemBox(problem, start));
      return nav.replaceChildren();
    }
    showHead();
    showTab();
  }

  const off = [watch(`job:${uid}`), on('job', (j) => {
    if (j.uid !== uid || !job) return;
    job = { ...job, ...j };
    showHead();
    view?.update?.(job);
  }), on('reset', () => start())];
  start();

  const close = () => {
    turn++;
    view?.();
    off.forEach((undo) => undo());
  };
  // Another tab of the same job needs no new page.
  close.go = (next) => {
    if (next.uid !== uid) return false;
    const before = tab;
    tab = next.tab ?? 'overview';
    query = next.query;
    if (job && !(before === tab && view?.go?.())) showTab();
    return true;
  };
  close.keys = (key, e) => {
    const ids = shownTabs();
    if (/^[1-7]$/.test(key) && ids[key - 1]) location.hash = `#/job/${uid}/${ids[key - 1]}`;
    else if (view?.keys?.(key, e)) return true;
    else if (job && 'psceDelete'.includes(key)) actByKey(job, key);
    else return false;
    return true;
  };
  return close;
}

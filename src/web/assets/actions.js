// SPDX-License-Identifier: Apache-2.0
// What can be done with a job, by its state.
import { h, t } from './dom.js';
import { post, remove, session } from './api.js';
import { emit, jobs, gone } from './events.js';
import { ask, toast, complain } from './ui.js';

// What the page calls the state: a job that is asked to end is still alive.
export function stateOf(job) {
  if (job.state !== 'active' && job.state !== 'starting') return job.state;
  if (job.want === 'pause') return 'pausing';
  return job.want || job.stopping_s > 0 ? 'stopping' : job.state;
}

export const isLive = (job) => job.state === 'active' || job.state === 'starting';
export const isWaiting = (job) => job.state === 'queued' || job.state === 'paused';
export const isOver = (job) => !isLive(job) && !isWaiting(job);

const BY_STATE = {
  draft: ['enqueue', 'edit', 'clone', 'delete'],
  queued: ['edit', 'clone', 'delete'],
  starting: ['stop', 'clone', 'kill'],
  active: ['pause', 'stop', 'sample', 'save', 'clone', 'kill'],
  pausing: ['kill', 'clone'],
  stopping: ['kill', 'clone'],
  paused: ['resume', 'edit', 'clone', 'delete'],
  finished: ['clone', 'delete'],
  failed: ['resume', 'again', 'edit', 'clone', 'delete'],
  stopped: ['resume', 'again', 'edit', 'clone', 'delete'],
  lost: ['resume', 'again', 'edit', 'clone', 'delete'],
};
const ICONS = { enqueue: 'play', again: 'again', resume: 'play', pause: 'paused', stop: 'stopped', kill: 'bolt', save: 'save', sample: 'image', clone: 'copy', edit: 'edit', delete: 'trash' };
const KEYS = { pause: 'p', resume: 'p', stop: 's', clone: 'c', edit: 'e', delete: 'Del' };
const NATIVE = new Set(['sample', 'save']);

export function actionsOf(job) {
  if (session.read_only) return [];
  let names = BY_STATE[stateOf(job)] ?? [];
  // A run of a terminal is not in the queue: it can be stopped, and made a job.
  if (job.adopted) names = names.filter((name) => name === 'stop' || name === 'resume' || name === 'clone');
  if (job.kind !== 'train') names = names.filter((name) => !NATIVE.has(name));
  if (job.resumable === false) names = names.filter((name) => name !== 'pause' && name !== 'resume');
  return names.map((name) => ({ name, label: t(`do.${name}`), icon: ICONS[name], keys: KEYS[name], danger: name === 'delete' || name === 'kill', run: () => act(job, name) }));
}

// The first ones of that order, as buttons; force comes to hand once a job was asked to stop.
export function buttonsOf(job, order) {
  const all = actionsOf(job);
  const names = order.filter((name) => name !== 'kill' || !all.some((a) => a.name === 'stop'));
  return names.map((name) => all.find((a) => a.name === name)).filter(Boolean).slice(0, 2);
}

export function actByKey(job, key) {
  actionsOf(job).find((action) => action.keys === (key === 'Delete' ? 'Del' : key))?.run();
}

const ENDPOINT = { enqueue: 'start', again: 'start' };

export async function act(job, name) {
  if (name === 'edit') return void (location.hash = `#/job/${job.uid}/edit`);
  if (name === 'delete') return discard([job]);
  if (name === 'kill' && !await ask({ title: t('kill.title', { name: job.name }), text: t('kill.text'), yes: t('do.kill'), danger: true })) return;
  try {
    const answer = await post(`jobs/${job.uid}/${ENDPOINT[name] ?? name}`);
    if (answer?.uid) emit('job', answer);
    if (name === 'clone' && answer) location.hash = `#/job/${answer.uid}/edit`;
    else if (job.adopted && answer && answer.uid !== job.uid) location.hash = `#/job/${answer.uid}`;
    else toast(t(`did.${name}`, { name: job.name }), { kind: 'good' });
  } catch (problem) {
    complain(problem);
  }
}

// Asks, hides the jobs, and deletes them ten seconds later; until then it can be undone.
export async function discard(list) {
  const files = h('label.toggle', h('input', { type: 'checkbox', checked: true }), h('span', t('delete.files')));
  const yes = await ask({ title: t('delete.title', { n: list.length, name: list[0].name }), text: t('delete.text'), yes: t('do.delete'), danger: true,
    extra: files, value: () => (files.firstChild.checked ? 'trash' : 'keep') });
  if (!yes) return;
  for (const job of list) {
    gone.add(job.uid);
    jobs.delete(job.uid);
  }
  emit('jobs');
  if (location.hash.startsWith('#/job/')) location.hash = '#/';
  const finish = () => {
    removeEventListener('pagehide', finish);
    clearTimeout(timer);
    for (const job of list) remove(`jobs/${job.uid}?files=${yes}`).catch((problem) => { restore(); complain(problem); });
  };
  const restore = () => {
    removeEventListener('pagehide', finish);
    clearTimeout(timer);
    for (const job of list) {
      gone.delete(job.uid);
      emit('job', job);
    }
  };
  const timer = setTimeout(finish, 10000);
  addEventListener('pagehide', finish);
  toast(t('delete.done', { n: list.length, name: list[0].name }), { seconds: 10, action: { label: t('undo'), run: restore } });
}

// SPDX-License-Identifier: Apache-2.0
// One stream of events per tab.  Browsers open six connections to a host at most, so a hidden tab gives its own back,
// unless it has to tell when a job ends.
import { settle } from './dom.js';
import { url, get, link } from './api.js';

// The newest jobs and the state of the queue, as the stream keeps them; 'jobs' is emitted after each change.
// gone: jobs that are about to be deleted, and not shown.
export const jobs = new Map();
export const gone = new Set();
export const queue = { paused: false, reason: null, next: null };

const KINDS = ['job', 'machine', 'log', 'series', 'sample', 'checkpoint', 'notice', 'reset', 'reload'];
const listeners = new Map();
const topics = new Map();
let source = null;
let opened = '';
let retry = 0;

export const options = { whileHidden: false };

// Both return a function that undoes them.
export function on(kind, work) {
  const all = listeners.get(kind) ?? new Set();
  listeners.set(kind, all.add(work));
  return () => all.delete(work);
}

export function watch(topic) {
  topics.set(topic, (topics.get(topic) ?? 0) + 1);
  connect();
  return () => {
    const left = topics.get(topic) - 1;
    if (left) topics.set(topic, left);
    else topics.delete(topic);
    connect();
  };
}

export function emit(kind, value) {
  for (const work of [...(listeners.get(kind) ?? [])]) work(value);
}

function wanted() {
  if (document.hidden) return options.whileHidden ? 'jobs' : '';
  return [...topics.keys()].sort().join(',');
}

function close() {
  source?.close();
  source = null;
  opened = '';
}

function open() {
  const names = wanted();
  if (names === opened && source) return;
  close();
  if (!names) return;
  opened = names;
  source = new EventSource(url(`events?topics=${encodeURIComponent(names)}`));
  for (const kind of KINDS) source.addEventListener(kind, (event) => receive(kind, event));
  source.onopen = () => {
    retry = 0;
    link.back();
    // What came between a page's requests and this moment was told to nobody.
    emit('opened', {});
  };
  source.onerror = () => {
    if (source?.readyState !== EventSource.CLOSED) return link.lost();
    // The server refused the stream: a session that ended shows itself in any other request.
    close();
    get('session').catch(() => {});
    setTimeout(connect, Math.min(30000, 1000 * 2 ** retry++));
  };
}

// The report of the machine, with the figures of the last second in it; 'gpus' is emitted after each change.
export const machine = { gpus: [], host: {} };

function refresh(live) {
  machine.gpus = machine.gpus.map((gpu, i) => ({ ...gpu, ...live.gpus[i] }));
  machine.host = { ...machine.host, ...live.host };
  emit('gpus', machine);
}

export async function loadMachine() {
  const report = await get('machine');
  Object.assign(machine, report);
  refresh(report.live ?? { gpus: [] });
}

on('machine', refresh);

export async function loadJobs() {
  // The newest of all, and whatever runs or waits, however old it is.
  const [answer, live] = await Promise.all([get('jobs?limit=100'), get('jobs?state=queued,paused,starting,active&limit=2000')]);
  jobs.clear();
  for (const job of [...answer.jobs, ...live.jobs]) if (!gone.has(job.uid)) jobs.set(job.uid, job);
  Object.assign(queue, answer.queue, { next: answer.next, loaded: true });
  emit('jobs');
}

on('job', (job) => {
  if (job.deleted || gone.has(job.uid)) jobs.delete(job.uid);
  else jobs.set(job.uid, { ...jobs.get(job.uid), ...job });
  emit('jobs', job);
});

const connect = settle(20, open);

function receive(kind, event) {
  if (kind === 'reload') return location.reload();
  emit(kind, event.data ? JSON.parse(event.data) : {});
}

function comeBack() {
  const before = opened;
  connect();
  // What happened meanwhile is not in the new stream.
  if (!document.hidden && before !== wanted()) setTimeout(() => emit('reset', {}), 50);
}

document.addEventListener('visibilitychange', comeBack);
// A page that was left may be kept for the way back, with its connections.
addEventListener('pagehide', close);
addEventListener('pageshow', (e) => e.persisted && comeBack());

// Timers that pause while nobody looks.
export function every(ms, work) {
  const timer = setInterval(() => document.hidden || work(), ms);
  return () => clearInterval(timer);
}

// Calls at most once in ms milliseconds, and once more after the last: what came in between is not lost.
export function throttle(ms, work) {
  let timer = 0;
  let free = 0;
  const later = () => {
    timer ||= setTimeout(() => {
      timer = 0;
      free = Date.now() + ms;
      work();
    }, Math.max(0, free - Date.now()));
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

// SPDX-License-Identifier: Apache-2.0
// Numbers, sizes and times as people read them.  What is not known is an en dash.
import { t } from './dom.js';

export const NONE = '–';
const known = (x) => typeof x === 'number' && Number.isFinite(x);
const plain = new Intl.NumberFormat('en');

export const count = (n) => (known(n) ? plain.format(n) : NONE);

// Four significant digits, the small ones as powers.
export function figure(x, digits = 4) {
  if (!known(x)) return NONE;
  if (x !== 0 && Math.abs(x) < 1e-3) return x.toExponential(digits - 2).replace('e-', 'e−');
  if (Math.abs(x) >= 1e4) return plain.format(Math.round(x));
  return String(Number(x.toPrecision(digits)));
}

// The same number of digits at every step, so that a live value does not jump about.
export function loss(x) {
  if (!known(x)) return NONE;
  return Math.abs(x) >= 100 || Math.abs(x) < 1e-3 ? figure(x, 4) : x.toFixed(Math.abs(x) >= 10 ? 2 : Math.abs(x) >= 1 ? 3 : 4);
}

export function bytes(n) {
  if (!known(n)) return NONE;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export const percent = (x) => (known(x) ? `${Math.floor(x * 100)} %` : NONE);

export function duration(s) {
  if (!known(s)) return NONE;
  s = Math.max(0, Math.round(s));
  if (s < 60) return t('time.s', { s });
  const m = Math.floor(s / 60);
  if (m < 60) return s < 600 && s % 60 ? t('time.ms', { m, s: s % 60 }) : t('time.m', { m });
  const hours = Math.floor(m / 60);
  if (hours < 48) return m % 60 ? t('time.hm', { h: hours, m: m % 60 }) : t('time.h', { h: hours });
  return t('time.dh', { d: Math.floor(hours / 24), h: hours % 24 });
}

export const now = () => Date.now() / 1000;

export function ago(at) {
  if (!known(at)) return NONE;
  const s = now() - at;
  if (s < 45) return t('time.now');
  if (s < 3600) return t('time.ago.m', { n: Math.max(1, Math.round(s / 60)) });
  if (s < 86400) return t('time.ago.h', { n: Math.round(s / 3600) });
  if (s < 86400 * 30) return t('time.ago.d', { n: Math.round(s / 86400) });
  return day(at);
}

const days = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric' });
const hours = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const week = new Intl.DateTimeFormat('en', { weekday: 'short' });

export const day = (at) => (known(at) ? days.format(at * 1000) : NONE);
export const moment = (at) => (known(at) ? `${days.format(at * 1000)}, ${hours.format(at * 1000)}` : NONE);

// When something will be over: the hour, with the day where that is not today.
export function until(at) {
  if (!known(at)) return NONE;
  const date = new Date(at * 1000);
  const today = new Date().toDateString() === date.toDateString();
  return today ? hours.format(date) : at - now() < 86400 * 6 ? `${week.format(date)} ${hours.format(date)}` : moment(at);
}

export const speed = (job) =>
  known(job.s_per_it) && job.s_per_it > 0
    ? job.s_per_it >= 1 ? t('speed.slow', { x: figure(job.s_per_it, 3) }) : t('speed.fast', { x: figure(1 / job.s_per_it, 3) })
    : NONE;

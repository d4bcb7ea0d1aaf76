// SPDX-License-Identifier: Apache-2.0
// The checks of this machine: what is wrong first, with what to do about it.
import { h, t, icon, fill } from '../dom.js';
import { get } from '../api.js';
import { busyButton, command, copyButton, loading, problemBox } from '../ui.js';
import { day } from '../format.js';

const ORDER = ['fail', 'warn', 'unknown', 'ok'];
const ICON = { fail: 'failed', warn: 'warn', unknown: 'info', ok: 'ok' };

export function open(root) {
  app.title(t('nav.doctor'));
  const body = h('div', loading());
  const load = async () => {
    try {
      fill(body, report(await get('doctor')));
    } catch (problem) {
      fill(body, problemBox(problem, load));
    }
  };
  root.append(h('div.page-head', h('h1', { tabindex: -1 }, t('nav.doctor')), h('div.row', busyButton(t('doctor.again'), 'again', load))), body);
  load();
}

function report(doctor) {
  const of = (status) => doctor.checks.filter((check) => check.status === status);
  const counts = ORDER.filter((status) => of(status).length).map((status) => h('span.badge', { class: `is-${status}` }, icon(ICON[status]), t(`doctor.count.${status}`, { n: of(status).length })));
  const verdict = { ready: 'ok', ok: 'ok', yes: 'ok', warn: 'warn', no: 'fail', fail: 'fail' }[doctor.verdict] ?? (of('fail').length ? 'fail' : 'unknown');
  const part = (status) => of(status).length > 0 && h('section', h('h2.list-head', t(`doctor.head.${status}`)), h('div.stack.tight', of(status).map(finding)));
  const quiet = (status, list) => of(status).length > 0 && h('details.card', { open: status === 'unknown' && of(status).length < 6 }, h('summary', t(`doctor.head.${status}`, { n: of(status).length })), list);
  return [h('section.card.verdict', { class: `edge-${verdict}` }, h('p.big-text', doctor.summary), h('div.row.wrap', counts, h('span.grow'), copyButton(() => asText(doctor), t('doctor.copy')))),
    part('fail'), part('warn'), ways(doctor),
    h('div.stack', quiet('unknown', h('div.plain', of('unknown').map(finding))), quiet('ok', h('ul.oks', of('ok').map((check) => h('li', icon('ok'), h('span.grow', check.fact), source(check)))))), doctor.reviewed && h('p.muted.above', t('doctor.reviewed', { date: day(Date.parse(doctor.reviewed) / 1000) }))];
}

const finding = (check) => h('article.card.finding', { class: `edge-${check.status}` }, h('div.row', icon(ICON[check.status]), h('h3.grow', check.fact), h('code.muted', check.id), source(check)),
  check.why && h('p', check.why), check.remedy && command(check.remedy));

function source(check) {
  if (!check.source) return null;
  const link = /^https:\/\/\S+/.exec(check.source)?.[0];
  return link ? h('a.source', { href: link, target: '_blank', rel: 'noreferrer', title: check.source }, t('doctor.source')) : h('span.muted', check.source);
}

const ways = (doctor) => (doctor.ways ?? []).length > 0 && h('section', h('h2.list-head', t('doctor.ways')), h('div.stack.tight', doctor.ways.map((way) => h('article.card.finding', h('p', way.known), command(way.command)))));

const asText = (doctor) => `${doctor.summary}\n${doctor.checks.map((c) => `${c.status.padEnd(8)}${c.id}: ${c.fact}${c.remedy ? `\n        ${c.remedy}` : ''}`).join('\n')}\n`;

// SPDX-License-Identifier: Apache-2.0
// How this browser shows things, and what the queue waits for.
import { h, t, fill, put } from '../dom.js';
import { get, replace, session } from '../api.js';
import { choice, command, complain, toggle } from '../ui.js';

export function open(root) {
  app.title(t('nav.settings'));
  const { settings } = app;
  const permission = h('p.muted');
  const showPermission = () => put(permission, t(`notify.permission.${globalThis.Notification?.permission ?? 'none'}`));
  const notify = toggle(t('settings.notify'), settings.notify, async (on) => {
    const answer = on ? await globalThis.Notification?.requestPermission() : '';
    app.save({ notify: on && answer === 'granted' });
    notify.firstChild.checked = app.settings.notify;
    showPermission();
  });
  showPermission();
  const queue = h('section.card', { hidden: true });
  const about = h('section.card');
  root.append(h('div.page-head', h('h1', { tabindex: -1 }, t('nav.settings'))), h('div.stack.narrow',
    h('section.card', h('h2', t('settings.look')), choice(t('settings.theme'), ['system', 'light', 'dark'].map((name) => [name, t(`theme.${name}`)]), settings.theme, (theme) => app.save({ theme }))),
    h('section.card', h('h2', t('settings.notify.title')), notify, permission),
    h('section.card', h('h2', t('keys.title')), toggle(t('settings.keys'), settings.keys, (keys) => app.save({ keys })), h('p.muted', t('settings.keys.about'))),
    queue, about));

  get('settings').then(({ settings: shared }) => {
    queue.hidden = !('queue.wait_idle' in shared);
    fill(queue, h('h2', t('queue.title')), toggle(t('settings.idle'), shared['queue.wait_idle'], (on) => replace('settings', { 'queue.wait_idle': on }).catch(complain)), h('p.muted', t('settings.idle.about')));
    if (session.read_only) queue.querySelector('input').disabled = true;
  }).catch(() => {});
  app.ready.then(() => fill(about, h('h2', t('settings.about')), h('dl.facts',
    [['version', session.version], ['knowledge', session.knowledge_date], ['access', t(session.read_only ? 'settings.readonly' : 'settings.readwrite')]].map(([name, v]) => h('div', h('dt', t(`settings.${name}`)), h('dd', v ?? ''))),
    (session.folders ?? []).map((f) => h('div', h('dt', t('settings.folder', { name: f.name ?? f })), h('dd', f.path && h('code', f.path))))),
  h('p.muted.above', t('settings.link')), command('cairn ui --url --read-only')));
}

// SPDX-License-Identifier: Apache-2.0
// Talks to the server.  Every address is relative, so that the page works below any path of a proxy.
import { t } from './dom.js';

const cache = new Map();
export const session = { csrf: '', read_only: true, run_allowed: false };
export const link = { lost: () => {}, back: () => {}, signedOut: () => {} };

// What the server says about a request that it refused; status 0: it did not answer.
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || t('problem.status', { status }));
    Object.assign(this, { status, title: body.title, detail: body.detail, hint: body.hint, line: body.line });
  }
}

export const url = (path) => `api/v1/${path}`;
export const filePath = (kind, folder, path) => `${kind}/${[folder, ...path.split('/')].map(encodeURIComponent).join('/')}`;
export const fileUrl = (kind, folder, path, query = '') => url(`${filePath(kind, folder, path)}${query}`);

async function send(method, path, body, headers) {
  const init = { method, headers: { ...headers }, cache: 'no-store', credentials: 'same-origin' };
  if (method !== 'GET') {
    init.headers['X-Cairn-CSRF'] = session.csrf;
    init.headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(body ?? {});
    if (method === 'DELETE') init.keepalive = true;
  }
  let answer;
  try {
    answer = await fetch(url(path), init);
  } catch {
    link.lost();
    throw new Problem(0, { title: t('problem.offline'), detail: t('problem.offline'), hint: t('problem.offline.hint') });
  }
  link.back();
  if (answer.ok || answer.status === 304) return answer;
  const text = await answer.text();
  let problem = {};
  try {
    problem = JSON.parse(text);
  } catch { /* a proxy's page: the status has to do */ }
  if (answer.status === 401) link.signedOut();
  throw new Problem(answer.status, problem);
}

// The body of an unchanged answer comes from here; pages must not change it.  The tag of a job is the version of its
// text, which says nothing of its progress.
export async function get(path) {
  const kept = path.startsWith('jobs') ? null : cache.get(path);
  const answer = await send('GET', path, null, kept ? { 'If-None-Match': kept.etag } : {});
  if (answer.status === 304) return kept.body;
  const body = await answer.json();
  const etag = answer.headers.get('ETag');
  if (cache.size > 200) cache.clear();
  if (etag) cache.set(path, { etag, body });
  return body;
}

export async function getText(path) {
  const answer = await send('GET', path);
  const number = (name) => Number(answer.headers.get(name) ?? NaN);
  return { text: await answer.text(), offset: number('X-Offset'), size: number('X-Size') };
}

async function change(method, path, body, headers) {
  const answer = await send(method, path, body, headers);
  return answer.status === 204 ? null : answer.json().catch(() => null);
}

export const post = (path, body, headers) => change('POST', path, body, headers);
export const patch = (path, body, version) => change('PATCH', path, body, { 'If-Match': `"${version}"` });
export const replace = (path, body) => change('PUT', path, body);
export const remove = (path) => change('DELETE', path);

export async function signIn() {
  Object.assign(session, await get('session'));
  return session;
}

// A query from an object; what is not set is left out.
export function query(values) {
  const parts = Object.entries(values).filter(([, v]) => v !== undefined && v !== null && v !== '');
  return parts.length ? `?${parts.map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&')}` : '';
}

import type { Role } from '@sluice/admin'
import type { AdminUnderTest, CallOptions } from './admin-server.ts'

interface Operation {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly role: Role
  readonly body?: object
  readonly ifMatch?: true
}

const reason = 'a test'
const dead = { ids: ['nobody'], reason }
const later = '2096-12-31T23:59:59Z'

export const operations: Readonly<Record<string, Operation>> = {
  session: { method: 'GET', path: 'session', role: 'read' },
  live: { method: 'GET', path: 'live', role: 'read' },
  traffic: { method: 'GET', path: 'traffic', role: 'read' },
  fleet: { method: 'GET', path: 'fleet', role: 'read' },
  top: { method: 'GET', path: 'top?by=asked&window=10m&most=5', role: 'read' },
  near: { method: 'GET', path: 'near', role: 'read' },
  policies: { method: 'GET', path: 'policies', role: 'read' },
  change: {
    ...{ method: 'POST', path: 'policies/changes', role: 'policies', ifMatch: true },
    body: { set: [{ policy: 'burst', field: 'limit', value: 6 }], reason },
  },
  rollback: {
    ...{ method: 'POST', path: 'policies/rollback', role: 'policies', ifMatch: true },
    body: { version: 'now', reason },
  },
  kill: {
    ...{ method: 'POST', path: 'policies/kill', role: 'policies', ifMatch: true },
    body: { kill: 'shadow', reason },
  },
  diff: { method: 'GET', path: 'policies/diff?from=now', role: 'read' },
  export: { method: 'GET', path: 'policies/export', role: 'policies' },
  lookup: { method: 'POST', path: 'keys/lookup', role: 'keys', body: { key: 'user ada' } },
  reset: { method: 'POST', path: 'keys/reset', role: 'keys', body: { key: 'user ada', reason } },
  block: {
    ...{ method: 'POST', path: 'keys/block', role: 'keys' },
    body: { key: 'user ada', for: '1h', reason },
  },
  unblock: {
    ...{ method: 'POST', path: 'keys/unblock', role: 'keys' },
    body: { key: 'user ada', reason },
  },
  temporaryLimit: {
    ...{ method: 'POST', path: 'keys/limit', role: 'keys' },
    body: { key: { user: 'ada' }, policy: 'burst', limit: 9, until: later, reason },
  },
  unlock: {
    method: 'POST',
    path: 'keys/unlock',
    role: 'policies',
    body: { policy: 'burst', reason },
  },
  queues: { method: 'GET', path: 'queues', role: 'read' },
  deadLetters: { method: 'GET', path: 'queues/jobs/dead?limit=5', role: 'read' },
  retryDead: { method: 'POST', path: 'queues/jobs/dead/retry', role: 'keys', body: dead },
  deleteDead: { method: 'POST', path: 'queues/jobs/dead/delete', role: 'keys', body: dead },
  audit: { method: 'GET', path: 'audit', role: 'read' },
}

/** Reads that the page repeats. Differences and texts of versions are read once. */
export const polled: readonly Operation[] = Object.values(operations).filter(
  ({ method, path }) => method === 'GET' && !/^policies\/(?:diff|export)/.test(path),
)

export function callNow(
  { call, policies }: AdminUnderTest,
  { method, path, body, ifMatch }: Operation,
  more: CallOptions = {},
) {
  const { version } = policies
  const headers = { ...(ifMatch && { 'if-match': `"${version}"` }), ...more.headers }
  const sent = body && 'version' in body ? { ...body, version } : body
  return call(method, path.replace('from=now', `from=${version}`), {
    ...more,
    headers,
    ...(sent && { body: sent }),
  })
}

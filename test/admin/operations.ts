import type { Role } from '@sluice/admin'
import type { AdminUnderTest } from './admin-server.ts'

interface Operation {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly role: Role
  readonly body?: object
  readonly ifMatch?: true
}

const get = (path: string, role: Role = 'read'): Operation => ({ method: 'GET', path, role })
const post = (path: string, role: Role, body: object): Operation => {
  return { method: 'POST', path, role, body }
}
const change = (action: string, body: object): Operation => {
  return { ...post(`policies/${action}`, 'policies', { ...body, reason }), ifMatch: true }
}

const reason = 'a test'
const ada = { key: 'user ada', reason }
const raised = { policy: 'burst', limit: 9, until: '2096-12-31T23:59:59Z', reason }
const dead = { ids: ['nobody'], reason }

export const operations: Readonly<Record<string, Operation>> = {
  session: get('session'),
  live: get('live'),
  traffic: get('traffic'),
  fleet: get('fleet'),
  top: get('top?by=asked&window=10m&most=5'),
  near: get('near'),
  policies: get('policies'),
  change: change('changes', { set: [{ policy: 'burst', field: 'limit', value: 6 }] }),
  rollback: change('rollback', { version: 'now' }),
  kill: change('kill', { kill: 'shadow' }),
  diff: get('policies/diff?from=now'),
  export: get('policies/export', 'policies'),
  lookup: post('keys/lookup', 'keys', { key: 'user ada' }),
  reset: post('keys/reset', 'keys', ada),
  block: post('keys/block', 'keys', { ...ada, for: '1h' }),
  unblock: post('keys/unblock', 'keys', ada),
  temporaryLimit: post('keys/limit', 'keys', { key: { user: 'ada' }, ...raised }),
  unlock: post('keys/unlock', 'policies', { policy: 'burst', reason }),
  queues: get('queues'),
  deadLetters: get('queues/jobs/dead?limit=5'),
  retryDead: post('queues/jobs/dead/retry', 'keys', dead),
  deleteDead: post('queues/jobs/dead/delete', 'keys', dead),
  audit: get('audit'),
}

/** Reads that the page repeats. Differences and texts of versions are read once. */
export const polled: readonly Operation[] = Object.values(operations).filter(
  ({ method, path }) => method === 'GET' && !/^policies\/(?:diff|export)/.test(path),
)

export function callNow(
  { call, policies }: AdminUnderTest,
  { method, path, body, ifMatch }: Operation,
) {
  const { version } = policies
  const headers = { ...(ifMatch && { 'if-match': `"${version}"` }) }
  const sent = body && 'version' in body ? { ...body, version } : body
  return call(method, path.replace('from=now', `from=${version}`), { headers, body: sent })
}

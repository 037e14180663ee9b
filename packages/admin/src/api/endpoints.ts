import type { TObject, TSchema } from '@sinclair/typebox'
import type { Role } from '../access/authorize.ts'
import * as fleet from './schemas/fleet.ts'
import * as keys from './schemas/keys.ts'
import * as policies from './schemas/policies.ts'

/** One API operation: routes, checks and openapi.json are generated from this table. */
export interface Endpoint {
  readonly method: 'GET' | 'POST'
  /** Under `api/v1/`; `{queue}` is the name of a queue. */
  readonly path: string
  readonly role: Role
  readonly summary: string
  readonly query?: TObject
  readonly body?: TObject
  readonly answer: TSchema
  /** True if the request names the version that it is based on in `If-Match`. */
  readonly ifMatch?: boolean
}

/** Describes an operation: with a body it is a POST. */
function at(path: string, role: Role, rest: Omit<Endpoint, 'method' | 'path' | 'role'>): Endpoint {
  return { method: rest.body ? 'POST' : 'GET', path, role, ...rest }
}

const all = {
  session: at('session', 'read', {
    summary: 'The caller, their roles, and the available parts',
    answer: fleet.sessionAnswer,
  }),
  live: at('live', 'read', {
    summary:
      'Requests, denials, near misses and latency of the fleet, and the store as this process sees it',
    answer: fleet.liveAnswer,
  }),
  traffic: at('traffic', 'read', {
    summary: 'Rates of the last minute, and of the last 15 minutes as lines',
    answer: fleet.trafficAnswer,
  }),
  fleet: at('fleet', 'read', {
    summary: 'Instances, the versions that they run, and the health of the store',
    answer: policies.fleetAnswer,
  }),
  top: at('top', 'read', {
    summary: 'The busiest keys of one policy or of all',
    query: keys.topQuery,
    answer: keys.topAnswer,
  }),
  near: at('near', 'read', {
    summary: 'Who is near a limit or refused most, and the last 24 hours of the policies',
    answer: fleet.nearAnswer,
  }),
  policies: at('policies', 'read', {
    summary: 'The current policies. Use the ETag in If-Match',
    answer: policies.policiesAnswer,
  }),
  change: at('policies/changes', 'policies', {
    summary: 'Sets or removes fields and overrides, all in one version',
    body: policies.changeRequest,
    answer: policies.changeAnswer,
    ifMatch: true,
  }),
  rollback: at('policies/rollback', 'policies', {
    summary: 'Restores the changes of an earlier version',
    body: policies.rollbackRequest,
    answer: policies.changeAnswer,
    ifMatch: true,
  }),
  kill: at('policies/kill', 'policies', {
    summary: 'Puts all policies into shadow mode, switches them off, or restores them',
    body: policies.killRequest,
    answer: policies.changeAnswer,
    ifMatch: true,
  }),
  diff: at('policies/diff', 'read', {
    summary: 'The differences between two versions',
    query: policies.diffQuery,
    answer: policies.diffAnswer,
  }),
  export: at('policies/export', 'policies', {
    summary: 'A version as a policy file',
    query: policies.exportQuery,
    answer: policies.exportAnswer,
  }),
  lookup: at('keys/lookup', 'keys', {
    summary: 'The state of an identity under each policy',
    body: keys.lookupRequest,
    answer: keys.lookupAnswer,
  }),
  reset: at('keys/reset', 'keys', {
    summary: 'Resets the counts of an identity, and lifts its block',
    body: keys.resetRequest,
    answer: keys.actionAnswer,
  }),
  block: at('keys/block', 'keys', {
    summary: 'Denies an identity for a time, under each penalty',
    body: keys.blockRequest,
    answer: keys.actionAnswer,
  }),
  unblock: at('keys/unblock', 'keys', {
    summary: 'Lifts the block of an identity, and resets its strikes',
    body: keys.unblockRequest,
    answer: keys.actionAnswer,
  }),
  temporaryLimit: at('keys/limit', 'keys', {
    summary: 'Gives an identity a different limit for a time: an override that expires',
    body: keys.temporaryLimitRequest,
    answer: policies.changeAnswer,
  }),
  unlock: at('keys/unlock', 'policies', {
    summary: 'Resets all keys of one policy, a bounded number at a time',
    body: keys.unlockRequest,
    answer: keys.unlockAnswer,
  }),
  queues: at('queues', 'read', { summary: 'How full the queues are', answer: fleet.queuesAnswer }),
  deadLetters: at('queues/{queue}/dead', 'read', {
    summary: 'The dead letters of a queue',
    query: fleet.deadQuery,
    answer: fleet.deadAnswer,
  }),
  retryDead: at('queues/{queue}/dead/retry', 'keys', {
    summary: 'Runs dead letters again',
    body: fleet.deadRequest,
    answer: fleet.deadActionAnswer,
  }),
  deleteDead: at('queues/{queue}/dead/delete', 'keys', {
    summary: 'Deletes dead letters',
    body: fleet.deadRequest,
    answer: fleet.deadActionAnswer,
  }),
  audit: at('audit', 'read', {
    summary: 'Who changed what, when and why',
    query: fleet.auditQuery,
    answer: fleet.auditAnswer,
  }),
} satisfies Readonly<Record<string, Endpoint>>

export type EndpointName = keyof typeof all

export const endpoints: Readonly<Record<EndpointName, Endpoint>> = all

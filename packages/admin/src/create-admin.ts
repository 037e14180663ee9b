import { randomUUID } from 'node:crypto'
import { invalid, knownFields, memoryStore, noteRelease } from '@sluice/core'
import {
  type Handler,
  type HandlerResponse,
  plainProblem,
  problemMediaType,
  slashRedirect,
} from '@sluice/http'
import type { Metrics } from '@sluice/metrics'
import type { Policies } from '@sluice/policies'
import type { Queue } from '@sluice/queue'
import { type Authorize, granted } from './access/authorize.ts'
import { crossSiteProblem } from './access/cross-site.ts'
import { answer } from './api/api.ts'
import type { Admin } from './api/context.ts'
import { liveOf } from './api/live.ts'
import { versionChanges } from './api/overview.ts'
import { sampled } from './api/traffic.ts'
import { pageAnswer } from './page-files.ts'
import { ApiError, refusalOf } from './stores/api-error.ts'
import { type AuditSink, AuditTrail } from './stores/audit-trail.ts'
import { sharedReadsOf } from './stores/shared-reads.ts'

/** Options of `createAdmin`. */
export interface AdminOptions<Native = unknown> {
  /** The policies to show and change: the result of `openPolicies`. @default none */
  policies?: Policies | undefined
  /** The result of `collectMetrics`. @default none: no live numbers and no busiest keys */
  metrics?: Metrics | undefined
  /** The queues whose dead letters are shown. @default none */
  queues?: readonly Pick<Queue, 'broker'>[] | undefined
  /**
   * A function of the framework's request that returns false, or the caller and the roles:
   * `{ actor, may: ['read', 'keys', 'policies'] }`. `'localhost'` lets requests from this machine
   * do everything. @default none: everybody is refused
   */
  authorize?: Authorize<Native> | undefined
  /**
   * Called for each action, in addition to the trail in the store. If it rejects, the action is not
   * started.
   * @default nobody
   */
  auditSink?: AuditSink | undefined
}

/** Legal values of each option, in code and in words. */
const legal: Readonly<
  Record<keyof AdminOptions, readonly [isLegal: (value: unknown) => boolean, words: string]>
> = {
  policies: [hasMethod('preview'), 'the result of await openPolicies({ file, store })'],
  metrics: [hasMethod('topKeys'), 'the result of collectMetrics({ store })'],
  queues: [
    (queues) => Array.isArray(queues) && queues.every(({ broker }) => broker),
    'a list of queues from createQueue',
  ],
  authorize: [
    (authorize) => authorize === 'localhost' || typeof authorize === 'function',
    `a function of the request, or 'localhost'`,
  ],
  auditSink: [(sink) => typeof sink === 'function', 'a function of the record'],
}

/** Sent with every response. */
const ownHeaders = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

const apiPath = /^\/api\/v1\/(.*)$/

/**
 * Creates the API and the page that show and change limits. Mount it in front of the limiter.
 * @example
 * app.use('/limits', mount(createAdmin({ policies, metrics, authorize: 'localhost' })))
 * @throws SluiceError if an option is unknown or invalid
 */
export function createAdmin<Native = unknown>(options: AdminOptions<Native>): Handler<Native> {
  noteRelease('@sluice/admin')
  checkOptions(options)
  const { authorize } = options
  const admin = adminOf(options)

  return async function sluiceAdmin(request) {
    try {
      const redirect = slashRedirect(request)
      if (redirect) return shown(redirect)
      const who = await granted(authorize, request)
      if (!who) throw new ApiError(403, refusedBecause(authorize))
      const [, path] = apiPath.exec(request.path) ?? []
      if (path === undefined) {
        const file = pageAnswer(request)
        if (file) return shown(file)
        throw new ApiError(404, 'Not found; the API is under api/v1/.')
      }
      const foreign = crossSiteProblem(request)
      if (foreign !== undefined) throw new ApiError(403, foreign)
      return shown(await answer(admin, path, { request, who }))
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal) return shown(problemOf(refusal))
      throw error
    }
  }
}

function checkOptions(options: AdminOptions<never>): void {
  knownFields(options, 'createAdmin', Object.keys(legal))
  for (const [option, [isLegal, words]] of Object.entries(legal)) {
    const value: unknown = Reflect.get(options, option)
    if (value !== undefined && !isLegal(value)) throw invalid({ option }, value, words)
  }
}

function hasMethod(name: string) {
  return (value: unknown): boolean => typeof Reflect.get(Object(value), name) === 'function'
}

function adminOf<Native>({
  policies,
  metrics,
  queues = [],
  auditSink,
}: AdminOptions<Native>): Admin {
  const limiter = () => policies?.limiters[0]
  // Without a store that keeps documents, the trail ends with the process.
  const { documents: own } = memoryStore()
  const audit = new AuditTrail(() => limiter()?.store.documents ?? own, auditSink)
  const instance = policies?.id ?? randomUUID()
  return {
    ...{ instance, policies, metrics, queues, audit },
    changesBetween: versionChanges(),
    history:
      metrics &&
      sampled(
        () => liveOf({ instance, metrics, policies }),
        () => limiter()?.store.fleet,
      ),
    reads: sharedReadsOf({ policies, audit, queues }),
    store: () => limiter()?.store,
    storeHealth: () => limiter()?.storeHealth(),
  }
}

function refusedBecause(authorize: unknown): string {
  if (authorize === undefined) {
    return 'Nobody is authorised: set createAdmin({ authorize: (request) => … }).'
  }
  return authorize === 'localhost'
    ? 'Only requests from this machine are allowed: from a loopback address, for a local Host, and not through a proxy.'
    : 'You are not authorised.'
}

function problemOf({ status, message, code, headers }: ApiError): HandlerResponse {
  const body = JSON.stringify({ ...plainProblem(status), detail: message, ...(code && { code }) })
  return {
    status,
    headers: { ...headers, 'Content-Type': problemMediaType, 'Cache-Control': 'no-store' },
    body,
  }
}

function shown({ headers, ...response }: HandlerResponse): HandlerResponse {
  return { ...response, headers: { ...ownHeaders, ...headers } }
}

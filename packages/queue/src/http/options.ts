import {
  type Decision,
  type Duration,
  flag,
  invalid,
  knownFields,
  type MaybePromise,
  oneOf,
  orDefault,
  type Policy,
  SluiceError,
  waitBoundMs,
} from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import { checkFunction, whole } from '../checks.ts'
import type { JobStatus } from '../job.ts'
import type { Queue } from '../queue.ts'
import type { JobResponse } from './answers.ts'
import type { RequestEnvelope } from './envelope.ts'

/** Options of `createAdmission`. */
export interface AdmissionOptions<Native = unknown> {
  queue: Queue<Native>
  /**
   * Path or URL of the status monitor as clients see it, such as `'/jobs'`: the start of every
   * `Location`.
   */
  monitor: string
  /**
   * Selects the requests to queue. `always`: all that pass the limits. `overflow`: those over a
   * soft limit, and those with `Prefer: respond-async`. `preferred`: only those with
   * `Prefer: respond-async`.
   * @default 'always'
   */
  admit?: Admit | undefined
  /**
   * Names of the soft policies: a request over these alone is queued, and over any other refused.
   * `overflow` only.
   * @default all
   */
  soft?: readonly string[] | undefined
  /**
   * Names of request headers that jobs carry, in lower case.
   * @default ['content-type', 'accept-language']
   */
  headers?: readonly string[] | undefined
  /**
   * The longest body, in bytes; a longer one gets 413. Without `toJob`, at most three quarters of
   * the queue's `maxJobBytes`, since bytes become base64.
   * @default 65_536, or as much as the queue takes
   */
  maxBodyBytes?: number | undefined
  /** Makes the payload of the job. @default the envelope */
  toJob?: ((envelope: RequestEnvelope, native: Native) => MaybePromise<unknown>) | undefined
  /**
   * Makes the answer for a job that is done, after a wait or for a repeated request. It has a
   * status of 200 to 299, headers, and a body that is written as JSON.
   * @default 200 with { id, status, result }
   */
  toAnswer?: ((job: JobStatus) => MaybePromise<JobResponse>) | undefined
  /** Reading of `Idempotency-Key`. */
  idempotency?: IdempotencyOptions | undefined
  /** The longest that a request is held for `Prefer: wait`. @default '30s' */
  maxWait?: Duration | undefined
  /**
   * Requests that are held for `Prefer: wait` at once in this process; one more is answered at
   * once.
   * @default 1_000
   */
  maxHeld?: number | undefined
}

/** Options of idempotency keys. */
export interface IdempotencyOptions {
  /** Answers 400 to a request without a key. @default false */
  required?: boolean | undefined
  /**
   * Requires quotes around the key, as the draft does; many clients leave them out.
   * @default false
   */
  strict?: boolean | undefined
  /**
   * Answer to a repeated request while its job has not ended: that job (202), or 409.
   * @default 'same'
   */
  whileRunning?: 'same' | 'conflict' | undefined
}

/** Requests that are queued: all, those over the limit, or those whose client prefers it. */
export type Admit = 'always' | 'overflow' | 'preferred'

const admits: readonly Admit[] = ['always', 'overflow', 'preferred']

/** The checked options of an admission, with the defaults filled in. */
export interface AdmissionSetup<Native>
  extends Pick<AdmissionOptions<Native>, 'queue' | 'soft' | 'toJob' | 'toAnswer'> {
  /** The option `monitor` without a slash at its end. */
  readonly monitor: string
  readonly admit: Admit
  readonly headers: readonly string[]
  readonly maxBodyBytes: number
  readonly isRequired: boolean
  readonly isStrict: boolean
  readonly whileRunning: 'same' | 'conflict'
  readonly maxWaitMs: number
  readonly maxHeld: number
}

const admissionFields: readonly (keyof AdmissionOptions)[] = [
  ...(['queue', 'monitor', 'admit', 'soft', 'headers', 'maxBodyBytes'] as const),
  ...(['toJob', 'toAnswer', 'idempotency', 'maxWait', 'maxHeld'] as const),
]

export function setUpAdmission<Native>(options: AdmissionOptions<Native>): AdmissionSetup<Native> {
  knownFields(options, 'createAdmission', admissionFields)
  const { toJob, toAnswer, idempotency = {} } = options
  const admit = oneOf(orDefault(options.admit, 'always'), { option: 'admit' }, admits)
  if (options.soft !== undefined && admit !== 'overflow') {
    throw invalid({ option: 'soft' }, options.soft, "left out unless admit is 'overflow'")
  }
  checkFunction(options, 'toJob', 'a function of the envelope')
  checkFunction(options, 'toAnswer', 'a function of the job')
  const queue = queueOf(options.queue)
  knownFields(idempotency, 'idempotency', ['required', 'strict', 'whileRunning'])
  return {
    queue,
    monitor: monitorOf(options.monitor),
    admit,
    soft: options.soft === undefined ? undefined : names(options.soft, 'soft'),
    headers: names(orDefault(options.headers, ['content-type', 'accept-language']), 'headers').map(
      (name) => name.toLowerCase(),
    ),
    maxBodyBytes: maxBodyBytesOf(options, queue.maxJobBytes),
    toJob,
    toAnswer,
    isRequired: flag(idempotency.required, { option: 'idempotency.required' }, false),
    isStrict: flag(idempotency.strict, { option: 'idempotency.strict' }, false),
    whileRunning: oneOf(
      orDefault(idempotency.whileRunning, 'same'),
      { option: 'idempotency.whileRunning' },
      ['same', 'conflict'],
    ),
    maxWaitMs: waitBoundMs(orDefault(options.maxWait, '30s'), 'maxWait'),
    maxHeld: whole(options, 'maxHeld', { otherwise: 1_000, min: 0 }),
  }
}

/** Returns the longest body. The job could not carry a longer one; only `toJob` may shorten it. */
function maxBodyBytesOf<Native>(options: AdmissionOptions<Native>, maxJobBytes: number): number {
  const asBase64 = Math.floor((maxJobBytes * 3) / 4)
  const option = 'maxBodyBytes'
  const range = { otherwise: Math.min(65_536, asBase64), min: 0, max: 100_000_000 }
  const bytes = whole(options, option, range)
  if (options.toJob || bytes <= asBase64) return bytes
  const legal = `at most ${asBase64}, three quarters of the queue's maxJobBytes (bytes are carried as base64), unless toJob makes less of it`
  throw invalid({ option }, bytes, legal)
}

/**
 * Rate at which one identity may look up its jobs: the default of the monitor, and for repeated
 * requests over a limit.
 */
export const pollPolicy = {
  name: 'poll',
  algorithm: 'fixed-window',
  limit: 20,
  window: '1s',
} as const

/** Returns an option that is a queue with `identity`, else throws. */
export function queueOf<Native>(queue: Queue<Native>): Queue<Native> {
  if (typeof queue !== 'object' || queue === null || !('expectedWaitMs' in queue)) {
    throw invalid({ option: 'queue' }, queue, 'what createQueue({ broker, … }) makes')
  }
  if (queue.identifies) return queue
  throw new SluiceError(
    'SLUICE_OPTION_INVALID',
    'queue must know whose a request is: give createQueue the key of your limits, as in identity: apiKey({ verify }). ' +
      'With identity: ip() all users behind one address can read, cancel and repeat the jobs of each other',
  )
}

function monitorOf(monitor: unknown): string {
  if (typeof monitor === 'string' && /^(\/|https?:\/\/)[\x21-\x7e]*$/.test(monitor)) {
    return monitor.replace(/\/+$/, '')
  }
  throw invalid({ option: 'monitor' }, monitor, "a path such as '/jobs', or a URL")
}

function names(value: unknown, option: string): readonly string[] {
  const isList =
    Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '')
  if (isList) return value
  throw invalid({ option }, value, 'an array of names')
}

/** Tells whether only soft policies deny the request. */
export function isSoft(
  { outcomes, source }: Decision,
  soft: readonly string[] | undefined,
): boolean {
  if (source === 'closed' || source === 'shed' || outcomes.length === 0) return false
  return outcomes.every(
    ({ allowed, policy }) =>
      allowed || (mayBeSoft(policy) && (soft?.includes(policy.name) ?? true)),
  )
}

/** @throws SluiceError when no policy has the name */
export function checkSoft(
  soft: readonly string[] | undefined = [],
  policies: readonly Policy[],
): void {
  const names = policies.filter(mayBeSoft).map(({ name }) => name)
  const wrong = soft.find((name) => !names.includes(name))
  if (wrong === undefined) return
  const legal = `names of policies that are limits: ${names.map((name) => `'${name}'`).join(', ')}`
  throw invalid({ option: 'soft' }, wrong, legal)
}

/** A request that a penalty blocks is refused. */
function mayBeSoft(policy: Policy): boolean {
  return algorithmOf(policy).counts !== 'strikes'
}

import {
  checkedElsewhere,
  choiceOption,
  countOption,
  type Decision,
  type Duration,
  durationMs,
  durationOption,
  flagOption,
  functionOption,
  invalid,
  type MaybePromise,
  type Option,
  type OptionsOf,
  objectOption,
  orDefault,
  type Policy,
  type RequiredOption,
  readOptions,
  type SettingsOf,
  SluiceError,
} from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import type { JobStatus } from '../job.ts'
import type { Queue } from '../queue.ts'
import type { RequestEnvelope } from './envelope.ts'
import type { JobResponse } from './job-responses.ts'

/** The options of `createAdmission`. */
class AdmissionTable<Native> {
  /** Queue for the requests. It needs an `identity`. */
  queue: RequiredOption<Queue<Native>> = queueOf
  /**
   * Path or URL of the status monitor as clients see it, such as `'/jobs'`: the start of every
   * `Location`.
   */
  monitor: RequiredOption<string> = monitorOf
  /**
   * Selects the requests to queue. `always`: all that pass the limits. `overflow`: those over a
   * soft limit, and those with `Prefer: respond-async`. `preferred`: only those with
   * `Prefer: respond-async`.
   * @default 'always'
   */
  admit?: Option<Admit, Admit> = choiceOption('always', ['always', 'overflow', 'preferred'])
  /**
   * Names of the soft policies. A request that exceeds only soft policies is queued; any other
   * excess is refused. `overflow` only.
   * @default all
   */
  soft?: Option<readonly string[]> = (soft, option) =>
    soft === undefined ? soft : names(soft, option)
  /**
   * Names of the request headers to keep in jobs, in lower case.
   * @default ['content-type', 'accept-language']
   */
  headers?: Option<readonly string[], readonly string[]> = (headers, option) =>
    names(orDefault(headers, ['content-type', 'accept-language']), option).map((name) =>
      name.toLowerCase(),
    )
  /**
   * Maximum size of a body in bytes; larger bodies get a 413. Without `toJob`, at most three
   * quarters of the queue's `maxJobBytes`, because bytes become base64.
   * @default 65_536, or as much as the queue takes
   */
  maxBodyBytes?: Option<number> = checkedElsewhere
  /** Builds the payload of the job. @default the envelope */
  toJob?: Option<(envelope: RequestEnvelope, native: Native) => MaybePromise<unknown>> =
    functionOption('a function of the envelope')
  /**
   * Builds the response for a finished job, after a wait or for a repeated request. It has a status
   * of 200 to 299, headers, and a body that is written as JSON.
   * @default 200 with { id, status, result }
   */
  toAnswer?: Option<(job: JobStatus) => MaybePromise<JobResponse>> =
    functionOption('a function of the job')
  /** Settings for `Idempotency-Key`. */
  idempotency?: Option<IdempotencyOptions, SettingsOf<IdempotencyTable>> = objectOption(
    new IdempotencyTable(),
  )
  /** Maximum time that a request is held for `Prefer: wait`. @default '30s' */
  maxWait?: Option<Duration, number> = durationOption('30s', durationMs)
  /**
   * Maximum number of requests that this process holds for `Prefer: wait`. Further requests are
   * answered immediately.
   * @default 1_000
   */
  maxHeld?: Option<number, number> = countOption(1_000, { min: 0 })
}

class IdempotencyTable {
  /** Requests without a key get a 400. @default false */
  required?: Option<boolean, boolean> = flagOption(false)
  /**
   * Requires quotes around the key, as the draft does; many clients omit them.
   * @default false
   */
  strict?: Option<boolean, boolean> = flagOption(false)
  /**
   * Response to a repeated request before the job has ended: that job (202), or a 409.
   * @default 'same'
   */
  whileRunning?: Option<'same' | 'conflict', 'same' | 'conflict'> = choiceOption('same', [
    'same',
    'conflict',
  ])
}

/** Options of `createAdmission`. */
export interface AdmissionOptions<Native = unknown> extends OptionsOf<AdmissionTable<Native>> {}

/** Options of idempotency keys. */
export interface IdempotencyOptions extends OptionsOf<IdempotencyTable> {}

/** Requests that are queued: all, those over the limit, or those whose client prefers it. */
export type Admit = 'always' | 'overflow' | 'preferred'

/** The checked options of an admission, with the defaults filled in. Durations are in ms. */
export interface AdmissionSetup<Native> extends SettingsOf<AdmissionTable<Native>> {
  readonly maxBodyBytes: number
}

export function setUpAdmission<Native>(options: AdmissionOptions<Native>): AdmissionSetup<Native> {
  const settings = readOptions(new AdmissionTable<Native>(), options, 'createAdmission')
  if (settings.soft !== undefined && settings.admit !== 'overflow') {
    throw invalid({ option: 'soft' }, settings.soft, "left out unless admit is 'overflow'")
  }
  return { ...settings, maxBodyBytes: maxBodyBytesOf(settings, settings.queue.maxJobBytes) }
}

/**
 * Returns the maximum body size. A longer body would not fit in the job; only `toJob` may shorten
 * it.
 */
function maxBodyBytesOf(
  { maxBodyBytes, toJob }: Pick<AdmissionOptions<never>, 'maxBodyBytes' | 'toJob'>,
  maxJobBytes: number,
): number {
  const asBase64 = Math.floor((maxJobBytes * 3) / 4)
  const option = 'maxBodyBytes'
  const inRange = countOption(Math.min(65_536, asBase64), { min: 0, max: 100_000_000 })
  const bytes = inRange(maxBodyBytes, option)
  if (toJob || bytes <= asBase64) return bytes
  const legal = `at most ${asBase64}, three quarters of the queue's maxJobBytes (bytes are stored as base64), unless toJob shortens it`
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

/** Returns an option that is a queue with `identity`; otherwise throws. */
export function queueOf<Native>(queue: Queue<Native>): Queue<Native> {
  if (typeof queue !== 'object' || queue === null || !('expectedWaitMs' in queue)) {
    throw invalid({ option: 'queue' }, queue, 'the result of createQueue({ broker, … })')
  }
  if (queue.identifies) return queue
  throw new SluiceError(
    'SLUICE_OPTION_INVALID',
    'queue must know who owns a request: pass the key of your limits to createQueue, as in identity: apiKey({ verify }). ' +
      "With identity: ip(), all users behind one address can read, cancel and repeat each other's jobs",
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

/** Returns whether only soft policies deny the request. */
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

/** @throws SluiceError if no policy has the name */
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

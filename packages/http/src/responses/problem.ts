import { reasonPhrase } from './reason-phrases.ts'

/** The media type of RFC 9457. */
export const problemMediaType = 'application/problem+json'

/** A problem body of RFC 9457, in the order in which its members are written. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** Names of the visible policies whose quota was exceeded. The hyphen is the draft's. */
  readonly 'violated-policies'?: readonly string[]
}

const registry = 'https://iana.org/assignments/http-problem-types'

/**
 * The body of a request over its quota: draft-11 §5 asks IANA to register the type. A refusal by
 * hidden policies alone names no type and no policy.
 * @param status the real status of the response
 */
export function quotaExceeded(violated: readonly string[], status = 429): Problem {
  if (violated.length === 0) return plainProblem(status)
  return {
    type: `${registry}#quota-exceeded`,
    title: 'Quota Exceeded',
    status,
    'violated-policies': violated,
  }
}

/**
 * The body of a request whose client is blocked: for that quota-exceeded would be the wrong word,
 * though a quota may be exceeded too.
 * @param penalties the names of the visible penalties that deny, one at least
 * @param status the real status of the response
 */
export function abnormalUsage(penalties: readonly string[], status: number): Problem {
  return {
    type: `${registry}#abnormal-usage-detected`,
    title: 'Abnormal Usage Detected',
    status,
    'violated-policies': penalties,
  }
}

/**
 * The body for a request that would be within its quota in quiet times (draft-11 §5). It is over
 * the reduced limits of these policies, or was refused before any policy was asked.
 */
export function reducedCapacity(violated: readonly string[]): Problem {
  const problem = {
    type: `${registry}#temporary-reduced-capacity`,
    title: 'Temporary Reduced Capacity',
    status: 503,
  }
  return violated.length === 0 ? problem : { ...problem, 'violated-policies': violated }
}

/** A problem that the status says all about (RFC 9457 §4.2.1). */
export function plainProblem(status: number): Problem {
  return { type: 'about:blank', title: reasonPhrase(status) ?? 'Error', status }
}

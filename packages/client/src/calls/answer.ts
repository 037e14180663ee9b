import { type ParsedPolicy, parseHeaders } from '@sluice/headers'
import type { Call } from './call.ts'
import { type Patience, peekJson, serverNowMs } from './response.ts'

/** Creates the answer to a call that is not sent because the server asks for too long a wait. */
export function heldBack(waitMs: number): Response {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000))
  const problem = {
    type: 'about:blank',
    title: 'Too Many Requests',
    status: 429,
    detail: `Not sent: earlier answers say to wait ${seconds} s, which is longer than this client waits.`,
  }
  return new Response(JSON.stringify(problem), {
    status: 429,
    statusText: 'Too Many Requests',
    headers: { 'Content-Type': 'application/problem+json', 'Retry-After': `${seconds}` },
  })
}

/** Returns whether a refusal concerns more than one request. Then other calls wait too. */
export function isShared(status: number): boolean {
  return status === 403 || status === 429 || status === 503
}

export interface Answer {
  /** Policies in the answer, each with a name. */
  readonly policies: readonly NamedPolicy[]
  /** Wait (ms) from now, if the answer has one. */
  readonly toldMs: number | undefined
  /** True if the wait is a reset, not a Retry-After. */
  readonly isReset: boolean
  /** Names of the policies that refused the request, if the answer has them. */
  readonly violated: readonly string[]
  /** True if the body may say which policies have refused. */
  readonly hasDetails: boolean
  /** True if a policy refused although it is unused: no wait lets the request pass. */
  readonly isTooCostly?: boolean
}

interface NamedPolicy extends ParsedPolicy {
  /** Unique name: with the partition, if the policy has one. */
  readonly name: string
  /** Name without the partition, as problem documents use it. */
  readonly plainName: string
}

/** Parses the rate-limit headers of a response. */
export function readAnswer(response: Response, call: Call): Answer {
  const { headers, status } = response
  const { policies: parsed, retryAfterMs } = parseHeaders(headers, { nowMs: serverNowMs(headers) })
  const policies = isOfCall(response, call) ? parsed.map(named) : []
  const spent = policies.filter(({ remaining }) => remaining === 0)
  const isRefusal = status === 429 || (spent.length > 0 && (status === 503 || isGitHubs(response)))
  const resetMs = isRefusal ? latestReset(spent.length > 0 ? spent : policies) : undefined
  const toldMs = status < 400 ? undefined : (retryAfterMs ?? resetMs)
  const isTold = toldMs !== undefined
  const isProblem = /^application\/problem\+json\b/i.test(headers.get('Content-Type') ?? '')
  return {
    policies,
    toldMs,
    isReset: retryAfterMs === undefined,
    violated: isTold ? spent.map(({ name }) => name) : [],
    hasDetails: isTold && isProblem && (policies.length > 1 || policies.some(isUntouched)),
  }
}

/** Adds the `violated-policies` of a problem document to an answer. The body stays unread. */
export async function withDetails(
  answer: Answer,
  response: Response,
  patience: Patience,
): Promise<Answer> {
  const { 'violated-policies': listed } = await peekJson(response, patience)
  if (!Array.isArray(listed) || listed.length === 0) return answer
  const violating = answer.policies.filter(({ plainName }) => listed.includes(plainName))
  if (answer.isReset && violating.some(isUntouched)) {
    return { ...answer, toldMs: undefined, isTooCostly: true }
  }
  const resetMs = answer.isReset ? latestReset(violating) : undefined
  const toldMs = resetMs ?? answer.toldMs
  return { ...answer, toldMs, violated: violating.map(({ name }) => name) }
}

/** Returns whether a 403 may be a GitHub rate limit. With more than legacy fields it is not. */
function isGitHubs({ status, headers }: Response): boolean {
  return status === 403 && !headers.has('RateLimit') && !headers.has('RateLimit-Remaining')
}

/**
 * Returns whether the limits of an answer concern this call. A cached answer has the limits of
 * other calls (draft-11 §7.3), an answer from another origin that origin's.
 */
function isOfCall({ headers, url }: Response, call: Call): boolean {
  if (Number(headers.get('Age')) > 0) return false
  return !URL.canParse(url) || new URL(url).origin === call.url.origin
}

/** Names a policy. Dialects without names have one policy, named by its limit and window. */
function named(policy: ParsedPolicy): NamedPolicy {
  const { pk, limit, windowMs } = policy
  const plainName = policy.name ?? `${limit}/${windowMs}`
  const name = pk ? `${plainName};pk=:${btoa(String.fromCharCode(...pk))}:` : plainName
  return { ...policy, name, plainName }
}

/** A limit of 0 has nothing left, and its server may raise it at the reset. */
function isUntouched({ limit, remaining }: ParsedPolicy): boolean {
  return Boolean(limit) && remaining === limit
}

function latestReset(policies: readonly ParsedPolicy[]): number | undefined {
  const resets = policies.flatMap(({ resetMs }) => resetMs ?? [])
  return resets.length === 0 ? undefined : Math.max(...resets)
}

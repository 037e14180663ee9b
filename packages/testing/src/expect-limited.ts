import { knownFields, onOneLine } from '@sluice/core'
import { type ParsedPolicy, type ParsedRateLimit, parseHeaders } from '@sluice/headers'
import { type ReadResponse, readResponse } from './read-response.ts'

/** Further expectations of `expectLimited`. */
export interface LimitedExpectations {
  /** Status of the refusal. @default 429 */
  readonly status?: number | undefined
  /** Seconds in `Retry-After`; `'none'` for a refusal that no wait helps. @default 1 or more */
  readonly retryAfter?: number | 'none' | undefined
  /** Name of a policy that denied. @default any */
  readonly policy?: string | undefined
}

/** Further expectations of `expectNotLimited`. */
export interface NotLimitedExpectations {
  /** Status of refusals. @default 429 */
  readonly status?: number | undefined
  /** Name of a policy in the headers. @default the first one */
  readonly policy?: string | undefined
  /** Units that the policy has left. @default any */
  readonly remaining?: number | undefined
}

/**
 * Checks that a response is a complete refusal: status, `Retry-After`, rate-limit headers and body
 * agree. Accepts responses of fetch, Node, supertest, light-my-request, axios and undici.
 * @returns the rate limits in the headers, with `retryAfterMs`
 * @throws an Error that says in words all that was wrong
 * @example
 * const { retryAfterMs } = await expectLimited(await fetch(url), { policy: 'login' })
 */
export async function expectLimited(
  response: unknown,
  expectations: LimitedExpectations = {},
): Promise<ParsedRateLimit> {
  knownFields(expectations, 'expectLimited', ['status', 'retryAfter', 'policy'])
  const read = await readResponse(response, 'expectLimited')
  const { status = 429, retryAfter, policy } = expectations
  const parsed = parseHeaders(Object.fromEntries(read.fields))
  report('a refusal by a rate limit', read, [
    ...wrongStatus(read, status),
    ...wrongRetryAfter(read, retryAfter),
    ...wrongFields(read, parsed),
    ...wrongPolicy(read, parsed, policy),
    ...wrongBody(read),
  ])
  return parsed
}

/**
 * Checks that no rate limit refused a request.
 * @returns the rate limits in the headers
 * @throws an Error that says in words all that was wrong
 * @example
 * await expectNotLimited(await fetch(url), { remaining: 4 })
 */
export async function expectNotLimited(
  response: unknown,
  expectations: NotLimitedExpectations = {},
): Promise<ParsedRateLimit> {
  knownFields(expectations, 'expectNotLimited', ['status', 'policy', 'remaining'])
  const read = await readResponse(response, 'expectNotLimited')
  const { status = 429, policy, remaining } = expectations
  const parsed = parseHeaders(Object.fromEntries(read.fields))
  const denied = violatedPolicies(read)
  const wrong: string[] = []
  if (read.status === status) wrong.push(`status is ${status}: the request was refused`)
  if (denied.length > 0) wrong.push(`the body says that ${quoted(denied)} denied the request`)
  const known = policy === undefined ? parsed.policies[0] : named(parsed, policy)
  if (policy !== undefined && !known) wrong.push(noPolicy(parsed, policy))
  else if (remaining !== undefined && known?.remaining !== remaining) {
    wrong.push(`${leftOf(known)}, not ${remaining}`)
  }
  report('a response to a request that was admitted', read, wrong)
  return parsed
}

function report(what: string, { status, fields, body }: ReadResponse, wrong: string[]): void {
  if (wrong.length === 0) return
  const limits = [...fields].filter(([name]) => /ratelimit|rate-limit|^retry-after$/.test(name))
  const shown = [
    `status ${status}`,
    ...limits.map(([name, value]) => `${name}: ${onOneLine(value)}`),
    body === undefined ? 'a body that was read before, or is a stream' : `body ${shortened(body)}`,
  ]
  const problems = wrong.map((problem) => `\n- ${problem}`).join('')
  throw new Error(`expected ${what}, but:${problems}\nThe response has ${shown.join('; ')}`)
}

function wrongStatus({ status, fields }: ReadResponse, expected: number): string[] {
  if (status === expected) return []
  const why =
    status === 503 && fields.has('retry-after')
      ? `; with failureMode 'closed', 503 means that the store failed`
      : status < 400
        ? ': the request was admitted'
        : ''
  return [`status is ${status}, not ${expected}${why}`]
}

function wrongRetryAfter({ fields }: ReadResponse, expected: number | 'none' | undefined) {
  const value = fields.get('retry-after')
  if (expected === 'none') return value === undefined ? [] : [`Retry-After is ${value}, not absent`]
  if (value === undefined) return ['Retry-After is missing, so the client cannot know its wait']
  if (!/^[1-9]\d*$/.test(value)) {
    return [`Retry-After is '${onOneLine(value)}', not a whole number of seconds ≥ 1`]
  }
  if (expected === undefined || Number(value) === expected) return []
  return [`Retry-After is ${value} s, not ${expected} s`]
}

/** Headers may be missing, but must not contradict each other. */
function wrongFields(read: ReadResponse, { policies, retryAfterMs }: ParsedRateLimit): string[] {
  const wrong: string[] = []
  const field = read.fields.get('ratelimit')
  if (field !== undefined && parseHeaders({ RateLimit: field }).policies.length === 0) {
    wrong.push(`RateLimit cannot be read: '${onOneLine(field)}'`)
  }
  const left = read.fields.get('x-ratelimit-remaining')
  if (left !== undefined && left !== '0') {
    wrong.push(`X-RateLimit-Remaining is '${onOneLine(left)}', not 0: its clients would not wait`)
  }
  const denied = violatedPolicies(read)
  for (const policy of policies.filter(({ name }) => name && denied.includes(name))) {
    const { resetMs } = policy
    if (resetMs === undefined || retryAfterMs === undefined || resetMs <= retryAfterMs) continue
    wrong.push(
      `RateLimit says that ${quoted([policy.name])} resets in ${resetMs / 1000} s, after the ` +
        `${retryAfterMs / 1000} s of Retry-After: the client would come back too early`,
    )
  }
  return wrong
}

function wrongPolicy(read: ReadResponse, parsed: ParsedRateLimit, policy: string | undefined) {
  if (policy === undefined) return []
  const denied = violatedPolicies(read)
  if (denied.includes(policy)) return []
  if (denied.length > 0) return [`${quoted(denied)} denied the request, not ${quoted([policy])}`]
  const known = named(parsed, policy)
  if (!known) return [noPolicy(parsed, policy)]
  return known.remaining ? [`${leftOf(known)}, so it cannot have denied`] : []
}

function wrongBody(read: ReadResponse): string[] {
  if (!isProblem(read) || !read.body) return []
  const problem = parsedBody(read)
  if (!problem) return [`the body is not a JSON object, but its type is application/problem+json`]
  const status = Reflect.get(problem, 'status')
  if (status === read.status) return []
  return [`the body says status ${String(status)}, but the status is ${read.status}`]
}

/** Returns the policies named in a problem body of the draft. */
function violatedPolicies(read: ReadResponse): readonly unknown[] {
  const problem = isProblem(read) ? parsedBody(read) : undefined
  const names: unknown = problem && Reflect.get(problem, 'violated-policies')
  return Array.isArray(names) ? names : []
}

function isProblem({ fields }: ReadResponse): boolean {
  return fields.get('content-type')?.startsWith('application/problem+json') ?? false
}

function parsedBody({ body = '' }: ReadResponse): object | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    // A body that is not JSON is reported.
    return undefined
  }
}

function named({ policies }: ParsedRateLimit, policy: string): ParsedPolicy | undefined {
  return policies.find(({ name }) => name === policy)
}

function noPolicy({ policies }: ParsedRateLimit, policy: string): string {
  const names = policies.flatMap(({ name }) => (name === undefined ? [] : [name]))
  const found = names.length === 0 ? 'no policy' : quoted(names)
  return `the headers name ${found}, not ${quoted([policy])}`
}

function leftOf(policy: ParsedPolicy | undefined): string {
  if (policy?.remaining === undefined) return 'the headers do not say how many units are left'
  const name = policy.name === undefined ? 'the policy' : quoted([policy.name])
  return `${name} has ${policy.remaining} units left`
}

function quoted(names: readonly unknown[]): string {
  return names.map((name) => `'${onOneLine(String(name))}'`).join(', ')
}

function shortened(body: string): string {
  return body === '' ? 'empty' : `'${onOneLine(body.slice(0, 200))}${body.length > 200 ? '…' : ''}'`
}

import { type ParsedPolicy, parseHeaders } from '@sluice/headers'
import type { Call } from './call.ts'
import { serverNowMs } from './server-clock.ts'

export interface Answer {
  /** What is told about each policy, by a name for it. */
  readonly policies: readonly NamedPolicy[]
  /** How long to wait from now, where the answer tells. */
  readonly toldMs: number | undefined
  /** The names of the policies that have refused the request, as far as that is told. */
  readonly violated: readonly string[]
}

type NamedPolicy = ParsedPolicy & { readonly name: string }

/** Larger bodies are no problem documents. */
const maxProblemBytes = 65_536

/** What a response tells about limits. Its body stays unread. */
export async function readAnswer(response: Response, call: Call): Promise<Answer> {
  const { headers, status } = response
  const { policies: parsed, retryAfterMs } = parseHeaders(headers, { nowMs: serverNowMs(headers) })
  const policies = isOfCall(response, call) ? parsed.map(named) : []
  const isRefusal = status === 429 || (isSpent(policies) && (status === 503 || isGitHubs(response)))
  const toldMs =
    status < 400 ? undefined : (retryAfterMs ?? (isRefusal ? resetOf(policies) : undefined))
  if (toldMs === undefined) return { policies, toldMs, violated: [] }
  const listed = policies.length > 1 ? await violatedPolicies(response) : []
  const candidates = policies.filter(({ name, remaining }) =>
    listed.length > 0 ? listed.includes(name) : remaining === 0,
  )
  return { policies, toldMs, violated: candidates.map(({ name }) => name) }
}

/** GitHub refuses with 403, too. Where more than the legacy fields are sent, a 403 says "forbidden" and nothing else. */
function isGitHubs({ status, headers }: Response): boolean {
  return status === 403 && !headers.has('RateLimit') && !headers.has('RateLimit-Remaining')
}

/** A stored answer tells of other calls (draft-11 §7.3), and one after a redirect to another origin of that one's limits. */
function isOfCall({ headers, url }: Response, call: Call): boolean {
  if (Number(headers.get('Age')) > 0) return false
  return url === '' || new URL(url).origin === call.url.origin
}

/** Dialects without names have one policy at a time, told by its size. */
function named(policy: ParsedPolicy): NamedPolicy {
  return { ...policy, name: policy.name ?? `${policy.limit}/${policy.windowMs}` }
}

function isSpent(policies: readonly ParsedPolicy[]): boolean {
  return policies.some(({ remaining }) => remaining === 0)
}

/** The reset of the policies that are spent, or of all of them where none is; the latest of several. */
function resetOf(policies: readonly ParsedPolicy[]): number | undefined {
  const spent = isSpent(policies) ? policies.filter(({ remaining }) => remaining === 0) : policies
  const resets = spent.flatMap(({ resetMs }) => resetMs ?? [])
  return resets.length === 0 ? undefined : Math.max(...resets)
}

/** `violated-policies` of a problem document. */
async function violatedPolicies(response: Response): Promise<string[]> {
  const isProblem = /^application\/problem\+json\b/i.test(
    response.headers.get('Content-Type') ?? '',
  )
  const length = Number(response.headers.get('Content-Length'))
  if (!isProblem || !(length > 0 && length <= maxProblemBytes)) return []
  try {
    const problem: unknown = await response.clone().json()
    if (typeof problem !== 'object' || problem === null) return []
    const names: unknown = Reflect.get(problem, 'violated-policies')
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
  } catch {
    // A body that breaks off or is no JSON tells nothing; the headers have told the wait.
    return []
  }
}

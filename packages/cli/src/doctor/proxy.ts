import { randomInt } from 'node:crypto'
import { type Finding, found } from './finding.ts'
import { reasonOf } from './redis-link.ts'

const check = found('proxy')
/** Number of requests of each kind: each takes a unit of the limit. */
const requests = 3
const timeoutMs = 5_000

/** One API response: remaining units of each limit by name, and whether it was a refusal. */
interface Answer {
  readonly remaining: ReadonlyMap<string, number>
  readonly isDenied: boolean
}

/**
 * Checks whether an API trusts an address that a client makes up. It calls the API a few times as
 * itself, to see which limits decrease, and then with a different X-Forwarded-For each time: the
 * same limits must still decrease.
 */
export async function proxy(api: URL | undefined): Promise<Finding> {
  if (!api) {
    return check.note(
      'not checked: Redis does not know which proxies the API trusts',
      'pass --api with an API URL that is limited by ip: it gets six requests, three with made-up X-Forwarded-For',
    )
  }
  const usual: Answer[] = []
  const madeUp: Answer[] = []
  try {
    for (let i = 0; i < requests; i += 1) usual.push(await answerOf(api, {}))
    for (let i = 0; i < requests; i += 1) {
      madeUp.push(await answerOf(api, { 'X-Forwarded-For': madeUpAddress() }))
    }
  } catch (error) {
    return check.warning(`${api.origin} does not answer: ${reason(error)}`, 'check the address')
  }
  if ([...usual, ...madeUp].some(({ remaining }) => remaining.size === 0)) {
    return check.note(
      `${api.origin}${api.pathname} does not send rate-limit headers with every response, so nothing can be concluded`,
      'use a URL that is limited by ip, with a limit that is not hidden',
    )
  }
  const counted = falling(usual)
  if (counted.length === 0) {
    return check.note(
      `no limit decreases at ${api.origin}${api.pathname} (${listOf(usual)} remaining), so nothing can be concluded`,
      'use a URL whose responses are not cached, with a limit that all processes share and that refills slowly',
    )
  }
  const still = falling(madeUp)
  const evaded = counted.filter((name) => !still.includes(name))
  if (evaded.length === 0) {
    return check.ok(
      `made-up X-Forwarded-For changes nothing at ${api.origin}: ${listOf(madeUp)} remaining`,
    )
  }
  return check.error(
    `${requests} requests to ${api.origin} with made-up X-Forwarded-For were counted as ${requests} clients (${listOf(madeUp, evaded)} remaining): anybody can bypass the limit`,
    `trust only the proxies in front: app.set('trust proxy', 1) in Express instead of true, trustProxy with their addresses in Fastify, app.proxy with app.maxIpsCount in Koa; or have the outermost proxy overwrite the header. If you bypassed the proxy, a count such as 1 is expected to fail here: make the port reachable only for the proxy, or trust its addresses, as in app.set('trust proxy', '10.0.0.0/8')`,
  )
}

/** Returns the limits that decrease with every response; all of them once the API refuses. */
function falling(answers: readonly Answer[]): readonly string[] {
  const names = [...(answers[0]?.remaining.keys() ?? [])]
  if (answers.at(-1)?.isDenied) return names
  return names.filter((name) => {
    const values = answers.map(({ remaining }) => remaining.get(name) ?? Number.NaN)
    return values.slice(1).every((value, index) => value < (values[index] ?? 0))
  })
}

/** Returns the remaining units of the first limit, response by response. */
function listOf(answers: readonly Answer[], names: readonly string[] = falling(answers)): string {
  const values = answers.map(({ remaining }) => {
    const [first = ''] = names.length > 0 ? names : remaining.keys()
    return remaining.get(first) ?? '?'
  })
  return values.join(', ')
}

async function answerOf(api: URL, headers: Record<string, string>): Promise<Answer> {
  const response = await fetch(api, {
    redirect: 'manual',
    headers,
    signal: AbortSignal.timeout(timeoutMs),
  })
  await response.body?.cancel()
  return { remaining: remainingOf(response.headers), isDenied: response.status === 429 }
}

function remainingOf(headers: Headers): ReadonlyMap<string, number> {
  const items = (headers.get('ratelimit') ?? '').matchAll(/("(?:[^"\\]|\\.)*")[^",]*?;\s*r=(\d+)/g)
  const structured = [...items].map(([, name = '', value]) => [name, Number(value)] as const)
  if (structured.length > 0) return new Map(structured)
  const legacy = headers.get('x-ratelimit-remaining') ?? headers.get('ratelimit-remaining') ?? ''
  return new Map(/^\s*\d+\s*$/.test(legacy) ? [['', Number(legacy)]] : [])
}

/** Returns an address from the benchmarking network (RFC 2544), which nobody has. */
function madeUpAddress(): string {
  return `198.${18 + randomInt(2)}.${randomInt(256)}.${1 + randomInt(254)}`
}

function reason(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return reasonOf(cause instanceof Error && cause.message !== '' ? cause : error)
}

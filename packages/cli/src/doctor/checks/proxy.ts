import { randomInt } from 'node:crypto'
import { type Finding, found } from '../finding.ts'
import { reasonOf } from '../redis-link.ts'

const check = 'proxy'
/** Requests that are sent: each takes a unit of the limit. */
const requests = 3
const timeoutMs = 5_000

/**
 * Looks whether an API believes an address that a client makes up. It asks the API a few times,
 * each time with another X-Forwarded-For: what remains of the limit has to fall all the same.
 */
export async function proxy(api: URL | undefined): Promise<Finding> {
  if (!api) {
    return found.note(
      check,
      'not looked at: a Redis does not know which proxies the API trusts',
      'give --api with an address of the API that is limited by ip: three requests with made-up X-Forwarded-For are sent to it',
    )
  }
  const remaining: (number | undefined)[] = []
  try {
    for (let i = 0; i < requests; i += 1) remaining.push(await remainingOf(api))
  } catch (error) {
    return found.warning(
      check,
      `${api.origin} does not answer: ${reason(error)}`,
      'see that the address is right',
    )
  }
  const known = remaining.filter((value) => value !== undefined)
  const [first] = known
  if (first === undefined || known.length < requests) {
    return found.note(
      check,
      `${api.origin}${api.pathname} sends no rate-limit headers with every answer, so that nothing can be told`,
      'give an address whose requests are limited by ip, and whose limit is not hidden',
    )
  }
  const last = known.at(-1) ?? first
  const list = known.join(', ')
  if (last < first || first === 0) {
    return found.ok(
      check,
      `made-up X-Forwarded-For changes nothing at ${api.origin}: ${list} remaining`,
    )
  }
  return found.error(
    check,
    `${requests} requests to ${api.origin} with made-up X-Forwarded-For were counted as ${requests} clients (${list} remaining): anybody evades the limit`,
    `trust the proxies in front and nobody else: app.set('trust proxy', 1) in Express instead of true, trustProxy with their addresses in Fastify, app.proxy with app.maxIpsCount in Koa; or have the outermost proxy overwrite the header`,
  )
}

async function remainingOf(api: URL): Promise<number | undefined> {
  const response = await fetch(api, {
    redirect: 'manual',
    headers: { 'X-Forwarded-For': madeUpAddress() },
    signal: AbortSignal.timeout(timeoutMs),
  })
  await response.body?.cancel()
  const { headers } = response
  const legacy = headers.get('x-ratelimit-remaining') ?? headers.get('ratelimit-remaining')
  const [, structured] = /(?:^|;)\s*r=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? []
  const value = structured ?? legacy?.trim()
  return value === undefined || !/^\d+$/.test(value) ? undefined : Number(value)
}

/** Returns an address of the network for tests of networks (RFC 2544), which nobody has. */
function madeUpAddress(): string {
  return `198.${18 + randomInt(2)}.${randomInt(256)}.${1 + randomInt(254)}`
}

function reason(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return reasonOf(cause instanceof Error && cause.message !== '' ? cause : error)
}

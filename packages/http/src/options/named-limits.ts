import { type Policy, processWide, versionBeingMade, warnOnce } from '@sluice/core'

interface NamedLimit {
  readonly limit: number
  readonly place: string
}

/** Limits by policy name, from code and from each version of a policy file. */
const inCode = processWide('@sluice/http/named-limits/1', () => new Map<string, NamedLimit>())
const inVersions = new WeakMap<object, Map<string, NamedLimit>>()

const maxNames = 1_000

/**
 * Warns about a name that has another limit elsewhere. On a shared store both use one count; if
 * each limiter has its own memory store, as in development, nobody notices. One place in the code
 * may create limiters with several limits: in tests, or for tenants with their own stores.
 */
export function noteNamedLimit({ name, limit }: Policy, where: string): void {
  const version = versionBeingMade()
  const known = version ? (inVersions.get(version) ?? new Map<string, NamedLimit>()) : inCode
  if (version) inVersions.set(version, known)
  const site = callSite()
  const place = site === undefined ? where : `${where} (${site})`
  const first = known.get(name)
  if (first === undefined) {
    if (known.size < maxNames) known.set(name, { limit, place })
    return
  }
  if (first.limit === limit || first.place === place) return
  warnOnce(
    `the policy name '${name}' has two limits, ${first.limit} in ${first.place} and ${limit} in ${place}, but a name is one quota: on a shared ` +
      `store, such as Redis, requests to one place use up the quota of the other. Use two names, or omit name`,
    'name with two limits',
  )
}

/** Returns the line that called Sluice, such as `/srv/app.js:12:9`; `undefined` if unavailable. */
function callSite(): string | undefined {
  const before: unknown = Reflect.get(Error, 'stackTraceLimit')
  Reflect.set(Error, 'stackTraceLimit', 50)
  const { stack = '' } = new Error('call site')
  Reflect.set(Error, 'stackTraceLimit', before)
  const [own = '', ...callers] = stack.match(/[^\s(@]+:\d+:\d+(?=\)?$)/gm) ?? []
  const packages = /^.*[\\/](?=http[\\/](?:src|dist)[\\/])/.exec(own)?.[0]
  if (packages === undefined) return undefined
  return callers.find((each) => !each.startsWith(packages) && !/node_modules|^node:/.test(each))
}

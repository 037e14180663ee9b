import { givenFields, invalid, isOptions, isPromise, noteRelease, SluiceError } from '@sluice/core'
import { shorthandFields } from '../options/bound-policy.ts'
import type { LiveGuardFields, NamedCode, PolicyVersion } from '../options/live-policies.ts'
import type { GuardFields } from '../options/options.ts'
import { laxRouting } from '../routes/router.ts'
import type { PolicyGuard } from '../stages/stages.ts'
import { createFixedGuard, type Guard, type GuardPlace } from './guard.ts'

/**
 * Creates a guard, with fixed policies or with policies that change while the application runs.
 * @param given the guard's name for messages (default 'rateLimit'), how the framework matches paths
 * (default `laxRouting`), and the names of the adapter's own options
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createGuard<Native extends object, Handler = never>(
  options: GuardFields<Native, Handler> | LiveGuardFields<Native, Handler>,
  given: Partial<GuardPlace> = {},
): Guard<Native, Handler> {
  noteRelease('@sluice/http')
  const place: GuardPlace = { where: 'rateLimit', routing: laxRouting, ...given }
  if (!isOptions(options)) {
    throw invalid({ option: place.where }, options, 'a plain object of options')
  }
  const own = { ...options }
  for (const field of place.adapterFields ?? []) Reflect.deleteProperty(own, field)
  return isLive(own) ? createLiveGuard(own, place) : createFixedGuard(own, place)
}

function isLive<Native, Handler>(
  options: GuardFields<Native, Handler> | LiveGuardFields<Native, Handler>,
): options is LiveGuardFields<Native, Handler> {
  const { policies } = options
  if (isPromise(policies)) {
    throw refused('policies is a promise; write policies: await openPolicies({ … })')
  }
  return typeof policies === 'object' && policies !== null && 'attach' in policies
}

function refused(message: string): SluiceError {
  return new SluiceError('SLUICE_OPTION_INVALID', message)
}

interface InForce<Native extends object, Handler> {
  readonly version: PolicyVersion
  readonly guard: Guard<Native, Handler>
  /** The further guards that adapters requested, in that order. */
  readonly places: PolicyGuard<Native, Handler>[]
}

type Place<Native extends object, Handler> = (
  guard: Guard<Native, Handler>,
) => PolicyGuard<Native, Handler>

/**
 * A guard whose policies may change between requests. A request uses the guard of one version until
 * it is over.
 * @throws SluiceError if an option is given next to `policies` that belongs in the policy file
 */
function createLiveGuard<Native extends object, Handler>(
  { policies, keys, values, ...own }: LiveGuardFields<Native, Handler>,
  place: GuardPlace,
): Guard<Native, Handler> {
  for (const [field] of givenFields(own, beside)) {
    throw refused(
      `${field} cannot be set next to policies that change while the application runs; move it into the policy file`,
    )
  }
  const code: NamedCode<Native> = { ...(keys && { keys }), ...(values && { values }) }
  const asked: Place<Native, Handler>[] = []
  const ofRoutes = new Map<unknown, PolicyGuard<Native, Handler>>()
  let made: InForce<Native, Handler> | undefined

  policies.attach({
    code,
    get limiter() {
      return current().guard.limiter
    },
    prepare(version) {
      const next = build(version)
      return () => {
        made = next
      }
    },
  })

  function build(version: PolicyVersion): InForce<Native, Handler> {
    const fields = version.optionsFor<Native, Handler>(code)
    for (const [field] of givenFields(own, Object.keys(fields))) {
      throw refused(`${field} is set in the policy file and in code; remove one of them`)
    }
    const guard = createFixedGuard({ ...own, ...fields }, place)
    return { version, guard, places: asked.map((each) => each(guard)) }
  }

  function current(): InForce<Native, Handler> {
    if (made) return made
    throw refused('policies did not apply any version')
  }

  /** A guard that is replaced in each version. */
  function following(
    guardIn: (now: InForce<Native, Handler>) => PolicyGuard<Native, Handler>,
  ): PolicyGuard<Native, Handler> {
    const guardNow = () => {
      const now = current()
      return now.version.kill === 'off' ? now.guard.ofRoute(false, '') : guardIn(now)
    }
    return {
      get hidesOnRedirect() {
        return guardIn(current()).hidesOnRedirect
      },
      check: (context) => guardNow().check(context),
      peek: (asking) => guardNow().peek(asking),
    }
  }

  /** Created again for each version: a version that lacks a name in use is rejected as a whole. */
  function add(each: Place<Native, Handler>): PolicyGuard<Native, Handler> {
    const { version, guard, places } = current()
    const first = version.collect(() => each(guard))
    const number = asked.push(each) - 1
    places[number] = first
    return following((now) => now.places[number] ?? first)
  }

  return {
    ...following(({ guard }) => guard),
    // Always the one of the current version.
    limiter: new Proxy(current().guard.limiter, {
      get: (_first, field) => Reflect.get(current().guard.limiter, field),
    }),
    // Adapters read this once, and a later version may have `hideOnRedirect`.
    hidesOnRedirect: true,
    get waiting() {
      return current().guard.waiting
    },
    pass: (context) => current().guard.pass(context),
    ofRoute(override, where) {
      const known = ofRoutes.get(override) ?? add((guard) => guard.ofRoute(override, where))
      ofRoutes.set(override, known)
      return known
    },
    derive: (override, where) => add((guard) => guard.derive(override, where)),
  }
}

/** Options that belong in live policies. */
const beside: readonly string[] = [
  ...shorthandFields.filter((field) => field !== 'failureMode'),
  'routes',
  'profiles',
]

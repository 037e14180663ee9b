import { givenFields, invalid, isOptions, isPromise, noteRelease, SluiceError } from '@sluice/core'
import { shorthandFields } from '../options/bound-policy.ts'
import type { LiveGuardFields, NamedCode, PolicyVersion } from '../options/live-policies.ts'
import type { GuardFields } from '../options/options.ts'
import type { PolicyGuard } from '../stages/stages.ts'
import { createFixedGuard, type Guard, type GuardPlace } from './guard.ts'

/**
 * Makes a guard, of policies that stay as they are or of those that change while the application
 * runs.
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createGuard<Native extends object, Handler = never>(
  options: GuardFields<Native, Handler> | LiveGuardFields<Native, Handler>,
  place: GuardPlace,
): Guard<Native, Handler> {
  noteRelease('@sluice/http')
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
  /** The guards that adapters asked for beside it, in the order of asking. */
  readonly places: PolicyGuard<Native, Handler>[]
}

type Place<Native extends object, Handler> = (
  guard: Guard<Native, Handler>,
) => PolicyGuard<Native, Handler>

/**
 * A guard whose policies change between two requests. A request takes the guard of one version, and
 * keeps it until it is over.
 * @throws SluiceError when an option stands beside `policies` that belongs into them
 */
function createLiveGuard<Native extends object, Handler>(
  { policies, keys, values, ...own }: LiveGuardFields<Native, Handler>,
  place: GuardPlace,
): Guard<Native, Handler> {
  for (const [field] of givenFields(own, beside)) {
    throw refused(
      `${field} stands beside policies that change while the application runs; move it into their file`,
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
      throw refused(
        `${field} stands in the policy file, and in code beside policies; leave it out of one of them`,
      )
    }
    const guard = createFixedGuard({ ...own, ...fields }, place)
    return { version, guard, places: asked.map((each) => each(guard)) }
  }

  function current(): InForce<Native, Handler> {
    if (made) return made
    throw refused('policies did not put a version in force')
  }

  /** A guard that is another one in each version. */
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

  /** Made anew for each version: one that lacks a name which a place uses is refused as a whole. */
  function add(each: Place<Native, Handler>): PolicyGuard<Native, Handler> {
    const { version, guard, places } = current()
    const first = version.collect(() => each(guard))
    const number = asked.push(each) - 1
    places[number] = first
    return following((now) => now.places[number] ?? first)
  }

  return {
    ...following(({ guard }) => guard),
    // Always that of the version in force.
    limiter: new Proxy(current().guard.limiter, {
      get: (_first, field) => Reflect.get(current().guard.limiter, field),
    }),
    // Adapters ask once, and a later version may have `hideOnRedirect`.
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

/** Options that belong into live policies. */
const beside: readonly string[] = [
  ...shorthandFields.filter((field) => field !== 'failureMode'),
  'routes',
  'profiles',
]

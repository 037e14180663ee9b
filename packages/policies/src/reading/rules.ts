import { isSluiceError, memoryStore, quote, Registrations } from '@sluice/core'
import { createGuard, laxRouting } from '@sluice/http/adapter'
import { bindPolicies } from '../bind/bind.ts'
import { type Fault, hasIdentities, optionOf, type Path } from '../file/explain.ts'
import { placedPolicies } from '../file/named-policies.ts'
import type { PolicyFile } from '../file/policy-file.ts'

/**
 * Finds violations that a schema cannot express: rules between fields. Except for names and
 * overrides, they are the checks of options in code, since a guard is created from the file.
 */
export function ruleFaults(file: PolicyFile): readonly Fault[] {
  const found = [...nameFaults(file), ...overrideFaults(file)]
  return found.length > 0 ? found : guardFaults(file)
}

/** Maximum number of names in one message. */
const maxNames = 20

function fault(path: Path, message: string): Fault {
  return { path, message, atKey: false, kind: 'rule' }
}

/** One name is one quota: a second definition would be another quota. */
function nameFaults(file: PolicyFile): readonly Fault[] {
  const first = new Map<string, Path>()
  return placedPolicies(file).flatMap(({ policy: { name }, path }) => {
    const known = first.get(name)
    if (!known) {
      first.set(name, path)
      return []
    }
    const message = `${optionOf(path)} has the same name as ${optionOf(known)}, ${quote(name)}: rename it, or write only the name if both are the same quota`
    return [fault([...path, 'name'], message)]
  })
}

function overrideFaults(file: PolicyFile): readonly Fault[] {
  const names = new Set(placedPolicies(file).map(({ policy }) => policy.name))
  const listed = [...names].slice(0, maxNames).join(', ')
  const known = names.size === 0 ? 'there are none' : `there are ${listed}`
  return (file.overrides ?? []).flatMap(({ policy, until, limit, mode }, index) => {
    const place = `overrides[${index}]`
    const faults: Fault[] = []
    const add = (field: string, message: string) =>
      faults.push(fault(['overrides', index, field], `${place}.${field} must be ${message}`))
    if (!names.has(policy))
      add('policy', `the name of a policy (${known}), but is ${quote(policy)}`)
    if (until !== undefined && Number.isNaN(Date.parse(until))) {
      add('until', `an existing day and time, but is ${quote(until)}`)
    }
    if (limit === undefined && mode === undefined) {
      const message = `${place} changes nothing: set limit, mode or both`
      faults.push(fault(['overrides', index], message))
    }
    return faults
  })
}

/** Creates a guard from the file, with stand-ins for all code, and returns its faults. */
function guardFaults(file: PolicyFile): readonly Fault[] {
  if (!file.policies && !file.routes && !file.penalty) {
    const example = '[{ name: burst, limit: 20, window: 1s }]'
    return [fault([], `no policy: add policies, as in policies: ${example}`)]
  }
  const registrations = new Registrations()
  try {
    registrations.collect(() => {
      const options = bindPolicies<object, never>(file, standIns())
      const store = memoryStore()
      createGuard<object, never>({ ...options, store }, { where: 'the file', routing: laxRouting })
    })
    return []
  } catch (error) {
    if (!isSluiceError(error)) throw error
    const path = placeOf(error.message, file)
    const [withoutValue = ''] = error.message.split(', but is ')
    return [fault(path, hasIdentities(path) ? withoutValue : error.message)]
  } finally {
    registrations.end()
  }
}

/** Keys and functions for all names that a file may use. */
function standIns() {
  const anyOf = <T>(make: (name: string) => T): Readonly<Record<string, T>> =>
    new Proxy(
      {},
      {
        get: (_, name) => make(String(name)),
        getOwnPropertyDescriptor: (_, name) =>
          ['ip', 'route'].includes(String(name)) ? undefined : { configurable: true },
      },
    )
  return { keys: anyOf((name) => () => name), values: anyOf(() => () => undefined) }
}

/**
 * Returns the place that a message is about: messages begin with the option, or name the policy.
 */
function placeOf(message: string, file: PolicyFile): Path {
  const path: (string | number)[] = []
  let rest = message
  const route = /^routes\['(.+?)'\]:? ?/.exec(rest) ?? /^routes: '(.+?)' /.exec(rest)
  if (route?.[1] !== undefined) {
    path.push('routes', route[1])
    rest = rest.slice(route[0].length)
  }
  const steps = /^(?:[A-Za-z]\w*)(?:\.\w+|\[\d+\]|\['[^']+'\])*/.exec(rest)?.[0] ?? ''
  const found = steps.match(/\w+/g)?.map((step) => (/^\d+$/.test(step) ? Number(step) : step)) ?? []
  const full = [...path, ...found]
  const holder = full
    .slice(0, -1)
    .reduce<unknown>((value, step) => Reflect.get(Object(value), step), file)
  if (Object.hasOwn(file, String(full[0])) && typeof holder === 'object') return full
  const named = placedPolicies(file).find(({ policy }) => message.includes(`'${policy.name}'`))
  return named?.path ?? path
}

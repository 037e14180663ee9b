import { SluiceError } from '@sluice/core'
import { all, firstOf, ip, type KeyResolver, type NamedCode, route } from '@sluice/http'
import type { KeyEntry } from '../file/policy-file.ts'

/** Looks up the names of a version in the code's `keys`: one resolver per name. */
export class NamedParts<Native> {
  readonly #code: NamedCode<Native>
  readonly #made = new Map<string, KeyResolver<Native>>()

  constructor(code: NamedCode<Native>) {
    this.#code = code
  }

  /** @throws SluiceError if the code defines no key with a name */
  key(entry: KeyEntry): KeyResolver<Native> {
    const id = JSON.stringify(entry)
    const known = this.#made.get(id) ?? this.#resolver(entry)
    this.#made.set(id, known)
    return known
  }

  /** @throws SluiceError if the code defines no value with a name */
  value(name: string): NonNullable<NamedCode<Native>['values']>[string] {
    const { values = {} } = this.#code
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (typeof value === 'function' || (typeof value === 'object' && value !== null)) return value
    throw unknownName(name, 'values', Object.keys(values), `(req) => …`)
  }

  /** @throws SluiceError if the code defines no function with a name */
  // biome-ignore lint/suspicious/noExplicitAny: what it yields is checked where it is used
  function(name: string): (native: Native, ...rest: any[]) => any {
    const value = this.value(name)
    if (typeof value === 'function') return value
    throw new SluiceError(
      'SLUICE_POLICY_UNKNOWN',
      `values.${name} is a self-adjusting limit, but the policies use it as a function`,
    )
  }

  #resolver(entry: KeyEntry): KeyResolver<Native> {
    if (typeof entry !== 'string') {
      return 'all' in entry
        ? all(...entry.all.map((name) => this.key(name)))
        : firstOf(...entry.firstOf.map((name) => this.key(name)))
    }
    const { keys = {} } = this.#code
    const given = Object.hasOwn(keys, entry) ? keys[entry] : undefined
    if (given) return given
    if (entry === 'ip') return ip()
    if (entry === 'route') return route()
    const known = [...new Set(['ip', 'route', ...Object.keys(keys)])]
    throw unknownName(entry, 'keys', known, `user((req) => …)`)
  }
}

function unknownName(
  name: string,
  option: 'keys' | 'values',
  known: readonly string[],
  example: string,
): SluiceError {
  const there = known.length === 0 ? 'there are none' : `there are ${known.join(', ')}`
  return new SluiceError(
    'SLUICE_POLICY_UNKNOWN',
    `the policies name ${option === 'keys' ? 'a key' : 'a value'} '${name}', which the code does not define: ${there}; ` +
      `add it, as in ${option}: { ${name}: ${example} }`,
  )
}

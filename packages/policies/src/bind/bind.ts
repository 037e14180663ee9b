import { andThen, isOptions } from '@sluice/core'
import {
  type GuardFields,
  type LimitSource,
  type LimitValue,
  type NamedCode,
  schedule,
  tiers,
} from '@sluice/http'
import { mapped, withPolicies } from '../file/named-policies.ts'
import type {
  KeyEntry,
  LimitEntry,
  PolicyEntry,
  PolicyFile,
  ScheduleEntry,
} from '../file/policy-file.ts'
import { withoutRemoved } from '../file/removed-fields.ts'
import { NamedParts } from './keys.ts'
import { limitValue, type Override, overridden, readOverrides } from './overrides.ts'

/**
 * Turns policies from data into the options of a guard.
 * @param code the keys and values that policies refer to by name
 * @throws SluiceError if a name is unknown
 */
export function bindPolicies<Native, Handler>(
  file: PolicyFile,
  code: NamedCode<Native>,
): GuardFields<Native, Handler> {
  const parts = new NamedParts(code)
  const { $schema: _schema, overrides = [], ...rest } = withoutRemoved(file)
  const ordered = readOverrides(overrides, parts)
  const policy = (entry: PolicyEntry) => bindPolicy(entry, ordered, parts)
  const { profiles, routes, ...settings } = withPolicies(rest, policy)
  const bound = {
    ...bindSettings(settings, parts),
    ...(profiles && { profiles }),
    ...(routes && {
      routes: mapped(routes, (route) =>
        typeof route === 'object' ? bindSettings(route, parts) : route,
      ),
    }),
  }
  return bound as unknown as GuardFields<Native, Handler>
}

/** Replaces the names in a policy with code. */
function bindPolicy<Native>(
  { limit, ...entry }: PolicyEntry,
  overrides: readonly Override<Native>[],
  parts: NamedParts<Native>,
): PolicyEntry {
  const own = overrides.filter(({ policy }) => policy === entry.name)
  const base = bindLimit(limit, parts)
  const source =
    typeof base === 'object' ? base : limitSource(base, () => ({ value: base, reduced: false }))
  const bound = own.length > 0 ? overridden(source, own) : base
  return { ...bindSettings(entry, parts), limit: bound } as unknown as PolicyEntry
}

/** Returns the fields that refer to code, with the code itself. */
function bindSettings<Native>(
  settings: Readonly<Record<string, unknown>>,
  parts: NamedParts<Native>,
): object {
  return mapped(settings, (value, field) => {
    const isKey = field === 'key' || (field === 'idempotencyKey' && typeof value !== 'boolean')
    if (isKey) return parts.key(value as KeyEntry)
    if (field === 'message' || !isOptions(value)) return value
    if ('by' in value) return parts.function(String(value.by))
    // Among the object fields, only a penalty has a key.
    return 'key' in value ? { ...value, key: parts.key(value.key as KeyEntry) } : value
  })
}

function bindLimit<Native>(
  limit: LimitEntry,
  parts: NamedParts<Native>,
): LimitValue | LimitSource<Native> {
  if (typeof limit !== 'object') return limitValue(limit)
  if ('tiers' in limit) {
    const table = { ...limit.tiers, default: limit.default }
    return tiers<Native>(
      mapped(table, (entry) => (typeof entry === 'object' ? scheduled(entry) : limitValue(entry))),
      parts.function(limit.by),
    )
  }
  if ('schedule' in limit) return scheduled(limit)
  const found = parts.value(limit.by)
  if (typeof found !== 'function') return found
  return limitSource(limit.default, (native) =>
    andThen(found(native), (value) => ({ value: value as LimitValue, reduced: false })),
  )
}

function scheduled({ schedule: options }: ScheduleEntry): LimitSource {
  return schedule({
    ...options,
    default: limitValue(options.default),
    rules: options.rules.map((rule) => ({ ...rule, limit: limitValue(rule.limit) })),
  })
}

function limitSource<Native>(
  declared: LimitValue,
  find: LimitSource<Native>['find'],
): LimitSource<Native> {
  return { kind: 'limit', declared, largest: typeof declared === 'number' ? declared : 0, find }
}

import type { Difference, Override } from '../api/types.ts'
import { endText, plain } from './format.ts'
import { limitText } from './policy-values.ts'

/** The kill switch in words: mode, name and effect. */
export const killModes = [
  ['none', 'Enforce', 'Every policy refuses requests over its limit.'],
  ['shadow', 'Count only', 'All policies are counted and reported, but refuse nothing.'],
  ['off', 'Let everything pass', 'Every request passes, uncounted.'],
] as const

/** Describes a difference briefly: `search limit 30 → 15`. */
export function changeWords({ path, from, to }: Difference): readonly string[] {
  const [, policy, field] = /^policies\.(.+?)(?:\.(\w+))?$/.exec(path) ?? []
  if (path === 'kill') return [`kill switch: ${killText(from)} → ${killText(to)}`]
  if (path === 'overrides') return overrideWords(overridesIn(from), overridesIn(to))
  if (policy === undefined) return [`${path} ${from === undefined ? 'is new' : 'changed'}`]
  if (field === undefined) return [`${policy} ${from === undefined ? 'is new' : 'is gone'}`]
  return [`${policy} ${field} ${valueText(field, from)} → ${valueText(field, to)}`]
}

function valueText(field: string, value: unknown): string {
  return field === 'limit' ? limitText(value) : plain(value)
}

function killText(kill: unknown): string {
  return killModes.find(([mode]) => mode === (kill ?? 'none'))?.[1] ?? String(kill)
}

type Own = Pick<Override, 'policy' | 'key' | 'limit' | 'mode' | 'until'>

function overridesIn(list: unknown): readonly Own[] {
  return Array.isArray(list) ? list : []
}

function overrideWords(from: readonly Own[], to: readonly Own[]): readonly string[] {
  const idOf = ({ policy, key }: Own): string => JSON.stringify([policy, key])
  const before = new Map(from.map((each) => [idOf(each), each]))
  const after = new Map(to.map((each) => [idOf(each), each]))
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((id) => {
    const [one, other] = [before.get(id), after.get(id)]
    const each = other ?? one
    if (!each || JSON.stringify(one) === JSON.stringify(other)) return []
    const text = (own: Own | undefined) => (own ? plain(own.limit ?? own.mode) : 'usual limit')
    const end = other?.until ? ` until ${endText(Date.parse(other.until))}` : ''
    return [`${nameOf(each.key)}: ${each.policy} ${text(one)} → ${text(other)}${end}`]
  })
}

/** Formats an identity: `tenant acme, user ada`. */
export function nameOf(key: Own['key']): string {
  const parts = Object.entries(key).map(([name, value]) => `${name} ${value}`)
  return parts.join(', ')
}

import { createHash } from 'node:crypto'
import { Registrations } from '@sluice/core'
import type { GuardFields, NamedCode, PolicyVersion } from '@sluice/http'
import { bindPolicies } from '../bind/bind.ts'
import { placedPolicies } from '../file/named-policies.ts'
import type { KeyEntry, PolicyEntry, PolicyFile } from '../file/policy-file.ts'
import type { Kill } from './layer.ts'

/** Eight digits of a content hash tell files apart. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12)
}

/** One set of policies in force, with the registrations that it has made. */
export class Version implements PolicyVersion {
  readonly id: string
  readonly kill: Kill
  readonly file: PolicyFile
  readonly registrations: Registrations

  constructor(id: string, file: PolicyFile, kill: Kill) {
    this.id = id
    this.kill = kill
    this.file = file
    const suffixes = new Map(
      placedPolicies(file).map(({ policy }) => [policy.name, countOf(policy, file.key)]),
    )
    this.registrations = new Registrations({ id, suffixes, isShadow: kill === 'shadow' })
  }

  optionsFor<Native, Handler>(code: NamedCode<Native>): GuardFields<Native, Handler> {
    const file = this.kill === 'shadow' ? inShadow(this.file) : this.file
    return bindPolicies(file, code)
  }

  collect<T>(make: () => T): T {
    return this.registrations.collect(make)
  }
}

/** Fields that make a new count of a policy when they change. */
export const countFields = ['algorithm', 'window', 'resolution', 'align', 'lease', 'key'] as const

/** Returns the text that tells the counts of a policy from those of its other forms. */
function countOf(policy: PolicyEntry, otherKey: KeyEntry | undefined): string {
  const key = policy.key ?? otherKey ?? ''
  return contentHash(
    countFields.map((field) => (field === 'key' ? key : (policy[field] ?? ''))),
  ).slice(0, 8)
}

/**
 * Takes the modes off overrides: none may enforce what the kill switch has put into shadow. The
 * registrations do the rest.
 */
function inShadow({ overrides, ...rest }: PolicyFile): PolicyFile {
  if (!overrides) return rest
  return { ...rest, overrides: overrides.map(({ mode: _mode, ...override }) => override) }
}

import { createHash } from 'node:crypto'
import { errorText, joined, notify, Registrations, warn } from '@sluice/core'
import type { GuardFields, LiveGuard, NamedCode, PolicyVersion } from '@sluice/http'
import { bindPolicies } from '../bind/bind.ts'
import { placedPolicies } from '../file/named-policies.ts'
import type { KeyEntry, PolicyEntry, PolicyFile } from '../file/policy-file.ts'
import type { Kill } from './layer.ts'

/** The digits of a content hash that tell files apart. */
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
    this.registrations = new Registrations({ id, suffixes, kill })
  }

  optionsFor<Native, Handler>(code: NamedCode<Native>): GuardFields<Native, Handler> {
    if (this.kill !== 'shadow' || !this.file.overrides) return bindPolicies(this.file, code)
    // No override may enforce what the kill switch has put into shadow.
    const overrides = this.file.overrides.map(({ mode: _mode, ...override }) => override)
    return bindPolicies({ ...this.file, overrides }, code)
  }

  collect<T>(make: () => T): T {
    return this.registrations.collect(make)
  }
}

/** Fields that make a new count of a policy when they change. */
export const countFields = ['algorithm', 'window', 'resolution', 'align', 'lease', 'key'] as const

/** Returns the text that tells the counts of a policy from those of its other forms. */
function countOf(policy: PolicyEntry, otherKey: KeyEntry | undefined): string {
  const fields: Readonly<Record<string, unknown>> = { ...policy, key: policy.key ?? otherKey }
  return contentHash(countFields.map((field) => fields[field] ?? '')).slice(0, 8)
}

/** A version that a process could not build. */
export interface Refused {
  /** The version; for a file that could not be read, its name. */
  readonly version: string
  readonly message: string
}

/** An observer of the versions of a process. If it throws, that is one warning. */
export interface VersionObservers {
  /**
   * Called for a version that this process could not build. The old one stays in force. Without it
   * each problem is a warning.
   */
  onRefused?(refused: Refused): void
  /** Called for each version that comes in force in this process. */
  onVersion?(version: string): void
}

/** The version in force, and the guards that change with it. */
export class VersionSwitch {
  readonly #observers: readonly VersionObservers[]
  readonly guards: LiveGuard[] = []
  #now = new Version('', {}, 'none')
  #refused: Refused | undefined
  /** The problems that were warned of since the newest file and changes were last in force. */
  readonly #warned = new Set<string>()

  constructor(observers: readonly VersionObservers[]) {
    this.#observers = observers
  }

  get now(): Version {
    return this.#now
  }

  /** The newest version, where this process could not build it. */
  get refused(): Refused | undefined {
    return this.#refused
  }

  attach(guard: LiveGuard): void {
    this.#now.collect(() => guard.prepare(this.#now))()
    this.guards.push(guard)
  }

  /** Puts a version in force, if all guards can be made of it. @returns whether they could */
  put(version: Version): boolean {
    let apply: readonly (() => void)[]
    try {
      apply = this.#build(version, 'keep')
    } catch (error) {
      this.refuse(version.id, errorText(error))
      return false
    }
    for (const each of apply) each()
    this.#now = version
    notify(joined(this.#observers.map((each) => each.onVersion?.bind(each))), version.id)
    return true
  }

  /** Forgets what was refused: the newest file and the newest changes are in force. */
  accept(): void {
    this.#refused = undefined
    this.#warned.clear()
  }

  /** @throws SluiceError if a guard cannot be made of a version */
  check(version: Version): void {
    this.#build(version, 'discard')
  }

  /** @param message names the places that are wrong, and no value: all who may read see it */
  refuse(version: string, message: string): void {
    if (this.#refused?.version === version && this.#refused.message === message) return
    this.#refused = { version, message }
    const onRefused = joined(this.#observers.map((each) => each.onRefused?.bind(each)))
    if (onRefused) notify(onRefused, this.#refused)
    else if (!this.#warned.has(message)) {
      this.#warned.add(message)
      warn(`the policies ${version} were refused, and ${this.#now.id} stays in force: ${message}`)
    }
  }

  /** Makes the guards of a version, all or none. The version before gives its names free for it. */
  #build(version: Version, then: 'keep' | 'discard'): readonly (() => void)[] {
    const before = this.#now.registrations
    before.end()
    let isKept = false
    try {
      const apply = version.collect(() => this.guards.map((guard) => guard.prepare(version)))
      isKept = then === 'keep'
      return apply
    } finally {
      if (!isKept) {
        version.registrations.end()
        before.resume()
      }
    }
  }
}

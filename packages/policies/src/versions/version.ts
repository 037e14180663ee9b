import { createHash } from 'node:crypto'
import { errorText, joined, notify, Registrations, warn } from '@sluice/core'
import type { GuardFields, LiveGuard, NamedCode, PolicyVersion } from '@sluice/http'
import { bindPolicies } from '../bind/bind.ts'
import { placedPolicies } from '../file/named-policies.ts'
import type { KeyEntry, PolicyEntry, PolicyFile } from '../file/policy-file.ts'
import type { Kill } from './layer.ts'

/** Number of hash digits that identify a file. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12)
}

/** One set of applied policies, with its registrations. */
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
    // No override may enforce a policy that the kill switch has put into shadow mode.
    const overrides = this.file.overrides.map(({ mode: _mode, ...override }) => override)
    return bindPolicies({ ...this.file, overrides }, code)
  }

  collect<T>(make: () => T): T {
    return this.registrations.collect(make)
  }
}

/** Fields whose change starts a new count of a policy. */
export const countFields = ['algorithm', 'window', 'resolution', 'align', 'lease', 'key'] as const

/** Returns a string that distinguishes a policy's counts from those of its other forms. */
function countOf(policy: PolicyEntry, otherKey: KeyEntry | undefined): string {
  const fields: Readonly<Record<string, unknown>> = { ...policy, key: policy.key ?? otherKey }
  return contentHash(countFields.map((field) => fields[field] ?? '')).slice(0, 8)
}

/** A version that a process could not apply. */
export interface Refused {
  /** The version; for an unreadable file, its name. */
  readonly version: string
  readonly message: string
}

/** An observer of the versions of a process. An error in it is reported once as a warning. */
export interface VersionObservers {
  /**
   * Called for a version that this process could not apply; the old one stays. Without it, each
   * problem is a warning.
   */
  onRefused?(refused: Refused): void
  /** Called for each version that this process applies. */
  onVersion?(version: string): void
}

/** The current version, and the guards that change with it. */
export class VersionSwitch {
  readonly #observers: readonly VersionObservers[]
  readonly guards: LiveGuard[] = []
  #now = new Version('', {}, 'none')
  #refused: Refused | undefined
  /** Problems warned about since the newest file and changes last applied. */
  readonly #warned = new Set<string>()

  constructor(observers: readonly VersionObservers[]) {
    this.#observers = observers
  }

  get now(): Version {
    return this.#now
  }

  /** The newest version, if this process could not apply it. */
  get refused(): Refused | undefined {
    return this.#refused
  }

  attach(guard: LiveGuard): void {
    this.#now.collect(() => guard.prepare(this.#now))()
    this.guards.push(guard)
  }

  /** Applies a version, if all guards can be created from it. @returns whether they could */
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

  /** Clears the refused version: the newest file and the newest changes apply. */
  accept(): void {
    this.#refused = undefined
    this.#warned.clear()
  }

  /** @throws SluiceError if a guard cannot be created from a version */
  check(version: Version): void {
    this.#build(version, 'discard')
  }

  /** @param message names the wrong places, without values: every reader of the API sees it */
  refuse(version: string, message: string): void {
    if (this.#refused?.version === version && this.#refused.message === message) return
    this.#refused = { version, message }
    const onRefused = joined(this.#observers.map((each) => each.onRefused?.bind(each)))
    if (onRefused) notify(onRefused, this.#refused)
    else if (!this.#warned.has(message)) {
      this.#warned.add(message)
      warn(`the policies ${version} were refused, and ${this.#now.id} still applies: ${message}`)
    }
  }

  /**
   * Creates the guards of a version, all or none. The previous version releases its names for it.
   */
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

import { errorText, warn } from '@sluice/core'
import type { LiveGuard } from '@sluice/http'
import { Version } from './version.ts'

/** A version that a process could not build. */
export interface Refused {
  /** The version; for a file that could not be read, its name. */
  readonly version: string
  readonly message: string
}

/** Observers of the versions of a process. */
export interface VersionObservers {
  /**
   * Told of a version that this process could not build. The old one stays in force.
   * @default a warning for each problem
   */
  readonly onRefused?: ((refused: Refused) => void) | undefined
  /** Told of each version that comes in force in this process. @default nobody */
  readonly onVersion?: ((version: string) => void) | undefined
}

/** The version in force, and the guards that change with it. */
export class VersionSwitch {
  readonly #observers: VersionObservers
  readonly #guards: LiveGuard[] = []
  #now = new Version('', {}, 'none')
  #refused: Refused | undefined
  /** The problems that were warned of since the newest file and changes were last in force. */
  readonly #warned = new Set<string>()

  constructor(observers: VersionObservers) {
    this.#observers = observers
  }

  get now(): Version {
    return this.#now
  }

  /** The newest version, where this process could not build it. */
  get refused(): Refused | undefined {
    return this.#refused
  }

  get guards(): readonly LiveGuard[] {
    return this.#guards
  }

  attach(guard: LiveGuard): void {
    this.#now.collect(() => guard.prepare(this.#now))()
    this.#guards.push(guard)
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
    this.#observers.onVersion?.(version.id)
    return true
  }

  /** Forgets what was refused: the newest file and the newest changes are in force. */
  accept(): void {
    this.#refused = undefined
    this.#warned.clear()
  }

  /** @throws SluiceError when a guard cannot be made of a version */
  check(version: Version): void {
    this.#build(version, 'discard')
  }

  /** @param message names the places that are wrong, and no value: all who may read see it */
  refuse(version: string, message: string): void {
    if (this.#refused?.version === version && this.#refused.message === message) return
    this.#refused = { version, message }
    const { onRefused } = this.#observers
    if (onRefused) onRefused(this.#refused)
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
      const apply = version.collect(() => this.#guards.map((guard) => guard.prepare(version)))
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

import type { Redis } from 'ioredis'
import { checkOnce, copyKey, keysIn } from '../harness/fill-keys.ts'
import type { RedisSubject } from '../subjects/redis-subject.ts'

/** Logs that are copied to all others, each at another stage of being trimmed. */
const templates = Array.from({ length: 16 }, (_, index) => `template-${index}`)
/** How much faster units expire than requests come, so that a request that overtakes another is not refused for it. */
const slack = 1.5

/**
 * Full logs on the server's clock, in which every admission finds about one unit that has just expired. They stay so for a round, whose rate has to be
 * known about; before the next one they are filled again.
 */
export class SteadyLogs {
  readonly #control: Redis
  readonly #subject: RedisSubject
  readonly #identities: number
  /** Requests a second of the round that the logs were filled for. */
  #filledFor = 0
  /** The keys in Redis of the templates, and those that get a copy of each. */
  readonly #copies = new Map<string, string[]>()

  /** Finds the keys of all identities by a check of each. */
  static async open(
    control: Redis,
    subject: RedisSubject,
    identities: readonly string[],
  ): Promise<SteadyLogs> {
    await checkOnce(subject, templates)
    const templateKeys = await keysIn(control, subject.prefix)
    await checkOnce(subject, identities)
    const keys = await keysIn(control, subject.prefix)
    const logs = new SteadyLogs(control, subject, identities.length)
    logs.#assign(templateKeys, keys)
    return logs
  }

  private constructor(control: Redis, subject: RedisSubject, identities: number) {
    this.#control = control
    this.#subject = subject
    this.#identities = identities
  }

  #assign(templateKeys: readonly string[], keys: readonly string[]): void {
    const { kindOf = () => '' } = this.#subject
    const isTemplate = new Set(templateKeys)
    const next = new Map<string, number>()
    for (const template of templateKeys) this.#copies.set(template, [])
    for (const key of keys) {
      if (isTemplate.has(key)) continue
      const kind = kindOf(key)
      const like = templateKeys.filter((template) => kindOf(template) === kind)
      const number = next.get(kind) ?? 0
      next.set(kind, number + 1)
      this.#copies.get(like[number % like.length] ?? '')?.push(key)
    }
  }

  /** Tells whether units expire as fast as a round took them that made so many requests a second. */
  keptUpWith(perSecond: number): boolean {
    return perSecond <= slack * this.#filledFor
  }

  /** @param perSecond how many requests the round will make, about */
  async fill(perSecond: number): Promise<void> {
    this.#filledFor = perSecond
    const stepMs = (this.#identities * 1000) / perSecond / slack
    await this.#control.del(...this.#copies.keys())
    await this.#subject.fillSteadily?.(templates, stepMs)
    await Promise.all(
      [...this.#copies].map(([template, copies]) => copyKey(this.#control, template, copies)),
    )
  }
}

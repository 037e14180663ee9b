import { type ClockSkewEvent, warnOnce } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { storeFailure } from '../replies/store-failure.ts'

let processId: string | undefined

/** Makes the id of this process on first use: some runtimes have no random numbers before. */
function ownId(): string {
  processId ??= crypto.randomUUID()
  return processId
}

/** A process that was not heard of for so many beats counts no more. */
const beatsUntilGone = 3
/** Clocks that differ by less are as good as any. */
const toleratedSkewMs = 1_000
const longestMeasureMs = 500
/** A beat without an answer for so many others is given up. */
const longestBeats = 3

/**
 * Counts the processes of a fleet by heartbeats in Redis, and compares the clock of Redis with the
 * one of this process. The last values hold while Redis is away.
 */
export class Fleet {
  readonly #redis: RedisClient
  readonly #key: string
  /** Between two heartbeats; 0: there are none. */
  #beatMs = 0
  readonly #observers = new Set<(event: ClockSkewEvent) => void>()
  #members = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  /** The numbers of processes at the last beats. */
  readonly #counts: number[] = []
  /** Settled when the clock of Redis was asked for once, with or without success. */
  #clockAsked: Promise<void> | undefined
  /** Ms to add to the monotonic clock to get the clock of Redis. */
  #offsetMs: number | undefined
  #toldSkewMs = 0

  constructor(redis: RedisClient, key: string) {
    this.#redis = redis
    this.#key = key
  }

  /** The number of processes: the highest of the last beats, since they come back one by one. */
  get instances(): number | undefined {
    return this.#counts.length === 0 ? undefined : Math.max(...this.#counts)
  }

  /** Milliseconds since 1970 by the clock of Redis, or while that is unknown by the own clock. */
  now(): number {
    const offset = this.#offsetMs
    return Math.floor(offset === undefined ? Date.now() : performance.now() + offset)
  }

  /** Ms by which the clock of Redis is ahead, as far as it is known. */
  get skewMs(): number {
    return Math.round(this.now() - Date.now())
  }

  observe(observer: (event: ClockSkewEvent) => void): () => void {
    this.#observers.add(observer)
    return () => this.#observers.delete(observer)
  }

  /** @param beatMs between two heartbeats; 0: this store needs none. The shortest one holds */
  join(beatMs: number): void {
    this.#members += 1
    if (beatMs === 0 || (this.#beatMs > 0 && beatMs >= this.#beatMs)) return
    this.#beatMs = beatMs
    clearTimeout(this.#timer)
    void this.#beat()
  }

  /** Leaves with the last store, so that others need not wait to notice. */
  leave(): void {
    this.#members -= 1
    if (this.#members > 0 || this.#beatMs === 0) return
    clearTimeout(this.#timer)
    this.#beatMs = 0
    this.#send('ZREM', this.#key, ownId()).catch(ignore)
  }

  /** For stores that count by this process' clock, which may be hours off until then. */
  clockAsked(): Promise<void> {
    this.#clockAsked ??= this.#measureClock()
    return this.#clockAsked
  }

  /** One at a time, unless the client has lost it. */
  async #beat(): Promise<void> {
    const beatMs = this.#beatMs
    const isCurrent = (): boolean => this.#members > 0 && this.#beatMs === beatMs && beatMs > 0
    const next = (): void => {
      if (!isCurrent()) return
      clearTimeout(this.#timer)
      // Not all processes of a fleet that starts together beat together.
      this.#timer = setTimeout(() => void this.#beat(), beatMs * (0.75 + Math.random() / 2))
      this.#timer.unref?.()
    }
    this.#timer = setTimeout(next, longestBeats * beatMs)
    this.#timer.unref?.()
    try {
      const measured = this.#measureClock()
      this.#clockAsked ??= measured
      await measured
      if (isCurrent()) await this.#count()
    } catch (error) {
      warnAboutRefusal(error)
    }
    next()
  }

  async #count(): Promise<void> {
    const now = this.now()
    const lifeMs = beatsUntilGone * this.#beatMs
    const [, , count] = await Promise.all([
      this.#send('ZADD', this.#key, String(now), ownId()),
      this.#send('ZREMRANGEBYSCORE', this.#key, '-inf', `(${now - lifeMs}`),
      this.#send('ZCARD', this.#key),
      this.#send('PEXPIRE', this.#key, String(2 * lifeMs)),
    ])
    this.#counts.push(Math.max(1, Number(count) || 1))
    if (this.#counts.length > beatsUntilGone) this.#counts.shift()
  }

  #send(name: string, ...args: string[]): Promise<unknown> {
    return this.#redis.send(name, args, this.#key)
  }

  /** Servers may forbid TIME: then the clock of this process has to do. */
  async #measureClock(): Promise<void> {
    const before = performance.now()
    const time = await this.#send('TIME').catch(ignore)
    const tookMs = performance.now() - before
    if (!Array.isArray(time)) return
    // A slow answer says little, but more than no answer.
    if (tookMs > longestMeasureMs && this.#offsetMs !== undefined) return
    const [seconds, microseconds] = time.map(Number)
    if (!Number.isSafeInteger(seconds) || !Number.isSafeInteger(microseconds)) return
    const serverMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000
    this.#offsetMs = serverMs - (before + tookMs / 2)
    this.#tellSkew(this.skewMs)
  }

  /** Once, and again when it has changed by as much. */
  #tellSkew(skewMs: number): void {
    if (Math.abs(skewMs - this.#toldSkewMs) < toleratedSkewMs) return
    this.#toldSkewMs = skewMs
    for (const observer of this.#observers) observer({ type: 'clock-skew', skewMs })
  }
}

/** Without the heartbeat, each process would take the whole limit when Redis is away. */
function warnAboutRefusal(error: unknown): void {
  const { code, message } = storeFailure(error)
  if (code !== 'SLUICE_REDIS_PERMISSION' && code !== 'SLUICE_STORE_FAILED') return
  warnOnce(
    `the processes of a fleet cannot count themselves, so pin { instances } in the limiter: ${message}`,
    'heartbeat',
  )
}

function ignore(): undefined {
  return undefined
}

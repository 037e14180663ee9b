import { type ResilienceEvent, warnOnce } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { storeFailure } from '../replies/store-failure.ts'

let processId: string | undefined

/** Creates the id of this process on first use: some runtimes allow no random numbers earlier. */
function ownId(): string {
  processId ??= crypto.randomUUID()
  return processId
}

/**
 * Number of missed heartbeats after which a process no longer counts, and of intervals after which
 * an unanswered heartbeat is given up.
 */
const beatsUntilGone = 3
/** Smaller differences between clocks, and smaller changes of it (ms), are not reported. */
const toleratedSkewMs = 1_000
const longestMeasureMs = 500

/**
 * Counts the processes of a fleet by heartbeats in Redis, and compares Redis's clock with the clock
 * of this process. While Redis is unavailable, the last values apply.
 */
export class Fleet {
  readonly #redis: RedisClient
  readonly #key: string
  /** Interval between heartbeats; 0 for none. */
  #beatMs = 0
  readonly #observers = new Set<(event: ResilienceEvent) => void>()
  #members = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Process counts at the last heartbeats. */
  #counts: readonly number[] = []
  /** Settles once the request for Redis's clock has succeeded or failed. */
  #clockAsked: Promise<void> | undefined
  /** Ms to add to the monotonic clock to get Redis's clock. */
  #offsetMs: number | undefined
  #toldSkewMs = 0

  constructor(redis: RedisClient, key: string) {
    this.#redis = redis
    this.#key = key
  }

  /** Number of processes: the highest of the last counts, since processes return one by one. */
  get instances(): number {
    return Math.max(1, ...this.#counts)
  }

  /** Milliseconds since 1970 by Redis's clock; by this process's clock until that is known. */
  now(): number {
    const offset = this.#offsetMs
    return Math.floor(offset === undefined ? Date.now() : performance.now() + offset)
  }

  /** Ms by which Redis's clock is ahead; 0 until that is known. */
  get skewMs(): number {
    return Math.round(this.now() - Date.now())
  }

  observe(observer: (event: ResilienceEvent) => void): () => void {
    this.#observers.add(observer)
    return () => this.#observers.delete(observer)
  }

  /**
   * @param beatMs interval between heartbeats; 0 if this store needs none. The shortest one wins
   */
  join(beatMs: number): void {
    this.#members += 1
    if (beatMs === 0 || (this.#beatMs > 0 && beatMs >= this.#beatMs)) return
    this.#beatMs = beatMs
    void this.#beat()
  }

  /** Deregisters with the last store, so that others notice at once. */
  leave(): void {
    this.#members -= 1
    if (this.#members > 0 || this.#beatMs === 0) return
    clearTimeout(this.#timer)
    this.#beatMs = 0
    this.#send('ZREM', this.#key, ownId()).catch(() => undefined)
  }

  /** For stores that use this process's clock, which may be hours off until then. */
  clockAsked(): Promise<void> {
    this.#clockAsked ??= this.#measureClock()
    return this.#clockAsked
  }

  async #beat(): Promise<void> {
    const beatMs = this.#beatMs
    // In case that the client loses this one.
    this.#beatWithin(beatsUntilGone * beatMs)
    try {
      const measured = this.#measureClock()
      this.#clockAsked ??= measured
      await measured
      if (this.#beatMs === beatMs) await this.#count()
    } catch (error) {
      const { code, message } = storeFailure(error)
      // Without heartbeats, each process would allow the whole limit while Redis is unavailable.
      if (code === 'SLUICE_REDIS_PERMISSION' || code === 'SLUICE_STORE_FAILED') {
        warnOnce(
          `heartbeats fail, so processes cannot be counted; set { instances } on the limiter: ${message}`,
          'heartbeat',
        )
      }
    }
    // Random, so that processes started together do not beat together.
    if (this.#beatMs === beatMs) this.#beatWithin(beatMs * (0.75 + Math.random() / 2))
  }

  #beatWithin(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#beat(), delayMs)
    this.#timer.unref?.()
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
    this.#counts = [...this.#counts.slice(1 - beatsUntilGone), Number(count) || 1]
  }

  #send(name: string, ...args: string[]): Promise<unknown> {
    return this.#redis.send(name, args, this.#key)
  }

  /** If the server forbids TIME, the clock of this process is used. */
  async #measureClock(): Promise<void> {
    const before = performance.now()
    const time = await this.#send('TIME').catch(() => undefined)
    const tookMs = performance.now() - before
    if (!Array.isArray(time)) return
    // A slow reply is inaccurate, but better than none.
    if (tookMs > longestMeasureMs && this.#offsetMs !== undefined) return
    const serverMs = Number(time[0]) * 1_000 + Number(time[1]) / 1_000
    if (!Number.isFinite(serverMs)) return
    this.#offsetMs = serverMs - (before + tookMs / 2)
    const { skewMs } = this
    if (Math.abs(skewMs - this.#toldSkewMs) < toleratedSkewMs) return
    this.#toldSkewMs = skewMs
    for (const observer of this.#observers) observer({ type: 'clock-skew', skewMs })
  }
}

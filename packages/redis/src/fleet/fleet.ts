import { type ResilienceEvent, warnOnce } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { storeFailure } from '../replies/store-failure.ts'

let processId: string | undefined

/** Creates the id of this process on first use: some runtimes allow no random numbers earlier. */
function ownId(): string {
  processId ??= crypto.randomUUID()
  return processId
}

/** Number of missed heartbeats after which a process no longer counts. */
const beatsUntilGone = 3
/** Smaller differences between clocks (ms) are not reported. */
const toleratedSkewMs = 1_000
const longestMeasureMs = 500
/** Number of intervals after which an unanswered heartbeat is given up. */
const longestBeats = 3

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
  readonly #counts: number[] = []
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
  get instances(): number | undefined {
    return this.#counts.length === 0 ? undefined : Math.max(...this.#counts)
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
    clearTimeout(this.#timer)
    void this.#beat()
  }

  /** Deregisters with the last store, so that others notice at once. */
  leave(): void {
    this.#members -= 1
    if (this.#members > 0 || this.#beatMs === 0) return
    clearTimeout(this.#timer)
    this.#beatMs = 0
    this.#send('ZREM', this.#key, ownId()).catch(ignore)
  }

  /** For stores that use this process's clock, which may be hours off until then. */
  clockAsked(): Promise<void> {
    this.#clockAsked ??= this.#measureClock()
    return this.#clockAsked
  }

  /** Sends one at a time, unless the client has lost it. */
  async #beat(): Promise<void> {
    const beatMs = this.#beatMs
    const isCurrent = (): boolean => this.#members > 0 && this.#beatMs === beatMs && beatMs > 0
    const next = (): void => {
      if (!isCurrent()) return
      clearTimeout(this.#timer)
      // Random, so that processes started together do not beat together.
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

  /** If the server forbids TIME, the clock of this process is used. */
  async #measureClock(): Promise<void> {
    const before = performance.now()
    const time = await this.#send('TIME').catch(ignore)
    const tookMs = performance.now() - before
    if (!Array.isArray(time)) return
    // A slow reply is inaccurate, but better than none.
    if (tookMs > longestMeasureMs && this.#offsetMs !== undefined) return
    const [seconds, microseconds] = time.map(Number)
    if (!Number.isSafeInteger(seconds) || !Number.isSafeInteger(microseconds)) return
    const serverMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000
    this.#offsetMs = serverMs - (before + tookMs / 2)
    this.#tellSkew(this.skewMs)
  }

  /** Reports the skew once, and again whenever it has changed by `toleratedSkewMs`. */
  #tellSkew(skewMs: number): void {
    if (Math.abs(skewMs - this.#toldSkewMs) < toleratedSkewMs) return
    this.#toldSkewMs = skewMs
    for (const observer of this.#observers) observer({ type: 'clock-skew', skewMs })
  }
}

/** Without heartbeats, each process would allow the whole limit while Redis is unavailable. */
function warnAboutRefusal(error: unknown): void {
  const { code, message } = storeFailure(error)
  if (code !== 'SLUICE_REDIS_PERMISSION' && code !== 'SLUICE_STORE_FAILED') return
  warnOnce(
    `heartbeats fail, so processes cannot be counted; set { instances } on the limiter: ${message}`,
    'heartbeat',
  )
}

function ignore(): undefined {
  return undefined
}

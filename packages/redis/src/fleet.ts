import { randomUUID } from 'node:crypto'
import type { ClockSkewEvent } from '@sluice/core'
import type { RedisClient } from './clients/redis-client.ts'

/** How this process is known to the others, whatever the number of its stores. */
const processId = randomUUID()

/** A process that was not heard of for so many beats counts no more. */
const beatsUntilGone = 3
/** Clocks that differ by less are as good as any. */
const toleratedSkewMs = 1_000
/** What took longer to measure says too little. */
const longestMeasureMs = 500

/**
 * What the processes of a fleet tell each other in Redis: how many they are, by a heartbeat of a few commands; and how far their clock is from
 * that of Redis. What was seen last holds while Redis is away.
 */
export class Fleet {
  readonly #redis: RedisClient
  readonly #key: string
  readonly #beatMs: number
  readonly #observers = new Set<(event: ClockSkewEvent) => void>()
  #members = 0
  #timer: NodeJS.Timeout | undefined
  #isBeating = false
  #instances: number | undefined
  /** What has to be added to the monotonic clock for that of Redis. */
  #offsetMs: number | undefined
  #toldSkewMs = 0

  /** @param beatMs between two heartbeats; 0: none, so that nothing is ever seen */
  constructor(redis: RedisClient, key: string, beatMs: number) {
    this.#redis = redis
    this.#key = key
    this.#beatMs = beatMs
  }

  /** How many processes there are, as last seen. */
  get instances(): number | undefined {
    return this.#instances
  }

  /** Milliseconds since 1970 by the clock of Redis, as far as it is known; else by that of this process. */
  now(): number {
    const offset = this.#offsetMs
    return Math.floor(offset === undefined ? Date.now() : performance.now() + offset)
  }

  observe(observer: (event: ClockSkewEvent) => void): void {
    this.#observers.add(observer)
  }

  /** Begins to beat, with the first store of this process that is used. */
  join(): void {
    this.#members += 1
    if (this.#members === 1 && this.#beatMs > 0) void this.#beat()
  }

  /** Leaves with the last store: then the others need not wait to notice. */
  leave(): void {
    this.#members -= 1
    if (this.#members > 0 || this.#beatMs === 0) return
    clearTimeout(this.#timer)
    this.#redis.send(['ZREM', this.#key, processId], this.#key).catch(ignore)
  }

  /** One at a time: while Redis does not answer, no second one lines up behind it. */
  async #beat(): Promise<void> {
    if (this.#isBeating) return
    this.#isBeating = true
    try {
      await this.#measureClock()
      await this.#count()
    } catch {
      // Checks tell of a Redis that is away; what was seen last holds.
    }
    this.#isBeating = false
    if (this.#members === 0) return
    // Not all processes of a fleet that starts together beat together.
    const delayMs = this.#beatMs * (0.75 + Math.random() / 2)
    this.#timer = setTimeout(() => void this.#beat(), delayMs)
    this.#timer.unref()
  }

  async #count(): Promise<void> {
    const now = this.now()
    const lifeMs = beatsUntilGone * this.#beatMs
    const send = (...args: [string, ...string[]]): Promise<unknown> =>
      this.#redis.send(args, this.#key)
    const [, , count] = await Promise.all([
      send('ZADD', this.#key, String(now), processId),
      send('ZREMRANGEBYSCORE', this.#key, '-inf', `(${now - lifeMs}`),
      send('ZCARD', this.#key),
      send('PEXPIRE', this.#key, String(2 * lifeMs)),
    ])
    this.#instances = Math.max(1, Number(count) || 1)
  }

  /** Servers may forbid TIME: then the clock of this process has to do. */
  async #measureClock(): Promise<void> {
    const before = performance.now()
    const time = await this.#redis.send(['TIME'], this.#key).catch(ignore)
    const tookMs = performance.now() - before
    if (!Array.isArray(time) || tookMs > longestMeasureMs) return
    const [seconds, microseconds] = time.map(Number)
    if (!Number.isSafeInteger(seconds) || !Number.isSafeInteger(microseconds)) return
    const serverMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000
    this.#offsetMs = serverMs - (before + tookMs / 2)
    this.#tellSkew(Math.round(this.now() - Date.now()))
  }

  /** Once, and again when it has changed by as much. */
  #tellSkew(skewMs: number): void {
    if (Math.abs(skewMs - this.#toldSkewMs) < toleratedSkewMs) return
    this.#toldSkewMs = skewMs
    for (const observer of this.#observers) observer({ type: 'clock-skew', skewMs })
  }
}

function ignore(): undefined {
  return undefined
}

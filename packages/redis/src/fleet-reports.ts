import type { FleetReport } from '@sluice/core'
import type { RedisClient } from './clients/redis-client.ts'
import type { Fleet } from './fleet.ts'

/** A report is to stay small: each process of a fleet reads those of all others. */
const maxLength = 65_536

/**
 * Small texts that the processes of a fleet show each other, in one hash a topic: `<end> <member>
 * <text>` by member. The hash expires, and each reader drops reports that are over.
 */
export class FleetReports {
  readonly #redis: RedisClient
  readonly #fleet: Fleet
  readonly #prefix: string

  constructor(redis: RedisClient, fleet: Fleet, prefix: string) {
    this.#redis = redis
    this.#fleet = fleet
    this.#prefix = prefix
  }

  /** Returns the reports of the others. */
  async share({ topic, member, text, ttlMs }: FleetReport): Promise<readonly string[]> {
    if (text.length > maxLength)
      throw new RangeError(`a report has ${maxLength} characters at most`)
    const key = `${this.#prefix}:${topic}`
    const nowMs = this.#fleet.now()
    const send = (name: string, ...args: readonly string[]) => this.#redis.send(name, args, key)
    const [, reports] = await Promise.all([
      send('HSET', key, member, `${nowMs + ttlMs} ${member} ${text}`),
      send('HVALS', key),
      send('PEXPIRE', key, String(ttlMs)),
    ])
    const found = Array.isArray(reports) ? reports.map((report) => parsed(String(report))) : []
    const over = found.filter(({ endMs }) => endMs <= nowMs).map((report) => report.member)
    if (over.length > 0) await send('HDEL', key, ...over)
    return found
      .filter((report) => report.endMs > nowMs && report.member !== member)
      .map((report) => report.text)
  }
}

function parsed(report: string): { endMs: number; member: string; text: string } {
  const [end = '', member = ''] = report.split(' ', 2)
  return { endMs: Number(end), member, text: report.slice(end.length + member.length + 2) }
}

import type { Redis } from 'ioredis'
import type { RedisSubject } from '../subjects/redis-subject.ts'

const copyScript = `
for i = 2, #KEYS do redis.call('COPY', KEYS[1], KEYS[i], 'REPLACE') end
`
const keysPerCopy = 1_000

/**
 * Brings all keys into the state that their traffic wants. One key is filled unit by unit, and all others get a copy of it;
 * what they are called is found by a check of each.
 */
export async function fillKeys(
  control: Redis,
  subject: RedisSubject,
  keys: readonly string[],
): Promise<void> {
  const [first, ...others] = keys
  if (first === undefined) return
  if (subject.fill) await subject.fill(first)
  else await subject.check(first)
  const templates = await keysIn(control, subject.prefix)
  await checkOnce(subject, others)
  if (!subject.fill) return
  const { kindOf = () => '' } = subject
  const all = await keysIn(control, subject.prefix)
  for (const template of templates) {
    const copies = all.filter((key) => key !== template && kindOf(key) === kindOf(template))
    await copyKey(control, template, copies)
  }
}

export async function copyKey(
  control: Redis,
  template: string,
  copies: readonly string[],
): Promise<void> {
  for (let from = 0; from < copies.length; from += keysPerCopy) {
    const part = [template, ...copies.slice(from, from + keysPerCopy)]
    await control.eval(copyScript, part.length, ...part)
  }
}

/** Bytes that one identity takes in Redis, all its keys together; NaN when it has none. */
export async function bytesPerIdentity(
  control: Redis,
  subject: RedisSubject,
  identities: number,
): Promise<number> {
  const keys = await keysIn(control, subject.prefix)
  const sample = keys.slice(0, 200)
  const sizes = await Promise.all(sample.map((key) => control.memory('USAGE', key, 'SAMPLES', 0)))
  const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)
  return ((bytes / sample.length) * keys.length) / identities
}

export async function checkOnce(subject: RedisSubject, keys: readonly string[]): Promise<void> {
  const waiting = keys.values()
  async function worker(): Promise<void> {
    for (const key of waiting) await subject.check(key)
  }
  await Promise.all(Array.from({ length: 256 }, worker))
}

export async function keysIn(control: Redis, prefix: string): Promise<string[]> {
  const found: string[] = []
  let cursor = '0'
  do {
    const [next, some] = await control.scan(cursor, 'MATCH', `${prefix}:*`, 'COUNT', 10_000)
    found.push(...some)
    cursor = next
  } while (cursor !== '0')
  return found
}

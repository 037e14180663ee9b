import { type Arrival, algorithms, type Lane } from './simulate.ts'

/** All that a link to the playground carries. A log never leaves the browser. */
export interface Scene {
  /** `0, 9.9x3, 10x4`: seconds, each with the number of requests. */
  readonly times: string
  readonly lanes: readonly Lane[]
}

/** A client that knows where the window ends: one request opens it, three close it, four follow. */
export const attack: Scene = {
  times: '0, 9.7, 9.8, 9.9, 10, 10.1, 10.2, 10.3',
  lanes: [
    { algorithm: 'fixed-window', limit: 4, window: '10s' },
    { algorithm: 'sliding-log', limit: 4, window: '10s' },
  ],
}

export const scenes: Readonly<Record<string, string>> = {
  'Attack at the edge of a window': attack.times,
  'One request a second': Array.from({ length: 20 }, (_, second) => second).join(', '),
  'A burst, then silence': '0x12, 8, 12x3',
  'A client that retries at once': Array.from({ length: 60 }, (_, step) => step / 4).join(', '),
}

export const maxLanes = 4
const maxRequests = 100_000

/**
 * Reads traffic: seconds, or the lines of an access log in any format of `sluice simulate`.
 * @throws Error that says what cannot be read
 */
export async function readTraffic(text: string): Promise<readonly Arrival[]> {
  const traffic = /^[\d\s.,;x×*]*$/.test(text) ? timesOf(text) : await requestsOf(text)
  if (traffic.length > maxRequests) {
    throw new Error(
      `There are ${traffic.length} requests, and a page replays ${maxRequests}. Use \`sluice simulate\` for large logs.`,
    )
  }
  return traffic.toSorted((one, other) => one.atMs - other.atMs)
}

function timesOf(text: string): Arrival[] {
  let requests = 0
  return text.split(/[\s,;]+/).flatMap((item) => {
    if (item === '') return []
    const [, seconds, count = '1'] = /^(\d{1,9}(?:\.\d+)?)(?:[x×*](\d{1,6}))?$/.exec(item) ?? []
    if (seconds === undefined) {
      throw new Error(`${item} is not a time. Write seconds, such as 9.5 or 9.5x3.`)
    }
    requests += Number(count)
    if (requests > maxRequests) throw new Error(`A page replays ${maxRequests} requests at most.`)
    const atMs = Math.round(Number(seconds) * 1_000)
    return Array.from({ length: Number(count) }, () => ({ atMs, key: 'client' }))
  })
}

async function requestsOf(text: string): Promise<Arrival[]> {
  // Loaded with the first log.
  const { chooseFormat } = await import('../../../packages/cli/src/formats/choose-format.ts')
  const lines = text.split(/\r?\n/).filter((line) => line !== '')
  const format = chooseFormat({ format: 'auto' }, lines.slice(0, 100))
  return lines.flatMap((line) => {
    const fields = format.read(line)
    return typeof fields === 'object'
      ? [{ atMs: fields.timeMs, key: fields.address ?? 'unknown' }]
      : []
  })
}

/** Traffic as a text that can be edited: `0, 9.5x3`. */
export function timesText(traffic: readonly Arrival[]): string {
  const counts = new Map<number, number>()
  for (const { atMs } of traffic) counts.set(atMs, (counts.get(atMs) ?? 0) + 1)
  return [...counts]
    .sort(([one], [other]) => one - other)
    .map(([atMs, count]) => `${atMs / 1_000}${count > 1 ? `x${count}` : ''}`)
    .join(', ')
}

export function linkOf({ times, lanes }: Scene): string {
  const link = new URLSearchParams({ times: times.replaceAll(/\s+/g, '') })
  for (const { algorithm, limit, window } of lanes) {
    link.append('policy', [algorithm, limit, window].join('~'))
  }
  return link.toString()
}

/** Reads the hash of a link. What it lacks is that of the attack. */
export function sceneOf(hash: string): Scene {
  const link = new URLSearchParams(hash.replace(/^#/, ''))
  const lanes = link.getAll('policy').flatMap((text) => {
    const [name, limit, window = ''] = text.split('~')
    const algorithm = algorithms.find((known) => known === name)
    // The code on the page has the window in it: a link must not write code.
    return algorithm && /^\w*$/.test(window) ? [{ algorithm, limit: Number(limit), window }] : []
  })
  return {
    times: link.get('times')?.replaceAll(',', ', ') ?? attack.times,
    lanes: lanes.length > 0 ? lanes.slice(0, maxLanes) : attack.lanes,
  }
}

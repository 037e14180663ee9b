import type { ClientName } from '../harness/clients.ts'
import type { Bar } from '../report/bars.ts'
import type { Question } from '../report/headline.ts'

const suite = 'concurrency'

export function inFlightCase(inFlight: number): string {
  return `${inFlight} in flight`
}

export function manyKeysCase(inFlight: number): string {
  return `${inFlight} in flight, 100,000 keys`
}

export function clientCase(client: ClientName, inFlight: number): string {
  return `${inFlight} in flight, ${client}`
}

export function resilienceCase(inFlight: number): string {
  return `${inFlight} in flight, with and without resilience`
}

export function floodCase(keys: number): string {
  return keys === 1 ? 'refused flood, one hot key' : 'refused flood, 10,000 keys'
}

export function memoryKeysCase(keys: number): string {
  return keys === 10 ? 'memory, 10 hot keys' : 'memory, many keys'
}

const log = 'sluice sliding-log'
const window = 'sluice fixed-window'
const expressStore = 'express-rate-limit MemoryStore'
const flexibleStore = 'rate-limiter-flexible RateLimiterMemory'

const units: Readonly<Record<string, string>> = {
  perSecond: '/s',
  p50Ms: 'ms',
  bytesPerKey: 'bytes',
}
const names: Readonly<Record<string, string>> = {
  bothCpuUs: 'Node + Redis CPU',
  nodeCpuUs: 'Node CPU',
  redisCpuUs: 'Redis CPU',
  perSecond: 'throughput',
  p50Ms: 'p50',
  bytesPerKey: 'bytes a key',
}

type Bound = Pick<Bar, 'atMost' | 'atLeast' | 'wanted'>
type Bounds = Readonly<Record<string, Bound>>

/** What holds at so many in flight against the best peer at each figure. */
function boundsAt(inFlight: number): Bounds {
  const latency = { p50Ms: { atMost: 1.1 } }
  if (inFlight >= 256) {
    return {
      perSecond: { atLeast: 2.5, wanted: 3 },
      nodeCpuUs: { atMost: 0.25, wanted: 0.2 },
      redisCpuUs: { atMost: 0.5, wanted: 0.4 },
      ...latency,
    }
  }
  if (inFlight >= 64) {
    return {
      perSecond: { atLeast: 1.8 },
      nodeCpuUs: { atMost: 0.3 },
      redisCpuUs: { atMost: 0.55 },
      ...latency,
    }
  }
  const many = inFlight >= 16
  const both = many ? 0.75 : inFlight >= 4 ? 1 : 1.05
  return {
    perSecond: { atLeast: many ? 1 : 0.9 },
    bothCpuUs: { atMost: both },
    redisCpuUs: { atMost: many ? 1 : 1.15 },
    ...latency,
  }
}

function barsFor(question: Pick<Question, 'case' | 'subject' | 'against'>, bounds: Bounds): Bar[] {
  return Object.entries(bounds).map(([figure, bound]) => ({
    ...question,
    ...bound,
    suite,
    figure,
    text: `${question.case}: ${question.subject}, ${names[figure]}`,
    unit: units[figure] ?? 'µs',
  }))
}

function memoryBars(keys: number, against: string, bounds: Bounds): Bar[] {
  return barsFor({ case: memoryKeysCase(keys), subject: `${log}, decide()`, against }, bounds)
}

const numbers = [1, 2, 4, 8, 16, 32, 64, 256]
const clients: readonly ClientName[] = ['ioredis 5', 'node-redis 6']

/** What Sluice has to reach. Those whose case was not measured are not asked. */
export const concurrencyBars: readonly Bar[] = [
  ...numbers.flatMap((inFlight) =>
    [log, window].flatMap((subject) =>
      [
        inFlightCase(inFlight),
        manyKeysCase(inFlight),
        ...clients.map((client) => clientCase(client, inFlight)),
      ].flatMap((name) => barsFor({ case: name, subject }, boundsAt(inFlight))),
    ),
  ),
  ...numbers
    .filter((inFlight) => inFlight >= 16)
    .flatMap((inFlight) =>
      barsFor(
        { case: inFlightCase(inFlight), subject: `${log} × 2` },
        { redisCpuUs: { atMost: 1.3 } },
      ),
    ),
  ...barsFor({ case: floodCase(1), subject: log }, { perSecond: { atLeast: 20 } }),
  ...barsFor({ case: floodCase(10_000), subject: log }, { perSecond: { atLeast: 10 } }),
  ...[1, 10_000].flatMap((keys) =>
    barsFor(
      {
        case: floodCase(keys),
        subject: log,
        against: 'rate-limiter-flexible (inMemoryBlock)',
      },
      { perSecond: { atLeast: 1 } },
    ),
  ),
  ...memoryBars(10, flexibleStore, { nodeCpuUs: { atMost: 0.8 } }),
  ...memoryBars(10, expressStore, { nodeCpuUs: { atMost: 2 } }),
  ...[flexibleStore, expressStore].flatMap((against) =>
    memoryBars(1_000_000, against, { nodeCpuUs: { atMost: 1 }, bytesPerKey: { atMost: 1 } }),
  ),
  ...numbers.map(
    (inFlight): Bar => ({
      suite,
      case: resilienceCase(inFlight),
      subject: log,
      against: 'without limiter and resilience (store.apply)',
      figure: 'nodeCpuUs',
      text: `${inFlight} in flight: what resilience adds to Node CPU`,
      unit: 'µs',
      isDifference: true,
      atMost: 0.2,
    }),
  ),
]

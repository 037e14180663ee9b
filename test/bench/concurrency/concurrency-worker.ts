import { Redis } from 'ioredis'
import { answerParent } from '../../support/child.ts'
import { checkTraffic } from '../harness/check-traffic.ts'
import { clientKeys, inTurn } from '../harness/client-keys.ts'
import type { Figures } from '../harness/figures.ts'
import { checkOnce, fillKeys } from '../harness/fill-keys.ts'
import { measureRedis } from '../harness/measure-redis.ts'
import type { RedisSubject } from '../subjects/redis-subject.ts'
import { contenderNamed, prefixOf } from './concurrency-contenders.ts'
import { SteadyLogs } from './steady-logs.ts'

export interface ConcurrencySetting {
  readonly port: number
  readonly keys: number
  readonly limit: number
  readonly traffic: 'allowed' | 'denied'
}

export interface RoundInput {
  readonly inFlight: number
  readonly durationMs: number
}

export type ConcurrencyProtocol = {
  open: { input: ConcurrencySetting; output: undefined }
  round: { input: RoundInput; output: Figures }
  close: { input: undefined; output: undefined }
}

/** No key may expire while the subjects take turns. */
const windowMs = 3_600_000
/** Assumed of a subject of which nothing is known yet: more than any does, so that none is refused. */
const fastest = 500_000

/** Rates of a second attempt are those of compiled code, so more are hardly needed. */
const maxAttempts = 4

const contender = contenderNamed(process.argv[2])

interface Opened {
  readonly control: Redis
  readonly client: Redis
  readonly subject: RedisSubject
  readonly steady: SteadyLogs | undefined
  readonly nextKey: () => string
  readonly traffic: ConcurrencySetting['traffic']
  /** The most checks a second so far, by the number in flight. */
  readonly rates: Map<number, number>
}

let opened: Opened | undefined

answerParent<ConcurrencyProtocol>({
  async open(setting) {
    close()
    const { port, keys: count, traffic } = setting
    const control = new Redis(port)
    const client = new Redis(port)
    // A subject that fails says so by its answers; without a listener ioredis prints the same again.
    client.on('error', () => undefined)
    const subject = await contender.open({
      ...{ connect: async () => client, prefix: prefixOf(contender), traffic, clock: 'server' },
      limit: contender.limit ?? setting.limit,
      windowMs,
    })
    const keys = clientKeys(count)
    let steady: SteadyLogs | undefined
    if (traffic === 'denied') await fillKeys(control, subject, keys)
    else if (subject.fillSteadily) steady = await SteadyLogs.open(control, subject, keys)
    else await checkOnce(subject, keys)
    const rates = new Map<number, number>()
    opened = { control, client, subject, steady, traffic, rates, nextKey: inTurn(keys) }
    return undefined
  },

  round,

  close() {
    close()
    return undefined
  },
})

/** A round that was faster than its logs were filled for, since the last one was made by code that was not compiled yet, is measured again. */
async function round(input: RoundInput): Promise<Figures> {
  const { steady, traffic } = found()
  for (let attempt = 1; ; attempt += 1) {
    await fill(input)
    const figures = await measure(input)
    const isSteady = !steady || steady.keptUpWith(figures.perSecond ?? 0)
    if (!isSteady && attempt < maxAttempts) continue
    checkTraffic(traffic, figures.allowedShare)
    return figures
  }
}

async function fill({ inFlight }: Pick<RoundInput, 'inFlight'>): Promise<void> {
  const { steady, rates } = found()
  await steady?.fill(rates.get(inFlight) ?? fastest)
}

async function measure({ inFlight, durationMs }: RoundInput) {
  const { control, subject, nextKey, rates } = found()
  const figures = await measureRedis(control, subject, { inFlight, durationMs, nextKey })
  rates.set(inFlight, Math.max(figures.perSecond ?? 0, rates.get(inFlight) ?? 0))
  return figures
}

function close(): void {
  if (!opened) return
  opened.control.disconnect()
  opened.client.disconnect()
  opened = undefined
}

function found(): Opened {
  if (!opened) throw new Error(`the worker of '${contender.name}' has nothing to measure`)
  return opened
}

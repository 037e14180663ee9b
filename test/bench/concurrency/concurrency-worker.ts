import { Redis } from 'ioredis'
import { answerParent } from '../../support/child.ts'
import { clientKeys, inTurn } from '../harness/client-keys.ts'
import { checkTraffic, type Figures } from '../harness/figures.ts'
import { checkOnce, fillKeys } from '../harness/fill-keys.ts'
import { measureRedis } from '../harness/measure-redis.ts'
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

let opened: Awaited<ReturnType<typeof open>> | undefined

answerParent<ConcurrencyProtocol>({
  async open(setting) {
    close()
    opened = await open(setting)
    return undefined
  },

  round,
  close,
})

async function open({ port, keys: count, limit, traffic }: ConcurrencySetting) {
  const control = new Redis(port)
  const client = new Redis(port)
  // A subject that fails says so by its answers; without a listener ioredis prints the same again.
  client.on('error', () => undefined)
  const subject = await contender.open({
    ...{ connect: async () => client, prefix: prefixOf(contender), traffic, clock: 'server' },
    ...{ limit: contender.limit ?? limit, windowMs },
  })
  const keys = clientKeys(count)
  let steady: SteadyLogs | undefined
  if (traffic === 'denied') await fillKeys(control, subject, keys)
  else if (subject.fillSteadily) steady = await SteadyLogs.open(control, subject, keys)
  else await checkOnce(subject, keys)
  /** The most checks a second so far, by the number in flight. */
  const rates = new Map<number, number>()
  return { control, client, subject, steady, traffic, rates, nextKey: inTurn(keys) }
}

/** A round that was faster than its logs were filled for, since the last one was made by code that was not compiled yet, is measured again. */
async function round(input: RoundInput): Promise<Figures> {
  const { steady, traffic } = found()
  for (let attempt = 1; ; attempt += 1) {
    const figures = await measure(input)
    const isSteady = !steady || steady.keptUpWith(figures.perSecond ?? 0)
    if (!isSteady && attempt < maxAttempts) continue
    checkTraffic(traffic, figures.allowedShare)
    return figures
  }
}

async function measure({ inFlight, durationMs }: RoundInput) {
  const { control, subject, steady, nextKey, rates } = found()
  await steady?.fill(rates.get(inFlight) ?? fastest)
  const figures = await measureRedis(control, subject, { inFlight, durationMs, nextKey })
  rates.set(inFlight, Math.max(figures.perSecond ?? 0, rates.get(inFlight) ?? 0))
  return figures
}

function close(): undefined {
  opened?.control.disconnect()
  opened?.client.disconnect()
  opened = undefined
}

function found() {
  if (!opened) throw new Error(`the worker of '${contender.name}' has nothing to measure`)
  return opened
}

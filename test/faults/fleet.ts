import type { BreakerState, ResilienceEvent } from '@sluice/core'
import { bundledScript } from '../support/bundled-script.ts'
import { type Child, startChild } from '../support/child.ts'
import type { ApiProtocol, ApiSettings, ApiTold, Connection } from './api-messages.ts'
import type { SteppedClock } from './fault.ts'

const script = await bundledScript(new URL('api-process.ts', import.meta.url))
const EXIT_TIMEOUT_MS = 5_000

export interface TimedEvent {
  readonly at: number
  readonly event: ResilienceEvent
}

export interface FleetSettings extends Omit<ApiSettings, 'connection'> {
  readonly connections: readonly Connection[]
}

export type Fleet = Awaited<ReturnType<typeof startFleet>>

export async function startFleet(settings: FleetSettings, size: number) {
  const { connections, ...common } = settings
  const apis = await Promise.all(
    Array.from({ length: size }, (_, index) => {
      const connection = connections[index % connections.length]
      if (!connection) throw new Error('a fleet needs a connection')
      return startApiProcess({ ...common, connection })
    }),
  )
  return { settings, apis, close: async () => void (await Promise.all(apis.map((a) => a.close()))) }
}

async function startApiProcess(settings: ApiSettings) {
  const events: TimedEvent[] = []
  /** Codes of what was told to `onStoreError`. */
  const storeErrors: { at: number; code: string }[] = []
  /** Rejections that nobody handled, and errors that nobody caught. */
  const unhandled: string[] = []
  let breaker: BreakerState = 'closed'
  /** Whether failure modes decide for some of its requests at least. */
  let isAway = false
  const onTold = (told: ApiTold): void => {
    if (told.type === 'unhandled') unhandled.push(told.message)
    if (told.type === 'store-error') storeErrors.push(told)
    if (told.type !== 'event') return
    const { at, event } = told
    events.push({ at, event })
    if (event.type === 'breaker') breaker = event.state
    if (event.type === 'fallback-entered') isAway = true
    if (event.type === 'fallback-left') isAway = false
  }
  const child = startChild<ApiProtocol, ApiTold>(script, {
    args: [JSON.stringify(settings)],
    onTold,
  })
  return {
    port: await child.ask('listen', undefined),
    events,
    storeErrors,
    unhandled,
    get breaker() {
      return breaker
    },
    get isAway() {
      return isAway
    },
    stepClock: (clock: SteppedClock, byMs: number) => child.ask('step-clock', { clock, byMs }),
    report: () => child.ask('report', undefined),
    close: () => closeApi(child),
  }
}

/** Closes server, store and client. Resolves to whether the process then ended by itself. */
async function closeApi(child: Child<ApiProtocol>): Promise<boolean> {
  const { exitCode, signalCode } = child.process
  if (exitCode !== null || signalCode !== null) return false
  const patience = setTimeout(() => child.stop(), EXIT_TIMEOUT_MS)
  await child.ask('close', undefined).catch(() => undefined)
  const code = await child.ended
  clearTimeout(patience)
  return code === 0
}

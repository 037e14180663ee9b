import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { BreakerState, ResilienceEvent } from '@sluice/core'
import { bundledScript } from '../support/bundled-script.ts'
import { until } from '../support/until.ts'
import type { ApiReport, ApiSettings, Connection, FromApi, ToApi } from './api-messages.ts'
import { monotonicMs } from './timing.ts'

const script = await bundledScript(new URL('api-process.ts', import.meta.url))
const START_TIMEOUT_MS = 30_000
const EXIT_TIMEOUT_MS = 5_000

export interface TimedEvent {
  readonly at: number
  readonly event: ResilienceEvent
}

/** One API process, as its parent sees it. */
export interface Api {
  readonly port: number
  readonly events: readonly TimedEvent[]
  /** Codes of what was told to `onStoreError`. */
  readonly storeErrors: readonly { readonly at: number; readonly code: string }[]
  /** Rejections that nobody handled, and errors that nobody caught. */
  readonly unhandled: readonly string[]
  readonly breaker: BreakerState
  /** Whether failure modes decide for some of its requests at least. */
  readonly isAway: boolean
  stepClock(clock: 'ours' | 'store', byMs: number): Promise<void>
  report(): Promise<ApiReport>
  /** Closes server, store and client. Resolves to whether the process then ended by itself. */
  close(): Promise<boolean>
}

export interface FleetSettings extends Omit<ApiSettings, 'connection'> {
  /** Taken in turn. */
  readonly connections: readonly Connection[]
}

export interface Fleet {
  readonly settings: FleetSettings
  readonly apis: readonly Api[]
  close(): Promise<void>
}

export async function startFleet(settings: FleetSettings, size: number): Promise<Fleet> {
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

async function startApiProcess(settings: ApiSettings): Promise<Api> {
  const child = fork(script, [JSON.stringify(settings)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const events: TimedEvent[] = []
  const storeErrors: { at: number; code: string }[] = []
  const unhandled: string[] = []
  let breaker: BreakerState = 'closed'
  let isAway = false
  child.on('message', (message: FromApi) => {
    if (message.type === 'unhandled') unhandled.push(message.message)
    if (message.type === 'store-error') storeErrors.push(message)
    if (message.type !== 'event') return
    const { at, event } = message
    events.push({ at, event })
    if (event.type === 'breaker') breaker = event.state
    if (event.type === 'fallback-entered') isAway = true
    if (event.type === 'fallback-left') isAway = false
  })
  const { port } = await answer(child, 'listening')
  return {
    port,
    events,
    storeErrors,
    unhandled,
    get breaker() {
      return breaker
    },
    get isAway() {
      return isAway
    },
    async stepClock(clock, byMs) {
      const stepped = answer(child, 'stepped')
      tell(child, { type: 'step-clock', clock, byMs })
      await stepped
    },
    async report() {
      const reported = answer(child, 'report')
      tell(child, { type: 'report' })
      return (await reported).report
    },
    close: () => closeApi(child),
  }
}

async function closeApi(child: ChildProcess): Promise<boolean> {
  if (child.exitCode !== null || child.signalCode !== null) return false
  const exited = once(child, 'exit')
  tell(child, { type: 'close' })
  const startedAt = monotonicMs()
  const patience = setTimeout(() => child.kill('SIGKILL'), EXIT_TIMEOUT_MS)
  await exited
  clearTimeout(patience)
  return monotonicMs() - startedAt < EXIT_TIMEOUT_MS && child.exitCode === 0
}

function tell(child: ChildProcess, message: ToApi): void {
  if (child.connected) child.send(message)
}

/** The next message of a type; rejects when the process ends before, or takes too long. */
async function answer<Type extends FromApi['type']>(
  child: ChildProcess,
  type: Type,
): Promise<Extract<FromApi, { type: Type }>> {
  let found: Extract<FromApi, { type: Type }> | undefined
  const listen = (message: FromApi) => {
    if (message.type === type) found ??= message as Extract<FromApi, { type: Type }>
  }
  child.on('message', listen)
  try {
    await until(
      `an API process says '${type}'`,
      () => found !== undefined || child.exitCode !== null,
      { timeoutMs: START_TIMEOUT_MS },
    )
  } finally {
    child.off('message', listen)
  }
  if (found === undefined) throw new Error(`an API process ended before it said '${type}'`)
  return found
}

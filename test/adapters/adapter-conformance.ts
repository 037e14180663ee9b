import type { Server } from 'node:http'
import { afterEach, beforeEach, describe, onTestFinished, vi } from 'vitest'
import { type Answer, ask, type Question } from './ask.ts'
import type { AppSetup, Driver, Limits } from './drivers/driver.ts'

/** 2026-11-20T17:30:00.250Z, the moment of the contract's vectors. */
const nowMs = 1_795_195_800_250

interface Subject {
  readonly driver: Driver
  /** Starts an application that ends with the test. */
  start(setup: AppSetup): Promise<App>
  /** An application with one limit for everything. */
  limited(limits: Limits): Promise<App>
}

export interface App {
  readonly port: number
  readonly server: Server
  ask(path?: string, question?: Question): Promise<Answer>
  /** The statuses of several requests, one after the other. */
  statuses(count: number, path?: string, question?: Question): Promise<number[]>
}

export type Behaviour = (subject: Subject) => void

/** What every adapter must do, tried over real sockets. Only the clock is faked. */
export function describeAdapter(driver: Driver, behaviours: Readonly<Record<string, Behaviour>>) {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
  })
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })
  const subject: Subject = {
    driver,
    start: (setup) => startApp(driver, setup),
    limited: (limits) => startApp(driver, { limits: [limits] }),
  }
  for (const [name, behaviour] of Object.entries(behaviours)) {
    describe(`${driver.name}: ${name}`, () => behaviour(subject))
  }
}

export async function startApp(driver: Driver, setup: AppSetup): Promise<App> {
  const { port, server, close } = await driver.start(setup)
  onTestFinished(close)
  return {
    port,
    server,
    ask: (path, question) => ask(port, path, question),
    async statuses(count, path, question) {
      const statuses: number[] = []
      for (let i = 0; i < count; i += 1) statuses.push((await ask(port, path, question)).status)
      return statuses
    },
  }
}

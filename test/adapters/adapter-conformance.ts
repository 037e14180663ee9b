import type { Server } from 'node:http'
import { type AdapterSetup, adapterConformance, type ServedApp } from '@sluice/testing'
import { describe, it, onTestFinished } from 'vitest'
import { fakeTime } from '../support/fake-time.ts'
import { repeated } from '../support/in-turn.ts'
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

/** What every adapter must do, and more of ours, tried over real sockets. Only the clock is faked. */
export function describeAdapter(driver: Driver, behaviours: Readonly<Record<string, Behaviour>>) {
  const serve = (setup: AdapterSetup) => serveBy(driver, setup)
  describe(driver.name, () => adapterConformance({ describe, it, serve, waitMs: 15_000 }))
  describeBehaviours(driver, behaviours)
}

export function describeBehaviours(
  driver: Driver,
  behaviours: Readonly<Record<string, Behaviour>>,
): void {
  const subject: Subject = {
    driver,
    start: (setup) => startApp(driver, setup),
    limited: (limits) => startApp(driver, { limits: [limits] }),
  }
  for (const [name, behaviour] of Object.entries(behaviours)) {
    describe(`${driver.name}: ${name}`, () => {
      // The suite of `@sluice/testing` brings a clock of its own.
      fakeTime(['Date'], { now: nowMs })
      behaviour(subject)
    })
  }
}

async function serveBy(
  driver: Driver,
  { limits, handle, onError }: AdapterSetup,
): Promise<ServedApp> {
  let status = 200
  const reached = async () => {
    status = await handle()
  }
  const route = { path: '/', reached, answer: { status: () => status } }
  const { port, close } = await driver.start({ limits, routes: [route], onError })
  return { url: `http://127.0.0.1:${port}`, close }
}

export async function startApp(driver: Driver, setup: AppSetup): Promise<App> {
  const { port, server, close } = await driver.start(setup)
  onTestFinished(close)
  return {
    port,
    server,
    ask: (path, question) => ask(port, path, question),
    statuses: (count, path, question) =>
      repeated(count, async () => (await ask(port, path, question)).status),
  }
}

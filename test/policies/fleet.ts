import { bundledScript } from '../support/bundled-script.ts'
import { type Child, startChild } from '../support/child.ts'

const script = await bundledScript(new URL('./fleet-process.ts', import.meta.url))

/** A version that a process has in force, or that a change has made, and when. */
interface Changed {
  readonly version: string
  readonly at: number
}

/** What a process tells of itself. */
export interface FleetReport {
  readonly decided: number
  /** Limits of decisions by two versions at once. */
  readonly mixed: readonly unknown[]
  readonly used: readonly number[]
  readonly status: {
    readonly fleet: readonly { readonly version: string }[]
    readonly number: number
  }
}

export type FleetProtocol = {
  /** Resolves once it runs. */
  ready: { input: undefined; output: undefined }
  limit: { input: number; output: Changed }
  kill: { input: undefined; output: Changed }
  report: { input: undefined; output: FleetReport }
  /** Decides no more requests. */
  rest: { input: undefined; output: undefined }
}

export interface FleetTold extends Changed {
  readonly type: 'version' | 'refused'
}

/** One process of a fleet whose policies change. */
export class FleetProcess {
  readonly told: FleetTold[] = []
  readonly ask: Child<FleetProtocol>['ask']
  readonly kill: () => void

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const onTold = (told: FleetTold) => this.told.push(told)
    const child = startChild<FleetProtocol, FleetTold>(script, { args, env, onTold })
    this.ask = child.ask
    this.kill = child.stop
  }

  /** The number of the newest changes that it has in force. */
  get number(): number {
    return this.told.reduce((newest, { version }) => Math.max(newest, numberOf(version)), 0)
  }

  /** When it had changes in force, at least so new. */
  inForceAt(number: number): number | undefined {
    return this.told.find(({ type, version }) => type === 'version' && numberOf(version) >= number)
      ?.at
  }
}

export function numberOf(version: string): number {
  return Number(version.split('.')[1] ?? 0)
}

/** Starts processes, and waits until all of them run. */
export async function startFleet(
  argsOf: readonly (readonly string[])[],
  env?: NodeJS.ProcessEnv,
): Promise<FleetProcess[]> {
  const fleet = argsOf.map((args) => new FleetProcess(args, env))
  await Promise.all(fleet.map((each) => each.ask('ready', undefined)))
  return fleet
}

/** A file of two policies with one limit. `more` is added to the fields of each. */
export function both(limit: number, more = ''): string {
  const window = 'window: 1h, algorithm: fixed-window'
  const lines = ['one', 'other'].map(
    (name) => `  - { name: ${name}, limit: ${limit}, ${window}${more} }`,
  )
  return `policies:\n${lines.join('\n')}`
}

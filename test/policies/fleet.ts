import { bundledScript } from '../support/bundled-script.ts'
import { startChild } from '../support/child.ts'

const script = await bundledScript(new URL('./fleet-process.ts', import.meta.url))

export interface FleetReport {
  readonly decided: number
  /** Limits of decisions by two versions at once. */
  readonly mixed: readonly unknown[]
  readonly used: readonly number[]
  readonly status: { readonly fleet: readonly { version: string }[]; readonly number: number }
}

export type FleetProtocol = {
  /** Resolves once it runs. */
  ready: { input: undefined; output: undefined }
  limit: { input: number; output: { readonly version: string; readonly at: number } }
  report: { input: undefined; output: FleetReport }
  rest: { input: undefined; output: undefined }
}

/** A version that a process has in force, or refuses, and since when. */
export interface FleetTold {
  readonly type: 'version' | 'refused'
  readonly version: string
  readonly at: number
}

export function numberOf(version: string): number {
  return Number(version.split('.')[1] ?? 0)
}

/** Starts processes of a fleet whose policies change, and waits until all of them run. */
export async function startFleet(
  argsOf: readonly (readonly string[])[],
  env: NodeJS.ProcessEnv = {},
) {
  const fleet = argsOf.map((args) => {
    const told: FleetTold[] = []
    const onTold = (one: FleetTold) => void told.push(one)
    const child = startChild<FleetProtocol, FleetTold>(script, { args, env, onTold })
    return {
      ...{ told, ask: child.ask, kill: child.stop },
      /** The number of the newest changes that it has in force. */
      newest: () => Math.max(0, ...told.map(({ version }) => numberOf(version))),
      /** When it had changes in force, at least so new. */
      inForceAt: (number: number) =>
        told.find(({ type, version }) => type === 'version' && numberOf(version) >= number)?.at,
    }
  })
  await Promise.all(fleet.map((each) => each.ask('ready', undefined)))
  return fleet
}

export type FleetProcess = Awaited<ReturnType<typeof startFleet>>[number]

/** A file of two policies with one limit. `more` is added to the fields of each. */
export function both(limit: number, more = ''): string {
  const rest = `limit: ${limit}, window: 1h, algorithm: fixed-window${more}`
  return `policies:\n  - { name: one, ${rest} }\n  - { name: other, ${rest} }`
}

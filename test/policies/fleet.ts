import { type ChildProcess, fork } from 'node:child_process'
import { bundledScript } from '../support/bundled-script.ts'
import { until } from '../support/until.ts'

const script = await bundledScript(new URL('./fleet-process.ts', import.meta.url))

/** Something that a process has told, and when. */
export interface Message {
  readonly type: string
  readonly version?: string
  readonly message?: string
  readonly at: number
  readonly of?: number
  readonly decided?: number
  readonly mixed?: readonly unknown[]
  readonly used?: readonly number[]
  readonly status?: {
    readonly fleet: readonly { readonly version: string }[]
    readonly number: number
  }
}

/** One process of a fleet whose policies change. */
export class FleetProcess {
  readonly child: ChildProcess
  readonly told: Message[] = []
  #asked = 0

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.child = fork(script, args, {
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, ...env },
    })
    this.child.on('message', (message: Message) => this.told.push(message))
  }

  /** The number of the newest changes that it has in force. */
  get number(): number {
    return this.told.reduce((newest, { version = '' }) => Math.max(newest, numberOf(version)), 0)
  }

  async ready(): Promise<void> {
    await until('a process is ready', () => this.told.some(({ type }) => type === 'ready'), {
      timeoutMs: 60_000,
    })
  }

  /** Asks for something, and waits for the answer to it. */
  async ask(message: { readonly type: string; readonly limit?: number }): Promise<Message> {
    this.#asked += 1
    const of = this.#asked
    this.child.send({ ...message, of })
    await until(`an answer to ${message.type}`, () => this.told.some((each) => each.of === of))
    const answer = this.told.find((each) => each.of === of)
    if (!answer) throw new Error('no answer')
    return answer
  }

  /** When it had changes in force, at least so new. */
  inForceAt(number: number): number | undefined {
    return this.told.find(({ type, version = '' }) => {
      return type === 'version' && numberOf(version) >= number
    })?.at
  }

  kill(): void {
    this.child.kill('SIGKILL')
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
  await Promise.all(fleet.map((each) => each.ready()))
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

import { type ChildProcess, fork } from 'node:child_process'

export interface Protocol {
  readonly [op: string]: { readonly input: unknown; readonly output: unknown }
}

export interface Child<P extends Protocol> {
  readonly pid: number
  readonly process: ChildProcess
  /** The exit code, or nothing after a signal. */
  readonly ended: Promise<number | null>
  /** Rejects when the child fails at it, or ends. */
  ask<Op extends keyof P & string>(op: Op, input: P[Op]['input']): Promise<P[Op]['output']>
  stop(): void
}

interface Question {
  readonly number: number
  readonly op: string
  readonly input: unknown
}

/** The answer to a question; `error` when it failed. */
interface Answer {
  readonly number: number
  readonly output?: unknown
  readonly error?: string
}

export interface ChildOptions<Told> {
  /** Ends the child in any case. */
  readonly cleanups?: { add(task: () => unknown): void }
  readonly args?: readonly string[]
  /** For Node, besides those of this process. */
  readonly execArgv?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  readonly onTold?: (told: Told) => void
}

/**
 * Starts a module in a process of its own, so that its CPU and heap are its own. It ends with this process at the latest: the
 * channel between them closes.
 * @param module a source, which runs as this process does, or the path of a bundle
 */
export function startChild<P extends Protocol, Told = never>(
  module: URL | string,
  options: ChildOptions<Told>,
): Child<P> {
  const inherited = typeof module === 'string' ? [] : process.execArgv
  const child = fork(module, options.args ?? [], {
    execArgv: [...inherited, ...(options.execArgv ?? [])],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
    env: { ...process.env, ...options.env },
  })
  type Settle = { resolve(output: unknown): void; reject(error: Error): void }
  const waiting = new Map<number, Settle>()
  let number = 0

  child.on('message', (answer: Answer | { readonly told: Told }) => {
    if ('told' in answer) return options.onTold?.(answer.told)
    const { resolve, reject } = waiting.get(answer.number) ?? {}
    waiting.delete(answer.number)
    if (answer.error === undefined) resolve?.(answer.output)
    else reject?.(new Error(answer.error))
  })
  child.on('exit', (code, signal) => {
    for (const { reject } of waiting.values()) {
      reject(new Error(`the child process ended (${signal ?? `code ${code}`})`))
    }
    waiting.clear()
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const stop = (): void => void child.kill('SIGKILL')
  options.cleanups?.add(stop)

  return {
    pid: child.pid ?? 0,
    process: child,
    ended,
    stop,
    ask: (op, input) =>
      new Promise<unknown>((resolve, reject) => {
        number += 1
        waiting.set(number, { resolve, reject })
        const question: Question = { number, op, input }
        // Told here when it has ended, and not by an event that would end this process.
        child.send(question, (error) => {
          if (error) reject(error)
        })
      }),
  }
}

export type Answers<P extends Protocol> = {
  readonly [Op in keyof P]: (input: P[Op]['input']) => P[Op]['output'] | Promise<P[Op]['output']>
}

/** The other end: answers the questions of the process that started this one. */
export function answerParent<P extends Protocol>(answers: Answers<P>): void {
  process.on('message', async ({ number, op, input }: Question) => {
    const answer = await answerOf(answers, op, input)
    // A child that has left its parent answers nobody.
    if (process.connected) process.send?.({ number, ...answer })
  })
  process.on('disconnect', () => process.exit())
  // Ctrl-C reaches the whole group; the parent stops its children in order.
  process.on('SIGINT', () => undefined)
}

export function tellParent<Told>(told: Told): void {
  if (process.connected) process.send?.({ told })
}

/** From here on the parent keeps this process alive no longer, and does not end it either. */
export function leaveParent(): void {
  process.removeAllListeners('disconnect')
  process.disconnect()
}

async function answerOf<P extends Protocol>(
  answers: Answers<P>,
  op: keyof P,
  input: unknown,
): Promise<Omit<Answer, 'number'>> {
  try {
    const answer = answers[op]
    if (!answer) throw new Error(`no answer to '${String(op)}'`)
    return { output: await answer(input) }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

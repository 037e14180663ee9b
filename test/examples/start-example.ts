import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { readManifest, root } from '../support/workspace.ts'

export interface RunningExample {
  /** Resolves with all that was printed once a line matches; rejects when the example ends before. */
  printed(line: RegExp): Promise<string>
  /** Resolves with the exit code, and what was printed to the error stream. */
  ended(): Promise<{ code: number | null; errors: string }>
  stop(): Promise<void>
}

/** Starts an example as its script does, from the sources: in a fresh clone nothing is built. */
export function startExample(name: string, env: NodeJS.ProcessEnv): RunningExample {
  const folder = `examples/${name}`
  const [, ...args] = readManifest(folder).scripts?.start?.split(' ') ?? []
  return startNode(args, root + folder, env)
}

/** Starts an example that stops when the test is over. */
export function startInTest(name: string, env: NodeJS.ProcessEnv): RunningExample {
  const example = startExample(name, env)
  onTestFinished(() => example.stop())
  return example
}

/**
 * Starts a program from the sources. For `require` tsx would load a second copy of an ES module,
 * and so of Nest beside a CommonJS package that extends it.
 */
export function startScript(main: string, env: NodeJS.ProcessEnv): RunningExample {
  return startNode(['--conditions=@sluice/source', '--import', 'tsx/esm', main], root, env)
}

/** Starts Node in a folder, without a REDIS_URL of the surroundings. */
export function startNode(args: string[], cwd: string, env: NodeJS.ProcessEnv): RunningExample {
  const { REDIS_URL: _, ...inherited } = process.env
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = once(child, 'close')
  const output = { out: '', errors: '' }
  child.stdout.on('data', (data) => {
    output.out += data
  })
  child.stderr.on('data', (data) => {
    output.errors += data
  })
  return {
    printed: (line) => printed(child, line, output),
    async ended() {
      const [code] = await exit
      return { code, errors: output.errors }
    },
    async stop() {
      child.kill()
      await exit
    },
  }
}

async function printed(
  child: ChildProcess,
  line: RegExp,
  output: { out: string; errors: string },
): Promise<string> {
  const ended = once(child, 'close').then(() => 'ended' as const)
  while (!line.test(output.out)) {
    const more = once(child.stdout as NodeJS.ReadableStream, 'data')
    if ((await Promise.race([ended, more])) === 'ended') {
      throw new Error(`the example ended before it printed ${line}: ${output.errors}`)
    }
  }
  return output.out
}

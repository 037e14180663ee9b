import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'
import { bundledScript } from '../support/bundled-script.ts'
import { isProof } from '../support/scale.ts'
import { readManifest, root } from '../support/workspace.ts'

export interface RunningExample {
  /** Resolves with all that was printed once a line matches; rejects when the example ends before. */
  printed(line: RegExp): Promise<string>
  ended(): Promise<{ code: number | null; errors: string }>
  stop(): Promise<void>
}

/**
 * Starts an example from the sources: in a fresh clone nothing is built. Proofs start it as its script does, `npm test` starts a bundle
 * in a third of the time.
 */
export function startExample(name: string, env: NodeJS.ProcessEnv): RunningExample {
  const folder = `examples/${name}`
  const [, ...args] = readManifest(folder).scripts?.start?.split(' ') ?? []
  const cwd = root + folder
  if (isProof) return startNode(args, cwd, env)
  const main = pathToFileURL(`${cwd}/${args.at(-1)}`)
  return startNode(
    bundledScript(main).then((bundle) => [bundle]),
    cwd,
    env,
  )
}

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
export function startNode(
  args: readonly string[] | Promise<readonly string[]>,
  cwd: string,
  env: NodeJS.ProcessEnv,
): RunningExample {
  const started = Promise.resolve(args).then((known) => spawnNode(known, cwd, env))
  // Its failure reaches the first that waits for the example.
  started.catch(() => undefined)
  return {
    async printed(line) {
      return printed(await started, line)
    },
    async ended() {
      const { exit, output } = await started
      const [code] = await exit
      return { code, errors: output.errors }
    },
    async stop() {
      const { child, exit } = await started
      child.kill()
      await exit
    },
  }
}

type Started = ReturnType<typeof spawnNode>

function spawnNode(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
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
  return { child, exit, output }
}

async function printed({ child, exit, output }: Started, line: RegExp): Promise<string> {
  const ended = exit.then(() => 'ended' as const)
  while (!line.test(output.out)) {
    const more = once(child.stdout, 'data')
    if ((await Promise.race([ended, more])) === 'ended') {
      throw new Error(`the example ended before it printed ${line}: ${output.errors}`)
    }
  }
  return output.out
}

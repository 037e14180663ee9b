import { execFile } from 'node:child_process'

export interface RunOptions {
  cwd: string
  /** @default 120000 */
  timeoutMs?: number
}

/** Runs a program to its end and resolves to what it printed; rejects with all of its output when it fails. */
export function run(
  program: string,
  args: readonly string[],
  { cwd, timeoutMs = 120_000 }: RunOptions,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 }
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout)
      const reason = error.killed ? `did not end within ${timeoutMs} ms` : `failed (${error.code})`
      reject(new Error(`${[program, ...args].join(' ')} ${reason}\n${stdout}${stderr}`))
    })
    child.stdin?.end()
  })
}

import { runCli } from './commands/run-cli.ts'
import type { Terminal } from './terminal/terminal.ts'

// The command `sluice`.
process.exitCode = await runCli(process.argv.slice(2), processTerminal())

function processTerminal(): Terminal {
  const { stdin, stdout, stderr, env } = process
  let signal: AbortSignal | undefined
  // `sluice … | head` closes the pipe: nobody reads the rest.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
  return {
    ...{ stdin, stdout, stderr, env },
    get signal() {
      signal ??= interrupted()
      return signal
    },
  }
}

/** Aborted by the first Ctrl-C. The second one ends the process, as usual. */
function interrupted(): AbortSignal {
  const abort = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => abort.abort())
  return abort.signal
}

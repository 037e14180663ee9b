import { createInterface } from 'node:readline/promises'
import { Readable, Writable } from 'node:stream'
import { CliError, exitCodes } from './exit-codes.ts'
import type { Terminal } from './terminal.ts'

export function canAsk({ stdin, stderr }: Terminal): boolean {
  return stdin.isTTY === true && stderr.isTTY === true && stdin instanceof Readable
}

/** Asks for a secret, which is not shown. @throws CliError if nothing was typed */
export async function askSecret(terminal: Terminal, question: string): Promise<string> {
  terminal.stderr.write(question)
  const typed = await readLine(terminal, '', () => undefined)
  terminal.stderr.write('\n')
  if (typed !== '') return typed
  throw new CliError('Nothing was typed.', exitCodes.usage)
}

/** Asks for a yes. Anything else is a no. */
export async function askYes(terminal: Terminal, question: string): Promise<boolean> {
  const typed = await readLine(terminal, `${question} [y/N] `, (text) =>
    terminal.stderr.write(text),
  )
  return /^y(?:es)?$/i.test(typed)
}

/** @param show receives the prompt and the typed text */
async function readLine(
  { stdin }: Terminal,
  prompt: string,
  show: (text: string) => unknown,
): Promise<string> {
  // Readline hides the input through the terminal's raw mode.
  if (!(stdin instanceof Readable)) throw new CliError('A prompt needs a terminal.')
  const output = new Writable({
    write(chunk, _encoding, done) {
      show(String(chunk))
      done()
    },
  })
  const lines = createInterface({ input: stdin, output, terminal: true })
  const stopped = new AbortController()
  lines.on('SIGINT', () => stopped.abort())
  try {
    return (await lines.question(prompt, { signal: stopped.signal })).trim()
  } catch (cause) {
    throw new CliError('Stopped.', exitCodes.usage, { cause })
  } finally {
    lines.close()
  }
}

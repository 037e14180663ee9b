import { styleText } from 'node:util'
import type { Output, Terminal } from './terminal.ts'

type Format = Parameters<typeof styleText>[0]

export type Style = (format: Format, text: string) => string

/**
 * The style of an output: colours on a terminal. `NO_COLOR` disables them, `FORCE_COLOR` enables
 * them in a pipe.
 */
export function styleOf(output: Output, { env }: Pick<Terminal, 'env'>): Style {
  return hasColour(output, env)
    ? (format, text) => styleText(format, text, { validateStream: false })
    : (_, text) => text
}

function hasColour(output: Output, env: Terminal['env']): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env
  if (NO_COLOR) return false
  if (FORCE_COLOR) return FORCE_COLOR !== '0'
  return output.isTTY === true && TERM !== 'dumb'
}

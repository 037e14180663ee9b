import { text } from 'node:stream/consumers'
import { onOneLine } from '@sluice/core'
import { durationText } from '../report/formats.ts'
import { CliError } from '../terminal/exit-codes.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Cell, table } from '../terminal/text.ts'
import type { KeyAction, Lookup } from './answers.ts'

export const keyNotes = `A key has the syntax of the admin API: user ada, ip 203.0.113.9, tenant acme, user ada for a combined
key, or (not to raise) a digest. Use - to read a secret key from stdin.`

export async function keyOf(terminal: Terminal, words: readonly string[]): Promise<string> {
  const isFromStdin = words.length === 1 && words[0] === '-'
  const key = (isFromStdin ? await text(terminal.stdin) : words.join(' ')).trim()
  if (key !== '') return key
  throw new CliError('The key is empty. Enter one, such as: user ada')
}

export function describeLookup(found: Lookup, terminal: Terminal): string {
  const style = styleOf(terminal.stdout, terminal)
  const name = found.name === undefined ? found.digest : `${found.name} (${found.digest})`
  const heading = `${style('bold', onOneLine(name))}${found.found ? '' : ': nothing counted now'}\n`
  const heads = ['POLICY', 'STATE', '>USED', '>LIMIT', '>RESET', '>RETRY', 'DENIED 1m/10m/1h']
  const otherwise = found.isAway ? '–' : 'depends on the request'
  const rows = found.policies.map((each) => rowOf(each, otherwise))
  const lines = table(heads, rows, style)
  return `${heading}${noteLine(found.note)}\n${lines.join('\n')}\n`
}

function rowOf(state: Lookup['policies'][number], otherwise: string): readonly Cell[] {
  const { policy, isPenalty, mode, allowed, limit, used, resetMs, retryAfterMs, denied } = state
  const { capacity, refillMs } = state
  // A bucket has a capacity; its limit is the refill per window.
  const shownLimit =
    refillMs === undefined
      ? String(limit ?? otherwise)
      : `${capacity}, +${limit} in ${durationText(refillMs)}`
  const shadow = mode === 'shadow' ? ' in shadow' : ''
  const spans = ['1m', '10m', '1h'].map((span) => denied[span] ?? '–').join(' / ')
  const retry = retryAfterMs === undefined ? 'never' : durationText(retryAfterMs)
  const [stateCell, retryCell]: readonly [Cell, string] =
    allowed === undefined
      ? [`unknown${shadow}`, '']
      : allowed
        ? [[`allowed${shadow}`, 'green'], '']
        : [[`${isPenalty ? 'blocked' : 'denied'}${shadow}`, 'red'], retry]
  const reset = resetMs === undefined || refillMs !== undefined ? '–' : durationText(resetMs)
  return [policy, stateCell, String(used ?? '–'), shownLimit, reset, retryCell, spans]
}

/** Formats the response for a key as typed; a key from stdin is secret. */
type Describe = (action: KeyAction, terminal: Terminal, typed: string) => string

/** Formats a response; `would` is for a dry run. */
export function actionText(would: string, did: string, nothing: string): Describe {
  return ({ digest, found, dryRun, note, policies }, terminal, typed) => {
    const name = ['-', digest].includes(typed) ? digest : `${typed} (${digest})`
    const heading = styleOf(terminal.stdout, terminal)('bold', onOneLine(name))
    if (!found) return `${heading}: ${nothing}\n${noteLine(note)}`
    const lines = policies
      .filter((policy) => policy.found || policy.until !== undefined)
      .map(({ policy, until }) => {
        const end = until === undefined ? '' : ` until ${new Date(until).toISOString()}`
        return `  ${onOneLine(policy)}${end}\n`
      })
    return `${heading}: ${dryRun ? would : did}\n${lines.join('')}${noteLine(note)}`
  }
}

function noteLine(note: string | undefined): string {
  return note === undefined ? '' : `note: ${onOneLine(note)}\n`
}

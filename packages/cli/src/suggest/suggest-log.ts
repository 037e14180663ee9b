import { isPromise } from '@sluice/core'
import { resolveKey } from '@sluice/http'
import { readLogs } from '../input/log-options.ts'
import type { LogOptions } from '../input/log-reader.ts'
import { namedKey } from '../replay/named-code.ts'
import type { BusyClient } from '../report/simulation-report.ts'
import { ClientTable } from '../simulate/client-tally.ts'
import { notesOn, wholeSeconds } from '../simulate/replay-logs.ts'
import { CliError } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { Guesses } from './guesses.ts'
import { pairsFor, type Suggestion } from './suggestion.ts'

export interface SuggestOptions extends LogOptions {
  /** `ip`, or a named key: `tenant=header:x-tenant`. */
  readonly by: string
  /** Percentage of identities, such as `0.1%`. */
  readonly touch: string
}

const enoughIdentities = 1_000
/** A day's log starts and ends with requests, not at midnight. */
const enoughMs = 23 * 3_600_000
/** A larger share of all requests is more likely a proxy than a client. */
const suspectShare = 0.5
const tooMany = 429
const maxListed = 50

/**
 * Finds limits that fit the clients in logs.
 * @throws CliError if a file cannot be read, or the log has no requests
 */
export async function suggestFrom(
  terminal: Terminal,
  files: readonly string[],
  options: SuggestOptions,
): Promise<Suggestion> {
  const maxTouched = shareOf(options.touch)
  const { name: key, resolver } = namedKey(options.by, '--by')
  const clients = new ClientTable()
  const guesses = new Guesses()
  const seen = { isWholeSeconds: true, refused: 0, keyless: 0, unlisted: 0 }
  const log = await readLogs(terminal, { files, options }, async (pieces) => {
    for await (const piece of pieces) {
      for (const request of piece) {
        if (request.loggedMs % 1_000 !== 0) seen.isWholeSeconds = false
        if (request.status === tooMany) seen.refused += 1
        const identity = resolveKey(resolver, request, request)
        if (identity === undefined || isPromise(identity)) {
          seen.keyless += 1
          continue
        }
        const client = clients.request(identity, request.startMs)
        if (client === undefined) seen.unlisted += 1
        else guesses.add(identity, client, request)
      }
    }
  })
  if (clients.size === 0) {
    throw new CliError(`no request of the log has the key ${options.by}; try another --by`)
  }
  const { isWholeSeconds } = seen
  const guessing = guesses.found()
  const guessers = guessing.map(({ number }) => number)
  const found = pairsFor(clients, { maxTouched, isWholeSeconds, guessers })
  const most = busiestOf(clients.named())
  return {
    kind: 'sluice-suggestion',
    version: 1,
    ...{ log, key, identities: clients.size, maxTouched },
    ...found,
    guesses: guessing.slice(0, maxListed).map(({ client, route, refused }) => {
      return { client, route, refused }
    }),
    warnings: [
      ...(clients.size < enoughIdentities
        ? [
            `only ${clients.size} identities: with fewer than ${enoughIdentities}, the highest rates come from single clients`,
          ]
        : []),
      ...(log.toMs - log.fromMs < enoughMs
        ? ['the log is shorter than a day, and may not include the busiest hour']
        : []),
      ...(most && most.requests > log.requests * suspectShare
        ? [
            `${most.client} has more than half of all requests: if it is a proxy, name it with --trust-proxy`,
          ]
        : []),
      ...(isWholeSeconds
        ? [`${wholeSeconds}, so bursts are measured over 10 s; log $msec for shorter ones`]
        : []),
      ...notesOn({
        'requests were already answered with 429: a limit was enforced, and the figures show only admitted requests':
          seen.refused,
        'requests have no key and are left out': seen.keyless,
        'requests of identities beyond a million are left out': seen.unlisted,
      }),
    ],
  }
}

function busiestOf(clients: Iterable<BusyClient>): BusyClient | undefined {
  let most: BusyClient | undefined
  for (const client of clients) if (client.requests > (most?.requests ?? 0)) most = client
  return most
}

function shareOf(text: string): number {
  const percent = /^(\d+(?:\.\d+)?) ?%?$/.exec(text)?.[1]
  const share = Number(percent ?? Number.NaN) / 100
  if (share >= 0 && share <= 0.5) return share
  throw new CliError(
    `--touch ${text} must be a share of the identities from 0% to 50%, such as 0.1%`,
  )
}

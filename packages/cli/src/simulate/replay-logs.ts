import { algorithmOf } from '@sluice/core/backend'
import { readLogs } from '../input/log-options.ts'
import type { LogOptions } from '../input/log-reader.ts'
import type { Replay, Replayed } from '../replay/replay.ts'
import type { ReplayOptions } from '../replay/replay-options.ts'
import type { LogReport } from '../report/simulation-report.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Status of a request that was already rate limited. */
const tooMany = 429
/** Windows too short for times in whole seconds. */
const coarseWindowMs = 10_000

export type ReplayLogsOptions = LogOptions & ReplayOptions

interface Replaying {
  readonly replay: Replay
  readonly files: readonly string[]
  readonly options: ReplayLogsOptions
}

/**
 * Replays logs against a policy file.
 * @returns the log, and notes on missing values
 * @throws CliError if a file cannot be read, or the log has no requests
 */
export async function replayLogs(
  terminal: Terminal,
  { replay, files, options }: Replaying,
  onReplayed: (replayed: Replayed) => void,
): Promise<{ readonly log: LogReport; readonly notes: readonly string[] }> {
  const about = new LogNotes()
  const log = await readLogs(terminal, { files, options }, (pieces) =>
    replay.run(pieces, (replayed) => {
      about.see(replayed)
      onReplayed(replayed)
    }),
  )
  return { log, notes: about.notes(log, replay) }
}

class LogNotes {
  #requests = 0
  #refusedBefore = 0
  #withDuration = 0
  #withoutAddress = 0
  #isWholeSeconds = true
  #preflights = 0

  see({ request }: Replayed): void {
    this.#requests += 1
    if (request.status === tooMany) this.#refusedBefore += 1
    if (request.durationMs !== undefined) this.#withDuration += 1
    if (request.ip === undefined) this.#withoutAddress += 1
    if (request.loggedMs % 1_000 !== 0) this.#isWholeSeconds = false
    if (request.method === 'OPTIONS') this.#preflights += 1
  }

  notes({ late }: LogReport, { policies, notes }: Replay): readonly string[] {
    const short = policies.find(({ windowMs }) => windowMs < coarseWindowMs)
    const counts = policies.find((policy) => algorithmOf(policy).counts === 'leases')
    return [
      ...notes,
      ...(this.#isWholeSeconds && short
        ? [
            `${wholeSeconds}, so '${short.name}' sees the requests of a second as one burst; log $msec for exact times`,
          ]
        : []),
      ...notesOn({
        [`requests have no duration, so '${counts?.name}' assumes that they end at once; log $request_time`]:
          counts ? this.#requests - this.#withDuration : 0,
        'requests were already answered with 429, so a limit was enforced when the log was written':
          this.#refusedBefore,
        'requests have no address': this.#withoutAddress,
        "OPTIONS requests were counted; preflights among them are not counted where CORS middleware runs before the limiter, or with preflights: 'pass'":
          this.#preflights,
        'requests were more out of order than --order-window, and moved to their place': late,
      }),
    ]
  }
}

export const wholeSeconds = "the log's timestamps are whole seconds"

/** Notes on numbers of requests, except zero. */
export function notesOn(requests: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(requests).flatMap(([what, count]) =>
    count > 0 ? [`${count} ${what}`] : [],
  )
}

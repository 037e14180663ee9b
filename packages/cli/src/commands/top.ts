import { durationMs, errorText, sleep } from '@sluice/core'
import { Option } from 'commander'
import { AdminApi, type FleetOptions, fleetNotes, fleetOptions } from '../admin-api/admin-api.ts'
import { type Live, liveAnswer, nearAnswer, type Top, topAnswer } from '../admin-api/answers.ts'
import { countText, durationText, shareText } from '../report/formats.ts'
import { CliError, type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { type Style, styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { cutMiddle, jsonText, table } from '../terminal/text.ts'
import type { CliCommand } from './command.ts'

interface TopOptions extends FleetOptions {
  readonly by: 'denied' | 'asked' | 'cost'
  readonly window: string
  readonly policy?: string
  readonly most: string
  readonly interval: string
  readonly once?: true
  readonly near?: true
}

export const top: CliCommand = {
  usage: 'top',
  summary: 'Show the busiest keys, live',
  notes: `On a terminal, the table refreshes until Ctrl-C; in a pipe, and with --once, it is printed once.
Keys are digests, unless collectMetrics({ reveal }) names them. Requests cover all processes in the answer.
${fleetNotes}\nRequires the role read.`,
  examples: [
    ['sluice top', 'the most denied keys of the last minute'],
    ['sluice top --by asked --window 1h --once', 'the busiest keys of the last hour, printed once'],
    ['sluice top --json | jq .lists', 'as JSON'],
  ],
  setUp(command) {
    fleetOptions(command)
      .addOption(
        new Option('--by <what>', 'what is counted')
          .choices(['denied', 'asked', 'cost'])
          .default('denied'),
      )
      .addOption(
        new Option('--window <span>', 'how far back').choices(['1m', '10m', '1h']).default('1m'),
      )
      .option('--policy <name>', 'only one policy (default: all)')
      .option('--most <n>', 'keys of each policy, 1 to 100', '20')
      .option('--interval <duration>', 'refresh interval, 1s or more', '2s')
      .option('--once', 'print one table and exit')
      .option('--near', 'the identities nearest to a limit, once')
  },
  run: runTop,
}

const shortestIntervalMs = 1_000
/** Clears the screen, and moves the cursor home. */
const clear = '\u001b[H\u001b[J'
const hideCursor = '\u001b[?25l'
const showCursor = '\u001b[?25h'

async function runTop(terminal: Terminal, options: TopOptions): Promise<ExitCode> {
  const { stdout, signal } = terminal
  const intervalMs = durationMs(options.interval, '--interval')
  if (intervalMs < shortestIntervalMs) throw new CliError('--interval must be 1s or more')
  const api = new AdminApi(terminal, options)
  if (options.near) return showNear(api, terminal, options)
  if (options.json) {
    stdout.write(jsonText(await lookAt(api, options)))
    return exitCodes.ok
  }
  const first = await lookAt(api, options)
  if (options.once || stdout.isTTY !== true) {
    stdout.write(screen(terminal, api.host, [first]))
    return exitCodes.ok
  }
  stdout.write(hideCursor)
  try {
    await showLive()
  } finally {
    stdout.write(showCursor)
  }
  return exitCodes.ok

  async function showLive(): Promise<void> {
    let [before, now]: [Look | undefined, Look] = [undefined, first]
    let trouble = ''
    while (!signal.aborted) {
      stdout.write(`${clear}${screen(terminal, api.host, [now, before])}${trouble}`)
      await sleep(intervalMs, signal)
      if (signal.aborted) return
      try {
        ;[before, now] = [now, await lookAt(api, options)]
        trouble = ''
      } catch (error) {
        if (!(error instanceof CliError) || error.exitCode !== exitCodes.failed) throw error
        const age = durationText(Date.now() - now.at)
        trouble = `${styleOf(stdout, terminal)('red', errorText(error))} The table is ${age} old.\n`
      }
    }
  }
}

async function showNear(
  api: AdminApi,
  terminal: Terminal,
  { json }: TopOptions,
): Promise<ExitCode> {
  const { body } = await api.ask('near', { answer: nearAnswer })
  const lines = table(
    ['>OF USUAL LIMIT', '>DENIED IN 1H', 'POLICY', 'KEY'],
    body.identities.map(({ policy, mode, digest, name, denied, share }) => [
      share === undefined ? '–' : shareText(share, 1),
      countText(denied),
      nameOf(policy, mode),
      name ?? digest,
    ]),
    styleOf(terminal.stdout, terminal),
  )
  terminal.stdout.write(json ? jsonText(body) : `${lines.join('\n')}\n`)
  return exitCodes.ok
}

interface Look {
  /** Time of the snapshot, in ms since 1970. */
  readonly at: number
  readonly live: Live
  readonly top: Top
}

async function lookAt(api: AdminApi, options: TopOptions): Promise<Look> {
  const { by, window, policy, most } = options
  const query = new URLSearchParams({ by, window, most, ...(policy !== undefined && { policy }) })
  const [live, top] = [
    await api.ask('live', { answer: liveAnswer }),
    await api.ask(`top?${query}`, { answer: topAnswer }),
  ]
  return { at: Date.now(), live: live.body, top: top.body }
}

/** Screen lines other than keys, including one for problems. */
const otherLines = 7

function screen(
  { stdout, ...terminal }: Terminal,
  host: string,
  [{ live, top }, before]: readonly [now: Look, before?: Look | undefined],
): string {
  const style = styleOf(stdout, terminal)
  const rows = top.lists
    .flatMap(({ keys, ...list }) => keys.map((key) => ({ ...list, ...key })))
    .toSorted(
      (one, other) =>
        Number(one.mode === 'shadow') - Number(other.mode === 'shadow') || other.count - one.count,
    )
  const { columns = Number.POSITIVE_INFINITY, rows: height = Number.POSITIVE_INFINITY } = stdout
  const alarm = state(live, style)
  const shown = rows.slice(0, Math.max(1, height - otherLines - alarm.length))
  const room = columns - numbersWidth
  const names = shown.map(({ policy, mode }) =>
    nameOf(cutMiddle(policy, Math.max(12, room / 2)), mode),
  )
  const keyWidth = Math.max(12, room - Math.max(...names.map(({ length }) => length)))
  const lines = table(
    [`>${top.by.toUpperCase()}`, '>± UP TO', '>SHARE', 'POLICY', 'KEY'],
    shown.map(({ total, digest, name, count, error }, index) => [
      ...[countText(count), countText(error), shareText(count, total)],
      ...[names[index] ?? '', cutMiddle(name ?? digest, keyWidth)],
    ]),
    style,
  )
  const rest = rows.length - shown.length
  return [
    `${style('bold', host)}  ${rates(live, before?.live)}`,
    ...alarm,
    `Keys by ${top.by} in ${top.window}, of ${live.processes} process${live.processes === 1 ? '' : 'es'}`,
    ...['', ...lines],
    ...(rows.length === 0 ? ['No keys in this time.'] : []),
    ...(rest > 0 ? [`and ${rest} more`] : []),
    '',
  ].join('\n')
}

/** Width of the number columns, including the space after each. */
const numbersWidth = 28

function nameOf(policy: string, mode: string): string {
  return mode === 'shadow' ? `${policy} (shadow)` : policy
}

/** Requests and refusals per second; the first snapshot has those since the process started. */
function rates(live: Live, before: Live | undefined): string {
  const isSame = before?.instance === live.instance && live.at > before.at
  const [requests, denied] = totalsOf(live)
  if (!before || !isSame) {
    const age = durationText(Math.max(0, live.at - live.since))
    return `${countText(requests)} requests, ${countText(denied)} denied in the last ${age}`
  }
  const [requestsBefore, deniedBefore] = totalsOf(before)
  const seconds = (live.at - before.at) / 1_000
  // Counts of a process that is gone are lost.
  const rate = (grown: number) => Number((Math.max(0, grown) / seconds).toPrecision(3))
  return `${rate(requests - requestsBefore)} requests/s, ${rate(denied - deniedBefore)} denied/s`
}

/** Requests and refusals, counted as on the admin page. */
function totalsOf({ requests }: Live): readonly [requests: number, denied: number] {
  const { denied = 0, shed = 0, failed_closed: failedClosed = 0 } = requests
  const all = Object.values(requests).reduce((sum, count) => sum + count, 0)
  return [all, denied + shed + failedClosed]
}

function state({ store }: Live, style: Style): readonly string[] {
  if (!store.fallback && store.breaker === 'closed') return []
  const text = `The store does not answer (breaker ${store.breaker}): failure modes decide.`
  return [style('red', text)]
}

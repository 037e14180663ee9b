import { boundOf, DiffTally, type PolicyDiff } from '../diff/policy-diff.ts'
import { addLogOptions, logNotes, unreadableSection } from '../input/log-options.ts'
import { openReplay, type Replayed } from '../replay/replay.ts'
import { addReplayOptions, listed } from '../replay/replay-options.ts'
import type { Column } from '../report/columns.ts'
import { countText, shareText } from '../report/formats.ts'
import { type ReplayLogsOptions, replayLogs } from '../simulate/replay-logs.ts'
import { CliError, type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { type Style, styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { columnTable, jsonText, section, table } from '../terminal/text.ts'
import type { CliCommand } from './command.ts'

interface Options extends ReplayLogsOptions {
  readonly log: readonly string[]
  readonly failIf: readonly string[]
  readonly json?: boolean
}

const listedClients = 10

export const diff: CliCommand = {
  usage: 'diff <old> <new>',
  summary: 'Compare two policy files on access logs: what a change would do',
  notes: `--fail-if bounds the changes by the new file: denied (newly refused requests), clients (clients that had
no refusal before), allowed (newly allowed requests). A bound is a number, or a percentage of all with %.
Exits with 1 if a bound is exceeded.

${logNotes}`,
  examples: [
    ['sluice diff sluice.yaml new.yaml --log access.log', 'requests and clients that change sides'],
    [
      `sluice diff old.yaml new.yaml --log access.log --fail-if 'clients>20' --fail-if 'denied>0.1%'`,
      'for CI: exits with 1 if the change refuses too many',
    ],
  ],
  setUp(command) {
    const withLog = command.requiredOption('--log <files...>', 'access logs')
    addReplayOptions(addLogOptions(withLog))
      .option('--fail-if <bound>', 'exit with 1 beyond it: clients>20, denied>0.1%', listed, [])
      .option('--json', 'print the result as JSON')
  },
  run: diffPolicies,
}

async function diffPolicies(
  terminal: Terminal,
  oldFile: string,
  newFile: string,
  options: Options,
): Promise<ExitCode> {
  const bounds = options.failIf.map(boundOf)
  if (options.log.includes('-')) {
    throw new CliError('the log is read twice, so it cannot be standard input; pass a file')
  }
  const tally = new DiffTally()
  const replay = async (policyFile: string, see: (replayed: Replayed) => void) => {
    const opened = await openReplay(policyFile, options)
    return replayLogs(terminal, { replay: opened, files: options.log, options }, see)
  }
  const before = await replay(oldFile, (each) => tally.before(each))
  const after = await replay(newFile, (each) => tally.after(each))
  const found = tally.diff
  const judged = bounds.map((bound) => ({ bound: bound.text, ...bound.judge(found) }))
  const notes = [...new Set([...before.notes, ...after.notes])]
  const { stdout } = terminal
  const style = styleOf(stdout, terminal)
  stdout.write(
    options.json
      ? jsonText({ ...found, old: oldFile, new: newFile, log: after.log, bounds: judged, notes })
      : [
          ...textLines(found, [oldFile, newFile], style),
          ...unreadableSection(after.log, style),
          ...section(
            style('bold', 'What the log does not tell you'),
            notes.map((note) => `- ${note}`),
          ),
          ...(judged.length > 0 ? [''] : []),
          ...judged.map(({ bound, found: value, isExceeded }) =>
            isExceeded
              ? style('red', `exceeded: ${bound} (${value})`)
              : style('green', `within bound: ${bound} (${value})`),
          ),
          '',
        ].join('\n'),
  )
  return judged.some(({ isExceeded }) => isExceeded) ? exitCodes.found : exitCodes.ok
}

function textLines(found: PolicyDiff, files: readonly string[], style: Style): readonly string[] {
  const { requests, clients } = found
  const row = (what: string, denied: number, clientsOfThem?: number) => [
    what,
    partText(denied, requests),
    clientsOfThem === undefined ? '' : partText(clientsOfThem, clients),
  ]
  const heldBack = [
    row('not sent before', found.heldBackBefore),
    row('not sent after', found.heldBackAfter),
  ]
  return [
    style(
      'bold',
      `${files.join(' → ')} on ${countText(requests)} requests from ${countText(clients)} clients`,
    ),
    ...table(
      ['', '>requests', '>clients'],
      [
        row('newly refused', found.newlyDenied, found.clientsNewlyDenied),
        row('newly allowed', found.newlyAllowed, found.clientsNewlyAllowed),
        row('refused before', found.deniedBefore),
        row('refused after', found.deniedAfter),
        ...(found.heldBackBefore + found.heldBackAfter > 0 ? heldBack : []),
      ],
    ),
    ...section(
      style('bold', 'Clients refused more than before'),
      found.mostDenied.length > 0
        ? columnTable(changeColumns, found.mostDenied.slice(0, listedClients))
        : [],
    ),
  ]
}

const changeColumns: readonly Column<PolicyDiff['mostDenied'][number]>[] = [
  ['client', ({ client }) => client],
  ['>before', ({ deniedBefore }) => countText(deniedBefore)],
  ['>after', ({ deniedAfter }) => countText(deniedAfter)],
]

function partText(count: number, all: number): string {
  return `${countText(count)} (${shareText(count, all)})`
}

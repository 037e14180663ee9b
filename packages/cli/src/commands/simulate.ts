import { access, constants, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { addLogOptions, logNotes } from '../input/log-options.ts'
import { openReplay } from '../replay/replay.ts'
import { addReplayOptions } from '../replay/replay-options.ts'
import { htmlReport } from '../report/html-report.ts'
import { DecisionFile } from '../simulate/decision-file.ts'
import { type ReplayLogsOptions, replayLogs } from '../simulate/replay-logs.ts'
import { Simulation } from '../simulate/simulation.ts'
import { textReport } from '../simulate/text-report.ts'
import { type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { checkOutputs, withFile } from '../terminal/files.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { jsonText, wrapped } from '../terminal/text.ts'
import type { CliCommand } from './command.ts'

interface Options extends ReplayLogsOptions {
  readonly policies: string
  readonly decisions?: string
  readonly json?: boolean
  readonly html?: string
  readonly force?: boolean
}

export const simulate: CliCommand = {
  usage: 'simulate [logs...]',
  summary: 'Replay access logs against a policy file: who would have been refused',
  notes: logNotes,
  examples: [
    [
      'sluice simulate access.log --policies sluice.yaml',
      'the requests and clients it would refuse',
    ],
    [
      'sluice simulate access.log.2.gz access.log.1 -p sluice.yaml --clients obedient',
      'compressed and split logs, with clients that obey Retry-After',
    ],
    [
      `sluice simulate app.log -p sluice.yaml --format pino-http --key tenant=header:x-tenant --json`,
      'JSON lines, a key from a header, and the result as JSON',
    ],
    [
      'sluice simulate access.log -p sluice.yaml --html report.html',
      'an interactive page: move the limit to see who would be refused',
    ],
  ],
  setUp(command) {
    command.requiredOption('-p, --policies <file>', 'policy file')
    addReplayOptions(addLogOptions(command))
      .option(
        '--decisions <file>',
        'write the decision of each policy on each request, as JSON lines',
      )
      .option('--json', 'print the result as JSON')
      .option('--html <file>', 'write a report with a slider that moves the limit')
      .option('--force', 'overwrite the files of --decisions and --html')
  },
  run: simulateFiles,
}

async function simulateFiles(
  terminal: Terminal,
  files: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const { stdout, stderr } = terminal
  const { html, decisions: path, policies: policyFile, clients } = options
  // Before reading the log, which may take minutes.
  if (html !== undefined)
    await withFile(html, 'written', () => access(dirname(html), constants.W_OK))
  checkOutputs({ '--html': html, '--decisions': path }, [...files, policyFile], options)
  const replay = await openReplay(policyFile, options)
  const simulation = new Simulation(replay.policies)
  const decisions = path === undefined ? undefined : new DecisionFile(path)
  const about = await replayLogs(terminal, { replay, files, options }, (replayed) => {
    decisions?.add(replayed)
    simulation.add(replayed)
  })
  decisions?.close()
  const report = simulation.report({ policyFile, clients, ...about })
  stdout.write(
    options.json
      ? jsonText(report)
      : wrapped(textReport(report, styleOf(stdout, terminal)), stdout),
  )
  if (html !== undefined) {
    await withFile(html, 'written', () => writeFile(html, htmlReport(report)))
    stderr.write(`Wrote the report to ${html}\n`)
  }
  return exitCodes.ok
}

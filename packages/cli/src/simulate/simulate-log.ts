import { type LogCommandOptions, openLog, readAll } from '../input/log-options.ts'
import { openReplay } from '../replay/replay.ts'
import { type ReplayCommandOptions, replayOptionsOf } from '../replay/replay-options.ts'
import type { LogReport, SimulationReport } from '../report/simulation-report.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { DecisionFile } from './decision-file.ts'
import { notesOf } from './notes.ts'
import { Simulation } from './simulation.ts'

export type SimulateOptions = LogCommandOptions &
  ReplayCommandOptions & { readonly decisions?: string }

/**
 * Replays logs against a policy file.
 * @throws CliError when a file cannot be read, or the log has no requests
 */
export async function simulateLog(
  terminal: Terminal,
  { files, policyFile }: { readonly files: readonly string[]; readonly policyFile: string },
  options: SimulateOptions,
): Promise<SimulationReport> {
  const replay = await openReplay(replayOptionsOf(policyFile, options))
  const simulation = new Simulation(replay.policies)
  const about = notesOf(replay)
  const decisions =
    options.decisions === undefined ? undefined : new DecisionFile(options.decisions)
  const log: LogReport = await readAll(openLog(terminal, files, options), options, (pieces) =>
    replay.run(pieces, (replayed) => {
      about.see(replayed)
      decisions?.add(replayed)
      simulation.add(replayed)
    }),
  )
  decisions?.close()
  return simulation.report({ policyFile, clients: options.clients, log, notes: about.notes(log) })
}

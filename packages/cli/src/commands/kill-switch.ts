import { type ActOptions, act, actOptions } from '../admin-api/act.ts'
import { AdminApi, fleetNotes } from '../admin-api/admin-api.ts'
import { changeAnswer, policiesAnswer } from '../admin-api/answers.ts'
import { describeChange } from '../admin-api/changes.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { CliCommand } from './command.ts'

const notes = `Takes effect in the whole fleet within a second, and no request loses its count.
${fleetNotes}\nRequires the role policies.`

export const off: CliCommand = killSwitch('off', {
  usage: 'off',
  summary: 'Let everything pass: no limit applies, and nothing is counted',
  examples: [['sluice off --reason "the limits refuse customers"', 'asks, then lets all pass']],
})

export const shadow: CliCommand = killSwitch('shadow', {
  usage: 'shadow',
  summary: 'Count only: all limits count and report, but refuse nothing',
  examples: [['sluice shadow --reason "a look at the new limits" --yes', 'unasked']],
})

export const on: CliCommand = killSwitch('none', {
  usage: 'on',
  summary: 'Enforce the limits again, after off or shadow',
  examples: [['sluice on --reason "the file is fixed"', 'asks, then enforces them']],
})

function killSwitch(kill: 'off' | 'shadow' | 'none', words: Omit<CliCommand, 'run'>): CliCommand {
  return {
    ...{ ...words, notes, setUp: actOptions },
    async run(terminal: Terminal, options: ActOptions) {
      const api = new AdminApi(terminal, options)
      const { body, etag } = await api.ask('policies', { answer: policiesAnswer })
      if (body.killedBy === 'environment') {
        const warning = styleOf(terminal.stderr, terminal)('yellow', 'warning:')
        terminal.stderr.write(
          `${warning} SLUICE_KILL_SWITCH in the environment of the answering process overrides this switch.\n`,
        )
      }
      return act(
        { terminal, api, options },
        {
          ...{ path: 'policies/kill', body: { kill }, answer: changeAnswer, ifMatch: etag },
          describe: (change) => describeChange(change, terminal),
        },
      )
    },
  }
}

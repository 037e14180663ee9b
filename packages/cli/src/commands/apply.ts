import { onOneLine } from '@sluice/core'
import { readPolicyFile } from '@sluice/policies'
import { type ActOptions, act, actOptions } from '../admin-api/act.ts'
import { AdminApi, type Answered, fleetNotes } from '../admin-api/admin-api.ts'
import { type Change, changeAnswer, exportAnswer, policiesAnswer } from '../admin-api/answers.ts'
import { type ApplyPlan, applyPlan } from '../admin-api/apply-plan.ts'
import { describeChange } from '../admin-api/changes.ts'
import { CliError, type ExitCode, exitCodes } from '../terminal/exit-codes.ts'
import { textOf } from '../terminal/files.ts'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { CliCommand } from './command.ts'

interface ApplyOptions extends ActOptions {
  readonly partial?: true
}

export const apply: CliCommand = {
  usage: 'apply <file>',
  summary: 'Apply the limits of a policy file to a running fleet',
  notes: `Limits, bursts, modes, shares and overrides change without a deploy, all in one version, and no request
loses its count. Everything else (algorithms, windows, keys, routes, new policies) requires a deploy of the file:
sluice lists it, and applies nothing without --partial. Overrides made at run time stay.
If someone else changes the policies in the meantime, nothing is changed.
${fleetNotes}\nRequires the role policies.`,
  examples: [
    ['sluice apply sluice.yaml --reason "launch day"', 'asks before applying'],
    ['sluice apply sluice.yaml --reason "launch day" --dry-run', 'shows the differences'],
    ['sluice apply sluice.yaml --reason "launch day" --yes', 'without confirmation, for CI'],
  ],
  setUp(command) {
    actOptions(command).option('--partial', 'apply the part that needs no deploy')
  },
  run: runApply,
}

async function runApply(
  terminal: Terminal,
  file: string,
  options: ApplyOptions,
): Promise<ExitCode> {
  const api = new AdminApi(terminal, options)
  const wanted = readPolicyFile(await textOf(file), file)
  const current = await api.ask('policies', { answer: policiesAnswer })
  const exported = await api.ask('policies/export', { answer: exportAnswer })
  const plan = applyPlan({
    wanted,
    inForce: readPolicyFile(exported.body.text, `version ${exported.body.version}`),
    entries: current.body.entries,
    withoutEntries: await withoutEntries(api, current, options.reason),
  })
  tellRest(terminal, plan)
  if (plan.needDeploy.length > 0 && !options.partial) {
    throw new CliError(
      `Nothing was changed: this needs ${file} to be deployed. Add --partial to apply the rest.`,
      exitCodes.found,
    )
  }
  const { set, remove } = plan
  if (set.length + remove.length === 0) {
    terminal.stderr.write(`The limits of ${file} already apply.\n`)
    return exitCodes.ok
  }
  return act(
    { terminal, api, options },
    {
      ...{ path: 'policies/changes', body: { set, remove }, answer: changeAnswer },
      ifMatch: current.etag,
      describe: (change) => describeChange(change, terminal),
    },
  )
}

/** Finds what removing all field entries would change, which shows the fleet's file. */
async function withoutEntries(
  api: AdminApi,
  { body: { entries }, etag }: Answered<typeof policiesAnswer>,
  reason: string,
): Promise<Change['differences']> {
  const remove = entries
    .filter(({ field }) => field !== 'override')
    .map(({ policy, field }) => ({ policy, field }))
  if (remove.length === 0) return []
  const { body } = await api.ask('policies/changes', {
    body: { remove, reason, dryRun: true },
    answer: changeAnswer,
    ifMatch: etag,
  })
  return body.differences
}

function tellRest(terminal: Terminal, { needDeploy, kept }: ApplyPlan): void {
  const { stderr } = terminal
  const style = styleOf(stderr, terminal)
  for (const { path, newCount } of needDeploy) {
    const anew = newCount ? ', and then starts a new count' : ''
    stderr.write(`${style('yellow', 'needs a deploy:')} ${onOneLine(path)}${anew}\n`)
  }
  for (const override of kept) {
    stderr.write(`${style('dim', 'stays:')} override ${onOneLine(override)}, made at run time\n`)
  }
}

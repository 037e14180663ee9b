import { type Command, Option } from 'commander'
import type { ReplayOptions } from './replay.ts'

/** The options of commands that replay, as commander hands them over. */
export interface ReplayCommandOptions {
  readonly key: readonly string[]
  readonly value: readonly string[]
  readonly route: readonly string[]
  readonly clients: 'recorded' | 'obedient'
}

/** Adds the options of commands that replay a log against a policy file. */
export function addReplayOptions(command: Command): Command {
  return command
    .option('--key <name=value>', 'a key that the file names: tenant=header:x-tenant', listed, [])
    .option('--value <name=value>', 'a function that it names: plan=field:plan', listed, [])
    .option('--route <pattern>', 'a route of the application: GET /users/:id', listed, [])
    .addOption(
      new Option('--clients <behaviour>', 'after a refusal clients go on as recorded, or wait')
        .choices(['recorded', 'obedient'])
        .default('recorded'),
    )
}

export function replayOptionsOf(
  policyFile: string,
  { key: keys, value: values, route: routes, clients }: ReplayCommandOptions,
): ReplayOptions {
  return { policyFile, keys, values, routes, clients }
}

function listed(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}

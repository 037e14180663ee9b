import { type Command, Option } from 'commander'

/** Options of commands that replay a log against a policy file, as commander passes them. */
export interface ReplayOptions {
  /** Keys that the policy file names: `tenant=header:x-tenant`. */
  readonly key: readonly string[]
  /** Functions that it names: `plan=field:plan`. */
  readonly value: readonly string[]
  /** Patterns of routes, such as `GET /users/:id`: for the key `route`, and for reports. */
  readonly route: readonly string[]
  /** The behaviour of clients after a refusal. */
  readonly clients: 'recorded' | 'obedient'
}

export function addReplayOptions(command: Command): Command {
  return command
    .option('--key <name=value>', 'a key that the file names: tenant=header:x-tenant', listed, [])
    .option('--value <name=value>', 'a function that it names: plan=field:plan', listed, [])
    .option('--route <pattern>', 'a route of the application: GET /users/:id', listed, [])
    .addOption(
      new Option('--clients <behaviour>', 'after a refusal, clients continue as recorded, or wait')
        .choices(['recorded', 'obedient'])
        .default('recorded'),
    )
}

/** Collects the values of a repeatable option. */
export function listed(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

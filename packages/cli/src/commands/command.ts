import type { MaybePromise } from '@sluice/core'
import type { Command } from 'commander'
import type { ExitCode } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** An example of the help: a command line, and its purpose in a few words. */
export type Example = readonly [line: string, purpose: string]

export interface CliCommand {
  /** Name and arguments, as `check <files...>`. */
  readonly usage: string
  /** One sentence without its full stop. */
  readonly summary: string
  /** Paragraphs of the help under the options. @default none */
  readonly notes?: string
  readonly examples: readonly [Example, ...Example[]]
  setUp?(command: Command): void
  /**
   * Runs the command. After the terminal come the arguments of the command line one by one, and an
   * object of the options, as commander passes them to its actions.
   * @throws CliError for a mistake that the user can mend
   */
  run(terminal: Terminal, ...given: never[]): MaybePromise<ExitCode>
}

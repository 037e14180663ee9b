import type { MaybePromise } from '@sluice/core'
import type { Command } from 'commander'
import type { ExitCode } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** A help example: a command line and its purpose. */
export type Example = readonly [line: string, purpose: string]

export interface CliCommand {
  /** Name and arguments, such as `check <files...>`. */
  readonly usage: string
  /** One sentence without a full stop. */
  readonly summary: string
  /** Help paragraphs after the options. @default none */
  readonly notes?: string
  readonly examples: readonly [Example, ...Example[]]
  setUp?(command: Command): void
  /**
   * Runs the command. The terminal is followed by the command-line arguments and an options object,
   * as commander passes them to actions.
   * @throws CliError for a mistake that the user can fix
   */
  run(terminal: Terminal, ...given: never[]): MaybePromise<ExitCode>
}

/** The exit codes of all commands. */
export const exitCodes = {
  /** The command did what it was asked, and found nothing wrong. */
  ok: 0,
  /** It found what it looks for: a mistake in a file, a bound that is exceeded. */
  found: 1,
  /** It could not begin: an unknown option, a file that is not there. */
  usage: 2,
  /** It began and could not end: a server that does not answer, an error of Sluice itself. */
  failed: 3,
} as const

/** A code with which the command line ends. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** An error whose message is all that the user needs: the mistake, and the fix. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: ExitCode

  constructor(message: string, exitCode: ExitCode = exitCodes.usage, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

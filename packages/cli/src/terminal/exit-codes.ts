/** The exit codes of all commands. */
export const exitCodes = {
  /** The command succeeded, and found no problems. */
  ok: 0,
  /** It found a problem: a mistake in a file, or an exceeded bound. */
  found: 1,
  /** It could not start: an unknown option, or a missing file. */
  usage: 2,
  /** It could not finish: a server that does not answer, or an internal error. */
  failed: 3,
} as const

/** An exit code. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** An error whose message is all the user needs: the mistake and the fix. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exitCode: ExitCode

  constructor(message: string, exitCode: ExitCode = exitCodes.usage, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

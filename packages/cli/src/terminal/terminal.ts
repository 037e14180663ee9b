export interface Output {
  readonly isTTY?: boolean
  /** Width in characters, of a terminal. */
  readonly columns?: number
  /** Height in lines, of a terminal. */
  readonly rows?: number
  write(text: string): unknown
}

/** All that a command has of the process around it, so that tests can run it in theirs. */
export interface Terminal {
  readonly stdin: AsyncIterable<Buffer> & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted by Ctrl-C. A command that reads it runs until then, and cleans up. */
  readonly signal: AbortSignal
}

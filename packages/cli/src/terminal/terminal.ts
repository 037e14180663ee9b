export interface Output {
  readonly isTTY?: boolean
  /** Width in characters, of a terminal. */
  readonly columns?: number
  /** Height in lines, of a terminal. */
  readonly rows?: number
  write(text: string): unknown
}

export interface Terminal {
  readonly stdin: AsyncIterable<Buffer> & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted by Ctrl-C. A command that reads it runs until then, and cleans up. */
  readonly signal: AbortSignal
}

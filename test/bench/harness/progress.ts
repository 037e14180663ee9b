const startedAt = performance.now()

/** One line on stderr that says what is being measured: rewritten in place on a terminal, and a line each elsewhere. */
export function progress(text: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0).padStart(3)
  const line = `${seconds} s  ${text}`
  if (process.stderr.isTTY)
    process.stderr.write(`\r\u001b[K${line.slice(0, process.stderr.columns)}`)
  else process.stderr.write(`${line}\n`)
}

export function note(text: string): void {
  progress(text)
  if (process.stderr.isTTY) process.stderr.write('\n')
}

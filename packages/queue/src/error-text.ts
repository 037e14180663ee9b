/** The longest that is kept of what a handler threw. */
const longest = 1_024

/** What was thrown, as a text of bounded length. Anything can be thrown, also what cannot be made a text. */
export function errorText(error: unknown): string {
  const text = textOf(error)
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`
}

function textOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'what was thrown cannot be made a text'
  }
}

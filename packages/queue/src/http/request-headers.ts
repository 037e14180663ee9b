/** A client's preferences about waiting, from `Prefer` (RFC 7240). */
export interface Preference {
  /** True if the client accepts a 202. */
  readonly respondAsync: boolean
  /** Time (ms) that the client prefers to wait for the result. */
  readonly waitMs: number | undefined
}

const preference =
  /([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,;"]*))?[^,"]*(?:"(?:[^"\\]|\\.)*"[^,"]*)*/y

/** Maximum length of `Prefer` in characters; a longer one is ignored. */
const maxHeaderLength = 1_024

/** Parses `Prefer`. The first of repeated preferences counts; malformed ones are ignored. */
export function parsePrefer(header: string | undefined): Preference {
  let respondAsync = false
  let waitMs: number | undefined
  let at = 0
  while (header !== undefined && header.length <= maxHeaderLength && at < header.length) {
    preference.lastIndex = at
    const found = preference.exec(header)
    if (!found) {
      at += 1
      continue
    }
    const [text, name = '', value = ''] = found
    if (name.toLowerCase() === 'respond-async') respondAsync = true
    if (name.toLowerCase() === 'wait') waitMs ??= secondsMs(value)
    at += text.length
  }
  return { respondAsync, waitMs }
}

function secondsMs(value: string): number | undefined {
  return /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : undefined
}

const bareKey = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,256}$/
const quotedKey = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,256})"$/

/**
 * Parses the value of an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07): a quoted
 * string. Many clients omit the quotes.
 * @returns `undefined` for an invalid value
 */
export function parseIdempotencyKey(
  header: string,
  { isStrict }: { readonly isStrict: boolean },
): string | undefined {
  const text = header.trim()
  const quoted = quotedKey.exec(text)?.[1]
  if (quoted !== undefined) return quoted.replace(/\\(["\\])/g, '$1')
  return !isStrict && bareKey.test(text) ? text : undefined
}

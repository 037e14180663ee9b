const bareKey = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]{1,256}$/
const quotedKey = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,256})"$/

/**
 * The value of an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07): a quoted string; many clients leave the quotes away.
 * @returns `undefined` for what is none
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

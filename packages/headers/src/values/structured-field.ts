// Serialisers of RFC 9651 §4.1. They return undefined if serialisation fails by the RFC. So no byte
// outside printable ASCII, and no line break, can reach a header.

const quote = 0x22
const backslash = 0x5c

/** An sf-string; `undefined` if the text is empty or not printable ASCII. */
export function serialiseString(text: string): string | undefined {
  if (text === '') return undefined
  let needsEscape = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || code > 0x7e) return undefined
    if (code === quote || code === backslash) needsEscape = true
  }
  return `"${needsEscape ? text.replace(/["\\]/g, '\\$&') : text}"`
}

const keySyntax = /^[a-z*][a-z0-9_.*-]*$/

/** Returns whether a string may be the key of a parameter. */
export function isKey(text: string): boolean {
  return keySyntax.test(text)
}

/** Every runtime with `fetch` has it. */
declare function btoa(text: string): string

/** A byte sequence: padded base64 (RFC 4648 §4) between colons. */
export function serialiseBytes(bytes: Uint8Array): string {
  return `:${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}:`
}
